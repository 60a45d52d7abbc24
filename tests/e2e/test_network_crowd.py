# SPDX-License-Identifier: Apache-2.0
"""More at once than a gateway may hold: what is beyond is refused or broken off at once, both sides and the record are
told, the gateway stays within its bound (docs/architecture.md) and serves whoever comes later."""
import collections
import json
import os
import pathlib
import signal
import subprocess
import time

import harness
import pytest
import world as world_

# Measured by hand with 10000.
CROWD = int(os.environ.get('CLOCHE_TEST_CROWD_FLOWS', '6000'))
TLS_CROWD = int(os.environ.get('CLOCHE_TEST_CROWD_TLS', '600'))
BOUND_KB = 320 * 1024  # BUDGET_MAX, what is read between two looks, and the program itself
EXACT = 'ASAN_OPTIONS' not in os.environ  # a sanitizer keeps what was freed
WHY_FLOWS = 'the gateway of this sandbox holds as many connections as it can'
WHY_MEMORY = 'the gateway of this sandbox holds as much in memory as it may'
HOLD, HOLD_TLS, ECHO, SINK = 9200, 9201, 9202, 9203

# Takes whatever comes and says nothing, until it is asked how many are open.
HOLDER = '''
import asyncio, base64, hashlib, re, resource, socket, ssl, sys
logs = sys.argv[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
n_open = 0
async def hold(reader, writer):
	global n_open
	n_open += 1
	try:
		while await reader.read(65536):
			pass
	except OSError:
		pass
	n_open -= 1
	writer.close()
# One message, sent back as it comes.
async def echo(reader, writer):
	head = await reader.readuntil(b'\\r\\n\\r\\n')
	key = re.search(b'(?i)sec-websocket-key: *([^\\r]*)', head)[1]
	accept = base64.b64encode(hashlib.sha1(key + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest())
	writer.write(b'HTTP/1.1 101 X\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + b'\\r\\n\\r\\n')
	frame = await reader.readexactly(14)
	writer.write(b'\\x82\\x7f' + frame[2:10])
	mask, at = frame[10:], 0
	while data := await reader.read(65536):
		again = (mask[at % 4:] + mask * (len(data) // 4 + 1))[:len(data)]
		at += len(data)
		writer.write((int.from_bytes(data, 'big') ^ int.from_bytes(again, 'big')).to_bytes(len(data), 'big'))
		await writer.drain()
	writer.close()
async def main():
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(logs + '/leaf.pem', logs + '/leaf.key')
	await asyncio.start_server(hold, '203.0.113.10', 9200, backlog=4096)
	await asyncio.start_server(hold, '203.0.113.10', 9201, backlog=4096, ssl=context, ssl_handshake_timeout=300)
	await asyncio.start_server(echo, '203.0.113.10', 9202)
	sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	sink.bind(('203.0.113.10', 9203))
	print('ready', flush=True)
	loop = asyncio.get_running_loop()
	while await loop.run_in_executor(None, sys.stdin.readline):
		print(n_open, flush=True)
asyncio.run(main())
'''

# How many of n connections stand, how many were refused, and how many of those that stood are broken off in the end.
CLIENT = '''
import collections, json, resource, select, socket, ssl, sys, time
n, port, tls, head = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == 'tls', int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
context = ssl.create_default_context() if tls else None
address = sys.argv[5] if len(sys.argv) > 5 else socket.gethostbyname('allowed.test')
late = sys.argv[3] == 'late heads'
held, told = [], collections.Counter()
filler = b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n' + b''.join(b'X-%d: %s\\r\\n' % (i, b'y' * 1000) for i in range(60))
def send_head(s, begin, end):
	try:
		s.settimeout(30)
		s.sendall(filler[begin:end])
	except OSError:
		pass # broken off, as is seen below
for _ in range(n):
	try:
		s = socket.create_connection((address, port), timeout=60)
		if tls: s = context.wrap_socket(s, server_hostname='allowed.test')
	except OSError as error:
		told[type(error).__name__] += 1
		continue
	held.append(s)
	send_head(s, 0, 40 if late else head)
for s in held:
	if late: send_head(s, 40, head)
print('held', len(held), flush=True)
sys.stdin.readline()
poll = select.poll()
for s in held: poll.register(s, select.POLLRDHUP)
broken, since, begin = 0, time.monotonic(), time.monotonic()
while time.monotonic() < begin + 60 and (time.monotonic() < since + 2 or late and not broken):
	now = len(poll.poll(0)) # until it stays
	if now != broken: broken, since = now, time.monotonic()
	time.sleep(.05)
print('broken', broken, json.dumps(told), flush=True)
sys.stdin.readline()
'''


