# SPDX-License-Identifier: Apache-2.0
"""Networks over HTTP: rules of living sandboxes and of those to come, an upstream proxy, secrets, questions; and what a key, or a
taken-over cloche-serve, may not make of them."""
import base64
import contextlib
import json
import struct
import threading

import pytest

import harness
import serving
import test_network_ways
from conftest import open_folder
from harness import kill_and_wait, wait_for
from test_network_catch import gateways_of
from test_network_http import KEY, heads, kept_anywhere
from test_network_ways import STATUS
from world import UPSTREAM

proxy = test_network_ways.proxy
PROXY_URL = 'http://me:geheim-77@203.0.113.1:3128'
RAW = f'bash -c "exec 3<>/dev/tcp/{UPSTREAM}/80 && echo through || echo refused" 2>/dev/null'


@pytest.fixture(scope='module', params=['sqlite', 'postgres'])
def net(request, state, run_dir, world):
	"""A control plane in the tests' own network: the account `lab` may name private places, `default` may not."""
	postgres = request.getfixturevalue('postgres') if request.param == 'postgres' else None
	database = postgres.database() if postgres else None
	with open_folder('serve') as folder:
		cloche = world.cloche(folder / 'state', run_dir, folder)
		harness.lend_skeleton(state, cloche.state)
		config = folder / 'config.json'
		config.write_text(json.dumps({'accounts': {'lab': {'private': True}, 'default': {}}}))
		made = serving.Server(cloche, '--socket', str(folder / 'cloche.sock'), '--config', str(config), database=database, world=world)
		made.dump = (lambda: postgres.dump(database)) if postgres else lambda: ''
		yield made
		made.close()
		cloche.check_clean()


@pytest.fixture(scope='module')
def lab(net):
	return net.client('admin', account='lab')


@pytest.fixture(scope='module')
def member(net):
	return net.client('member')


@pytest.fixture
def make(net, world):
	"""make(client, network) makes a sandbox that goes at the end of the test."""
	made = []

	def make(client, **network):
		made.append((client, client.create(network=network)))
		return made[-1][1]

	world.clear()
	yield make
	for client, box in made:
		assert client.delete(at(box)).status == 200


def kill_gateway(cloche, box):
	"""The next use starts another one."""
	[gateway] = gateways_of(harness.Sandbox(cloche, box))
	kill_and_wait(gateway)


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


def reached(world):
	"""What a spec needs to reach the server of the tests."""
	return {'resolver': [UPSTREAM], 'upstream_ca': (world.logs / 'ca.pem').read_text()}


def acts(client, act):
	return [(line['object'], line.get('sandbox'), line.get('detail'), line['actor']) for line in client.pages('/v1/audit', 1000) if line['act'] == act]


# ---- rules of a living sandbox ----

def test_live_rules_hold_at_once(world, lab, make):
	box = make(lab, net='allow', allow=['allowed.test'], **reached(world))
	get = f'{STATUS} http://allowed.test/; {STATUS} http://other.wild.test/'
	before = lab.get(at(box, '/network-rules'))
	assert before.json == {'net': 'allow', 'allow': ['allowed.test'], 'deny': [], 'sets': {}, 'ask': False, 'shadow': False}
	assert lab.exec(box, get)['stdout'] == '200\n403\n'
	changed = lab.put(at(box, '/network-rules'), {'net': 'allow', 'allow': ['*.wild.test', '@github'], 'deny': ['x.wild.test']})
	assert changed.status == 200 and changed.json == lab.get(at(box, '/network-rules')).json
	assert changed.json['allow'] == ['*.wild.test', '@github'] and changed.json['deny'] == ['x.wild.test'] and changed.json['sets']['@github']
	assert lab.exec(box, get)['stdout'] == '403\n200\n'
	assert lab.put(at(box, '/network-rules'), {'net': 'open', 'deny': ['allowed.test', f'{UPSTREAM}:80']}).status == 200
	assert lab.exec(box, f'{get}; {RAW}')['stdout'].split() == ['403', '000', 'refused']
	[first, second] = acts(lab, 'network_rules.changed')[-2:]
	assert first[:3] == (box, box, 'net allow; allow *.wild.test, @github; deny x.wild.test') and second[2].startswith('net open; deny')
	assert first[3].startswith('key:ke_')


