# SPDX-License-Identifier: Apache-2.0
"""Previews: a server inside a sandbox, shown at an origin of its own, to whom it may be shown."""
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import socket
import struct
import urllib.parse

import pytest

from harness import wait_for
from serving import Client

INSIDE = (pathlib.Path(__file__).parent / 'preview_inside.py').read_text()
PORT = 8000
COOKIE = 'cloche_preview'
STORES = ['sqlite'] # what asks the database is in test_serve_preview_replicas.py, over both


class Page:
	"""A preview as a browser that is let in sees it, over connections of its own."""
	cookie_name = COOKIE

	def __init__(self, made, cookie=None):
		self.id, self.url, self.cookie = made['id'], made['url'], cookie
		parts = urllib.parse.urlsplit(made['url'])
		self.host, self.port, self.origin = parts.netloc, parts.port, made['url'].rstrip('/')

	def open(self):
		connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=20)
		connection.connect()
		return connection

	def fields(self, headers=None):
		return {'Host': self.host, **({'Cookie': f'{self.cookie_name}={self.cookie}'} if self.cookie else {}), **(headers or {})}

	def ask(self, method, path, body=None, headers=None, over=None, **how):
		"""(status, headers, body)"""
		connection = over or self.open()
		connection.request(method, path, body, self.fields(headers), **how)
		with connection.getresponse() as response:
			got = response.status, response.headers, response.read()
		if not over:
			connection.close()
		return got

	def get(self, path, **headers):
		return self.ask('GET', path, headers={name.replace('_', '-'): value for name, value in headers.items()})

	def status(self, path='/', **headers):
		return self.get(path, **headers)[0]

	def raw(self, text):
		"""What comes back for these very bytes, until the other side ends or breaks it off."""
		got = b''
		with socket.create_connection(('127.0.0.1', self.port), 20) as sock, contextlib.suppress(ConnectionResetError):
			sock.sendall(text.encode())
			while part := sock.recv(65536):
				got += part
		return got

	def head(self, **headers):
		"""The request's head, as the server inside got it."""
		status, _, body = self.get('/head', **headers)
		assert status == 200, body
		return [(name.lower(), value) for name, value in json.loads(body)['fields']]

	def answer(self, text, headers=None):
		"""What becomes of an answer that the server inside gives, as it stands there."""
		return self.ask('GET', '/close/' + text.encode('latin-1').hex(), headers=headers)


def link(client, preview):
	made = client.post(f'/v1/previews/{preview}/token')
	assert made.status == 201, made
	return made.json


def target_of(url):
	parts = urllib.parse.urlsplit(url)
	return parts.path + '?' + parts.query


def cookie_of(headers):
	[line] = headers.get_all('Set-Cookie')
	name, _, rest = line.partition('=')
	assert name == COOKIE
	value, _, attributes = rest.partition('; ')
	assert attributes == 'Path=/; Max-Age=43200; HttpOnly; SameSite=Lax'
	return value


def let_in(client, page):
	status, headers, body = page.get(target_of(link(client, page.id)['url']))
	assert (status, headers['Location'], headers['Referrer-Policy'], headers['Cache-Control'], body) == (303, '/', 'no-referrer', 'no-store', b'')
	page.cookie = cookie_of(headers)
	return page


def make(client, sandbox, visibility='private', port=PORT, **more):
	made = client.post('/v1/previews', {'sandbox': sandbox, 'port': port, 'visibility': visibility, **more})
	assert made.status == 201, made
	return made.json


def serve_inside(client, sandbox, port=PORT):
	made = client.post(f'/v1/sandboxes/{sandbox}/files/create', {'path': '/srv.py', 'content': INSIDE, 'overwrite': True})
	assert made.status in (200, 201), made
	assert client.post(f'/v1/sandboxes/{sandbox}/exec', {'command': f'exec python3 /srv.py {port}', 'detach': True}).status == 202
	listens = f'import socket; socket.create_connection(("127.0.0.1", {port})).close()'
	wait_for(lambda: client.exec(sandbox, f"python3 -c '{listens}' 2>/dev/null")['exit_code'] == 0, 'the server inside', 20)


@pytest.fixture(scope='module')
def box(server):
	made = server.admin.create()
	serve_inside(server.admin, made)
	yield made
	assert server.admin.delete(f'/v1/sandboxes/{made}').status == 200


@pytest.fixture(scope='module')
def public(server, box):
	return Page(make(server.admin, box, 'public'))


@pytest.fixture(scope='module')
def private(server, box):
	return let_in(server.admin, Page(make(server.admin, box)))


# ---- through ----

