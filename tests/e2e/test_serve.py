# SPDX-License-Identifier: Apache-2.0
"""The control plane: sandboxes and commands over HTTP, the exec log, live streams, accounts and keys."""
import http.client
import json
import os
import random
import signal
import socket
import threading
import time

import pytest

from harness import wait_for
from serving import Client

CONFIG = {'accounts': {'default': {'host_roots': ['@/roots']}}}


@pytest.fixture
def box(admin):
	made = admin.create()
	yield made
	assert admin.delete(f'/v1/sandboxes/{made}').status == 200


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


def test_life_of_a_sandbox(admin):
	made = admin.post('/v1/sandboxes', {'name': 'first', 'labels': {'team': 'a b'}})
	assert made.status == 201, made
	box = made.json['id']
	assert made.json['state'] == 'running' and made.json['labels'] == {'team': 'a b'} and made.json['account'] == 'default'
	for act, state in (('pause', 'paused'), ('wake', 'running'), ('suspend', 'suspended'), ('resume', 'running'), ('stop', 'ended')):
		done = admin.post(at(box, '/' + act))
		assert done.status == 200 and done.json['state'] == state == admin.get(at(box)).json['state'], (act, done)
	assert [one['id'] for one in admin.get('/v1/sandboxes?label=team%3Da+b').json['items']] == [box]
	assert admin.get('/v1/sandboxes?state=running').json['items'] == []
	assert admin.delete(at(box)).status == 200
	kinds = [event['kind'] for event in admin.get(at(box, '/lifecycle')).json['items']]
	assert kinds == ['sandbox.created', 'sandbox.started', 'sandbox.paused', 'sandbox.woken', 'sandbox.suspended', 'sandbox.resumed', 'sandbox.stopped',
		'sandbox.removed'] or kinds[:7] == ['sandbox.created', 'sandbox.started', 'sandbox.paused', 'sandbox.woken', 'sandbox.suspended', 'sandbox.resumed',
		'sandbox.stopped'], kinds


def test_an_exec_answers_with_its_row(admin, box):
	row = admin.exec(box, 'echo out; echo err >&2; exit 3')
	assert (row['exit_code'], row['stdout'], row['stderr'], row['via'], row['source'], row['id']) == (3, 'out\n', 'err\n', 'api', 'agent', 1)
	assert row['actor'].startswith('key:ke_') and row['account'] == 'default' and row['sandbox'] == box
	log = admin.get(at(box, '/log')).json
	assert log['items'] == [row] and log['next_cursor'] is None
	assert admin.get(at(box, f'/exec/{row["exec"]}')).json == row
	done = admin.post(at(box, '/exec'), {'argv': ['cat'], 'stdin': 'x' * 700000})
	assert done.json['stdout_bytes'] == 700000 and done.json['exit_code'] == 0
	timed = admin.exec(box, 'sleep 20', timeout_ms=200)
	assert timed['timed_out'] and timed['duration_ms'] < 10000


def test_an_exec_is_streamed(admin, box):
	events = admin.stream(at(box, '/exec'), {'command': r'printf "\303"; sleep 0.2; printf "\251\n"; echo two >&2; exit 4'})
	got = list(events)
	assert got[0][0] == 'start' and got[-1][0] == 'exit' and got[-1][2]['exit_code'] == 4, got
	assert ''.join(data['data'] for name, _, data in got if name == 'stdout') == 'é\n'
	assert not any('data_b64' in data for _, _, data in got)
	assert [data['data'] for name, _, data in got if name == 'stderr'] == ['two\n']
	assert got[-1][2]['exec'] == got[0][2]['exec']


def test_a_detached_exec_and_its_end(admin, box):
	done = admin.post(at(box, '/exec'), {'command': 'sleep 100', 'detach': True})
	assert done.status == 202
	assert admin.get(at(box, f'/exec/{done.json["exec"]}')).status == 404
	assert admin.post(at(box, f'/exec/{done.json["exec"]}/kill')).status in (200, 204)
	wait_for(lambda: admin.get(at(box, f'/exec/{done.json["exec"]}')).status == 200, 'its row')
	assert admin.get(at(box, f'/exec/{done.json["exec"]}')).json['signal'] == 9


