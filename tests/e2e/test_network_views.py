# SPDX-License-Identifier: Apache-2.0
"""What the record says of the network, and every view made of it, against what the server itself saw."""
import base64
import hashlib
import json
import os
import pathlib
import re

import jsonschema
import pytest

TOKEN = 'ghp_' + 'Ab1' * 12


def allow(world, *rules):
	return (*(word for rule in rules for word in ('--allow', rule)), *world.net)


def net(run, *options):
	"""(host or address, port, protocol) -> entry"""
	entries = run.record.json('net', *options)
	table = {(entry['host'] or entry['address'], entry['port'], entry['protocol']): entry for entry in entries}
	assert len(table) == len(entries), entries
	return table


def requests(run):
	return [request for entry in run.record.json('net') for request in entry['requests']]


def test_requests_are_what_the_server_saw(online, world):
	run = online.sh('''
curl -sS http://allowed.test/one?a=1 -H 'X-Note: n1' -H 'X-Note: n2' -o /dev/null
curl -sS http://allowed.test/two -d hello -o /dev/null
curl -sS http://allowed.test/three http://allowed.test/four -o /dev/null -o /dev/null
''', options=allow(world, 'allowed.test'))
	assert run.code == 0, run
	seen = [(entry['method'], entry['path']) for entry in world.log('http')]
	got = [(request['method'], request['url'].removeprefix('http://allowed.test')) for request in requests(run)]
	assert got == seen == [('GET', '/one?a=1'), ('POST', '/two'), ('GET', '/three'), ('GET', '/four')]
	entry = net(run)['allowed.test', 80, 'tcp']
	assert (entry['failed'], entry['refused'], entry['address']) == (False, False, '203.0.113.10')
	one, two = entry['requests'][:2]
	assert one['headers']['x-note'] in ('n1,n2', 'n1, n2') and one['body'] is None and one['body_bytes'] is None
	assert (two['body'], two['body_bytes'], two['body_encoding'], two['status']) == ('hello', 5, 'utf8', 200)
	assert two['body_sha256'] == hashlib.sha256(b'hello').hexdigest() == world.log('body')[1]['sha']
	assert entry['execs'] == [run.record.row()['exec']]
	assert set(entry['processes']) == {node['pid'] for node in run.record.nodes(path='/usr/bin/curl')}


def test_bytes_are_those_of_the_program(online, world):
	run = online.py('''
import socket
s = socket.create_connection(('allowed.test', 80)); q = b'GET /bytes/50000 HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n'
s.sendall(q); n = 0
while d := s.recv(9999): n += len(d)
print(len(q), n)
''', options=allow(world, 'allowed.test'))
	sent, got = map(int, run.out.split())
	entry = net(run)['allowed.test', 80, 'tcp']
	assert (entry['bytes_out'], entry['bytes_in']) == (sent, got)
	assert entry['requests'][0]['response_bytes'] == 50000


def test_outcomes(online, world):
	"""R74: refused by nobody, refused by the peer, UDP without an answer: each is told as what it was."""
	run = online.py('''
import socket
a = socket.gethostbyname('allowed.test')
for port in (80, 81):
	s = socket.socket(); s.settimeout(5); print(port, s.connect_ex((a, port))); s.close()
u = socket.socket(2, 2); u.sendto(b'q' * 50, (a, 9999))
c = socket.socket(2, 2); c.connect((a, 9998)); c.send(b'z' * 10)
''', options=('--net', 'open', *world.net))
	assert run.lines == ['80 0', '81 111'], run
	table = net(run)
	assert not table['allowed.test', 80, 'tcp']['failed']
	assert table['allowed.test', 81, 'tcp']['failed'] and table['allowed.test', 81, 'tcp']['error'] == 'ECONNREFUSED'
	assert not table['allowed.test', 81, 'tcp']['refused']
	assert table['allowed.test', 9999, 'udp']['bytes_out'] == 50
	assert table['allowed.test', 9998, 'udp']['bytes_out'] == 10


