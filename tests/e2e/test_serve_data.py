# SPDX-License-Identifier: Apache-2.0
"""Data that is meant to trick: bodies that are none, texts that would be code elsewhere. What is refused leaves no row, what is
accepted exactly one; a text that is asked for is a text."""
import json
import random
import socket
import urllib.parse

import pytest

import openapi_fuzz
from serving import Client

STORES = ['sqlite'] # tests/unit/test_store_hostile.c asks both; CLOCHE_TEST_STORES=all runs both

HOSTILE = ["' OR 1=1 --", '%', '_', '";drop table log;--', '1;--', '[[', '$where', "'", '"', '\\', '\\%', '%25', '%%%', '__', "'||'x", '{{7*7}}', '<script>alert(1)</script>',
	'=HYPERLINK("x")', 'a\tb\nc\x7f', '\x1b]0;pwn\x07', '\u202egnp.exe', 'é漢\U0001f600', '\ufffd', '\U0010fe41', '*', '.*', '(?i)x', '--help', '$(id)', '`id`', ' ', 'NULL', '../../etc/hosts']
# No JSON, or not one that can be told: of whatever request.
NO_BODY = {'nested': b'[' * 200000, 'objects': b'{"a":' * 100000, 'twice': b'{"command":"id","command":"echo second"}', 'half a pair': b'{"command":"\\ud800"}', 'the other half': b'{"command":"\\udc00x"}',
	'no UTF-8': b'{"command":"\xff\xfe"}', 'too large': b'{"timeout_ms":1e999}', 'too small': b'{"timeout_ms":-9223372036854775809}', 'trailing': b'{"command":"id"} trailing',
	'two': b'{"command":"id"}{"command":"id"}', 'not a number': b'{"timeout_ms":NaN}', 'escaped twice': b'{"command":"id","comm\\u0061nd":"id"}', 'overlong': b'{"command":"\xc0\xaf"}',
	'a list': b'[{"command":"id"}]', 'a text': b'"id"', 'null': b'null', 'a mark': b'\xef\xbb\xbf{"command":"id"}', 'NUL': b'{"command":"id"}\0', 'UTF-16': '{"command":"id"}'.encode('utf-16')}
NO_EXEC = [{}, {'command': 1}, {'command': None}, {'command': 'a\0b'}, {'command': ['id']}, {'command': {'$ne': 'id'}}, {'command': 'id', 'argv': ['id']}, {'argv': ['a\0b']}, {'argv': [None]},
	{'command': 'id', 'timeout_ms': 1.5}, {'command': 'id', 'timeout_ms': -1}, {'command': 'id', 'timeout_ms': '1'}, {'command': 'id', 'timeout_ms': True},
	{'command': 'id', 'env': {'A=B': 'c', '': 'x'}}, {'command': 'id', 'env': {'': 'x'}}, {'command': 'id', 'env': {'A': 1}}, {'command': 'id', 'env': {'A': 'x\0y'}}, {'command': 'id', 'env': {'A\0': 'x'}},
	{'command': 'id', 'env': [['A', 'b']]}, {'command': 'id', 'cwd': 'a\0b'}, {'command': 'id', 'user': '\0'}, {'command': 'id', '$where': '1'}, {'command': 'id', 'id': 1}, {'command': 'id', 'source': 'human_takeover'},
	{'command': 'id', 'actor': 'key:ke_other'}, {'command': 'id', 'account': 'other'}, {'command': 'id', 'exec': 'ex_0000000000000000'}, {'command': 'id', '': 1}]


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


@pytest.fixture(scope='module')
def admin(server):
	"""One that is not held back."""
	return Client(server, server.admin.post('/v1/api-keys', {'rate_limit': 100000}).json['key'])


@pytest.fixture(scope='module')
def box(server):
	made = server.admin.create(labels={f'{n}{text}': text for n, text in enumerate(HOSTILE)}, name=HOSTILE[0], task=HOSTILE[3])
	yield made
	assert server.admin.delete(at(made)).status == 200


def rows(admin, box):
	return list(admin.pages(at(box, '/log'), 1000))