def gateway(sandbox):
	"""The process id of a sandbox's gateway."""
	[supervisor] = sandbox.supervisor()
	children = pathlib.Path(f'/proc/{supervisor}/task/{supervisor}/children').read_text().split()
	[pid] = [int(pid) for pid in children if pathlib.Path(f'/proc/{pid}/comm').read_text() == 'cloche-gateway\n']
	return pid


def memory_kb(pid):
	"""The most it ever held."""
	[line] = [line for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines() if line.startswith('VmHWM:')]
	return int(line.split()[1])


def cpu_seconds(pid):
	words = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
	return (int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK')


@pytest.fixture(scope='module')
def holder(world):
	server = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-c', HOLDER, str(world.logs)),
		stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
	assert server.stdout.readline() == 'ready\n'

	def count():
		server.stdin.write('\n')
		server.stdin.flush()
		return int(server.stdout.readline())
	yield count
	server.kill()
	server.communicate()


@pytest.fixture
def box(online, world):
	made = online.create(*world.net, '--allow', 'allowed.test', '--trace')
	yield made
	made.remove()


class Crowd:
	"""A program inside that opens many connections and holds them until it is told to go on."""

	def __init__(self, box, *words):
		self.process = box.start(harness.PYTHON, '-c', CLIENT, *map(str, words), stdin=subprocess.PIPE)
		self.held = int(self.line().split()[1])

	def line(self):
		return self.process.stdout.readline().decode()

	def go_on(self):
		assert self.process.poll() is None, self.process.communicate()
		self.process.stdin.write(b'\n')
		self.process.stdin.flush()

	def end(self):
		"""How many of the held are broken off, and what the others were told."""
		self.go_on()
		_, broken, told = self.line().split(' ', 2)
		self.go_on()
		self.process.communicate(timeout=120)
		return int(broken), json.loads(told)


def outcome(box):
	"""Connects that stood, those that failed by their reason, flows by their error; of the crowd's ports."""
	connects, flows = ([event for event in box.record.events(kind) if event['port'] in (HOLD, HOLD_TLS)]
		for kind in ('net.connect', 'net.flow'))
	return (sum('result' not in event for event in connects),
		collections.Counter(event['reason'] for event in connects if 'result' in event),
		collections.Counter(event.get('error') for event in flows))


def check_told(box, holder, crowd, n):
	"""What the program was told is what the record says, and the server is told of all of it."""
	broken, told = crowd.end()
	harness.wait_for(lambda: holder() == 0, 'the server to be told of all ends', 60)
	refused = sum(told.values())
	assert set(told) <= {'ConnectionRefusedError'} and crowd.held + refused == n, told
	harness.wait_for(lambda: sum(outcome(box)[2].values()) == crowd.held, 'the ends of all flows', 60)
	stood, failed, ends = outcome(box)
	assert stood == crowd.held and sum(failed.values()) == refused, (stood, failed)
	assert set(failed) <= {WHY_FLOWS, WHY_MEMORY}, failed
	assert ends[WHY_MEMORY] == broken, ends
	return refused, broken


@pytest.mark.parametrize('kind', ['idle', 'heads', 'late heads', 'tls'])
def test_crowd(world, holder, box, kind):
	n = TLS_CROWD if kind == 'tls' else CROWD
	crowd = Crowd(box, n, HOLD_TLS if kind == 'tls' else HOLD, kind, 60000 if 'heads' in kind else 0)
	pid = gateway(box)
	refused, broken = check_told(box, holder, crowd, n)
	memory = memory_kb(pid)
	print(f'{kind}: {crowd.held} held, {refused} refused, {broken} broken off, {memory >> 10} MiB')
	assert gateway(box) == pid and (not EXACT or memory < BOUND_KB)
	hints = [event['reason'] for event in box.record.events('hint')]
	assert bool(hints) == (refused + broken > 0), hints
	if 'heads' in kind: # 60 KB each, which is more than it may hold
		assert (broken if kind == 'late heads' else refused) > 0 and WHY_MEMORY in hints
	done = box.sh('curl -sS -m 20 -o /dev/null -w "%{http_code}" https://allowed.test/')
	assert done.out == '200', done


H2, BIG_MB = 8446, 64

# What a program can do to HTTP/2 and WebSocket. Goes on for so many bytes or frames, or until it is stopped; a timeout of
# its sends means that nobody reads them any more, which is an answer, too.
HOSTILE = '''
import os, socket, struct, sys
how, port = sys.argv[1], int(sys.argv[2])
def frame(kind, flags, stream, data=b''):
	return struct.pack('>I', len(data))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + data
DATA, HEADERS, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END, WHOLE = 1, 4
def literal(name, value, index=False): # lengths under 127
	return (b'\\x40' if index else b'\\0') + bytes([len(name)]) + name + bytes([len(value)]) + value
AUTHORITY = b'\\x01' + bytes([len('allowed.test:%d' % port)]) + b'allowed.test:%d' % port
GET = b'\\x82\\x86\\x84' + AUTHORITY
GET_BIG = b'\\x82\\x86\\x04\\x04/big' + AUTHORITY
POST = b'\\x83\\x86\\x84' + AUTHORITY
def start(settings=b''):
	s = socket.create_connection(('allowed.test', port))
	s.settimeout(5)
	s.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + frame(SETTINGS, 0, 0, settings))
	return s
def flood(s, pieces, reads=True):
	try:
		for piece in pieces:
			s.sendall(piece)
			if reads:
				s.setblocking(False)
				try:
					while s.recv(1 << 20): pass
				except BlockingIOError: pass
				s.settimeout(5)
		print('all sent')
	except socket.timeout: print('not read any more')
	except OSError as error: print(type(error).__name__)
def streams(n, make):
	return (b''.join(make(2 * (i + k) + 1) for k in range(100)) for i in range(0, n, 100))
if how == 'settings':
	flood(start(), (frame(SETTINGS, 0, 0, struct.pack('>HI', 3, 100)) * 1000 for _ in range(3000)))
elif how == 'settings unread':
	flood(start(), (frame(SETTINGS, 0, 0, struct.pack('>HI', 3, 100)) * 1000 for _ in range(3000)), False)
elif how == 'pings unread':
	flood(start(), (frame(PING, 0, 0, b'12345678') * 1000 for _ in range(3000)), False)
elif how == 'continuations':
	block = b''.join(literal(b'x-%d' % i, b'y' * 100) for i in range(140))
	flood(start(), [frame(HEADERS, 0, 1, GET)] + [frame(CONTINUATION, 0, 1, block)] * 8000)
elif how == 'empty continuations':
	flood(start(), [frame(HEADERS, 0, 1, GET)] + [frame(CONTINUATION, 0, 1) * 1000] * 3000)
elif how == 'bomb':
	s = start()
	value = b'v' * 3900
	big = b'\\x40\\x01x' + b'\\x7f' + bytes([(len(value) - 127) & 127 | 128, (len(value) - 127) >> 7]) + value
	flood(s, [frame(HEADERS, END | WHOLE, 1, GET + big)] + [piece for piece in streams(2000, lambda i:
		frame(HEADERS, END | WHOLE, i + 2, GET + b'\\xbe' * 15000))])
elif how == 'resets':
	flood(start(), streams(40000, lambda i: frame(HEADERS, END | WHOLE, i, GET) + frame(RST, 0, i, bytes(4))))
elif how == 'empty data':
	s = start()
	flood(s, [frame(HEADERS, WHOLE, 1, POST)] + [frame(DATA, 0, 1) * 1000] * 3000)
elif how == 'unread answers':
	wide = struct.pack('>HI', 4, 0x7fffffff)
	held = [start(wide) for _ in range(30)]
	for s in held:
		flood(s, [frame(WINDOW, 0, 0, struct.pack('>I', 0x7fff0000))] +
			[frame(HEADERS, END | WHOLE, 2 * i + 1, GET_BIG) for i in range(100)], False)
	import time
	time.sleep(3)
elif how == 'half bodies':
	held = [start() for _ in range(30)]
	for s in held:
		flood(s, [frame(HEADERS, WHOLE, 2 * i + 1, POST) + frame(DATA, 0, 2 * i + 1, b'z' * 10000) for i in range(100)])
print('done')
'''


@pytest.fixture(scope='module')
def h2(world, tmp_path_factory):
	"""nghttpd without TLS, with a file of some size."""
	root = tmp_path_factory.mktemp('h2')
	(root / 'big').write_bytes(b'z' * (BIG_MB << 20))
	server = subprocess.Popen(world.command(world.internet, 'nghttpd', '-a', world_.UPSTREAM, '-d', str(root), '--no-tls',
		str(H2)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	harness.wait_for(lambda: subprocess.run(world.command(world.host, 'nc', '-z', world_.UPSTREAM, str(H2)), check=False)
		.returncode == 0, 'nghttpd')
	yield
	server.kill()
	server.wait()


BROKEN = 'one side broke the rules of HTTP/2'
# What the flow says where it was broken off, and how many requests are told at least (who resets a thousand is cut off).
HOSTILE_ENDS = {
	'settings': (BROKEN, 0), 'settings unread': (BROKEN, 0), 'pings unread': (BROKEN, 0), 'continuations': (BROKEN, 1),
	'empty continuations': (BROKEN, 0), 'bomb': (None, 1000), 'resets': (None, 1000), 'empty data': (None, 1),
	'unread answers': (None, 3000), 'half bodies': (None, 3000),
}


HALF_MAX = 96  # MiB: 30 MB of bodies are on their way and kept for the record


@pytest.mark.parametrize('how', HOSTILE_ENDS)
def test_hostile_http2(world, h2, box, how):
	done = box.py(HOSTILE, how, str(H2))
	assert done.lines[-1] == 'done', done
	pid = gateway(box)
	assert not EXACT or memory_kb(pid) < (HALF_MAX if how == 'half bodies' else 64) * 1024
	later = box.sh(f'curl -sS -m 20 --http2-prior-knowledge -o /dev/null -w "%{{http_code}} %{{size_download}}" http://allowed.test:{H2}/big')
	assert later.out == f'200 {BIG_MB << 20}', later
	assert gateway(box) == pid
	flows, requests = done.record.events('net.flow'), done.record.events('net.http')
	what, many = HOSTILE_ENDS[how]
	assert {event.get('error') for event in flows} <= {what, None, 'the program left: ECONNRESET'}, flows
	assert (done.lines[0] == 'all sent') == (what is None), done
	assert len(requests) + len(done.record.events('net.refused')) >= many


FRAMES = '''
import base64, socket, struct, sys, threading
port, n_mb = int(sys.argv[1]), int(sys.argv[2])
s = socket.create_connection(('allowed.test', port))
s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: allowed.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'
	b'Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: ' + base64.b64encode(bytes(16)) + b'\\r\\n\\r\\n')
head = b''
while b'\\r\\n\\r\\n' not in head: head += s.recv(1)
s.sendall(b'\\x82\\xff' + struct.pack('>Q', n_mb << 20) + bytes(4))
def send():
	for _ in range(n_mb): s.sendall(b'z' * (1 << 20))
threading.Thread(target=send).start()
got, other = 0, 0
while got < 10 + (n_mb << 20):
	data = s.recv(1 << 20)
	got += len(data)
	other += len(data) - data.count(b'z')
print(got, other)
'''


def test_huge_message(world, holder, box):
	done = box.py(FRAMES, str(ECHO), '150')
	assert done.out == f'{10 + (150 << 20)} 10\n', done
	assert not EXACT or memory_kb(gateway(box)) < 64 * 1024
	assert [(event['direction'], event['bytes'], event['body_truncated']) for event in box.record.events('net.ws')] == [
		('out', 150 << 20, True), ('in', 150 << 20, True)]


@pytest.fixture
def poor(online, world):
	"""A sandbox on a host that gives few descriptors."""
	program = online.program
	online.program = f'{online.cwd}/few'
	pathlib.Path(online.program).write_text('#!/bin/sh\nulimit -n 256\n'
		f'exec setpriv --bounding-set -sys_resource {program} "$@"\n')
	os.chmod(online.program, 0o755)
	try:
		made = online.create(*world.net, '--allow', 'allowed.test', '--trace')
	finally:
		online.program = program
	yield made
	made.remove()


def answers(box, url):
	return box.sh(f'curl -sS -m 20 -o /dev/null -w "%{{http_code}}" {url}').out == '200'


def test_few_descriptors(holder, poor):
	"""Fewer connections, each told; names are still found, and whoever comes later is served."""
	assert answers(poor, 'http://allowed.test/')
	crowd, pid = Crowd(poor, 200, HOLD, 'idle', 0), gateway(poor)
	refused, broken = check_told(poor, holder, crowd, 200)
	assert refused > 100 and broken == 0 and crowd.held > 20, crowd.held
	assert WHY_FLOWS in [event['reason'] for event in poor.record.events('hint')]
	assert answers(poor, 'https://allowed.test/') and gateway(poor) == pid


DATAGRAMS = f'''
import socket
address = socket.gethostbyname('allowed.test')
for _ in range(150):
	with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: s.sendto(b'x', (address, {SINK}))
'''


def test_no_descriptors_left(holder, poor):
	"""Other things took what was kept for connections: what cannot be had is told to both sides, and nothing turns in
	circles or stays half open."""
	assert answers(poor, 'http://allowed.test/')
	done = poor.py(DATAGRAMS)
	assert done.code == 0, done
	pid = gateway(poor)
	assert len(os.listdir(f'/proc/{pid}/fd')) > 240
	crowd = Crowd(poor, 60, HOLD, 'idle', 0, world_.UPSTREAM) # no descriptor for names either
	seconds = cpu_seconds(pid)
	broken, refused = crowd.end()
	left, cut = crowd.held - broken, sum(refused.values()) + broken # some connected before they were reset
	assert left < 20 and left + cut == 60, refused
	assert set(refused) <= {'ConnectionRefusedError', 'ConnectionResetError'}, refused
	harness.wait_for(lambda: holder() == 0, 'the server to be told of all ends', 60)
	harness.wait_for(lambda: outcome(poor)[2][None] == left, 'the ends of all flows')
	stood, failed, ends = outcome(poor)
	assert stood == left + ends[WHY_FLOWS] and sum(failed.values()) + ends[WHY_FLOWS] == cut
	assert WHY_FLOWS in [event['reason'] for event in poor.record.events('hint')]
	assert cpu_seconds(pid) - seconds < 1.5, 'it waits while there is nothing to do'
	told = [event for event in poor.record.events() if event.get('port') == SINK and event['kind'] in ('net.udp', 'net.connect')]
	harness.wait_for(lambda: answers(poor, 'https://allowed.test/'), 'the datagrams to be forgotten', 60)
	assert len({event['flow'] for event in told}) >= 150 - 128 and gateway(poor) == pid


REQUESTS = '''
import http.client, threading
def work():
	for _ in range(250):
		way = http.client.HTTPConnection('allowed.test', timeout=60)
		way.request('GET', '/one')
		way.getresponse().read()
		way.close()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
'''


def test_supervisor_that_is_slow(world, box):
	"""What it does not take waits, and what waits is not lost."""
	assert answers(box, 'http://allowed.test/')
	[supervisor] = box.supervisor()
	process = box.start(harness.PYTHON, '-c', REQUESTS)
	harness.wait_for(lambda: world.log('http')[20:], 'requests under way', 30)
	os.kill(supervisor, signal.SIGSTOP)
	try:
		time.sleep(5)
	finally:
		os.kill(supervisor, signal.SIGCONT)
	out, err = process.communicate(timeout=120)
	assert process.returncode == 0, err
	told = [event['url'] for event in box.record.events('net.http')]
	assert told.count('http://allowed.test/one') == 2000 == len([1 for entry in world.log('http') if entry['path'] == '/one'])
	assert box.record.events('trace.dropped') == [] and box.record.show()['complete'] is True
