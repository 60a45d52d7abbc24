# SPDX-License-Identifier: Apache-2.0
"""A control plane of a test's own: `cloche serve` on a free port, and a client that speaks HTTP to it.

Every answer is held against the document that the server serves (api_document.py)."""
import contextlib
import ctypes
import functools
import http.client
import http.server
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import api_document
from harness import wait_for

TYPE = 'application/json'
PIDFD_OPEN, PIDFD_GETFD = 434, 438
OFFICE = 4 # cloche-serve's way to the launcher
STREAM = 'text/event-stream'
STREAM_LIMIT_S = 120


def free_port():
	with socket.create_server(('127.0.0.1', 0)) as listening:
		return listening.getsockname()[1]


class Postgres:
	"""A PostgreSQL of our own in a folder, reached by its Unix socket; root may not run one."""

	def __init__(self, folder):
		found = sorted(pathlib.Path('/usr/lib/postgresql').glob('[1-9]*/bin'))
		assert found, 'PostgreSQL is not installed (package postgresql)'
		self.bin, self.folder, self.n = found[-1], pathlib.Path(folder), 0
		self.user = pwd.getpwnam('postgres')
		self.folder.mkdir(mode=0o755)
		os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
		self.call('initdb', '-D', self.folder / 'data', '-U', 'cloche', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C')
		self.start()

	def how(self):
		return {'user': self.user.pw_uid, 'group': self.user.pw_gid, 'extra_groups': [], 'cwd': self.folder}

	def call(self, program, *args):
		subprocess.run([self.bin / program, *map(os.fspath, args)], check=True, capture_output=True, timeout=60, **self.how())

	def start(self):
		self.process = subprocess.Popen([self.bin / 'postgres', '-D', self.folder / 'data', '-k', self.folder, '-c', 'listen_addresses='],
			stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.how())
		wait_for(lambda: subprocess.run([self.bin / 'pg_isready', '-q', '-h', self.folder], check=False).returncode == 0, 'PostgreSQL', 30)

	def database(self):
		"""A new, empty one: its place."""
		self.n += 1
		self.call('createdb', '-h', self.folder, '-U', 'cloche', f'test{self.n}')
		return f'postgres://cloche@/test{self.n}?host={self.folder}'

	def dump(self, place):
		"""All that a database holds, as text."""
		return subprocess.run([self.bin / 'pg_dump', '-h', self.folder, '-U', 'cloche', place.split('?')[0].rsplit('/', 1)[-1]],
			check=True, capture_output=True, timeout=60, **self.how()).stdout.decode()

	def kill(self):
		self.process.kill()
		self.process.wait()

	def close(self):
		self.process.send_signal(signal.SIGINT) # fast: clients are cut off
		self.process.wait(timeout=30)
		shutil.rmtree(self.folder)


class Reply:
	def __init__(self, response, body):
		self.status, self.headers, self.body = response.status, response.headers, body

	@property
	def json(self):
		return json.loads(self.body)

	def __repr__(self):
		return f'{self.status} {self.body[:1000]!r}'


class Events:
	"""A stream of server-sent events: iterate to get (event, id, data) as they come. problem: what it was refused with."""

	problem = None

	def __init__(self, connection, response, check):
		self.connection, self.response, self.status, self.check = connection, response, response.status, check
		self.end = time.monotonic() + STREAM_LIMIT_S

	def __iter__(self):
		fields = {}
		for line in self.lines():
			name, _, value = line.partition(':')
			if line and name:
				fields[name] = value.lstrip(' ')
			elif not line and fields:
				data = json.loads(fields['data'])
				self.check(fields.get('event'), data)
				yield fields.get('event'), fields.get('id'), data
				fields = {}

	def lines(self):
		while line := self.response.readline():
			assert time.monotonic() < self.end, f'read for {STREAM_LIMIT_S} s, and not at its end' # heartbeats keep it from timing out
			yield line.decode().rstrip('\n')

	def take(self, n):
		return [event for _, event in zip(range(n), self)]

	def close(self):
		if self.connection.sock:
			self.connection.sock.close()
		self.response.close()
		self.connection.close()


class Client:
	def __init__(self, server, key):
		self.server, self.key = server, key

	def open(self, method, path, body=None, headers=None, limit_s=60):
		"""The connection and the response, whose body is still to be read."""
		if self.server.tls:
			connection = http.client.HTTPSConnection('127.0.0.1', self.server.port, timeout=limit_s, context=self.server.tls)
		else:
			connection = http.client.HTTPConnection('127.0.0.1', self.server.port, timeout=limit_s)
		if self.server.world:
			connection.sock = self.server.world.connect_to(self.server.port, limit_s)
		head = {'Authorization': f'Bearer {self.key}'} if self.key else {}
		if isinstance(body, (dict, list)):
			body, head['Content-Type'] = json.dumps(body), TYPE
		connection.request(method, path, body, {**head, **(headers or {})})
		return connection, connection.getresponse()

	def call(self, method, path, body=None, **how):
		connection, response = self.open(method, path, body, **how)
		with contextlib.closing(connection):
			reply = Reply(response, response.read())
		self.server.document.check(method, path, reply.status, reply.headers, reply.body)
		return reply

	def get(self, path, **how):
		return self.call('GET', path, **how)

	def post(self, path, body=None, **how):
		return self.call('POST', path, body, **how)

	def put(self, path, body=None, **how):
		return self.call('PUT', path, body, **how)

	def delete(self, path, **how):
		return self.call('DELETE', path, **how)

	def stream(self, path, body=None, headers=None, **how):
		method = 'GET' if body is None else 'POST'
		connection, response = self.open(method, path, body, headers={'Accept': STREAM, **(headers or {})}, **how)
		if response.status != 200:
			refused = Events(connection, response, None)
			refused.problem = json.loads(body := response.read())
			self.server.document.check(method, path, response.status, response.headers, body)
			return refused
		self.server.document.check(method, path, response.status, response.headers, None)
		return Events(connection, response, self.server.document.stream(method, path))

	def pages(self, path, limit):
		"""All items of a list, page by page."""
		cursor, sign = '', '&' if '?' in path else '?'
		while True:
			page = self.get(f'{path}{sign}limit={limit}{cursor}')
			assert page.status == 200, page
			yield from page.json['items']
			if not page.json['next_cursor']:
				return
			cursor = '&cursor=' + page.json['next_cursor']

	def create(self, **spec):
		made = self.post('/v1/sandboxes', spec)
		assert made.status == 201, made
		return made.json['id']

	def exec(self, sandbox, command, **how):
		done = self.post(f'/v1/sandboxes/{sandbox}/exec', {'command': command, **how})
		assert done.status == 200, done
		return done.json


class Server:
	"""One `cloche serve`; it may be stopped, killed and started again. key: of a replica, which prints none. tls: a context that knows
	its certificate."""

	def __init__(self, cloche, *options, database=None, world=None, key=None, tls=None):
		self.cloche, self.options, self.database, self.world, self.tls = cloche, options, database, world, tls
		self.port, self.key = free_port(), key
		self.admin = Client(self, key)
		self.start()

	def start(self):
		place = ('--database', self.database) if self.database else ()
		self.log = open(pathlib.Path(self.cloche.cwd) / f'serve-{self.port}.log', 'ab+', buffering=0) # noqa: SIM115 (closed by stop)
		self.process = self.cloche.start('serve', '--listen', f'127.0.0.1:{self.port}', *place, *self.options, stderr=self.log, text=True)
		if not self.key:
			self.key = self.process.stdout.readline().rsplit(' ', 1)[-1].strip()
			assert self.key.startswith('clo_'), self.said()
			self.admin = Client(self, self.key)
		wait_for(self.is_up, 'the control plane', 20)

	@functools.cached_property
	def document(self):
		connection, response = Client(self, None).open('GET', '/openapi.json')
		with contextlib.closing(connection):
			assert response.status == 200
			return api_document.parse(response.read())

	def said(self):
		self.log.seek(0)
		return self.log.read().decode()

	def is_up(self):
		assert self.process.poll() is None, self.said()
		with contextlib.suppress(OSError):
			connection, response = Client(self, None).open('GET', '/health')
			connection.close()
			return response.status == 200
		return False

	def serve_pid(self):
		"""The half without rights."""
		children = pathlib.Path(f'/proc/{self.process.pid}/task/{self.process.pid}/children').read_text().split()
		return next(int(pid) for pid in children if pathlib.Path(f'/proc/{pid}/comm').read_text().strip() == 'cloche-serve')

	def sql(self, *statements):
		"""Runs them by other hands, in one transaction; the rows of the last one."""
		if self.database:
			done = subprocess.run(['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-1', self.database, '-c', ';'.join(statements)],
				check=True, capture_output=True, text=True, timeout=60)
			return [tuple(line.split('|')) for line in done.stdout.splitlines()]
		with contextlib.closing(sqlite3.connect(self.cloche.state / 'server' / 'cloche.db', timeout=20)) as db, db:
			rows = [db.execute(statement).fetchall() for statement in statements]
			return [tuple(map(str, row)) for row in rows[-1]]

	def lose_database(self):
		"""While it is stopped."""
		if self.database:
			self.sql('DROP SCHEMA public CASCADE', 'CREATE SCHEMA public')
		for file in (self.cloche.state / 'server').glob('cloche.db*'):
			file.unlink()
		self.key = None

	def client(self, role='admin', account=None, **more):
		if account:
			made = self.admin.post('/v1/accounts', {'id': account})
			assert made.status in (201, 409), made
		made = self.admin.post('/v1/api-keys', {'role': role, 'name': 'test', **({'account': account} if account else {}), **more})
		assert made.status == 201, made
		return Client(self, made.json['key'])

	def stop(self):
		self.process.terminate()
		self.process.wait(timeout=20)
		self.process.stdout.close()
		self.log.close()

	def restart(self):
		self.stop()
		self.start()

	def close(self):
		"""Ends every sandbox first, so that nothing of them is left."""
		for box in list((self.cloche.state / 'sandboxes').iterdir()) if (self.cloche.state / 'sandboxes').is_dir() else []:
			self.cloche.call('rm', box.name)
		self.stop()


class Receiver:
	"""Keeps what it was sent; answers what `answer` says (a status, or a list of them that is used up)."""

	def __init__(self):
		self.got, self.answer, self.wait_s, self.location = [], 200, 0, None
		receiver = self

		class Handler(http.server.BaseHTTPRequestHandler):
			def do_POST(self):
				receiver.take(self)

			def log_message(self, *args):
				pass

		self.httpd = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
		self.port = self.httpd.server_address[1]
		threading.Thread(target=self.httpd.serve_forever, args=(0.05,), daemon=True).start()

	def take(self, handler):
		body = handler.rfile.read(int(handler.headers['Content-Length']))
		self.got.append((dict(handler.headers), body))
		status = self.answer.pop(0) if isinstance(self.answer, list) else self.answer
		time.sleep(self.wait_s)
		with contextlib.suppress(OSError):
			handler.send_response(status)
			if self.location:
				handler.send_header('Location', self.location)
			handler.send_header('Content-Length', '2')
			handler.end_headers()
			handler.wfile.write(b'ok')

	@property
	def url(self):
		return f'http://127.0.0.1:{self.port}/hook?x=1'

	def kinds(self):
		return [json.loads(body)['type'] for _, body in self.got]

	def ids(self):
		return [head['webhook-id'] for head, _ in self.got]

	def close(self):
		self.httpd.shutdown()
		self.httpd.server_close()


class ToldOfFiles:
	"""What a receiver heard of files, delivery by delivery and in their order."""

	def __init__(self, receiver):
		self.receiver = receiver

	def data(self):
		every = [json.loads(body) for _, body in self.receiver.got]
		assert {one['type'] for one in every} <= {'file.changed'}
		return sorted((one['data'] for one in every), key=lambda data: data['n'])

	def changes(self):
		return [f"{change['change']} {change['path']}" for data in self.data() for change in data['changes']]

	def gaps(self):
		return [data['gap'] for data in self.data() if data['gap']]

	def begun(self, n=1):
		wait_for(lambda: sum('the watch began' in gap for gap in self.gaps()) >= n, f'the {n}. watch', 20)


def file_watches(box):
	"""The processes that watch files of a sandbox, on the host."""
	found = []
	for entry in pathlib.Path('/proc').iterdir():
		with contextlib.suppress(OSError):
			if entry.name.isdigit() and (argv := (entry / 'cmdline').read_bytes().split(b'\0')) and b'watch-files' in argv and box.encode() in argv:
				found.append(int(entry.name))
	return found


def from_process(pid, fd):
	libc = ctypes.CDLL(None, use_errno=True)
	pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
	got = libc.syscall(PIDFD_GETFD, pidfd, fd, 0)
	os.close(pidfd)
	assert got >= 0, os.strerror(ctypes.get_errno())
	return got


class Taken:
	"""All that cloche-serve may say to the launcher."""

	def __init__(self, server):
		self.office = socket.socket(fileno=from_process(server.serve_pid(), OFFICE))

	def ask(self, request, **body):
		near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		with near, far:
			near.settimeout(30)
			socket.send_fds(self.office, [json.dumps({'request': request, **body}).encode()], [far.fileno()])
			far.close()
			text, fds, _, _ = socket.recv_fds(near, 1 << 18, 1)
		return json.loads(text), fds

	def supervisor(self, box):
		_, [fd] = self.ask('connect', sandbox=box)
		return socket.socket(fileno=fd)

	def close(self):
		self.office.close()