def test_a_page(public, private):
	for page in (public, private):
		status, headers, body = page.get('/')
		assert (status, body, headers['Content-Type']) == (200, b'<!doctype html><title>inside</title><h1>hello from inside</h1>', 'text/html')
	assert public.host.startswith('pv-') and public.host.endswith(f'.preview.localhost:{public.port}')


def test_what_the_server_inside_sees(private):
	seen = private.head(Origin=private.origin, Referer=private.origin + '/a?b', Cookie=f'a=1; {COOKIE}={private.cookie}; b="2; {COOKIE}=x"; {COOKIE}',
		Authorization='Bearer clo_' + 'x' * 43, X_Forwarded_For='1.2.3.4', X_Forwarded_Host='evil', Forwarded='for=1.2.3.4', X_Real_IP='1.2.3.4', TE='trailers',
		Connection='keep-alive, X-Mine', X_Mine='1', Proxy_Authorization='Basic x', Upgrade='h2c', HTTP2_Settings='x', Accept_Encoding='br', X_Other='kept')
	assert seen == [('host', f'localhost:{PORT}'), ('cookie', 'a=1; b="2'), ('origin', f'http://localhost:{PORT}'), ('referer', f'http://localhost:{PORT}/a?b'),
		('accept-encoding', 'br'), ('x-other', 'kept'), ('x-forwarded-for', '127.0.0.1'), ('x-cloche-origin', private.origin)]
	assert ('authorization', 'Bearer its-own') in private.head(Authorization='Bearer its-own')


def test_bodies_both_ways(public):
	data = os.urandom(5 << 20)
	want = b'%d %s' % (len(data), hashlib.sha256(data).hexdigest().encode())
	assert public.ask('POST', '/sum', data)[2] == want
	assert public.ask('PUT', '/sum', iter([data[:70000], data[70000:]]), encode_chunked=True, headers={'Transfer-Encoding': 'chunked'})[2] == want
	for path in ('/big/5000001', '/big/5000001/chunked'):
		status, headers, body = public.get(path)
		assert status == 200 and len(body) == 5000001 and body[-1] == 5000000 % 256
		assert ('Content-Length' in headers) == ('chunked' not in path) and 'X-Trailer' not in headers
	assert public.raw(f'GET /big/300000/chunked HTTP/1.0\r\nHost: {public.host}\r\n\r\n').partition(b'\r\n\r\n')[2] == (bytes(range(256)) * 1172)[:300000]


def test_one_connection_for_many_requests(server, public):
	with contextlib.closing(public.open()) as over:
		for n in range(3):
			assert public.ask('GET', '/', over=over)[0] == 200
			status, headers, body = public.ask('HEAD', '/', over=over)
			assert (status, headers['Content-Length'], body) == (200, '62', b'')
			assert public.ask('POST', '/sum', b'x' * n, over=over)[2].startswith(b'%d ' % n)


def test_pipelined(public):
	ask = f'GET /head HTTP/1.1\r\nHost: {public.host}\r\n'
	assert public.raw(f'{ask}\r\n' * 4 + f'{ask}Connection: close\r\n\r\n').count(b'HTTP/1.1 200 OK') == 5


def test_a_connection_that_the_server_closed(public):
	"""It says nothing of that: the next request finds out, and is asked again."""
	with contextlib.closing(public.open()) as over:
		for _ in range(3):
			status, _, body = public.ask('GET', '/close/' + b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'.hex(), over=over)
			assert (status, body) == (200, b'ok')


def test_events_come_at_once(public):
	with contextlib.closing(public.open()) as over:
		over.request('GET', '/events', headers=public.fields())
		response = over.getresponse()
		assert response.headers['Content-Type'] == 'text/event-stream' and response.readline() == b'data: one\n'
		assert public.get('/go')[2] == b'gone'
		assert response.read() == b'\ndata: two\n\n'


def test_informational_answers(public):
	first, _, rest = public.raw(f'GET /hints HTTP/1.1\r\nHost: {public.host}\r\nConnection: close\r\n\r\n').partition(b'\r\n\r\n')
	assert first == b'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload' and rest.startswith(b'HTTP/1.1 200 OK\r\n') and rest.endswith(b'\r\n\r\nafter')


def frame(op, data):
	mask, n = os.urandom(4), len(data)
	size = bytes([128 | n]) if n < 126 else b'\xfe' + struct.pack('>H', n) if n < 65536 else b'\xff' + struct.pack('>Q', n)
	return bytes([128 | op]) + size + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(data))


