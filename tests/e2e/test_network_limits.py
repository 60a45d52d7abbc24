# SPDX-License-Identifier: Apache-2.0
"""Much at once, and servers that go wrong: bounded memory, a plain failure for the program, one event for the record."""
import hashlib
import os
import pathlib
import subprocess

import harness
import pytest
import world as world_

MB = 1 << 20
MEMORY_MAX_KB = 64 * 1024
# Measured by hand with 2048.
BULK_MB = int(os.environ.get('CLOCHE_TEST_BULK_MB', '300'))
HTTP, HTTPS, H2 = 8080, 8443, 8445


def gateway(sandbox):
	"""The process id of a sandbox's gateway."""
	[supervisor] = sandbox.supervisor()
	children = pathlib.Path(f'/proc/{supervisor}/task/{supervisor}/children').read_text().split()
	[pid] = [int(pid) for pid in children if pathlib.Path(f'/proc/{pid}/comm').read_text() == 'cloche-gateway\n']
	return pid


def peak_kb(pid):
	[line] = [line for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines() if line.startswith('VmHWM:')]
	return int(line.split()[1])


def allow(world, *more):
	return (*world.net, '--allow', 'allowed.test', *more)


@pytest.fixture
def box(online, world):
	made = online.create(*allow(world), '--trace')
	yield made
	made.remove()


@pytest.fixture(scope='module')
def bulk(world, tmp_path_factory):
	"""site.py, and nghttpd with a file of that size."""
	root = tmp_path_factory.mktemp('bulk')
	with open(root / 'big', 'wb') as file:
		for _ in range(BULK_MB):
			file.write(b'z' * MB)
	script = pathlib.Path(__file__).parent / 'site.py'
	leaf = [str(world.logs / 'leaf.key'), str(world.logs / 'leaf.pem')]
	site = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-B', str(script), world_.UPSTREAM, str(HTTP),
		str(HTTPS), str(root), str(world.logs)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	assert site.stdout.readline() == b'ready\n'
	h2 = subprocess.Popen(world.command(world.internet, 'nghttpd', '-a', world_.UPSTREAM, '-d', str(root), str(H2), *leaf))
	harness.wait_for(lambda: subprocess.run(world.command(world.host, 'nc', '-z', world_.UPSTREAM, str(H2)), check=False)
		.returncode == 0, 'nghttpd')
	yield
	for process in (site, h2):
		process.kill()
		process.communicate()
	(root / 'big').unlink()


def digest_of(n_mb):
	digest = hashlib.sha256()
	for _ in range(n_mb):
		digest.update(b'z' * MB)
	return digest.hexdigest()


@pytest.mark.parametrize('base', [f'http://allowed.test:{HTTP}', f'https://allowed.test:{HTTPS}',
	f'https://allowed.test:{H2}'], ids=['http', 'https', 'h2'])
def test_much_in_bounded_memory(world, box, bulk, base):
	"""Each byte arrives, both ways, and the gateway stays small."""
	n, want = BULK_MB * MB, digest_of(BULK_MB)
	path = '/big' if str(H2) in base else f'/bytes/{n}'
	done = box.sh(f'curl -sS {base}{path} | sha256sum', limit_s=900)
	assert done.out.split()[0] == want, done
	if str(H2) not in base:
		done = box.sh(f"head -c {n} /dev/zero | tr '\\0' z | curl -sS -H Expect: -T - {base}/echo", limit_s=900)
		assert want in done.out, done
	down, *up = box.record.events('net.http')
	assert (down['response_bytes'], down['status']) == (n, 200)
	assert [event['body_sha256'] for event in up] == [want] * len(up) and 'error' not in down
	assert [entry['n'] for entry in world.log('site') if entry['path'] == '/echo'] == [n] * len(up)
	if 'ASAN_OPTIONS' not in os.environ:  # which keeps what was freed
		assert peak_kb(gateway(box)) < MEMORY_MAX_KB


