# SPDX-License-Identifier: Apache-2.0
"""A host that loads no programs for the network: nftables rules catch in their place, the same gateway governs, and the
record says what it cannot tell."""
import collections
import errno
import json
import os
import pathlib
import signal

import deny
import pytest
from harness import kill_and_wait, wait_for
from test_network_catch import CLOSED, INSIDE, RAW, gateways_of, init_of, opening, status_of
from world import INWARD, UPSTREAM, UPSTREAM6, Inside

# The whole call as in a container without CAP_BPF; only the tie to a namespace or group, which tracing does without; a
# kernel that was built without it.
WAYS = {
	'no bpf': deny.without(bpf=errno.EPERM),
	'no links': deny.without_command('bpf', deny.BPF_LINK_CREATE, errno.EPERM),
	'no call': deny.without(bpf=errno.ENOSYS),
}
CAUGHT = 'the network is caught by nftables'


class Degraded(Inside):
	def __init__(self, world, way, *args):
		super().__init__(world, *args)
		self.way = way

	def start(self, *args, **how):
		return super().start(*args, preexec_fn=WAYS[self.way], **how)


@pytest.fixture(scope='module', params=WAYS)
def module_degraded(request, world, state, run_dir, tmp_path_factory):
	cloche = Degraded(world, request.param, state, run_dir, tmp_path_factory.mktemp('module'))
	yield cloche
	cloche.check_clean()


@pytest.fixture
def degraded(module_degraded, world, tmp_path):
	project = tmp_path / 'project'
	project.mkdir()
	module_degraded.cwd = project
	world.clear()
	return module_degraded


@pytest.fixture
def run(degraded, world):
	def call(script, *args, options=('--net', 'open')):
		return degraded.py(INSIDE + script, *args, options=('--trace', *world.net, *options))
	return call


@pytest.fixture
def open_box(degraded, world):
	yield from opening(degraded, world)


def arrived(world):
	return {entry for entry in world.wire() if entry[1] in ('tcp', 'udp') and entry[2] not in (53, 54)}


def test_requests_work_and_are_recorded_with_their_owner(degraded, world):
	done = degraded.sh('''
		for url in http://allowed.test/ https://allowed.test/; do
			curl -sS -m 20 -o /dev/null -w '%{http_code} ' $url & echo $!; wait
		done''', options=('--trace', '--net', 'open', *world.net))
	assert done.code == 0, done
	pids = [int(line.split()[-1]) for line in done.lines if line.split()[-1] != '200']
	[exec_id] = {event['exec'] for event in done.record.events('exec.start')}
	told = [(event['url'], event['status'], event.get('pid'), event['exec']) for event in done.record.events('net.http')]
	assert told == [(f'{scheme}://allowed.test/', 200, pid, exec_id) for scheme, pid in zip(('http', 'https'), pids)], done
	assert [entry['host'] for entry in world.log('http')] == ['allowed.test'] * 2
	assert {event.get('pid') for event in done.record.events('net.dns')} == set(pids)


def test_record_summary_and_doctor_say_so(degraded, world):
	done = degraded.sh('true', options=('--trace', '--net', 'open', *world.net))
	[blind] = [event for event in done.record.events('trace.blind') if event['reason'].startswith(CAUGHT)]
	assert 'may be missing' in blind['reason'] and 'what listens is not told' in blind['reason']
	show = done.record.show()
	assert show['complete'] is False and blind['reason'] in json.dumps(show['observed']['blind_reasons'])
	assert CAUGHT in done.err
	told = {row['what']: row for row in json.loads(degraded.call('doctor', '--json').out)}
	assert told['network (sk_lookup)']['ok'] is False
	assert told['tracing (eBPF)']['ok'] is (degraded.way == 'no links')
	assert told['network (nftables)']['ok'] is True and 'takes the place' in told['network (nftables)']['detail']


def test_every_port_of_both_families_reaches_upstream_or_is_refused_as_there(run, world):
	done = run('''
for address in sys.argv[1:]:
	for port in (80, 443, 18081, 1, 18999, 65535):
		print(address, port, reach(address, port), result(start(address, port)))
''', UPSTREAM, UPSTREAM6)
	assert done.code == 0, done
	serves = {UPSTREAM: (80, 443, RAW), UPSTREAM6: ()}
	want = {(address, port): 'ok' if port in serves[address] else 'ECONNREFUSED'
		for address in serves for port in (80, 443, RAW, 1, CLOSED, 65535)}
	assert {(address, int(port), blocking, polled) for address, port, blocking, polled in map(str.split, done.lines)} == {
		(*key, value, value) for key, value in want.items()}
	told = collections.Counter((event['address'], event['port'], event.get('result', 'ok'))
		for event in done.record.events('net.connect'))
	assert told == collections.Counter({(*key, value): 2 for key, value in want.items()})