class WebSocket:
	def __init__(self, page, **headers):
		self.sock = socket.create_connection(('127.0.0.1', page.port), 20)
		fields = page.fields({'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', **headers})
		self.sock.sendall(('GET /ws HTTP/1.1\r\n' + ''.join(f'{name}: {value}\r\n' for name, value in fields.items()) + '\r\n').encode())
		self.file = self.sock.makefile('rb')
		self.status = int(self.file.readline().split()[1])
		self.fields = [line for line in iter(self.file.readline, b'\r\n')]

	def send(self, op, data):
		self.sock.sendall(frame(op, data))

	def take(self):
		op, n = self.file.read(2)
		n = n if n < 126 else int.from_bytes(self.file.read(2 if n == 126 else 8), 'big')
		return op & 15, self.file.read(n)

	def ended(self):
		"""Whether the other side has ended it, within seconds."""
		self.sock.settimeout(6)
		try:
			return self.file.read(1) == b''
		except ConnectionResetError:
			return True

	def close(self):
		self.file.close()
		self.sock.close()


def test_websocket(private):
	with contextlib.closing(WebSocket(private, Origin=private.origin)) as ws:
		assert ws.status == 101 and b'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n' in ws.fields
		assert not [line for line in ws.fields if b'cookie' in line.lower()]
		big = os.urandom(70000)
		for op, data in ((1, b'hello'), (2, big), (2, os.urandom(300000)), (1, b'')):
			ws.send(op, data)
			assert ws.take() == (op, data)
		ws.send(9, b'ping')
		assert ws.take() == (10, b'ping')
		ws.send(8, struct.pack('>H', 1000))
		assert ws.take() == (8, struct.pack('>H', 1000)) and ws.ended()


def test_the_record_tells_who_came(server, box, public):
	before = len([one for one in server.admin.pages(f'/v1/sandboxes/{box}/trace/events', 1000) if one['kind'] == 'net.accept'])
	with contextlib.closing(public.open()) as over:
		assert public.ask('GET', '/', over=over)[0] == 200
		name = '{}:{}'.format(*over.sock.getsockname())

	def told():
		return [one for one in server.admin.pages(f'/v1/sandboxes/{box}/trace/events', 1000) if one.get('from') == name]
	accept, flow = wait_for(lambda: told() if len(told()) == 2 else None, 'accept and flow')
	assert (accept['kind'], accept['port'], accept['address'], accept.get('exec')) == ('net.accept', PORT, '127.0.0.1', None) and before > 0
	assert (flow['kind'], flow['direction'], flow['flow'], flow.get('error')) == ('net.flow', 'in', accept['flow'], None) and flow['bytes_out'] > 62
	assert server.admin.get(f'/v1/sandboxes/{box}/trace/network').json['items'] == [] # nothing that the agent reached


# ---- what there is ----

def acts(client, act):
	return [(line['object'], line['sandbox'], line['detail'], line['actor'].partition(':')[0]) for line in client.pages('/v1/audit', 1000) if line['act'] == act]


def test_life_of_a_preview(server, box):
	made = make(server.admin, box, name='the shop', port=8123)
	assert {**made, 'id': '', 'url': '', 'created_at': ''} == {'id': '', 'sandbox': box, 'port': 8123, 'visibility': 'private', 'name': 'the shop', 'url': '', 'created_at': ''}
	at = '/v1/previews/' + made['id']
	assert server.admin.get(at).json == made and made in list(server.admin.pages('/v1/previews', 1))
	changed = server.admin.put(at + '/visibility', {'visibility': 'public'})
	assert changed.status == 200 and changed.json == {**made, 'visibility': 'public'} == server.admin.get(at).json
	assert server.admin.put(at + '/visibility', {'visibility': 'public'}).json == changed.json
	assert server.admin.delete(at).status == 204
	for gone in (server.admin.get(at), server.admin.delete(at), server.admin.put(at + '/visibility', {'visibility': 'private'}), server.admin.post(at + '/token')):
		assert (gone.status, gone.json['detail']) == (404, f"there is no preview '{made['id']}'")
	assert made['id'] not in [one['id'] for one in server.admin.pages('/v1/previews', 100)]
	assert [acts(server.admin, 'preview.' + act)[-1] for act in ('created', 'visibility', 'removed')] == [(made['id'], box, 'port 8123, ' + seen, 'key')
		for seen in ('private', 'public', 'public')]
	assert len([one for one in acts(server.admin, 'preview.visibility') if one[0] == made['id']]) == 1
	key = {'Idempotency-Key': 'once-' + box}
	twice = [server.admin.post('/v1/previews', {'sandbox': box, 'port': 8123, 'visibility': 'private'}, headers=key) for _ in range(2)]
	assert twice[0].json == twice[1].json and server.admin.delete('/v1/previews/' + twice[0].json['id']).status == 204


BAD = [{'port': 0}, {'port': 65536}, {'port': '80'}, {'port': None}, {'port': 1.5}, {'visibility': None}, {'visibility': 'secret'}, {'visibility': 1}, {'name': ''}, {'name': 'x' * 101},
	{'name': 'a\0b'}, {'sandbox': None}, {'sandbox': 'x'}, {'sandbox': 5}, {'host': 'x'}, {'id': 'pv_0000000000000000'}]