FIELDS = [('net', None, 400), ('net', 1, 400), ('net', 'none', 400), ('net', 'all', 400), ('allow', 'a.test', 400), ('allow', [1], 400), ('allow', ['http://a/'], 400),
	('allow', ['10.0.0.1'], 403), ('allow', ['GET [fd00::1]/x'], 403), ('allow', ['0.0.0.0/0:80'], 403), ('allow', ['@nosuch'], 400), ('allow', ['@../sets/github'], 400), ('deny', ['@'], 400), ('deny', ['/'], 400),
	('sets', {'@x': ['10.0.0.1']}, 400), ('shadow', True, 400), ('host_map', ['a.test=10.0.0.1'], 400), ('resolver', ['10.0.0.1'], 400), ('upstream_proxy', PROXY_URL, 400),
	('upstream_ca', 'x', 400), ('publish', ['1:1'], 400), ('ask', False, 400), ('reset', True, 400), ('replace', False, 400), ('within', {}, 400)]


def test_live_rules_that_are_refused(net, member, make):
	box = make(member, net='allow', allow=['a.test'])
	before = member.get(at(box, '/network-rules')).json
	for key, value, status in FIELDS:
		body = {'net': 'allow', 'allow': ['b.test'], key: value}
		for client in (member, net.admin):
			refused = client.put(at(box, '/network-rules'), body)
			assert (refused.status, refused.json['status']) == (status, status) and refused.json['detail'], (body, refused)
	assert member.put(at(box, '/network-rules'), {'net': 'open', 'allow': ['b.test']}).status == 403
	assert member.get(at(box, '/network-rules')).json == before
	assert not [line for line in acts(net.admin, 'network_rules.changed') if line[0] == box]
	auditor = net.client('auditor')
	assert auditor.get(at(box, '/network-rules')).status == 200
	assert auditor.put(at(box, '/network-rules'), {'net': 'allow'}).status == auditor.post(at(box, '/asks'), {'ask': 1, 'allow': True}).status == 403


def test_rules_need_a_sandbox_that_runs(net, member, make, lab):
	box = make(member, net='none')
	refused = member.put(at(box, '/network-rules'), {'net': 'allow'})
	assert refused.status == 400 and 'has no network' in refused.json['detail'], refused
	assert lab.get(at(box, '/network-rules')).status == lab.put(at(box, '/network-rules'), {'net': 'allow'}).status == 404
	assert lab.get(at(box, '/asks')).status == lab.get(at(box, '/networks/upstream-proxy')).status == 404
	for act, state in (('suspend', 'is suspended'), ('stop', '')):
		if act == 'suspend':
			assert member.post(at(box, '/' + act)).status == 200
		else:
			assert member.post(at(box, '/resume')).status == member.post(at(box, '/stop')).status == 200
		for refused in (member.get(at(box, '/network-rules')), member.put(at(box, '/network-rules'), {'net': 'allow'}), member.get(at(box, '/asks')),
				member.post(at(box, '/asks'), {'ask': 1, 'allow': False})):
			assert (refused.status, refused.json['code']) == (409, 'not_running') and state in refused.json['detail'], refused


def test_a_server_that_shows_no_previews(member, make):
	refused = member.post('/v1/previews', {'sandbox': make(member, net='open'), 'port': 80, 'visibility': 'private'})
	assert (refused.status, refused.json['code']) == (409, 'previews_off') and '--previews ADDRESS:PORT' in refused.json['detail']
	assert member.get('/v1/previews').json == {'items': [], 'next_cursor': None}


# ---- a cloche-serve that somebody took over ----

def tell(sock, **what):
	text = json.dumps(what).encode()
	sock.sendall(struct.pack('<IB3x', len(text), ord('J')) + text)


def say(sock, **what):
	tell(sock, **what)
	data = b''
	while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:4], 'little'):
		data += sock.recv(65536)
	return json.loads(data[8:])


