# SPDX-License-Identifier: Apache-2.0
"""Who trusts the sandbox's gateway by which way, and what is told of those that do not: runtimes without their variables,
bundles that a program brings itself, roots of other distributions, clients that keep one WebSocket."""
import collections
import os
import pathlib
import shutil
import subprocess

import harness
import pytest

GET = 'https://allowed.test/'
CLOSED = 'the program closed during the handshake: it may not trust this sandbox\'s CA'
UNKNOWN = 'the program does not accept this sandbox\'s CA: alert unknown CA'


def allowed(world):
	return ('--allow', 'allowed.test', *world.net)


def outcomes(run):
	"""(how TLS went, why it failed) of each flow."""
	return [(flow['tls'], flow['error'] if flow.get('failed') else None) for flow in run.record.events('net.flow')]


def have(*programs):
	missing = [program for program in programs if not (os.path.exists(program) or shutil.which(program))]
	return pytest.mark.skipif(bool(missing), reason=f'no {" ".join(missing)} on this host')


@have('node')
def test_node_without_its_variable(online, world):
	"""It has roots of its own then: refused by the program, told as such, and never mistaken for silence."""
	fetch = f"fetch('{GET}').then(r => console.log(r.status), e => console.log(e.cause.code))"
	run = online.sh('''
n=$(command -v node)
"$n" -e "$1"; env -i "$n" -e "$1"; env -i "$n" --use-openssl-ca -e "$1"
''', fetch, options=allowed(world))
	assert run.lines == ['200', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', '200'], run
	good, bad = ('intercepted', None), ('unreadable', CLOSED)
	assert outcomes(run) == [good, bad, good]
	assert all(flow.get('failed', False) == (flow['tls'] == 'unreadable') for flow in run.record.events('net.flow'))
	assert [request['tls'] for request in world.log('http')] == [True, True]
	[entry] = run.record.json('net')
	assert (entry['failed'], entry['error'], len(entry['requests'])) == (False, CLOSED, 2)
	assert f'partly failed ({CLOSED})' in run.record.view('net')
	assert '1 host read without its requests (pinned TLS)' in run.err.replace('\n          ', ' '), run.err


CERTIFI = """
import os
def where():
	return os.path.join(os.path.dirname(__file__), 'cacert.pem')
"""
REQUESTS = f"""
import requests, sys
try:
	print(requests.get('{GET}').status_code)
except requests.exceptions.SSLError as e:
	print('certificate verify failed' in str(e))
"""


@have('/usr/lib/python3/dist-packages/requests')
def test_python_with_a_bundle_of_its_own(online, world):
	"""requests with certifi as pip brings it, beside the program, not Debian's, which reads the system's store."""
	package = online.cwd / 'lib' / 'certifi'
	package.mkdir(parents=True)
	(package / '__init__.py').write_text(CERTIFI)
	shutil.copy('/etc/ssl/certs/ca-certificates.crt', package / 'cacert.pem')
	(online.cwd / 'get.py').write_text(REQUESTS)
	run = online.sh('export PYTHONPATH=$PWD/lib; /usr/bin/python3 get.py; env -i PYTHONPATH=$PWD/lib /usr/bin/python3 get.py; '
		'env -i PYTHONPATH=$PWD/lib REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt /usr/bin/python3 get.py',
		options=(*allowed(world), '-w', str(online.cwd)))
	assert run.lines == ['200', 'True', '200'], run
	assert outcomes(run) == [('intercepted', None), ('unreadable', UNKNOWN), ('intercepted', None)]
	assert len(world.log('http')) == 2


def test_bundles_keep_the_usual_roots(online, world):
	"""Whoever is led to a bundle by a variable has the system's roots there, too, and ours once."""
	host = pathlib.Path('/etc/ssl/certs/ca-certificates.crt').read_text().count('BEGIN CERTIFICATE')
	run = online.sh('for v in SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT; do '
		'eval f=\\$$v; grep -c "BEGIN CERTIFICATE" "$f"; done; grep -c "BEGIN CERTIFICATE" "$NODE_EXTRA_CA_CERTS"', options=allowed(world))
	assert run.lines == [str(host + 1)] * 5 + ['1'], run


def test_leaf_is_one_that_every_client_takes(online, world):
	"""P-256, the name in its SAN, under 30 days."""
	run = online.sh('''
openssl s_client -connect allowed.test:443 -servername allowed.test < /dev/null > leaf 2>/dev/null
openssl x509 -in leaf -noout -text | grep -E 'NIST CURVE|DNS:' | sed 's/^ *//'
openssl x509 -in leaf -noout -checkend $((30 * 86400)) > /dev/null; echo $?
''', options=allowed(world))
	assert run.lines == ['NIST CURVE: P-256', 'DNS:allowed.test', '1'], run


@pytest.fixture(scope='module')
def curl_root(tmp_path_factory):
	"""A root with a shell and curl, that trusts nobody yet."""
	return harness.small_root(tmp_path_factory.mktemp('curl'), '/bin/sh', '/bin/cat', '/usr/bin/env', '/usr/bin/curl')


# Where distributions keep their roots: the file, and links that lead there.
STORES = {
	'debian': ('etc/ssl/certs/ca-certificates.crt', ()),
	'alpine': ('etc/ssl/certs/ca-certificates.crt', ('etc/ssl/cert.pem',)),
	'fedora': ('etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem', ('etc/pki/tls/certs/ca-bundle.crt',)),
	'suse': ('var/lib/ca-certificates/ca-bundle.pem', ('etc/ssl/ca-bundle.pem',)),
	'arch': ('etc/ca-certificates/extracted/tls-ca-bundle.pem', ('etc/ssl/certs/ca-certificates.crt',)),
}


@pytest.mark.parametrize('kind', STORES)
def test_store_of_another_root(online, world, curl_root, tmp_path, kind):
	"""The system's store inside that root holds the authority, by every name it has; the root itself is left alone."""
	file, links = STORES[kind]
	root = tmp_path / 'root'
	subprocess.run(['cp', '-a', curl_root, root], check=True)
	store = root / file
	store.parent.mkdir(parents=True, exist_ok=True)
	shutil.copy('/etc/ssl/certs/ISRG_Root_X1.pem', store)
	before = store.read_bytes()
	for link in links:
		(root / link).parent.mkdir(parents=True, exist_ok=True)
		os.symlink(os.path.relpath(store, (root / link).parent), root / link)
	run = online.sh(f'''
for f; do env -i /usr/bin/curl -sS --cacert $f -o /dev/null -w '%{{http_code}}\\n' {GET}; done
curl -sS --cacert $SSL_CERT_FILE -o /dev/null -w '%{{http_code}}\\n' {GET}
''', *(f'/{name}' for name in (file, *links)), options=(*allowed(world), '--rootfs', str(root)))
	assert run.lines == ['200'] * (len(links) + 2), run
	assert outcomes(run) == [('intercepted', None)] * (len(links) + 2)
	assert store.read_bytes() == before
	assert len(world.log('http')) == len(links) + 2


def test_root_without_a_store(online, world, curl_root):
	"""Whoever trusts nothing refuses; whoever is told where our certificate lies does not; -k is read, too."""
	run = online.sh(f'''
curl -sS -o /dev/null -w '%{{http_code}}\\n' {GET} 2>&1 | cat
env -i /usr/bin/curl -sS --cacert $NODE_EXTRA_CA_CERTS -o /dev/null -w '%{{http_code}}\\n' {GET}
env -i /usr/bin/curl -sSk -o /dev/null -w '%{{http_code}}\\n' {GET}
''', options=(*allowed(world), '--rootfs', str(curl_root)))
	assert run.lines[-2:] == ['200', '200'], run
	assert len(world.log('http')) == run.lines.count('200')


def ws_messages(run):
	return collections.Counter((m['direction'], m['opcode'], m['bytes']) for m in run.record.events('net.ws'))


def agree_with(run, world):
	"""What went out is what the server got, which sent the same back."""
	assert [(x['upgrade'], x['status'], x['url']) for x in run.record.events('net.http')] == [('websocket', 101, 'https://allowed.test/ws')]
	got = collections.Counter((entry['op'], entry['n']) for entry in world.log('ws'))
	for direction in ('out', 'in'):
		mine = collections.Counter({key[1:]: n for key, n in ws_messages(run).items() if key[0] == direction})
		assert mine == got, (direction, mine, got)
	assert got[1, 40000] == 1 and got[2, 3] == 1 and sum(n for (op, _), n in got.items() if op == 8) == 1
	messages = [m for entry in run.record.json('net') for m in entry.get('messages', ())]
	bodies = [m['body'] for m in messages if m['opcode'] == 1 and m['direction'] == 'out']
	assert bodies == ['hello', 'x' * 40000]
	assert outcomes(run) == [('intercepted', None)]


NODE_WS = '''
const s = new WebSocket('wss://allowed.test/ws');
s.binaryType = 'arraybuffer';
const send = ['hello', 'x'.repeat(40000), new Uint8Array([1, 2, 255])];
s.onopen = () => s.send(send[0]);
s.onerror = e => { console.log('error', e.message); process.exit(1); };
s.onmessage = e => {
	console.log(typeof e.data, e.data.length ?? e.data.byteLength);
	send.shift();
	if (send.length) s.send(send[0]); else s.close(1000);
};
s.onclose = e => console.log('closed', e.code);
'''


@have('node')
def test_websocket_client_of_node(online, world):
	flag = next((flag for flag in ([], ['--experimental-websocket']) if subprocess.run(['node', *flag, '-e',
		'process.exit(typeof WebSocket === "function" ? 0 : 1)'], capture_output=True, check=False).returncode == 0), None)
	if flag is None:
		pytest.skip('this node has no WebSocket')
	run = online.run('node', *flag, '-e', NODE_WS, options=allowed(world))
	assert run.lines == ['string 5', 'string 40000', 'object 3', 'closed 1000'], run
	agree_with(run, world)


TORNADO_WS = '''
import asyncio, tornado.websocket
async def main():
	s = await tornado.websocket.websocket_connect('wss://allowed.test/ws')
	for text in ('hello', 'x' * 40000, b'\\x01\\x02\\xff'):
		await s.write_message(text, binary=isinstance(text, bytes))
		print((await s.read_message()) == text)
	s.close(1000)
	print(await s.read_message())
asyncio.run(main())
'''


@have('/usr/lib/python3/dist-packages/tornado')
def test_websocket_client_of_python(online, world):
	run = online.py(TORNADO_WS, options=allowed(world))
	assert run.lines == ['True'] * 3 + ['None'], run
	agree_with(run, world)