def has_begun(admin, box):
	return any(event['kind'] == 'exec.start' for event in admin.get(at(box, '/trace/events')).json['items'])


@pytest.mark.parametrize('kill', [False, True])
def test_a_client_that_leaves(admin, box, kill):
	connection, _ = None, None
	connection = http.client.HTTPConnection('127.0.0.1', admin.server.port)
	connection.request('POST', at(box, '/exec'), '{"command":"sleep 1; echo finished > /workspace/f; exit 4", "kill_on_disconnect": %s}' % str(kill).lower(),
		{'Authorization': f'Bearer {admin.key}'})
	wait_for(lambda: has_begun(admin, box), 'the command')
	connection.sock.shutdown(socket.SHUT_RDWR)
	connection.close()
	rows = wait_for(lambda: admin.get(at(box, '/log')).json['items'], 'a row')
	assert (rows[0]['signal'] == 9) if kill else (rows[0]['exit_code'] == 4 and rows[0]['duration_ms'] >= 1000)
	assert admin.exec(box, 'cat /workspace/f')['stdout'] == ('' if kill else 'finished\n')


def test_a_client_that_leaves_before_the_command_has_begun(admin, box):
	body = json.dumps({'command': 'exec sleep 60', 'kill_on_disconnect': True})
	for n in range(8):
		with socket.create_connection(('127.0.0.1', admin.server.port), 5) as sock:
			sock.sendall(f'POST {at(box, "/exec")} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {admin.key}\r\nContent-Length: {len(body)}\r\n\r\n{body}'.encode())
			time.sleep(n / 1000) # each at another moment of the way

	def ended():
		begun = [event for event in admin.pages(at(box, '/trace/events'), 1000) if event['kind'] == 'exec.start']
		rows = admin.get(at(box, '/log')).json['items']
		return len(begun) == len(rows) > 0 and rows

	assert {row['signal'] for row in wait_for(ended, 'the end of those that began')} == {9}


def test_pages_neither_skip_nor_repeat(admin, box):
	"""R88: while a crowd adds rows, many of them at one time of the clock."""
	before = [admin.exec(box, f'true {n}')['id'] for n in range(9)]
	often, done = Client(admin.server, admin.post('/v1/api-keys', {'rate_limit': 100000}).json['key']), []

	def more():
		for n in range(4):
			done.append(often.exec(box, f'true later {n}')['id'])

	threads = [threading.Thread(target=more) for _ in range(25)]
	for thread in threads:
		thread.start()
	rows = list(often.pages(at(box, '/log'), 7))
	for thread in threads:
		thread.join()
	ids, seqs = [row['id'] for row in rows], [row['seq'] for row in rows]
	assert len(ids) == len(set(ids)) and seqs == sorted(seqs) and set(before) <= set(ids)
	every = list(admin.pages(at(box, '/log'), 1000))
	assert sorted(before + done) == sorted(row['id'] for row in every) == list(range(1, 110))
	assert list(admin.pages(at(box, '/log?order=desc'), 7)) == every[::-1] == list(often.pages('/v1/log?order=desc', 50))[:109]
	assert admin.get(at(box, '/log?order=desc&limit=3')).json['items'] == every[:-4:-1]
	assert admin.get(at(box, '/log?offset=50&limit=3')).json['items'] == every[50:53]
	assert admin.get(at(box, '/log?order=desc&offset=107')).json['items'] == every[1::-1]
	assert admin.get(at(box, '/log?offset=109')).json == {'items': [], 'next_cursor': None}
	for wrong in ('offset=-1', 'offset=x', 'offset=1000001', 'offset=1&cursor=1'):
		assert admin.get(at(box, '/log?' + wrong)).status == 400, wrong


