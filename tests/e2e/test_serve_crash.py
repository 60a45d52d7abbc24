# SPDX-License-Identifier: Apache-2.0
"""Any part of the control plane is killed in the middle of its work: what was answered has its row, once, and nothing is orphaned."""
import contextlib
import hashlib
import http.client
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

import pytest

import harness
from harness import kill_and_wait, wait_for
from serving import Client, Server


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


class Load:
	"""Threads that run commands, and one that watches; whatever is cut off is tried again."""

	def __init__(self, server, boxes):
		self.client = Client(server, server.admin.post('/v1/api-keys', {'rate_limit': 100000}).json['key'])
		self.answered, self.seen, self.is_over = {box: [] for box in boxes}, {box: [] for box in boxes}, False
		self.wrong = []
		self.threads = [threading.Thread(target=self.guard, args=(self.run, box), daemon=True) for box in boxes for _ in range(2)]
		self.watchers = [threading.Thread(target=self.guard, args=(self.watch, box), daemon=True) for box in boxes]
		for thread in self.threads + self.watchers:
			thread.start()

	def guard(self, work, box):
		try:
			work(box)
		except AssertionError as error:
			self.wrong.append(error)

	def run(self, box):
		while not self.is_over:
			try:
				done = self.client.post(at(box, '/exec'), {'argv': ['true']}, limit_s=20)
			except (OSError, http.client.HTTPException):
				time.sleep(0.05)
				continue
			if done.status == 200:
				self.answered[box].append(done.json['exec'])
			else: # between two lives
				assert done.status in (409, 503), done
				time.sleep(0.05)

	def watch(self, box):
		mine = self.seen[box]
		while not self.is_over:
			try:
				events = self.client.stream(at(box, '/watch'), headers={'Last-Event-ID': mine[-1][0]} if mine else {}, limit_s=2)
				for name, id, row in events:
					if name == 'row':
						mine.append((id, row['exec']))
					if self.is_over:
						break
				events.close()
			except (OSError, http.client.HTTPException, ValueError):
				time.sleep(0.05)

	def end(self):
		self.is_over = True
		for thread in self.threads + self.watchers:
			thread.join(timeout=60)
			assert not thread.is_alive()
		assert not self.wrong, self.wrong

	def check(self, admin):
		for box, answered in self.answered.items():
			rows = [row['exec'] for row in admin.pages(at(box, '/log'), 500)]
			assert len(answered) > 5 and len(rows) == len(set(rows)) and set(answered) <= set(rows), box
			ids, execs = zip(*self.seen[box])
			assert ids == tuple(f'r{n + 1}' for n in range(len(ids))) and len(set(execs)) == len(execs)
			assert list(execs) == rows[:len(execs)]


@pytest.mark.parametrize('part', ['serve', 'launcher'])
def test_a_part_is_killed_under_load(server, admin, part):
	boxes = [admin.create() for _ in range(2)]
	load = Load(server, boxes)
	for _ in range(3):
		time.sleep(0.7)
		if part == 'serve':
			os.kill(server.serve_pid(), signal.SIGKILL)
		else:
			half = pathlib.Path(f'/proc/{server.serve_pid()}/exe')
			server.process.kill()
			server.process.wait()
			wait_for(lambda half=half: not half.exists(), 'the end of its other half, which listens')
			server.process.stdout.close()
			server.log.close()
			server.start()
		wait_for(server.is_up, 'the next one', 20)
	time.sleep(0.7)
	load.end()
	wait_for(server.is_up, 'the last one', 20)
	load.check(admin)
	for box in boxes:
		assert admin.exec(box, 'echo alive')['stdout'] == 'alive\n'
		assert admin.delete(at(box)).status == 200


def test_a_supervisor_is_killed(server, admin):
	box, other = admin.create(), admin.create()
	rows = []
	thread = threading.Thread(target=lambda: rows.append(admin.post(at(box, '/exec'), {'command': 'sleep 30'})))
	thread.start()
	wait_for(lambda: any(event['kind'] == 'exec.start' for event in admin.get(at(box, '/trace/events')).json['items']), 'its start')
	for pid in server.cloche.processes(box, 'cloche-supervisor'):
		os.kill(pid, signal.SIGKILL)
	thread.join(timeout=30)
	assert rows and rows[0].status == 200 and rows[0].json['command'] == 'sleep 30' and rows[0].json['exit_code'] is None, rows
	assert [row['exec'] for row in admin.get(at(box, '/log')).json['items']] == [rows[0].json['exec']]
	assert admin.get(at(box)).json['state'] == 'ended'
	gone = admin.post(at(box, '/exec'), {'command': 'true'})
	assert gone.status == 409 and gone.json['code'] in ('not_running', 'ended'), gone
	assert admin.exec(other, 'true')['exit_code'] == 0
	for made in (box, other):
		assert admin.delete(at(made)).status == 200


