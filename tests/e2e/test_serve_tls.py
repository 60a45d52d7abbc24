# SPDX-License-Identifier: Apache-2.0
"""The control plane over TLS, by clients of others: what it is started with, what it speaks, and how its certificate is renewed."""
import contextlib
import hashlib
import http.client
import os
import pathlib
import random
import signal
import socket
import ssl
import subprocess
import time

import pytest

import harness
from conftest import open_folder
from harness import wait_for
from serving import Client, Server, free_port
from test_serve_previews import Page, link, make, serve_inside, target_of

NAMES = 'subjectAltName=DNS:localhost,DNS:cloche.example.org,IP:127.0.0.1'
CA_CONFIG = """[ca]
default_ca = own
[own]
new_certs_dir = .
database = index.txt
rand_serial = yes
default_md = sha256
unique_subject = no
policy = any
x509_extensions = leaf
[any]
commonName = supplied
[leaf]
subjectAltName = DNS:localhost,DNS:cloche.example.org,DNS:*.previews.example.net,IP:127.0.0.1
[authority]
basicConstraints = critical,CA:TRUE
[req]
distinguished_name = none
[none]
"""


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


class Authority:
	"""Ours: a root, an authority below it, and what that signs, with the times that are asked for."""

	def __init__(self, folder):
		self.folder = pathlib.Path(folder)
		self.folder.mkdir()
		(self.folder / 'index.txt').write_text('')
		(self.folder / 'ca.conf').write_text(CA_CONFIG)
		self.new_key('root')
		self.run('req', '-x509', '-config', 'ca.conf', '-extensions', 'authority', '-key', 'root.key', '-subj', '/CN=Root of tests', '-days', '30', '-out', 'root.pem')
		self.new_key('middle')
		self.sign('middle', 'root', '-extensions', 'authority')

	def run(self, *args):
		subprocess.run(['openssl', *args], cwd=self.folder, check=True, capture_output=True)

	def new_key(self, name):
		self.run('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', f'{name}.key')
		(self.folder / f'{name}.key').chmod(0o600)

	def sign(self, name, by, *options, begin=-3600, end=3600):
		dates = [time.strftime('%Y%m%d%H%M%SZ', time.gmtime(time.time() + s)) for s in (begin, end)]
		self.run('req', '-new', '-config', 'ca.conf', '-key', f'{name}.key', '-subj', f'/CN={name}', '-out', f'{name}.csr')
		self.run('ca', '-batch', '-config', 'ca.conf', '-notext', '-keyfile', f'{by}.key', '-cert', f'{by}.pem', '-startdate', dates[0], '-enddate', dates[1],
			*options, '-in', f'{name}.csr', '-out', f'{name}.pem')

	def make(self, name, **times):
		"""Certificate with its chain, and key."""
		self.new_key(name)
		self.sign(name, 'middle', **times)
		cert = self.folder / f'{name}.pem'
		cert.write_text(cert.read_text() + (self.folder / 'middle.pem').read_text())
		return cert, self.folder / f'{name}.key'

	def context(self):
		return ssl.create_default_context(cafile=self.folder / 'root.pem')


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
	return Authority(tmp_path_factory.mktemp('authority') / 'ca')


@pytest.fixture(scope='module')
def secure(authority, state, run_dir):
	with open_folder('tls') as folder:
		cloche = harness.Cloche(folder / 'state', run_dir, folder)
		harness.lend_skeleton(state, cloche.state)
		(folder / 'config.json').write_text('{"names": ["cloche.example.org"], "previews": {"domain": "previews.example.net"}}')
		cert, key = authority.make('first')
		(folder / 'cert.pem').write_bytes(cert.read_bytes())
		(folder / 'key.pem').write_bytes(key.read_bytes())
		(folder / 'key.pem').chmod(0o600)
		made = Server(cloche, '--config', folder / 'config.json', '--socket', folder / 'cloche.sock', '--tls-cert', folder / 'cert.pem', '--tls-key', folder / 'key.pem',
			'--previews', '127.0.0.1:0', tls=authority.context())
		yield made
		made.close()
		cloche.check_clean()