@pytest.mark.parametrize('body', NO_BODY.values(), ids=NO_BODY)
def test_no_exec_of_what_is_no_body(admin, box, body):
	before = rows(admin, box)
	got = admin.post(at(box, '/exec'), body)
	assert (got.status, got.json['code']) == (400, 'invalid') and got.json['detail'], got
	assert rows(admin, box) == before


@pytest.mark.parametrize('body', NO_EXEC, ids=[json.dumps(body)[:60] for body in NO_EXEC])
def test_no_exec_of_what_asks_for_none(admin, box, body):
	before = rows(admin, box)
	got = admin.post(at(box, '/exec'), body)
	assert (got.status, got.json['code']) == (400, 'invalid') and got.json['detail'], got
	assert rows(admin, box) == before


def test_what_is_too_long_is_refused_by_its_head(server, admin, box):
	"""50 MB of a command: the answer is there however much of it was sent."""
	before = rows(admin, box)
	body = b'{"command":"' + b'x' * 50_000_000 + b'"}'
	with socket.create_connection(('127.0.0.1', server.port), timeout=20) as sock:
		sock.sendall(f'POST {at(box, "/exec")} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {admin.key}\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body[:100000])
		got = sock.recv(65536)
	assert got.startswith(b'HTTP/1.1 413 ') and b'"detail":"the body is longer' in got, got
	assert rows(admin, box) == before


def test_no_request_of_what_is_no_body(server, admin, box):
	"""All routes that take JSON."""
	ids = {'id': box, 'exec': 'ex_0000000000000000'}
	before = (rows(admin, box), admin.get('/v1/sandboxes?limit=1000').json, admin.get('/v1/api-keys?limit=1000').json['items'])
	n = 0
	for operation in server.document.operations:
		if operation.body() is None or not {one['name'] for one in operation.placed('path')} <= set(ids):
			continue
		for name, body in NO_BODY.items():
			got = admin.call(operation.method, operation.target(**ids), body)
			assert (got.status, got.json['code']) == (400, 'invalid'), (operation, name, got)
			n += 1
	assert n > 15 * len(NO_BODY)
	after = (rows(admin, box), admin.get('/v1/sandboxes?limit=1000').json, admin.get('/v1/api-keys?limit=1000').json['items'])
	assert [{**key, 'used_at': None} for key in after[2]] == [{**key, 'used_at': None} for key in before[2]] and after[:2] == before[:2]


BYTES = {'data', 'stdin', 'content', 'old', 'new', 'pattern', 'value'} # which may hold any


def test_no_text_with_a_nul(server, admin, box):
	"""In each member that is a text, of all routes."""
	asks, n = openapi_fuzz.Requests(server.document, random.Random(58), {'id': box, 'exec': 'ex_0000000000000000'}), 0
	before = rows(admin, box)
	for operation in server.document.operations:
		if operation.body() is None or not {one['name'] for one in operation.placed('path')} <= {'id'}:
			continue
		for name, schema in operation.body_properties(server.document):
			kinds = server.document.resolve(schema).get('type', [])
			if 'string' not in ([kinds] if isinstance(kinds, str) else kinds) or name in BYTES:
				continue
			request = asks.right(operation)
			got = admin.call(operation.method, request.target, {**json.loads(request.body), name: 'a\0b'})
			assert got.status in (400, 403) and got.json['detail'], (operation, name, got)
			n += 1
	assert n > 20 and rows(admin, box) == before


def test_a_text_is_a_text(admin, box):
	"""One row for one exec, which is found by its text and by nothing else, whatever that would mean to a database."""
	said = rows(admin, box)
	for text in HOSTILE:
		done = admin.post(at(box, '/exec'), {'argv': ['printf', '%s', text], 'env': {'T': text}, 'cwd': '/tmp'})
		assert done.status == 200 and done.json['argv'] == ['printf', '%s', text] and done.json['stdout'] == text, done
		said.append(done.json)
	assert rows(admin, box) == said
	for text in HOSTILE: # it is found as it stands in the words of the command, in whichever case
		found = admin.get(at(box, '/log?limit=1000&q=' + urllib.parse.quote(text, safe=''))).json['items']
		assert [row['id'] for row in found] == [row['id'] for row in said if text.lower() in ' '.join(row['argv']).lower()] != [], text


@pytest.mark.parametrize('name', ['from', 'to', 'order', 'limit', 'cursor', 'operation', 'offset', 'exec', 'noise', 'state'])
def test_no_parameter_is_code(admin, box, name):
	"""Refused, or of no effect: the answer never holds what was not asked for."""
	for path in (at(box, '/log'), '/v1/log', '/v1/sandboxes', at(box, '/lifecycle'), at(box, '/metrics'), '/v1/audit', at(box, '/trace/files'), at(box, '/trace/events')):
		for text in HOSTILE[:7]:
			got = admin.get(f'{path}?{name}={urllib.parse.quote(text, safe="")}')
			empty_exec = name == 'exec' and '/trace/' in path
			assert (got.status == 200 and got.json['items'] == []) if empty_exec else (got.status, got.json['code']) == (400, 'invalid'), (path, text, got)


def test_labels_come_back_unchanged(admin, box):
	labels = {f'{n}{text}': text for n, text in enumerate(HOSTILE)}
	shown = admin.get(at(box)).json
	assert shown['labels'] == labels and shown['name'] == HOSTILE[0]
	row = admin.exec(box, 'true')
	assert row['labels'] == labels and row['task'] == HOSTILE[3]
	assert admin.get(at(box, f'/exec/{row["exec"]}')).json['labels'] == labels
	for n, text in enumerate(HOSTILE):
		if '=' in text:
			continue # it ends the key in a query
		query = urllib.parse.quote(f'{n}{text}={text}', safe='')
		assert [one['id'] for one in admin.get('/v1/sandboxes?label=' + query).json['items']] == [box], text
		assert admin.get(f'/v1/sandboxes?label={urllib.parse.quote(f"{n}{text}=", safe="")}x{urllib.parse.quote(text, safe="")}').json['items'] == [], text


@pytest.mark.parametrize('command, is_cut', [('x' * ((1 << 20) - 30), True), ('\x7f' * 300_000, True), ('漢' * 340_000, False)], ids='xdh')
def test_the_longest_commands_are_rows_too(admin, box, command, is_cut):
	"""Longer than a program takes: it does not run, and its row says so. One that is longer than a row is cut, and what comes behind is there, too."""
	body = json.dumps({'command': command}, ensure_ascii=False).encode()
	assert 1 << 18 < len(body) <= 1 << 20
	done = admin.post(at(box, '/exec'), body)
	assert done.status == 200 and done.json['exit_code'] == 126 and done.json['result'] == 'E2BIG', str(done)[:500]
	assert done.json.get('omitted', []) == (['command'] if is_cut else [])
	assert done.json['command'] == (None if is_cut else command)
	after = admin.exec(box, 'true')
	listed = admin.get(at(box, '/log?order=desc&limit=2')).json['items']
	assert listed == [after, done.json] and admin.get(at(box, f'/exec/{done.json["exec"]}')).json == done.json
	whole = next(data for name, _, data in admin.stream(at(box, '/watch'), headers={'Last-Event-ID': f'r{done.json["id"] - 1}'}) if name == 'row')
	assert whole['command'] == command and 'omitted' not in whole


def test_what_is_too_long_for_a_sandbox_is_refused_before(admin, box):
	"""As JSON it is six times as long."""
	before = rows(admin, box)
	got = admin.post(at(box, '/exec'), json.dumps({'command': '\x7f' * 1_000_000}, ensure_ascii=False).encode())
	assert (got.status, got.json['code']) == (413, 'too_large') and got.json['detail'], got
	assert rows(admin, box) == before


@pytest.mark.parametrize('spec', [{'name': 'n' * 257}, {'name': 'é' * 129}, {'labels': {'k': 'v' * 257}}, {'labels': {'k' * 257: 'v'}}, {'labels': {str(n): '' for n in range(65)}},
	{'labels': {'k': 1}}, {'labels': []}, {'name': 'a\0b'}, {'labels': {'k': 'a\0b'}}, {'labels': {'a\0b': 'v'}}])
def test_a_sandbox_that_is_refused_is_not_made(server, admin, spec):
	before = sorted(one.name for one in (server.cloche.state / 'sandboxes').iterdir())
	got = admin.post('/v1/sandboxes', spec)
	assert (got.status, got.json['code']) == (400, 'invalid') and got.json['detail'], got
	assert sorted(one.name for one in (server.cloche.state / 'sandboxes').iterdir()) == before