def test_refused_leads_everywhere(online, world):
	"""R77: in the summary first, with who did it in which command; in the views, in the row of its exec."""
	run = online.sh('curl -sS -m 5 http://denied.test/; curl -sS http://allowed.test/ -o /dev/null',
		options=(*allow(world, 'allowed.test'), '--fail-on', 'refused'))
	assert run.code == 123, run
	assert json.loads(run.out)['status'] == 403
	lines = run.err.splitlines()
	first = next(i for i, line in enumerate(lines) if line.startswith('cloche sb_')) + 1
	assert re.match(r'REFUSED +denied\.test:80 by curl.* \(not in the allow list\)', lines[first]), run.err
	assert sum(line.startswith('REFUSED') for line in lines) == 1
	assert re.search(r'^Network +allowed\.test \(', run.err, re.M)
	assert re.search(r'^Observed +.*network.* complete', run.err, re.M)
	assert 'allow list of 1 host' in run.err
	entry = net(run)['denied.test', 80, 'tcp']
	assert entry['refused'] and entry['failed'] and 'not in the allow list' in entry['rule']
	assert not [entry for entry in world.log('http') if 'denied' in (entry['host'] or '')]
	assert not [entry for entry in world.log('dns') if 'denied' in entry['name']]
	assert run.record.row()['hosts_refused'] == ['denied.test']
	command = run.record.commands()[0]
	assert set(command['hosts']) == {'allowed.test', 'denied.test'} and command['hosts_refused'] == ['denied.test']
	shown = run.record.show()
	assert {row['host'] for row in shown['refused']} == {'denied.test'} and shown['misused'] == []
	assert shown['refused'][0]['program'] == 'curl' and shown['complete']
	network = shown['network']
	assert (network['watched'], network['reached'], network['refused'], network['failed']) == (True, 1, 1, 0)
	time = [(row['what'], row['host'], row['port']) for row in run.record.json('timeline') if 'host' in row]
	assert ('host', 'allowed.test', 80) in time and ('refused', 'denied.test', 80) in time
	assert '**REFUSED**' in run.record.view('show', '--markdown')


def test_shadow_fails_nothing(online, world):
	run = online.sh('curl -sS http://denied.test/ -o /dev/null -w "%{http_code}"',
		options=(*allow(world, 'allowed.test'), '--shadow', '--fail-on', 'refused'))
	assert (run.code, run.out) == (0, '200'), run
	assert re.search(r'^SHADOW +denied\.test:80 would be refused', run.err, re.M), run.err
	entry = net(run)['denied.test', 80, 'tcp']
	assert entry['shadow'] and entry['refused'] and not entry['failed']
	assert all(row['shadow'] for row in run.record.show()['refused'])


@pytest.mark.parametrize('options, why', [(('--net', 'none'), 'no network'),
	(('--net', 'open', '--trace-sources', 'processes'), 'tracing left it out')])
def test_no_claim_where_nobody_looked(online, world, options, why):
	run = online.run('/bin/true', options=(*options, *(world.net if 'open' in options else ())))
	assert run.code == 0 and re.search(rf'^Network +not watched \({why}\)', run.err, re.M), run
	done = online.call('net', run.record.id)
	assert done.code == 125 and 'was not watched' in done.err and not done.out
	assert online.call('export', '--har', run.record.id).code == 125
	shown = run.record.show()
	assert shown['network'] == {'watched': False, 'reason': why} and shown['misused'] is None