@pytest.mark.parametrize('change', BAD)
def test_bad_previews(server, box, change):
	before = list(server.admin.pages('/v1/previews', 100))
	refused = server.admin.post('/v1/previews', {'sandbox': box, 'port': 80, 'visibility': 'private', **change})
	assert (refused.status, refused.json['code']) == (400, 'invalid') and refused.json['detail'], refused
	assert list(server.admin.pages('/v1/previews', 100)) == before


def test_who_may_what(server, box):
	member, auditor, other = server.client('member'), server.client('auditor'), server.client('admin', account='elsewhere')
	mine = make(member, box)
	at = '/v1/previews/' + mine['id']
	for refused in (member.post('/v1/previews', {'sandbox': box, 'port': 80, 'visibility': 'public'}), member.put(at + '/visibility', {'visibility': 'public'}),
			auditor.post('/v1/previews', {'sandbox': box, 'port': 80, 'visibility': 'private'}), auditor.delete(at), auditor.post(at + '/token'),
			auditor.put(at + '/visibility', {'visibility': 'private'})):
		assert (refused.status, refused.json['code']) == (403, 'forbidden'), refused
	assert auditor.get(at).json == mine and member.put(at + '/visibility', {'visibility': 'private'}).status == 200
	shown = make(server.admin, box, 'public')
	assert member.put(f'/v1/previews/{shown["id"]}/visibility', {'visibility': 'private'}).status == 200
	assert other.post('/v1/previews', {'sandbox': box, 'port': 80, 'visibility': 'private'}).status == other.get(at).status == other.post(at + '/token').status == 404
	assert other.delete(at).status == other.put(at + '/visibility', {'visibility': 'public'}).status == 404 and other.get('/v1/previews').json['items'] == []
	assert let_in(member, Page(mine)).status() == 200
	for one in (mine, shown):
		assert member.delete('/v1/previews/' + one['id']).status == 204


def test_a_token_needs_a_key(server, private):
	"""A link is good as long as the key that asked for it stands; the Unix socket knows none."""
	with socket.socket(socket.AF_UNIX) as sock:
		sock.connect(server.options[server.options.index('--socket') + 1])
		sock.sendall(f'POST /v1/previews/{private.id}/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'.encode())
		got = b''.join(iter(lambda: sock.recv(65536), b''))
	assert got.startswith(b'HTTP/1.1 409 ') and b'"needs_key"' in got


def test_there_is_a_limit(server):
	many = server.client('admin', account='many')
	box = many.create(network={'net': 'open'})
	made = [make(many, box, port=n + 1)['id'] for n in range(100)]
	refused = many.post('/v1/previews', {'sandbox': box, 'port': 80, 'visibility': 'private'})
	assert (refused.status, refused.json['code']) == (409, 'too_many')
	assert [one['id'] for one in many.pages('/v1/previews', 30)] == made
	assert many.delete(f'/v1/sandboxes/{box}').status == 200
	assert many.get('/v1/previews').json['items'] == []
	assert sorted(acts(many, 'preview.removed')) == [(one, box, 'its sandbox ended', 'server') for one in made]


# ---- what becomes of the sandbox ----

def test_nothing_listens(server, box):
	page = let_in(server.admin, Page(make(server.admin, box, port=8099)))
	status, headers, body = page.get('/')
	assert status == 502 and b'Nothing listens at port 8099' in body and 'Refresh' not in headers and b'<script' not in body and 'Set-Cookie' not in headers


def test_states_of_the_sandbox(server):
	admin = server.admin
	box = admin.create()
	at = f'/v1/sandboxes/{box}'
	serve_inside(admin, box)
	page, kept = let_in(admin, Page(make(admin, box))), Page(make(admin, box)).open()
	assert page.ask('GET', '/', over=kept)[0] == 200
	for act, status, words in (('pause', 503, b'paused'), ('wake', 200, b'hello'), ('suspend', 503, b'suspended'), ('resume', 502, b'Nothing listens')):
		assert admin.post(at + '/' + act).status == 200
		for over in (None, kept):
			got = page.ask('GET', '/', over=over)
			assert got[0] == status and words in got[2], (act, over, got)
	serve_inside(admin, box)
	assert page.status() == 200
	assert admin.post(at + '/stop').status == 200
	assert page.get('/')[0] == 404 and admin.get('/v1/previews/' + page.id).status == 404
	assert acts(admin, 'preview.removed')[-1] == (page.id, box, 'its sandbox ended', 'server') or acts(admin, 'preview.removed')[-2][0] == page.id
	refused = admin.post('/v1/previews', {'sandbox': box, 'port': 80, 'visibility': 'private'})
	assert (refused.status, refused.json['code']) == (409, 'wrong_state')
	assert admin.delete(at).status == 200
	kept.close()