def test_a_taken_over_server_changes_no_rules(net, member, make):
	box = make(member, net='allow', allow=['a.test'])
	before = member.get(at(box, '/network-rules')).json
	with contextlib.closing(serving.Taken(net)) as taken:
		with taken.supervisor(box) as sock:
			for change in ({'net': 'open'}, {'allow': ['10.0.0.5']}, {'reset': True}, {'remove': ['a.test']}, {'deny': [], 'replace': True}):
				answer = say(sock, request='net-rules', **change)
				assert (answer['ok'], answer['errno']) == (False, 'EPERM'), answer
			tell(sock, request='narrow', private=['default'])
			assert say(sock, request='net-rules', allow=['10.0.0.5'])['errno'] == 'EPERM'
		for rules, reason in (({'net': 'allow', 'allow': ['10.0.0.5']}, 'hosts, not addresses'), ({'net': 'open', 'allow': ['b.test']}, 'may lead to private'),
				({'net': 'allow', 'allow': ['@x'], 'sets': {'@x': ['10.0.0.5']}}, "'sets' is no part"), ({'net': 'allow', 'upstream_proxy': PROXY_URL}, 'is no part')):
			answer, _ = taken.ask('net-rules', sandbox=box, account='lab', rules=rules)
			assert answer['status'] == (125 if 'no part' in reason else 126) and reason in answer['error'], answer
		made, _ = taken.ask('create', account='default', spec={'network': {'net': 'allow', 'allow': ['@x'], 'sets': {'@x': ['10.0.0.5']}}})
		assert made['status'] == 126 and 'hosts, not addresses' in made['error'], made
		made, _ = taken.ask('create', account='default', spec={'network': {'net': 'open', 'secrets': ['PATH@a.test']}})
		assert made['status'] == 125 and 'secret PATH has no value' in made['error'], made
	assert member.get(at(box, '/network-rules')).json == before


# ---- rules and proxy of an account ----

def test_rules_of_sandboxes_to_come(net, member, make):
	admin = net.admin
	assert admin.get('/v1/network-rules').json == {'net': 'open', 'allow': [], 'deny': []}
	for key, value, status in FIELDS:
		if (key, value) != ('net', 'none'):
			assert admin.put('/v1/network-rules', {'net': 'allow', 'allow': ['b.test'], key: value}).status == status, (key, value)
	assert member.put('/v1/network-rules', {'net': 'allow'}).status == 403 and member.get('/v1/network-rules').status == 200
	rules = {'net': 'allow', 'allow': ['a.test', '*.b.test:443'], 'deny': ['x.b.test']}
	put = admin.put('/v1/network-rules', rules)
	assert put.status == 200 and put.json == rules == admin.get('/v1/network-rules').json
	try:
		for network, want in (({}, rules), ({'record_responses': True}, rules), ({'net': 'open'}, {'net': 'open', 'allow': [], 'deny': []}),
				({'allow': ['c.test']}, {'net': 'allow', 'allow': ['c.test'], 'deny': []})):
			got = member.get(at(make(member, **network), '/network-rules')).json
			assert {key: got[key] for key in want} == want, network
		assert net.client('member', account='other').get('/v1/network-rules').json['net'] == 'open'
	finally:
		assert admin.put('/v1/network-rules', {'net': 'open'}).status == 200
	assert acts(admin, 'network_rules.changed')[-2][2] == 'net allow; allow a.test, *.b.test:443; deny x.b.test'


def test_upstream_proxy(net, world, lab, make, proxy):
	word = base64.b64encode(b'me:geheim-77').decode()
	path = '/v1/networks/upstream-proxy'
	assert net.admin.put(path, {'url': PROXY_URL}).status == net.client('member', account='lab').put(path, {'url': PROXY_URL}).status == 403
	assert lab.get(path).status == lab.delete(path).status == 404
	for url in ('https://203.0.113.1:1', 'nonsense', 7, None):
		assert lab.put(path, {'url': url}).status == 400, url
	assert lab.put(path, {'url': PROXY_URL}).json == {'url': 'http://203.0.113.1:3128', 'has_credentials': True} == lab.get(path).json
	end = proxy(3128, 'works')
	try:
		box = make(lab, net='allow', allow=['allowed.test'], **reached(world))
		assert lab.get(at(box, '/networks/upstream-proxy')).json == lab.get(path).json
		assert lab.exec(box, f'{STATUS} http://allowed.test/p')['stdout'] == '200\n'
		for act in ('suspend', 'resume'):
			assert lab.post(at(box, '/' + act)).status == 200
		assert lab.exec(box, f'{STATUS} http://allowed.test/q')['stdout'] == '200\n'
		other = make(lab, net='allow', allow=['allowed.test'], upstream_proxy='http://203.0.113.1:9')
		assert lab.get(at(other, '/networks/upstream-proxy')).json == {'url': 'http://203.0.113.1:9', 'has_credentials': False}
	finally:
		assert lab.delete(path).status == 204
	assert [f'Basic {word}'.encode() in head for head in end()] == [True, True]
	assert lab.get(at(make(lab, net='none'), '/networks/upstream-proxy')).status == 404
	assert [line[2] for line in acts(lab, 'upstream_proxy.changed')] == ['http://203.0.113.1:3128']
	everything(net, 'geheim-77', word)