@pytest.mark.parametrize('supervisor', [False, True], ids=['plane', 'supervisor'])
def test_all_of_it_is_killed_in_the_middle_of_a_command(server, admin, supervisor):
	"""R89: where the sandbox's own part lives the command goes on, and its row is found by who comes next; else the row says that its end is not known."""
	box, got = admin.create(), []

	def ask():
		return admin.post(at(box, '/exec'), {'command': f'echo finished > /workspace/f; echo out; sleep {30 if supervisor else 1}; exit 4'}, headers={'Idempotency-Key': box})

	def ask_in_vain():
		with pytest.raises((OSError, http.client.HTTPException)):
			got.append(ask())

	thread = threading.Thread(target=ask_in_vain)
	thread.start()
	wait_for(lambda: any(entry['path'] == '/workspace/f' for entry in admin.get(at(box, '/trace/files')).json['items']), 'the command at work')
	others = [server.serve_pid(), *(server.cloche.processes(box, 'cloche-supervisor') if supervisor else [])]
	server.process.kill()
	for pid in others:
		kill_and_wait(pid)
	thread.join(timeout=20)
	server.process.wait()
	server.process.stdout.close()
	server.log.close()
	server.start()
	[row] = wait_for(lambda: admin.get(at(box, '/log')).json['items'], 'its row')
	assert not got and row['command'].startswith('echo finished')
	if supervisor:
		assert row['interrupted'] and row['exit_code'] is None and row['signal'] is None
		wait_for(lambda: admin.get(at(box)).json['state'] == 'ended', 'its end to be known')
		assert not server.cloche.processes(box)
	else:
		assert (row['exit_code'], row['stdout'], row['stdout_sha256']) == (4, 'out\n', hashlib.sha256(b'out\n').hexdigest()) and row['duration_ms'] >= 1000
		assert admin.exec(box, 'cat /workspace/f')['stdout'] == 'finished\n'
	files = {entry['path']: entry for entry in admin.get(at(box, f'/trace/files?exec={row["exec"]}')).json['items']}
	assert files['/workspace/f']['written']
	again = ask() # whoever asks again by the same key has nothing done twice
	assert (again.status, again.json['code']) == (409, 'busy'), again
	assert admin.delete(at(box)).status == 200


def test_postgres_is_killed_under_load(request, server, admin):
	if server.database is None:
		pytest.skip('one file, no server')
	postgres = request.getfixturevalue('postgres')
	boxes = [admin.create()]
	load = Load(server, boxes)
	for _ in range(2):
		time.sleep(0.7)
		postgres.kill()
		time.sleep(0.3)
		postgres.start()
	time.sleep(1)
	load.end()
	wait_for(lambda: admin.get('/health').status == 200, 'the store')
	load.check(admin)
	assert admin.delete(at(boxes[0])).status == 200


def is_away(client, path='/v1/sandboxes', **how):
	"""Whether the database is said to be away, and said well; what else may be answered is for the caller."""
	reply = client.call('POST' if how else 'GET', path, limit_s=30, **how)
	if reply.status != 503:
		return None
	assert reply.json['code'] in ('try_again', 'store_unavailable') and int(reply.headers['Retry-After']) > 0, reply
	assert '/tmp' not in reply.json['detail'] and 'cloche@' not in reply.json['detail'], 'where it is, is for whoever runs it'
	return reply


def test_postgres_is_away_for_long(request, server, admin):
	if server.database is None:
		pytest.skip('one file, no server')
	postgres, box = request.getfixturevalue('postgres'), admin.create()
	key = {'headers': {'Idempotency-Key': 'away'}}
	admin.post(at(box, '/exec'), {'command': 'sleep 1; echo ended', 'detach': True})
	wait_for(lambda: any(event['kind'] == 'exec.start' for event in admin.get(at(box, '/trace/events')).json['items']), 'its start')
	records = sorted(os.listdir(server.cloche.state / 'records'))
	postgres.kill()
	assert is_away(admin)
	begin = time.monotonic()
	assert all(is_away(admin, path) for path in ('/health', at(box), at(box, '/log'))) and is_away(admin, body={}) and is_away(admin, at(box, '/exec'), body={'command': 'echo once'}, **key)
	assert time.monotonic() - begin < 3, 'who comes later is not kept waiting'
	os.kill(server.serve_pid(), signal.SIGKILL) # nor is one that starts now given up
	wait_for(lambda: server.process.poll() is None and server.said().count('cannot be reached') > 1, 'its word')
	postgres.start()
	wait_for(server.is_up, 'the server', 20)
	assert sorted(os.listdir(server.cloche.state / 'records')) == records, 'nothing half-made'
	rows = wait_for(lambda: admin.get(at(box, '/log')).json['items'], 'the row of what ended meanwhile')
	assert [row['stdout'] for row in rows] == ['ended\n']
	assert admin.post(at(box, '/exec'), {'command': 'echo once'}, **key).json['stdout'] == 'once\n'
	assert admin.delete(at(box)).status == 200