def test_each_of_many_connects_at_once_is_its_process_s(run):
	n_processes, n_each = 10, 20
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
	[exec_id] = {event['exec'] for event in done.record.events('exec.start')}
	told = collections.Counter((event['port'], event.get('pid'), event['exec']) for event in done.record.events('net.connect'))
	assert told == collections.Counter({(port, pid, exec_id): n_each for port, pid in want.items()})


ASK = '''
def ask(address, port, kind=socket.SOCK_DGRAM):
	"""Whom an answer to a question for allowed.test comes from, and its code."""
	message = bytes.fromhex('abcd01000001000000000000') + b'\\x07allowed\\x04test\\x00\\x00\\x01\\x00\\x01'
	s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, kind)
	s.settimeout(10)
	if kind == socket.SOCK_STREAM:
		s.connect((address, port))
		s.sendall(len(message).to_bytes(2, 'big') + message)
		return s.getpeername()[0], s.recv(4096)[5] & 15
	s.sendto(message, (address, port))
	answer, peer = s.recvfrom(4096)
	return peer[0], answer[3] & 15
'''


def test_names_are_answered_by_the_address_that_was_asked(run, world):
	servers = ('10.0.0.53', '9.9.9.9', '2001:db8::53')
	done = run(ASK + '''
for address in sys.argv[1:]:
	print(*ask(address, 53), *ask(address, 53, socket.SOCK_STREAM))
print(os.getpid())
''', *servers)
	assert done.lines[:-1] == [f'{address} 0 {address} 0' for address in servers], done
	told = {(event['server'], event['protocol'], event.get('pid')) for event in done.record.events('net.dns')}
	assert told == {(address, protocol, int(done.lines[-1])) for address in servers for protocol in ('udp', 'tcp')}


def test_datagrams_go_out_and_answers_come_back(run, world):
	done = run(ASK + '''
s = [ask(sys.argv[1], 54) for i in range(2)]
connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connected.connect((sys.argv[1], 54))
connected.settimeout(10)
for i in range(3):
	connected.send(bytes.fromhex('abcd01000001000000000000') + b'\\x07allowed\\x04test\\x00\\x00\\x01\\x00\\x01')
	s.append(connected.recv(4096)[3] & 15)
print(*s)
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
six.sendto(b'hello', (sys.argv[2], 5001))
print(os.getpid())
time.sleep(0.5)
''', UPSTREAM, UPSTREAM6)
	assert done.lines[0] == f"('{UPSTREAM}', 2) ('{UPSTREAM}', 2) 2 2 2", done
	told = [(event['address'], event['port'], event.get('pid')) for event in done.record.events('net.connect')]
	assert told == [*[(UPSTREAM, 54, int(done.lines[1]))] * 3, (UPSTREAM6, 5001, int(done.lines[1]))]
	flows = [event for event in done.record.events('net.udp') if event['address'] == UPSTREAM]
	assert sorted(event['datagrams'] for event in flows) == [2, 2, 6]


def test_what_is_denied_is_refused_quickly_and_told_each_time(run, world):
	done = run('''
def send(address, port):
	s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
	s.settimeout(10)
	s.connect((address, port))
	s.send(b'x')
	try:
		return s.recv(1)
	except OSError as error:
		return errno.errorcode.get(error.errno, error)
for what, address, port in ((reach, sys.argv[1], 18081), (send, sys.argv[1], 5003), (send, sys.argv[1], 443), (send, sys.argv[2], 443)):
	for i in range(3):
		begin = time.monotonic()
		print(what(address, port), time.monotonic() - begin < 1)
''', UPSTREAM, UPSTREAM6, options=('--net', 'open', '--deny', f'{UPSTREAM}:18081', '--deny', f'{UPSTREAM}:5003'))
	assert done.lines == ['ECONNREFUSED True'] * 12, done
	told = collections.Counter((event['address'], event['protocol'], event['port'], bool(event['rule'] and event['reason'] and event['pid']))
		for event in done.record.events('net.refused'))
	assert told == {(UPSTREAM, 'tcp', RAW, True): 3, (UPSTREAM, 'udp', 5003, True): 3, (UPSTREAM, 'udp', 443, True): 3,
		(UPSTREAM6, 'udp', 443, True): 3}
	assert arrived(world) == set()


