# SPDX-License-Identifier: Apache-2.0
"""Rules that are replaced while flows are open, in the making, or refused: what holds from then on, and for whom."""
import subprocess

import harness
import pytest
import world as world_

PORT = 9997
ECHO = f'''
import socket
server = socket.create_server(('{world_.UPSTREAM}', {PORT}))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(('{world_.UPSTREAM}', {PORT}))
print('ready', flush=True)
import threading
def answer():
	while True:
		data, peer = datagrams.recvfrom(100)
		datagrams.sendto(data, peer)
threading.Thread(target=answer, daemon=True).start()
while True:
	sock, _ = server.accept()
	def echo(sock=sock):
		while data := sock.recv(100):
			sock.sendall(data)
	threading.Thread(target=echo, daemon=True).start()
'''
# Says each line back; a line of its own where that fails. Goes on as lines come in.
TCP = f'''
import socket, sys
sock = socket.create_connection(('%s', {PORT}))
sock.settimeout(5)
for line in sys.stdin:
	try:
		sock.sendall(line.encode())
		print(sock.recv(100).decode().strip() or 'end', flush=True)
	except OSError as error:
		print(type(error).__name__, flush=True)
'''
UDP = f'''
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(2)
for line in sys.stdin:
	try:
		sock.connect(('%s', {PORT}))
		sock.send(line.encode())
		print(sock.recv(100).decode().strip() or 'end', flush=True)
	except OSError as error:
		print(type(error).__name__, flush=True)
'''


@pytest.fixture
def echo(world):
	server = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-c', ECHO), stdout=subprocess.PIPE)
	assert server.stdout.readline() == b'ready\n'
	yield
	server.kill()
	server.communicate()


def arp(world):
	"""Addresses that the host looks for."""
	return subprocess.run(world.command(world.host, 'ip', 'neigh'), capture_output=True, text=True, check=True).stdout


class Talk:
	def __init__(self, box, code, place):
		self.process = box.start(harness.PYTHON, '-u', '-c', code % place, options=('-i',),
			stdin=subprocess.PIPE)

	def say(self, word):
		self.process.stdin.write(word + b'\n')
		self.process.stdin.flush()
		return self.process.stdout.readline().strip()

	def end(self):
		self.process.stdin.close()
		return self.process.wait(timeout=20)


@pytest.mark.parametrize('code', [TCP, UDP])
def test_rule_for_an_address_goes_on_holding(world, online, echo, code):
	"""A flow to an address that a rule names stays, whatever else changes; it ends with its rule."""
	box = online.create('--trace', '--net', 'allow', *world.net, '--allow', f'{world_.UPSTREAM}:{PORT}')
	try:
		talk = Talk(box, code, world_.UPSTREAM)
		assert talk.say(b'one') == b'one'
		assert online.call('net-rules', box.id, '--allow', 'other.wild.test').code == 0
		assert talk.say(b'two') == b'two'
		assert not box.record.events('net.refused')
		assert online.call('net-rules', box.id, '--remove', f'{world_.UPSTREAM}:{PORT}').code == 0
		assert talk.say(b'three') in (b'ConnectionResetError', b'ConnectionRefusedError', b'PermissionError')
		talk.end()
	finally:
		box.remove()


@pytest.mark.parametrize('code', [TCP, UDP])
def test_range_that_is_refused_from_now_on(world, online, echo, code):
	box = online.create('--trace', '--net', 'open', *world.net)
	try:
		talk = Talk(box, code, 'allowed.test')
		assert talk.say(b'one') == b'one'
		assert online.call('net-rules', box.id, '--deny', f'{world_.UPSTREAM}/32').code == 0
		assert talk.say(b'two') in (b'ConnectionResetError', b'ConnectionRefusedError', b'PermissionError')
		talk.end()
	finally:
		box.remove()


def test_flow_that_is_no_http_ends_with_a_rule_for_requests(world, online, echo):
	box = online.create('--trace', '--net', 'allow', *world.net, '--allow', 'allowed.test')
	try:
		talk = Talk(box, TCP, 'allowed.test')
		assert talk.say(b'one') == b'one'
		assert online.call('net-rules', box.id, '--remove', 'allowed.test', '--allow', 'GET allowed.test/x').code == 0
		assert talk.say(b'two') == b'ConnectionResetError'
		talk.end()
	finally:
		box.remove()


def test_refused_connection_does_not_outlive_the_refusal(world, online):
	"""A client that keeps its connection, as all do, gets through when the rules allow it."""
	code = '''
import http.client, sys
connection = http.client.HTTPConnection('other.wild.test')
for _ in sys.stdin:
	connection.request('GET', '/')
	try:
		answer = connection.getresponse()
	except http.client.RemoteDisconnected:
		connection.request('GET', '/')
		answer = connection.getresponse()
	answer.read()
	print(answer.status, flush=True)
'''
	box = online.create('--trace', '--net', 'allow', *world.net)
	try:
		process = box.start(harness.PYTHON, '-u', '-c', code, options=('-i',), stdin=subprocess.PIPE)

		def ask():
			process.stdin.write(b'\n')
			process.stdin.flush()
			return process.stdout.readline()

		assert ask() == b'403\n' and ask() == b'403\n'
		assert online.call('net-rules', box.id, '--allow', '*.wild.test').code == 0
		assert ask() == b'200\n'
		process.stdin.close()
		process.wait(timeout=20)
	finally:
		box.remove()


def test_connection_in_the_making_is_judged_by_the_new_rules(world, online):
	"""Nobody answers at that place, which shows after 3 s; it is refused before that."""
	dark = '203.0.113.77'
	code = f'''
import socket, errno
print('go', flush=True)
sock = socket.socket()
sock.settimeout(20)
print(errno.errorcode.get(sock.connect_ex(('{dark}', 80))), flush=True)
'''
	box = online.create('--trace', '--net', 'open', *world.net)
	try:
		process = box.start(harness.PYTHON, '-u', '-c', code)
		assert process.stdout.readline() == b'go\n'
		harness.wait_for(lambda: dark in arp(world), 'somebody who asks for the way')
		assert online.call('net-rules', box.id, '--deny', f'{dark}/32').code == 0
		assert process.stdout.readline() == b'ECONNREFUSED\n'
		process.wait(timeout=20)
	finally:
		box.remove()


@pytest.mark.parametrize('code', [TCP, UDP])
def test_name_that_was_refused_leads_to_what_may_be_reached(world, online, echo, code):
	"""The address it had stands for the name, which leads to one of the host itself and to another."""
	ask = 'import socket\nprint(socket.gethostbyname("crossed.test"))'
	box = online.create('--trace', '--net', 'allow', *world.net)
	try:
		stand = box.py(ask).out.strip()
		assert stand.startswith('198.18.')
		assert online.call('net-rules', box.id, '--allow', 'crossed.test').code == 0
		talk = Talk(box, code, stand)
		assert talk.say(b'one') == b'one'
		talk.end()
	finally:
		box.remove()
