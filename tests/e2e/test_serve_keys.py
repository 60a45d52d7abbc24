# SPDX-License-Identifier: Apache-2.0
"""The first key, and keys that end while what they asked for goes on."""
import contextlib
import http.client
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

import harness
from conftest import open_folder
from harness import wait_for
from serving import Client, Server, free_port

WITHIN_S = 6 # looked up every 3 s, where nobody tells


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


@pytest.fixture(scope='module')
def second(server):
	"""A replica: the same state and database."""
	made = Server(server.cloche, *server.options[:-1], server.options[-1] + '2', database=server.database, key=server.key)
	yield made
	made.stop()


@pytest.fixture
def box(admin):
	made = admin.create()
	yield made
	assert admin.delete(at(made)).status == 200


def new_key(admin, role):
	made = admin.post('/v1/api-keys', {'role': role}).json
	return made['id'], Client(admin.server, made['key'])


def change(server, sql):
	"""By the database's own means, as no route does it."""
	if server.database:
		place, _, folder = server.database.partition('?host=')
		subprocess.run(['psql', '-q', '-h', folder, '-U', 'cloche', '-d', place.rsplit('/', 1)[-1], '-c', sql], check=True, capture_output=True, timeout=20)
		return
	with contextlib.closing(sqlite3.connect(server.cloche.state / 'server' / 'cloche.db', timeout=10)) as db, db:
		db.execute(sql)


class Open:
	"""What a key has under way, each read by a thread of its own until it ends."""

	def __init__(self, client, box):
		self.client, self.box, self.ends, self.begun = client, box, {}, set()
		for name, run in (('rows', self.rows), ('events', self.events), ('exec', self.exec), ('waiting', self.waiting), ('upload', self.upload)):
			threading.Thread(target=run, args=(name,), daemon=True).start()
		wait_for(lambda: len(self.begun) == 5, 'all of it')
		self.wait_for_commands(2)

	def wait_for_commands(self, n):
		wait_for(lambda: sum(event['kind'] == 'exec.start' for event in self.client.get(at(self.box, '/trace/events')).json['items']) >= n, 'commands')

	def read(self, name, stream):
		for event, _, data in stream:
			self.begun.add(name)
			last = event, data
		self.ends[name] = last

	def rows(self, name):
		stream = self.client.stream(at(self.box, '/watch'))
		self.begun.add(name)
		self.read(name, stream)

	def events(self, name):
		self.read(name, self.client.stream(at(self.box, '/watch?events=true')))

	def exec(self, name):
		self.read(name, self.client.stream(at(self.box, '/exec'), {'command': 'echo begun; sleep 60', 'kill_on_disconnect': True}))

	def waiting(self, name):
		self.begun.add(name)
		got = self.client.post(at(self.box, '/exec'), {'command': 'sleep 60', 'kill_on_disconnect': True})
		self.ends[name] = got.status, got.json

	def upload(self, name):
		with socket.create_connection(('127.0.0.1', self.client.server.port), timeout=60) as sock:
			sock.sendall(f'PUT {at(self.box, "/files/content?path=/tmp/f")} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.client.key}\r\n'
				'Content-Length: 5000000\r\n\r\nbegin'.encode())
			self.begun.add(name)
			response = http.client.HTTPResponse(sock)
			response.begin()
			self.ends[name] = response.status, response.read()