@pytest.fixture
def box(secure):
	made = secure.admin.create()
	yield made
	assert secure.admin.delete(at(made)).status == 200


def connect(secure, context=None, limit_s=10, name='localhost'):
	sock = socket.create_connection(('127.0.0.1', secure.port), timeout=limit_s)
	return (context or secure.tls).wrap_socket(sock, server_hostname=name, suppress_ragged_eofs=False)


def ask(sock, text):
	sock.sendall(text.encode())
	got = b''
	while chunk := sock.recv(65536):
		got += chunk
	return got


# ---- what it speaks ----

def test_clients_of_others(secure, authority, box):
	assert secure.admin.exec(box, 'echo over TLS')['stdout'] == 'over TLS\n'
	url = f'https://localhost:{secure.port}/health'
	for options, code in ((['--cacert', authority.folder / 'root.pem'], 0), ([], 60)):
		done = subprocess.run(['curl', '-sS', '--max-time', '10', *options, url], capture_output=True, check=False)
		assert done.returncode == code, done
	with pytest.raises(ssl.SSLCertVerificationError):
		connect(secure, name='other.example.org')
	with pytest.raises(ssl.SSLCertVerificationError):
		connect(secure, ssl.create_default_context())


def test_versions_and_protocols(secure, authority):
	for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
		context = authority.context()
		context.minimum_version = context.maximum_version = version
		with connect(secure, context) as sock:
			assert sock.version() == version.name.replace('_', '.')
	for old in ('-tls1', '-tls1_1'):
		done = subprocess.run(['openssl', 's_client', '-connect', f'127.0.0.1:{secure.port}', old, '-cipher', 'ALL:@SECLEVEL=0'], stdin=subprocess.DEVNULL,
			capture_output=True, check=False, timeout=10)
		assert b'protocol version' in done.stderr or b'no protocols available' in done.stderr, done
	context = authority.context()
	context.set_alpn_protocols(['h2', 'http/1.1'])
	with connect(secure, context) as sock:
		assert sock.selected_alpn_protocol() == 'http/1.1'
	context.set_alpn_protocols(['h2', 'ftp'])
	with pytest.raises(ssl.SSLError, match='no application protocol'):
		connect(secure, context)


def test_an_end_is_said(secure):
	"""So that an answer that was cut off shows; without it Python raises."""
	with connect(secure) as sock:
		got = ask(sock, 'GET /health HTTP/1.0\r\n\r\n')
	assert got.startswith(b'HTTP/1.1 200 ') and got.endswith(b'}')


def test_browsers_are_told_to_stay(secure):
	for host, stays in (('cloche.example.org', True), ('localhost', False), ('127.0.0.1', False)):
		with connect(secure) as sock:
			got = ask(sock, f'GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n')
		assert (b'\r\nStrict-Transport-Security: max-age=31536000\r\n' in got) == stays, got
	for origin, status in (('https://cloche.example.org', b'200'), ('http://cloche.example.org', b'403')):
		with connect(secure) as sock:
			got = ask(sock, f'GET /health HTTP/1.1\r\nHost: cloche.example.org\r\nOrigin: {origin}\r\nConnection: close\r\n\r\n')
		assert got.split()[1] == status, got


@pytest.mark.parametrize('method', ['GET', 'POST', 'DELETE', 'OPTIONS', 'CONNECT', 'HEAD'])
def test_plain_http_is_told_what_to_do(secure, method):
	with socket.create_connection(('127.0.0.1', secure.port), timeout=10) as sock:
		got = ask(sock, f'{method} /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc')
	assert got.startswith(b'HTTP/1.1 400 ') and b'this port speaks TLS: use https://' in got, got