def test_slices_of_execs(online, world):
	box = online.create('--trace', *allow(world, 'allowed.test'))
	try:
		first = box.sh('curl -sS http://allowed.test/first -o /dev/null')
		second = box.sh('curl -sS http://allowed.test/second -o /dev/null; curl -sS http://denied.test/ -o /dev/null')
		assert [request['url'] for request in requests(first)] == ['http://allowed.test/first']
		assert [request['url'] for request in requests(second)] == ['http://allowed.test/second']
		assert ('denied.test', 80, 'tcp') in net(second) and ('denied.test', 80, 'tcp') not in net(first)
		assert len(requests(box)) == 2
		seq = first.record.row()['seq']
		assert [request['url'] for entry in box.record.json('net', '--since', str(seq)) for request in entry['requests']] == [
			'http://allowed.test/second']
		assert 'hosts_refused' not in first.record.row() and second.record.row()['hosts_refused'] == ['denied.test']
	finally:
		box.remove()


def kept_text(online, run):
	folder = online.state / 'records' / run.record.id
	return '\n'.join(path.read_text(errors='replace') for path in folder.rglob('*') if path.is_file()
		and path.suffix != '.zst')


REQUEST_WITH_SECRETS = f'''
import urllib.request as u
u.urlopen(u.Request('http://allowed.test/s?access_token=urlhunter22', b'{{"password": "bodyhunter22", "t": "{TOKEN}"}}'.ljust(2000), {{
	'Authorization': 'Bearer headhunter22', 'Cookie': 'sid=cookiehunter22', 'X-Api-Key': 'keyhunter22'}})).read()
'''


def test_credentials_are_redacted(online, world):
	(online.cwd / 'ask.py').write_text(REQUEST_WITH_SECRETS)
	run = online.run('/usr/bin/python3', str(online.cwd / 'ask.py'), options=allow(world, 'allowed.test'))
	assert run.code == 0, run
	assert 'headhunter22' in world.log('http')[0]['head'], 'what is sent is not touched'
	text = kept_text(online, run)
	for secret in ('urlhunter22', 'bodyhunter22', 'headhunter22', 'cookiehunter22', 'keyhunter22', TOKEN):
		assert secret not in text, secret
	request, = requests(run)
	assert 'body_blob' in run.record.events('net.http')[0], 'too long for its event'
	assert re.fullmatch(r'Bearer \[redacted #[0-9a-f]{6}\]', request['headers']['authorization'])
	assert re.fullmatch(r'\[redacted #[0-9a-f]{6}\]', request['headers']['cookie'])
	assert re.search(r'"password": "\[redacted #', request['body'])
	assert online.call('verify', run.record.id).code == 0


def test_raw_record_keeps_credentials(online, world):
	(online.cwd / 'ask.py').write_text(REQUEST_WITH_SECRETS)
	run = online.run('/usr/bin/python3', str(online.cwd / 'ask.py'), options=(*allow(world, 'allowed.test'), '--record-raw'))
	request, = requests(run)
	assert request['headers']['authorization'] == 'Bearer headhunter22' and TOKEN in request['body']


def needs(*names, **types):
	return {'type': 'object', 'properties': {name.rstrip('_'): kind for name, kind in types.items()}, 'required': [*names]}


TEXT, NUMBER, TIME = {'type': 'string'}, {'type': 'integer', 'minimum': -1}, {'type': 'number', 'minimum': 0}
PAIRS = {'type': 'array', 'items': needs('name', 'value', name=TEXT, value=TEXT)}
MESSAGE = {'httpVersion': TEXT, 'cookies': PAIRS, 'headers': PAIRS, 'headersSize': NUMBER, 'bodySize': NUMBER}
# What version 1.2 of the format asks for.
HAR = needs('log', log=needs('version', 'creator', 'entries', version=TEXT, creator=needs('name', 'version', name=TEXT, version=TEXT),
	pages={'type': 'array', 'maxItems': 0}, entries={'type': 'array', 'items': needs(
		'startedDateTime', 'time', 'request', 'response', 'cache', 'timings',
		startedDateTime={'type': 'string', 'pattern': '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$'}, time=TIME,
		serverIPAddress=TEXT, connection=TEXT, comment=TEXT, cache={'type': 'object'},
		timings=needs('send', 'wait', 'receive', send=TIME, wait=TIME, receive=TIME),
		request=needs('method', 'url', 'queryString', *MESSAGE, method=TEXT, url={'type': 'string', 'pattern': '^https?://'},
			queryString=PAIRS, postData=needs('mimeType', mimeType=TEXT, text=TEXT, params={'type': 'array'}), **MESSAGE),
		response=needs('status', 'statusText', 'content', 'redirectURL', *MESSAGE, status=NUMBER, statusText=TEXT,
			redirectURL=TEXT, content=needs('size', 'mimeType', size=NUMBER, mimeType=TEXT, text=TEXT, encoding=TEXT), **MESSAGE))}))