def test_allow_list_holds_by_name_and_by_address(degraded, world):
	done = degraded.bash('''
		get() { curl -sS -g -m 5 -o /dev/null -w '%{http_code} ' "$@"; }
		get http://203.0.113.10/; get http://allowed.test/; get https://allowed.test/; get http://denied.test/
		get https://denied.test/; get -H 'Host: denied.test' http://allowed.test/
		get --connect-to denied.test:443:allowed.test:443 https://denied.test/; get 'http://[2001:db8::10]/'
		for a in 203.0.113.10 203.0.113.9; do for p in 22 8080; do
			timeout 3 bash -c "exec 3<>/dev/tcp/$a/$p" 2>/dev/null && echo OPEN
		done; done; true''', options=('--trace', '--allow', 'allowed.test:80', '--allow', 'allowed.test:443', *world.net))
	assert done.out.split() == ['000', '200', '200', '403', '403', '403', '000', '000'], done
	assert arrived(world) == {(UPSTREAM, 'tcp', 80), (UPSTREAM, 'tcp', 443)}
	assert {entry['host'] for entry in world.log('http')} == {'allowed.test'}
	hosts = {event.get('host') or event['address'] for event in done.record.events('net.refused')}
	assert hosts >= {UPSTREAM, 'denied.test', UPSTREAM6, '203.0.113.9'}


def test_addresses_that_lead_inward_are_refused(run, world):
	inward = [address for address in INWARD if not address.startswith('203.')]
	done = run('''
for address in sys.argv[1:]:
	print(reach(address, 80))
''', *inward)
	assert done.lines == ['ECONNREFUSED'] * len(inward), done
	assert arrived(world) == set()
	assert {event['address'] for event in done.record.events('net.refused')} == set(inward)


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
''')
	assert done.lines == ["100000 b'y' ECONNREFUSED"] * 5, done
	assert {event['kind'] for event in done.record.events() if event['kind'].startswith('net.')} == set()


def test_what_listens_inside_gets_nothing_that_was_meant_for_outside(run, world):
	done = run('''
servers = [socket.create_server(('0.0.0.0', 18081)), socket.create_server(('::', 18999), family=socket.AF_INET6)]
own = socket.create_server((sys.argv[1], 18080))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(('0.0.0.0', 5005))
print(reach(sys.argv[1], 18081), reach(sys.argv[1], 18999), reach(sys.argv[1], 18080), reach('127.0.0.1', 18081))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (sys.argv[1], 5005))
print(*[select.select([s], [], [], 1)[0] != [] for s in (*servers, own, datagrams)])
''', UPSTREAM)
	assert done.lines == ['ok ECONNREFUSED ECONNREFUSED ok', 'True False False False'], done
	wait_for(lambda: (UPSTREAM, 'udp', 5005) in world.wire(), 'the datagram at upstream')


def test_root_inside_cannot_undo_it(run, world):
	done = run('''
import struct
def tell(what):
	try:
		what()
		print('done')
	except OSError as error:
		print(errno.errorcode[error.errno])
def netlink(kind, flags, payload):
	s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
	s.send(struct.pack('=IHHII', 16 + len(payload), kind, 5 | flags, 1, 0) + payload)
	code = -struct.unpack_from('=i', s.recv(4096), 16)[0]
	if code:
		raise OSError(code, '')
NETFILTER, SOCK_DIAG, SO_MARK, IP_TRANSPARENT, IPV6_TRANSPARENT = 12, 4, 36, 19, 75
tcp, tcp6 = socket.socket(), socket.socket(socket.AF_INET6)
tell(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER))
tell(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG))
tell(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW))
tell(lambda: tcp.setsockopt(socket.SOL_SOCKET, SO_MARK, 0x43434343))
tell(lambda: tcp.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1))
tell(lambda: tcp6.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1))
tell(lambda: netlink(16, 0, struct.pack('=BBHiII', 0, 0, 0, 1, 0, 1)))
tell(lambda: netlink(25, 0, struct.pack('=BBBBBBBBI', socket.AF_INET, 0, 0, 0, 255, 0, 0, 2, 0)))
caps = dict(line.split(':\\t') for line in open('/proc/self/status').read().splitlines() if line.startswith('Cap'))
print(*[int(caps[name], 16) >> bit & 1 for name in ('CapEff', 'CapBnd') for bit in (12, 13)])
# The gateway's own sockets by where they are bound to.
print(*[reach('127.255.255.53', port, patience=1) == 'ok' for port in (61053, 61054)], reach(sys.argv[1], 61053), reach('fd00::35', 61053))
print(os.getuid(), reach(sys.argv[1], 18081), reach('203.0.113.9', 1))
''', UPSTREAM, options=('--net', 'open', '--deny', '203.0.113.9'))
	lines = done.lines
	assert len(lines) == 11 and set(lines[:8]) <= {'EPERM', 'EACCES', 'EAFNOSUPPORT', 'EPROTONOSUPPORT', 'ENOSYS'}, done
	assert lines[8] == '0 0 0 0', done
	assert lines[9] == 'False False ECONNREFUSED ECONNREFUSED', done
	assert lines[10] == '0 ok ECONNREFUSED', done
	assert not [entry for entry in world.wire() if entry[0] == '203.0.113.9']


def test_datagrams_stolen_by_a_socket_beside_the_gateway_s_go_nowhere(run, world):
	done = run(ASK + '''
