# SPDX-License-Identifier: Apache-2.0
"""An exec's answer with its trace: what the command did is in it, all of it, in the very moment of the answer.

CLOCHE_TEST_SLICES=2000 for more of them."""
import http.client
import json
import os
import signal
import threading

import pytest

from harness import wait_for

STORES = ['sqlite'] # nothing here asks the database but what test_serve.py does; CLOCHE_TEST_STORES=all runs both

SLICES = int(os.environ.get('CLOCHE_TEST_SLICES', '200'))
SHAPES = ['processes', 'files', 'network', 'commands', 'timeline', 'events']


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


class Quick:
	"""One connection, whose answers are not held against the document: other tests do that, and it takes most of the time."""

	def __init__(self, admin):
		self.key = admin.post('/v1/api-keys', {'rate_limit': 100000}).json['key']
		self.connection = http.client.HTTPConnection('127.0.0.1', admin.server.port, timeout=60)

	def call(self, method, path, body=None, **head):
		self.connection.request(method, path, body and json.dumps(body), {'Authorization': f'Bearer {self.key}', **head})
		response = self.connection.getresponse()
		got = response.read()
		assert response.status == 200, (path, got)
		return got

	def get(self, path):
		return json.loads(self.call('GET', path))

	def exec(self, box, command, **how):
		return json.loads(self.call('POST', at(box, '/exec'), {'command': command, **how}))

	def pages(self, path):
		page = self.get(path + '&limit=1000')
		yield from page['items']
		while page['next_cursor']:
			page = self.get(path.partition('&cursor=')[0] + '&limit=1000&cursor=' + page['next_cursor'])
			yield from page['items']

	def shape(self, box, name, done):
		"""By the route of that shape, up to the same event."""
		path = at(box, f'/trace/{name}?exec={done["exec"]}&to={done["seq"]}')
		return list(self.pages(path)) if name == 'events' else self.get(path)['items']


@pytest.fixture
def quick(admin):
	made = Quick(admin)
	yield made
	made.connection.close()


@pytest.fixture(scope='module')
def box(server):
	made = server.admin.create(network={'net': 'allow', 'allow': ['allowed.test']})
	yield made
	assert server.admin.delete(at(made)).status == 200


WORK = [
	'echo x > /workspace/f; /bin/ls / | cat > /dev/null; mkdir -p /tmp/d; mv /workspace/f /tmp/d/g; ln -s g /tmp/d/l; chmod 600 /tmp/d/g; rm -r /tmp/d',
	'getent hosts refused.test; getent hosts refused.test; cat /etc/shadow /none; exit 3',
	'(while sleep 0.3; do echo again > /workspace/daemon; done) > /dev/null 2>&1 & echo left; getent hosts allowed.test', # a daemon that goes on
	'''/usr/bin/python3 -c "import subprocess as s; s.run(['sh', '-c', 'echo derived > /workspace/e']); s.run(['bash', '-c', 'id; uname -a'])"''',
	'cd /workspace; for i in 1 2 3; do (exec sh -c "exec /bin/true $0" $i) & done; wait; printf "\\303\\251\\n\\377" > "$(printf "n\\n\\303\\377\\"\\\\x")"',
	'/bin/true', 'exec /none/there', 'kill -9 $$',
]


VERBS = {'processes': 'tree', 'files': 'files', 'network': 'net', 'commands': 'commands', 'timeline': 'timeline', 'events': 'events --noise'}


def told_by_cloche(server, box, name, done):
	got = server.cloche.call(*VERBS[name].split(), box, '--exec', done['exec'], '--until', str(done['seq']), '--json')
	assert got.code == 0, got
	return json.loads(got.out)


def test_it_is_what_the_views_say(server, admin, quick, box):
	"""Though it is read from the command's begin on, and by `cloche` all of the record."""
	for command in WORK:
		done = admin.exec(box, command, trace=True)
		assert sorted(done['trace']) == sorted(SHAPES) and 'trace_cut' not in done and done['trace_complete'] is True, (command, done)
		for name in SHAPES if 'left_running' not in done else ('files', 'events'): # the others tell what became of what was begun before
			assert done['trace'][name] == quick.shape(box, name, done) == told_by_cloche(server, box, name, done), (command, name)
		assert admin.get(at(box, f'/exec/{done["exec"]}')).json == {key: value for key, value in done.items() if not key.startswith('trace')}
	first = admin.exec(box, WORK[0], trace=['files', 'files'])
	assert list(first['trace']) == ['files']
	files = {entry['path']: entry for entry in first['trace']['files']}
	assert files['/workspace/f']['created'] and files['/workspace/f']['renamed_to'] == '/tmp/d/g' and files['/tmp/d/g']['deleted']
	refused = admin.exec(box, 'getent hosts refused.test', trace=['network'])['trace']['network']
	assert [(entry['host'], entry['refused']) for entry in refused] == [('refused.test', True)]
	assert 'trace' not in admin.exec(box, 'true') and 'trace' not in admin.exec(box, 'true', trace=False)