def test_rows_are_found_by_text(admin, box):
	for command in ('echo needle-one', 'echo other', r"printf 'a\tb%s' \%x_"):
		admin.exec(box, command)
	assert [row['command'] for row in admin.get(at(box, '/log?q=EEDLE-o')).json['items']] == ['echo needle-one']
	assert [row['command'] for row in admin.get(at(box, '/log?q=%25x_')).json['items']] == [r"printf 'a\tb%s' \%x_"]
	assert admin.get(at(box, '/log?q=zzz')).json['items'] == []


def test_watch_goes_on_where_it_was_cut(admin, box):
	for n in range(5):
		admin.exec(box, f'true {n}')
	events = admin.stream(at(box, '/watch'))
	first = events.take(3)
	events.close()
	assert [event[1] for event in first] == ['r1', 'r2', 'r3']
	events = admin.stream(at(box, '/watch'), headers={'Last-Event-ID': 'r3'})
	rest = events.take(2)
	admin.exec(box, 'true live')
	live = events.take(1)
	events.close()
	assert [event[1] for event in rest + live] == ['r4', 'r5', 'r6'] and live[0][2]['command'] == 'true live'


def test_watch_has_every_event(server, admin):
	box = admin.create()
	events = admin.stream(at(box, '/watch?events=true'))
	for n in range(3):
		admin.exec(box, f'touch /tmp/f{n}; ls /tmp')
	admin.post(at(box, '/stop'))
	got = list(events)
	seqs = [int(id[1:]) for name, id, _ in got if name == 'trace']
	assert seqs == list(range(1, len(seqs) + 1)) and got[-1][0] == 'end' and [name for name, _, _ in got].count('row') == 3
	middle = seqs[len(seqs) // 2]
	again = [int(id[1:]) for name, id, _ in admin.stream(at(box, '/watch?events=true'), headers={'Last-Event-ID': f's{middle}'}) if name == 'trace']
	assert again == seqs[middle:]
	assert admin.delete(at(box)).status == 200


def test_a_restart_loses_nothing(server, admin):
	box = admin.create()
	admin.exec(box, 'echo before > /workspace/f')
	server.restart()
	assert admin.get(at(box)).json['state'] == 'running'
	assert admin.exec(box, 'cat /workspace/f')['stdout'] == 'before\n'
	assert [row['id'] for row in admin.pages(at(box, '/log'), 10)] == [1, 2]
	assert admin.delete(at(box)).status == 200


def test_a_killed_half_is_started_again(server, admin):
	box = admin.create()
	done = []
	thread = threading.Thread(target=lambda: done.append(Client(server, server.key).call('POST', at(box, '/exec'), {'command': 'sleep 1; exit 5'})))
	old = server.serve_pid()
	with pytest.raises((http.client.HTTPException, OSError)):
		connection = http.client.HTTPConnection('127.0.0.1', server.port)
		connection.request('POST', at(box, '/exec'), '{"command":"sleep 1; exit 5"}', {'Authorization': f'Bearer {admin.key}'})
		wait_for(lambda: has_begun(admin, box), 'the command')
		os.kill(old, signal.SIGKILL)
		connection.getresponse()
	assert not thread.is_alive()
	wait_for(server.is_up, 'the next one', 20)
	assert server.serve_pid() != old
	rows = wait_for(lambda: admin.get(at(box, '/log')).json['items'], 'the row of the command that went on')
	assert [row['exit_code'] for row in rows] == [5] and not done
	assert admin.delete(at(box)).status == 200


def test_idempotency_keys(admin, box):
	def post(key, body):
		return admin.post(at(box, '/exec'), body, headers={'Idempotency-Key': key})

	first = post('one', {'command': 'date +%N'})
	again = post('one', {'command': 'date +%N'})
	assert first.status == again.status == 200 and first.body == again.body
	other = post('one', {'command': 'date'})
	assert (other.status, other.json['code']) == (422, 'idempotency_mismatch')
	assert post('two', {'command': 'date +%N'}).json['stdout'] != first.json['stdout']
	assert len(admin.get(at(box, '/log')).json['items']) == 2


def test_keys_and_roles(server, admin, box):
	member, auditor = server.client('member'), server.client('auditor')
	assert member.exec(box, 'true')['exit_code'] == 0 and auditor.get(at(box, '/log')).status == 200
	for client, call, path in ((auditor, 'post', at(box, '/exec')), (auditor, 'post', '/v1/sandboxes'), (member, 'get', '/v1/api-keys'), (member, 'get', '/v1/audit'),
			(auditor, 'delete', at(box))):
		refused = getattr(client, call)(path)
		assert (refused.status, refused.json['code']) == (403, 'forbidden'), (path, refused)
	listed = admin.get('/v1/api-keys').json['items']
	assert not any('key' in key or 'hash' in key for key in listed) and {'admin', 'member', 'auditor'} <= {key['role'] for key in listed}
	mine = next(key['id'] for key in listed if key['role'] == 'auditor' and member.key[:8] != key['prefix'])
	assert admin.delete(f'/v1/api-keys/{mine}').status == 204
	assert admin.delete(f'/v1/api-keys/{mine}').status == 404
	acts = [line['act'] for line in admin.get('/v1/audit?limit=1000').json['items']]
	assert 'key.created' in acts and 'key.revoked' in acts and 'sandbox.created' in acts


def test_a_revoked_key_is_none(server, admin):
	made = admin.post('/v1/api-keys', {'role': 'member'}).json
	client = Client(server, made['key'])
	assert client.get('/v1/sandboxes').status == 200
	assert admin.delete('/v1/api-keys/' + made['id']).status == 204
	assert client.get('/v1/sandboxes').status == 401 == Client(server, 'clo_wrong').get('/v1/sandboxes').status == Client(server, None).get('/v1/sandboxes').status


def test_accounts_do_not_see_each_other(server, admin, box):
	other = server.client('admin', account='other')
	row = admin.exec(box, 'true')
	for method, path in (('GET', ''), ('GET', '/log'), ('GET', '/watch'), ('GET', '/lifecycle'), ('GET', '/metrics'), ('POST', '/exec'), ('POST', '/pause'),
			('POST', '/stop'), ('DELETE', ''), ('GET', f'/exec/{row["exec"]}'), ('POST', f'/exec/{row["exec"]}/kill')):
		assert other.call(method, at(box, path), {'command': 'true'} if path == '/exec' else None).status == 404, path
	assert other.get('/v1/sandboxes').json['items'] == other.get('/v1/log').json['items'] == []
	assert other.get('/v1/accounts').status == 403
	assert other.post('/v1/api-keys', {'account': 'default'}).status == 403


def test_a_limit_on_requests(server, admin):
	made = admin.post('/v1/api-keys', {'role': 'member', 'rate_limit': 5}).json
	client = Client(server, made['key'])
	replies = [client.get('/v1/sandboxes') for _ in range(40)]
	limited = [reply for reply in replies if reply.status == 429]
	assert limited and limited[0].json['code'] == 'rate_limited' and limited[0].headers['Retry-After'] == '1'


FORBIDDEN = [('mounts', 'host_roots', {'mounts': [{'host': '/etc', 'guest': '/m', 'mode': 'ro'}]}), ('mounts', 'host_roots', {'mounts': [{'host': '/nowhere', 'guest': '/m', 'mode': 'ro'}]}),
	('rootfs', 'host_roots', {'rootfs': '/etc'}), ('rootfs', 'host_roots', {'rootfs': '/nowhere'}), ('image', 'images', {'image': '/etc/passwd'}), ('image', 'images', {'image': 'debian:12'}),
	('allow', 'private', {'network': {'net': 'allow', 'allow': ['10.0.0.1']}}), ('allow', 'private', {'network': {'net': 'open', 'allow': ['inward.example.org']}}),
	('sets', 'private', {'network': {'net': 'allow', 'allow': ['@x'], 'sets': {'@x': ['10.0.0.1']}}}), ('host_map', 'private', {'network': {'host_map': ['a.test=127.0.0.1']}}),
	('resolver', 'private', {'network': {'resolver': ['127.0.0.1:53']}}), ('shadow', 'private', {'network': {'net': 'open', 'shadow': True}}),
	('upstream_proxy', 'private', {'network': {'upstream_proxy': 'http://127.0.0.1:3128'}}), ('publish', 'private', {'network': {'publish': ['127.0.0.1:8080:80']}}),
	('upstream_ca', 'private', {'network': {'upstream_ca': '/nowhere'}}), ('upstream_ca', 'private', {'network': {'upstream_ca': '/etc/shadow'}}),
	('record_raw', 'raw', {'record_raw': True}), ('account', 'account of the key', {'account': 'other'})]


@pytest.mark.parametrize('field, key, spec', FORBIDDEN, ids=[f'{field}-{n}' for n, (field, _, _) in enumerate(FORBIDDEN)])
def test_a_key_is_not_root(server, admin, field, key, spec):
	before = admin.get('/v1/sandboxes').json
	for client in (admin, server.client('member')):
		refused = client.post('/v1/sandboxes', spec)
		assert (refused.status, refused.json['code']) == (403, 'forbidden') and refused.json['detail'].startswith(field + ':'), refused
		assert key in refused.json['detail'], 'who can allow it'
	assert admin.get('/v1/sandboxes').json == before


def test_a_folder_is_what_it_leads_to(server, admin):
	"""Links and '..' lead out of an account's roots in vain, and nobody learns what is there."""
	roots = server.cloche.cwd / 'roots'
	for folder in (server.cloche.cwd / 'other' / 'bin', roots / 'kept'):
		folder.mkdir(parents=True)
	(roots / 'kept' / 'f').write_text('kept\n')
	for name, target in (('out', '/etc'), ('other', server.cloche.cwd / 'other'), ('dangling', '/root/not-there'), ('loop', 'loop')):
		(roots / name).symlink_to(target)
	for path in ('out', '../other', 'other', 'dangling', 'dangling/x', 'loop', 'out/not-there', 'out/passwd', '../not-there', 'kept/../../../../etc', 'kept/../../not-there', 'out/../not-there'):
		for spec in ({'rootfs': f'{roots}/{path}'}, {'mounts': [{'host': f'{roots}/{path}', 'guest': '/m', 'mode': 'ro'}]}):
			refused = admin.post('/v1/sandboxes', spec)
			assert (refused.status, refused.json['code']) == (403, 'forbidden') and 'may not use' in refused.json['detail'], (path, refused)
	for path, says in (('not-there', 'No such file or directory'), ('kept/not-there', 'No such file or directory')):
		refused = admin.post('/v1/sandboxes', {'mounts': [{'host': f'{roots}/{path}', 'guest': '/m', 'mode': 'ro'}]})
		assert refused.status == 400 and says in refused.json['detail'], (path, refused)
	box = admin.create(mounts=[{'host': f'{roots}/kept', 'guest': '/m', 'mode': 'ro'}])
	assert admin.exec(box, 'cat /m/f')['stdout'] == 'kept\n' and admin.delete(at(box)).status == 200


def test_other_routes_forbid_alike(server, admin):
	for method, path, body, field in (('PUT', '/v1/network-rules', {'net': 'allow', 'allow': ['10.0.0.1']}, 'allow'),
			('PUT', '/v1/networks/upstream-proxy', {'url': 'http://127.0.0.1:1'}, 'url'), ('POST', '/v1/webhooks', {'url': 'http://127.0.0.1/', 'events': ['exec.end']}, "member 'url'"),
			('POST', '/v1/api-keys', {'account': 'other'}, None)):
		client = server.client('admin', account='plain') if method != 'POST' or 'keys' in path else admin
		refused = client.call(method, path, body)
		assert (refused.status, refused.json['code']) == (403, 'forbidden'), refused
		assert not field or (refused.json['detail'].startswith(field) and '"private"' in refused.json['detail']), refused


BAD = [('POST', '/v1/sandboxes', b'{', 400), ('POST', '/v1/sandboxes', b'[]', 400), ('POST', '/v1/sandboxes', b'{"nonsense":1}', 400),
	('POST', '/v1/sandboxes', b'{"name":1}', 400), ('POST', '/v1/sandboxes', b'{"a":1,"a":2}', 400), ('POST', '/v1/sandboxes', b'[' * 100000, 400),
	('POST', '/v1/sandboxes', b'{"name":"\xff"}', 400), ('POST', '/v1/sandboxes', b' ' * 1100000, 413), ('PUT', '/v1/sandboxes', b'', 405),
	('GET', '/v1/nothing', b'', 404), ('GET', '/v1/sandboxes/sb_0000000000000000', b'', 404), ('GET', '/v1/sandboxes/..%2f..', b'', 404),
	('GET', '/v1/sandboxes/%ff', b'', 400), ('GET', '/v1/sandboxes?limit=0', b'', 400), ('GET', '/v1/sandboxes?limit=-1', b'', 400),
	('GET', '/v1/sandboxes?limit=1000000000', b'', 400), ('GET', '/v1/sandboxes?limit=ten', b'', 400), ('GET', '/v1/sandboxes?nonsense=1', b'', 400),
	('GET', '/v1/sandboxes?cursor=x', b'', 400), ('GET', '/v1/log?from=yesterday', b'', 400),
	('GET', '/v1/log?limit=0', b'', 400), ('GET', '/v1/log?limit=-1', b'', 400), ('GET', '/v1/log?limit=1000000000', b'', 400), ('GET', '/v1/log?limit=all', b'', 400), ('DELETE', '/v1/api-keys/ke_none', b'', 404),
	('POST', '/v1/api-keys', b'{"role":"root"}', 400), ('POST', '/v1/accounts', b'{"id":"A b"}', 400), ('GET', '/health', b'x', 400)]


@pytest.mark.parametrize('method, path, body, status', BAD, ids=[f'{method}-{path[:50]}-{body[:12]}' for method, path, body, _ in BAD])
def test_bad_requests(admin, method, path, body, status):
	got = admin.call(method, path, body)
	assert got.status == status and got.headers['Content-Type'] == 'application/problem+json', got
	assert got.json['status'] == status and got.json['code'] and got.json['detail'] and got.json['title'], got


@pytest.mark.parametrize('body', [{}, {'command': 'a', 'argv': ['b']}, {'argv': []}, {'argv': [1]}, {'argv': 'ls'}, {'command': 5}, {'command': 'a\0b'}, {'command': 'a', 'env': []},
	{'command': 'a', 'env': {'a=b': 'c'}}, {'command': 'a', 'timeout_ms': 0}, {'command': 'a', 'timeout_ms': '5'}, {'command': 'a', 'nonsense': 1},
	{'command': 'a', 'stdin': 1}, {'command': 'a', 'detach': 'yes'}, {'command': 'a', 'stdin_open': 1}])
def test_bad_execs(admin, box, body):
	got = admin.post(at(box, '/exec'), body)
	assert got.status == 400 and got.json['code'] == 'invalid', got
	assert admin.get(at(box, '/log')).json['items'] == []


RAW = [b'GET /health HTTP/1.1\nHost: a\n\n', b'GET /health HTTP/1.1\r\nHost : a\r\n\r\n', b'GET /health HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n',
	b'POST /v1/sandboxes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', b'POST /v1/sandboxes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
	b'GET /health HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n', b'GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n', b'nonsense\r\n\r\n', b'GET /health HTTP/1.1\r\n' + b'X: y\r\n' * 20000 + b'\r\n']


@pytest.mark.parametrize('raw', RAW, ids=[repr(raw[:60]) for raw in RAW])
def test_ambiguous_heads_are_refused(server, raw):
	with socket.create_connection(('127.0.0.1', server.port), timeout=10) as sock:
		sock.sendall(raw)
		got = b''
		while chunk := sock.recv(65536):
			got += chunk
			if b'\r\n\r\n' in got:
				break
	assert got.startswith(b'HTTP/1.1 4') and got.split()[1] == (b'431' if len(raw) > 65536 else b'400'), got


def test_a_slow_reader_costs_no_memory(server, admin, box):
	"""R87: nor does it keep others waiting, and it gets everything in the end."""
	def rss():
		with open(f'/proc/{server.serve_pid()}/status', encoding='ascii') as status:
			return int(next(line for line in status if line.startswith('VmRSS')).split()[1])

	before = rss()
	slow = admin.stream(at(box, '/watch?events=true'))
	quick = admin.stream(at(box, '/watch'), limit_s=5)
	stuck = admin.stream(at(box, '/exec'), {'command': 'head -c 30000000 /dev/zero'})
	done = admin.exec(box, 'i=0; while [ $i -lt 20000 ]; do : > /tmp/f$((i % 50)); i=$((i + 1)); done')
	assert done['exit_code'] == 0 and rss() < before + 32000
	assert done['exec'] in [row['exec'] for _, _, row in quick.take(1)]
	quick.close()
	stuck.close()
	seen = 0
	for name, id, _ in slow:
		seen += name == 'trace'
		if name == 'trace' and int(id[1:]) != seen:
			raise AssertionError(f'{id} is number {seen}')
		if seen == 20000:
			break
	slow.close()


@pytest.mark.parametrize('what, letter', [('', 'r'), ('?events=true', 's')])
def test_watchers_that_are_cut_off_again_and_again(server, admin, box, what, letter):
	"""Two at once, at random places: nothing twice, nothing missing."""
	seen, done = [[], []], []
	often = Client(server, admin.post('/v1/api-keys', {'rate_limit': 100000}).json['key'])

	def watch(mine, seed):
		rest = random.Random(seed)
		while not done or int(mine[-1][1:]) < done[0]:
			events = often.stream(at(box, '/watch' + what), headers={'Last-Event-ID': mine[-1]} if mine else {})
			for _, (name, id, data) in zip(range(rest.randrange(1, 12)), events):
				if not mine or id != mine[-1]: # a row and its event have one id
					mine.append(id)
				if name == 'row' and data['command'] == 'true last':
					done[:] = [int(id[1:])]
					break
			events.close()

	threads = [threading.Thread(target=watch, args=(mine, seed)) for seed, mine in enumerate(seen)]
	for thread in threads:
		thread.start()
	for n in range(20):
		admin.exec(box, f'true {n}')
	admin.exec(box, 'true last')
	for thread in threads:
		thread.join(timeout=150)
	assert not any(thread.is_alive() for thread in threads)
	for mine in seen:
		numbers = [int(id[1:]) for id in mine]
		assert {id[0] for id in mine} == {letter} and numbers == list(range(1, len(numbers) + 1)), mine
	assert min(map(len, seen)) >= 21


def test_an_account_has_limits(server, admin):
	assert admin.post('/v1/accounts', {'id': 'small', 'max_sandboxes': 2, 'max_execs': 1}).status == 201
	small = server.client('admin', account='small')
	replies = []
	threads = [threading.Thread(target=lambda: replies.append(small.post('/v1/sandboxes', {}))) for _ in range(6)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	made = [reply.json['id'] for reply in replies if reply.status == 201]
	refused = [reply for reply in replies if reply.status == 429]
	assert 1 <= len(made) <= 2 and len(made) + len(refused) == 6 and refused[0].json['code'] == 'quota' and refused[0].headers['Retry-After'], replies
	first = threading.Thread(target=lambda: replies.append(small.exec(made[0], 'sleep 1.5; echo first')))
	first.start()
	wait_for(lambda: any(event['kind'] == 'exec.start' for event in small.get(at(made[0], '/trace/events')).json['items']), 'its start')
	assert small.post(at(made[0], '/exec'), {'command': 'true'}).json['code'] == 'quota'
	first.join()
	assert replies[-1]['stdout'] == 'first\n' and small.exec(made[0], 'true')['exit_code'] == 0
	for box in made:
		assert small.delete(at(box)).status == 200
	assert small.post('/v1/sandboxes', {}).status == 201
	assert small.delete(at(small.get('/v1/sandboxes?state=running').json['items'][0]['id'])).status == 200
