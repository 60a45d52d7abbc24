# SPDX-License-Identifier: Apache-2.0
"""Calls to the control plane from inside a sandbox: by one name, under the sandbox's own, and by no other way."""
import json
import os
import signal

import pytest

import harness
import serving
from conftest import open_folder
from harness import wait_for
from test_network_http import kept_anywhere
from test_serve_networks import at, kill_gateway, reached
from world import HERE

PLANE = 'http://cloche.internal'
SECRET = {'name': 'CLOCHE_KEY', 'hosts': ['cloche.internal']}
WITH_KEY = '-H "Authorization: Bearer $CLOCHE_KEY"'


@pytest.fixture(scope='module')
def net(state, run_dir, world):
	"""A control plane that listens on the host's address, too."""
	with open_folder('serve') as folder:
		cloche = world.cloche(folder / 'state', run_dir, folder)
		harness.lend_skeleton(state, cloche.state)
		config = folder / 'config.json'
		config.write_text(json.dumps({'accounts': {'lab': {'private': True}}}))
		world.outer = serving.free_port()
		made = serving.Server(cloche, '--listen', f'{HERE}:{world.outer}', '--config', str(config), '--socket', str(folder / 'cloche.sock'), world=world)
		yield made
		made.close()
		assert list((cloche.state / 'inside').iterdir()) == []
		cloche.check_clean()


@pytest.fixture(scope='module')
def lab(net):
	admin = net.client('admin', account='lab')
	admin.inside_key = net.client('member', account='lab').key
	assert admin.post('/v1/secrets', {**SECRET, 'value': admin.inside_key}).status == 201
	return admin


@pytest.fixture(scope='module')
def box(lab, world):
	"""One that has the way and a key."""
	return lab.create(network={'net': 'allow', 'control_plane': True, 'secrets': ['CLOCHE_KEY'], **reached(world)}, trace=True)


def curl(path, *words, body=None):
	"""A command that prints status and body of a call."""
	data = f"-X POST -d '{json.dumps(body)}'" if body is not None else ''
	return f"curl -sS -m 20 -w '\\n%{{http_code}}\\n' {data} {' '.join(words)} {PLANE}{path}"


def call(client, box, path, *words, body=None, key=WITH_KEY):
	done = client.exec(box, curl(path, key, *words, body=body))
	text, _, status = done['stdout'].rstrip('\n').rpartition('\n')
	assert status, done
	return int(status), json.loads(text) if text.startswith('{') else text


def events(client, box, *kinds):
	return [event for event in client.pages(at(box, '/trace/events'), 1000) if event['kind'] in kinds]


def test_an_agent_makes_a_sandbox_and_works_in_it(net, lab, box):
	assert call(lab, box, '/health', key='')[0] == 200
	status, made = call(lab, box, '/v1/sandboxes', body={'name': 'made inside', 'network': {'net': 'none'}, 'env': ['WORD=geheim-99']})
	assert status == 201 and made['account'] == 'lab' and made['name'] == 'made inside'
	status, row = call(lab, box, at(made['id'], '/exec'), body={'command': 'echo deep'})
	assert (status, row['stdout']) == (200, 'deep\n')
	assert row['actor'].startswith('key:ke_') and row['actor'].endswith(f' in sandbox:{box}')
	assert lab.get(at(made['id'], '/log')).json['items'] == [row]
	assert call(lab, box, at(made['id']), '-X DELETE')[0] == 200
	told = [line for line in lab.pages('/v1/audit', 1000) if line.get('sandbox') == made['id']]
	assert [line['act'] for line in told] == ['sandbox.created', 'sandbox.removed'], told
	assert {(line['origin'], line['actor']) for line in told} == {(f'sandbox:{box}', row['actor'])}
	https = events(lab, box, 'net.http')[1:]
	assert [(one['method'], one['url'], one['status']) for one in https] == [('POST', f'{PLANE}/v1/sandboxes', 201), ('POST', f'{PLANE}{at(made["id"], "/exec")}', 200),
		('DELETE', f'{PLANE}{at(made["id"])}', 200)]
	assert {one['host'] for one in https} == {'cloche.internal'} and all(one['secrets'] == ['CLOCHE_KEY'] for one in https)
	printed = lab.exec(box, 'echo $CLOCHE_KEY $CLOCHE_SERVER')['stdout'].split()
	assert printed == [printed[0], PLANE] and printed[0] != lab.inside_key and len(printed[0]) == len(lab.inside_key)
	assert kept_anywhere(net.cloche.state, lab.inside_key) == ''
	# What was said is in the audit log and in the other sandbox's record; this one keeps how long it was.
	assert [one.get('request_bytes', 0) > 0 for one in https] == [True, True, False] and not [key for one in https for key in one if 'body' in key and key != 'body_bytes']
	assert 'geheim-99' not in json.dumps(events(lab, box, 'net.http'))


