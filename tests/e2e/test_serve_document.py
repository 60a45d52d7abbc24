# SPDX-License-Identifier: Apache-2.0
"""The control plane as its own document tells of it: who may do what, whose things are whose, and what becomes of requests
that are wrong. What is asked for is made from the document alone (openapi_fuzz.py).

CLOCHE_FUZZ_SEED and CLOCHE_FUZZ_S choose other requests, and more of them."""
import http.client
import json
import os
import pathlib
import random
import subprocess
import time

import pytest

import openapi_fuzz
from harness import wait_for
from serving import Client, Reply

SEED = int(os.environ.get('CLOCHE_FUZZ_SEED', '1'))
SECONDS = float(os.environ.get('CLOCHE_FUZZ_S', '2.5'))
SOURCE = pathlib.Path(__file__).resolve().parents[2]
EVERYBODY = {'anyone': {'nobody', 'auditor', 'member', 'admin', 'operator'}, 'read': {'auditor', 'member', 'admin', 'operator'},
	'work': {'member', 'admin', 'operator'}, 'admin': {'admin', 'operator'}, 'operator': {'operator'}}

STORES = ['sqlite'] # nothing here asks the database but what test_serve.py does; CLOCHE_TEST_STORES=all runs both


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


def test_the_document_is_what_is_written(server):
	tool = [SOURCE / 'tools' / 'openapi', 'json', SOURCE / 'docs' / 'openapi.yaml', SOURCE / 'docs' / 'events.schema.json']
	written = subprocess.run(tool, capture_output=True, check=True).stdout
	served = Client(server, None).get('/openapi.json')
	assert served.status == 200 and served.json == json.loads(written)
	head = Client(server, None).call('HEAD', '/openapi.json')
	assert head.body == b'' and head.headers['Content-Length'] == str(len(served.body))


@pytest.fixture
def box(admin):
	made = admin.create()
	yield made
	assert admin.delete(at(made)).status == 200


def things(admin):
	"""One of each thing that a path may name, of the account of this admin: a new parameter needs a line here."""
	box = admin.create(network={'net': 'open'}) # the account's own rules may be any by now
	admin.delete('/v1/secrets/DOCUMENTED')
	made = admin.post('/v1/secrets', {'name': 'DOCUMENTED', 'value': 'of no use', 'hosts': ['api.example.org']})
	assert made.status == 201, made
	for one in admin.get('/v1/webhooks').json['items']: # of the time before, and of requests at random
		admin.delete('/v1/webhooks/' + one['id'])
	hook = admin.post('/v1/webhooks', {'url': 'http://hooks.invalid/', 'events': ['exec.end'], 'sandbox': box}).json['id']
	row = admin.exec(box, 'true')
	told = wait_for(lambda: admin.get(f'/v1/webhooks/{hook}/deliveries').json['items'], 'a delivery')
	return {'id': box, 'exec': row['exec'], 'key': admin.post('/v1/api-keys', {'role': 'auditor'}).json['id'], 'name': 'DOCUMENTED', 'webhook': hook,
		'delivery': told[0]['id'], 'sha256': '0' * 64, 'preview': admin.post('/v1/previews', {'sandbox': box, 'port': 80, 'visibility': 'private'}).json['id']}


UNKNOWN = {'id': 'sb_0000000000000000', 'exec': 'ex_0000000000000000', 'key': 'ke_0000000000000000', 'name': 'NOTHING', 'webhook': 'wh_0000000000000000',
	'delivery': 'wd_' + '0' * 32, 'sha256': 'f' * 64, 'preview': 'pv_0000000000000000'}


def ask(client, request, **headers):
	"""Sends it as it is. None in a header: without it."""
	key = {'Authorization': f'Bearer {client.key}'} if client.key else {}
	fields = {name: value for name, value in {**key, **request.headers, **headers}.items() if value is not None}
	bare = Client(client.server, None)
	if request.fault is None and 'text/event-stream' in request.operation.answers[min(request.operation.answers)].get('content', {}):
		return stream(bare, request, fields)
	return bare.call(request.method, request.target, request.body, headers=fields, limit_s=20)


def stream(bare, request, fields):
	"""Only the begin of it, where there is one: it may be without an end."""
	connection, response = bare.open(request.method, request.target, request.body, headers=fields, limit_s=20)
	is_stream = response.status == 200 and response.headers['Content-Type'] == 'text/event-stream'
	body = b'' if is_stream else response.read()
	connection.close()
	bare.server.document.check(request.method, request.target, response.status, response.headers, None if is_stream else body)
	return Reply(response, body)


def callers(server):
	return {'nobody': Client(server, None), 'auditor': server.client('auditor'), 'member': server.client('member'),
		'admin': server.client('admin', account='roles'), 'operator': server.admin}


def test_each_role_may_what_the_document_says(server):
	"""On things that are not there: whoever may is told so, and whoever may not is told that."""
	known = callers(server)
	for operation in server.document.operations:
		asks = openapi_fuzz.Requests(server.document, random.Random(SEED), UNKNOWN)
		for name, client in known.items():
			request = asks.right(operation)
			request.headers.clear()
			if not operation.placed('path') and request.body is not None:
				request.body = b'{"nonsense": 1}' # so that nothing is made
			got = ask(client, request)
			if name in EVERYBODY[operation.right]:
				assert got.status in ((404,) if operation.placed('path') else (200, 400, 404)), (operation, name, got)
			else:
				assert got.status == (401 if name == 'nobody' else 403), (operation, name, got)


