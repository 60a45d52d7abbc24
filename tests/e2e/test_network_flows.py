# SPDX-License-Identifier: Apache-2.0
"""TCP and UDP through the gateway: what a program sees of each connection, what the record says of it, and that both
agree with the other end."""
import hashlib
import os
import pathlib
import signal
import subprocess

import harness
import pytest
import world as world_

ANY = f'--allow={world_.UPSTREAM}/24'
MEMORY_MAX_KB = 64 * 1024


def open_net(world, *more):
	return ('--net', 'open', *world.net, *more)


def one(events, **fields):
	"""The one event with these fields."""
	found = [event for event in events if all(event.get(name) == value for name, value in fields.items())]
	assert len(found) == 1, f'{len(found)} with {fields}: {events}'
	return found[0]


@pytest.fixture
def serve(world):
	"""Starts Python on the other side of the network; it says b'ready\\n' when it listens."""
	servers = []

	def start(code, *args):
		server = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-c', code, *map(str, args)),
			stdin=subprocess.PIPE, stdout=subprocess.PIPE)
		servers.append(server)
		assert server.stdout.readline() == b'ready\n'
		return server

	yield start
	for server in servers:
		server.kill()
		server.communicate()


def gateway(cloche, sandbox):
	"""The process id of a sandbox's gateway."""
	[supervisor] = sandbox.supervisor()
	children = pathlib.Path(f'/proc/{supervisor}/task/{supervisor}/children').read_text().split()
	found = [int(pid) for pid in children if pathlib.Path(f'/proc/{pid}/comm').read_text() == 'cloche-gateway\n']
	assert len(found) == 1, found
	return found[0]


def memory_kb(pid, name='VmHWM'):
	for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
		if line.startswith(name + ':'):
			return int(line.split()[1])
	raise AssertionError(name)


def test_how_a_connection_goes(world, online):
	"""Success, refusal and no such host reach connect(), blocking or not, as on a network without us."""
	code = '''
import errno, select, socket, sys
def name(number):
	return errno.errorcode[number] if number else 'ok'
for host, port in (('allowed.test', 80), ('allowed.test', 81), ('203.0.113.77', 80)):
	sock = socket.socket()
	print(port, name(sock.connect_ex((host, port))))
	sock = socket.socket()
	sock.setblocking(False)
	first = name(sock.connect_ex((socket.gethostbyname(host), port)))
	select.select([], [sock], [], 10)
	print(port, first, name(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))
'''
	done = online.py(code, options=open_net(world))
	assert done.lines == ['80 ok', '80 EINPROGRESS ok', '81 ECONNREFUSED', '81 EINPROGRESS ECONNREFUSED',
		'80 EHOSTUNREACH', '80 EINPROGRESS EHOSTUNREACH'], done
	results = [(event['address'], event['port'], event.get('host'), event.get('result'))
		for event in done.record.events('net.connect')]
	assert results == [(world_.UPSTREAM, 80, 'allowed.test', None)] * 2 + [
		(world_.UPSTREAM, 81, 'allowed.test', 'ECONNREFUSED')] * 2 + [('203.0.113.77', 80, None, 'EHOSTUNREACH')] * 2


def test_bytes_arrive_as_they_are(world, online):
	"""More than what is copied before it is spliced, and the end of one side while the other stays open."""
	code = '''
import hashlib, socket
data = bytes(range(251)) * 20000
sock = socket.create_connection(('allowed.test', 18081))
sock.sendall(b'\\0' + data)
sock.shutdown(socket.SHUT_WR)
print(hashlib.sha256(b'\\0' + data).hexdigest(), sock.makefile().read().strip())
'''
	done = online.py(code, options=open_net(world))
	digest, size, told = done.out.split()
	assert digest == told and int(size) == 251 * 20000 + 1, done
	[seen] = world.log('raw')
	assert (seen['n'], seen['sha']) == (int(size), digest)
	flow = one(done.record.events('net.flow'), port=18081)
	assert (flow['bytes_out'], flow['host']) == (int(size), 'allowed.test')
	assert flow['bytes_in'] == len(f'{size} {digest}\n') and 'failed' not in flow


def test_server_speaks_first(world, online, serve):
	serve('''
import socket
listener = socket.create_server(('203.0.113.10', 2525))
print('ready', flush=True)
while True:
	sock, _ = listener.accept()
	sock.sendall(b'220 hello\\r\\n')
	sock.sendall(b'got ' + sock.recv(100))
	sock.close()
''')
	code = '''
import socket
sock = socket.create_connection(('203.0.113.10', 2525))
print(sock.recv(100))
sock.sendall(b'HELO x\\r\\n')
print(sock.recv(100))
'''
	done = online.py(code, options=open_net(world))
	assert done.lines == [repr(b'220 hello\r\n'), repr(b'got HELO x\r\n')], done


