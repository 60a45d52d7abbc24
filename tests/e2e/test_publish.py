# SPDX-License-Identifier: Apache-2.0
"""-p: ports of a sandbox on the host."""
import contextlib
import os
import signal
import socket
import struct
import time

import pytest

from harness import wait_for

SERVER = '''
import socket, sys, threading
server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)
print('ready', flush=True)
def serve(c):
	n = 0
	while data := c.recv(65536):
		n += len(data)
		c.sendall(data)
	c.sendall(b'|%d' % n)
	c.close()
while True:
	threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
'''


def free_port():
	with socket.socket() as s:
		s.bind(('127.0.0.1', 0))
		return s.getsockname()[1]


def talk(port, data, address='127.0.0.1'):
	with socket.create_connection((address, port), 20) as s:
		s.settimeout(20)
		s.sendall(data)
		s.shutdown(socket.SHUT_WR)
		answer = b''
		while part := s.recv(65536):
			answer += part
	return answer


@pytest.fixture
def served(cloche):
	"""A sandbox with a published port, and a server behind it."""
	made = []

	def make(*options, address='127.0.0.1', port=80):
		box = cloche.create('--trace', *options)
		made.append(box)
		process = box.start('/usr/bin/python3', '-c', SERVER, address, str(port))
		assert process.stdout.readline() == b'ready\n'
		return box

	yield make
	for box in made:
		box.remove()


@pytest.mark.parametrize('address', ['127.0.0.1', '0.0.0.0', '::1'])
def test_what_comes_in_reaches_the_server_inside(served, address):
	port = free_port()
	box = served('-p', f'{port}:80', address=address)
	data = os.urandom(3 << 20)
	assert talk(port, b'hello') == b'hello|5'
	assert talk(port, data) == data + b'|%d' % len(data)
	ends = wait_for(lambda: (lambda found: found if len(found) == 2 else None)(
		[event for event in box.record.events('net.flow') if event.get('direction') == 'in']), 'two ends of flows')
	accepts = box.record.events('net.accept')
	assert [(event['port'], event['from'].rsplit(':', 1)[0]) for event in accepts] == [(80, '127.0.0.1')] * 2
	assert [(event['bytes_in'], event['bytes_out']) for event in ends] == [(5, 7), (len(data), len(data) + 8)]
	assert [event['flow'] for event in accepts] == [event['flow'] for event in ends]
	# Who came in is no host that was reached.
	assert box.record.json('net') == []


def test_nobody_inside_is_a_reset(cloche):
	port = free_port()
	box = cloche.create('--trace', '-p', f'{port}:80')
	try:
		with pytest.raises(ConnectionResetError):  # it may come before connect() has returned
			with socket.create_connection(('127.0.0.1', port), 20) as s:
				s.sendall(b'x')
				assert s.recv(1) != b''
		[event] = wait_for(lambda: box.record.events('net.accept'), 'net.accept')
		assert event['result'] == 'ECONNREFUSED'
	finally:
		box.remove()


def test_a_port_that_is_taken_is_an_error(cloche):
	with socket.socket() as taken:
		taken.bind(('127.0.0.1', 0))
		taken.listen()
		port = taken.getsockname()[1]
		run = cloche.run('/bin/true', options=('-p', f'{port}:80'))
		assert run.code == 125 and f'port {port} of 127.0.0.1' in run.err and 'in use' in run.err, run


def test_only_the_address_that_was_named(served):
	port = free_port()
	served('-p', f'127.0.0.2:{port}:80')
	assert talk(port, b'x', '127.0.0.2') == b'x|1'
	with pytest.raises(ConnectionRefusedError):
		talk(port, b'x', '127.0.0.1')


def test_it_outlives_a_gateway(served, cloche):
	port = free_port()
	box = served('-p', f'{port}:80')
	assert talk(port, b'one') == b'one|3'
	[gateway] = children(box.supervisor()[0])
	os.kill(gateway, signal.SIGKILL)
	wait_for(lambda: len(box.record.events('net.gateway')) >= 2, 'the death of the gateway')
	assert wait_for(lambda: again(port), 'another gateway') == b'two|3'


def children(pid):
	"""Gateways of a supervisor."""
	found = []
	for entry in os.listdir('/proc'):
		try:
			with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as stat:
				text = stat.read()
		except (OSError, ValueError):
			continue
		if '(cloche-gateway)' in text and int(text.rsplit(')', 1)[1].split()[1]) == pid:
			found.append(int(entry))
	return found


def again(port):
	try:
		return talk(port, b'two')
	except OSError:
		time.sleep(0.1)
		return None


def test_what_was_said_before_a_reset_arrives(cloche):
	"""A server that answers without reading all of the request: its close is a reset behind the answer."""
	port = free_port()
	box = cloche.create('--trace', '-p', f'{port}:80')
	try:
		server = box.start('/usr/bin/python3', '-c', "import socket, time; s = socket.create_server(('127.0.0.1', 80));"
			" print('ready', flush=True); c = s.accept()[0]; time.sleep(0.5); c.sendall(b'a' * 50000); c.close(); time.sleep(60)")
		assert server.stdout.readline() == b'ready\n'
		with socket.create_connection(('127.0.0.1', port), 20) as s:
			s.settimeout(20)
			s.sendall(b'unread')
			answer = b''
			with contextlib.suppress(ConnectionResetError):
				while part := s.recv(65536):
					answer += part
		assert len(answer) == 50000
	finally:
		box.remove()


def test_a_reset_inside_is_a_reset_outside(cloche):
	port = free_port()
	box = cloche.create('--trace', '-p', f'{port}:80')
	try:
		server = box.start('/usr/bin/python3', '-c', "import socket, struct; s = socket.create_server(('127.0.0.1', 80)); print('ready', flush=True);"
			" c = s.accept()[0]; c.recv(1); c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); c.close(); s.accept()")
		assert server.stdout.readline() == b'ready\n'
		with socket.create_connection(('127.0.0.1', port), 20) as s:
			s.sendall(b'x')
			with pytest.raises(ConnectionResetError):
				s.recv(1)
	finally:
		box.remove()


def test_who_leaves_with_a_reset_is_let_go(cloche):
	"""The server reads nothing: only the reset says that the client is gone."""
	port = free_port()
	box = cloche.create('--trace', '-p', f'{port}:80')
	try:
		server = box.start('/usr/bin/python3', '-c', "import socket, time; s = socket.create_server(('127.0.0.1', 80));"
			" print('ready', flush=True); c = s.accept(); time.sleep(60)")
		assert server.stdout.readline() == b'ready\n'
		with socket.create_connection(('127.0.0.1', port), 20) as s:
			s.settimeout(1)
			with pytest.raises(TimeoutError):
				while True:
					s.sendall(bytes(1 << 20))
			s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
		[end] = wait_for(lambda: [event for event in box.record.events('net.flow') if event.get('direction') == 'in'],
			'the end of the flow')
		assert end['error'] == 'ECONNRESET'
	finally:
		box.remove()


def test_gone_with_the_sandbox(served):
	port = free_port()
	box = served('-p', f'{port}:80')
	box.remove()
	with pytest.raises(ConnectionRefusedError):
		talk(port, b'x')
