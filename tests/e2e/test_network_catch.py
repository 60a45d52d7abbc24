# SPDX-License-Identifier: Apache-2.0
"""Everything that leaves a sandbox is caught, told with its owner, and goes through the gateway or nowhere."""
import collections
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess

import pytest

from harness import PYTHON, kill_and_wait, wait_for
from world import UPSTREAM, UPSTREAM6

RAW = 18081
CLOSED = 18999

# What every script inside begins with.
INSIDE = '''
import errno, os, select, socket, sys, time

def reach(address, port, kind=socket.SOCK_STREAM, patience=10):
	"""The name of the errno of connect(), or of what came instead of an answer."""
	s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, kind)
	s.settimeout(patience)
	try:
		s.connect((address, port))
	except OSError as error:
		return errno.errorcode.get(error.errno, str(error))
	return 'ok'

def start(address, port):
	"""A connect() that does not wait: the socket."""
	s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
	s.setblocking(False)
	assert s.connect_ex((address, port)) == errno.EINPROGRESS
	return s

def result(s, patience=10):
	poll = select.poll()
	poll.register(s, select.POLLOUT)
	if not poll.poll(patience * 1000):
		return 'nothing'
	code = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
	return errno.errorcode[code] if code else 'ok'
'''


@pytest.fixture
def run(online, world):
	"""Runs a script inside with the network of the tests."""
	def call(script, *args, options=('--net', 'open')):
		return online.py(INSIDE + script, *args, options=(*world.net, *options))
	return call


def opening(cloche, world):
	"""What a fixture yields: makes sandboxes with that network, which stay for the test."""
	made = []

	def make(*options):
		made.append(cloche.create('--trace', '--net', 'open', *world.net, *options))
		return made[-1]
	yield make
	for box in made:
		box.remove()


@pytest.fixture
def open_box(online, world):
	yield from opening(online, world)


def children_of(pid):
	return [int(child) for task in pathlib.Path(f'/proc/{pid}/task').iterdir()
		for child in (task / 'children').read_text().split()]


def gateways_of(box):
	[supervisor] = box.supervisor()
	return [pid for pid in children_of(supervisor)
		if pathlib.Path(f'/proc/{pid}/comm').read_text().strip() == 'cloche-gateway']


def status_of(pid):
	return dict(line.split(':\t', 1) for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines()
		if ':\t' in line)


def test_every_port_of_both_families_reaches_upstream_or_is_refused_as_there(run, world):
	done = run('''
for address in sys.argv[1:]:
	for port in (80, 443, 18081, 1, 18999, 65535):
		print(address, port, reach(address, port), result(start(address, port)))
''', UPSTREAM, UPSTREAM6)
	assert done.code == 0, done
	serves = {UPSTREAM: (80, 443, RAW), UPSTREAM6: ()}
	for line in done.lines:
		address, port, blocking, polled = line.split()
		want = 'ok' if int(port) in serves[address] else 'ECONNREFUSED'
		assert (blocking, polled) == (want, want), line
	told = collections.Counter((event['address'], event['port'], event.get('result', 'ok'))
		for event in done.record.events('net.connect'))
	assert told == collections.Counter({(address, port, 'ok' if port in serves[address] else 'ECONNREFUSED'): 2
		for address in serves for port in (80, 443, RAW, 1, CLOSED, 65535)})
	assert {entry[1:] for entry in world.wire() if entry[0] == UPSTREAM} >= {('tcp', 80), ('tcp', RAW), ('tcp', 65535)}


def test_datagrams_go_out_and_are_told_with_their_owner(run, world):
	done = run('''
for address in sys.argv[1:]:
	s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
	s.sendto(b'hello', (address, 5001))
	s = socket.socket(s.family, socket.SOCK_DGRAM)
	s.connect((address, 5002))
	s.send(b'hello')
print(os.getpid())
''', UPSTREAM, UPSTREAM6)
	assert done.code == 0, done
	wait_for(lambda: {(UPSTREAM, 'udp', 5001), (UPSTREAM, 'udp', 5002)} <= world.wire(), 'the datagrams at upstream')
	told = {(event['address'], event['port'], event['pid']) for event in done.record.events()
		if event['kind'] in ('net.connect', 'net.udp') and event.get('protocol', 'udp') == 'udp'}
	pid = int(done.out)
	assert told == {(address, port, pid) for address in (UPSTREAM, UPSTREAM6) for port in (5001, 5002)}