# One connection that stays open while the proxy is changed, used before and after.
KEPT = """
import os, socket, time
sock = socket.create_connection(('allowed.test', 80), 10)
for path in ('/before', '/after'):
	while path == '/after' and not os.path.exists('/tmp/go'):
		time.sleep(0.01)
	sock.sendall(f'GET {path} HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'.encode())
	print(sock.recv(9999)[9:12].decode(), flush=True)
	open('/tmp/ready', 'w')
"""


def test_upstream_proxy_of_a_living_sandbox(net, world, lab, make, proxy):
	word = base64.b64encode(b'me:geheim-78').decode()
	box = make(lab, net='allow', allow=['allowed.test'], **reached(world))
	path = at(box, '/networks/upstream-proxy')
	get = f'{STATUS} http://allowed.test/p'
	assert lab.get(path).status == lab.delete(path).status == 404
	kept = begin(lab, box, f"python3 -c '{KEPT.replace(chr(39), chr(34))}'")
	wait_for(lambda: lab.exec(box, 'test -e /tmp/ready')['exit_code'] == 0, 'the first request')
	end = proxy(3133, 'works')
	put = lab.put(path, {'url': 'http://me:geheim-78@203.0.113.1:3133'})
	assert put.status == 200 and put.json == {'url': 'http://203.0.113.1:3133', 'has_credentials': True} == lab.get(path).json
	assert lab.exec(box, f'{get}; touch /tmp/go')['stdout'] == '200\n' and kept() == '200\n200\n'
	assert lab.get(at(box, '/network-rules')).json['allow'] == ['allowed.test']
	kill_gateway(net.cloche, box)
	assert lab.exec(box, get)['stdout'] == '200\n'
	assert lab.put(at(box, '/network-rules'), {'net': 'allow', 'allow': ['allowed.test', 'a.test']}).status == 200
	assert lab.exec(box, get)['stdout'] == '200\n'
	for act in ('suspend', 'fork', 'resume'):
		done = lab.post(at(box, '/' + act))
		assert done.status in (200, 201), (act, done)
		if act == 'fork':
			assert lab.exec(done.json['id'], get)['stdout'] == '200\n' and lab.delete(at(done.json['id'])).status == 200
	assert lab.exec(box, get)['stdout'] == '200\n'
	assert [f'Basic {word}'.encode() in head for head in end()] == [True] * 5
	world.clear()
	for port, mode in ((3134, '407'), (3135, 'closes'), (3136, None)):
		if mode:
			proxy(port, mode)
		assert lab.put(path, {'url': f'http://203.0.113.1:{port}'}).json == {'url': f'http://203.0.113.1:{port}', 'has_credentials': False}
		assert lab.exec(box, get)['stdout'] == '000\n'
	assert world.log('http') == [] and (UPSTREAM, 'tcp', 80) not in world.wire()
	assert lab.delete(path).status == 204 and lab.get(path).status == 404
	assert lab.exec(box, get)['stdout'] == '200\n'
	told = net.cloche.call('events', box, '--jsonl')
	assert told.code == 0 and told.out.endswith('\n'), told
	said = [(event.get('url'), event['actor'].startswith('key:ke_')) for event in map(json.loads, told.out.splitlines()) if event['kind'] == 'net.proxy']
	assert said == [(f'http://203.0.113.1:{port}', True) for port in (3133, 3134, 3135, 3136)] + [(None, True)]
	assert [line[1:3] for line in acts(lab, 'upstream_proxy.changed') if line[0] == box] == [(box, url) for url, _ in said[:4]]
	assert [line[1] for line in acts(lab, 'upstream_proxy.removed') if line[0] == box] == [box]
	everything(net, 'geheim-78', word)