def test_a_database_that_is_read_only(server, admin):
	if server.database is None:
		pytest.skip('a matter of PostgreSQL: one that follows another')
	box, name = admin.create(), server.database.split('?')[0].rsplit('/', 1)[-1]
	cut = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
	server.sql(f'ALTER DATABASE {name} SET default_transaction_read_only = on', cut)
	refused = wait_for(lambda: (reply := admin.post('/v1/api-keys', {'role': 'auditor'})).status == 503 and reply, 'a refusal', 30)
	assert refused.json['code'] == 'read_only' and refused.headers['Retry-After'], refused
	assert admin.post('/v1/sandboxes', {}).status == 503 and os.listdir(server.cloche.state / 'sandboxes') == [box], 'what was made is undone'
	subprocess.run(['psql', '-XAtq', server.database, '-c', 'SET default_transaction_read_only = off', '-c', f'ALTER DATABASE {name} RESET default_transaction_read_only', '-c', cut],
		check=True, capture_output=True, timeout=30)
	wait_for(lambda: admin.post('/v1/api-keys', {'role': 'auditor'}).status == 201, 'the next key', 20)
	assert admin.exec(box, 'echo alive')['stdout'] == 'alive\n' and admin.delete(at(box)).status == 200


@pytest.fixture
def apart(run_dir):
	"""A state of this test's own, in a folder that users other than root reach."""
	folder = pathlib.Path(tempfile.mkdtemp(prefix='cloche-test-apart-'))
	folder.chmod(0o755)
	yield harness.Cloche(folder / 'state', run_dir, folder)
	shutil.rmtree(folder)


def test_a_full_disk(apart):
	disk = apart.cwd / 'disk'
	disk.mkdir()
	subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4m,mode=777', 'cloche-test', disk], check=True)
	try:
		server = Server(apart, '--socket', str(apart.cwd / 's'), database=f'sqlite:{disk}/db')
		with open(disk / 'fill', 'wb', buffering=0) as file, contextlib.suppress(OSError):
			while True:
				file.write(bytes(4096))
		full = wait_for(lambda: (reply := server.admin.post('/v1/api-keys', {'role': 'auditor'})).status == 507 and reply, 'its end', 30)
		assert full.json['code'] == 'no_space', full
		(disk / 'fill').unlink()
		wait_for(lambda: server.admin.post('/v1/api-keys', {'role': 'auditor'}).status == 201, 'room')
		names = [line['object'] for line in server.admin.get('/v1/audit?limit=1000').json['items'] if line['act'] == 'key.created']
		assert {key['id'] for key in server.admin.get('/v1/api-keys').json['items']} - set(names) == {server.admin.get('/v1/api-keys').json['items'][0]['id']}
		server.stop()
	finally:
		subprocess.run(['umount', '-l', disk], check=True)


@pytest.mark.parametrize('place, says', [('sqlite:{}/garbage', 'is damaged or none: move it away, start again, and run `cloche reindex`'), ('sqlite:{}/theirs', 'is the database of another program'),
	('sqlite:{}/none/db', 'No such file or directory'), ('sqlite:{}/shut/db', 'let the user without rights through the folders above'),
	('postgres://cloche@/x?host={}', 'the database cannot be reached: ')])
def test_a_start_says_what_is_wrong(apart, place, says):
	(apart.cwd / 'garbage').write_bytes(b'no database' * 1000)
	(apart.cwd / 'shut').mkdir(mode=0o700)
	with contextlib.closing(sqlite3.connect(apart.cwd / 'theirs')) as theirs:
		theirs.execute('CREATE TABLE x (y)')
		theirs.execute('PRAGMA application_id = 5')
	for file in ('garbage', 'theirs'):
		(apart.cwd / file).chmod(0o666)
	apart.cwd.chmod(0o777) # SQLite writes beside its file
	refused = apart.call('serve', '--listen', '127.0.0.1:0', '--socket', apart.cwd / 's', '--database', place.format(apart.cwd))
	assert refused.code == 125 and says in refused.err and len(refused.err.splitlines()) == 1, refused