def test_a_sandbox_without_a_network(server):
	box = server.admin.create(network={'net': 'none'})
	refused = server.admin.post('/v1/previews', {'sandbox': box, 'port': 80, 'visibility': 'private'})
	assert (refused.status, refused.json['code']) == (409, 'no_network') and 'no network' in refused.json['detail']
	assert server.admin.delete(f'/v1/sandboxes/{box}').status == 200


# ---- cut off ----

def test_removed_is_cut_off(server, box):
	page = let_in(server.admin, Page(make(server.admin, box)))
	with contextlib.closing(WebSocket(page)) as ws, contextlib.closing(page.open()) as idle:
		assert ws.status == 101 and page.ask('GET', '/', over=idle)[0] == 200
		assert server.admin.delete('/v1/previews/' + page.id).status == 204
		assert page.status() == 404
		assert ws.ended()
		idle.sock.settimeout(6)
		assert idle.sock.recv(1) == b''


@pytest.mark.parametrize('seen', ['private', 'public'])
def test_shown_to_others_is_cut_off(server, box, seen):
	page = Page(make(server.admin, box, seen))
	if seen == 'private':
		let_in(server.admin, page)
	with contextlib.closing(WebSocket(page)) as ws:
		assert ws.status == 101
		now = 'public' if seen == 'private' else 'private'
		assert server.admin.put(f'/v1/previews/{page.id}/visibility', {'visibility': now}).status == 200
		assert ws.ended()
	assert Page({'id': page.id, 'url': page.url}).status() == (200 if now == 'public' else 403)
	assert server.admin.put(f'/v1/previews/{page.id}/visibility', {'visibility': 'private'}).status == 200
	assert page.status() == 403 and let_in(server.admin, page).status() == 200 # the cookie of before is none


@pytest.mark.parametrize('revoked', ['never', 'before', 'while another looks'])
def test_a_public_one_is_cut_off_from_who_has_a_cookie_too(server, box, revoked):
	"""The cookie is of when it was private, its key stands or not."""
	guest = server.client('member')
	page, hidden = (let_in(guest, Page(make(server.admin, box))) for _ in range(2))
	assert server.admin.put(f'/v1/previews/{page.id}/visibility', {'visibility': 'public'}).status == 200
	with contextlib.ExitStack() as looking:
		seen = looking.enter_context(contextlib.closing(WebSocket(hidden)))
		if revoked == 'while another looks':
			assert looking.enter_context(contextlib.closing(WebSocket(page))).status == 101
		if revoked != 'never':
			[key] = [one['id'] for one in server.admin.pages('/v1/api-keys', 1000) if guest.key.startswith(one['prefix'])]
			assert server.admin.delete('/v1/api-keys/' + key).status == 204
			assert seen.ended() # so the server has looked, at both at once
		with contextlib.closing(WebSocket(page)) as ws:
			assert ws.status == 101
			assert server.admin.put(f'/v1/previews/{page.id}/visibility', {'visibility': 'private'}).status == 200
			assert ws.ended()


def test_the_key_of_the_link_was_revoked(server, box):
	guest = server.client('member')
	page = let_in(guest, Page(make(server.admin, box)))
	late = link(guest, page.id)
	other = let_in(server.admin, Page({'id': page.id, 'url': page.url}))
	with contextlib.closing(WebSocket(page)) as ws, contextlib.closing(WebSocket(other)) as stays:
		assert ws.status == stays.status == 101
		[key] = [one['id'] for one in server.admin.pages('/v1/api-keys', 1000) if guest.key.startswith(one['prefix'])]
		assert server.admin.delete('/v1/api-keys/' + key).status == 204
		assert ws.ended()
		stays.send(1, b'still')
		assert stays.take() == (1, b'still')
	assert page.status() == 403 and page.status(target_of(late['url'])) == 403 and other.status() == 200


# ---- bounds ----

def memory(server):
	return int(pathlib.Path(f'/proc/{server.serve_pid()}/statm').read_text().split()[1]) * 4096


def test_a_browser_that_takes_nothing(server, public):
	"""100 MiB that nobody takes wait inside, not in the server's memory."""
	assert public.status() == 200
	before, socks = memory(server), []
	for _ in range(20):
		socks.append(socket.create_connection(('127.0.0.1', public.port), 20))
		socks[-1].sendall(b'GET /big/104857600 HTTP/1.1\r\nHost: %s\r\n\r\n' % public.host.encode())
	for sock in socks:
		assert sock.recv(1) == b'H'
	assert public.status() == 200
	grown = memory(server) - before
	for sock in socks:
		sock.close()
	assert grown < 20 * (2 << 20), grown