def test_upstream_proxies_that_are_refused(net, world, member, lab, make):
	box, none, own = make(member, net='allow'), make(lab, net='none'), make(lab, net='allow', **reached(world))
	url = {'url': 'http://me:geheim-79@203.0.113.1:3137'}
	for client in (member, net.admin):
		for refused in (client.put(at(box, '/networks/upstream-proxy'), url), client.delete(at(box, '/networks/upstream-proxy'))):
			assert (refused.status, refused.json['detail']) == (403, 'url: this account may not choose an upstream proxy; whoever runs the server can '
				'allow it ("private" in its configuration)'), refused
	for bad in ('https://203.0.113.1:1', 'http://a:geheim-79@/', 'nonsense', 7, None, '', 'none', '--reset'):
		refused = lab.put(at(own, '/networks/upstream-proxy'), {'url': bad})
		assert refused.status == 400 and 'geheim' not in refused.json['detail'], (bad, refused)
	assert lab.put(at(own, '/networks/upstream-proxy'), {**url, 'more': 1}).status == 400
	assert lab.put(at(box, '/networks/upstream-proxy'), url).status == lab.delete(at(box, '/networks/upstream-proxy')).status == 404
	assert net.client('auditor', account='lab').put(at(own, '/networks/upstream-proxy'), url).status == 403
	refused = lab.put(at(none, '/networks/upstream-proxy'), url)
	assert refused.status == 400 and 'has no network' in refused.json['detail'], refused
	with contextlib.closing(serving.Taken(net)) as taken:
		with taken.supervisor(box) as sock:
			assert say(sock, request='net-proxy', proxy={'url': 'http://203.0.113.1:1'})['errno'] == 'EPERM'
		for words in ({'url': 'http://203.0.113.1:1'}, {'url': None}, {'url': '--reset'}, {}):
			answer, _ = taken.ask('net-proxy', sandbox=box, account='lab', **words)
			assert answer['status'] in (2, 126) and ('may not choose one' in answer['error'] or words == {'url': '--reset'}), answer
	assert lab.post(at(own, '/suspend')).status == 200
	for refused in (lab.put(at(own, '/networks/upstream-proxy'), url), lab.delete(at(own, '/networks/upstream-proxy'))):
		assert (refused.status, refused.json['code']) == (409, 'not_running'), refused
	for one in (box, none, own):
		assert lab.get(at(one, '/networks/upstream-proxy')).status == member.get(at(one, '/networks/upstream-proxy')).status == 404
	assert not [line for line in acts(lab, 'upstream_proxy.changed') + acts(net.admin, 'upstream_proxy.changed') if line[0] in (box, none, own)]


# ---- secrets ----

def everything(net, *texts):
	"""None of these stands in the state (records, journal, SQLite), in the log or in PostgreSQL."""
	for text in texts:
		assert kept_anywhere(net.cloche.state, text) == '' and text not in net.said()
	dumped = net.dump()
	assert not [text for text in texts if text in dumped] and ('CREATE TABLE' in dumped) == bool(net.database)