def test_har(online, world):
	run = online.sh('''curl -sS 'http://allowed.test/har?a=b%20c' -d hello -o /dev/null
head -c 200000 /dev/zero | tr '\\0' x > big; curl -sS http://allowed.test/put -T big -o /dev/null''', options=allow(world, 'allowed.test'))
	log = run.record.json('export', '--har')['log']
	assert log['version'] == '1.2' and log['creator']['name'] == 'cloche'
	first, second = log['entries']
	assert first['request']['postData']['text'] == 'hello'
	assert first['request']['queryString'] == [{'name': 'a', 'value': 'b c'}]
	assert (first['response']['status'], first['serverIPAddress']) == (200, '203.0.113.10')
	assert second['request']['bodySize'] == 200000 and second['request']['postData']['text'] == 'x' * 65536
	assert second['request']['postData']['_truncated'] is True
	jsonschema.Draft202012Validator(HAR).validate({'log': log})
	for entry in log['entries']:
		assert entry['time'] == sum(entry['timings'].values()) and entry['cache'] == {}
	request = requests(run)[1]
	assert (request['body_bytes'], request['body_truncated'], len(request['body'])) == (200000, True, 65536)
	assert request['body_sha256'] == hashlib.sha256(b'x' * 200000).hexdigest()


def folder_of(online, run):
	return online.state / 'records' / run.record.id / 'bodies'


def sha256(text):
	return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def verified(online, run, ok):
	done = online.call('verify', run.record.id)
	assert done.code == (0 if ok else 1), done
	return done.out


def test_big_bodies_are_kept_beside(online, world):
	"""What is longer than a line should be lies in bodies/ under its hash; views read it back, and say where they cannot."""
	run = online.sh('head -c 200000 /dev/zero | tr "\\0" x > big; curl -sS http://allowed.test/put -T big -o /dev/null',
		options=(*allow(world, 'allowed.test'), '--body-limit', '1M'))
	request, = requests(run)
	text = 'x' * 200000
	blob = folder_of(online, run) / sha256(text)
	assert request['body'] == text and not request['body_truncated'] and request['body_bytes'] == 200000
	event, = run.record.events('net.http')
	assert 'body' not in event and 'body_truncated' not in event and event['body_blob'] == blob.name == event['body_sha256']
	assert (event['body_encoding'], event['request_bytes']) == ('utf8', 200000)
	assert blob.read_text() == text and os.stat(blob).st_mode & 0o777 == 0o600 and os.stat(blob.parent).st_mode & 0o777 == 0o700
	har, = run.record.json('export', '--har')['log']['entries']
	assert har['request']['postData']['text'] == text
	verified(online, run, True)
	blob.write_text('changed')
	assert f'bodies/{blob.name} was changed' in verified(online, run, False)
	request, = requests(run)
	assert request['body'] is None and request['body_changed'] and 'body_gone' not in request
	blob.unlink()
	assert f'bodies/{blob.name} is missing' in verified(online, run, False)
	request, = requests(run)
	assert request['body'] is None and request['body_gone'] and request['body_sha256'] == blob.name
	har, = run.record.json('export', '--har')['log']['entries']
	assert har['request']['postData']['_gone'] and 'text' not in har['request']['postData']
	assert online.call('rm', '--record', run.record.id).code == 0 and not blob.parent.parent.exists()


