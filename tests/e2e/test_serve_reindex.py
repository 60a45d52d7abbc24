# SPDX-License-Identifier: Apache-2.0
"""The database is an index: what is lost of it, or changed in it, comes from records, ledger and audit journal again, and what has gone stays away."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

import harness
from harness import wait_for
from serving import Client, Server

NOTHING = {'rows': 0, 'lifecycle': 0, 'wrong': 0, 'audit': 0, 'audit_aged_out': 0, 'forgotten': 0, 'missing': 0, 'failed': 0}


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


def reindex(server, *options):
	place = ('--database', server.database) if server.database else ()
	done = server.cloche.call('reindex', '--json', *place, *options)
	assert done.code == 0, done
	told = json.loads(done.out)
	return {key: told[key] for key in NOTHING}, told


def journal(server):
	return [json.loads(line) for line in (server.cloche.state / 'audit.jsonl').read_text().splitlines()]


def audit(client):
	return list(client.pages('/v1/audit', 500))


def answers(client, boxes):
	"""All that the index says of sandboxes."""
	got = {path: list(client.pages(path, 100)) for box in boxes for path in (at(box, '/log'), at(box, '/lifecycle'))}
	return got | {box: client.get(at(box)).json for box in boxes}


@pytest.fixture
def boxes(server, admin):
	"""One that has ended and one that lives, with some rows each."""
	made = [admin.create(name='first', labels={'team': 'a'}), admin.create()]
	for n in range(3):
		for box in made:
			admin.exec(box, f'echo {n}')
	assert admin.delete(at(made[0])).status == 200
	wait_for(lambda: admin.get(at(made[0])).json['state'] == 'ended', 'its end')
	yield made
	server.admin.delete(at(made[1]))


def test_a_lost_database(server, boxes):
	server.admin.post('/v1/accounts', {'id': 'other', 'name': 'Others', 'max_execs': 7})
	other = server.client(account='other')
	theirs = other.create()
	other.exec(theirs, 'true')
	before, before_theirs, lines, old_key = answers(server.admin, boxes), answers(other, [theirs]), audit(server.admin), server.key
	server.stop()
	server.lose_database()
	counts, told = reindex(server)
	assert counts == NOTHING | {'rows': 7, 'lifecycle': counts['lifecycle'], 'audit': len(journal(server))} and told['records'] == 3, told
	server.start()
	assert answers(server.admin, boxes) == before and audit(server.admin) == lines
	assert Client(server, old_key).get('/v1/sandboxes').status == 401
	assert [(one['id'], one['name'], one['max_execs']) for one in server.admin.get('/v1/accounts').json['items']] == [('default', 'default', 0), ('other', 'other', 0)]
	assert answers(server.client(account='other'), [theirs]) == before_theirs
	assert reindex(server)[0] == NOTHING | {'audit': 0}
	assert server.client(account='other').delete(at(theirs)).status == 200


def test_a_start_alone_does_it(server, boxes):
	before, lines = answers(server.admin, boxes), audit(server.admin)
	server.stop()
	server.lose_database()
	server.start()
	wait_for(lambda: all(server.admin.get(at(box)).status == 200 for box in boxes) and answers(server.admin, boxes) == before, 'the index')
	wait_for(lambda: audit(server.admin) == lines, 'the audit log')


def test_an_old_copy(server, admin):
	made = admin.post('/v1/api-keys', {'role': 'auditor'}).json
	assert admin.delete('/v1/api-keys/' + made['id']).status == 204
	old = [f"UPDATE api_key SET revoked_ms = 0 WHERE id = '{made['id']}'", "DELETE FROM audit WHERE kind = 'key.revoked'"]
	server.sql(*old)
	assert Client(server, made['key']).get('/v1/sandboxes').status == 200
	server.restart()
	wait_for(lambda: Client(server, made['key']).get('/v1/sandboxes').status == 401, 'its end')
	server.sql(*old)
	assert reindex(server)[1]['keys_revoked'] == 1 and Client(server, made['key']).get('/v1/sandboxes').status == 401
	assert any(line['act'] == 'key.revoked' and line['object'] == made['id'] for line in audit(admin)) and reindex(server)[1]['keys_revoked'] == 0


def test_what_was_changed(server, boxes):
	admin, box = server.admin, boxes[0]
	before, lines = answers(admin, boxes), audit(admin)
	rows = {row['seq']: row for row in before[at(box, '/log')]}
	first, second, third = sorted(rows)
	server.sql(f"DELETE FROM log WHERE sandbox = '{box}' AND seq = {first}", f"UPDATE log SET json = replace(json, 'echo', 'rm') WHERE sandbox = '{box}' AND seq = {second}",
		f"UPDATE log SET exit_code = 1 WHERE sandbox = '{box}' AND seq = {third}",
		f"INSERT INTO log SELECT n + 1000000, sandbox, seq + 1000, id, account, exec, source, operation, exit_code, output_truncated, at_ms, duration_ms, search, json FROM log WHERE sandbox = '{box}' AND seq = {third}",
		f"INSERT INTO lifecycle SELECT n + 1000000, sandbox, seq + 1000, account, at_ms, kind, json FROM lifecycle WHERE sandbox = '{box}' AND kind = 'sandbox.started'",
		f"DELETE FROM lifecycle WHERE sandbox = '{boxes[1]}'", f"UPDATE sandbox SET state = 'running', ended_ms = 0, name = 'x', labels = '{{}}' WHERE id = '{box}'",
		f"DELETE FROM audit WHERE journal = {lines[-1]['n']}", f"UPDATE audit SET json = '{{}}' WHERE journal = {lines[0]['n']}")
	assert list(admin.pages(at(box, '/log'), 100)) != before[at(box, '/log')]
	counts, told = reindex(server) # beside the server
	assert counts == NOTHING | {'rows': 3, 'lifecycle': 2, 'wrong': 4, 'audit': 2}, told
	after = answers(admin, boxes)
	assert {path: sorted(map(json.dumps, items)) for path, items in after.items()} == {path: sorted(map(json.dumps, items)) for path, items in before.items()}
	assert sorted(audit(admin), key=lambda line: line['n']) == lines and reindex(server)[0] == NOTHING


def test_beside_a_server_at_work(server, boxes):
	admin, box, answered, over = server.admin, boxes[1], [], threading.Event()

	def work():
		while not over.is_set():
			answered.append(admin.exec(box, 'true')['exec'])

	threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
	for thread in threads:
		thread.start()
	for _ in range(3):
		assert reindex(server)[0]['wrong'] == 0
	over.set()
	for thread in threads:
		thread.join(timeout=60)
	rows = list(admin.pages(at(box, '/log'), 500))
	assert sorted(row['id'] for row in rows) == list(range(1, len(rows) + 1)) and {row['exec'] for row in rows} >= set(answered) and len(answered) > 5


def lines_of(client, box, act='record.removed'):
	return [(line['actor'], line.get('detail')) for line in audit(client) if line['act'] == act and line['object'] == box]


def test_a_removed_record_takes_its_rows_along(server, boxes):
	admin, box = server.admin, boxes[0]
	other = admin.create()
	assert admin.delete(at(other)).status == 200
	assert server.cloche.call('rm', '--record', box).code == 0
	wait_for(lambda: admin.get(at(box)).status == 404, 'its end')
	wait_for(lambda: lines_of(admin, box) == [('uid:0', 'record removed')], 'the line of the audit log')
	assert admin.get(at(box, '/log')).status == 404
	server.stop() # nobody sees it go
	assert server.cloche.call('rm', '--record', other).code == 0
	assert reindex(server)[0]['forgotten'] == 1
	server.start()
	assert admin.get(at(other)).status == 404 and lines_of(admin, other) == [('uid:0', 'record removed')]
	assert reindex(server)[0] == NOTHING and lines_of(admin, other) == [('uid:0', 'record removed')]


def test_a_record_that_went_without_a_word(server, boxes):
	admin, box = server.admin, boxes[0]
	rows = list(admin.pages(at(box, '/log'), 100))
	shutil.move(server.cloche.state / 'records' / box, server.cloche.cwd / box)
	try:
		counts, told = reindex(server)
		assert counts == NOTHING | {'missing': 1}, told
		assert list(admin.pages(at(box, '/log'), 100)) == rows and lines_of(admin, box) == []
	finally:
		shutil.move(server.cloche.cwd / box, server.cloche.state / 'records' / box)
	assert reindex(server)[0] == NOTHING


def test_what_aged_out_stays_out(server, boxes):
	config = server.cloche.cwd / 'aged.json'
	config.write_text(json.dumps({'retention': {'audit_days': 1e-9}}))
	n = len(journal(server))
	server.sql('DELETE FROM audit')
	counts, told = reindex(server, '--config', str(config))
	assert counts == NOTHING | {'audit_aged_out': n}, told
	assert reindex(server)[0] == NOTHING | {'audit': n}


class Locked:
	"""Nobody else writes to the audit log's index meanwhile."""

	def __init__(self, server):
		if server.database:
			self.process = subprocess.Popen(['psql', '-XAtq', server.database], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
			self.process.stdin.write("BEGIN; LOCK TABLE audit IN EXCLUSIVE MODE; SELECT 'locked';\n")
			self.process.stdin.flush()
			assert self.process.stdout.readline() == 'locked\n'
		else:
			self.db = sqlite3.connect(server.cloche.state / 'server' / 'cloche.db', isolation_level=None, timeout=20)
			self.db.execute('BEGIN IMMEDIATE')
		self.server = server

	def __enter__(self):
		return self

	def __exit__(self, *why):
		if self.server.database:
			self.process.communicate('ROLLBACK;\n', timeout=20)
		else:
			self.db.close()


def test_a_kill_between_journal_and_row(server, admin):
	before = journal(server)
	admin.get('/v1/accounts') # so that it has some requests left of this second
	with Locked(server):
		threading.Thread(target=lambda: pytest.raises(OSError, admin.post, '/v1/api-keys', {'role': 'auditor'}), daemon=True).start()
		wait_for(lambda: len(journal(server)) > len(before), 'the line of the journal')
		os.kill(server.serve_pid(), signal.SIGKILL)
	wait_for(server.is_up, 'the next one', 20)
	line = journal(server)[-1]
	assert line['act'] == 'key.created'
	wait_for(lambda: line['n'] in {row['n'] for row in audit(admin)}, 'its row')
	numbers = [row['n'] for row in audit(admin)]
	assert sorted(numbers) == [one['n'] for one in journal(server) if one['account'] == 'default'] and len(numbers) == len(set(numbers))
	assert {key: line[key] for key in line if key not in ('v', 'prev')} in audit(admin)


def test_bad_words(server):
	for options, says in ((('--database', 'mysql://x'), 'want sqlite:PATH'), (('--database', 'sqlite:/nonexistent/db'), 'No such file'),
			(('--user', 'root'), 'is root'), (('--config', '/nonexistent'), "read '/nonexistent'"), (('--nonsense',), 'nonsense'), (('word',), 'too many arguments')):
		refused = server.cloche.call('reindex', *options)
		assert refused.code in (2, 125) and says in refused.err and len(refused.err.splitlines()) == 1, refused
	nobody = subprocess.run([server.cloche.program, 'reindex'], env=server.cloche.env(), user=65534, group=65534, extra_groups=[], cwd='/', capture_output=True, text=True, check=False)
	assert nobody.returncode == 125 and 'root' in nobody.stderr, nobody


@pytest.fixture
def elsewhere(server):
	"""A server on another host, so to say: with a state of its own, and the same database."""
	cloche = type(server.cloche)(server.cloche.cwd / 'elsewhere', server.cloche.run_dir, server.cloche.cwd)
	harness.lend_skeleton(server.cloche.state, cloche.state)
	config = server.cloche.cwd / 'short.json'
	config.write_text(json.dumps({'retention': {'records_days': 1 / 86400}}))
	place = server.database or f'sqlite:{server.cloche.state}/server/cloche.db'
	made = Server(cloche, '--config', str(config), '--socket', str(server.cloche.cwd / 'elsewhere.sock'), database=place, key=server.key)
	yield made
	made.close()
	cloche.check_clean()
	shutil.rmtree(cloche.state)


ELSEWHERE = [('post', '/exec', {'command': 'true'}), ('post', '/pause', None), ('post', '/stop', None), ('delete', '', None), ('get', '/trace/events', None), ('get', '/watch', None),
	('post', '/fork', None), ('post', '/resume', None), ('get', '/report', None), ('get', '/network-rules', None), ('post', '/files/ls', {'path': '/'}), ('get', '/files/content?path=/etc/passwd', None),
	('get', '/changes', None), ('delete', '/trace', None), ('get', '/asks', None)]


def test_another_host(server, boxes, elsewhere):
	over, alive = boxes
	for box in boxes:
		assert elsewhere.admin.get(at(box)).json == server.admin.get(at(box)).json
		assert elsewhere.admin.get(at(box, '/log')).json == server.admin.get(at(box, '/log')).json
		assert elsewhere.admin.get(at(box, '/lifecycle')).status == elsewhere.admin.get(at(box, '/metrics')).status == 200
	row = server.admin.get(at(alive, '/log')).json['items'][0]
	assert elsewhere.admin.get(at(alive, f'/exec/{row["exec"]}')).json == row
	for method, path, body in ELSEWHERE:
		refused = elsewhere.admin.call(method.upper(), at(alive, path), body)
		assert (refused.status, refused.json['code']) == (409, 'other_host') and alive in refused.json['detail'], (path, refused)
	mine = elsewhere.admin.create()
	elsewhere.admin.exec(mine, 'true')
	assert server.admin.get(at(mine)).json['state'] == 'running' and len(server.admin.get(at(mine, '/log')).json['items']) == 1
	assert server.admin.post(at(mine, '/exec'), {'command': 'true'}).json['code'] == 'other_host'
	# Each keeps what is its own: one that ended there is too old by now, and so would be the one that ended here.
	assert elsewhere.admin.delete(at(mine)).status == 200
	time.sleep(1.1)
	elsewhere.restart()
	wait_for(lambda: server.admin.get(at(mine)).status == 404, 'its end')
	wait_for(lambda: lines_of(server.admin, mine) == [('retention', 'aged out')], 'the line')
	assert server.admin.get(at(over)).status == 200 and reindex(server)[0] == NOTHING
	assert {line['n'] for line in journal(elsewhere)} <= {line['n'] for line in journal(server)}, 'both count from 1'
	assert lines_of(server.admin, mine, 'sandbox.removed') and lines_of(server.admin, over, 'sandbox.removed')