def test_reset_is_passed_on(world, online, serve):
	"""The other end goes in the middle: the program sees a reset, never a clean end."""
	serve('''
import socket, struct
listener = socket.create_server(('203.0.113.10', 2526))
print('ready', flush=True)
while True:
	sock, _ = listener.accept()
	sock.recv(100)
	sock.sendall(b'half')
	sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
	sock.close()
''')
	code = '''
import socket
sock = socket.create_connection(('203.0.113.10', 2526))
sock.sendall(b'\\1')
try:
	while True:
		data = sock.recv(100)
		if not data:
			print('end')
			break
except OSError as error:
	print(error.errno)
'''
	done = online.py(code, options=open_net(world))
	assert done.lines == ['104'], done
	flow = one(done.record.events('net.flow'), port=2526)
	assert flow['failed'] and 'ECONNRESET' in flow['error']


def test_slow_reader_gets_it_all(world, online, serve):
	"""Both ends have said all they say, and a part still waits for the program to read it."""
	serve('''
import socket
listener = socket.create_server(('203.0.113.10', 2527))
print('ready', flush=True)
while True:
	sock, _ = listener.accept()
	sock.recv(100)
	sock.sendall(b'z' * 3000000)
	sock.close()
''')
	code = '''
import socket, time
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
sock.connect(('203.0.113.10', 2527))
sock.sendall(b'\\1')
sock.shutdown(socket.SHUT_WR)
time.sleep(.5)
total = 0
while data := sock.recv(20000):
	total += len(data)
	time.sleep(.0005)
print(total)
'''
	done = online.py(code, options=open_net(world))
	assert done.lines == ['3000000'], done


def test_waiting_connection_is_still_read(world, online):
	"""One on which nothing was said yet is looked at when it speaks, also after the record was brought up to date."""
	sandbox = online.create('--trace', *open_net(world))
	try:
		code = '''
import socket, sys
sock = socket.create_connection(('allowed.test', 80))
print('up', flush=True)
sys.stdin.read(1)
sock.sendall(b'GET /late HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n')
print(sock.recv(12))
'''
		process = sandbox.start(harness.PYTHON, '-c', code, options=('-i',), stdin=subprocess.PIPE)
		assert process.stdout.readline() == b'up\n'
		for _ in range(3):
			assert sandbox.sh('true').code == 0
		assert process.communicate(b'x', timeout=20)[0] == b"b'HTTP/1.1 200'\n"
		assert one(sandbox.record.events('net.http'), url='http://allowed.test/late')['status'] == 200
	finally:
		sandbox.remove()


def test_version_6(world, online, serve):
	serve('''
import socket
listener = socket.create_server(('2001:db8::10', 8006), family=socket.AF_INET6)
sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
sock.bind(('2001:db8::10', 8007))
print('ready', flush=True)
stream, _ = listener.accept()
stream.sendall(stream.recv(100).upper())
stream.close()
data, peer = sock.recvfrom(100)
sock.sendto(data.upper(), peer)
''')
	code = '''
import socket
stream = socket.create_connection(('2001:db8::10', 8006))
stream.sendall(b'\\1six')
print(stream.recv(100))
sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
sock.settimeout(5)
sock.sendto(b'six', ('2001:db8::10', 8007))
print(sock.recvfrom(100)[:2])
try:
	socket.create_connection(('2001:db8::10', 8008))
except OSError as error:
	print(error.errno)
'''
	done = online.py(code, options=open_net(world, '--allow', '2001:db8::/64'))
	assert done.lines[0] == repr(b'\1SIX') and done.lines[1].startswith("(b'SIX', ('2001:db8::10', 8007"), done
	assert done.lines[2] == '111', done
	assert one(done.record.events('net.flow'), port=8006)['address'] == '2001:db8::10'
	assert one(done.record.events('net.connect'), port=8008)['result'] == 'ECONNREFUSED'
	udp = one(done.record.events('net.udp'), port=8007)
	assert (udp['bytes_out'], udp['bytes_in'], udp['datagrams']) == (3, 3, 2)