def test_datagrams_between_the_same_ports_of_both_ends(run, world):
	done = run('''
for family, own, other in ((socket.AF_INET, '0.0.0.0', sys.argv[1]), (socket.AF_INET6, '::', sys.argv[2])):
	s = socket.socket(family, socket.SOCK_DGRAM)
	s.bind((own, 54))
	s.settimeout(10)
	for i in range(3):
		s.sendto(bytes.fromhex('abcd01000001000000000000') + b'\\x07allowed\\x04test\\x00\\x00\\x01\\x00\\x01', (other, 54))
		if other == sys.argv[1]:
			answer, peer = s.recvfrom(4096)
			print(*peer, answer[3] & 15)
	s.close()
''', UPSTREAM, UPSTREAM6)
	assert done.lines == [f'{UPSTREAM} 54 2'] * 3, done
	assert {(event['address'], event['port'], event.get('result')) for event in done.record.events('net.connect')} == {
		(UPSTREAM, 54, None), (UPSTREAM6, 54, None)}
	wait_for(lambda: (UPSTREAM6, 'udp', 54) in world.wire(), 'the datagrams of IPv6 at upstream')


def test_command_that_ends_at_once_has_its_last_packet_in_its_slice(open_box):
	box = open_box()
	for _ in range(3):
		done = box.py('''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(bytes.fromhex('abcd01000001000000000000') + b'\\x07allowed\\x04test\\x00\\x00\\x01\\x00\\x01', ('10.0.0.53', 53))
''')
		assert done.code == 0, done
		assert done.record.row().get('slice_complete', True) is True
		[event] = done.record.events('net.dns')
		assert event['name'] == 'allowed.test' and event['exec'] == done.record.exec_id


@pytest.mark.parametrize('address, port, kind', [
	(UPSTREAM, RAW, 'SOCK_STREAM'), (UPSTREAM, 5003, 'SOCK_DGRAM'), (UPSTREAM6, RAW, 'SOCK_STREAM')])
def test_what_is_denied_fails_quickly_and_is_told_each_time(run, world, address, port, kind):
	rule = f'[{address}]:{port}' if ':' in address else f'{address}:{port}'
	done = run('''
for i in range(5):
	s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, getattr(socket, sys.argv[3]))
	s.settimeout(5)
	begin = time.monotonic()
	try:
		s.connect((sys.argv[1], int(sys.argv[2])))
		s.send(b'x')
		s.recv(1)
		print('ok')
	except OSError as error:
		print(errno.errorcode.get(error.errno, error), time.monotonic() - begin < 1)
	time.sleep(0.1)
''', address, str(port), kind, options=('--net', 'open', '--deny', rule))
	assert done.code == 0 and len(done.lines) == 5, done
	assert set(done.lines[1:]) == {'EACCES True'}, done
	assert done.lines[0] in ('EACCES True', 'ECONNREFUSED True'), done
	refused = done.record.events('net.refused')
	assert len(refused) == 5 and {(event['address'], event['port']) for event in refused} == {(address, port)}
	assert {event['pid'] for event in refused} != {0} and all(event['rule'] and event['reason'] for event in refused)
	assert (address, 'tcp' if kind == 'SOCK_STREAM' else 'udp', port) not in world.wire()


def test_groups_of_receivers_are_refused(run):
	done = run('''
for address in ('224.0.0.251', 'ff02::fb', '255.255.255.255'):
	s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
	s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
	try:
		s.sendto(b'x', (address, 5353))
		print('sent')
	except OSError as error:
		print(errno.errorcode[error.errno])
''')
	assert done.lines == ['EPERM'] * 3, done
	assert {event['address'] for event in done.record.events('net.refused')} == {
		'224.0.0.251', 'ff02::fb', '255.255.255.255'}


