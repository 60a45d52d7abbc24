# SPDX-License-Identifier: Apache-2.0
"""A network of the tests' own: one namespace in which cloche runs, and one that is all it can reach."""
import ctypes
import json
import os
import pathlib
import socket
import subprocess

import harness

HERE = '203.0.113.1'
UPSTREAM = '203.0.113.10'
HERE6 = '2001:db8::1'
UPSTREAM6 = '2001:db8::10'
MARK = 65009  # port of a datagram that comes behind all packets before it
CLONE_NEWNET = 0x40000000
# Nothing listens there, but a packet that is sent there arrives and is seen.
INWARD = ('169.254.169.254', '169.254.170.2', '100.100.100.200', '10.0.0.5', '203.0.113.9')


class Inside(harness.Cloche):
	"""The program, started in a network namespace."""

	def __init__(self, world, *args):
		super().__init__(*args)
		self.world = world

	def start(self, *args, **how):
		program, self.program = self.program, 'nsenter'
		try:
			return super().start(f'--net=/proc/{self.world.host.pid}/ns/net', program, *args, **how)
		finally:
			self.program = program


def socket_in(process, kind=socket.SOCK_DGRAM):
	"""A socket in the network namespace of another process."""
	libc = ctypes.CDLL(None, use_errno=True)
	with open('/proc/thread-self/ns/net', 'rb') as own, open(f'/proc/{process.pid}/ns/net', 'rb') as other:
		assert libc.setns(other.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
		try:
			return socket.socket(socket.AF_INET, kind)
		finally:
			assert libc.setns(own.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


class World:
	"""host: the namespace where cloche runs; internet: the other one. close() takes both away."""

	def __init__(self, folder):
		self.logs = pathlib.Path(folder) / 'upstream'
		self.logs.mkdir(parents=True)
		self.host, self.internet = self.namespace(), self.namespace()
		self.upstream = self.marker = None
		try:
			self.marker = socket_in(self.host)
			self.connect()
			self.serve()
		except BaseException:
			self.close()
			raise

	@staticmethod
	def namespace():
		process = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'echo; exec sleep infinity'],
			stdout=subprocess.PIPE)
		process.stdout.readline()
		return process

	@staticmethod
	def command(where, *args):
		return ['nsenter', f'--net=/proc/{where.pid}/ns/net', *args]

	def ip(self, where, words):
		subprocess.run(self.command(where, 'ip', *words.split()), check=True)

	def connect(self):
		self.ip(self.host, f'link add out0 type veth peer name in0 netns {self.internet.pid}')
		for where, name, addresses in ((self.host, 'out0', (HERE, HERE6)),
			(self.internet, 'in0', (UPSTREAM, UPSTREAM6, *INWARD))):
			for address in addresses:
				size = '64 nodad' if ':' in address else '24' if address in (HERE, UPSTREAM) else '32'
				self.ip(where, f'addr add {address}/{size} dev {name}')
			self.ip(where, 'link set lo up')
			self.ip(where, f'link set {name} up')
		self.ip(self.host, f'route add default via {UPSTREAM}')
		self.ip(self.host, f'route add default via {UPSTREAM6}')

	def serve(self):
		script = pathlib.Path(__file__).parent / 'upstream.py'
		self.upstream = subprocess.Popen(self.command(self.internet, harness.PYTHON, '-B', str(script), UPSTREAM,
			str(self.logs)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
		assert self.upstream.stdout.readline() == b'ready\n'

	def close(self):
		if self.marker:
			self.marker.close()
		for process in (self.upstream, self.host, self.internet):
			if process:
				process.kill()
				process.wait()

	def connect_to(self, port, limit_s):
		"""What listens on loopback where cloche runs."""
		sock = socket_in(self.host, socket.SOCK_STREAM)
		sock.settimeout(limit_s)
		try:
			sock.connect(('127.0.0.1', port))
		except OSError:
			sock.close()
			raise
		return sock

	def cloche(self, *args):
		return Inside(self, *args)

	@property
	def net(self):
		"""Options that every run here needs."""
		return ('--resolver', UPSTREAM, '--upstream-ca', str(self.logs / 'ca.pem'))

	def log(self, name):
		"""What upstream wrote so far; of a line that it is just writing, nothing."""
		path = self.logs / f'{name}.log'
		text = path.read_text() if path.exists() else ''
		return [json.loads(line) for line in text[:text.rfind('\n') + 1].splitlines()]

	def clear(self):
		"""Forgets what was sent so far; on a busy machine the witness writes it down later."""
		def has_come():
			self.marker.sendto(b'mark', (UPSTREAM, MARK))  # again: where a flood was, there is no room for a while
			return any(entry['port'] == MARK for entry in self.log('wire'))
		harness.wait_for(has_come, 'the packets before')
		for path in self.logs.glob('*.log'):
			path.unlink()

	def wire(self):
		"""(address, protocol, port) of every packet that came out of the sandbox's host."""
		return {(entry['to'], entry['protocol'], entry['port']) for entry in self.log('wire') if entry['port'] != MARK}