@pytest.mark.parametrize('by', ['same', 'replica'])
def test_what_a_revoked_key_has_open_is_closed(server, second, admin, box, by):
	key, client = new_key(admin, 'member')
	mine = admin.stream(at(box, '/watch'))
	had = Open(client, box)
	assert not had.ends
	began = time.monotonic()
	assert (admin if by == 'same' else second.admin).delete(f'/v1/api-keys/{key}').status == 204
	wait_for(lambda: len(had.ends) == 5, 'the end of it', WITHIN_S)
	if by == 'same' or server.database: # told, and not found out
		assert time.monotonic() - began < 2
	for name in ('rows', 'events', 'exec'):
		event, data = had.ends[name]
		assert event == 'error' and data['status'] == 401 and data['code'] == 'unauthorized', (name, had.ends)
	assert had.ends['waiting'][0] == 401 == had.ends['upload'][0], had.ends
	rows = wait_for(lambda: [row for row in admin.get(at(box, '/log')).json['items']][1:], 'both commands to be killed')
	assert all(row['signal'] == 9 for row in rows)
	assert client.get(at(box)).status == 401
	assert len(mine.take(2)) == 2, 'the stream of another key goes on'
	mine.close()


def test_what_a_role_no_longer_may_is_closed(server, admin, box):
	key, client = new_key(admin, 'member')
	had = Open(client, box)
	change(server, f"UPDATE api_key SET role = 'auditor' WHERE id = '{key}'")
	wait_for(lambda: len(had.ends) == 3, 'the end of work', WITHIN_S)
	assert sorted(had.ends) == ['exec', 'upload', 'waiting'] and had.ends['exec'][1]['code'] == 'unauthorized' and had.ends['waiting'][0] == 401
	admin.exec(box, 'true')
	assert admin.delete(f'/v1/api-keys/{key}').status == 204
	wait_for(lambda: len(had.ends) == 5, 'the end of reading', WITHIN_S)


# ---- the first one ----

class Starting:
	"""A `cloche serve` whose first key is looked for by hand."""

	def __init__(self, cloche, database, stdout=subprocess.PIPE):
		self.port = free_port()
		place = ('--database', database) if database else ()
		self.process = cloche.start('serve', '--listen', f'127.0.0.1:{self.port}', '--socket', str(cloche.cwd / f'{self.port}.sock'), *place, stdout=stdout, text=True)

	def status(self, key):
		connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=20)
		with contextlib.closing(connection):
			connection.request('GET', '/v1/api-keys' if key else '/health', headers={'Authorization': f'Bearer {key}'} if key else {})
			return connection.getresponse().status

	def is_up(self):
		with contextlib.suppress(OSError, http.client.HTTPException):
			return self.status(None) == 200
		return False

	def stop(self):
		self.process.terminate()
		said = self.process.communicate(timeout=20)[0]
		return said.splitlines()


@pytest.fixture(params=['sqlite', 'postgres'])
def fresh(request, state, run_dir):
	"""A state and a database that nobody has started on."""
	with open_folder('first') as folder:
		cloche = harness.Cloche(folder / 'state', run_dir, folder)
		harness.lend_skeleton(state, cloche.state)
		yield cloche, request.getfixturevalue('postgres').database() if request.param == 'postgres' else None
		cloche.check_clean()


def test_a_key_that_cannot_be_shown_is_not_kept(fresh):
	with open('/dev/full', 'w', encoding='ascii') as full:
		first = Starting(*fresh, stdout=full)
		said = first.process.communicate(timeout=20)[1]
	assert first.process.returncode == 125 and 'print the key of the first admin: No space left on device' in said, said
	second = Starting(*fresh)
	wait_for(second.is_up, 'the server', 20)
	key = second.process.stdout.readline().split()[-1]
	assert second.status(key) == 200
	second.stop()
	third = Starting(*fresh)
	wait_for(third.is_up, 'the server', 20)
	assert third.status(key) == 200 and third.stop() == [], 'it is shown once'


def test_replicas_that_start_at_once_make_one_key(fresh):
	both = [Starting(*fresh) for _ in range(2)]
	for one in both:
		wait_for(one.is_up, 'the server', 20)
	shown = [line for one in both for line in one.stop()]
	assert len(shown) == 1 and shown[0].startswith('admin key, shown only now: clo_'), shown
	again = Starting(*fresh)
	wait_for(again.is_up, 'the server', 20)
	assert again.status(shown[0].split()[-1]) == 200 and again.stop() == []
