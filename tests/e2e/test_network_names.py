# SPDX-License-Identifier: Apache-2.0
"""Names: what is asked outside and what never is, what a program is told, what the record says of each question."""
import world as world_

# Sends one question as it is, to any server, over UDP or TCP; prints the answer's code, and its addresses.
ASK = '''
import os, socket, struct, sys
def question(name, kind):
	parts = b''.join(bytes([len(part)]) + part.encode() for part in name.split('.'))
	return os.urandom(2) + b'\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + parts + b'\\0' + struct.pack('>HH', kind, 1)
def ask(name, kind=1, server='10.0.0.53', tcp=False):
	data, family = question(name, kind), socket.AF_INET6 if ':' in server else socket.AF_INET
	with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as sock:
		sock.settimeout(8)
		sock.connect((server, 53))
		sock.send((struct.pack('>H', len(data)) if tcp else b'') + data)
		reply = sock.recv(65536)
		if tcp:
			while len(reply) < 2 or len(reply) < 2 + int.from_bytes(reply[:2], 'big'):
				reply += sock.recv(65536)
			reply = reply[2:]
	assert reply[:2] == data[:2]
	code, n, at, found = reply[3] & 15, int.from_bytes(reply[6:8], 'big'), len(data), []
	for _ in range(n):
		while reply[at] and reply[at] < 192:
			at += 1 + reply[at]
		at += 1 if reply[at] == 0 else 2
		what, _, _, size = struct.unpack('>HHIH', reply[at:at + 10])
		if what in (1, 28):
			found.append(socket.inet_ntop(socket.AF_INET if what == 1 else socket.AF_INET6, reply[at + 10:at + 10 + size]))
		at += 10 + size
	return code, found, bool(reply[2] & 2)
'''


def asked(world):
	"""Names that upstream's server was asked for."""
	return {entry['name'] for entry in world.log('dns')}


def allow_net(world, *rules):
	return ('--net', 'allow', *world.net, *(f'--allow={rule}' for rule in rules))


def test_any_server_is_the_gateway(world, online):
	code = ASK + '''
for server, tcp in (('10.0.0.53', False), ('192.0.2.53', False), ('192.0.2.53', True), ('2001:db8::53', False)):
	print(*ask('allowed.test', server=server, tcp=tcp))
'''
	done = online.py(code, options=('--net', 'open', *world.net))
	assert done.lines == [f"0 ['{world_.UPSTREAM}'] False"] * 4, done
	seen = [(event['server'], event['protocol'], event['answers']) for event in done.record.events('net.dns')]
	assert seen == [('10.0.0.53', 'udp', [world_.UPSTREAM]), ('192.0.2.53', 'udp', [world_.UPSTREAM]),
		('192.0.2.53', 'tcp', [world_.UPSTREAM]), ('2001:db8::53', 'udp', [world_.UPSTREAM])]
	assert {place[0] for place in world.wire() if place[2] == 53} == {world_.UPSTREAM}
	assert all(event['pid'] for event in done.record.events('net.dns'))


def test_refused_names_never_leave(world, online):
	"""Of any type, to any server, with data in them; a program that asks for an address gets one that leads to the
	reason."""
	code = ASK + '''
print(ask('xfer.leak.denied.test'), ask('xfer.leak.denied.test', 28))
for kind in (16, 5, 15, 10, 255, 65, 64, 252, 249, 65399):
	print(kind, ask('data.denied.test', kind)[0])
print(ask('x.denied.test', tcp=True)[0], ask('x.denied.test', server='8.8.8.8')[0])
print(ask('a' * 63 + '.' + 'b' * 63 + '.' + 'c' * 63 + '.denied.test')[0])
'''
	done = online.py(code, options=allow_net(world, 'allowed.test'))
	assert done.lines[0].startswith("(0, ['198.18.") and done.lines[0].endswith('(0, [], False)'), done
	assert done.lines[1:11] == [f'{kind} 5' for kind in (16, 5, 15, 10, 255, 65, 64, 252, 249, 65399)], done
	assert asked(world) == set()
	events = done.record.events('net.dns')
	assert len(events) == 15 and all(event['refused'] and event['rule'] and event['reason'] for event in events)
	assert {event['type'] for event in events} >= {'A', 'AAAA', 'TXT', 'NULL', 'ANY', 'AXFR', 'TYPE65399'}
	refused = [event for event in done.record.events('net.refused') if event['stage'] == 'dns']
	assert {event['host'] for event in refused} >= {'xfer.leak.denied.test', 'data.denied.test', 'x.denied.test'}