def test_each_of_many_connects_at_once_is_its_process_s(run):
	n_processes, n_each = 20, 30
	done = run('''
pids = []
for i in range(int(sys.argv[2])):
	pid = os.fork()
	if pid == 0:
		sockets = [start(sys.argv[1], 20000 + i) for k in range(int(sys.argv[3]))]
		os._exit(0 if all(result(s) == 'ECONNREFUSED' for s in sockets) else 1)
	print(pid, 20000 + i, flush=True)
assert all(os.wait()[1] == 0 for i in range(int(sys.argv[2])))
''', UPSTREAM, str(n_processes), str(n_each))
	assert done.code == 0, done
	want = {int(port): int(pid) for pid, port in (line.split() for line in done.lines)}
	told = collections.Counter((event['port'], event.get('pid'), event['exec']) for event in done.record.events('net.connect'))
	[exec_id] = {event['exec'] for event in done.record.events('exec.start')}
	assert told == collections.Counter({(port, pid, exec_id): n_each for port, pid in want.items()})


def test_more_owners_than_there_is_room_for_are_looked_up(run):
	n_processes, n_each = 5, 1400  # of 4,096 that are noted
	done = run('''
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
ready, go = os.pipe(), os.pipe()
for i in range(int(sys.argv[2])):
	if os.fork() == 0:
		os.close(go[1])
		sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for k in range(int(sys.argv[3]))]
		for s in sockets:
			s.sendto(b'x', (sys.argv[1], 20000 + i))
			time.sleep(0.001)
		os.write(ready[1], b'x')
		os.read(go[0], 1)
		os._exit(0)
	assert os.read(ready[0], 1)
print('sent', flush=True)
time.sleep(1)
os.close(go[1])
assert all(os.wait()[1] == 0 for i in range(int(sys.argv[2])))
''', UPSTREAM, str(n_processes), str(n_each))
	assert done.code == 0, done
	told = [event for event in done.record.events('net.connect') if event['port'] >= 20000]
	assert len([event for event in told if event['port'] == 20000 + n_processes - 1]) > 100  # datagrams may be lost
	assert all(event.get('pid') and event.get('exec') for event in told)
	assert len({(event['pid'], event['port']) for event in told}) == n_processes


def test_loopback_and_own_addresses_work_unseen(run):
	done = run('''
for address in ('127.0.0.1', '127.99.98.97', '::1', '10.0.0.2', 'fd00::2'):
	server = socket.create_server((address, 0), family=socket.AF_INET6 if ':' in address else socket.AF_INET)
	client = socket.create_connection(server.getsockname()[:2])
	there, peer = server.accept()
	client.sendall(b'x' * 100000)
	client.shutdown(socket.SHUT_WR)
	got = 0
	while data := there.recv(65536):
		got += len(data)
	a, b = (socket.socket(server.family, socket.SOCK_DGRAM) for i in range(2))
	a.bind((address, 0))
	b.sendto(b'y', a.getsockname())
	print(got, a.recv(10), reach(address, 9))
# Names servers for itself, too, at the usual port.
for address, kind in (('0.0.0.0', socket.SOCK_DGRAM), ('0.0.0.0', socket.SOCK_STREAM), ('127.0.0.1', socket.SOCK_DGRAM)):
	s = socket.socket(socket.AF_INET, kind)
	s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
	s.bind((address, 53))
''')
	assert done.code == 0, done
	assert set(done.lines) == {"100000 b'y' ECONNREFUSED"} and len(done.lines) == 5
	kinds = {event['kind'] for event in done.record.events() if event['kind'].startswith('net.')}
	assert kinds == {'net.gateway', 'net.listen'}


