# SPDX-License-Identifier: Apache-2.0
"""What others try at the control plane's door: members that want more, accounts that want others' things, bytes that are no
HTTP, web pages of somebody else, and more of everything than there is room for."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import socket

import pytest

from harness import wait_for
from serving import Client, Reply, Taken

STORES = ['sqlite'] # nothing here asks the database but what test_serve.py does; CLOCHE_TEST_STORES=all runs both
CONFIG = {'names': ['cloche.example.org', 'https://front.example.org']}
MIB = 1 << 20


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


@pytest.fixture(scope='module')
def box(server):
	made = server.admin.create()
	yield made
	assert server.admin.delete(at(made)).status == 200


def raw(server, method, target, headers=(), body=b''):
	"""A request to the letter: headers are pairs, so that one may come twice."""
	text = f'{method} {target} HTTP/1.1\r\n' + ''.join(f'{name}: {value}\r\n' for name, value in headers)
	with socket.create_connection(('127.0.0.1', server.port), timeout=10) as sock:
		sock.sendall(text.encode() + (f'Content-Length: {len(body)}\r\n' if body else '').encode() + b'\r\n' + body)
		response = http.client.HTTPResponse(sock, method=method)
		response.begin()
		return Reply(response, response.read())


def key_of(client):
	return 'Authorization', f'Bearer {client.key}'


# ---- A51: a role, by the back door ----

SPELLINGS = ['{base}/{act}', '{base}/{act}/', '{base}//{act}', '{base}/./{act}', '{base}/x/../{act}', '{base}/{odd}', '{base}/{upper}', '{base}/{act}?x=1', '{base}/{act}%00',
	'{base}/{act};a', '{double}/{act}']


def spelled(base, act):
	i = act.index('-') if '-' in act else 1
	odd = f'{act[:i]}%{ord(act[i]):02x}{act[i + 1:]}'
	double = base.replace('/v1/', '/v1//', 1) if '/v1/' in base else '/' + base
	return [one.format(base=base, act=act, odd=odd, upper=act.upper(), double=double) for one in SPELLINGS]


def shown(admin, box):
	"""All that these tests must leave as it is."""
	keys = [(one['id'], one['role'], one['revoked_at']) for one in admin.get('/v1/api-keys?limit=1000').json['items']]
	return keys, *(admin.get(path).json for path in ('/v1/accounts', at(box), at(box, '/log'), '/v1/sandboxes?limit=1000'))


@pytest.mark.parametrize('role, base, act', [('member', '/v1', 'api-keys'), ('member', '/v1', 'accounts'), ('member', '/v1', 'audit'), ('auditor', '/v1/sandboxes/{box}', 'exec'),
	('auditor', '/v1/sandboxes/{box}', 'stop'), ('member', '/v1/sandboxes/{box}', 'takeover-token')])
def test_no_spelling_gets_around_a_role(server, admin, box, role, base, act):
	client = server.client(role)
	before = shown(admin, box)
	for path in spelled(base.format(box=box), act):
		for method in ('POST', 'PUT', 'GET', 'DELETE', 'PATCH'):
			got = raw(server, method, path, [('Host', 'localhost'), key_of(client)])
			assert got.status in (400, 403, 404, 405), (method, path, got)
			assert got.status != 400 or '%00' in path or '?' in path, (method, path, got)
	got = raw(server, 'GET', f'{base.format(box=box)}/{act}', [('Host', 'localhost'), ('X-HTTP-Method-Override', 'POST'), key_of(client)])
	assert got.status in (403, 404, 405)
	assert shown(admin, box) == before


def test_two_keys_are_none(server, admin, box):
	member = server.client('member')
	for fields in ([key_of(member), key_of(admin)], [key_of(admin), key_of(member)], [key_of(admin), ('authorization', '')]):
		for method, path in (('GET', '/v1/api-keys'), ('POST', at(box, '/stop')), ('GET', at(box))):
			got = raw(server, method, path, [('Host', 'localhost'), *fields])
			assert got.status == 400 and got.json['code'] == 'invalid', got


def test_a_member_makes_no_admin(server, admin, box):
	member = server.client('member')
	before = shown(admin, box)
	assert raw(server, 'POST', '/v1/api-keys', [('Host', 'localhost'), key_of(member)], b'{"role":"admin","role":"member"}').status == 403
	assert raw(server, 'POST', '/v1/api-keys', [('Host', 'localhost'), key_of(admin)], b'{"role":"admin","role":"member"}').status == 400
	assert shown(admin, box) == before


def test_what_a_member_may_not_change(server, admin, box):
	member = server.client('member')
	assert admin.post('/v1/secrets', {'name': 'TOKEN', 'value': 'not to be seen 1234', 'hosts': ['api.example.org']}).status == 201
	rules = admin.get('/v1/network-rules').json
	for method, path, body in (('PUT', '/v1/network-rules', {'net': 'open'}), ('PUT', '/v1/networks/upstream-proxy', {'url': 'http://proxy.example.org:3128'}),
			('POST', '/v1/secrets', {'name': 'TOKEN', 'value': 'x', 'hosts': ['evil.example.org']}), ('DELETE', '/v1/secrets/TOKEN', None),
			('POST', '/v1/webhooks', {'url': 'http://evil.example.org/'}), ('GET', '/v1/audit', None), ('GET', '/metrics', None)):
		assert member.call(method, path, body).status == 403, path
	assert b'not to be seen' not in member.get('/v1/secrets').body and admin.get('/v1/network-rules').json == rules
	assert [one['name'] for one in admin.get('/v1/secrets').json['items']] == ['TOKEN'] and admin.delete('/v1/secrets/TOKEN').status == 204
	admin.exec(box, 'true kept')
	member.delete(at(box, '/trace'))
	assert member.get(at(box, '/log?q=true+kept')).json['items'], 'clearing the trace took a row of the log'


# ---- A52: other people's things ----

def test_what_is_not_yours_is_as_what_is_not_there(server, admin, box):
	other = server.client('admin', account='a52')
	admin.exec(box, 'true')
	for rest in ('', '/log', '/watch', '/files?path=/etc/passwd', '/files/content?path=/etc/passwd', '/manifest', '/trace', '/trace/events', '/takeover-token', '/lifecycle',
			'/metrics', '/changes', '/diff', '/report', '/network-rules', '/asks', '/exec/ex_0000000000000000'):
		told = [raw(server, 'GET', at(one, rest), [('Host', 'localhost'), key_of(other)]) for one in (box, 'sb_0000000000000000')]
		assert [one.status for one in told] == [405 if rest == '/trace' else 404] * 2, rest # of that there is DELETE alone
		assert told[0].body.replace(box.encode(), b'') == told[1].body.replace(b'sb_0000000000000000', b''), rest
	got = other.get('/v1/sandboxes?account=default&limit=1000')
	assert got.status == 400 and box.encode() not in got.body


def test_cursors_of_others_open_nothing(server, admin, box):
	other = server.client('admin', account='a52')
	for n in range(3):
		admin.exec(box, f'true {n}')
	admin.post('/v1/sandboxes', {})
	for path in ('/v1/log', '/v1/sandboxes', '/v1/api-keys', '/v1/audit'):
		cursor = admin.get(path + '?limit=1').json['next_cursor']
		page = other.get(f'{path}?cursor={cursor}&limit=1000').json
		assert cursor and all(one.get('account', 'a52') == 'a52' for one in page['items']) and box not in str(page), path
	mine = admin.get(at(box, '/log?limit=1')).json['next_cursor']
	boxes = [one['id'] for one in admin.get('/v1/sandboxes?state=running').json['items'] if one['id'] != box]
	for one in boxes: # a cursor of one sandbox, used with another one of the same account
		assert admin.get(at(one, f'/log?cursor={mine}')).json['items'] == []
		assert admin.delete(at(one)).status == 200


# ---- A54: bytes ----

CASES = [b'\0' * 5000, b'GET ' + b'/' * 70000 + b' HTTP/1.1\r\n\r\n', b'GET / HTTP/1.1\r\n' + b'A: b\r\n' * 100000 + b'\r\n', b'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
	b'GET / HTTP/1.1\r\n\r\n', b'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n', b'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n',
	b'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n', b'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc',
	b'GET / HTTP/1.1\nHost: a\n\n', b'GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', b'\x16\x03\x01\x02\0' + random.Random(7).randbytes(512),
	b'GET http://x/ HTTP/1.1\r\nHost: a\r\n\r\n', b'GET /\r\n', b'G', b'GET / HTTP/9.9\r\n\r\n',
	b'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/sandboxes HTTP/1.1\r\n\r\n']


def send_bytes(server, data):
	"""The status of what came back; None: closed, or nothing within a moment, as there may be more to come."""
	with socket.create_connection(('127.0.0.1', server.port), timeout=5) as sock:
		with contextlib.suppress(ConnectionError):
			sock.sendall(data)
		sock.settimeout(0.1)
		try:
			got = sock.recv(60)
		except (TimeoutError, ConnectionError):
			return None
	return int(got.split()[1]) if got else None


def memory_kib(server):
	text = pathlib.Path(f'/proc/{server.serve_pid()}/status').read_text()
	return int(text.split('VmRSS:')[1].split()[0])


@pytest.mark.parametrize('host', ['a', 'localhost'])
def test_bytes_that_are_no_request(server, host):
	cases = [data.replace(b'Host: a\r', b'Host: ' + host.encode() + b'\r') for data in CASES]
	known = {400, 413, 431, 501, 505, None} | ({421} if host == 'a' else set())
	for data in cases:
		assert send_bytes(server, data) in known, data[:60]
	before = memory_kib(server)
	rest = random.Random(7)
	for k in range(60 if host == 'localhost' else 0):
		data = rest.choice(cases[3:])[:k] + rest.randbytes(8)
		assert send_bytes(server, data) in known, data
	for _ in range(20):
		for data in cases[:3]: # the long ones
			with socket.create_connection(('127.0.0.1', server.port), timeout=5) as sock, contextlib.suppress(ConnectionError):
				sock.sendall(data)
	assert Client(server, None).get('/health').status == 200
	assert memory_kib(server) < before + 8192


# ---- what whoever takes it over would have ----

def test_the_half_that_faces_the_network_has_nothing(server):
	"""What its walls keep from it is tried in tests/unit/test_walls.c; here, that they stand."""
	pid = server.serve_pid()
	for thread in pathlib.Path(f'/proc/{pid}/task').iterdir():
		status = dict(line.split(':\t', 1) for line in (thread / 'status').read_text().splitlines() if ':\t' in line)
		assert {status[name] for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')} == {'0' * 16}, thread
		assert status['NoNewPrivs'] == '1' and '0' not in status['Uid'].split() + status['Gid'].split() and status['Groups'].strip() == '', thread
		assert status['Seccomp'] == ('0' if os.environ.get('ASAN_OPTIONS') else '2'), thread
	assert os.stat(f'/proc/{pid}/mem').st_uid == 0, 'no process of its user looks into it'
	limits = pathlib.Path(f'/proc/{pid}/limits').read_text()
	assert 'Max core file size        0                    0 ' in limits
	environ = dict(entry.split('=', 1) for entry in pathlib.Path(f'/proc/{pid}/environ').read_text().split('\0') if '=' in entry)
	assert environ['HOME'] == '/nonexistent'
	files = []
	for fd in pathlib.Path(f'/proc/{pid}/fd').iterdir():
		with contextlib.suppress(FileNotFoundError): # closed meanwhile
			files.append(os.readlink(fd))
	own = str(server.cloche.state / 'server')
	assert all(name.startswith((own, str(server.cloche.state / 'records'), 'socket:', 'pipe:', 'anon_inode:', '/dev/null', str(server.cloche.cwd / 'serve-'))) for name in files), files


def test_a_taken_over_server_takes_no_record_of_what_lives(server, admin, box):
	admin.exec(box, 'true')
	before = sorted((server.cloche.state / 'records' / box).iterdir())
	with contextlib.closing(Taken(server)) as taken:
		for options in (['--record'], ['--changes', '--record']):
			answer, _ = taken.ask('verb', verb='rm', sandbox=box, options=options)
			assert (answer['ok'], answer['errno']) == (False, 'EBUSY'), answer
		assert taken.ask('verb', verb='rm', sandbox=box, options=['--bodies'])[0]['errno'] == 'EINVAL'
		assert taken.ask('verb', verb='gc', sandbox=box)[0]['errno'] == 'EINVAL'
		assert taken.ask('verb', verb='rm', sandbox='sb_0000000000000000', options=['--record'])[0]['errno'] == 'ENOENT'
		assert sorted((server.cloche.state / 'records' / box).iterdir()) == before and admin.get(at(box)).json['state'] == 'running'
		other = admin.create()
		assert admin.post(at(other, '/stop')).status == 200
		# It is there for a moment after its end.
		wait_for(lambda: taken.ask('verb', verb='rm', sandbox=other, options=['--record'], actor='nobody')[0].get('status') == 0, 'its removal')
	said = [json.loads(line) for line in (server.cloche.state / 'ledger.jsonl').read_text().splitlines()]
	assert [(line['act'], line.get('actor'), len(line.get('head', ''))) for line in said if line['sandbox'] == other][-1] == ('remove', 'nobody', 64), 'it is written down'
	wait_for(lambda: admin.get(at(other)).status == 404, 'its rows to go, too', 20)


# ---- A56: web pages ----

FOREIGN = [{'Origin': 'https://evil.test'}, {'Origin': 'null'}, {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site'}, {'Origin': 'http://localhost:3000'}]


@pytest.mark.parametrize('headers', FOREIGN, ids=lambda headers: ' '.join(headers.values()))
def test_a_page_of_another_origin_gets_nothing(server, admin, box, headers):
	before = shown(admin, box)
	for operation in server.document.operations:
		path = operation.target(**{one['name']: box if one['name'] == 'id' else 'x' for one in operation.placed('path')})
		got = admin.call(operation.method, path, headers=headers)
		assert (got.status, got.json['code']) == (403, 'foreign_origin'), operation
	form = {**headers, 'Content-Type': 'text/plain'}
	assert admin.post(at(box, '/exec'), b'{"command":"touch /workspace/was-here"}', headers=form).status == 403
	upgrade = {'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA=='}
	assert admin.get(at(box, '/takeover'), headers={**headers, **upgrade}).status == 403
	assert admin.get('/', headers=headers).status == 403 == admin.get('/nowhere', headers=headers).status
	for path in ('/v1/sandboxes', at(box, '/exec'), '/'):
		got = admin.call('OPTIONS', path, headers={**headers, 'Access-Control-Request-Method': 'POST'})
		assert got.status == 403 and not got.headers['Allow']
	assert shown(admin, box) == before


def test_options_let_no_browser_go_on(admin):
	got = admin.call('OPTIONS', '/v1/sandboxes')
	assert got.status == 405 and {'GET', 'POST'} == set(got.headers['Allow'].split(', ')) # and no Access-Control-*: api_document.py looks


def test_a_name_of_somebody_else_leads_nowhere(server, admin):
	for host in ('evil.test', 'evil.test:7410', 'localhost.evil.test', '127.0.0.1.evil.test', '192.0.2.1', '0.0.0.0', '127.1', 'x.cloche.example.org'):
		for path in ('/', '/health', '/v1/sandboxes', '/nowhere'):
			got = raw(server, 'GET', path, [('Host', host), key_of(admin)])
			assert (got.status, got.json['code']) == (421, 'wrong_host'), (host, path)
	for host in ('localhost', 'LocalHost:1', '127.0.0.1', '127.8.8.8', '[::1]', 'cloche.example.org', 'Cloche.Example.org:443', 'front.example.org'):
		assert raw(server, 'GET', '/health', [('Host', host)]).status == 200, host


def test_a_page_of_its_own(server, admin):
	own = f'127.0.0.1:{server.port}'
	for host, origin, status in ((own, f'http://{own}', 200), ('cloche.example.org', 'https://cloche.example.org', 200), (own, 'https://front.example.org', 200),
			(own, f'https://{own}', 403), (own, 'http://127.0.0.1', 403), ('cloche.example.org', 'https://evil.example.org', 403)):
		got = raw(server, 'GET', '/v1/sandboxes', [('Host', host), ('Origin', origin), ('Sec-Fetch-Site', 'same-origin'), key_of(admin)])
		assert got.status == status, (host, origin, got)


def test_the_socket_answers_to_any_name(server):
	path = next(server.options[i + 1] for i, one in enumerate(server.options) if one == '--socket')
	for headers, status in (([('Host', 'whatever')], 200), ([('Host', 'whatever'), ('Origin', 'http://whatever')], 403), ([('Host', 'x'), ('Sec-Fetch-Site', 'cross-site')], 403)):
		with socket.socket(socket.AF_UNIX) as sock:
			sock.connect(path)
			sock.sendall(('GET /v1/sandboxes HTTP/1.1\r\n' + ''.join(f'{name}: {value}\r\n' for name, value in headers) + '\r\n').encode())
			response = http.client.HTTPResponse(sock)
			response.begin()
			assert response.status == status, headers


def test_every_answer_says_how_to_be_taken(server, admin, box):
	want = {'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer', 'Cache-Control': 'no-store', 'X-Frame-Options': 'DENY', 'Cross-Origin-Resource-Policy': 'same-origin'}
	replies = [raw(server, 'GET', '/', [('Host', 'evil.test')]), raw(server, 'GET', '/health', [('Host', 'a'), ('Host', 'b')]), admin.get('/'), admin.get('/health'),
		admin.get(at(box)), admin.get('/metrics'), Client(server, None).get('/v1/sandboxes'), admin.call('PUT', '/v1/sandboxes', b' ' * 1100000)]
	events = admin.stream(at(box, '/watch'))
	for headers in [one.headers for one in replies] + [events.response.headers]:
		assert {name: headers[name] for name in want} == want
		policy = headers['Content-Security-Policy']
		assert policy.startswith("default-src 'none'; ") and "frame-ancestors 'none'" in policy
		assert not headers['Strict-Transport-Security'] and not headers['Set-Cookie']
	events.close()


# ---- more than there is room for ----

class Upload:
	"""One that has begun: its head is sent, with Expect, so that what becomes of it shows at once."""

	def __init__(self, server, key, length, path='/v1/sandboxes/sb_0000000000000000/files/content?path=/tmp/f'):
		self.sock = socket.create_connection(('127.0.0.1', server.port), timeout=10)
		bearer = f'Authorization: Bearer {key}\r\n' if key else ''
		self.sock.sendall(f'PUT {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n'.encode())
		self.head = b''
		while b'\r\n\r\n' not in self.head:
			self.head += self.sock.recv(4096)
		self.status = int(self.head.split()[1])


def test_bodies_under_way_have_a_bound(server, admin):
	uploads = [Upload(server, admin.key, 64 * MIB) for _ in range(4)]
	assert [one.status for one in uploads] == [100] * 4
	more = Upload(server, admin.key, 1000)
	assert more.status == 503 and b'\r\nRetry-After: 5\r\n' in more.head and b'"code":"overloaded"' in more.head + more.sock.recv(4096)
	assert admin.post('/v1/sandboxes/sb_0000000000000000/exec', {'command': 'true'}).json['code'] == 'overloaded'
	assert admin.get('/health').status == 200, 'what has no body needs no room'
	for one in (*uploads, more):
		one.sock.close()
	wait_for(lambda: admin.post('/v1/sandboxes/sb_0000000000000000/exec', {'command': 'true'}).status == 404, 'room')


def test_whoever_may_not_upload_sends_nothing(server, admin):
	"""Asked before the body is read, so that nobody without a key takes room."""
	auditor = server.client('auditor')
	for key, path, status in ((None, None, 401), ('clo_wrong', None, 401), (auditor.key, None, 403), (admin.key, '/v1/nothing', 413), (admin.key, '/health', 413)):
		uploads = [Upload(server, key, 64 * MIB, **({'path': path} if path else {})) for _ in range(6)]
		assert [one.status for one in uploads] == [status] * 6, (key, path)
		for one in uploads:
			one.sock.close()
	assert Upload(server, admin.key, 64 * MIB + 1).status == 413


def test_an_upload_is_asked_and_then_read(admin, box):
	data = os.urandom(3 * MIB)
	assert admin.put(at(box, '/files/content?path=/workspace/f'), data).status == 201
	assert admin.get(at(box, '/files/content?path=/workspace/f')).body == data
	wrong = admin.put(at('sb_0000000000000000', '/files/content?path=/workspace/f'), data)
	assert wrong.status == 404 and admin.get('/health').status == 200
