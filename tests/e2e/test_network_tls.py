# SPDX-License-Identifier: Apache-2.0
"""TLS is read for the record and stays what it is for the programs: they trust the sandbox's gateway, the gateway
trusts only what they would, and whatever does not fit is told."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import harness
import pytest

from world import UPSTREAM

GET = 'https://allowed.test/'
JAVA = '''
import java.net.*;
class T {
	public static void main(String[] a) throws Exception {
		System.out.println(((HttpURLConnection) new URL("https://allowed.test/").openConnection()).getResponseCode());
	}
}
'''
# Each prints the status it got, by the trust its runtime has by itself.
RUNTIMES = {
	'curl': f"curl -sS -o /dev/null -w '%{{http_code}}\\n' {GET}",
	'curl bare': f"env -i /usr/bin/curl -sS -o /dev/null -w '%{{http_code}}\\n' {GET}",
	'curl login': f"env -i /bin/bash -lc \"curl -sS -o /dev/null -w '%{{http_code}}\\n' {GET}\"",
	'curl nobody': f"su -s /bin/sh nobody -c \"curl -sS -o /dev/null -w '%{{http_code}}\\n' {GET}\"",
	'wget': f"wget -q -S -O /dev/null {GET} 2>&1 | sed -n 's/^ *HTTP[^ ]* \\([0-9]*\\).*/\\1/p'",
	'urllib': f"/usr/bin/python3 -c \"import urllib.request as u; print(u.urlopen('{GET}').status)\"",
	'urllib bare': f"env -i /usr/bin/python3 -c \"import urllib.request as u; print(u.urlopen('{GET}').status)\"",
	'requests': f"/usr/bin/python3 -c \"import requests; print(requests.get('{GET}').status_code)\"",
	'requests bare': f"env -i /usr/bin/python3 -c \"import requests; print(requests.get('{GET}').status_code)\"",
	'node': f"node -e \"fetch('{GET}').then(r => console.log(r.status), e => console.log(e.cause && e.cause.code))\"",
	'openssl': 'printf \'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n\' | '
		'openssl s_client -quiet -verify_return_error -connect allowed.test:443 -servername allowed.test '
		'2>/dev/null | sed -n \'s/^HTTP[^ ]* \\([0-9]*\\).*/\\1/p\'',
	'java': f"cat > /tmp/T.java <<'E'\n{JAVA}\nE\njava /tmp/T.java",
	'java bare': f"cat > /tmp/T.java <<'E'\n{JAVA}\nE\nenv -i /usr/bin/java /tmp/T.java",
}


def allowed(world):
	return ('--net', 'allow', '--allow', 'allowed.test', *world.net)


def has(runtime):
	program = runtime.split()[0]
	if program == 'requests':
		return pathlib.Path('/usr/lib/python3/dist-packages/requests').exists()
	return program == 'urllib' or shutil.which(program)


@pytest.mark.parametrize('runtime', RUNTIMES)
def test_runtime_trusts_the_gateway(online, world, runtime):
	if not has(runtime):
		pytest.skip(f'{runtime.split()[0]} is not installed')
	done = online.sh(RUNTIMES[runtime], options=allowed(world))
	assert done.out.strip() == '200', done
	[request] = done.record.events('net.http')
	assert (request['url'], request['status'], request['host']) == (GET, 200, 'allowed.test')
	[flow] = done.record.events('net.flow')
	assert (flow['tls'], flow['sni'], flow.get('failed', False)) == ('intercepted', 'allowed.test', False)
	[seen] = world.log('http')
	assert seen['tls'] and seen['sni'] == 'allowed.test'


def test_git_gets_an_answer_and_no_word_about_certificates(online, world):
	done = online.sh('git ls-remote https://allowed.test/x.git 2>&1; env -i git ls-remote https://allowed.test/x.git 2>&1',
		options=allowed(world))
	assert 'certificate' not in done.out.lower() and done.out.count('not valid') + done.out.count('git') >= 2, done
	assert [event['status'] for event in done.record.events('net.http')] == [200, 200]


def test_store_made_anew_inside_keeps_it(online, world):
	done = online.sh(f'update-ca-certificates >/dev/null 2>&1; update-ca-certificates --fresh >/dev/null 2>&1; '
		f'{RUNTIMES["curl bare"]}; {RUNTIMES["urllib bare"]}; {RUNTIMES["requests bare"]}', options=allowed(world))
	assert done.lines == ['200'] * 3, done


def test_what_is_put_inside_is_no_change_of_the_agents(online, world):
	done = online.sh('cat /etc/ssl/certs/* > /dev/null 2>&1; true', options=allowed(world))
	[etc] = [root for root in done.record.changes() if root['root'] == '/etc']
	assert not any(etc[kind] for kind in ('added', 'removed', 'changed', 'renamed', 'mode_changed')), etc


def test_sandboxes_do_not_trust_each_other(online, world):
	first, second = (online.create(*allowed(world)) for _ in range(2))
	try:
		pem = first.sh('cat /etc/ssl/certs/cloche-sandbox.pem').out
		check = 'printf %s "$1" > /tmp/a.pem; openssl verify /tmp/a.pem 2>&1'
		assert first.sh(check, pem).out.endswith(': OK\n')
		done = second.sh(check, pem)
		assert 'OK' not in done.out and 'self-signed' in done.out, done
	finally:
		first.remove()
		second.remove()


def descriptors(pid, name):
	"""Those of a process that are open on something with this in its name. Others may be closed while we look."""
	for fd in pathlib.Path(f'/proc/{pid}/fd').iterdir():
		with contextlib.suppress(FileNotFoundError):
			if name in os.readlink(fd):
				yield fd


def test_key_is_in_no_file_and_not_inside(online, world, state):
	box = online.create(*allowed(world))
	try:
		assert box.sh(RUNTIMES['curl']).out == '200\n' # the gateway runs, and has it
		[supervisor] = box.supervisor()
		[line] = [line for fd in descriptors(supervisor, 'secrets') for line in fd.read_text().splitlines() if '"ca"' in line]
		key = json.loads(line)['ca']['key']
		assert len(key) == 64
		kept = 0
		for kept, (path, text) in enumerate(harness.contents(state), 1):
			assert key.encode() not in text and bytes.fromhex(key) not in text, path
		assert kept > 100
		done = box.py('''
import glob, os, sys
key = sys.argv[1][::-1].encode() # so that this command itself does not have it
for path in glob.glob('/proc/[0-9]*/*'):
	if os.path.basename(path) in ('environ', 'cmdline', 'status', 'maps', 'mountinfo'):
		assert key not in open(path, 'rb').read(), path
for path in filter(os.path.lexists, glob.glob('/proc/[0-9]*/fd/*')): # our own listing is closed again
	assert 'memfd' not in os.readlink(path), path
print('fine')''', key[::-1])
		assert done.out == 'fine\n', done
	finally:
		box.remove()


NAMES = '''
import socket, ssl, sys
def t(sni, host):
	c = ssl.create_default_context()
	c.check_hostname = False
	try:
		w = c.wrap_socket(socket.create_connection((host, 443), 5), server_hostname=sni)
		w.sendall(b'GET /n HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n')
		print(sni, host, w.recv(30)[9:12].decode())
	except OSError as e:
		print(sni, host, str(e))
t(None, 'allowed.test')
t('ALLOWED.TEST', 'allowed.test')
t('allowed.test.', 'allowed.test')
t('denied.test', 'allowed.test')
t('allowed.test', socket.gethostbyname('denied.test'))
'''


def test_names_of_tls_agree_with_those_looked_up(online, world):
	done = online.py(NAMES, options=allowed(world))
	assert [line.split()[2:] for line in done.lines[:3]] == [['200']] * 3, done
	for line in done.lines[3:]:
		assert 'ACCESS_DENIED' in line, done
	refused = [event for event in done.record.events('net.refused') if event['stage'] == 'tls']
	assert ['denied.test' in event['reason'] for event in refused] == [True, True], refused
	assert {request['sni'] for request in world.log('http')} == {'allowed.test'}


@pytest.fixture
def bad_servers(world, tmp_path):
	"""Ports of upstream at which allowed.test shows a certificate that nobody should accept."""
	def openssl(*args):
		subprocess.run(['openssl', *args], check=True, cwd=tmp_path, capture_output=True)

	curve = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes')
	ca = ('-CA', str(world.logs / 'ca.pem'), '-CAkey', str(world.logs / 'ca.key'), '-CAcreateserial')
	for name, host, how in (('expired', 'allowed.test', (*ca, '-days', '-1')), ('other', 'other.test', (*ca, '-days', '9')),
		('self', 'allowed.test', ('-signkey', 'self.key', '-days', '9'))):
		(tmp_path / 'ext').write_text(f'subjectAltName=DNS:{host}\n')
		openssl('req', *curve, '-keyout', f'{name}.key', '-out', f'{name}.csr', '-subj', '/CN=x')
		openssl('x509', '-req', '-in', f'{name}.csr', *how, '-extfile', 'ext', '-out', f'{name}.pem')
	servers = {}
	for port, name in enumerate(('expired', 'other', 'self'), 8441):
		servers[name] = port, subprocess.Popen(world.command(world.internet, 'openssl', 's_server', '-accept',
			f'{UPSTREAM}:{port}', '-cert', f'{name}.pem', '-key', f'{name}.key', '-www'), cwd=tmp_path,
			stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
		while b'ACCEPT' not in servers[name][1].stdout.readline():
			assert servers[name][1].poll() is None
	yield {name: port for name, (port, _) in servers.items()}
	for _, process in servers.values():
		process.kill()
		process.wait()


@pytest.mark.parametrize('fault, reason', [('expired', 'certificate has expired'), ('other', 'hostname mismatch'),
	('self', 'self-signed certificate')])
def test_bad_certificate_of_upstream_is_never_accepted(online, world, bad_servers, fault, reason):
	port = bad_servers[fault]
	done = online.sh(f'curl -sS -m 9 -w "%{{http_code}}\\n" https://allowed.test:{port}/ 2>&1', options=allowed(world))
	assert '200' not in done.out and done.out, done
	[flow] = done.record.events('net.flow')
	assert flow['failed'] and flow['error'] == f'upstream\'s certificate is not valid: {reason}', flow


SILENT = 'the program closed right after the handshake: it may not trust this sandbox\'s CA'
# Not even an end of file.
RESET = '''
import socket, ssl, struct
c = ssl.create_default_context().wrap_socket(socket.create_connection(('allowed.test', 443)), server_hostname='allowed.test')
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
c.close()
'''


@pytest.mark.parametrize('client, error', [
	('curl -sS --cacert /etc/ssl/certs/ISRG_Root_X1.pem --capath /nowhere https://allowed.test/',
		'the program does not accept this sandbox\'s CA: alert unknown CA'),
	('openssl s_client -connect allowed.test:443 -servername allowed.test < /dev/null', SILENT), (f'python3 -c "{RESET}"', SILENT)])
def test_client_that_refuses_the_authority_is_told_as_such(online, world, client, error):
	done = online.sh(f'{client} > /dev/null 2>&1', options=allowed(world))
	[flow] = done.record.events('net.flow')
	tls = 'intercepted' if error == SILENT else 'unreadable'
	assert (flow['tls'], flow['sni'], flow.get('error')) == (tls, 'allowed.test', error), flow


@pytest.fixture
def silent(world):
	"""A port that takes connections, and says nothing."""
	code = f'''
import socket
server = socket.create_server(('{UPSTREAM}', 4430))
print('ready', flush=True)
taken = []
while True:
	taken.append(server.accept())
'''
	server = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-c', code), stdout=subprocess.PIPE)
	assert server.stdout.readline() == b'ready\n'
	yield
	server.kill()
	server.communicate()


def test_program_that_gives_up_waiting_for_upstream(online, world, silent):
	"""Nothing of its flow stays behind, though upstream never says a word."""
	box = online.create('--trace', '--net', 'open', *world.net)
	try:
		assert box.sh('curl -sS -m 1 https://allowed.test:4430/').code == 28
		[flow] = harness.wait_for(lambda: box.record.events('net.flow'), 'net.flow')
		assert (flow['port'], flow['error']) == (4430, 'the program closed before the handshake')
	finally:
		box.remove()


def test_refusal_is_told_though_nobody_read_it(online, world):
	"""The program does not trust the gateway, or leaves at once, so that it is never told why."""
	done = online.sh('curl -sS --cacert /etc/ssl/certs/ISRG_Root_X1.pem --capath /nowhere https://denied.test/; nc -z denied.test 80',
		options=allowed(world))
	told = [(event['host'], event['stage'], event.get('port')) for event in done.record.events('net.refused')]
	assert [entry for entry in told if entry[1] != 'dns'] == [('denied.test', 'connect', 443), ('denied.test', 'connect', 80)]


def test_what_is_no_request_inside_tls_is_told(online, world):
	done = online.sh("printf 'HELLO\\r\\n' | timeout 5 openssl s_client -quiet -connect allowed.test:443 -servername allowed.test",
		options=('--allow', 'GET allowed.test/x', *world.net))
	[refused] = done.record.events('net.refused')
	assert (refused['host'], refused['port'], refused['rule']) == ('allowed.test', 443,
		'default: no bytes beside rules for requests')
	assert done.record.events('net.flow')[0]['error'] == 'no HTTP'


def test_passed_through_it_is_upstreams_own(online, world):
	done = online.sh('openssl s_client -connect allowed.test:443 -servername allowed.test < /dev/null 2>/dev/null '
		'| openssl x509 -noout -issuer; openssl s_client -connect b.wild.test:443 -servername b.wild.test < /dev/null '
		'2>/dev/null | openssl x509 -noout -issuer',
		options=('--net', 'allow', '--allow', 'allowed.test', '--allow', '*.wild.test', '--tls', 'allowed.test=passthrough',
			*world.net))
	assert done.lines[0] == 'issuer=CN = upstream CA' and 'Cloche sandbox' in done.lines[1], done
	assert [(flow['host'], flow['tls'], flow['sni']) for flow in done.record.events('net.flow')] == [
		('allowed.test', 'passthrough', 'allowed.test'), ('b.wild.test', 'intercepted', 'b.wild.test')]


def test_refused_host_says_why_inside_tls(online, world):
	done = online.sh('curl -sS -m 5 -i https://denied.test/', options=allowed(world))
	assert ' 403 ' in done.lines[0] and 'application/problem+json' in done.out and 'denied.test' in done.out, done
	assert not world.log('http')