def test_without_a_key_nothing_but_what_all_may_see(net, lab, box):
	assert [call(lab, box, path, '-o /dev/null', key='')[0] for path in ('/v1/health', '/openapi.json')] == [200, 200]
	for path in ('/v1/sandboxes', at(box), at(box, '/log'), '/metrics'):
		status, told = call(lab, box, path, key='')
		assert (status, told['code']) == (401, 'unauthorized'), told
	status, told = call(lab, box, '/v1/sandboxes', key='-H "Authorization: Bearer clo_' + 'x' * 43 + '"')
	assert (status, told['detail']) == (401, 'this key is not known, or was revoked')
	# Who speaks for the socket's other end is not asked.
	assert call(lab, box, '/v1/sandboxes', '-H "X-Forwarded-For: 127.0.0.1" -H "Forwarded: for=unix"', key='')[0] == 401


def test_a_key_of_another_account_is_refused(net, lab, box):
	for key in (net.key, net.client('admin', account='other').key):
		status, told = call(lab, box, '/v1/sandboxes', key=f'-H "Authorization: Bearer {key}"')
		assert (status, told['code']) == (403, 'forbidden') and 'of another account' in told['detail'], told
	assert not [line for line in net.admin.pages('/v1/audit', 1000) if line['origin'].startswith('sandbox:')]


def test_a_sandbox_does_not_loosen_its_own_walls(net, lab, box):
	admin = f'-H "Authorization: Bearer {lab.key}"'
	other = lab.create(network={'net': 'allow'})
	before = lab.get(at(box, '/network-rules')).json
	for rest, words, body in (('/network-rules', '-X PUT', {'net': 'open'}), ('/asks', '', {'ask': 1, 'allow': True}), ('/trace', '-X DELETE', None),
			('/networks/upstream-proxy', '-X PUT', {'url': 'http://203.0.113.1:9'}), ('/networks/upstream-proxy', '-X DELETE', None)):
		status, told = call(lab, box, at(box, rest), words, body=body, key=admin)
		assert status == 403 and 'does not change what holds it' in told['detail'], (rest, told)
	assert lab.get(at(box, '/network-rules')).json == before
	assert call(lab, box, at(other, '/network-rules'), '-X PUT', body={'net': 'allow', 'allow': ['a.test']}, key=admin)[0] == 200
	assert lab.get(at(other, '/network-rules')).json['allow'] == ['a.test']
	assert lab.delete(at(other)).status == 200


@pytest.mark.parametrize('network', [{'net': 'open'}, {'net': 'allow', 'allow': ['*', '*.internal', 'cloche.internal']}, {'net': 'allow', 'shadow': True}], ids=['open', 'allow', 'shadow'])
def test_a_sandbox_that_was_not_given_it(lab, world, network):
	other = lab.create(network={**network, **reached(world)})
	done = lab.exec(other, f'curl -sS -m 10 {PLANE}/health; getent ahosts cloche.internal | grep -v 198.18.0. ; curl -sS -m 5 {PLANE}:8080/; curl -skS -m 5 https://cloche.internal/')
	assert 'cloche.internal leads to the control plane, which this sandbox was not given' in done['stdout'], done
	assert done['stdout'].count('not given') <= 2 and 'ok' not in done['stdout'].split()
	refused = events(lab, other, 'net.refused')
	assert {(event['host'], event['rule']) for event in refused} == {('cloche.internal', 'default: no control plane')}, refused
	assert lab.delete(at(other)).status == 200
	assert not [entry for entry in world.log('dns') if 'internal' in json.dumps(entry)]