def test_what_is_no_tls_harms_nobody(secure):
	rest = random.Random(3)
	for data in (b'\x16\x03\x01', b'\x16\x03\x01\xff\xff' + bytes(70000), b'\x16\x03\x01\x00\x05hello', b'SSH-2.0-x\r\n', b'\x80\x2e\x01\x00\x02', *(rest.randbytes(300) for _ in range(20))):
		with socket.create_connection(('127.0.0.1', secure.port), timeout=10) as sock, contextlib.suppress(OSError): # it may have gone
			sock.sendall(data)
			sock.shutdown(socket.SHUT_WR)
			while sock.recv(4096):
				pass
	assert secure.admin.get('/health').status == 200


def test_slow_handshakes_hold_nobody_up(secure):
	hello = memoryview(_client_hello())
	with contextlib.ExitStack() as stack:
		for n in range(300):
			sock = stack.enter_context(socket.create_connection(('127.0.0.1', secure.port), timeout=10))
			sock.sendall(hello[:n % len(hello)])
		began = time.monotonic()
		for _ in range(5):
			assert Client(secure, secure.key).get('/health').status == 200
		assert time.monotonic() - began < 3


def _client_hello():
	out, context = ssl.MemoryBIO(), ssl.create_default_context()
	with contextlib.suppress(ssl.SSLWantReadError):
		context.wrap_bio(ssl.MemoryBIO(), out, server_hostname='localhost').do_handshake()
	return out.read()


def test_streams_and_files(secure, box):
	events = secure.admin.stream(at(box, '/watch'))
	got = list(secure.admin.stream(at(box, '/exec'), {'command': 'head -c 3000000 /dev/zero | tr "\\0" x; echo end'}))
	assert sum(len(data['data']) for name, _, data in got if name == 'stdout') == 3000004 and got[-1][0] == 'exit'
	assert events.take(1)[0][2]['stdout_bytes'] == 3000004
	data = random.Random(1).randbytes(64 << 20)
	assert secure.admin.put(at(box, '/files/content?path=/workspace/big'), data).status == 201
	down = secure.admin.get(at(box, '/files/content?path=/workspace/big'))
	assert hashlib.sha256(down.body).digest() == hashlib.sha256(data).digest()
	assert [event[1] for event in events.take(2)] == ['r2', 'r3']
	events.close()


def test_many_connections(secure):
	connections = [http.client.HTTPSConnection('127.0.0.1', secure.port, timeout=20, context=secure.tls) for _ in range(200)]
	for _ in range(2):
		for connection in connections:
			connection.request('GET', '/health')
		for connection in connections:
			response = connection.getresponse()
			assert response.status == 200 and response.read()
	for connection in connections:
		connection.close()


# ---- what it is started with ----

def write(path, text):
	path.write_bytes(text if isinstance(text, bytes) else text.encode())
	return path


def encrypted(authority, tmp_path, cert, key):
	authority.run('pkey', '-in', str(key), '-aes256', '-passout', 'pass:secret', '-out', str(tmp_path / 'locked.key'))
	return cert, tmp_path / 'locked.key'