def test_bodies_longer_than_most(online, world):
	"""One frame between gateway and supervisor, however long the limit lets it be."""
	run = online.sh('head -c 20000000 /dev/zero > big; curl -sS http://allowed.test/put -T big -o /dev/null',
		options=(*allow(world, 'allowed.test'), '--body-limit', '32M'))
	assert run.code == 0, run
	event, = run.record.events('net.http')
	assert event['body_blob'] == event['body_sha256'] == sha256(bytes(20000000)) and 'body_truncated' not in event
	assert [event['what'] for event in run.record.events('net.gateway')] == ['started']
	assert (folder_of(online, run) / event['body_blob']).stat().st_size == 20000000


def test_cut_bodies_keep_head_and_tail(online, world):
	(online.cwd / 'send.py').write_text('''
import urllib.request as u
text = ''.join('%06d,' % i for i in range(30000)).encode()
u.urlopen(u.Request('http://allowed.test/numbers', text)).read()
u.urlopen(u.Request('http://allowed.test/bytes', bytes(range(256)) * 1000)).read()
''')
	run = online.run('/usr/bin/python3', str(online.cwd / 'send.py'), options=allow(world, 'allowed.test'))
	assert run.code == 0, run
	text, data = ''.join('%06d,' % i for i in range(30000)), bytes(range(256)) * 1000
	numbers, octets = requests(run)
	assert numbers['body'] == text[:65536] and numbers['body_tail'] == text[-16384:]
	assert (numbers['body_truncated'], numbers['body_bytes'], numbers['request_bytes']) == (True, len(text), len(text))
	assert numbers['body_sha256'] == sha256(text) and numbers['body_encoding'] == 'utf8'
	assert base64.b64decode(octets['body']) == data[:65536] and base64.b64decode(octets['body_tail']) == data[-16384:]
	assert (octets['body_truncated'], octets['body_encoding']) == (True, 'base64')
	assert {path.name for path in folder_of(online, run).iterdir()} == {sha256(part)
		for whole in (text, data) for part in (whole[:65536], whole[-16384:])}
	har = run.record.json('export', '--har')['log']['entries']
	assert har[0]['request']['postData']['_tail'] == text[-16384:]
	verified(online, run, True)


def test_bodies_that_were_taken_away(online, world):
	"""The record stays as it was signed, and verify says what is missing and that somebody did it."""
	script = 'head -c 3000 /dev/zero | tr "\\0" y > big; curl -sS http://allowed.test/ -d @big -o /dev/null'
	run = online.sh(script, options=allow(world, 'allowed.test'))
	assert online.call('rm', '--bodies', run.record.id).code == 0
	assert not folder_of(online, run).exists()
	assert '1 body no longer there (taken away, as the ledger says)' in verified(online, run, True)
	told = run.record.json('verify')
	assert (told['intact'], told['bodies_gone'], told['bodies_removed'], told['findings']) == (True, 1, True, [])
	assert '"act":"remove-bodies"' in (online.state / 'ledger.jsonl').read_text()
	request, = requests(run)
	assert request['body'] is None and request['body_gone']
	other = online.sh(script, options=allow(world, 'allowed.test'))
	(folder_of(online, other) / sha256('y' * 3000)).unlink()
	assert 'is missing' in verified(online, other, False)


def test_bodies_that_cannot_be_kept_are_told(online, world):
	box = online.create('--trace', *allow(world, 'allowed.test'))
	try:
		(online.state / 'records' / box.id / 'bodies').write_text('in the way')
		run = box.sh('head -c 3000 /dev/zero > big; for i in 1 2; do curl -sS http://allowed.test/$i -T big -o /dev/null; done')
		assert run.code == 0, run
		assert [(request['body'], request['body_truncated'], request['body_bytes']) for request in requests(run)] == [
			(None, True, 3000)] * 2
		blind, = box.record.events('trace.blind')
		assert blind['reason'].startswith('bodies of requests, answers or messages are not kept') and blind['source_lost'] == 'network'
	finally:
		box.remove()


