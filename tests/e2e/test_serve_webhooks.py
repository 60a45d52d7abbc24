# SPDX-License-Identifier: Apache-2.0
"""Webhooks: what happens is told, signed, once for each receiver, and tried again; no target leads inward."""
import base64
import collections
import hashlib
import hmac
import itertools
import json
import os
import signal
import threading
import time

import pytest

from harness import wait_for
from serving import Receiver, Server, ToldOfFiles, file_watches

# Of the account "default" alone: receivers of these tests are on loopback.
CONFIG = {'accounts': {'default': {'private': True}}, 'webhooks': {'retry_s': [0.2, 0.3], 'timeout_s': 2}}


@pytest.fixture
def receiver():
	made = Receiver()
	yield made
	made.close()


@pytest.fixture
def hooks(admin):
	"""Makes webhooks that are removed at the end of the test."""
	made = []

	def make(client, url, **how):
		got = client.post('/v1/webhooks', {'url': url, **how})
		assert got.status == 201, got
		made.append((client, got.json['id']))
		return got.json

	yield make
	for client, hook in made:
		assert client.delete(f'/v1/webhooks/{hook}').status in (204, 404)


@pytest.fixture
def box(admin):
	made = admin.create()
	yield made
	admin.delete(f'/v1/sandboxes/{made}')


def deliveries(client, hook):
	return client.get(f'/v1/webhooks/{hook["id"]}/deliveries').json['items']


def check_signature(secret, head, body):
	key = base64.b64decode(secret.removeprefix('whsec_'))
	assert len(key) == 32
	signed = f'{head["webhook-id"]}.{head["webhook-timestamp"]}.'.encode() + body
	assert head['webhook-signature'] == 'v1,' + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
	assert abs(int(head['webhook-timestamp']) - time.time()) < 60 and head['Content-Type'] == 'application/json'


def test_what_happens_is_told_and_signed(admin, receiver, hooks):
	hook = hooks(admin, receiver.url)
	box = admin.create(name='told')
	row = admin.exec(box, 'echo hello')
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200
	wait_for(lambda: {'sandbox.created', 'sandbox.started', 'exec.end', 'sandbox.stopped'} <= set(receiver.kinds()), 'the deliveries')
	for head, body in receiver.got:
		check_signature(hook['secret'], head, body)
		assert json.loads(body)['data']['sandbox'] == box
	told = [json.loads(body) for _, body in receiver.got]
	assert [one['data'] for one in told if one['type'] == 'exec.end'] == [row]
	assert {one['data']['kind'] for one in told if one['type'] == 'sandbox.stopped'} == {'sandbox.stopped'}
	assert len(set(receiver.ids())) == len(receiver.got)
	log = wait_for(lambda: (log := deliveries(admin, hook)) and all(one['state'] == 'sent' for one in log) and log, 'its log')
	assert {one['id'] for one in log} == set(receiver.ids())
	assert {(one['sandbox'], len(one['tries']), one['tries'][0]['status'], one['tries'][0]['error'], one['next_try_at']) for one in log} == {(box, 1, 200, None, None)}
	assert next(one['seq'] for one in log if one['event'] == 'exec.end') == row['seq']


def test_a_webhook_hears_what_it_asked_for(admin, receiver, hooks, box):
	other = admin.create()
	hooks(admin, receiver.url, events=['exec.end'], sandbox=box)
	admin.exec(other, 'true')
	admin.exec(box, 'true it')
	assert admin.delete(f'/v1/sandboxes/{other}').status == 200
	wait_for(lambda: receiver.got, 'the delivery')
	admin.exec(box, 'true again')
	wait_for(lambda: len(receiver.got) > 1, 'the second')
	assert [json.loads(body)['data']['command'] for _, body in receiver.got] == ['true it', 'true again']


