# SPDX-License-Identifier: Apache-2.0
"""The control plane's views of one sandbox: its trace in shapes, what it changed, its summary; and a fork of its files."""
import json

import pytest

STORES = ['sqlite'] # nothing here asks the database but what test_serve.py does; CLOCHE_TEST_STORES=all runs both


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


@pytest.fixture
def box(admin):
	made = admin.create(name='traced')
	yield made
	assert admin.delete(at(made)).status == 200


def items(reply):
	assert reply.status == 200, reply
	return reply.json['items']


def test_the_trace_in_shapes(admin, box):
	first = admin.exec(box, 'echo one > /workspace/a; cat /workspace/a; /bin/ls /workspace > /dev/null')
	second = admin.exec(box, 'rm /workspace/a')
	tree = items(admin.get(at(box, '/trace/processes')))
	assert [node['exec'] for node in tree] == [first['exec'], second['exec']]
	assert ['/usr/bin/cat', '/usr/bin/ls'] == sorted(child['path'] for child in tree[0]['children'])
	files = {entry['path']: entry for entry in items(admin.get(at(box, '/trace/files')))}
	assert files['/workspace/a']['created'] and files['/workspace/a']['deleted']
	only = {entry['path']: entry for entry in items(admin.get(at(box, f'/trace/files?exec={second["exec"]}')))}
	assert only['/workspace/a']['deleted'] and not only['/workspace/a']['created']
	assert [row['exec'] for row in items(admin.get(at(box, '/trace/commands')))] == [first['exec'], second['exec']]
	assert items(admin.get(at(box, '/trace/network'))) == [] and len(items(admin.get(at(box, '/trace/timeline')))) > 3


def test_events_by_pages_and_bounds(admin, box):
	for n in range(3):
		admin.exec(box, f'echo {n} > /tmp/f{n}')
	every = items(admin.get(at(box, '/trace/events?limit=1000')))
	last = every[-1]['seq'] # a sample of what it uses may come behind it
	assert [event['seq'] for event in admin.pages(at(box, '/trace/events'), 7) if event['seq'] <= last] == [event['seq'] for event in every]
	middle = every[len(every) // 2]['seq']
	assert [event['seq'] for event in items(admin.get(at(box, f'/trace/events?from={middle}&to={last}&limit=1000')))] == [event['seq'] for event in every if event['seq'] >= middle]
	for bad in ('from=never', 'noise=1', 'limit=0', 'nonsense=1'):
		assert admin.get(at(box, '/trace/events?' + bad)).status == 400, bad


def test_a_clear_moves_the_start_and_takes_nothing(admin, box):
	admin.exec(box, 'true before')
	assert admin.delete(at(box, '/trace')).status in (200, 204)
	after = admin.exec(box, 'true after')
	assert [row['exec'] for row in items(admin.get(at(box, '/trace/commands')))] == [after['exec']]
	every = items(admin.get(at(box, '/trace/events?from=1&limit=1000')))
	cleared = [event for event in every if event['kind'] == 'trace.cleared']
	assert len(cleared) == 1 and cleared[0]['actor'].startswith('key:') and every[0]['seq'] == 1
	assert len(items(admin.get(at(box, '/log')))) == 2


def test_changes_manifest_report(admin, box):
	admin.exec(box, 'echo x > /etc/made; mkdir /workspace/d; printf abc > /workspace/d/f')
	roots = {root['root']: root for root in items(admin.get(at(box, '/changes')))}
	assert [entry['path'] for entry in roots['/etc']['added']] == ['/etc/made']
	manifest = admin.post(at(box, '/manifests'), {'roots': ['/workspace']})
	assert manifest.status == 200 and manifest.headers['Content-Type'] == 'application/jsonl', manifest
	entries = [json.loads(line) for line in manifest.body.decode().splitlines()]
	assert [entry['sha256'] for entry in entries if entry.get('path', '').endswith('d/f')] == ['ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad']
	report = admin.get(at(box, '/report'))
	assert report.json['sandbox'] == box and report.json['commands']
	text = admin.get(at(box, '/report'), headers={'Accept': 'text/markdown'})
	assert text.headers['Content-Type'].startswith('text/markdown') and box in text.body.decode()
	assert admin.get(at(box, '/diff')).status == 200
	assert admin.post(at(box, '/manifests'), {'roots': ['relative']}).status == 400


def test_a_fork_begins_with_its_files(server, admin):
	first = admin.create()
	admin.exec(first, 'echo kept > /workspace/f')
	running = admin.post(at(first, '/fork'))
	assert (running.status, running.json['code']) == (409, 'wrong_state'), running
	assert admin.post(at(first, '/suspend')).status == 200
	made = admin.post(at(first, '/fork'))
	assert made.status == 201 and made.json['account'] == 'default' and made.json['state'] == 'running', made
	assert admin.exec(made.json['id'], 'cat /workspace/f')['stdout'] == 'kept\n'
	for box in (first, made.json['id']):
		assert admin.delete(at(box)).status == 200


def test_other_accounts_and_roles(server, admin, box):
	other, auditor = server.client('admin', account='elsewhere'), server.client('auditor')
	for method, path in (('GET', '/trace/events'), ('GET', '/trace/files'), ('DELETE', '/trace'), ('GET', '/changes'), ('GET', '/diff'), ('POST', '/manifests'),
			('POST', '/discard'), ('GET', '/report'), ('POST', '/fork')):
		assert other.call(method, at(box, path)).status == 404, path
	assert auditor.get(at(box, '/trace/files')).status == 200 and auditor.delete(at(box, '/trace')).status == 403 == auditor.post(at(box, '/discard')).status