BROKEN = '''
import socket, ssl, struct, sys, threading, time
logs = sys.argv[1]
def serve(port, how):
	listener = socket.create_server(('203.0.113.10', port), backlog=64)
	def accept():
		while True:
			sock, _ = listener.accept()
			threading.Thread(target=run, args=(sock, how), daemon=True).start()
	threading.Thread(target=accept, daemon=True).start()
def run(sock, how):
	try:
		how(sock)
	except OSError:
		pass
	sock.close()
def request(sock):
	data = b''
	while b'\\r\\n\\r\\n' not in data:
		data += sock.recv(65536)
def reset(sock):
	sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
def hangs_up(sock):
	request(sock)
def resets(sock):
	request(sock)
	reset(sock)
def no_http(sock):
	request(sock)
	sock.sendall(b'SSH-2.0-x\\r\\n')
def ends_in_head(sock):
	request(sock)
	sock.sendall(b'HTTP/1.1 200 OK\\r\\nContent-')
def ends_in_body(sock):
	request(sock)
	sock.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 1000\\r\\n\\r\\n' + b'x' * 100)
def ends_in_chunk(sock):
	request(sock)
	sock.sendall(b'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n64\\r\\n' + b'x' * 100 + b'\\r\\n')
def long_head(sock):
	request(sock)
	sock.sendall(b'HTTP/1.1 200 OK\\r\\n')
	for i in range(100000):
		sock.sendall(b'X-%d: ' % i + b'y' * 100 + b'\\r\\n')
def early(sock):
	request(sock)
	sock.sendall(b'HTTP/1.1 413 Too much\\r\\nContent-Length: 8\\r\\nConnection: close\\r\\n\\r\\ntoo much')
	time.sleep(.2) # the rest of the request is there, and makes a reset of what follows
def slow_head(sock):
	request(sock)
	for byte in b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok':
		sock.sendall(bytes([byte]))
		time.sleep(.02)
def no_tls(sock):
	sock.recv(100)
	sock.sendall(b'HTTP/1.1 400 Bad Request\\r\\n\\r\\n')
for i, how in enumerate((hangs_up, resets, no_http, ends_in_head, ends_in_body, ends_in_chunk, long_head, early, slow_head,
	no_tls)):
	serve(9100 + i, how)
print('ready', flush=True)
sys.stdin.read()
'''
# port, what curl got, its exit status, which is that of a run without us, and what the record says
FAULTS = {
	'hangs up': (9100, '', 52, 'the server ended without an answer'),
	'resets': (9101, '', 56, 'the connection was broken off'),
	'is no HTTP': (9102, '', 52, 'the server ended without an answer'),
	'ends in its head': (9103, '', 52, 'the server ended without an answer'),
	'ends in its body': (9104, 'x' * 100, 18, 'the server ended inside its answer'),
	'ends in a chunk': (9105, 'x' * 100, 18, 'the server ended inside its answer'),
	'never ends its head': (9106, None, 0, 'the head is longer than 64 KiB'),
}


@pytest.fixture(scope='module')
def broken(world):
	server = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-c', BROKEN, str(world.logs)),
		stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	assert server.stdout.readline() == b'ready\n'
	yield
	server.kill()
	server.communicate()


@pytest.mark.parametrize('fault', FAULTS)
def test_server_that(online, world, broken, fault):
	"""The program is told at once, as the server would tell it or by a 502 that says who answers."""
	port, body, code, error = FAULTS[fault]
	done = online.sh(f'curl -sS -m 20 http://allowed.test:{port}/ -w "\n%{{http_code}} %{{exitcode}}"', options=allow(world))
	got, (status, exit_code) = '\n'.join(done.lines[:-1]), done.lines[-1].split()
	assert int(exit_code) == code, done
	if body is None:
		assert status == '502' and "comes from the sandbox's gateway" in got, done
	else:
		assert got == body, done
	[exchange] = done.record.events('net.http')
	assert exchange['error'] == error
	assert [flow['bytes_out'] for flow in done.record.events('net.flow')] == [81]


def test_answer_before_the_end_of_an_upload(online, world, broken):
	"""And then a reset, since the server did not read the rest: the program has its answer all the same."""
	done = online.sh('head -c 3000000 /dev/zero | curl -sS -m 20 -H Expect: --data-binary @- http://allowed.test:9107/ '
		'-w " %{http_code}"', options=allow(world))
	assert done.out == 'too much 413', done
	[exchange] = done.record.events('net.http')
	assert exchange['status'] == 413


def test_answer_that_comes_slowly(online, world, broken):
	done = online.sh('curl -sS -m 20 http://allowed.test:9108/', options=allow(world))
	assert done.out == 'ok', done


def test_server_without_tls(online, world, broken):
	done = online.sh('curl -sS -m 20 https://allowed.test:9109/; echo $?', options=allow(world))
	assert done.lines == ['35'], done
	[flow] = done.record.events('net.flow')
	assert flow['failed'] and flow['error'], flow