STARTS = {
	'other key': (lambda a, t, c, k: (c, a.make('another')[1]), 'the key of --tls-key is not that of the certificate of --tls-cert'),
	'over': (lambda a, t, c, k: a.make('over', begin=-7200, end=-3600), 'the certificate of --tls-cert ended on 20'),
	'not yet': (lambda a, t, c, k: a.make('early', begin=86400, end=2 * 86400), 'the certificate of --tls-cert begins on 20'),
	'no certificate': (lambda a, t, c, k: (k, k), '--tls-cert: there is no certificate in it, as PEM'),
	'no key': (lambda a, t, c, k: (c, c), '--tls-key: there is no private key in it, as PEM'),
	'no text': (lambda a, t, c, k: (write(t / 'n', b'\xff\xfe' * 99), k), "holds no text: want PEM"),
	'zeros': (lambda a, t, c, k: (c, write(t / 'z', b'\0' * 99)), "holds no text: want PEM"),
	'garbage': (lambda a, t, c, k: (write(t / 'g', 'hello\n' * 99), k), '--tls-cert: there is no certificate in it, as PEM'),
	'empty': (lambda a, t, c, k: (write(t / 'e', ''), k), '--tls-cert: there is no certificate in it, as PEM'),
	'bad chain': (lambda a, t, c, k: (write(t / 'b', c.read_text() + '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'), k), 'what stands behind the first certificate is none'),
	'passphrase': (encrypted, '--tls-key: the key has a passphrase: store it without one'),
	'no file': (lambda a, t, c, k: (c, t / 'nowhere'), "nowhere': No such file or directory"),
	'key alone': (lambda a, t, c, k: (None, k), '--tls-cert and --tls-key belong together'),
	'certificate alone': (lambda a, t, c, k: (c, None), '--tls-cert and --tls-key belong together'),
}


@pytest.mark.parametrize('how, says', STARTS.values(), ids=STARTS)
def test_what_cannot_be_used_is_refused_at_start(authority, tmp_path, run_dir, how, says):
	with open_folder('tls-start') as folder:
		cert, key = how(authority, tmp_path, *authority.make('good'))
		options = [*(['--tls-cert', cert] if cert else []), *(['--tls-key', key] if key else [])]
		done = harness.Cloche(folder / 'state', run_dir, folder).call('serve', '--listen', f'127.0.0.1:{free_port()}', '--socket', folder / 's', *options, limit_s=20)
	assert done.code == 125 and says in done.err and len(done.err.splitlines()) == 1, done


def test_the_key_is_the_launchers(secure):
	pid = secure.serve_pid()
	assert os.stat(f'/proc/{pid}/mem').st_uid == 0, 'its memory is nobody else\'s of its user'
	key = secure.options[secure.options.index('--tls-key') + 1]
	assert os.stat(key).st_mode & 0o077 == 0
	uid = os.stat(f'/proc/{pid}').st_uid or int(pathlib.Path(f'/proc/{pid}/status').read_text().split('Uid:')[1].split()[0])
	assert uid != 0 and subprocess.run(['cat', key], user=uid, group=uid, extra_groups=[], capture_output=True, check=False).returncode == 1
	for fd in pathlib.Path(f'/proc/{pid}/fd').iterdir():
		assert 'key.pem' not in os.readlink(fd)


# ---- how it is renewed ----

def renew(secure, cert, key):
	for option, path in (('--tls-cert', cert), ('--tls-key', key)):
		pathlib.Path(secure.options[secure.options.index(option) + 1]).write_bytes(path.read_bytes())
	secure.process.send_signal(signal.SIGHUP)


def serial(secure):
	with connect(secure) as sock:
		return sock.getpeercert()['serialNumber']


def test_a_renewed_certificate_is_used_at_once(secure, authority, box):
	before = serial(secure)
	old = http.client.HTTPSConnection('127.0.0.1', secure.port, timeout=20, context=secure.tls)
	old.request('GET', '/health')
	assert old.getresponse().read()
	events = secure.admin.stream(at(box, '/watch'))
	renew(secure, *authority.make('second'))
	second = wait_for(lambda: serial(secure) != before and serial(secure), 'the second certificate')
	old.request('GET', '/health')
	assert old.getresponse().status == 200, 'connections go on with the one they began with'
	old.close()
	secure.admin.exec(box, 'true')
	assert events.take(1)[0][1] == 'r1'
	events.close()
	for how, says in (('other key', 'is not that of the certificate'), ('over', 'ended on 20'), ('garbage', 'there is no certificate'), ('no text', 'want PEM')):
		n = len(secure.said())
		cert, key = authority.make('bad')
		cert, key = STARTS[how][0](authority, authority.folder, cert, key)
		renew(secure, cert, key)
		line = wait_for(lambda n=n: secure.said()[n:].strip(), 'a line of the log')
		assert line.startswith('cloche: the certificate that was used so far stays: ') and says in line, line
		assert serial(secure) == second
	pathlib.Path(secure.options[secure.options.index('--tls-cert') + 1]).unlink()
	n = len(secure.said())
	secure.process.send_signal(signal.SIGHUP)
	assert 'No such file or directory' in wait_for(lambda: secure.said()[n:].strip(), 'a line of the log')
	os.kill(secure.serve_pid(), signal.SIGKILL)
	wait_for(secure.is_up, 'the next half', 20)
	assert serial(secure) == second, 'what was good is what the next one begins with'