OTHER_WAYS = """
import json, socket
def ask(host, port, name='cloche.internal', kind=socket.SOCK_STREAM):
	try:
		sock = socket.socket(socket.AF_INET, kind); sock.settimeout(5); sock.connect((host, port))
		sock.sendall(b'GET /health HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' % name.encode())
		return sock.recv(4096).split(b'\\r\\n')[0].decode()
	except OSError as error:
		return type(error).__name__
plane = socket.gethostbyname('cloche.internal')
ways = dict(loopback=ask('127.0.0.1', PORT), loopback2=ask('127.0.0.2', PORT), host=ask('HERE', OUTER), private=ask('10.0.0.2', PORT), zero=ask('0.0.0.0', PORT),
	named=ask('HERE', OUTER, 'allowed.test'), leads_inward=ask('loop.test', PORT), port=ask(plane, PORT), https=ask(plane, 443), udp=ask(plane, 80, kind=socket.SOCK_DGRAM),
	other=ask(plane, 80, 'allowed.test'), number=ask(plane, 80, plane), at_another=ask('allowed.test', 80), near=ask('198.18.200.1', 80), right=ask(plane, 80))
for abstract in ('cloche/inside/BOX/0', 'cloche/inside', 'cloche.sock'):
	try:
		socket.socket(socket.AF_UNIX).connect('\\0' + abstract)
		ways[abstract] = 'connected'
	except OSError as error:
		ways[abstract] = type(error).__name__
print(json.dumps(ways))
"""


def test_there_is_no_other_way_in(net, lab, world, box):
	other = lab.create(network={'net': 'open', 'control_plane': True, 'allow': ['allowed.test'], **reached(world)})
	code = OTHER_WAYS.replace('PORT', str(net.port)).replace('OUTER', str(world.outer)).replace('HERE', HERE).replace('BOX', box)
	done = lab.post(at(other, '/exec'), {'argv': ['python3', '-c', code]}).json
	ways = json.loads(done['stdout'])
	assert ways.pop('right') == 'HTTP/1.1 200 OK', done
	assert not [way for way, said in ways.items() if ' 200 ' in said], ways
	assert ways['other'] == ways['number'] == ways['at_another'] == 'HTTP/1.1 403 Forbidden', ways
	assert lab.delete(at(other)).status == 200


def test_rules_to_deny_hold(lab, world):
	other = lab.create(network={'net': 'open', 'control_plane': True, 'deny': ['POST cloche.internal', 'cloche.internal/v1/log'], **reached(world)})
	assert call(lab, other, '/v1/sandboxes', key='')[0] == 401
	for path, body in (('/v1/sandboxes', {}), ('/v1/log', None), ('/v1//log', None), ('/v1/%6cog', None)):
		status, told = call(lab, other, path, '--path-as-is', key='', body=body)
		assert status == 403 and 'refused by a rule' in told['detail'], (path, told)
	assert lab.put(at(other, '/network-rules'), {'net': 'open', 'deny': ['cloche.internal']}).status == 200
	assert call(lab, other, '/health', key='')[0] == 403
	assert lab.delete(at(other)).status == 200