def test_types_of_an_allowed_name(world, online):
	code = ASK + '''
for kind in (1, 28, 16, 15, 33, 65, 10, 255, 252, 65399):
	print(kind, ask('allowed.test', kind)[0])
'''
	done = online.py(code, options=allow_net(world, 'allowed.test'))
	assert done.lines == ['1 0', '28 0', '16 0', '15 0', '33 0', '65 0', '10 5', '255 5', '252 5', '65399 5'], done
	assert {entry['type'] for entry in world.log('dns')} == {1, 28, 16, 15, 33, 65}


def test_alias_chain(world, online):
	"""The name that was asked for is the host; its last alias is not open by itself."""
	script = '''curl -sS -o /dev/null -w '%{http_code}\\n' http://cname.test/
		curl -sS -o /dev/null -w '%{http_code}\\n' http://pop7.cdn.test/
		curl -sS -o /dev/null -w '%{http_code}\\n' -H 'Host: pop7.cdn.test' http://cname.test/'''
	done = online.sh(script, options=allow_net(world, 'cname.test'))
	assert done.lines == ['200', '403', '403'], done
	assert asked(world) == {'cname.test'}
	first = next(event for event in done.record.events('net.dns') if event['type'] == 'A')
	assert first['answers'] == ['CNAME edge.cdn.test', 'CNAME pop7.cdn.test', world_.UPSTREAM]
	[http] = done.record.events('net.http')
	assert http['host'] == 'cname.test'


def test_names_that_lead_inward(world, online):
	"""Whatever a name says: no private, metadata or loopback address is reached by it."""
	script = '''for name in meta.test priv.test loop.test; do
		curl -sS -m 5 -o /dev/null http://$name/; echo $?; done'''
	done = online.sh(script, options=('--net', 'open', *world.net))
	assert done.lines == ['7', '7', '7'], done
	refused = {(event['host'], event['address']) for event in done.record.events('net.refused')}
	assert refused >= {('meta.test', '169.254.169.254'), ('priv.test', '10.0.0.5')}
	assert {place[0] for place in world.wire()} == {world_.UPSTREAM}


def test_long_answer(world, online):
	"""Cut over UDP upstream, fetched over TCP; told so to a client that takes 512 bytes, whole over TCP."""
	code = ASK + '''
print(ask('big.test'))
code, found, cut = ask('big.test', tcp=True)
print(code, len(found), cut)
'''
	done = online.py(code, options=('--net', 'open', *world.net))
	assert done.lines == ['(0, [], True)', '0 60 False'], done
	assert any(entry['tcp'] for entry in world.log('dns'))


def test_silent_resolver(world, online):
	"""Nobody answers: the program is told within its own patience, the record says why."""
	code = ASK + '''
import time
begin = time.monotonic()
print(ask('allowed.test')[0], time.monotonic() - begin < 6)
'''
	done = online.py(code, options=('--net', 'open', '--resolver', '192.0.2.99'))
	assert done.lines == ['2 True'], done
	[event] = done.record.events('net.dns')
	assert event['error'] == 'timeout'
	done = online.py(code, options=('--net', 'open', '--resolver', '203.0.113.9'))
	assert done.lines == ['2 True'], done # a closed port
	[event] = done.record.events('net.dns')
	assert event['error'] == 'ECONNREFUSED'


def test_data_in_names_is_limited(world, online):
	"""Many names that look like data, below a domain that is allowed: let through up to a limit, and told with counts."""
	code = ASK + '''
import base64
codes = [ask(base64.b32encode(os.urandom(30)).decode().strip('=').lower() + '.wild.test', 16)[0] for _ in range(200)]
print(codes.count(0), codes.count(5), ask('www.wild.test')[0])
'''
	done = online.py(code, options=allow_net(world, '*.wild.test'))
	assert done.lines == ['50 150 0'], done
	assert len(asked(world)) == 51
	hints = [event for event in done.record.events('hint') if 'wild.test' in event['reason']]
	assert hints and hints[-1]['count'] >= 51
	assert len(done.record.events('net.dns')) == 201


def test_not_a_question(world, online):
	"""Other bytes to port 53 go nowhere."""
	code = '''
import socket
sock = socket.create_connection(('192.0.2.53', 53))
sock.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')
try:
	print(sock.recv(50))
except OSError as error:
	print(error.errno)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.sendto(b'hello', ('192.0.2.53', 53))
'''
	done = online.py(code, options=('--net', 'open', *world.net))
	assert done.lines == ['104'], done
	[flow] = [event for event in done.record.events('net.flow') if event['port'] == 53]
	assert flow['bytes_out'] == 18 and flow['error'] == 'not a DNS question'
	assert {place for place in world.wire() if place[2] == 53} == set()