def test_who_hears_a_question_can_answer_it(admin, receiver, hooks):
	hooks(admin, receiver.url, events=['net.held', 'net.asked'])
	box = admin.create(network={'net': 'allow', 'ask': True})
	assert admin.post(f'/v1/sandboxes/{box}/exec', {'command': 'curl -sS http://held.test/', 'detach': True}).status == 202
	wait_for(lambda: receiver.got, 'the question')
	held = json.loads(receiver.got[0][1])
	assert (held['type'], held['data']['host'], held['data']['port'], held['data']['sandbox']) == ('net.held', 'held.test', 80, box)
	[waiting] = admin.get('/v1/asks').json['items']
	assert (waiting['sandbox'], waiting['ask'], waiting['host']) == (box, held['data']['ask'], 'held.test')
	answered = admin.post(f'/v1/sandboxes/{box}/asks', {'ask': held['data']['ask'], 'allow': False, 'reason': 'by a program'})
	assert answered.status == 200, answered
	wait_for(lambda: len(receiver.got) == 2, 'the answer')
	asked = json.loads(receiver.got[1][1])
	assert (asked['type'], asked['data']['ask'], asked['data']['answer'], asked['data']['reason']) == ('net.asked', held['data']['ask'], 'refused', 'by a program')
	assert admin.get('/v1/asks').json == {'items': [], 'next_cursor': None}
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200


def test_what_is_long_stays_out(admin, receiver, hooks, box):
	hooks(admin, receiver.url, events=['exec.end'])
	row = admin.post(f'/v1/sandboxes/{box}/exec', {'argv': ['true', 'x' * 100000, 'y' * 100000]}).json
	wait_for(lambda: receiver.got, 'the delivery')
	data = json.loads(receiver.got[0][1])['data']
	assert data['omitted'] == ['argv'] and 'argv' not in data and data['exec'] == row['exec'] and data['exit_code'] == 0
	assert len(receiver.got[0][1]) < 10000


def test_a_failure_is_tried_again(admin, receiver, hooks, box):
	hook = hooks(admin, receiver.url, events=['exec.end'])
	receiver.answer = [500, 404, 200]
	admin.exec(box, 'true')
	log = wait_for(lambda: (log := deliveries(admin, hook)) and log[0]['state'] == 'sent' and log, 'the third try')
	assert [one['status'] for one in log[0]['tries']] == [500, 404, 200] and len(log) == 1
	assert len(receiver.got) == 3 and set(receiver.ids()) == {log[0]['id']} and len({body for _, body in receiver.got}) == 1
	for head, body in receiver.got:
		check_signature(hook['secret'], head, body)


def test_it_ends_and_is_sent_again_by_hand(admin, receiver, hooks, box):
	hook = hooks(admin, receiver.url, events=['exec.end'])
	receiver.answer, receiver.location = 302, f'http://127.0.0.1:{receiver.port}/elsewhere'
	admin.exec(box, 'true')
	failed = wait_for(lambda: (log := deliveries(admin, hook)) and log[0]['state'] == 'failed' and log[0], 'its end')
	assert [(one['status'], one['error']) for one in failed['tries']] == [(302, 'redirects are not followed')] * 3 and len(receiver.got) == 3
	receiver.answer = 200
	again = f'/v1/webhooks/{hook["id"]}/deliveries/{failed["id"]}/redeliver'
	assert admin.post(again).status == 202
	sent = wait_for(lambda: (log := deliveries(admin, hook)) and log[0]['state'] == 'sent' and log[0], 'the fourth try')
	assert len(sent['tries']) == 4 and set(receiver.ids()) == {failed['id']}
	receiver.wait_s = 1
	assert admin.post(again).status == 202
	refused = admin.post(again)
	assert (refused.status, refused.json['code']) == (409, 'busy')
	assert admin.post(f'/v1/webhooks/{hook["id"]}/deliveries/wd_{"0" * 32}/redeliver').status == 404
	wait_for(lambda: deliveries(admin, hook)[0]['state'] == 'sent' and len(receiver.got) == 5, 'the fifth')


