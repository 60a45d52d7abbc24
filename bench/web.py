# SPDX-License-Identifier: Apache-2.0
"""A web server and an iperf3 server on loopback, and the proxies the gateway is compared with; all end with their block."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

PAGE = 1024          # bytes of the page that is asked for
READY_S = 15         # a server that takes longer to listen is not there
RATE = 'Requests per second:'


def free_port():
	with socket.socket() as s:
		s.bind(('127.0.0.1', 0))
		return s.getsockname()[1]


def wait_for_port(port, process):
	end = time.monotonic() + READY_S
	while time.monotonic() < end:
		if process.poll() is not None:
			break
		try:
			socket.create_connection(('127.0.0.1', port), 1).close()
			return
		except OSError:
			time.sleep(0.05)
	raise RuntimeError(f'{process.args[0]}: does not listen on {port}')


class Service:
	"""A program that runs in the foreground until the block ends."""

	def __enter__(self):
		self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
			stderr=subprocess.DEVNULL, start_new_session=True)
		wait_for_port(self.port, self.process)
		return self

	def __exit__(self, *error):
		os.killpg(self.process.pid, signal.SIGTERM)
		try:
			self.process.wait(5)
		except subprocess.TimeoutExpired:
			os.killpg(self.process.pid, signal.SIGKILL)
			self.process.wait()


def openssl(*args):
	subprocess.run(['openssl', *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Web(Service):
	"""nginx: one page over HTTP and over HTTPS, for the name bench.test and the address 127.0.0.1."""

	def __init__(self, folder):
		self.folder = pathlib.Path(folder)
		self.folder.mkdir()
		self.port, self.tls_port = free_port(), free_port()
		self.ca = self.folder / 'ca.pem'
		openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
			'-subj', '/CN=bench CA', '-keyout', f'{folder}/ca.key', '-out', str(self.ca))
		openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=bench.test',
			'-keyout', f'{folder}/leaf.key', '-out', f'{folder}/leaf.csr')
		(self.folder / 'names').write_text('subjectAltName=DNS:bench.test,IP:127.0.0.1\n')
		openssl('x509', '-req', '-in', f'{folder}/leaf.csr', '-CA', str(self.ca), '-CAkey', f'{folder}/ca.key', '-CAcreateserial',
			'-days', '2', '-extfile', f'{folder}/names', '-out', f'{folder}/leaf.pem')
		(self.folder / 'page').write_bytes(b'x' * PAGE)
		(self.folder / 'nginx.conf').write_text(f'''
daemon off; master_process off; pid {folder}/nginx.pid; error_log /dev/null;
events {{ worker_connections 4096; }}
http {{
	access_log off; keepalive_requests 1000000; client_body_temp_path {folder}/body; root {folder};
	proxy_temp_path {folder}/t1; fastcgi_temp_path {folder}/t2; uwsgi_temp_path {folder}/t3; scgi_temp_path {folder}/t4;
	server {{
		listen 127.0.0.1:{self.port} backlog=4096; listen 127.0.0.1:{self.tls_port} ssl http2 backlog=4096;
		ssl_certificate {folder}/leaf.pem; ssl_certificate_key {folder}/leaf.key;
	}}
}}
''')

	def command(self):
		return ['nginx', '-c', str(self.folder / 'nginx.conf')]


class Iperf(Service):
	def __init__(self):
		self.port = free_port()

	def command(self):
		return ['iperf3', '-s', '-p', str(self.port)]

	def __enter__(self):
		super().__enter__()
		time.sleep(0.2)  # the look at its port was a client to it
		return self


# What squid does with TLS. The first answers the client before it has seen upstream's certificate, and takes a connection
# to upstream that it kept: less work than is asked of the gateway. The other verifies first, as the gateway does.
BUMP_EARLY = 'ssl_bump peek step1\nssl_bump bump all'
BUMP_VERIFIED = 'ssl_bump peek step1\nssl_bump stare step2\nssl_bump bump step3'


class Squid(Service):
	"""squid with ssl-bump: reads HTTPS with certificates of its own, trusts the web server's CA."""

	def __init__(self, folder, web, bump):
		self.folder = pathlib.Path(folder)
		self.folder.mkdir()
		self.folder.parent.chmod(0o711)  # it runs as a user of its own
		self.port = free_port()
		subprocess.run(['/usr/lib/squid/security_file_certgen', '-c', '-s', f'{folder}/certs', '-M', '4MB'], check=True,
			stdout=subprocess.DEVNULL)
		subprocess.run(['chown', '-R', 'proxy', str(folder)], check=True)
		(self.folder / 'both.pem').write_bytes(web.ca.read_bytes() + (web.folder / 'ca.key').read_bytes())
		self.ca = web.ca
		(self.folder / 'hosts').write_text('127.0.0.1 bench.test\n')
		(self.folder / 'squid.conf').write_text(f'''
hosts_file {folder}/hosts
http_port 127.0.0.1:{self.port} ssl-bump generate-host-certificates=on dynamic_cert_mem_cache_size=4MB cert={folder}/both.pem
sslcrtd_program /usr/lib/squid/security_file_certgen -s {folder}/certs -M 4MB
acl step1 at_step SslBump1
acl step2 at_step SslBump2
acl step3 at_step SslBump3
{bump}
tls_outgoing_options cafile={web.ca}
http_access allow all
cache deny all
access_log none
cache_log /dev/null
pid_filename none
shutdown_lifetime 1 seconds
visible_hostname bench
''')

	def command(self):
		return ['squid', '-N', '-f', str(self.folder / 'squid.conf')]


class Mitmproxy(Service):
	def __init__(self, folder, web):
		self.folder, self.web = folder, web
		self.port = free_port()
		self.ca = folder / 'mitmproxy-ca-cert.pem'

	def command(self):
		return ['mitmdump', '-q', '--listen-host', '127.0.0.1', '-p', str(self.port), '--set', f'confdir={self.folder}',
			'--set', f'ssl_verify_upstream_trusted_ca={self.web.ca}']


def ab(url, n, kept, proxy=None):
	"""The command that asks for a page n times, eight at once, on kept connections or a new one each."""
	return ['ab', '-q', '-l', '-c', '8', '-n', str(n), *(['-k'] if kept else []), *(['-X', f'127.0.0.1:{proxy}'] if proxy else []), url]


def rate(output):
	"""Requests a second, from what ab printed; a run in which one failed is none."""
	lines = dict(line.split(':', 1) for line in output.splitlines() if ':' in line)
	if int(lines['Failed requests']) != 0 or 'Non-2xx responses' in lines or lines['HTML transferred'].split()[0] == '0':
		raise RuntimeError(f'requests failed:\n{output}')
	return float(lines[RATE[:-1]].split()[0])


def load(program, ca, address, port, how, n, proxy=None):
	"""The same over HTTPS (load.c), for ab speaks TLS with a proxy itself: how is kept, new or resumed."""
	return [str(program), str(ca), address, str(port), 'bench.test', how, str(n), *([str(proxy)] if proxy else [])]


def iperf(host, port, is_down):
	return ['iperf3', '-c', host, '-p', str(port), '-t', '2', '-J', *(['-R'] if is_down else [])]


def gigabits(output):
	return json.loads(output)['end']['sum_received']['bits_per_second'] / 1e9
