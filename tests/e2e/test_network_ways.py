# SPDX-License-Identifier: Apache-2.0
"""Ways out that are not straight: mapped names, an upstream proxy, --shadow, --ask, rules that change meanwhile."""
import base64
import json
import subprocess

import harness
import pytest
import world as world_

STATUS = "curl -sS -m 15 -o /dev/null -w '%{http_code}\\n' "

# A proxy that speaks CONNECT. Arguments: port, how it behaves. Each request's head is a line of its output.
PROXY = '''
import socket, sys, threading, time
port, mode = int(sys.argv[1]), sys.argv[2]
listener = socket.create_server(('203.0.113.1', port))
print('ready', flush=True)
def pipe(source, sink):
	while data := source.recv(65536):
		sink.sendall(data)
	sink.shutdown(socket.SHUT_WR)
def serve(sock):
	head = b''
	while b'\\r\\n\\r\\n' not in head:
		head += sock.recv(1)
	print(head, flush=True)
	if mode == 'works':
		host, port = head.split()[1].decode().rsplit(':', 1)
		up = socket.create_connection(('203.0.113.10' if host.endswith('.test') else host, int(port)))
		sock.sendall(b'HTTP/1.1 200 OK\\r\\nVia: x\\r\\n\\r\\n')
		threading.Thread(target=pipe, args=(sock, up), daemon=True).start()
		pipe(up, sock)
	elif mode == 'endless':
		sock.sendall(b'HTTP/1.1 200 OK\\r\\n')
		while True:
			sock.sendall(b'X: ' + b'y' * 1000 + b'\\r\\n')
	elif mode == 'silent':
		time.sleep(60)
	elif mode != 'closes':
		sock.sendall(f'HTTP/1.1 {mode} X\\r\\n\\r\\n'.encode())
	sock.close()
while True:
	threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
'''