def test_a_receiver_that_hangs_or_is_gone(admin, receiver, hooks, box):
	hanging = hooks(admin, receiver.url, events=['exec.end'])
	gone = hooks(admin, 'http://127.0.0.1:1/', events=['exec.end'])
	receiver.wait_s = 2.5
	admin.exec(box, 'true')
	failed = wait_for(lambda: (log := deliveries(admin, gone)) and log[0]['state'] == 'failed' and log[0], 'three tries')
	assert [one['status'] for one in failed['tries']] == [None] * 3 and 'connect' in failed['tries'][0]['error'].lower()
	waiting = wait_for(lambda: (log := deliveries(admin, hanging)) and log[0]['tries'] and log[0], 'the first try')
	assert waiting['tries'][0]['status'] is None and 2000 <= waiting['tries'][0]['duration_ms'] < 2500 and waiting['tries'][0]['error']


@pytest.mark.parametrize('host', ['127.0.0.1', '10.0.0.1', '169.254.169.254', '[::1]', '[::ffff:10.0.0.1]', '0x7f.1', '2130706433', '0.0.0.0', '192.168.1.1', '[fd00::1]', '[fe80::1]'])
def test_no_address_leads_inward(server, host):
	other = server.client('admin', account='other')
	refused = other.post('/v1/webhooks', {'url': f'http://{host}/'})
	assert (refused.status, refused.json['code']) == (403, 'forbidden'), refused
	assert other.get('/v1/webhooks').json['items'] == []


def test_no_name_leads_inward(server, receiver, hooks):
	other = server.client('admin', account='other')
	hook = hooks(other, f'http://localhost:{receiver.port}/')
	box = other.create()
	log = wait_for(lambda: (log := deliveries(other, hook)) and all(one['state'] == 'failed' for one in log) and log, 'the tries')
	assert {one['error'] for every in log for one in every['tries']} == {'the address is an address of the host itself'} and receiver.got == []
	assert other.delete(f'/v1/sandboxes/{box}').status == 200


def test_a_restart_tells_nothing_twice_and_forgets_nothing(server, admin, receiver, hooks):
	hooks(admin, receiver.url)
	box = admin.create()
	admin.exec(box, 'true')
	wait_for(lambda: 'exec.end' in receiver.kinds(), 'the first deliveries')
	server.stop()
	server.cloche.call('stop', box)
	server.start()
	wait_for(lambda: 'sandbox.stopped' in receiver.kinds(), 'what happened meanwhile')
	admin.delete(f'/v1/sandboxes/{box}')
	assert max(collections.Counter(receiver.ids()).values()) == 1 and max(collections.Counter(receiver.kinds()).values()) == 1, receiver.kinds()


def test_replicas_send_once(server, admin, receiver, hooks, box):
	second = Server(server.cloche, *server.options[:-1], server.options[-1] + '2', database=server.database, key=server.key)
	try:
		hooks(admin, receiver.url, events=['exec.end'])
		threads = [threading.Thread(target=lambda client=client: [client.exec(box, f'true {n}') for n in range(8)]) for client in (admin, second.admin)]
		for thread in threads:
			thread.start()
		for thread in threads:
			thread.join()
		wait_for(lambda: len(receiver.got) >= 16, 'all deliveries')
		assert len(second.admin.get('/v1/webhooks').json['items']) == 1
	finally:
		second.stop()
	assert sorted(json.loads(body)['data']['id'] for _, body in receiver.got) == list(range(1, 17))


FILES = {'events': ['file.changed'], 'paths': ['/workspace/**']}


