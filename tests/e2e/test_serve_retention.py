# SPDX-License-Identifier: Apache-2.0
"""What is too old goes, whole records at once, and does not come back."""
import json
import time

from harness import wait_for

SECOND = 1 / 86400
CONFIG = {'retention': {'records_days': SECOND, 'deliveries_days': SECOND, 'audit_days': 30 * SECOND}}


def ledger(server):
	return [json.loads(line) for line in (server.cloche.state / 'ledger.jsonl').read_text().splitlines()]


def test_a_record_goes_as_a_whole(server, admin):
	old, alive = admin.create(), admin.create()
	row = admin.exec(old, 'echo needle > /workspace/f')
	kept = admin.exec(alive, 'true')
	hook = admin.post('/v1/webhooks', {'url': 'http://hooks.invalid/'}).json['id']
	assert admin.delete(f'/v1/sandboxes/{old}').status == 200 and admin.get(f'/v1/sandboxes/{old}/log').json['items'] == [row]
	assert (server.cloche.state / 'records' / old).is_dir()
	time.sleep(1.1)
	server.restart()
	wait_for(lambda: admin.get(f'/v1/sandboxes/{old}').status == 404, 'its end')
	wait_for(lambda: any(line['act'] == 'record.removed' for line in admin.get('/v1/audit?limit=1000').json['items']), 'the line of the audit log')
	assert not (server.cloche.state / 'records' / old).exists() and not (server.cloche.state / 'changes' / old).exists()
	for path in ('', '/log', '/lifecycle', '/metrics', f'/exec/{row["exec"]}'):
		assert admin.get(f'/v1/sandboxes/{old}{path}').status == 404, path
	assert admin.get('/v1/log').json['items'] == [kept] and admin.get('/v1/log?q=needle').json['items'] == []
	assert [(line.get('actor'), line['act']) for line in ledger(server) if line['sandbox'] == old][-1] == ('retention', 'remove')
	lines = [line for line in admin.get('/v1/audit?limit=1000').json['items'] if line['act'] == 'record.removed']
	assert [(line['object'], line['actor'], line['origin'], line['detail']) for line in lines] == [(old, 'retention', 'server', 'aged out')]
	assert admin.get(f'/v1/sandboxes/{alive}').json['state'] == 'running' and admin.exec(alive, 'true')['id'] == 2
	server.restart() # nor does it come back
	assert admin.get(f'/v1/sandboxes/{old}').status == 404 and admin.get(f'/v1/webhooks/{hook}').status == 200
	assert len([line for line in ledger(server) if line['sandbox'] == old and line['act'] == 'remove']) == 1
	assert admin.delete(f'/v1/sandboxes/{alive}').status == 200 == admin.delete(f'/v1/webhooks/{hook}').status - 4


def test_bad_settings_are_refused(cloche):
	for retention in ({'records_days': 0}, {'records_days': '14'}, {'nonsense': 1}, [], {'audit_days': -1}):
		(cloche.cwd / 'config.json').write_text(json.dumps({'retention': retention}))
		refused = cloche.call('serve', '--listen', '127.0.0.1:0', '--socket', cloche.cwd / 's', '--config', cloche.cwd / 'config.json')
		assert refused.code == 125 and '"retention"' in refused.err, refused