def test_events_fit_the_schema(online, world):
	schema = json.loads((pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'events.schema.json').read_text())
	validator = jsonschema.Draft202012Validator(schema)
	run = online.py('''
import socket, subprocess
subprocess.run(['curl', '-sS', 'http://allowed.test/', '-o', '/dev/null'])
subprocess.run(['curl', '-sS', '-m', '5', 'http://denied.test/', 'https://denied.test/', 'https://allowed.test/', '-o', '/dev/null'])
s = socket.socket(); s.bind(('0.0.0.0', 8080)); s.listen()
u = socket.socket(2, 2)
try: u.sendto(b'x', ('203.0.113.10', 9999))
except OSError: pass
''', options=allow(world, 'allowed.test', '203.0.113.10'))
	kinds = set()
	for event in run.record.lines('events', '--noise', '--internal'):
		kinds.add(event['kind'])
		errors = list(validator.iter_errors(event))
		assert not errors, (event, errors[0].message)
	assert {'net.dns', 'net.connect', 'net.flow', 'net.http', 'net.refused', 'net.udp', 'net.gateway'} <= kinds, kinds


def test_hostile_texts_stay_text(online, world):
	"""R91: escape sequences in names and headers reach no terminal, and a fake line is none."""
	run = online.py('''
import socket
s = socket.create_connection(('allowed.test', 80))
s.sendall(b'GET /<svg/onload=alert(4)>?q=%0a HTTP/1.1\\r\\nHost: allowed.test\\r\\nUser-Agent: <img src=x>\\r\\nX-T: a\\xc2\\x9b31mb\\r\\nConnection: close\\r\\n\\r\\n')
s.recv(99)
u = socket.socket(2, 2); u.settimeout(2)
n = b'x\\x1b]0;pwn\\x07.denied.test'
u.sendto(b'\\0\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + b''.join(bytes([len(x)]) + x for x in n.split(b'.')) + b'\\0\\0\\1\\0\\1', ('10.0.0.53', 53))
try: u.recv(512)
except OSError: pass
''', options=allow(world, 'allowed.test'))
	for verb in ('net', 'timeline', 'events', 'show'):
		out = online.call(verb, run.record.id).raw_out
		assert not set(out) & {0x1b, 7, 0x9b} and b'\xc2\x9b' not in out, (verb, out)
	assert b'\x1b' not in run.raw_err


def test_stand_in_is_what_the_record_holds(online, world):
	"""R59: the value reaches the host it is bound to, and nothing that is kept."""
	value = 'sk-proj-' + 'Zz9' * 12
	run = online.sh('''curl -sS http://allowed.test/ -H "Authorization: Bearer $MY_KEY" -o /dev/null
curl -sS -m 5 http://other.wild.test/ -H "X-Key: $MY_KEY" -o /dev/null; echo "$MY_KEY"''',
		options=(*allow(world, 'allowed.test', '*.wild.test'), '--secret', 'MY_KEY@allowed.test,plain=yes'), env={'MY_KEY': value})
	stand_in = run.out.strip()
	assert stand_in and stand_in != value, run
	assert f'Bearer {value}' in world.log('http')[0]['head']
	assert len(world.log('http')) == 1, 'a stand-in on its way elsewhere is refused'
	assert value not in kept_text(online, run)
	assert requests(run)[0]['headers']['authorization'] == f'Bearer {stand_in}'
	entry = net(run)['allowed.test', 80, 'tcp']
	assert entry['secrets'] == [{'name': 'MY_KEY', 'used': 1}]
	lines = run.err.splitlines()
	first = next(i for i, line in enumerate(lines) if line.startswith('cloche sb_')) + 1
	assert re.match(r'MISUSED +secret MY_KEY on its way to other\.wild\.test:80 in the header by curl', lines[first]), run.err
	assert re.search(r'secrets: MY_KEY used 1 time at allowed\.test', run.err.replace('\n          ', ' '))
	misused, = run.record.show()['misused']
	assert (misused['secret'], misused['host'], misused['where']) == ('MY_KEY', 'other.wild.test', 'header')