@pytest.fixture
def proxy(world):
	"""proxy(port, mode) starts one; calling what it returns ends it and gives the heads it got."""
	running = []

	def start(port, mode):
		process = subprocess.Popen(world.command(world.host, harness.PYTHON, '-c', PROXY, str(port), mode),
			stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
		running.append(process)
		assert process.stdout.readline() == b'ready\n'

		def end():
			process.kill()
			return [eval(line) for line in process.communicate()[0].splitlines()] # bytes as Python writes them
		return end

	yield start
	for process in running:
		process.kill()
		process.wait()


def test_mapped_names(world, online):
	"""A map leads to where it says, also inward, and for its port only; it is no rule for the place it leads to."""
	options = ('--net', 'open', *world.net, '--host-map', f'api.example:80={world_.UPSTREAM}',
		'--host-map', f'*.in.example={world_.UPSTREAM}:80')
	script = f'''{STATUS} http://api.example/a; {STATUS} http://x.in.example:8080/b; {STATUS} http://in.example/c
		{STATUS} http://api.example:81/d'''
	done = online.sh(script, options=options)
	assert done.lines == ['200', '200', '000', '000'], done
	assert [(entry['path'], entry['host']) for entry in world.log('http')] == [('/a', 'api.example'),
		('/b', 'x.in.example:8080')]
	https = [(event['host'], event['url']) for event in done.record.events('net.http')]
	assert https == [('api.example', 'http://api.example/a'), ('x.in.example', 'http://x.in.example:8080/b')]


def test_upstream_proxy(world, online, proxy):
	"""Everything goes there, with its credentials, which stand in no record; a program's own do not."""
	end = proxy(3128, 'works')
	options = ('--net', 'allow', *world.net, '--allow', 'allowed.test', '--upstream-proxy',
		'http://me:geheim-77@203.0.113.1:3128')
	done = online.sh(f'{STATUS} http://allowed.test/p; {STATUS} http://denied.test/; {STATUS} http://10.0.0.5/',
		options=options)
	assert done.lines == ['200', '403', '000'], done
	heads = end()
	word = base64.b64encode(b'me:geheim-77').decode()
	assert heads == [f'CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\nProxy-Authorization: Basic {word}'
		'\r\n\r\n'.encode()]
	assert [entry['path'] for entry in world.log('http')] == ['/p']
	text = done.record.view('events', '--jsonl')
	assert 'geheim' not in text and word not in text


def test_another_proxy_for_a_running_sandbox(world, online, proxy):
	"""Only credentials that fit it go there; rules and what they began with are another matter."""
	end = proxy(3129, 'works')
	sandbox = online.create('--trace', '--net', 'allow', *world.net, '--allow', 'allowed.test', '--upstream-proxy', 'http://old:geheim-70@203.0.113.1:1')
	try:
		told = online.call('net-rules', sandbox.id, '--deny', 'b.test', '--upstream-proxy', 'http://me:geheim-77@203.0.113.1:3129')
		assert (told.code, told.out) == (0, 'net    allow\nallow  allowed.test\ndeny   b.test\nproxy  http://203.0.113.1:3129\n'), told
		assert sandbox.sh(f'{STATUS} http://allowed.test/').lines == ['200']
		told = online.call('net-rules', '--reset', sandbox.id)
		assert (told.code, told.out) == (0, 'net    allow\nallow  allowed.test\nproxy  http://203.0.113.1:3129\n'), told
		assert sandbox.sh(f'{STATUS} http://allowed.test/').lines == ['200']
		word = base64.b64encode(b'me:geheim-77')
		assert [word in head for head in end()] == [True, True]
		for words, reason in ((('--upstream-proxy', 'ftp://x:1'), 'http://'), (('--hidden', '/dev/null'), 'goes with'), (('--within', '/dev/null', '--reset'), 'goes with')):
			refused = online.call('net-rules', sandbox.id, *words)
			assert refused.code in (2, 125) and reason in refused.err, refused
		told = online.call('net-rules', '--upstream-proxy', 'none', '--json', sandbox.id)
		assert told.code == 0 and 'upstream_proxy' not in json.loads(told.out), told
		assert sandbox.sh(f'{STATUS} http://allowed.test/').lines == ['200']
		assert [event.get('url') for event in sandbox.record.events('net.proxy')] == ['http://203.0.113.1:3129', None]
		assert 'geheim' not in sandbox.record.view('events', '--jsonl')
	finally:
		sandbox.remove()


@pytest.mark.parametrize('rules', [('--net', 'open', '--allow', '203.0.113.0/24'), ('--allow', '*')], ids=['address', 'all'])
def test_proxy_is_told_no_name_that_no_rule_names(world, online, proxy, rules):
	"""It would look the name up anew, and might find another address than the one that was judged."""
	end = proxy(3131, 'works')
	done = online.sh(f'{STATUS} http://allowed.test/', options=(*rules, *world.net, '--upstream-proxy', 'http://203.0.113.1:3131'))
	assert done.lines == ['200'], done
	assert [head.split(b'\r\n')[0] for head in end()] == [f'CONNECT {world_.UPSTREAM}:80 HTTP/1.1'.encode()]


def test_datagrams_do_not_go_around_a_proxy(world, online, proxy):
	proxy(3129, 'works')
	code = '''
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(5)
sock.connect(('203.0.113.10', 9999))
sock.send(b'x')
try:
	sock.recv(1)
except OSError as error:
	print(error.errno)
'''
	done = online.py(code, options=('--net', 'open', *world.net, '--upstream-proxy', 'http://203.0.113.1:3129'))
	assert done.lines == ['111'], done
	[refused] = done.record.events('net.refused')
	assert refused['rule'] == 'default: upstream proxy'
	assert (world_.UPSTREAM, 'udp', 9999) not in world.wire()


@pytest.mark.parametrize('mode, reason', (('407', 'other credentials'), ('502', 'did not open'), ('closes', 'did not open'),
	('endless', 'did not open'), ('silent', 'does not answer'), (None, 'cannot be reached')))
def test_proxy_that_fails(world, online, proxy, mode, reason):
	"""Whatever it does: the connection fails within ten seconds, with a reason, and nothing goes around it."""
	if mode:
		proxy(3130, mode)
	done = online.sh(STATUS + "-w '%{time_total}\\n' http://allowed.test/", options=('--net', 'open', *world.net,
		'--upstream-proxy', 'http://me:geheim-77@203.0.113.1:3130'))
	assert float(done.lines[-1]) < 10, done
	[connect] = done.record.events('net.connect')
	assert reason in connect['reason'] and connect['result'], connect
	assert world.log('http') == []
	assert (world_.UPSTREAM, 'tcp', 80) not in world.wire()


def test_shadow(world, online):
	"""What the rules refuse goes through, and stands in the record as what would have been refused."""
	done = online.sh(f'{STATUS} http://denied.test/; {STATUS} http://allowed.test/', options=('--net', 'allow',
		*world.net, '--allow', 'allowed.test', '--shadow'))
	assert done.lines == ['200', '200'], done
	refused = done.record.events('net.refused')
	assert {(event['host'], event['shadow']) for event in refused} == {('denied.test', True)}
	assert [event['stage'] for event in refused if event['stage'] != 'dns'] == ['connect']


def test_many_at_once_through_http(world, online):
	"""Requests of several programs at the same time stay with their programs."""
	script = '''for i in 1 2 3 4 5 6 7 8; do
			(for k in 1 2 3 4 5; do curl -sS -o /dev/null -d "$i-$k" http://allowed.test/$i/$k; done) &
		done; wait'''
	done = online.sh(script, options=('--net', 'open', *world.net))
	assert done.code == 0, done
	https = done.record.events('net.http')
	assert sorted((event['url'], event['body']) for event in https) == sorted(
		(f'http://allowed.test/{i}/{k}', f'{i}-{k}') for i in range(1, 9) for k in range(1, 6))
	by_pid = {}
	for event in https:
		by_pid.setdefault(event['pid'], set()).add(event['url'])
	assert all(len(urls) == 1 for urls in by_pid.values()) and len(by_pid) == 40


def test_asked_and_nobody_there(world, online):
	"""Without a terminal nobody answers: refused, with the reason, and the name has not left."""
	done = online.sh(f'{STATUS} http://allowed.test/', options=('--net', 'allow', *world.net, '--ask'))
	assert done.lines == ['403'], done
	assert world.log('dns') == [] and world.log('http') == []


def test_no_for_an_answer_is_not_for_ever(world, online):
	"""Each try is asked about again, or answered as before: by the gateway, not by the kernel's list."""
	code = '''
import errno, socket
for _ in range(2):
	print(errno.errorcode[socket.socket().connect_ex(('allowed.test', 18081))])
'''
	done = online.py(code, options=('--net', 'allow', *world.net, '--ask'))
	assert done.lines == ['ECONNREFUSED', 'ECONNREFUSED'], done
	assert len(done.record.events('net.refused')) == 2


# Five ways, opened before rules change, each used once more behind it: 'ok', what the answer says, or the errno.
WAYS = '''
import base64, os, socket, sys
address = socket.gethostbyname('allowed.test')
def dial(port, first=b''):
	sock = socket.create_connection((address, port), 10)
	sock.sendall(first)
	return sock
def frame(data):
	key = os.urandom(4)
	return bytes([0x81, 0x80 | len(data)]) + key + bytes(byte ^ key[i % 4] for i, byte in enumerate(data))
raw = dial(18081, b'\\1\\2')
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.settimeout(10)
datagrams.connect((address, 18081))
datagrams.send(b'before')
assert datagrams.recv(99) == b'before'
ws = dial(80, b'GET /ws HTTP/1.1\\r\\nHost: allowed.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'
	b'Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: ' + base64.b64encode(bytes(16)) + b'\\r\\n\\r\\n')
assert ws.recv(999)[9:12] == b'101'
idle = dial(80, b'GET /ok/1 HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n')
assert idle.recv(9999)[9:12] == b'200'
upload = dial(80, b'POST /up HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: 4\\r\\n\\r\\nxx')
print('up', flush=True)
sys.stdin.readline()
def use_raw():
	raw.settimeout(.1)
	try:
		raw.recv(99)
	except TimeoutError:
		raw.settimeout(10)
	raw.shutdown(socket.SHUT_WR)
	return 'ok' if raw.recv(99)[:2] == b'2 ' else 'lost'
def use_datagrams():
	datagrams.send(b'after')
	return 'ok' if datagrams.recv(99) == b'after' else 'lost'
def use(sock, data, want, at):
	sock.sendall(data)
	got = sock.recv(9999)
	return 'ok' if got[at:at + len(want)] == want else got[at:at + len(want)].decode()
for name, use_again in (('raw', use_raw), ('udp', use_datagrams), ('ws', lambda: use(ws, frame(b'after'), b'after', 2)),
	('idle', lambda: use(idle, b'GET /ok/2 HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n', b'200', 9)),
	('upload', lambda: use(upload, b'yy', b'200', 9))):
	try:
		print(name, use_again())
	except OSError as error:
		print(name, error.errno)
'''


@pytest.mark.parametrize('allow, change, want, told', [
	('allowed.test', ('--allow', 'GET allowed.test/ok/**', '--remove', 'allowed.test'), '104 111 104 ok 104',
		{('GET', 'http'), ('POST', 'http'), (None, 'connect')}),
	('allowed.test', ('--deny', 'allowed.test/ws'), '104 111 104 ok ok', {('GET', 'http'), (None, 'connect')}),
	('allowed.test', ('--deny', '203.0.113.10'), '104 111 104 104 104', {(None, 'connect')}),
	('203.0.113.10', ('--allow', 'other.test'), 'ok ok ok ok ok', set())],
	ids=['narrowed', 'path', 'address', 'still allowed'])
def test_rules_that_change_under_what_is_open(world, online, allow, change, want, told):
	"""What may not begin any more does not go on: bytes that nobody reads, requests and messages half way."""
	sandbox = online.create('--trace', '--net', 'allow', *world.net, '--allow', allow)
	code = WAYS if allow == 'allowed.test' else WAYS.replace("socket.gethostbyname('allowed.test')", f"'{allow}'")
	try:
		process = sandbox.start(harness.PYTHON, '-c', code, stdin=subprocess.PIPE)
		assert process.stdout.readline() == b'up\n'
		done = online.call('net-rules', *change, sandbox.id)
		assert done.code == 0, done
		sandbox.sh('true') # its end waits for the gateway, which then has them
		out, err = process.communicate(b'\n', timeout=60)
		said = dict(line.split() for line in out.decode().splitlines())
		assert said == dict(zip(('raw', 'udp', 'ws', 'idle', 'upload'), want.split())), err
		refused = sandbox.record.events('net.refused')
		assert {(event.get('method'), event['stage']) for event in refused} == told, refused
		assert not [event for event in refused if event['rule'].startswith('allow ')], refused
	finally:
		sandbox.remove()


def test_rules_that_change(world, online):
	"""What is open and refused from now on is reset; what was refused is let through."""
	sandbox = online.create('--trace', '--net', 'allow', *world.net, '--allow', 'allowed.test')
	try:
		code = '''
import socket
sock = socket.create_connection(('allowed.test', 18081))
sock.sendall(b'\\1')
print('up', flush=True)
try:
	print(sock.recv(10))
except OSError as error:
	print(error.errno)
'''
		process = sandbox.start(harness.PYTHON, '-c', code)
		assert process.stdout.readline() == b'up\n'
		refused = sandbox.sh(STATUS + 'http://other.wild.test/')
		assert refused.lines == ['403'], refused
		told = online.call('net-rules', '--allow', '*.wild.test', '--remove', 'allowed.test', sandbox.id)
		assert told.code == 0, told
		assert process.communicate(timeout=20)[0] == b'104\n'
		done = sandbox.sh(f'{STATUS} http://other.wild.test/; {STATUS} http://allowed.test/')
		assert done.lines == ['200', '403'], done
		rules = [event['rules'] for event in sandbox.record.events('net.rules')]
		assert rules[-1] == ['allow *.wild.test'], rules
	finally:
		sandbox.remove()