def test_a_server_that_takes_nothing(server, public):
	"""Of 100 MiB that nobody reads inside, the browser keeps most."""
	before, socks = memory(server), []
	for _ in range(5):
		sock = socket.create_connection(('127.0.0.1', public.port), 20)
		sock.sendall(b'POST /slow/20 HTTP/1.1\r\nHost: %s\r\nContent-Length: 104857600\r\n\r\n' % public.host.encode())
		socks.append(sock)
		sock.settimeout(0.1)
		with pytest.raises(TimeoutError):
			sock.sendall(bytes(104857600))
	grown = memory(server) - before
	for sock in socks:
		sock.close()
	assert grown < 5 * (2 << 20) and public.status() == 200, grown


def test_too_many_connections(server, box):
	page = Page(make(server.admin, box, 'public'))
	socks = []
	try:
		for _ in range(256):
			socks.append(socket.create_connection(('127.0.0.1', page.port), 20))
			socks[-1].sendall(b'GET /head HTTP/1.1\r\nHost: %s\r\n\r\n' % page.host.encode())
		assert all(sock.recv(12) == b'HTTP/1.1 200' for sock in socks)
		status, _, body = page.get('/')
		assert status == 503 and b'Too many at once' in body
	finally:
		for sock in socks:
			sock.close()
	wait_for(lambda: page.status() == 200, 'room')


# ---- whom it lets in ----

def test_a_link_is_good_once(server, private):
	made = link(server.admin, private.id)
	assert len(made['token']) == 64 and made['url'] == f'{private.origin}/.cloche/open?token={made["token"]}'
	stranger = Page({'id': private.id, 'url': private.url})
	assert stranger.status() == 403
	head = stranger.ask('HEAD', target_of(made['url']))
	assert (head[0], head[1]['Allow']) == (405, 'GET') and stranger.ask('POST', target_of(made['url']))[0] == 405
	assert stranger.status(target_of(made['url'])) == 303
	status, headers, body = stranger.get(target_of(made['url']))
	assert status == 403 and b'good once' in body and not headers.get_all('Set-Cookie')
	files = [path for path in pathlib.Path(server.cloche.cwd).rglob('*') if path.is_file()]
	assert len(files) > 10 and not [path for path in files if made['token'].encode() in path.read_bytes()]
	for wrong in ('', made['token'][:-1], made['token'] + '0', made['token'].upper(), '0' * 64, '%30' + made['token'][1:]):
		assert stranger.status('/.cloche/open?token=' + wrong) == 403
	assert stranger.status('/.cloche/open') == 403 and stranger.status(target_of(link(server.admin, private.id)['url']) + '&x=1') == 403


def test_a_token_opens_nothing_else(server, private, box):
	made = link(server.admin, private.id)
	assert Client(server, made['token']).get('/v1/previews').status == 401
	other = Page(make(server.admin, box))
	assert other.status(target_of(made['url'])) == 403
	assert Page({'id': private.id, 'url': private.url}).status(target_of(made['url'])) == 303 # and was not spent by that


def test_ours_is_not_the_agents(private):
	for path in ('/.cloche', '/.cloche/', '/.cloche/x', '/.cloche/open/', '/.cloche/open/x?token=' + '0' * 64, '/.cloche//open'):
		status, _, body = private.get(path)
		assert status == 404 and b'hello from inside' not in body and b"control plane's" in body, path


def test_a_cookie_is_good_for_its_own_preview_alone(server, private, box):
	other = Page(make(server.admin, box), private.cookie)
	assert other.status() == 403 and private.status() == 200
	as_private = Page({'id': other.id, 'url': other.url})
	assert as_private.ask('GET', '/', headers={'Host': private.host, 'Cookie': f'{COOKIE}={let_in(server.admin, other).cookie}'})[0] == 403
	for wrong in ('', 'x', private.cookie[:-4], private.cookie[:20] + 'A' + private.cookie[21:], private.cookie + 'AAAA'):
		assert Page({'id': private.id, 'url': private.url}, wrong).status() == 403
	# One that a page put beside ours by a script hides nothing, however many there are before it, up to some.
	junk = '; '.join(f'{COOKIE}=junk{n}' for n in range(7))
	assert Page({'id': private.id, 'url': private.url}).status(Cookie=f'{junk}; {COOKIE}={private.cookie}') == 200


HOSTS = ['localhost', '127.0.0.1', 'preview.localhost', 'x.preview.localhost', 'pv-0000000000000000.preview.localhost', 'pv-000000000000000.preview.localhost',
	'pv_0000000000000000.preview.localhost', 'a.pv-0000000000000000.preview.localhost', 'pv-0000000000000000.preview.localhost.', 'evil.example']