def test_changes_of_files_are_told(admin, receiver, hooks, box):
	told = ToldOfFiles(receiver)
	hook = hooks(admin, receiver.url, sandbox=box, events=['file.changed'], paths=['/workspace/**', '/etc/cloche-*.conf', '/later/on'])
	assert (hook['events'], hook['paths']) == (['file.changed'], ['/workspace/**', '/etc/cloche-*.conf', '/later/on'])
	told.begun()
	started = time.monotonic()
	admin.exec(box, 'echo x > /workspace/a')
	wait_for(lambda: told.changes() == ['created /workspace/a'], 'the first change')
	assert time.monotonic() - started < 2.5
	receiver.answer = [500, 200]
	admin.exec(box, 'mkdir -p /workspace/d /later; echo y > /workspace/d/b; echo 1 > /etc/cloche-a.conf; echo 2 > /etc/cloche-a.txt; mv /workspace/a /tmp/a; mkdir /later/on; echo z > /later/on/f')
	expected = ['created /workspace/a', 'created /workspace/d', 'created /workspace/d/b', 'created /etc/cloche-a.conf', 'deleted /workspace/a', 'created /later/on', 'created /later/on/f']
	wait_for(lambda: sorted(set(told.changes())) == sorted(expected), f'all of them: {told.changes()}')
	log = wait_for(lambda: (log := deliveries(admin, hook)) and all(one['state'] == 'sent' for one in log) and log, 'its log')
	data = told.data()
	assert [one['n'] for one in data] == sorted(one['n'] for one in data) and {one['n'] for one in data} == set(range(1, data[-1]['n'] + 1)) and {(one['sandbox'], one['left_out']) for one in data} == {(box, 0)}
	assert len({one['watch'] for one in data}) == 1 and len(set(receiver.ids())) == data[-1]['n'] == len(data) - 1 # one was tried again
	for head, body in receiver.got:
		check_signature(hook['secret'], head, body)
	made = next(change for one in data for change in one['changes'] if change['path'] == '/workspace/d/b')
	assert (made['type'], made['size'], made['mode'], made['owner']) == ('file', 2, '0644', '0:0')
	assert {(one['event'], one['sandbox'], one['seq']) for one in log} == {('file.changed', box, None)} and {one['id'] for one in log} == set(receiver.ids())
	[failed] = [one for one in log if len(one['tries']) == 2]
	assert [one['status'] for one in failed['tries']] == [500, 200] and len({body for head, body in receiver.got if head['webhook-id'] == failed['id']}) == 1


def test_files_are_told_once_by_replicas_and_over_restarts(server, admin, receiver, hooks, box):
	told = ToldOfFiles(receiver)
	second = Server(server.cloche, *server.options[:-1], server.options[-1] + '2', database=server.database, key=server.key)
	try:
		hook = hooks(admin, receiver.url, sandbox=box, **FILES)
		told.begun()
		admin.exec(box, 'echo x > /workspace/a')
		wait_for(lambda: told.changes() == ['created /workspace/a'], 'the first')
		assert len(file_watches(box)) == 1 == len(told.gaps())
		# Whichever watches: it is killed, the other one or the next takes over, and says so.
		for n, victim in enumerate((server, second)):
			os.kill(victim.serve_pid(), signal.SIGKILL)
			wait_for(victim.is_up, 'the next one', 20)
			admin.exec(box, f'echo x > /workspace/b{n}')
		def is_told(n=itertools.count()):
			admin.exec(box, f'echo x > /workspace/last{next(n)}; sleep 0.2')
			return any('/last' in change for change in told.changes())

		wait_for(is_told, 'a change behind the last kill', 20)
		assert len(file_watches(box)) == 1 and len(told.gaps()) >= 2
		# What a killed one had claimed comes when its lease is over (90 s), under its id.
		assert max(collections.Counter(told.changes()).values()) == 1 == max(collections.Counter(receiver.ids()).values())
		assert set(receiver.ids()) <= {one['id'] for one in deliveries(admin, hook)}
	finally:
		second.stop()
	wait_for(lambda: len(file_watches(box)) == 1, 'a watch by the first')
	assert admin.delete(f'/v1/webhooks/{hook["id"]}').status == 204
	wait_for(lambda: not file_watches(box), 'the end of the watch')


BAD_FILES = [{'events': ['file.changed']}, {'paths': ['/a'], 'events': ['exec.end']}, {'paths': []}, {'paths': 'x'}, {'paths': ['a']}, {'paths': ['/a/../b']}, {'paths': [1]},
	{'paths': ['/' + 'x' * 1000]}, {'paths': ['/a'] * 5}, {'paths': ['/a\0b']}]


@pytest.mark.parametrize('more', BAD_FILES)
def test_bad_paths(admin, box, more):
	refused = admin.post('/v1/webhooks', {'url': 'http://example.org/', 'sandbox': box, **more})
	assert (refused.status, refused.json['code']) == (400, 'invalid') and "'paths'" in refused.json['detail'], refused
	assert admin.get('/v1/webhooks').json['items'] == []