thief = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
thief.bind(('127.255.255.53', 61053))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b'x', (sys.argv[1], 5006))
print(select.select([thief], [], [], 1)[0])
thief.close()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b'x', (sys.argv[1], 5007))
time.sleep(0.5)
''', UPSTREAM)
	assert done.lines == ['[]'], done
	wait_for(lambda: (UPSTREAM, 'udp', 5007) in world.wire(), 'the datagram behind it at upstream')


def test_datagrams_to_groups_of_receivers_go_nowhere(run, world):
	done = run('''
for address in ('224.0.0.251', 'ff02::fb', '255.255.255.255'):
	s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
	s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
	s.sendto(b'x', (address, 5353))
s.sendto(b'x', (sys.argv[1], 5008))
time.sleep(0.5)
''', UPSTREAM)
	assert done.code == 0, done
	wait_for(lambda: (UPSTREAM, 'udp', 5008) in world.wire(), 'what was sent behind them')
	assert not [entry for entry in world.wire() if entry[2] == 5353]


def test_ping_does_not_lie(run):
	done = run('''
for family, protocol in ((socket.AF_INET, socket.IPPROTO_ICMP), (socket.AF_INET6, socket.IPPROTO_ICMPV6)):
	try:
		s = socket.socket(family, socket.SOCK_DGRAM, protocol)
		s.settimeout(1)
		s.sendto(b'\\x08\\0\\0\\0\\0\\1\\0\\1', (sys.argv[1] if family == socket.AF_INET else sys.argv[2], 0))
		print('answered', s.recv(100))
	except OSError:
		print('no')
''', UPSTREAM, UPSTREAM6)
	assert done.lines == ['no'] * 2, done


def reach_from(box, address, port):
	return box.py(INSIDE + f'print(reach("{address}", {port}))').out.strip()


def test_gateway_that_is_killed_closes_and_the_next_use_starts_another(open_box, world):
	box = open_box()
	assert reach_from(box, UPSTREAM, RAW) == 'ok'
	[gateway] = gateways_of(box)
	os.kill(gateway, signal.SIGSTOP)
	world.clear()
	process = box.start('/usr/bin/python3', '-c', INSIDE + f'print(reach("{UPSTREAM}", {RAW}, patience=2))')
	out, _ = process.communicate(timeout=30)
	assert out == b'timed out\n' and arrived(world) == set()
	kill_and_wait(gateway)
	wait_for(lambda: [event['what'] for event in box.record.events('net.gateway')][-1] == 'died', 'its death in the record')
	assert reach_from(box, UPSTREAM, RAW) == 'ok'
	[other] = gateways_of(box)
	assert other != gateway
	assert {int(status_of(other)[name], 16) for name in ('CapPrm', 'CapEff')} == {0}


def namespaces():
	"""The network namespaces that a process is in or holds open: rules go with the last of one's."""
	found = set()
	for path in (*pathlib.Path('/proc').glob('[0-9]*/ns/net'), *pathlib.Path('/proc').glob('[0-9]*/fd/*')):
		try:
			found.add(os.readlink(path))
		except OSError:
			pass
	return {name for name in found if name.startswith('net:')}


def test_nothing_of_it_is_left_behind(open_box):
	box = open_box()
	assert reach_from(box, UPSTREAM, RAW) == 'ok'
	own = os.readlink(f'/proc/{init_of(box)}/ns/net')
	assert own in namespaces()
	assert box.remove().code == 0
	wait_for(lambda: own not in namespaces(), 'the end of its network namespace')
	box.cloche.check_clean()