def test_datagrams(world, online, serve):
	"""Answers come from where was asked, a closed port and QUIC are refused."""
	serve('''
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(('203.0.113.10', 9999))
print('ready', flush=True)
while True:
	data, peer = sock.recvfrom(65536)
	sock.sendto(b'%d' % len(data), peer)
''')
	code = '''
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(5)
for n in (50, 1, 20000):
	sock.sendto(b'q' * n, ('203.0.113.10', 9999))
	print(*sock.recvfrom(100))
for port in (9998, 443):
	sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	sock.settimeout(5)
	sock.connect(('203.0.113.10', port))
	sock.send(b'z' * 10)
	try:
		print(sock.recv(10))
	except OSError as error:
		print(error.errno)
'''
	done = online.py(code, options=open_net(world))
	peer = "('203.0.113.10', 9999)"
	assert done.lines == [f"b'50' {peer}", f"b'1' {peer}", f"b'20000' {peer}", '111', '111'], done
	udp = one(done.record.events('net.udp'), port=9999)
	assert (udp['bytes_out'], udp['bytes_in'], udp['datagrams']) == (20051, 8, 6)
	assert one(done.record.events('net.udp'), port=9998)['error'] == 'ECONNREFUSED'
	assert 'QUIC' in one(done.record.events('net.refused'), port=443)['reason']
	assert (world_.UPSTREAM, 'udp', 443) not in world.wire()


def test_whose_connection(world, online):
	"""Each of many processes at once is named for its own."""
	code = '''
import os, socket
children = []
for port in range(20000, 20100):
	pid = os.fork()
	if pid == 0:
		for _ in range(3):
			socket.socket().connect_ex(('203.0.113.10', port))
		os._exit(0)
	children.append((pid, port))
for pid, port in children:
	os.waitpid(pid, 0)
	print(pid, port)
'''
	done = online.py(code, options=open_net(world))
	real = {int(port): int(pid) for pid, port in (line.split() for line in done.lines)}
	seen = [(event['port'], event['pid']) for event in done.record.events('net.connect')]
	assert sorted(seen) == sorted(list(real.items()) * 3)
	assert len(real) == 100
	assert {event['exec'] for event in done.record.events('net.connect')} == {done.record.row()['exec']}


def test_refused_place(world, online):
	"""A private address: refused at once, also with the reason in errno once the kernel knows it; nothing leaves."""
	code = '''
import errno, socket, time
begin = time.monotonic()
for _ in range(2):
	print(errno.errorcode[socket.socket().connect_ex(('10.0.0.5', 80))])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.sendto(b'x', ('169.254.169.254', 80))
time.sleep(.2)
try:
	sock.connect(('169.254.169.254', 80))
except OSError as error:
	print(errno.errorcode[error.errno])
print(time.monotonic() - begin < 1)
'''
	done = online.py(code, options=open_net(world))
	assert done.lines == ['ECONNREFUSED', 'EACCES', 'EACCES', 'True'], done
	refused = [(event['address'], event['protocol'], event['stage']) for event in done.record.events('net.refused')]
	assert refused == [('10.0.0.5', 'tcp', 'connect')] * 2 + [('169.254.169.254', 'udp', 'connect')] * 2
	assert not {place[0] for place in world.wire()} & {'10.0.0.5', '169.254.169.254'}


def test_slow_reader_holds_the_sender(world, online, serve):
	"""The other end does not read: the program's send stops, and the gateway stays small."""
	serve('''
import socket, time
listener = socket.create_server(('203.0.113.10', 7070))
print('ready', flush=True)
held = []
while True:
	held.append(listener.accept()[0])
''')
	sandbox = online.create('--trace', *open_net(world))
	try:
		code = '''
import socket
socks = []
for _ in range(40):
	sock = socket.create_connection(('203.0.113.10', 7070))
	sock.settimeout(.3)
	socks.append(sock)
total = 0
for sock in socks:
	try:
		while True:
			total += sock.send(b'\\1' * 65536)
	except TimeoutError:
		pass
print(total)
'''
		done = sandbox.py(code)
		assert done.code == 0, done
		assert memory_kb(gateway(online, sandbox)) < MEMORY_MAX_KB
	finally:
		sandbox.remove()