def test_a_secret_is_used_and_never_told(net, world, lab, make):
	user = net.client('member', account='lab')
	secret = {'name': 'API_KEY', 'value': KEY, 'hosts': ['allowed.test', '*.wild.test']}
	assert user.post('/v1/secrets', secret).status == 403
	made = lab.post('/v1/secrets', secret)
	assert made.status == 201 and made.json == {'name': 'API_KEY', 'hosts': secret['hosts'], 'plain': False, 'set_at': made.json['set_at']}
	assert user.get('/v1/secrets').json == {'items': [made.json], 'next_cursor': None}
	assert net.admin.get('/v1/secrets').json['items'] == [] and net.admin.delete('/v1/secrets/API_KEY').status == 404
	ask = 'curl -sS https://allowed.test/ -H "Authorization: Bearer $API_KEY" -o /dev/null -w "%{http_code}\\n"; echo $API_KEY'
	rules = {'net': 'allow', 'allow': ['allowed.test', '*.wild.test'], **reached(world)}
	box = make(user, secrets=['API_KEY'], **rules)
	before = user.exec(box, ask)['stdout']
	assert before.startswith('200\n') and KEY not in before
	for act in ('suspend', 'fork', 'resume'):
		done = user.post(at(box, '/' + act))
		assert done.status in (200, 201), (act, done)
		fork = done.json['id'] if act == 'fork' else None
		if fork:
			assert user.exec(fork, ask)['stdout'] == before and user.delete(at(fork)).status == 200
		if act == 'suspend':
			net.restart() # what seals them is kept
	assert user.exec(box, ask)['stdout'] == before
	assert [f'Bearer {KEY}' in head for head in heads(world)] == [True] * 3
	for one in ({'name': 'API_KEY', 'hosts': ['allowed.test']}, 'API_KEY@allowed.test,*.wild.test', {'name': 'API_KEY', 'pass': ['x.test']}):
		make(user, secrets=[one], **rules)
	assert user.post(at(box, '/suspend')).status == 200
	assert lab.post('/v1/secrets', {**secret, 'hosts': ['allowed.test']}).status == 201
	refused = user.post(at(box, '/resume'))
	assert (refused.status, refused.json['detail']) == (403, "network.secrets: 'API_KEY' is not kept for the host '*.wild.test': "
			'an admin of the account can keep it for that one, too')
	assert lab.delete('/v1/secrets/API_KEY').status == 204 and lab.delete('/v1/secrets/API_KEY').status == 404
	assert user.post(at(box, '/resume')).status == 400
	assert [line[0] for line in acts(lab, 'secret.set')] == ['API_KEY'] * 2 and [line[0] for line in acts(lab, 'secret.removed')] == ['API_KEY']
	everything(net, KEY, base64.b64encode(KEY.encode()).decode())


@pytest.fixture
def kept(lab):
	assert lab.post('/v1/secrets', {'name': 'API_KEY', 'value': KEY, 'hosts': ['allowed.test']}).status == 201
	yield
	assert lab.delete('/v1/secrets/API_KEY').status == 204


def test_secrets_go_nowhere_else(net, lab, kept):
	user = net.client('member', account='lab')
	before = user.get('/v1/sandboxes').json
	for one, status in (('API_KEY@evil.test', 403), ({'name': 'API_KEY', 'hosts': ['allowed.test', 'evil.test']}, 403), ({'name': 'API_KEY', 'hosts': ['allowed.test:80']}, 403),
			('API_KEY@allowed.test,plain=yes', 403), ({'name': 'API_KEY', 'plain': True}, 403), ({'name': 'API_KEY', 'hosts': 'evil.test'}, 400), ({'name': 'API_KEY', 'hosts': [1]}, 400),
			('PATH', 400), ('PATH@evil.test', 400), ('', 400), (7, 400), ({}, 400), ({'name': 'API_KEY', 'value': 'x' * 20}, 400)):
		refused = user.post('/v1/sandboxes', {'network': {'net': 'open', 'secrets': [one]}})
		assert refused.status == status and refused.json['detail'], (one, refused)
	assert net.admin.post('/v1/sandboxes', {'network': {'net': 'open', 'secrets': ['API_KEY']}}).status == 400
	assert user.get('/v1/sandboxes').json == before


def test_bad_secrets(net, lab):
	good = {'name': 'API_KEY', 'value': KEY, 'hosts': ['allowed.test']}
	for key, value in (('name', None), ('name', 'a b'), ('name', 7), ('name', 'A' * 300), ('value', None), ('value', 'geheim'), ('value', 'geheim-88' + 'x' * 5000),
			('value', 'geheim-88\n\n'), ('value', 7), ('value', 'geheim-88\0x'), ('hosts', None), ('hosts', []), ('hosts', ['*']), ('hosts', 'a'), ('hosts', [7]), ('hosts', ['a/x']),
			('plain', 'yes'), ('more', 1)):
		refused = lab.post('/v1/secrets', {**good, key: value})
		assert refused.status == 400 and 'geheim' not in refused.json['detail'], (key, value, refused)
	assert lab.get('/v1/secrets').json['items'] == []


# ---- questions ----

def asked(client, box, n=1):
	return wait_for(lambda: (lambda items: items if len(items) == n else None)(client.get(at(box, '/asks')).json['items']), 'a question')


