# SPDX-License-Identifier: Apache-2.0
"""A way to a port inside by the supervisor's request "visit": what a control plane shows previews through."""
import contextlib
import errno
import json
import os
import select
import signal
import socket
import struct

import pytest

from harness import wait_for
from test_publish import SERVER, children

FROM = '192.0.2.7:40000'


@contextlib.contextmanager
def control(box):
	folder = os.open(box.cloche.state / 'sandboxes' / box.id, os.O_PATH | os.O_DIRECTORY)
	try:
		with socket.socket(socket.AF_UNIX) as sock:
			sock.settimeout(20)
			sock.connect(f'/proc/self/fd/{folder}/control.sock')
			yield sock
	finally:
		os.close(folder)


def ask(sock, **what):
	"""The answer, and the socket that came with it or None."""
	text = json.dumps(what).encode()
	sock.sendall(struct.pack('<IB3x', len(text), ord('J')) + text)
	data, found = b'', None
	while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:4], 'little'):
		part, fds, _, _ = socket.recv_fds(sock, 65536, 4)
		assert part
		data += part
		for fd in fds:
			assert found is None
			found = socket.socket(fileno=fd)
	return json.loads(data[8:]), found


def visit(box, port, **more):
	"""(what became of it, the stream)"""
	with control(box) as sock:
		answer, way = ask(sock, **{'request': 'visit', 'port': port, 'from': FROM, **more})
	assert answer['ok'] and way, answer
	way.settimeout(20)
	return way.recv(1)[0], way


@pytest.fixture(scope='module')
def box(module_cloche):
	made = module_cloche.create('--trace')
	process = made.start('/usr/bin/python3', '-c', SERVER, '127.0.0.1', '8000')
	assert process.stdout.readline() == b'ready\n'
	yield made
	made.remove()


def ends(box):
	return [event for event in box.record.events('net.flow') if event.get('direction') == 'in']


def test_both_ways_and_what_the_record_says(box):
	data = os.urandom(3 << 20)
	became, way = visit(box, 8000)
	assert became == 0 and way.family == socket.AF_UNIX
	with way:
		got = b''
		sent = memoryview(data)
		way.setblocking(False)
		while len(got) < len(data):
			readable, writable, _ = select.select([way], [way] if sent else [], [], 20)
			assert readable or writable
			if writable:
				sent = sent[way.send(sent[:65536]):]
			if readable:
				got += way.recv(65536)
		assert got == data
	[end] = wait_for(lambda: ends(box), 'the end of the flow')
	[accept] = box.record.events('net.accept')
	assert (accept['from'], accept['port'], accept['flow'], accept.get('result')) == (FROM, 8000, end['flow'], None)
	assert (end['from'], end['bytes_in'], end.get('error')) == (FROM, len(data), None) and end['bytes_out'] >= len(data)
	assert box.record.json('net') == [] # who came in is no host that was reached


def test_nobody_listens(box):
	became, way = visit(box, 8001)
	with way:
		assert became == errno.ECONNREFUSED and way.recv(1) == b''
	wait_for(lambda: box.record.events('net.accept')[-1].get('result') == 'ECONNREFUSED', 'the refusal in the record')


def is_cut(way):
	"""Whether what ended was closed by both, and so not in order."""
	poll = select.poll()
	poll.register(way, select.POLLIN)
	return bool(poll.poll(0)[0][1] & select.POLLHUP)


def test_an_end_and_a_cut_differ(box):
	server = box.start('/usr/bin/python3', '-c', "import socket, struct; s = socket.create_server(('127.0.0.1', 8002)); print('ready', flush=True)\n"
		"for linger in (0, 1):\n\tc = s.accept()[0]; c.recv(1); c.sendall(b'half'); c.recv(1)\n"
		"\tc.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', linger, 0)); c.close()")
	assert server.stdout.readline() == b'ready\n'
	for cut in (False, True):
		_, way = visit(box, 8002)
		with way:
			way.sendall(b'x')
			assert way.recv(10) == b'half'
			way.sendall(b'y')
			assert way.recv(10) == b'' and is_cut(way) == cut
	server.wait(timeout=20)


@pytest.mark.parametrize(('port', 'more', 'name'), [(0, {}, 'EINVAL'), (65536, {}, 'EINVAL'), (-1, {}, 'EINVAL'), ('80', {}, 'EINVAL'), (80, {'from': None}, 'EINVAL'),
	(80, {'from': 'a b'}, 'EINVAL'), (80, {'from': '1' * 64}, 'EINVAL'), (80, {'from': ''}, 'EINVAL'), (80, {'from': '1.2.3.4\n'}, 'EINVAL')])
def test_what_is_refused(box, port, more, name):
	with control(box) as sock:
		answer, way = ask(sock, **{'request': 'visit', 'port': port, 'from': FROM, **more})
		assert way is None and answer['errno'] == name, answer


def test_nobody_is_let_in_to_one_that_is_paused(box):
	with control(box) as sock:
		assert ask(sock, request='pause')[0]['ok']
		answer, way = ask(sock, **{'request': 'visit', 'port': 8000, 'from': FROM})
		assert way is None and answer['errno'] == 'EBUSY' and 'is paused' in answer['error']
		assert ask(sock, request='visit', probe=True) == ({'ok': True}, None)
		assert ask(sock, request='wake')[0]['ok']


def test_it_outlives_a_gateway(box):
	_, way = visit(box, 8000)
	[gateway] = children(box.supervisor()[0])
	os.kill(gateway, signal.SIGKILL)
	with way:
		assert way.recv(1) == b'' and is_cut(way)
	became, way = visit(box, 8000) # it waits for the next one
	with way:
		way.sendall(b'two')
		assert became == 0 and way.recv(3) == b'two'


def test_many_at_once(box):
	ways = [visit(box, 8000) for _ in range(100)]
	for n, (became, way) in enumerate(ways):
		assert became == 0
		way.sendall(b'%d' % n)
	for n, (_, way) in enumerate(ways):
		with way:
			assert way.recv(10) == b'%d' % n


def test_without_a_network(cloche):
	box = cloche.create('--net', 'none')
	try:
		with control(box) as sock:
			answer, way = ask(sock, **{'request': 'visit', 'port': 80, 'from': FROM})
			assert way is None and answer['errno'] == 'EOPNOTSUPP' and 'no network' in answer['error']
			assert ask(sock, request='visit', probe=True)[0]['errno'] == 'EOPNOTSUPP'
	finally:
		box.remove()
