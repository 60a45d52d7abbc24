# SPDX-License-Identifier: Apache-2.0
"""Everyday programs use the network unchanged, and what the record says of it is what the server wrote down."""
import collections
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

import harness
import pytest
import world as world_

HTTP, HTTPS = 8080, 8443
HOST = 'site.allowed.test'


class Site:
	"""site.py on the other side of the network; root is what it serves."""

	def __init__(self, world, root):
		self.world, self.root = world, root
		script = pathlib.Path(__file__).parent / 'site.py'
		self.process = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-B', str(script), world_.UPSTREAM,
			str(HTTP), str(HTTPS), str(root), str(world.logs)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
		assert self.process.stdout.readline() == b'ready\n'

	@property
	def options(self):
		"""Allowed and nothing else is, on the usual ports."""
		return (*self.world.net, '--allow', HOST, '--host-map', f'{HOST}:80={world_.UPSTREAM}:{HTTP}',
			'--host-map', f'{HOST}:443={world_.UPSTREAM}:{HTTPS}')

	def seen(self):
		"""What it answered: (whether by TLS, method, path, status, length and hash of the body that came)."""
		return collections.Counter((entry['tls'], entry['method'], entry['path'], entry['status'], entry['n'], entry['sha'])
			for entry in self.world.log('site'))

	def close(self):
		self.process.kill()
		self.process.communicate()


@pytest.fixture(scope='module')
def site(world, tmp_path_factory):
	root = tmp_path_factory.mktemp('site')
	(root / 'file').write_text('what was asked for\n')
	made = Site(world, root)
	yield made
	made.close()


NOTHING = hashlib.sha256(b'').hexdigest()


def told(run):
	"""The record's word for what Site.seen() says."""
	table = collections.Counter()
	for event in run.record.events('net.http'):
		scheme, _, rest = event['url'].partition('://')
		host, _, path = rest.partition('/')
		assert host == HOST and event['host'] == HOST and 'error' not in event, event
		length, digest = 0, NOTHING
		if event.get('body_sha256'):
			digest = event['body_sha256']
			length = event.get('body_bytes')
		table[scheme == 'https', event['method'], '/' + path, event['status'], length, digest] += 1
	return table


def agree(run, site, n=None):
	"""Server and record tell the same, and nothing went wrong on the way."""
	seen = site.seen()
	mine = told(run)
	# A body without a declared length: its hash says all.
	undeclared = {key[5] for key in mine if key[4] is None}
	seen = collections.Counter({(*key[:4], None if key[5] in undeclared else key[4], key[5]): seen[key] for key in seen})
	assert mine == seen
	assert n is None or sum(seen.values()) == n, seen
	assert run.record.events('net.refused') == []
	flows = run.record.events('net.flow')
	failed = [flow for flow in flows if flow.get('failed')]
	assert flows and not failed, failed[0]
	assert {flow['tls'] for flow in flows if flow['port'] == 443} <= {'intercepted'}
	assert run.record.show()['complete'] is True


def have(*programs):
	missing = [program for program in programs if not (os.path.exists(program) or shutil.which(program))]
	return pytest.mark.skipif(bool(missing), reason=f'no {" ".join(missing)} on this host')


REQUESTS = '/usr/lib/python3/dist-packages/requests'
HTTPX = '/usr/lib/python3/dist-packages/httpx'
# Each gets /file by $1://, and sends it back to /echo.
CLIENTS = {
	'curl': 'curl -sSf -o f $1://$H/file && curl -sSf -o e --data-binary @f $1://$H/echo && cat f e',
	'wget': 'wget -q $1://$H/file -O f && wget -q --post-file=f $1://$H/echo -O e && cat f e',
	'python3': '''/usr/bin/python3 - $1 $H <<'END'
import sys, urllib.request as u
base = '%s://%s' % tuple(sys.argv[1:])
f = u.urlopen(base + '/file').read()
sys.stdout.write((f + u.urlopen(base + '/echo', f).read()).decode())
END''',
	REQUESTS: '''/usr/bin/python3 - $1 $H <<'END'
import sys, requests
base = '%s://%s' % tuple(sys.argv[1:])
with requests.Session() as s:
	f = s.get(base + '/file').content
	sys.stdout.write((f + s.post(base + '/echo', f).content).decode())
END''',
	HTTPX: '''/usr/bin/python3 - $1 $H <<'END'
import sys, httpx
base = '%s://%s' % tuple(sys.argv[1:])
with httpx.Client() as s:
	f = s.get(base + '/file').content
	sys.stdout.write((f + s.post(base + '/echo', content=f).content).decode())
END''',
	'node': '''node - $1 $H <<'END'
const base = `${process.argv[2]}://${process.argv[3]}`;
(async () => {
	const f = await (await fetch(base + '/file')).text();
	process.stdout.write(f + await (await fetch(base + '/echo', {method: 'POST', body: f})).text());
})();
END''',
}
TEXT = b'what was asked for\n'
ECHO = json.dumps({'n': len(TEXT), 'sha': hashlib.sha256(TEXT).hexdigest()}) + '\n'