def test_ten_thousand_at_once(world, online, serve):
	"""Each is held or refused, and both ends know."""
	serve('''
import resource, select, socket
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
listener = socket.create_server(('203.0.113.10', 7071), backlog=4096)
print('ready', flush=True)
poll, socks = select.epoll(), {}
poll.register(listener, select.EPOLLIN)
while True:
	for fd, _ in poll.poll():
		if fd == listener.fileno():
			sock = listener.accept()[0]
			socks[sock.fileno()] = sock
			poll.register(sock, select.EPOLLIN)
			continue
		data = socks[fd].recv(100)
		if data:
			socks[fd].sendall(data)
		else:
			socks.pop(fd).close()
''')
	sandbox = online.create('--trace', *open_net(world))
	try:
		code = '''
import errno, resource, socket
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
held, refused = [], 0
for _ in range(10000):
	sock = socket.socket()
	result = sock.connect_ex(('203.0.113.10', 7071))
	if result:
		refused += 1
		assert result == errno.ECONNREFUSED, result
	else:
		held.append(sock)
for sock in held:
	sock.sendall(b'\\1')
print(len(held), refused, sum(sock.recv(10) == b'\\1' for sock in held))
'''
		done = sandbox.py(code)
		held, refused, echoed = map(int, done.out.split())
		assert held + refused == 10000 and echoed == held > 4000, done
		assert memory_kb(gateway(online, sandbox)) < MEMORY_MAX_KB
		connects = sandbox.record.events('net.connect')
		assert len(connects) == 10000
		assert sum(event.get('result') == 'EMFILE' for event in connects) == refused
		again = sandbox.sh('curl -sS -o /dev/null -w "%{http_code}" http://allowed.test/')
		assert again.out == '200', again
	finally:
		sandbox.remove()


def test_gateway_dies(world, online):
	"""Fails closed, says so, and is there again at the next use."""
	sandbox = online.create('--trace', *open_net(world))
	try:
		assert sandbox.sh('curl -sS -o /dev/null http://allowed.test/').code == 0
		code = '''
import socket
sock = socket.create_connection(('allowed.test', 18081))
print('up', flush=True)
try:
	print(sock.recv(10))
except OSError as error:
	print(error.errno)
'''
		process = sandbox.start(harness.PYTHON, '-c', code)
		assert process.stdout.readline() == b'up\n'
		os.kill(gateway(online, sandbox), signal.SIGKILL)
		assert process.communicate(timeout=20)[0] in (b'104\n', b"b''\n")
		died = harness.wait_for(lambda: [event for event in sandbox.record.events('net.gateway')
			if event['what'] == 'died'], 'net.gateway')
		assert len(died) == 1 and died[0]['reason']
		done = sandbox.sh('curl -sS -m 10 -o /dev/null -w "%{http_code}" http://allowed.test/')
		assert done.out == '200', done
	finally:
		sandbox.remove()


def test_gateway_that_does_not_end(world, online):
	"""It hangs when the sandbox ends: what it would have told is missing, and the record says so."""
	sandbox = online.create('--trace', *open_net(world))
	try:
		assert sandbox.sh('curl -sS -o /dev/null http://allowed.test/').code == 0
		os.kill(gateway(online, sandbox), signal.SIGSTOP)
		assert online.call('stop', sandbox.id).code == 0
		reasons = [event['reason'] for event in sandbox.record.events('trace.blind')]
		assert 'the end of connections is not known: the gateway took too long to tell of it' in reasons, reasons
		assert sandbox.record.show()['complete'] is False
	finally:
		sandbox.remove()


def test_gateway_is_confined(world, online):
	"""Another uid, no rights, a filter, not to be looked into."""
	sandbox = online.create('--trace', *open_net(world))
	try:
		assert sandbox.sh('curl -sS -o /dev/null http://allowed.test/').code == 0
		pid = gateway(online, sandbox)
		for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
			status = dict(line.split(':\t', 1) for line in (task / 'status').read_text().splitlines() if ':\t' in line)
			uid = {int(word) for word in status['Uid'].split()}
			assert len(uid) == 1 and 0 not in uid
			assert {int(status[name], 16) for name in ('CapPrm', 'CapEff', 'CapInh', 'CapAmb')} == {0}
			assert (status['NoNewPrivs'], status['Seccomp']) == ('1', '2')
		inside = sandbox.sh('cat /proc/self/uid_map').out.split()
		assert not int(inside[1]) <= uid.pop() < int(inside[1]) + int(inside[2])
		assert os.stat(f'/proc/{pid}/mem').st_uid == 0 # not dumpable
	finally:
		sandbox.remove()


def test_digest_of_a_download(world, online):
	done = online.sh('curl -sS http://allowed.test/bytes/3000000 | sha256sum', options=open_net(world))
	assert done.out.split()[0] == hashlib.sha256(b'z' * 3000000).hexdigest()
	flow = one(done.record.events('net.flow'), port=80)
	assert 3000000 < flow['bytes_in'] < 3000500