@pytest.mark.parametrize('host', HOSTS)
def test_hosts_of_no_preview(private, host):
	status, headers, body = private.get('/', Host=host)
	assert status == 404 and b'There is no such preview' in body and "default-src 'none'" in headers['Content-Security-Policy']
	assert private.get('/v1/sandboxes', Host=host)[0] == 404


def test_the_api_is_not_there_nor_previews_at_the_api(server, private):
	assert private.get('/v1/sandboxes', Authorization=f'Bearer {server.key}')[2].startswith(b'<!doctype html><title>inside')
	assert ('authorization', f'Bearer {server.key}') not in private.head(Authorization=f'Bearer {server.key}')
	connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=20)
	connection.request('GET', '/', headers={'Host': private.host, 'Cookie': f'{COOKIE}={private.cookie}'})
	assert connection.getresponse().status in (404, 421)
	connection.close()


def test_pages_of_others(private, public):
	"""A page of another preview is of the same site, so a browser sends our cookie along: it is the origin that counts."""
	foreign = [{'Origin': 'http://evil.example'}, {'Origin': 'null'}, {'Origin': public.origin}, {'Sec_Fetch_Site': 'same-site'}, {'Sec_Fetch_Site': 'cross-site'},
		{'Origin': private.origin + '.evil.example'}, {'Origin': private.origin[:-1]}, {'Sec_Fetch_Site': 'cross-site', 'Sec_Fetch_Mode': 'navigate', 'Sec_Fetch_Dest': 'iframe'},
		{'Sec_Fetch_Site': 'same-site', 'Sec_Fetch_Mode': 'no-cors', 'Sec_Fetch_Dest': 'image'}]
	for headers in foreign:
		assert private.status('/', **headers) == 403, headers
		with contextlib.closing(WebSocket(private, **{name.replace('_', '-'): value for name, value in headers.items()})) as ws:
			assert ws.status == 403, headers
		assert public.status('/', **headers) == 200, headers
	home = [{}, {'Origin': private.origin}, {'Origin': private.origin.upper().replace('HTTP', 'http')}, {'Sec_Fetch_Site': 'same-origin'}, {'Sec_Fetch_Site': 'none'},
		{'Sec_Fetch_Site': 'cross-site', 'Sec_Fetch_Mode': 'navigate', 'Sec_Fetch_Dest': 'document'}]
	for headers in home:
		assert private.status('/', **headers) == 200, headers
	post = private.ask('POST', '/sum', b'x', {'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document'})
	assert post[0] == 403
	for page in (private, public):
		assert page.status('/sw.js', Service_Worker='script') == 403


# ---- an agent that tries ----

ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{}\r\n\r\nok'
COOKIES = [(f'{COOKIE}=evil', None), (f'{COOKIE}=evil; Path=/; Domain=preview.localhost', None), (f' {COOKIE} =evil', None), (f'\t{COOKIE}\t= evil', None), (f'{COOKIE.upper()}=evil', None),
	(f'__Host-{COOKIE}=evil; Secure; Path=/', None), (f'__host-{COOKIE}=evil', None), (f'={COOKIE}=evil', None), (COOKIE, None), (' =evil', None), ('nameless', None), ('', None),
	('own=1', 'own=1'), ('own=1; Domain=preview.localhost; Path=/', 'own=1; Path=/'), ('own=1; domain = .preview.localhost;HttpOnly', 'own=1;HttpOnly'),
	('own=1;Domain', 'own=1'), ('own=1; DOMAIN=a; Domain=b; Secure', 'own=1; Secure'), (f'own={COOKIE}=x', f'own={COOKIE}=x'), (f'own=1; {COOKIE}=x', f'own=1; {COOKIE}=x')]


@pytest.mark.parametrize(('line', 'want'), COOKIES)
def test_cookies_that_it_sets(public, line, want):
	status, headers, body = public.answer(ANSWER.format('Set-Cookie: ' + line + '\r\nSet-Cookie: after=1'))
	assert (status, body, headers.get_all('Set-Cookie')) == (200, b'ok', [want, 'after=1'] if want is not None else ['after=1'])


def test_fields_that_reach_further(public):
	status, headers, _ = public.answer(ANSWER.format('Clear-Site-Data: "cookies"\r\nAlt-Svc: h3=":1"\r\nNEL: {}\r\nReport-To: {}\r\nKeep-Alive: 5\r\nProxy-Authenticate: Basic\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Own: 1'))
	assert status == 200 and [name for name in headers if name not in ('Content-Length',)] == ['X-Own']