@pytest.mark.parametrize('scheme', ['http', 'https'])
@pytest.mark.parametrize('client', CLIENTS, ids=os.path.basename)
def test_client(online, site, client, scheme):
	if not (os.path.exists(client) or shutil.which(client)):
		pytest.skip(f'no {client} on this host')
	done = online.sh(CLIENTS[client], scheme, options=(*site.options, '-e', f'H={HOST}'))
	assert (done.code, done.out) == (0, TEXT.decode() + ECHO), done
	agree(done, site, 2)


def git(*args, cwd):
	identity = {'GIT_AUTHOR_NAME': 'A', 'GIT_AUTHOR_EMAIL': 'a@example.invalid', 'GIT_COMMITTER_NAME': 'A',
		'GIT_COMMITTER_EMAIL': 'a@example.invalid'}
	return subprocess.run(['git', *args], cwd=cwd, check=True, capture_output=True, text=True,
		env=dict(os.environ, **identity)).stdout.strip()


@pytest.fixture
def repository(site, tmp_path):
	"""A bare repository on the site, with one commit of a few hundred KB."""
	work = tmp_path / 'work'
	work.mkdir()
	git('init', '-q', '-b', 'main', cwd=work)
	(work / 'big').write_bytes(os.urandom(300000))
	git('add', '.', cwd=work)
	git('commit', '-q', '-m', 'first', cwd=work)
	bare = site.root / 'git' / f'{tmp_path.name}.git'
	bare.parent.mkdir(exist_ok=True)
	git('clone', '-q', '--bare', str(work), str(bare), cwd=tmp_path)
	return bare


@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_git_clones_and_pushes(online, site, repository, scheme):
	"""The push is larger than git sends in one piece, so it goes out in chunks."""
	done = online.sh('''
set -e
git clone -q $1 c 2>&1
cd c
git config user.email a@example.invalid; git config user.name A; git config safe.directory '*'
head -c 3000000 /dev/urandom > more; git add more; git commit -q -m second
git push -q origin main 2>&1
git rev-parse HEAD
''', f'{scheme}://{HOST}/git/{repository.name}', options=site.options)
	assert done.code == 0 and done.lines[-1] == git('rev-parse', 'main', cwd=repository), done
	agree(done, site)
	pushed = [entry for entry in site.world.log('site') if entry['path'].endswith('git-receive-pack')
		and entry['method'] == 'POST']
	assert pushed[-1]['n'] > 3000000 and pushed[-1]['headers']['transfer-encoding'] == 'chunked'


