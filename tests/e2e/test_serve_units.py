# SPDX-License-Identifier: Apache-2.0
"""Under a service manager: sockets that it passes, what it is told, and what a restart leaves alone.

The manager is a Python program of ours that speaks systemd's protocols (sd_listen_fds(3), sd_notify(3))."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest

import harness
from conftest import open_folder
from harness import BUILD, PYTHON, wait_for
from serving import free_port

UNITS = harness.ROOT / 'packaging' / 'systemd'
# Puts the sockets from 3 on and becomes the program, as a manager does between fork and exec.
STARTER = """
import fcntl, os, sys
count, names, fds = sys.argv[1], sys.argv[2], [int(fd) for fd in sys.argv[3].split(',') if fd]
high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in fds]
for i, fd in enumerate(high):
	os.dup2(fd, 3 + i)
os.closerange(3 + len(high), 256)
os.environ.update(LISTEN_FDS=count, LISTEN_PID=os.environ.pop('OTHER_PID', str(os.getpid())))
if names:
	os.environ['LISTEN_FDNAMES'] = names
os.execv(sys.argv[4], sys.argv[4:])
"""


class Manager:
	def __init__(self, folder, run_dir, state):
		self.folder = folder
		self.cloche = harness.Cloche(folder / 'state', run_dir, folder)
		harness.lend_skeleton(state, self.cloche.state)
		self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		self.notify.bind(str(folder / 'notify'))
		self.notify.settimeout(20)
		self.tcp = socket.create_server(('127.0.0.1', 0), backlog=100)
		self.port = self.tcp.getsockname()[1]
		self.unix = socket.socket(socket.AF_UNIX)
		self.unix.bind(str(folder / 'passed.sock'))
		self.unix.listen(100)
		self.process, self.key = None, None

	def start(self, *options, sockets=None, names='web:local', count=None, other_pid=None):
		sockets = [self.tcp, self.unix] if sockets is None else sockets
		fds = [one.fileno() for one in sockets]
		env = self.cloche.env({'NOTIFY_SOCKET': str(self.folder / 'notify'), **({'OTHER_PID': other_pid} if other_pid else {})})
		self.log = open(self.folder / 'log', 'ab+', buffering=0) # noqa: SIM115 (closed by stop)
		self.process = subprocess.Popen([PYTHON, '-c', STARTER, str(len(fds) if count is None else count), names, ','.join(map(str, fds)), str(BUILD / 'cloche'), 'serve',
			*options], pass_fds=fds, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, cwd=self.folder)

	def up(self, *options, **how):
		self.start(*options, **how)
		assert self.told() == ['READY=1'], self.said()
		if not self.key:
			self.key = self.process.stdout.readline().split()[-1].decode()

	def told(self):
		return self.notify.recv(4096).decode().splitlines()

	def said(self):
		self.log.seek(0)
		return self.log.read().decode()

	def end(self, sig=signal.SIGTERM):
		"""Of the main process alone, as KillMode=process has it: the status."""
		self.process.send_signal(sig)
		self.process.wait(timeout=20)
		self.process.stdout.close()
		self.log.close()
		return self.process.returncode

	def refused(self, *options, **how):
		"""What it says where it does not start."""
		self.start(*options, **how)
		self.process.wait(timeout=20)
		self.process.stdout.close()
		said = self.said()
		self.log.close()
		assert self.process.returncode == 125
		return said.splitlines()[-1]

	def call(self, method, path, body=None, port=None, local=False, sock=None):
		connection = http.client.HTTPConnection('127.0.0.1', port or self.port, timeout=30)
		if local:
			connection.sock = socket.socket(socket.AF_UNIX)
			connection.sock.connect(str(self.folder / 'passed.sock'))
		if sock:
			connection.sock = sock
		with contextlib.closing(connection):
			connection.request(method, path, json.dumps(body) if body is not None else None, {} if local else {'Authorization': f'Bearer {self.key}'})
			response = connection.getresponse()
			return response.status, json.loads(response.read() or b'null')

	def close(self):
		for one in (self.tcp, self.unix, self.notify):
			one.close()


@pytest.fixture
def manager(state, run_dir):
	with open_folder('units') as folder:
		made = Manager(folder, run_dir, state)
		yield made
		made.close()
		made.cloche.check_clean()


def environ(pid):
	return [entry.partition('=')[0] for entry in pathlib.Path(f'/proc/{pid}/environ').read_text().split('\0')]


def test_sockets_are_passed_and_the_manager_is_told(manager, run_dir):
	manager.up()
	assert manager.call('GET', '/v1/sandboxes')[0] == 200 == manager.call('GET', '/v1/sandboxes', local=True)[0]
	assert not (run_dir / 'cloche.sock').exists(), 'what was passed stands for what it would open'
	children = pathlib.Path(f'/proc/{manager.process.pid}/task/{manager.process.pid}/children').read_text().split()
	for pid in (manager.process.pid, *children):
		listening = [os.readlink(fd) for fd in pathlib.Path(f'/proc/{pid}/fd').iterdir()]
		assert listening.count(f'socket:[{os.fstat(manager.tcp.fileno()).st_ino}]') == 1, 'no more than one of each'
	assert not {'NOTIFY_SOCKET', 'LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES'} & set(environ(children[0]))
	manager.process.send_signal(signal.SIGHUP)
	begin = manager.told()
	assert begin[0] == 'RELOADING=1' and begin[1].startswith('MONOTONIC_USEC=') and manager.told() == ['READY=1']
	assert manager.end() == 0 and manager.told() == ['STOPPING=1']


def test_a_restart_loses_nobody_and_ends_nothing(manager):
	manager.up()
	box = manager.call('POST', '/v1/sandboxes', {})[1]['id']
	done = manager.call('POST', f'/v1/sandboxes/{box}/exec', {'command': 'sleep 0.5; echo went on > /workspace/f', 'detach': True})
	assert done[0] == 202
	assert manager.end() == 0
	early = [socket.create_connection(('127.0.0.1', manager.port), timeout=30) for _ in range(5)] # nobody is there to accept
	supervisor = manager.cloche.processes(box, 'cloche-supervisor')
	assert supervisor, 'the supervisor outlives the service'
	assert manager.told() == ['STOPPING=1']
	manager.up()
	for sock in early:
		assert manager.call('GET', f'/v1/sandboxes/{box}', sock=sock)[1]['state'] == 'running'
	assert manager.cloche.processes(box, 'cloche-supervisor') == supervisor
	wait_for(lambda: manager.call('GET', f'/v1/sandboxes/{box}/exec/{done[1]["exec"]}')[0] == 200, 'its row')
	assert manager.call('POST', f'/v1/sandboxes/{box}/exec', {'command': 'cat /workspace/f'})[1]['stdout'] == 'went on\n'
	manager.end(signal.SIGKILL)
	manager.up()
	assert manager.call('GET', f'/v1/sandboxes/{box}')[1]['state'] == 'running'
	assert manager.call('DELETE', f'/v1/sandboxes/{box}')[0] == 200
	assert manager.end() == 0


def test_what_is_named_is_opened_beside_it(manager):
	port = free_port()
	manager.up('--listen', f'127.0.0.1:{port}', '--socket', str(manager.folder / 'own.sock'), sockets=[manager.tcp], names='')
	assert manager.call('GET', '/v1/sandboxes', port=port)[0] == 200 == manager.call('GET', '/v1/sandboxes')[0] and (manager.folder / 'own.sock').exists()
	assert manager.end() == 0


def test_a_socket_for_previews_is_known_by_its_name(manager):
	with socket.create_server(('127.0.0.1', 0)) as previews:
		manager.up('--socket', str(manager.folder / 'own.sock'), sockets=[manager.tcp, previews], names='web:previews')
		box = manager.call('POST', '/v1/sandboxes', {})[1]['id']
		status, made = manager.call('POST', '/v1/previews', {'sandbox': box, 'port': 3000, 'visibility': 'private'})
		assert status == 201 and made['url'].endswith(f':{previews.getsockname()[1]}/'), made
		assert manager.call('DELETE', f'/v1/sandboxes/{box}')[0] == 200
		assert manager.end() == 0


def test_sockets_of_others_are_left_alone(manager):
	port = free_port()
	manager.up('--listen', f'127.0.0.1:{port}', '--socket', str(manager.folder / 'own.sock'), other_pid='1')
	assert manager.call('GET', '/v1/sandboxes', port=port)[0] == 200
	with socket.create_connection(('127.0.0.1', manager.port), timeout=5) as sock:
		sock.settimeout(0.3)
		sock.sendall(b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')
		with pytest.raises(TimeoutError):
			sock.recv(1)
	assert manager.end() == 0


def test_sockets_that_cannot_be_used_are_refused(manager):
	with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, socket.create_connection(('127.0.0.1', manager.port)) as connected, socket.socket() as silent, \
			open('/dev/null', 'rb') as file, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as packets:
		packets.bind(str(manager.folder / 'packets'))
		packets.listen()
		for bad in (datagrams, connected, silent, file, packets):
			assert manager.refused(sockets=[manager.tcp, bad]) == "cloche: the socket 'local' that was passed does not listen for streams over TCP or at a Unix socket"
	assert "'number 1'" in manager.refused(sockets=[open('/dev/null', 'rb')], names='') # noqa: SIM115
	assert manager.refused(count=4) == 'cloche: serve: of the sockets that LISTEN_FDS counts, number 3 is not open'
	assert manager.refused(count=8) == 'cloche: serve: 8 sockets were passed: at most 7 can be used'
	assert 'at most 7 places to listen on' in manager.refused(*[word for n in range(6) for word in ('--listen', f'127.0.0.1:{free_port()}')])


def test_the_units_are_good(tmp_path):
	if shutil.which('systemd-analyze') is None:
		pytest.skip('no systemd-analyze on this host')
	for name in ('cloche.service', 'cloche.socket'):
		(tmp_path / name).write_text((UNITS / name).read_text().replace('/usr/bin/cloche', str(BUILD / 'cloche')))
	done = subprocess.run(['systemd-analyze', 'verify', *map(str, tmp_path.iterdir())], capture_output=True, text=True, check=False, timeout=60)
	said = [line for line in done.stderr.splitlines() if 'cloche' in line]
	assert not said, said