def test_renewals_that_come_fast(secure, authority):
	"""The last one wins, whatever came between."""
	made = [authority.make(f'fast{n}') for n in range(5)]
	for cert, key in made:
		renew(secure, cert, key)
	want = subprocess.run(['openssl', 'x509', '-noout', '-serial', '-in', made[-1][0]], capture_output=True, check=True, text=True).stdout.strip().split('=')[1]
	wait_for(lambda: serial(secure) == want, 'the last certificate')


def test_a_certificate_that_runs_out_is_no_reason_not_to_start_again(secure, authority):
	renew(secure, *authority.make('short', end=3))
	loose = ssl.create_default_context()
	loose.check_hostname, loose.verify_mode = False, ssl.CERT_NONE
	secure_tls, secure.tls = secure.tls, loose
	try:
		time.sleep(0.1)
		wait_for(lambda: _is_over(secure), 'the end of its time', 8)
		os.kill(secure.serve_pid(), signal.SIGKILL)
		wait_for(secure.is_up, 'the next half', 20)
		assert _is_over(secure)
	finally:
		renew(secure, *authority.make('last'))
		secure.tls = secure_tls
	wait_for(lambda: not _is_over(secure), 'a good one')


def _is_over(secure):
	text = ssl.get_server_certificate(('127.0.0.1', secure.port))
	return subprocess.run(['openssl', 'x509', '-noout', '-checkend', '0'], input=text, text=True, capture_output=True, check=False).returncode == 1


# ---- previews ----

class SecurePage(Page):
	cookie_name = '__Host-cloche_preview'

	def __init__(self, made, context, cookie=None):
		super().__init__(made, cookie)
		self.context = context

	def open(self):
		connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=20)
		connection.sock = self.context.wrap_socket(socket.create_connection(('127.0.0.1', self.port), 20), server_hostname=self.host.partition(':')[0])
		return connection


def test_previews(secure, authority, box):
	serve_inside(secure.admin, box)
	made = make(secure.admin, box)
	page = SecurePage(made, authority.context())
	assert made['url'] == f'https://pv-{made["id"][3:]}.previews.example.net:{page.port}/' and page.status() == 403
	status, headers, _ = page.get(target_of(link(secure.admin, page.id)['url']))
	[line] = headers.get_all('Set-Cookie')
	name, _, rest = line.partition('=')
	value, _, attributes = rest.partition('; ')
	assert (status, name, attributes) == (303, '__Host-cloche_preview', 'Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure')
	page.cookie = value
	with contextlib.closing(page.open()) as over:
		for _ in range(3):
			assert page.ask('GET', '/', over=over)[2].endswith(b'hello from inside</h1>')
		assert page.ask('POST', '/sum', bytes(3 << 20), over=over)[2].startswith(b'3145728 ')
		assert len(page.ask('GET', '/big/3000000', over=over)[2]) == 3000000
	assert ('x-cloche-origin', page.origin) in page.head(Origin=page.origin) and page.status(Origin=page.origin.replace('https', 'http') + '0') == 403
	page.cookie_name = 'cloche_preview' # which another host of this domain can set
	assert page.status() == 403
	assert b'this port speaks TLS' in page.raw(f'GET / HTTP/1.1\r\nHost: {page.host}\r\n\r\n')