def test_what_is_listened_on_is_told(run):
	done = run('''
sockets = [socket.create_server(('127.0.0.1', 8081)), socket.create_server(('::', 8082), family=socket.AF_INET6), socket.create_server(('', 8083))]
print(os.getpid())
''')
	assert done.code == 0, done
	[exec_id] = {event['exec'] for event in done.record.events('exec.start')}
	told = {(event['protocol'], event['address'], event['port'], event['pid'], event['exec']) for event in done.record.events('net.listen')}
	assert told == {('tcp', address, port, int(done.out), exec_id) for address, port in (('127.0.0.1', 8081), ('::', 8082), ('0.0.0.0', 8083))}


def test_ping_does_not_lie(run):
	done = run('''
for family, protocol in ((socket.AF_INET, socket.IPPROTO_ICMP), (socket.AF_INET6, socket.IPPROTO_ICMPV6)):
	for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
		try:
			s = socket.socket(family, kind, protocol)
			s.settimeout(1)
			s.sendto(b'\\x08\\0\\0\\0\\0\\1\\0\\1', ('203.0.113.10' if family == socket.AF_INET else '2001:db8::10', 0))
			print('answered', s.recv(100))
		except OSError as error:
			print('no')
''')
	assert done.lines == ['no'] * 4, done


def test_root_inside_cannot_undo_it(run, world):
	done = run('''
import fcntl, struct
def netlink(kind, flags, payload):
	s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
	s.send(struct.pack('=IHHII', 16 + len(payload), kind, 5 | flags, 1, 0) + payload)
	return -struct.unpack_from('=i', s.recv(4096), 16)[0]
down = netlink(16, 0, struct.pack('=BBHiII', 0, 0, 0, 1, 0, 1))
route = netlink(25, 0, struct.pack('=BBBBBBBBI', socket.AF_INET, 0, 0, 0, 255, 0, 0, 2, 0))
address = netlink(20, 0x400, struct.pack('=BBBBI', socket.AF_INET, 24, 0, 0, 1) + struct.pack('=HH4s', 8, 2, bytes([10, 9, 9, 9])))
print([errno.errorcode.get(code, code) for code in (down, route, address)])
for path in ('ip_unprivileged_port_start', 'icmp_echo_ignore_all', 'ping_group_range'):
	try:
		open('/proc/sys/net/ipv4/' + path, 'w').write('1')
		print('written')
	except OSError:
		print('kept')
try:
	socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
	print('open')
except OSError:
	print('kept')
print(os.getuid(), reach(sys.argv[1], 18081), reach('203.0.113.9', 1))
''', UPSTREAM, options=('--net', 'open', '--deny', '203.0.113.9'))
	assert done.lines == ["['EPERM', 'EPERM', 'EPERM']", *['kept'] * 4, '0 ok ECONNREFUSED'], done
	assert not [entry for entry in world.wire() if entry[0] == '203.0.113.9']


def test_command_without_a_network_starts_no_gateway(open_box):
	box = open_box()
	assert box.sh('echo hello').lines == ['hello']
	assert gateways_of(box) == [] and box.record.events('net.gateway') == []


def test_none_means_loopback_alone(cloche):
	done = cloche.py(INSIDE + 'print(reach("127.0.0.1", 9), reach(sys.argv[1], 80), reach("::1", 9))', UPSTREAM,
		options=('--net', 'none'))
	assert done.lines == ['ECONNREFUSED ENETUNREACH ECONNREFUSED'], done