def test_a_slice_is_whole_in_the_moment_of_the_answer(quick, box):
	"""In the answer, and for whoever asks for it at once; the daemon of the test before goes on meanwhile."""
	for n in range(SLICES):
		command = f'/bin/true {n}; echo x > /workspace/q{n % 7}'
		if n % 2:
			done = quick.exec(box, command, trace=['processes', 'files'])
			processes, files = done['trace']['processes'], done['trace']['files']
			assert done['trace_complete'], n
		else:
			done = quick.exec(box, command)
			processes, files = (quick.get(at(box, f'/trace/{name}?exec={done["exec"]}'))['items'] for name in ('processes', 'files'))
		assert [(child['argv'], child['exit_code']) for node in processes for child in node['children']] == [(['/bin/true', str(n)], 0)], n
		assert [(entry['path'], entry['written']) for entry in files if entry['path'].startswith('/workspace/q')] == [(f'/workspace/q{n % 7}', True)], n
		assert processes[0]['ended_at'] and processes[0]['exit_code'] == 0, n


def test_with_many_at_once_each_has_its_own(admin, box):
	wrong = []

	def work(mine):
		quick = Quick(admin)
		for n in range(SLICES // 6):
			done = quick.exec(box, f'/bin/true {mine}.{n}; echo > /workspace/m{mine}', trace=['processes', 'files'])
			argv = [child['argv'][1] for node in done['trace']['processes'] for child in node['children']]
			made = [entry['path'] for entry in done['trace']['files'] if entry['path'].startswith('/workspace/')]
			if (argv, made, done['trace_complete']) != ([f'{mine}.{n}'], [f'/workspace/m{mine}'], True):
				wrong.append((mine, n, argv, made, done['trace_complete']))
		quick.connection.close()

	threads = [threading.Thread(target=work, args=(mine,)) for mine in range(4)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	assert not wrong


def test_in_a_stream_it_comes_with_the_exit(admin, box):
	got = list(admin.stream(at(box, '/exec'), {'command': 'cat; echo > /workspace/s', 'stdin': 'in\n', 'trace': ['files', 'events']}))
	assert [name for name, _, _ in got] == ['start', 'stdout', 'exit'] and not any('trace' in data for _, _, data in got[:2])
	done = got[-1][2]
	assert '/workspace/s' in [entry['path'] for entry in done['trace']['files']] and done['trace_complete']
	assert done['trace']['events'][-1]['kind'] == 'exec.end' and done['trace']['events'][-1]['seq'] == done['seq']


def test_a_clear_meanwhile_takes_nothing_from_it(admin, box):
	events = iter(admin.stream(at(box, '/exec'), {'command': 'echo > /workspace/before; read -r go; echo > /workspace/after', 'stdin_open': True, 'trace': ['files', 'events']}))
	exec_id = next(events)[2]['exec']
	wait_for(lambda: any(entry['path'] == '/workspace/before' for entry in admin.get(at(box, f'/trace/files?exec={exec_id}')).json['items']), 'its first half')
	assert admin.delete(at(box, '/trace')).status == 204
	assert admin.post(at(box, f'/exec/{exec_id}/stdin'), {'data': 'go\n', 'eof': True}).status == 200
	done = list(events)[-1][2]
	assert {'/workspace/before', '/workspace/after'} <= {entry['path'] for entry in done['trace']['files']}
	assert done['trace']['events'][0]['kind'] == 'exec.start'


def test_what_is_long_is_cut_and_says_where_the_rest_is(admin, quick, box):
	"""10,000 items of a shape; with an Idempotency-Key 96 KiB."""
	done = quick.exec(box, 'i=0; while [ $i -lt 5200 ]; do : > /tmp/c; : < /tmp/c; i=$((i + 1)); done', trace=['events', 'files', 'processes'])
	assert list(done['trace_cut']) == ['events'] and done['trace_cut']['events']['items'] == len(done['trace']['events']) == 10000
	assert done['trace_complete'] and len(done['trace']['files']) < 30
	rest = list(quick.pages(done['trace_cut']['events']['rest']))
	assert done['trace']['events'] + rest == quick.shape(box, 'events', done) and rest[-1]['kind'] == 'exec.end'
	body = {'command': 'for i in $(seq 600); do : > /tmp/c$i; done', 'trace': True}
	first, again = (admin.post(at(box, '/exec'), body, headers={'Idempotency-Key': 'cut'}) for _ in range(2))
	assert first.status == 200 and first.body == again.body and len(first.body) < 1 << 20
	done = first.json
	assert {'events', 'files'} <= set(done['trace_cut']) and len(done['trace']['processes']) == 1
	for name, cut in done['trace_cut'].items():
		assert len(done['trace'][name]) == cut['items'] > 50 and len(json.dumps(done['trace'][name], separators=(',', ':'))) <= 96 << 10
		there = list(quick.pages(cut['rest'])) if name == 'events' else quick.get(cut['rest'])['items']
		whole = done['trace'][name] + there if name == 'events' else there
		assert whole == quick.shape(box, name, done) and whole[:cut['items']] == done['trace'][name], name


def test_items_are_cut_at_their_ends_whatever_is_in_them(quick, box):
	"""Quotes, brackets and commas that a program has in its names, an odd number of each."""
	command = """for i in $(seq 600); do : > '/tmp/"},{[]]\\"\\'$i; done"""
	done = json.loads(quick.call('POST', at(box, '/exec'), {'command': command, 'trace': ['files']}, **{'Idempotency-Key': 'quotes'}))
	cut = done['trace_cut']['files']
	assert len(done['trace']['files']) == cut['items'] > 50 and done['trace']['files'] == quick.get(cut['rest'])['items'][:cut['items']]


@pytest.mark.parametrize('trace', [1, 'files', [], ['nonsense'], ['files', 1], {}, {'files': True}, [None]])
def test_bad_traces(admin, box, trace):
	before = admin.get(at(box, '/log?order=desc&limit=1')).json
	got = admin.post(at(box, '/exec'), {'command': 'true', 'trace': trace})
	assert (got.status, got.json['code']) == (400, 'invalid') and 'trace' in got.json['detail'], got
	assert admin.get(at(box, '/log?order=desc&limit=1')).json == before


def test_where_there_is_none_nothing_is_run(admin):
	"""An error, never an empty record."""
	bare, half = admin.create(trace=False), admin.create(trace={'processes': True})
	for box, trace in ((bare, True), (bare, ['events']), (bare, ['files']), (half, ['files']), (half, ['processes', 'network'])):
		got = admin.post(at(box, '/exec'), {'command': 'true', 'trace': trace})
		assert (got.status, got.json['code']) == (409, 'not_traced'), (trace, got)
	detached = admin.post(at(half, '/exec'), {'command': 'true', 'trace': True, 'detach': True})
	assert (detached.status, detached.json['code']) == (400, 'invalid') and 'detach' in detached.json['detail']
	for box in (bare, half):
		assert admin.get(at(box, '/log')).json['items'] == []
	done = admin.exec(half, 'cat /etc/hostname', trace=True)
	assert sorted(done['trace']) == ['commands', 'events', 'processes', 'timeline'] and done['trace_complete']
	for name in ('processes', 'files', 'network'):
		got = admin.get(at(bare, f'/trace/{name}'))
		assert (got.status, got.json['code']) == (409, 'not_traced'), (name, got)
	assert admin.get(at(bare, '/trace/commands')).json['items'] == []
	for box in (bare, half):
		assert admin.delete(at(box)).status == 200


def test_one_that_is_cut_off_is_not_complete(server, admin):
	box, got = admin.create(), []
	thread = threading.Thread(target=lambda: got.append(admin.post(at(box, '/exec'), {'command': 'echo > /workspace/f; sleep 30', 'trace': ['files']})))
	thread.start()
	wait_for(lambda: any(entry['path'] == '/workspace/f' for entry in admin.get(at(box, '/trace/files')).json['items']), 'it to be told')
	for pid in server.cloche.processes(box, 'cloche-supervisor'):
		os.kill(pid, signal.SIGKILL)
	thread.join(timeout=30)
	done = got[0].json
	assert got[0].status == 200 and done['interrupted'] and done['trace_complete'] is False
	assert '/workspace/f' in [entry['path'] for entry in done['trace']['files']]
	assert admin.delete(at(box)).status == 200