def wheel(folder):
	"""A package that any pip installs, and its page in an index."""
	name = 'tinything-1.2.3-py3-none-any.whl'
	about = 'tinything-1.2.3.dist-info'
	with zipfile.ZipFile(folder / name, 'w') as archive:
		archive.writestr('tinything.py', 'ANSWER = 42\n')
		archive.writestr(f'{about}/METADATA', 'Metadata-Version: 2.1\nName: tinything\nVersion: 1.2.3\n')
		archive.writestr(f'{about}/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
		archive.writestr(f'{about}/RECORD', '')
	digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
	(folder / 'tinything.html').write_text(f'<!DOCTYPE html><a href="/pip/{name}#sha256={digest}">{name}</a>')


@pytest.mark.parametrize('scheme', ['http', 'https'])
@pytest.mark.parametrize('how', ['system', 'venv'])
def test_pip_installs_from_an_index(online, site, scheme, how):
	(site.root / 'pip').mkdir(exist_ok=True)
	wheel(site.root / 'pip')
	done = online.sh('''
set -e
pip='/usr/bin/python3 -m pip'
if [ $2 = venv ]; then /usr/bin/python3 -m venv v; pip=v/bin/pip; fi
$pip install -q --no-cache-dir --disable-pip-version-check --root-user-action=ignore --index-url $1/pip --target t \\
	$([ ${1%%:*} = http ] && echo --trusted-host $H) tinything
PYTHONPATH=t /usr/bin/python3 -c 'import tinything; print(tinything.ANSWER)'
''', f'{scheme}://{HOST}', how, options=(*site.options, '-e', f'H={HOST}'))
	assert done.code == 0 and done.lines[-1] == '42', done
	agree(done, site, 2)


def npm_package(folder, base):
	"""A package and what a registry says of it."""
	data = io.BytesIO()
	with tarfile.open(fileobj=data, mode='w:gz') as archive:
		for name, text in (('package.json', '{"name": "tiny-lib", "version": "1.0.0", "main": "i.js"}'),
			('i.js', 'module.exports = 42\n')):
			member = tarfile.TarInfo(f'package/{name}')
			member.size = len(text)
			archive.addfile(member, io.BytesIO(text.encode()))
	(folder / 'tiny-lib.tgz').write_bytes(data.getvalue())
	version = {'name': 'tiny-lib', 'version': '1.0.0', 'main': 'i.js', 'dist': {'tarball': f'{base}/npm/tiny-lib.tgz',
		'shasum': hashlib.sha1(data.getvalue()).hexdigest()}}
	(folder / 'tiny-lib.json').write_text(json.dumps({'name': 'tiny-lib', 'dist-tags': {'latest': '1.0.0'},
		'versions': {'1.0.0': version}}))


@have('npm')
@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_npm_installs_from_a_registry(online, site, scheme):
	base = f'{scheme}://{HOST}'
	(site.root / 'npm').mkdir(exist_ok=True)
	npm_package(site.root / 'npm', base)
	(online.cwd / 'package.json').write_text('{"name": "app", "version": "1.0.0", "private": true}')
	done = online.sh('''
set -e
npm install --no-audit --no-fund --no-update-notifier --loglevel=error --registry $1/npm tiny-lib
node -e 'console.log(require("tiny-lib"))'
''', base, options=site.options)
	assert done.code == 0 and done.lines[-1] == '42', done
	agree(done, site, 2)


def test_events_arrive_while_the_stream_is_open(online, site):
	"""Each is sent only after the one before was seen inside."""
	code = '''
import sys, urllib.request as u
base = sys.argv[1]
stream = u.urlopen(base + '/events/5', timeout=8)
for i in range(5):
	print(stream.readline().decode().strip())
	stream.readline()
	u.urlopen(base + '/next', b'').read()
print(stream.read())
'''
	for scheme in ('http', 'https'):
		site.world.clear()
		done = online.py(code, f'{scheme}://{HOST}', options=site.options)
		assert done.lines == [*(f'data: {i}' for i in range(5)), "b''"], done
		agree(done, site, 6)
		[stream] = [event for event in done.record.events('net.http') if '/events/' in event['url']]
		assert stream['response_bytes'] == len(b'data: 0\n\n') * 5


def test_openssl_s_client(online, site):
	done = online.sh('''
printf 'GET /file HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' $H |
	openssl s_client -quiet -verify_return_error -connect $H:443 -servername $H 2>/dev/null | tail -1
''', options=(*site.options, '-e', f'H={HOST}'))
	assert done.out == TEXT.decode(), done
	agree(done, site, 1)


@have('nc')
def test_nc(online, site, world):
	"""A request by hand, and bytes that are no HTTP, up to the end of the one side."""
	done = online.sh('''
printf 'GET /file HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n' $H | nc -q 5 -w 5 $H 80 | tail -1
head -c 100000 /dev/zero | nc -N -w 5 allowed.test 18081
''', options=(*site.options, '--allow', 'allowed.test', '-e', f'H={HOST}'))
	assert done.lines == [TEXT.decode().strip(), '100000 ' + hashlib.sha256(bytes(100000)).hexdigest()], done
	assert [entry['n'] for entry in world.log('raw')] == [100000]
	[flow] = [event for event in done.record.events('net.flow') if event['port'] == 18081]
	assert flow['bytes_out'] == 100000 and 'failed' not in flow
	agree(done, site, 1)


@have('dig')
def test_dig(online, world):
	done = online.sh('''
dig +short allowed.test; dig +short AAAA allowed.test; dig +tcp +short allowed.test; dig +short cname.test
dig +short big.test | wc -l
dig denied.test TXT | sed -n 's/.*status: \\([A-Z]*\\).*/\\1/p'
dig no.such.name.allowed | sed -n 's/.*status: \\([A-Z]*\\).*/\\1/p'
''', options=(*world.net, '--allow', '*.test', '--deny', 'denied.test', '--allow', '*.allowed'))
	assert done.lines == [world_.UPSTREAM] * 2 + ['edge.cdn.test.', 'pop7.cdn.test.', world_.UPSTREAM, '60', 'REFUSED',
		'NXDOMAIN'], done
	asked = collections.Counter((entry['name'], entry['type']) for entry in world.log('dns'))
	mine = [event for event in done.record.events('net.dns') if not event.get('refused')]
	numbers = {'A': 1, 'AAAA': 28}
	assert {(event['name'], numbers[event['type']]) for event in mine} == set(asked)
	[refused] = [event for event in done.record.events('net.dns') if event.get('refused')]
	assert (refused['name'], refused['type'], refused['error']) == ('denied.test', 'TXT', 'REFUSED')


@have('dig')
def test_services_of_a_host(online, world):
	"""Asked for by who may reach the host; what is no service of it is another name."""
	done = online.sh('''
for name in _http._tcp.allowed.test _http._tcp.denied.test _waytoolongforaservice._tcp.allowed.test a.allowed.test; do
	dig SRV $name | sed -n 's/.*status: \\([A-Z]*\\).*/\\1/p'
done
dig A _http._tcp.allowed.test +short
''', options=(*world.net, '--allow', 'allowed.test'))
	assert done.lines[:4] == ['NOERROR', 'REFUSED', 'REFUSED', 'REFUSED'] and done.lines[4].startswith('198.18.'), done
	assert [(entry['name'], entry['type']) for entry in world.log('dns')] == [('_http._tcp.allowed.test', 33)]
	assert [event['host'] for event in done.record.events('net.refused')][:1] == ['denied.test']


JAVA = '''
import java.net.URI;
import java.net.http.*;
class T {
	public static void main(String[] a) throws Exception {
		HttpClient client = HttpClient.newHttpClient();
		String f = client.send(HttpRequest.newBuilder(URI.create(a[0] + "/file")).build(),
			HttpResponse.BodyHandlers.ofString()).body();
		System.out.print(f + client.send(HttpRequest.newBuilder(URI.create(a[0] + "/echo"))
			.POST(HttpRequest.BodyPublishers.ofString(f)).build(), HttpResponse.BodyHandlers.ofString()).body());
	}
}
'''


@have('java')
@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_java(online, site, scheme):
	"""Its client asks for HTTP/2, over plain HTTP by an upgrade, which it does not insist on."""
	(online.cwd / 'T.java').write_text(JAVA)
	done = online.run('java', 'T.java', f'{scheme}://{HOST}', options=(*site.options, '-w', str(online.cwd)))
	assert (done.code, done.out) == (0, TEXT.decode() + ECHO), done
	agree(done, site, 2)


GO = '''
package main

import ("fmt"; "io"; "net/http"; "os"; "strings")

func text(r *http.Response, err error) string {
	if err != nil { fmt.Println(err); os.Exit(1) }
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return string(b)
}

func main() {
	f := text(http.Get(os.Args[1] + "/file"))
	fmt.Print(f, text(http.Post(os.Args[1] + "/echo", "text/plain", strings.NewReader(f))))
}
'''


@have('go')
@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_go(online, site, scheme):
	(online.cwd / 't.go').write_text(GO)
	subprocess.run(['go', 'build', '-o', 't', 't.go'], cwd=online.cwd, check=True, env=dict(harness.CLEAN_ENV, GOFLAGS='-mod=mod'))
	done = online.sh('./t $1 && env -i ./t $1', f'{scheme}://{HOST}', options=(*site.options, '-w', str(online.cwd)))
	assert (done.code, done.out) == (0, 2 * (TEXT.decode() + ECHO)), done
	agree(done, site, 4)


def tiny_debs(folder, n):
	"""A flat repository of n packages; the last needs all others."""
	names = [f'tiny{i}' for i in range(n)]
	for name in names:
		tree = folder / 'tree'
		(tree / 'DEBIAN').mkdir(parents=True)
		needs = 'Depends: ' + ', '.join(names[:-1]) + '\n' if name == names[-1] else ''
		(tree / 'DEBIAN' / 'control').write_text(f'Package: {name}\nVersion: 1.0\nArchitecture: all\n{needs}'
			'Maintainer: A <a@example.invalid>\nDescription: tiny\n')
		subprocess.run(['dpkg-deb', '--root-owner-group', '-Znone', '--build', tree, folder / f'{name}_1.0_all.deb'], check=True,
			capture_output=True)
		shutil.rmtree(tree)
	packages = subprocess.run(['dpkg-scanpackages', '.'], cwd=folder, check=True, capture_output=True).stdout
	(folder / 'Packages').write_bytes(packages)
	return names


@have('dpkg-scanpackages')
@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_apt_installs_from_a_repository(online, site, scheme):
	"""apt sends many requests before the first answer is there."""
	folder = site.root / 'apt'
	folder.mkdir(exist_ok=True)
	names = tiny_debs(folder, 15)
	done = online.sh('''
set -e
printf 'deb [trusted=yes] %s/apt ./\\n' $1 > /tmp/one.list
one='-qq -y -o Dir::Etc::sourcelist=/tmp/one.list -o Dir::Etc::sourceparts=- -o Acquire::Languages=none'
{ apt-get $one update && apt-get $one install tiny14; } > log 2>&1 || { cat log; exit 1; }
dpkg-query -W 'tiny[0-9]*' | wc -l
''', f'{scheme}://{HOST}', options=site.options)
	assert done.lines == [str(len(names))], done
	assert sum(entry['path'].endswith('.deb') for entry in site.world.log('site')) == len(names)
	agree(done, site)


RELAY = '''
import socket, threading
listener = socket.create_server(('127.0.0.1', 3999))
print('ready', flush=True)
def pipe(source, sink):
	try:
		while data := source.recv(9999):
			sink.sendall(data)
		sink.shutdown(socket.SHUT_WR)
	except OSError:
		pass
while True:
	client = listener.accept()[0]
	upstream = socket.create_connection(('allowed.test', 80))
	for pair in ((client, upstream), (upstream, client)):
		threading.Thread(target=pipe, args=pair, daemon=True).start()
'''


def test_relay_inside_and_friends_outside(online, world):
	"""Judged by where a request is to go, whoever carries it: a relay of the program's own to an allowed host, and that
	host's word."""
	(online.cwd / 'relay.py').write_text(RELAY)
	done = online.sh('''
/usr/bin/python3 relay.py > ready & relay=$!
until grep -q ready ready; do sleep .05; done
get() { curl -sS -m 10 -o /dev/null -w '%{http_code} %{http_connect}\\n' "$@" 2>/dev/null; }
get -x http://127.0.0.1:3999 http://denied.test/
get -x http://127.0.0.1:3999 https://denied.test/
get -x http://127.0.0.1:3999 http://allowed.test/through
get -L 'http://allowed.test/redirect?http://denied.test/'
kill $relay
''', options=(*world.net, '--allow', 'allowed.test', '-w', str(online.cwd)))
	assert done.lines == ['403 000', '000 403', '200 000', '403 000'], done
	assert [entry['path'] for entry in world.log('http')] == ['/through', '/redirect?http://denied.test/']
	assert not [entry for entry in world.log('dns') if 'denied' in entry['name']]
	refused = [event for event in done.record.events('net.refused') if event['stage'] == 'http']
	assert [(event['host'], event['method']) for event in refused] == [('denied.test', 'GET'), ('denied.test', 'CONNECT'),
		('denied.test', 'GET')]
	programs = {node['pid']: node['path'] for node in done.record.nodes()}
	assert [programs[event['pid']].split('/')[-1][:6] for event in refused] == ['python', 'python', 'curl']


def test_other_bytes_on_ports_of_http(online, world):
	"""To an allowed host: passed on as they are and counted, at 443 too; never where only requests are allowed."""
	script = '''
for port in 80 443; do printf 'SSH-2.0-x\\r\\n' | nc -N -w 3 allowed.test $port >/dev/null; done
'''
	done = online.sh(script, options=(*world.net, '--allow', 'allowed.test'))
	flows = [(flow['port'], flow['bytes_out'], flow.get('tls')) for flow in done.record.events('net.flow')]
	told = {event['port'] for event in done.record.events('net.refused') if event['stage'] != 'dns'}
	assert {port for port, sent, _ in flows if sent == 11} | told == {80, 443}, (flows, told)
	done = online.sh(script, options=(*world.net, '--allow', 'GET allowed.test/**'))
	assert len([event for event in done.record.events('net.refused') if event['stage'] != 'dns']) == 2, done
	assert all(flow.get('failed') for flow in done.record.events('net.flow'))