def test_gateway_holds_no_rights_and_an_id_of_its_own(open_box):
	boxes = [open_box(), open_box()]
	ids = set()
	for box in boxes:
		assert box.py(INSIDE + f'print(reach("{UPSTREAM}", {RAW}))').lines == ['ok']
		[pid] = gateways_of(box)
		status = status_of(pid)
		assert {int(status[name], 16) for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')} == {0}
		assert (status['NoNewPrivs'], status['Seccomp']) == ('1', '2')
		[uid] = set(status['Uid'].split())
		assert set(status['Gid'].split()) == {uid} and status['Groups'].strip() == ''
		base = int(pathlib.Path(f'/proc/{init_of(box)}/uid_map').read_text().split()[1])
		assert int(uid) > 65536 and not base <= int(uid) < base + 65536
		ids.add(uid)
	assert len(ids) == 2


def init_of(box):
	[supervisor] = box.supervisor()
	[pid] = [pid for pid in children_of(supervisor) if status_of(pid)['NSpid'].split()[1:] == ['1']]
	return pid


HOLD_ON = INSIDE + '''
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.sendall(b'first')
print('connected', flush=True)
s.settimeout(20)
try:
	while s.recv(4096):
		pass
	print('end of file')
except OSError as error:
	print(errno.errorcode.get(error.errno, error))
'''


def test_gateway_that_is_killed_resets_and_the_next_use_starts_another(open_box):
	box = open_box()
	held = box.start(PYTHON, '-c', HOLD_ON, UPSTREAM, str(RAW))
	assert held.stdout.readline() == b'connected\n'
	[first] = gateways_of(box)
	kill_and_wait(first)
	assert held.communicate(timeout=20)[0] == b'ECONNRESET\n'
	assert box.py(INSIDE + f'print(reach("{UPSTREAM}", {RAW}))').lines == ['ok']
	[second] = gateways_of(box)
	assert second != first
	told = [(event['what'], event.get('reason')) for event in box.record.events('net.gateway')]
	assert told == [('started', None), ('died', 'signal 9 ended it'), ('started', None)]


def test_gateway_that_stands_still_leaves_the_slice_incomplete_and_said(open_box):
	box = open_box()
	assert box.py(INSIDE + f'print(reach("{UPSTREAM}", {RAW}))').lines == ['ok']
	[pid] = gateways_of(box)
	os.kill(pid, signal.SIGSTOP)
	try:
		done = box.sh('true')
		assert done.code == 0 and done.duration_s < 5
		assert done.record.row()['slice_complete'] is False
	finally:
		os.kill(pid, signal.SIGCONT)
	assert box.sh('true').record.row().get('slice_complete', True) is True


def test_gateway_dies_with_its_supervisor(own_online, world):
	box = own_online.create('--trace', '--net', 'open', *world.net)
	assert box.py(INSIDE + f'print(reach("{UPSTREAM}", {RAW}))').lines == ['ok']
	[gateway], [supervisor] = gateways_of(box), box.supervisor()
	kill_and_wait(supervisor)
	wait_for(lambda: not pathlib.Path(f'/proc/{gateway}').exists(), 'the end of the gateway')
	assert own_online.call('gc').code == 0
	assert [event['what'] for event in box.record.events('net.gateway')] == ['started']


@pytest.fixture
def own_online(own_cloche, world):
	cloche = world.cloche(own_cloche.state, own_cloche.run_dir, own_cloche.cwd)
	yield cloche


def test_paused_sandbox_keeps_its_connections(open_box):
	box = open_box()
	held = box.start(PYTHON, '-c', HOLD_ON.replace("s.recv(4096)", "s.recv(4096) and False"), UPSTREAM, str(RAW))
	assert held.stdout.readline() == b'connected\n'
	assert box.cloche.call('pause', box.id).code == 0
	assert box.cloche.call('wake', box.id).code == 0
	assert box.py(INSIDE + f'print(reach("{UPSTREAM}", {RAW}))').lines == ['ok']
	assert len(gateways_of(box)) == 1
	held.kill()
	held.wait()


def request(box, **what):
	"""A request on the sandbox's control socket: the answer."""
	text = json.dumps(what).encode()
	with socket.socket(socket.AF_UNIX) as sock:
		folder = os.open(box.cloche.state / 'sandboxes' / box.id, os.O_PATH)
		try:
			sock.connect(f'/proc/self/fd/{folder}/control.sock')
		finally:
			os.close(folder)
		sock.sendall(struct.pack('<IB3x', len(text), ord('J')) + text)
		data = b''
		while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:4], 'little'):
			data += sock.recv(65536)
	return json.loads(data[8:])


def reach(box, address, port):
	done = box.py(INSIDE + f'print(reach("{address}", {port}))')
	assert done.code == 0, done
	return done.out.strip()