def test_accounts_are_apart_on_every_route(server, admin):
	other = server.client('admin', account='apart')
	mine = things(admin)
	missing = {one['name'] for operation in server.document.operations for one in operation.placed('path')} - set(mine)
	assert not missing, f'things() in {__file__} makes nothing for {missing}'
	before = (admin.get(at(mine['id'], '/log')).json, admin.get(at(mine['id'])).json)
	for operation in server.document.operations:
		if not operation.placed('path'):
			continue
		told = []
		for ids in (mine, UNKNOWN): # what is another's is as what is not there
			got = ask(other, openapi_fuzz.Requests(server.document, random.Random(SEED), ids).right(operation))
			assert got.status == 404, (operation, got)
			body = got.body.decode()
			for one in ids.values():
				body = body.replace(one, 'ID')
			told.append(body)
		assert told[0] == told[1], operation
	assert (admin.get(at(mine['id'], '/log')).json, admin.get(at(mine['id'])).json) == before
	assert mine['key'] in [key['id'] for key in admin.get('/v1/api-keys?limit=1000').json['items'] if not key['revoked_at']]
	assert admin.delete(at(mine['id'])).status == 200


def test_lists_have_nothing_of_others(server, admin):
	other = server.client('admin', account='lists')
	mine = things(admin)
	for operation in server.document.operations:
		if operation.placed('path') or operation.method != 'GET' or operation.right in ('anyone', 'operator'):
			continue
		got = other.get(operation.path)
		assert got.status in (200, 404) and not any(one.encode() in got.body for one in (*mine.values(), 'default')), (operation, got)
	assert admin.delete(at(mine['id'])).status == 200


def test_a_cursor_of_another_account_opens_nothing(server, admin, box):
	for n in range(3):
		admin.exec(box, f'true {n}')
	cursor = admin.get('/v1/log?limit=1').json['next_cursor']
	assert cursor and server.client('admin', account='cursors').get('/v1/log?cursor=' + cursor).json == {'items': [], 'next_cursor': None}


# ---- what is wrong ----

class Storm:
	"""Requests for some seconds; what fails says which one it was."""

	def __init__(self, server, client):
		self.server, self.client, self.pid, self.n = server, client, server.serve_pid(), 0
		self.end = time.monotonic() + SECONDS

	def goes_on(self):
		return time.monotonic() < self.end

	def send(self, request, **headers):
		self.n += 1
		try:
			got = ask(self.client, request, **headers)
		except (OSError, http.client.HTTPException, AssertionError) as fault:
			raise AssertionError(f'seed {SEED}, request {self.n}: {request!r}: {fault!r}') from fault
		assert got.status < 500, f'seed {SEED}, request {self.n}: {request!r}: {got!r}'
		return got

	def is_alive(self):
		assert self.server.serve_pid() == self.pid, 'it died and was started again'
		assert Client(self.server, None).get('/health').status == 200


MOVING = {'watchSandbox', 'getMetrics', 'getServerMetrics', 'getReport'} # tell of samples that come by themselves


def snapshot(admin, box):
	"""What a request that is refused must leave as it is: all that may be read."""
	kept = {}
	for operation in admin.server.document.operations:
		data = operation.data
		if operation.method != 'GET' or operation.right == 'anyone' or data['operationId'] in MOVING or data['tags'] == ['trace']:
			continue
		if any(one['name'] != 'id' and one.get('required') for one in operation.parameters):
			continue
		path = operation.target(id=box)
		is_list = any(one['name'] == 'cursor' for one in operation.parameters)
		kept[path] = list(admin.pages(path, 1000)) if is_list else admin.get(path).body
	for key in kept['/v1/api-keys']:
		del key['used_at']
	return kept


def fast(admin, role='admin'):
	"""A key that is not held back."""
	return Client(admin.server, admin.post('/v1/api-keys', {'role': role, 'rate_limit': 100000}).json['key'])


def revoked(admin):
	made = admin.post('/v1/api-keys', {'role': 'admin'}).json
	assert admin.delete('/v1/api-keys/' + made['id']).status == 204
	return made['key']


def test_what_is_wrong_is_refused_and_changes_nothing(server, admin):
	rng, ids = random.Random(SEED), things(admin)
	def own(body):
		return {key: value for key, value in body.items() if key != 'account'} # another's is 403, whatever else is wrong

	asks = openapi_fuzz.Requests(server.document, rng, ids, {'createSandbox': own, 'createKey': own}, [revoked(admin)])
	storm = Storm(server, fast(admin))
	before = snapshot(admin, ids['id'])
	while storm.goes_on():
		request = asks.wrong(rng.choice(server.document.operations))
		got = storm.send(request)
		assert got.status in request.expects, f'seed {SEED}, request {storm.n}: {request!r}: {got!r}'
	storm.is_alive()
	assert snapshot(admin, ids['id']) == before
	assert admin.delete(at(ids['id'])).status == 200


def test_what_the_document_allows_never_fails(server, admin):
	def harmless(body):
		body.pop('argv', None)
		return {**body, 'command': rng.choice(('true', 'echo x; exit 3', 'head -c 5000 /dev/urandom', 'cat', "printf '\\303'")), 'timeout_ms': 300}

	def cheap(body):
		return {key: value for key, value in body.items() if key in ('name', 'task', 'agent', 'labels', 'nonsense')} if rng.random() < 0.1 else {**body, 'rootfs': '/none'}

	rng, ids = random.Random(SEED), things(admin)
	storm = Storm(server, fast(admin))
	asks = openapi_fuzz.Requests(server.document, rng, ids, {'exec': harmless, 'createSandbox': cheap})
	while storm.goes_on():
		operation = rng.choice(server.document.operations)
		got = storm.send(asks.right(operation))
		if operation.method == 'DELETE' and got.status < 300:
			ids.update(things(admin))
	storm.is_alive()
	for one in admin.pages('/v1/sandboxes', 1000):
		if one['state'] != 'ended':
			assert admin.delete(at(one['id'])).status == 200