def test_requests_inside_tls(online, world):
	run = online.sh("""curl -sS https://allowed.test/inside -d hello -o /dev/null -w '%{http_code} '
curl -sS -m 5 https://denied.test/ -o /dev/null -w '%{http_code}'""", options=allow(world, 'allowed.test'))
	assert run.out == '200 403', run
	entry = net(run)['allowed.test', 443, 'tcp']
	assert entry['tls'] == 'intercepted' and not entry['failed']
	request, = entry['requests']
	assert (request['method'], request['url'], request['body'], request['status']) == (
		'POST', 'https://allowed.test/inside', 'hello', 200)
	assert world.log('http')[0]['path'] == '/inside' and world.log('http')[0]['tls']
	refused = net(run)['denied.test', 443, 'tcp']
	assert refused['refused'] and refused['failed']
	assert re.search(r'^REFUSED +denied\.test:443 by curl', run.err, re.M), run.err
	assert 'passed through' not in run.err and 'without its requests' not in run.err


def test_pinned_client_is_told(online, world):
	"""One that trusts no certificate of ours: host and bytes are known, the requests are not, and the summary says so."""
	ca = (world.logs / 'ca.pem').read_text()
	(online.cwd / 'pin.py').write_text(f"""
import ssl, socket
c = ssl.create_default_context(cadata={ca!r})
for i in range(3):
	try:
		s = c.wrap_socket(socket.create_connection(('allowed.test', 443), 5), server_hostname='allowed.test')
		s.sendall(b'GET /pinned HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n')
		print(s.recv(15))
	except OSError as e:
		print(type(e).__name__)
""")
	run = online.run('/usr/bin/python3', str(online.cwd / 'pin.py'), options=allow(world, 'allowed.test'))
	entry = net(run)['allowed.test', 443, 'tcp']
	assert entry['tls'] in ('unreadable', 'passthrough') and entry['bytes_out'] > 0 and not entry['requests'], (run, entry)
	told = run.err.replace('\n          ', ' ')
	assert '1 host read without its requests (pinned TLS)' in told, run.err
	assert run.record.show()['network']['unreadable'] == 1


def test_passthrough_by_name(online, world):
	run = online.sh('curl -sS --cacert /ca.pem https://allowed.test/ -o /dev/null -w "%{http_code}"', options=(
		*allow(world, 'allowed.test'), '--tls', 'allowed.test=passthrough', '--mount', f'{world.logs}/ca.pem:/ca.pem:ro'))
	assert run.out == '200', run
	entry = net(run)['allowed.test', 443, 'tcp']
	assert entry['tls'] == 'passthrough' and not entry['requests'] and not entry['failed']
	assert '1 host passed through unread (--tls)' in run.err.replace('\n          ', ' ')


WEBSOCKET = """
import base64, os, socket, struct
def frame(op, d):
	m = os.urandom(4); n = len(d)
	h = bytes([0x80 | op]) + (bytes([0x80 | n]) if n < 126 else b'\\xfe' + struct.pack('>H', n))
	return h + m + bytes(c ^ m[i % 4] for i, c in enumerate(d))
s = socket.create_connection(('allowed.test', 80))
s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: allowed.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'
	b'Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: ' + base64.b64encode(os.urandom(16)) + b'\\r\\n\\r\\n')
print(s.recv(999)[:12].decode()); s.sendall(frame(1, b'hello')); s.recv(99); s.sendall(frame(2, b'\\xff\\0')); s.recv(99)
s.sendall(frame(8, b'')); s.recv(99)
"""