def begin(client, box, command):
	done = []
	thread = threading.Thread(target=lambda: done.append(client.exec(box, command)['stdout']))
	thread.start()

	def end():
		thread.join(30)
		return done[0]
	return end


def test_questions_are_answered(net, world, lab, make):
	box = make(lab, net='allow', ask=True, **reached(world))
	assert lab.get(at(box, '/asks')).json == {'items': [], 'next_cursor': None}
	end = begin(lab, box, f'{STATUS} http://allowed.test/')
	[ask] = asked(lab, box)
	assert (ask['host'], ask['port'], ask['protocol']) == ('allowed.test', 80, 'tcp') and ask['asked_at'] < ask['expires_at']
	wait_for(lambda: lab.get('/v1/asks').json['items'] == [{**ask, 'sandbox': box}], 'it in the list of the account')
	assert net.admin.get('/v1/asks').json == {'items': [], 'next_cursor': None}
	for body in ({}, {'ask': ask['ask']}, {'ask': 'x', 'allow': True}, {'ask': ask['ask'], 'allow': 1}, {'ask': ask['ask'], 'allow': False, 'always': True}, {'ask': 0, 'allow': True}):
		assert lab.post(at(box, '/asks'), body).status == 400, body
	assert lab.post(at(box, '/asks'), {'ask': ask['ask'] + 7, 'allow': True}).status == 404
	told = lab.post(at(box, '/asks'), {'ask': ask['ask'], 'allow': True, 'always': True, 'reason': 'it is ours'})
	assert told.status == 200 and (told.json['answer'], told.json['host'], told.json['always']) == ('allowed', 'allowed.test', True)
	assert end() == '200\n' and lab.get(at(box, '/network-rules')).json['allow'] == ['allowed.test:80']
	end = begin(lab, box, f'{STATUS} http://denied.test/')
	[ask] = asked(lab, box)
	assert lab.post(at(box, '/asks'), {'ask': ask['ask'], 'allow': False}).json['answer'] == 'refused'
	assert end() == '403\n' and lab.post(at(box, '/asks'), {'ask': ask['ask'], 'allow': True}).status == 404
	end = begin(lab, box, RAW)
	[ask] = asked(lab, box)
	assert (ask['host'], ask['address']) == (None, UPSTREAM)
	assert lab.post(at(box, '/asks'), {'ask': ask['ask'], 'allow': True}).status == 200 and end() == 'through\n'
	record = net.cloche.call('events', box, '--jsonl').out.splitlines()
	said = [event for event in map(json.loads, record) if event['kind'] == 'net.asked']
	assert [(event['answer'], event.get('reason')) for event in said] == [('allowed', 'it is ours'), ('refused', None), ('allowed', None)]
	assert all(event['actor'].startswith('key:ke_') for event in said)
	assert [line[2] for line in acts(lab, 'ask.answered') if line[0] == box] == ['allowed for good allowed.test port 80', 'refused denied.test port 80', f'allowed {UPSTREAM} port 80']


def test_an_answer_allows_no_more_than_a_rule(net, world, member, make):
	"""Also by a detached command, which has no client that could be asked."""
	box = make(member, net='allow', ask=True)
	started = member.post(at(box, '/exec'), {'command': f'{RAW} > /tmp/said', 'detach': True})
	assert started.status == 202
	[ask] = asked(member, box)
	for always in (False, True):
		for client in (member, net.admin):
			refused = client.post(at(box, '/asks'), {'ask': ask['ask'], 'allow': True, 'always': always})
			assert refused.status == 403 and 'hosts, not addresses' in refused.json['detail'], refused
	with contextlib.closing(serving.Taken(net)) as taken, taken.supervisor(box) as sock:
		tell(sock, request='answer', ask=ask['ask'], allow=True, always=True)
		assert say(sock, request='decide', ask=ask['ask'], allow=True)['errno'] == 'EPERM'
	assert asked(member, box) == [ask] and member.get(at(box, '/network-rules')).json['allow'] == []
	assert member.post(at(box, '/asks'), {'ask': ask['ask'], 'allow': False}).status == 200
	wait_for(lambda: member.get(at(box, f'/exec/{started.json["exec"]}')).status == 200, 'its end')
	assert member.exec(box, 'cat /tmp/said')['stdout'] == 'refused\n'