def test_rules_are_replaced_while_it_runs(open_box):
	box = open_box('--deny', f'{UPSTREAM}:{RAW}')
	assert reach(box, UPSTREAM, RAW) in ('ECONNREFUSED', 'EACCES') and reach(box, UPSTREAM, 80) == 'ok'
	answer = request(box, request='net-rules')
	assert answer['ok'] and answer['network']['deny'] == [f'{UPSTREAM}:{RAW}']
	answer = request(box, request='net-rules', replace=True, deny=[f'{UPSTREAM}:80'], actor='somebody')
	assert answer['ok'] and answer['network']['deny'] == [f'{UPSTREAM}:80']
	assert reach(box, UPSTREAM, RAW) == 'ok' and reach(box, UPSTREAM, 80) in ('ECONNREFUSED', 'EACCES')
	assert request(box, request='net-rules', deny=[f'{UPSTREAM}:{RAW}'])['ok']
	assert reach(box, UPSTREAM, RAW) in ('ECONNREFUSED', 'EACCES')
	told = [(event['rules'], event.get('actor')) for event in box.record.events('net.rules')]
	assert told[1:] == [([f'deny {UPSTREAM}:80'], 'somebody'), ([f'deny {UPSTREAM}:80', f'deny {UPSTREAM}:{RAW}'], None)]
	assert told[0][0] == [f'deny {UPSTREAM}:{RAW}']


@pytest.mark.parametrize('body', [{'allow': ['a b c']}, {'allow': 'x'}, {'deny': [1]}, {'deny': ['@nosuchset']},
	{'allow': [f'{UPSTREAM}:99999']}])
def test_malformed_rules_change_nothing(open_box, body):
	box = open_box()
	before = request(box, request='net-rules')
	answer = request(box, request='net-rules', **body)
	assert answer['ok'] is False and answer['error'] and answer['errno'] in ('EINVAL', 'ENOENT')
	assert request(box, request='net-rules') == before and box.record.events('net.rules') == []


def test_nobody_to_ask_means_no(online, world):
	box = online.create('--trace', '--net', 'allow', '--ask', *world.net)
	try:
		before = len(box.record.events('net.asked'))
		process = box.cloche.start('exec', '--detach', box.id, '--', PYTHON, '-c', INSIDE + f'reach("{UPSTREAM}", {RAW})')
		process.communicate(timeout=20)
		[asked] = wait_for(lambda: box.record.events('net.asked')[before:], 'the answer')
		assert (asked['answer'], asked['address'], asked['port']) == ('refused', UPSTREAM, RAW) and asked['reason']
	finally:
		box.remove()


def test_host_without_hooks_catches_all_the_same_and_says_what_it_cannot_tell(online, world):
	done = online.py(INSIDE + f'print(reach("{UPSTREAM}", {RAW}), reach("{UPSTREAM}", {CLOSED})); print(os.getpid())',
		options=('--net', 'open', *world.net), env={'CLOCHE_NO_NET_HOOKS': '1'})
	assert done.lines[0] == 'ok ECONNREFUSED', done
	[blind] = done.record.events('trace.blind')
	assert blind['reason'].startswith('whose a connection is, is looked up afterwards and may be missing')
	pid = int(done.lines[1])
	assert {(event['port'], event.get('pid')) for event in done.record.events('net.connect')} == {(RAW, pid), (CLOSED, pid)}
	assert done.record.show()['complete'] is False


def test_doctor_says_whether_the_network_can_be_caught(own_cloche):
	told = {row['what']: row for row in json.loads(own_cloche.call('doctor', '--json').out)}
	for what in ('network (sk_lookup)', 'network (nftables)', 'network (cgroup hooks)'):
		assert told[what]['ok'] is True and told[what]['required'] is False and told[what]['detail']


