# SPDX-License-Identifier: Apache-2.0
"""A real agent program reaches its model through the gateway, as its profile says: it trusts the sandbox's authority, its
key is a stand-in inside, and its whole conversation is in the record, on one WebSocket too."""
import hashlib
import json
import pathlib
import subprocess

import harness
import pytest
import world as world_

PORT = 8444
KEY = 'sk-proj-the-real-value-of-the-key-0123456789'
STEPS = ['echo one > made.txt; cat made.txt', 'cat /no/such']


@pytest.fixture(scope='module')
def certificate(world, tmp_path_factory):
	"""Of the model's host, by the authority that upstream's certificates are signed by."""
	folder = tmp_path_factory.mktemp('model')
	(folder / 'ext').write_text('subjectAltName=DNS:api.openai.com\n')
	for args in (('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key', '-out', 'csr',
		'-subj', '/CN=model'), ('x509', '-req', '-in', 'csr', '-CA', f'{world.logs}/ca.pem', '-CAkey', f'{world.logs}/ca.key',
		'-CAcreateserial', '-days', '9', '-extfile', 'ext', '-out', 'pem')):
		subprocess.run(['openssl', *args], cwd=folder, check=True, capture_output=True)
	return folder / 'pem', folder / 'key'


@pytest.fixture
def model(world, certificate):
	process = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-B', str(pathlib.Path(__file__).parent / 'model.py'),
		world_.UPSTREAM, str(PORT), *map(str, certificate), str(world.logs / 'model.log'), json.dumps(STEPS)),
		stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	assert process.stdout.readline() == b'ready\n'
	yield world
	process.kill()
	process.communicate()


PROVIDER = ('{name="other",base_url="https://api.openai.com/v1",wire_api="responses",env_key="CODEX_API_KEY",'
	'supports_websockets=false}')


def codex(online, model, installed, *options, limit='64K'):
	folder, failed = installed
	if harness.AGENTS['codex'] in failed:
		pytest.skip(failed[harness.AGENTS['codex']])
	project = online.cwd
	run = online.run('/opt/agents/codex/node_modules/.bin/codex', 'exec', '--skip-git-repo-check',
		'--dangerously-bypass-approvals-and-sandbox', '-m', 'scripted', *options, 'do it', options=(*model.net, '--net', 'allow',
		'--agent', 'codex', '--host-map', f'api.openai.com={world_.UPSTREAM}:{PORT}', '--mount', f'{folder}:/opt/agents:ro',
		'--mount', f'{project}:{project}:cow', '-w', str(project), '--timeout', '40s',
		'--body-limit', limit),
		env={'CODEX_API_KEY': KEY, 'HOME': str(project)})
	assert run.code == 0 and run.lines[-1] == 'finished', run
	commands = [command for command in run.record.commands() if command['derived'] and command.get('command') in STEPS]
	assert [(command['command'], command['exit_code']) for command in commands] == [(STEPS[0], 0), (STEPS[1], 1)]
	return run


def check_key(run, seen):
	"""The value reached its host and stands nowhere else."""
	assert {entry['authorization'] for entry in seen} == {f'Bearer {KEY}'}
	kept = [path.read_bytes() for path in (run.record.cloche.state / 'records' / run.record.id).rglob('*') if path.is_file()]
	assert kept and not [True for data in kept if KEY.encode() in data]
	[entry] = [entry for entry in run.record.json('net') if entry['host'] == 'api.openai.com']
	assert [secret['name'] for secret in entry['secrets']] == ['CODEX_API_KEY'] and not entry['failed']
	assert {flow['tls'] for flow in run.record.events('net.flow') if flow['host'] == 'api.openai.com'} == {'intercepted'}
	assert run.record.show()['misused'] == []
	return entry


def test_conversation_on_one_websocket(online, model, installed):
	run = codex(online, model, installed)
	seen = [entry for entry in model.log('model') if entry['path'] == '/v1/responses']
	assert {entry['what'] for entry in seen} == {'message'} and len(seen) >= len(STEPS) + 1
	entry = check_key(run, seen)
	[request] = [request for request in entry['requests'] if request['url'].endswith('/responses')]
	assert (request['status'], request['upgrade']) == (101, 'websocket')
	sent = [message for message in entry['messages'] if (message['direction'], message['opcode']) == ('out', 1)]
	whole = [(len(text), hashlib.sha256(text).hexdigest()) for text in (message['body'].encode() for message in sent)]
	assert whole == [(entry['n'], entry['sha']) for entry in seen]
	got = [message['body'] for message in entry['messages'] if (message['direction'], message['opcode']) == ('in', 1)]
	assert sum('finished' in text for text in got) == 1 and sum('exec_command' in text for text in got) == 2
	# The hosts beside its model are refused, and it went on.
	beside = [entry for entry in run.record.json('net') if entry['host'] != 'api.openai.com']
	assert all(entry['refused'] or entry['failed'] for entry in beside), beside
	assert not model.log('http')


def test_conversation_by_requests(online, model, installed):
	"""Server-sent events, each turn a request; bodies to and from a model are kept whole, also those above the limit."""
	run = codex(online, model, installed, '-c', 'model_provider=other', '-c', f'model_providers.other={PROVIDER}',
		limit='4K')
	seen = [entry for entry in model.log('model') if entry['path'] == '/v1/responses']
	assert [entry['what'] for entry in seen] == ['post'] * (len(STEPS) + 1)
	entry = check_key(run, seen)
	turns = [request for request in entry['requests'] if request['url'].endswith('/responses')]
	assert [(request['body_bytes'], request['body_sha256'], request['status']) for request in turns] == [
		(entry['n'], entry['sha'], 200) for entry in seen]
	assert all(request['body_bytes'] > 4096 and not request['body_truncated'] for request in turns)
	assert 'finished' in turns[-1]['response_body']
