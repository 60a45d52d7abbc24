# SPDX-License-Identifier: Apache-2.0
"""Calls as gRPC makes them, and HTTP/2 with other people's servers."""
import collections
import hashlib
import json
import pathlib
import shutil
import subprocess

import harness
import pytest
import world as world_

HERE = pathlib.Path(__file__).parent
PLAIN, TLS = 8180, 8543


def allow(world, *more):
	return (*world.net, '--allow', 'allowed.test', *more)


@pytest.fixture(scope='module')
def calls(world):
	if not shutil.which('node'):
		pytest.skip('no node on this host')
	server = subprocess.Popen(world.command(world.internet, 'node', str(HERE / 'calls_server.js'), world_.UPSTREAM, str(PLAIN),
		str(TLS), str(world.logs)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	assert server.stdout.readline() == b'ready\n'
	yield {'http': f'http://allowed.test:{PLAIN}', 'https': f'https://allowed.test:{TLS}'}
	server.kill()
	server.communicate()


@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_calls(online, world, calls, scheme):
	"""One and many messages each way, trailers, an answer of trailers alone, a cancelled one, 150 at once."""
	shutil.copy(HERE / 'calls_client.js', online.cwd)
	done = online.run('node', 'calls_client.js', calls[scheme], options=(*allow(world), '-w', str(online.cwd)))
	assert done.lines == ['unary hello h 0 1', 'refuse 0 7', 'fail 13', 'count 1000 999 0', 'sum 2000000 50',
		'talk 201 late 0 201', 'cancel 1 8', 'many 150'], done
	seen = world.log('calls')
	told = done.record.events('net.http')
	assert collections.Counter((entry['path'], entry['tls']) for entry in seen) == collections.Counter(
		(event['url'].removeprefix(calls[scheme]), scheme == 'https') for event in told)
	assert {event['protocol'] for event in told} == {'h2'} and {event['status'] for event in told} == {200}
	assert len(told) == 157 and len({event['flow'] for event in told}) == 1
	talks = [event for event in told if event.get('response_bytes', 0) > 1200 and event['url'].endswith('Echo')]
	assert [event['duration_ns'] > 3e9 for event in talks] == [True]
	[cancelled] = [event for event in told if 'error' in event]
	assert cancelled['url'].endswith('Hold') and 'the client reset' in cancelled['error']
	assert [entry['code'] for entry in seen if entry['code']] == [8]
	[flow] = done.record.events('net.flow')
	assert 'failed' not in flow, flow


NGINX = '''
daemon off;
user root;
pid {folder}/pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 256; }}
http {{
	log_format line escape=json '{{"method": "$request_method", "path": "$request_uri", "protocol": "$server_protocol", '
		'"status": $status, "sent": $body_bytes_sent}}';
	access_log {folder}/access.log line;
	client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
	uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
	client_max_body_size 5m;
	server {{
		listen {address}:8643 ssl http2;
		listen {address}:8280;
		ssl_certificate {logs}/leaf.pem;
		ssl_certificate_key {logs}/leaf.key;
		root {folder}/root;
		if_modified_since before;
		gzip on;
		gzip_types text/plain;
		location /up {{ proxy_pass http://{address}:80; }}
		location /old {{ return 301 /page.txt; }}
	}}
}}
'''


@pytest.fixture
def nginx(world, tmp_path):
	if not shutil.which('nginx'):
		pytest.skip('no nginx on this host')
	folder = tmp_path / 'nginx'
	(folder / 'root').mkdir(parents=True)
	(folder / 'root' / 'page.txt').write_text('page\n' * 1000)
	(folder / 'conf').write_text(NGINX.format(folder=folder, address=world_.UPSTREAM, logs=world.logs))
	server = subprocess.Popen(world.command(world.internet, 'nginx', '-c', str(folder / 'conf')), stderr=subprocess.DEVNULL)
	for port in (8280, 8643):
		harness.wait_for(lambda port=port: subprocess.run(world.command(world.host, 'nc', '-z', world_.UPSTREAM, str(port)),
			check=False).returncode == 0, f'nginx on {port}')
	(folder / 'access.log').write_text('')
	yield folder
	server.terminate()
	server.wait()


def test_nginx(online, world, nginx):
	"""Compressed answers, ranges, what was not changed, a redirect, an upload that it refuses, many at once: by both
	versions of HTTP."""
	text = 'page\n' * 1000
	done = online.sh('''
for base in http://allowed.test:8280 https://allowed.test:8643; do for v in --http1.1 --http2; do
curl() { command curl -sS $v "$@"; }
curl --compressed $base/page.txt | sha256sum
curl -r 5-9 $base/page.txt
curl -I $base/page.txt -o /dev/null -w '%{http_code}\\n'
curl -H 'If-Modified-Since: Fri, 01 Jan 2038 00:00:00 GMT' $base/page.txt -o /dev/null -w '%{http_code}\\n'
curl -L $base/old -o /dev/null -w '%{http_code} %{num_redirects}\\n'
head -c 1000000 /dev/zero | curl --data-binary @- $base/up -o /dev/null -w '%{http_code}\\n'
head -c 1000000 /dev/zero | curl -T - $base/up -o /dev/null -w '%{http_code}\\n'
head -c 6000000 /dev/zero | curl --data-binary @- $base/up -o /dev/null -w '%{http_code}\\n'
curl -Z --parallel-immediate $(for i in $(seq 60); do echo "-o /dev/null $base/page.txt?$i"; done) -w '%{http_code}\\n' |
	sort | uniq -c | tr -s ' '
done; done
''', options=allow(world))
	once = [hashlib.sha256(text.encode()).hexdigest() + '  -', 'page', '200', '304', '200 1', '200', '200', '413', ' 60 200']
	assert done.lines == once * 4, done
	seen = [json.loads(line) for line in (nginx / 'access.log').read_text().splitlines()]
	told = done.record.events('net.http')
	versions = {'HTTP/2.0': 'h2', 'HTTP/1.1': 'http/1.1'}
	# By HTTP/1 nginx counts the marks of the chunks, too.
	assert collections.Counter((entry['method'], entry['path'], versions[entry['protocol']], entry['status'],
		entry['protocol'] == 'HTTP/2.0' and entry['sent']) for entry in seen) == collections.Counter((event['method'],
		'/' + event['url'].split('/', 3)[3], event['protocol'], event['status'],
		event['protocol'] == 'h2' and event.get('response_bytes', 0)) for event in told)
	assert len(told) == 4 * 69
	assert not [event for event in told if 'error' in event and event['status'] != 413]
	assert not [flow for flow in done.record.events('net.flow') if 'failed' in flow]


def test_refused_upload_is_told_to_the_program(online, world, calls):
	"""The answer comes while the request is still sent, and is not lost behind its reset."""
	script = f'''
for i in 1 2 3 4 5; do
	head -c 6000000 /dev/zero | curl -sS --data-binary @- {calls['https']}/t.T/Sum -w ' %{{http_code}} %{{http_version}}\\n'
done
'''
	done = online.sh(script, options=(*world.net, '--allow', 'GET allowed.test/**'))
	assert done.lines[1::2] == [' 403 2'] * 5 and all('Retrying will not help' in line for line in done.lines[::2]), done
	assert world.log('calls') == []
	assert [event['method'] for event in done.record.events('net.refused')] == ['POST'] * 5