def test_websocket_messages(online, world):
	run = online.py(WEBSOCKET, options=allow(world, 'allowed.test'))
	assert run.out == 'HTTP/1.1 101\n', run
	entry = net(run)['allowed.test', 80, 'tcp']
	request, = entry['requests']
	assert request['upgrade'] == 'websocket' and request['status'] == 101
	told = [(message['direction'], message['opcode'], message['bytes'], message['body']) for message in entry['messages']
		if message['opcode'] in (1, 2)]
	assert told == [('out', 1, 5, 'hello'), ('in', 1, 5, 'hello'), ('out', 2, 2, '/wA='), ('in', 2, 2, '/wA=')]
	har, = run.record.json('export', '--har')['log']['entries']
	assert [message['data'] for message in har['_webSocketMessages'] if message['opcode'] == 1] == ['hello', 'hello']
	assert {entry['op'] for entry in world.log('ws')} == {1, 2, 8}


def test_long_messages_lie_beside(online, world):
	run = online.py(WEBSOCKET.replace("frame(1, b'hello')); s.recv(99)", "frame(1, b'm' * 3000)); s.recv(3004, socket.MSG_WAITALL)"),
		options=allow(world, 'allowed.test'))
	assert run.out == 'HTTP/1.1 101\n', run
	told = [(message['direction'], message['bytes'], message['body'], message['body_truncated'])
		for message in net(run)['allowed.test', 80, 'tcp']['messages'] if message['opcode'] == 1]
	assert told == [('out', 3000, 'm' * 3000, False), ('in', 3000, 'm' * 3000, False)]
	assert [event.get('body') for event in run.record.events('net.ws') if event['opcode'] == 1] == [None, None]
	assert [path.name for path in folder_of(online, run).iterdir()] == [sha256('m' * 3000)]
	har, = run.record.json('export', '--har')['log']['entries']
	assert [len(message['data']) for message in har['_webSocketMessages'] if message['opcode'] == 1] == [3000, 3000]


def test_answers_where_they_are_recorded(online, world):
	run = online.sh('curl -sS http://allowed.test/bytes/100000 -o /dev/null',
		options=(*allow(world, 'allowed.test'), '--record-responses'))
	request, = requests(run)
	assert (request['response_bytes'], request['response_body_truncated']) == (100000, True)
	head, tail = (base64.b64decode(text) if request['response_body_encoding'] == 'base64' else text.encode()
		for text in (request['response_body'], request['response_body_tail']))
	assert (len(head), len(tail)) == (65536, 16384) and request['response_body_sha256']
	assert {path.name for path in folder_of(online, run).iterdir()} == {sha256(head), sha256(tail)}
	har, = run.record.json('export', '--har')['log']['entries']
	assert har['response']['content']['size'] == 100000 and har['response']['content']['_truncated']


def test_followed_while_it_runs(online, world):
	box = online.create('--trace', *allow(world, 'allowed.test'))
	follower = online.start('net', box.id, '--follow', '--json')
	try:
		box.sh('curl -sS http://allowed.test/live -o /dev/null')
	finally:
		box.remove()
	out, err = follower.communicate(timeout=30)
	assert follower.returncode == 0, err
	entry, = json.loads(out)
	assert entry['requests'][0]['url'] == 'http://allowed.test/live'


def test_names_that_were_only_asked_for_are_told(online, world):
	"""A question is data that left: in the text of the view, and counted in the summary."""
	run = online.sh('getent hosts secret-of-mine.wild.test; getent hosts none.invalid; curl -sS http://allowed.test/ -o /dev/null',
		options=('--net', 'open', *world.net))
	assert {'secret-of-mine.wild.test', 'none.invalid'} <= {entry['name'] for entry in world.log('dns')}
	text = run.record.view('net').splitlines()
	assert text[text.index('Names that were only looked up:') + 1:] == ['        secret-of-mine.wild.test',
		'        none.invalid (NXDOMAIN)']
	assert re.search(r'^Network +allowed\.test \(.*\); 2 names only looked up$', run.err, re.M), run.err
	assert run.record.show()['network']['looked_up'] == 2
	assert [entry['host'] for entry in run.record.json('net')] == ['allowed.test']