def test_files_are_of_one_sandbox_and_few(server, admin, box):
	refused = admin.post('/v1/webhooks', {'url': 'http://example.org/', **FILES})
	assert (refused.status, refused.json['code']) == (400, 'invalid') and 'sandbox' in refused.json['detail']
	assert server.client('admin', account='other').post('/v1/webhooks', {'url': 'http://example.org/', 'sandbox': box, **FILES}).status == 404
	made = [admin.post('/v1/webhooks', {'url': f'http://example.org/{n}', 'sandbox': box, 'paths': ['/workspace/none']}) for n in range(8)]
	assert {one.status for one in made} == {201} and 'file.changed' in made[0].json['events'] and 'exec.end' in made[0].json['events']
	refused = admin.post('/v1/webhooks', {'url': 'http://example.org/', 'sandbox': box, **FILES})
	assert (refused.status, refused.json['code']) == (409, 'too_many')
	for one in made:
		assert admin.delete(f'/v1/webhooks/{one.json["id"]}').status == 204
	every = admin.post('/v1/webhooks', {'url': 'http://example.org/'}).json
	assert 'file.changed' not in every['events'] and every['paths'] is None
	assert admin.delete(f'/v1/webhooks/{every["id"]}').status == 204


BAD = [{}, {'url': 1}, {'url': 'ftp://example.org/'}, {'url': 'example.org'}, {'url': 'http://u:p@example.org/'}, {'url': 'http://u@example.org/'}, {'url': 'http:///x'},
	{'url': 'http://example.org/' + 'x' * 2100}, {'url': 'http://example.org/ x'}, {'url': 'http://exa\tmple.org/'}, {'url': 'http://example.org/', 'events': []},
	{'url': 'http://example.org/', 'events': ['sandbox.nothing']}, {'url': 'http://example.org/', 'events': 'exec.end'}, {'url': 'http://example.org/', 'events': [1]},
	{'url': 'http://example.org/', 'secret': 'x'}, {'url': 'http://example.org/', 'sandbox': 5}]


@pytest.mark.parametrize('body', BAD)
def test_bad_webhooks(admin, body):
	refused = admin.post('/v1/webhooks', body)
	assert (refused.status, refused.json['code']) == (400, 'invalid') and refused.json['detail'], refused
	assert admin.get('/v1/webhooks').json['items'] == []


def test_there_is_a_limit(server):
	other = server.client('admin', account='many')
	made = [other.post('/v1/webhooks', {'url': f'http://example.org/{n}'}).json['id'] for n in range(32)]
	refused = other.post('/v1/webhooks', {'url': 'http://example.org/'})
	assert (refused.status, refused.json['code']) == (409, 'too_many')
	assert [one['id'] for one in other.pages('/v1/webhooks', 5)] == made
	for hook in made:
		assert other.delete(f'/v1/webhooks/{hook}').status == 204


def test_whose_they_are(server, admin, hooks):
	hook = hooks(admin, 'http://example.org/secret-path')
	other, member = server.client('admin', account='other'), server.client('member')
	at = f'/v1/webhooks/{hook["id"]}'
	assert admin.get(at).json == {key: hook[key] for key in hook if key != 'secret'} == admin.get('/v1/webhooks').json['items'][0]
	for method, path in (('GET', at), ('DELETE', at), ('GET', at + '/deliveries'), ('POST', at + f'/deliveries/wd_{"0" * 32}/redeliver')):
		assert other.call(method, path).status == 404 and member.call(method, path).status == 403, path
	assert other.get('/v1/webhooks').json['items'] == [] and member.get('/v1/webhooks').status == member.post('/v1/webhooks', {}).status == 403
	assert other.post('/v1/webhooks', {'url': 'http://example.org/', 'sandbox': 'sb_0000000000000000'}).status == 404
	assert admin.delete(at).status == 204 and admin.delete(at).status == 404 == admin.get(at).status
	lines = [line for line in admin.get('/v1/audit?limit=1000').json['items'] if line['object'] == hook['id']]
	assert [(line['act'], line['detail']) for line in lines] == [('webhook.created', 'http://example.org/'), ('webhook.deleted', 'http://example.org/')]
