# SPDX-License-Identifier: Apache-2.0
"""A site for everyday programs, over HTTP and HTTPS: git repositories, a registry for npm and one for pip, events that
come one by one, and answers that go wrong. Each exchange is a line of LOGS/site.log, written when it is over.

usage: site.py ADDRESS HTTP-PORT HTTPS-PORT ROOT LOGS
ROOT holds files (served as they are), git/NAME.git, npm/NAME.json, pip/NAME.html."""
import hashlib
import http.server
import json
import os
import pathlib
import ssl
import subprocess
import sys
import threading
import time

address, root, logs = sys.argv[1], pathlib.Path(sys.argv[4]), pathlib.Path(sys.argv[5])
lock = threading.Lock()
KINDS = {'.html': 'text/html', '.json': 'application/json'}


class Site(http.server.BaseHTTPRequestHandler):
	protocol_version = 'HTTP/1.1'
	disable_nagle_algorithm = True

	def setup(self):
		super().setup()
		self.tls = isinstance(self.connection, ssl.SSLSocket)

	def handle(self):
		try:
			super().handle()
		except OSError:
			pass # whoever asked is gone

	def log_message(self, *_):
		pass

	def do_GET(self):
		self.path_only, _, self.query = self.path.partition('?')
		self.n_in, self.digest, self.status, self.n_out = 0, hashlib.sha256(), None, 0
		name = self.path_only.strip('/').split('/')[0]
		try:
			getattr(self, f'do_{name}', self.do_file)()
		finally:
			self.note()

	do_POST = do_PUT = do_HEAD = do_DELETE = do_PATCH = do_OPTIONS = do_GET

	def note(self):
		what = dict(tls=self.tls, method=self.command, path=self.path, host=self.headers.get('host'), status=self.status,
			n=self.n_in, sha=self.digest.hexdigest(), sent=self.n_out, peer=self.client_address[1],
			headers={name.lower(): value for name, value in self.headers.items()}, t=time.time())
		with lock, open(logs / 'site.log', 'a') as file:
			file.write(json.dumps(what) + '\n')

	def body(self):
		"""The request's body, in pieces."""
		if 'chunked' in self.headers.get('transfer-encoding', ''):
			while n := int(self.rfile.readline().split(b';')[0], 16):
				yield self.seen(self.rfile.read(n))
				self.rfile.readline()
			while self.rfile.readline().strip():
				pass
			return
		left = int(self.headers.get('content-length', 0))
		while left:
			piece = self.rfile.read(min(left, 65536))
			if not piece:
				raise ConnectionError('the body ended early')
			left -= len(piece)
			yield self.seen(piece)

	def seen(self, piece):
		self.n_in += len(piece)
		self.digest.update(piece)
		return piece

	def head(self, status, **fields):
		self.status = status
		self.send_response(status, 'X')
		for name, value in fields.items():
			self.send_header(name.replace('_', '-'), value)
		self.end_headers()
		self.wfile.flush()

	def send(self, data):
		self.wfile.write(data)
		self.wfile.flush()
		self.n_out += len(data)

	def answer(self, status, data, **fields):
		self.head(status, Content_Length=len(data), **fields)
		if self.command != 'HEAD':
			self.send(data)

	def do_file(self):
		for _ in self.body():
			pass
		path = root / self.path_only.strip('/')
		options = [path, path.with_name(path.name + '.json'), path.with_name(path.name + '.html')]
		found = [option for option in options if option.is_file()]
		if not found:
			self.answer(404, b'no such file\n')
			return
		self.answer(200, found[0].read_bytes(), Content_Type=KINDS.get(found[0].suffix, 'application/octet-stream'))

	def do_echo(self):
		for _ in self.body():
			pass
		self.answer(200, json.dumps({'n': self.n_in, 'sha': self.digest.hexdigest()}).encode() + b'\n')

	def do_bytes(self):
		"""/bytes/N"""
		left = int(self.path_only.split('/')[2])
		self.head(200, Content_Length=left)
		block = b'z' * 65536
		while left:
			self.send(block[:left])
			left -= min(left, len(block))

	def chunk(self, data):
		self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
		self.wfile.flush()
		self.n_out += len(data)

	def do_events(self):
		"""/events/N: the next is sent when /next was asked for, so that whoever waits for the end waits for ever."""
		self.head(200, Content_Type='text/event-stream', Transfer_Encoding='chunked')
		for i in range(int(self.path_only.split('/')[2])):
			self.chunk(b'data: %d\n\n' % i)
			if not turns.acquire(timeout=10):
				break
		self.chunk(b'')

	def do_next(self):
		turns.release()
		self.answer(200, b'')

	def do_early(self):
		"""Says more than it sends."""
		self.head(200, Content_Length=1000)
		self.send(b'x' * 100)
		self.close_connection = True

	def do_slow(self):
		"""/slow/SECONDS"""
		time.sleep(float(self.path_only.split('/')[2]))
		self.answer(200, b'at last\n')

	def do_git(self):
		body = b''.join(self.body())
		env = {'PATH': os.environ['PATH'], 'GIT_PROJECT_ROOT': str(root / 'git'), 'GIT_HTTP_EXPORT_ALL': '1', 'HOME': '/',
			'PATH_INFO': self.path_only.removeprefix('/git'), 'QUERY_STRING': self.query, 'REQUEST_METHOD': self.command,
			'CONTENT_TYPE': self.headers.get('content-type', ''), 'CONTENT_LENGTH': str(len(body)), 'REMOTE_USER': 'tester',
			'REMOTE_ADDR': self.client_address[0], 'HTTP_CONTENT_ENCODING': self.headers.get('content-encoding', ''),
			'HTTP_GIT_PROTOCOL': self.headers.get('git-protocol', ''), 'GIT_CONFIG_COUNT': '1',
			'GIT_CONFIG_KEY_0': 'safe.directory', 'GIT_CONFIG_VALUE_0': '*'}
		done = subprocess.run(['git', 'http-backend'], input=body, stdout=subprocess.PIPE, env=env, check=True)
		head, _, data = done.stdout.partition(b'\r\n\r\n')
		fields = dict(line.split(': ', 1) for line in head.decode().split('\r\n'))
		status = int(fields.pop('Status', '200').split()[0])
		self.head(status, Transfer_Encoding='chunked', **fields)
		for at in range(0, len(data), 65536):
			self.chunk(data[at:at + 65536])
		self.chunk(b'')


class Server(http.server.ThreadingHTTPServer):
	daemon_threads = True
	request_queue_size = 256

	def handle_error(self, *_):
		pass


class Secure(Server):
	"""The handshake in the thread of its connection."""

	def finish_request(self, request, client):
		context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
		context.load_cert_chain(logs / 'leaf.pem', logs / 'leaf.key')
		super().finish_request(context.wrap_socket(request, server_side=True), client)


turns = threading.Semaphore(0)
for port, kind in ((int(sys.argv[2]), Server), (int(sys.argv[3]), Secure)):
	threading.Thread(target=kind((address, port), Site).serve_forever, daemon=True).start()
print('ready', flush=True)
os.read(0, 1) # whoever started this is gone