def test_gateway_that_is_killed_leaves_no_refusal_behind(open_box):
	box = open_box('--deny', f'{UPSTREAM}:{RAW}')
	wait_for(lambda: reach(box, UPSTREAM, RAW) == 'EACCES', 'a refusal by the hook')
	[gateway] = gateways_of(box)
	kill_and_wait(gateway)
	wait_for(lambda: [event['what'] for event in box.record.events('net.gateway')][-1] == 'died', 'its death in the record')
	assert request(box, request='net-rules', replace=True, deny=[])['network']['deny'] == []
	assert reach(box, UPSTREAM, RAW) == 'ok'


def test_refusals_that_found_no_room_are_counted_to_the_last_one(open_box):
	box = open_box()
	flood = INSIDE + '''
for _ in range(int(sys.argv[1])):
	assert reach('10.1.2.3', 8080) == 'EACCES'
'''
	assert box.exec(PYTHON, '-c', INSIDE + "print(reach('10.1.2.3', 8080))").out == 'ECONNREFUSED\n'  # judged once
	[gateway] = gateways_of(box)
	os.kill(gateway, signal.SIGSTOP)
	try:
		assert box.exec(PYTHON, '-c', flood, '5000').code == 0
	finally:
		os.kill(gateway, signal.SIGCONT)
	box.sh('true')

	def told():
		return [event for event in box.record.events('net.refused') if event['address'] == '10.1.2.3']

	[lost] = box.record.events('trace.dropped')
	assert lost['source_lost'] == 'network' and lost['count'] > 0
	wait_for(lambda: len(told()) + lost['count'] == 5001, 'what found room to be told')
	show = box.record.show()
	assert (show['complete'], show['dropped']) == (False, lost['count'])


MANY = INSIDE + '''
held = []
for _ in range(int(sys.argv[1])):
	s = socket.socket()
	s.setblocking(False)
	s.connect_ex((sys.argv[2], int(sys.argv[3])))
	if sys.argv[4] == 'close': s.close()
	else: held.append(s)
print('tried', flush=True)
if held:
	sys.stdin.readline()
	import select
	poll = select.poll()
	for s in held: poll.register(s, select.POLLOUT)
	end = time.monotonic() + 30
	while held and time.monotonic() < end:
		ready = {fd for fd, _ in poll.poll(1000)}
		for fd in ready: poll.unregister(fd)
		held = [s for s in held if s.fileno() not in ready]
	print(len(held))
'''


def test_connections_given_up_before_they_were_told_are_counted(open_box):
	"""The ring is full, and nobody sends their SYN again."""
	box = open_box()
	assert reach(box, UPSTREAM, RAW) == 'ok'
	[gateway] = gateways_of(box)
	os.kill(gateway, signal.SIGSTOP)
	try:
		assert box.exec(PYTHON, '-c', MANY, '3000', UPSTREAM, str(CLOSED), 'close').code == 0
	finally:
		os.kill(gateway, signal.SIGCONT)
	[lost] = box.record.events('trace.dropped')
	assert lost['source_lost'] == 'network' and lost['count'] > 0
	wait_for(lambda: len([event for event in box.record.events('net.connect') if event['port'] == CLOSED]) + lost['count'] == 3000,
		'what found room to be told')
	assert box.record.show()['complete'] is False


def test_connections_that_are_told_late_are_not_lost(open_box):
	"""The ring is full, and their SYNs come again."""
	box = open_box()
	assert reach(box, UPSTREAM, RAW) == 'ok'
	[gateway] = gateways_of(box)
	os.kill(gateway, signal.SIGSTOP)
	try:
		process = box.start(PYTHON, '-c', MANY, '2000', UPSTREAM, str(CLOSED), 'hold', stdin=subprocess.PIPE)
		assert process.stdout.readline() == b'tried\n'
	finally:
		os.kill(gateway, signal.SIGCONT)
	out, err = process.communicate(b'\n', timeout=60)
	assert (out, process.returncode) == (b'0\n', 0), err
	assert len([event for event in box.record.events('net.connect') if event['port'] == CLOSED]) == 2000
	assert box.record.events('trace.dropped') == [] and box.record.show()['complete'] is True