LOCATIONS = [(f'http://localhost:{PORT}/a?b', '/a?b'), (f'http://127.0.0.1:{PORT}', '/'), (f'https://[::1]:{PORT}/x', '/x'), (f'http://localhost:{PORT}//evil.example/', '/.//evil.example/'),
	(f'http://localhost:{PORT}?q', '/?q'), ('/a', '/a'), ('http://localhost:8001/', 'http://localhost:8001/'), ('http://localhost/', 'http://localhost/'), ('https://example.org/', 'https://example.org/')]


@pytest.mark.parametrize(('line', 'want'), LOCATIONS)
def test_where_it_leads(public, line, want):
	assert public.answer(f'HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {line}\r\n\r\n')[1]['Location'] == want


BAD_ANSWERS = ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
	'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', 'nonsense', 'HTTP/1.1 200 OK\r\nX : 1\r\nContent-Length: 0\r\n\r\n', 'HTTP/2 200 OK\r\n\r\n', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
	'HTTP/1.1 200 OK\r\nX: ' + 'x' * 70000 + '\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n' * 40, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', '']


def test_answers_that_are_none(public):
	for text in BAD_ANSWERS:
		path = '/close/' + text.encode().hex() if len(text) < 20000 else '/close/' + text[:20000].encode().hex()
		status, headers, body = public.ask('GET', path)
		assert status == 502 and headers['Content-Type'] == 'text/html; charset=utf-8' and b'server inside' in body, (text[:80], status, body)
		assert 'Refresh' not in headers and b'<script' not in body


def test_what_is_cut_is_seen(public):
	def body_of(way, text):
		ask = f'GET /{way}/{text.encode().hex()} HTTP/1.1\r\nHost: {public.host}\r\nConnection: close\r\n\r\n'
		return public.raw(ask).partition(b'\r\n\r\n')[2]
	assert body_of('close', 'HTTP/1.1 200 OK\r\n\r\nto the end') == b'a\r\nto the end\r\n0\r\n\r\n'
	assert body_of('cut', 'HTTP/1.1 200 OK\r\n\r\nto the end') == b'a\r\nto the end\r\n'
	assert body_of('close', 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nshort') == b'short'
	assert body_of('close', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n') == b'5\r\nshort\r\n'


def test_what_follows_an_answer_is_nobodys(public):
	"""Two answers to one request: the second is not the next request's."""
	two = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison'
	with contextlib.closing(public.open()) as over:
		assert public.ask('GET', '/raw/' + two.encode().hex(), over=over)[2] == b'ok'
		assert public.ask('GET', '/', over=over)[2].endswith(b'hello from inside</h1>')


# ---- requests that are none ----

BAD_REQUESTS = ['GET / HTTP/1.1\r\nHost: {h}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 'POST / HTTP/1.1\r\nHost: {h}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx',
	'GET / HTTP/1.1\nHost: {h}\n\n', 'GET / HTTP/1.1\r\nHost: {h}\r\nHost: {h}\r\n\r\n', 'GET / HTTP/1.1\r\nHost: {h}\r\nX : y\r\n\r\n', 'GET / HTTP/1.1\r\nHost: {h}\r\n X: folded\r\n\r\n',
	'GET http://{h} HTTP/1.1\r\nHost: {h}\r\n\r\n', 'GET http://other/ HTTP/1.1\r\nHost: {h}\r\n\r\n', 'CONNECT {h} HTTP/1.1\r\nHost: {h}\r\n\r\n', 'OPTIONS * HTTP/1.1\r\nHost: {h}\r\n\r\n',
	'TRACE / HTTP/1.1\r\nHost: {h}\r\n\r\n', 'POST /sum HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n', 'POST /sum HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n',
	'POST /sum HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n', 'nonsense\r\n\r\n']


@pytest.mark.parametrize('text', BAD_REQUESTS)
def test_requests_that_are_none(public, text):
	behind = f'GET /head HTTP/1.1\r\nHost: {public.host}\r\nX-Smuggled: 1\r\nConnection: close\r\n\r\n'
	got = public.raw(text.format(h=public.host) + behind)
	first, _, second = got.partition(b'</html>')
	assert first.startswith((b'HTTP/1.1 400 ', b'HTTP/1.1 501 ')), got
	# What follows is the next request, or nobody's: never one that the server inside found in a body.
	assert second == b'\n' or text.startswith(('GET http', 'CONNECT', 'OPTIONS', 'TRACE')) and second.startswith(b'\nHTTP/1.1 200 OK'), got


def test_an_absolute_request_is_as_a_relative_one(public):
	got = public.raw(f'GET http://{public.host}/head?x HTTP/1.1\r\nHost: {public.host}\r\nConnection: close\r\n\r\n')
	assert json.loads(got.partition(b'\r\n\r\n')[2])['line'] == 'GET /head?x HTTP/1.1'