def test_it_outlives_every_part(net, lab, world):
	"""The half that faces the network, the gateway, both halves, the sandbox's own processes."""
	other = lab.create(network={'net': 'allow', 'control_plane': True, 'secrets': ['CLOCHE_KEY'], **reached(world)}, trace=True)
	assert call(lab, other, at(other))[0] == 200
	old = net.serve_pid()
	os.kill(old, signal.SIGKILL)
	wait_for(lambda: net.is_up() and net.serve_pid() != old, 'another one')
	assert call(lab, other, at(other))[0] == 200
	kill_gateway(net.cloche, other)
	assert call(lab, other, at(other))[0] == 200
	second = serving.Server(net.cloche, '--socket', str(net.cloche.cwd / 'second.sock'), world=world, key=net.key)
	try:
		net.stop()
		assert call(serving.Client(second, lab.key), other, at(other))[0] == 200
	finally:
		second.stop()
	done = net.cloche.call('exec', other, '--shell', curl('/health'))
	assert done.code == 7 and "Couldn't connect" in done.err, done
	net.start()
	assert call(lab, other, at(other))[0] == 200
	[connect] = [event for event in events(lab, other, 'net.connect') if event.get('result')]
	assert (connect['host'], connect['result'], connect['reason']) == ('cloche.internal', 'ECONNREFUSED', 'the control plane cannot be reached')
	fork = None
	for act in ('suspend', 'fork', 'resume'):
		done = lab.post(at(other, '/' + act))
		assert done.status in (200, 201), (act, done)
		fork = done.json['id'] if act == 'fork' else fork
	for one in (other, fork):
		assert call(lab, one, at(one)) == (200, lab.get(at(one)).json)
		assert lab.delete(at(one)).status == 200


STREAM = """
import http.client, json, os, sys, time
connection = http.client.HTTPConnection('cloche.internal')
connection.request('POST', '/v1/sandboxes/%s/exec' % sys.argv[1], json.dumps({'command': 'echo one; sleep 0.6; echo two'}),
	{'Authorization': 'Bearer ' + os.environ['CLOCHE_KEY'], 'Accept': 'text/event-stream'})
at = [time.monotonic() for line in connection.getresponse() if line.startswith(b'event: stdout')]
print(len(at), at[1] - at[0] > 0.3)
"""

CROWD = """
import contextlib, socket
socks, n = [], 0
for _ in range(80):
	with contextlib.suppress(OSError): # one that is too many is reset
		socks.append(socket.create_connection(('cloche.internal', 80), 10))
for sock in socks:
	with contextlib.suppress(OSError):
		sock.sendall(b'GET /health HTTP/1.1\\r\\nHost: cloche.internal\\r\\n\\r\\n')
		n += sock.recv(12) == b'HTTP/1.1 200'
print(n)
"""


def python(client, box, code, *args):
	done = client.post(at(box, '/exec'), {'argv': ['python3', '-c', code, *args], 'timeout_ms': 30000})
	assert done.status == 200 and done.json['exit_code'] == 0, done.json['stderr']
	return done.json['stdout']


def test_what_comes_bit_by_bit(lab, box):
	other = lab.create(network={'net': 'none'})
	assert python(lab, box, STREAM, other) == '2 True\n'
	assert lab.delete(at(other)).status == 200


def test_one_sandbox_leaves_room_for_others(lab, box):
	assert python(lab, box, CROWD) == '64\n'
	assert lab.get('/health').status == 200
	wait_for(lambda: python(lab, box, CROWD) == '64\n', 'those that left')


def test_what_nobody_can_give(lab, world, net):
	"""Refused with a sentence, and nothing is made."""
	before = lab.get('/v1/sandboxes').json
	for network, reason in (({'control_plane': 'yes'}, "'control_plane' must be true or false"), ({'net': 'none', 'control_plane': True}, 'control_plane needs a network'),
			({'secrets': ['CLOCHE_KEY']}, 'which this sandbox does not reach'), ({'host_map': ['cloche.internal=10.0.0.1']}, "this name is the control plane's")):
		refused = lab.post('/v1/sandboxes', {'network': network})
		assert refused.status == 400 and reason in refused.json['detail'], (network, refused)
	assert lab.get('/v1/sandboxes').json == before
	spec = net.cloche.cwd / 'spec.json'
	spec.write_text(json.dumps({'network': {'control_plane': True}}))
	done = net.cloche.call('create', '--spec', str(spec))
	assert done.code == 125 and 'for sandboxes that `cloche serve` makes' in done.err, done
