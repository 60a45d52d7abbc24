# SPDX-License-Identifier: Apache-2.0
"""What a user asks about the network, and what the server saw of it."""
import json
import os
import pty
import select
import time

import pytest

import harness
from harness import contents, wait_for
from world import UPSTREAM

GET = 'curl -sS -m 10 -o /dev/null -w "%{{http_code}}\\n" {}'
KEY = 'sk-ant-api03-the-real-value-0123456789'


def get(*urls):
	return '; '.join(GET.format(url) for url in urls)


def paths(world, host=None):
	"""Paths that the server was asked for."""
	lines = [entry['head'].split('\r\n') for entry in world.log('http')]
	return [line[0].split(' ')[1] for line in lines
		if host is None or f'host: {host}' in [header.lower() for header in line]]


@pytest.fixture
def seen(world):
	world.clear()
	return world


def test_allow_by_method_and_path(online, seen):
	run = online.sh(get('http://allowed.test/repos/me/x', 'https://allowed.test/repos/me/y', 'http://allowed.test/repos/you',
		'-X POST http://allowed.test/repos/me/x', 'https://allowed.test/repos/me/%2e%2e/you',
		'http://allowed.test/repos/me/..%2fyou'),
		options=('--allow', 'GET allowed.test/repos/me/**', *seen.net))
	assert run.lines == ['200', '200', '403', '403', '403', '403'], run
	assert paths(seen) == ['/repos/me/x', '/repos/me/y']
	refused = run.record.events('net.refused')
	assert len(refused) == 4 and {event['stage'] for event in refused} == {'http'}
	assert all('GET allowed.test/repos/me/**' in event['reason'] for event in refused), refused


def test_deny_wins(online, seen):
	run = online.sh(get('http://allowed.test/', 'http://x.wild.test/', 'http://y.wild.test/'),
		options=('--net', 'open', '--deny', '*.wild.test', '--allow', 'x.wild.test', *seen.net))
	assert run.lines == ['200', '403', '403'], run
	assert {event['rule'] for event in run.record.events('net.refused')} == {'deny *.wild.test'}


def test_shadow_and_the_rules_it_teaches(online, seen):
	script = get('http://allowed.test/a', 'https://allowed.test/b?q=1', 'http://other.wild.test/c')
	run = online.sh(script, options=('--allow', 'nothing.test', '--shadow', *seen.net))
	assert run.lines == ['200', '200', '200'], run
	shadowed = run.record.events('net.refused')
	assert shadowed and all(event['shadow'] for event in shadowed)
	rules = run.record.view('allow-list').splitlines()
	assert rules == ['allowed.test:80', 'allowed.test:443', 'other.wild.test:80'], rules
	exact = run.record.view('allow-list', '--paths').splitlines()
	assert exact == ['GET allowed.test:80/a', 'GET allowed.test:443/b', 'GET other.wild.test:80/c'], exact
	assert [item['rule'] for item in run.record.json('allow-list')] == rules
	# With these rules and nothing else the same run has nothing refused.
	for learned in (rules, exact):
		options = [word for rule in learned for word in ('--allow', rule)]
		again = online.sh(script, options=(*options, *seen.net))
		assert again.lines == ['200', '200', '200'] and not again.record.events('net.refused'), again


def test_allow_list_keeps_what_was_refused_apart(online, seen):
	run = online.sh(get('http://allowed.test/a', 'http://denied.test/'), options=('--allow', 'allowed.test', *seen.net))
	assert run.record.view('allow-list').splitlines() == ['allowed.test:80', '# refused: denied.test:80']
	run = online.sh(get('http://allowed.test/a', 'http://169.254.169.254/', 'http://10.0.0.5/', 'http://10.0.0.5/'),
		options=('--net', 'open', *seen.net))
	assert run.record.view('allow-list').splitlines() == ['allowed.test:80', '# refused: 169.254.169.254:80',
		'# refused: 10.0.0.5:80']
	assert [row['event'] for row in run.record.json('timeline') if row['what'] == 'host'] == ['connect']


def test_rules_of_a_running_sandbox(online, seen):
	box = online.create('--trace', '--allow', 'allowed.test', *seen.net)
	try:
		def code(url):
			return box.sh(get(url)).out.strip()

		def rules(*options):
			return online.call('net-rules', box.id, *options)

		assert code('http://allowed.test/') == '200' and code('http://other.wild.test/') == '403'
		assert rules().out == 'net    allow\nallow  allowed.test\n'
		done = rules('--allow', '*.wild.test', '--deny', 'allowed.test')
		assert done.out == 'net    allow\nallow  allowed.test\nallow  *.wild.test\ndeny   allowed.test\n', done
		assert code('http://allowed.test/') == '403' and code('http://other.wild.test/') == '200'
		assert rules('--remove', 'allowed.test').out == 'net    allow\nallow  *.wild.test\n'
		assert rules('--remove', 'nosuch.test').code == 125
		bad = rules('--allow', 'a:b')
		assert bad.code == 2 and 'a port is a number' in bad.err
		assert rules('--net', 'open').code == 0 and code('http://allowed.test/') == '200'
		assert rules('--reset').out == 'net    allow\nallow  allowed.test\n'
		assert code('http://allowed.test/') == '200' and code('http://other.wild.test/') == '403'
		assert json.loads(rules('--json').out)['allow'] == ['allowed.test']
		told = box.record.events('net.rules')
		assert [event.get('actor') for event in told[1:]] == ['uid:0'] * (len(told) - 1) and len(told) == 5, told
	finally:
		box.remove()


def test_secret_reaches_its_host_only(online, seen):
	send = 'curl -sS -m 10 -o /dev/null -w "%{http_code}\\n" -H "x-api-key: $API_KEY" '
	run = online.sh(f'echo "$API_KEY"; {send} https://allowed.test/in; {send} http://allowed.test/plain;'
		f' {send} https://other.wild.test/out', env={'API_KEY': KEY},
		options=('--secret', 'API_KEY@allowed.test', '-e', 'API_KEY', *seen.net))
	stand_in = run.lines[0]
	assert len(stand_in) == len(KEY) and stand_in.startswith('sk-ant-api03-') and stand_in != KEY
	heads = {entry['head'].split(' ')[1]: entry['head'] for entry in seen.log('http')}
	assert KEY in heads['/in'] and KEY not in heads.get('/plain', '') and KEY not in heads.get('/out', '')
	misuse = run.record.events('secret.misuse')
	assert misuse and all(event['name'] == 'API_KEY' for event in misuse), run
	# Neither state nor output holds it.
	for path, text in contents(online.state):
		assert KEY.encode() not in text, path
	assert KEY not in run.out + run.err


def test_secret_from_a_file(online, seen, tmp_path):
	(tmp_path / 'key').write_text(KEY + '\n')
	run = online.sh('curl -sS -m 10 -o /dev/null -H "authorization: Bearer $API_KEY" https://allowed.test/in',
		options=('--secret', 'API_KEY@allowed.test', '--secret-file', f'API_KEY={tmp_path}/key', *seen.net))
	assert run.code == 0, run
	assert f'Bearer {KEY}' in seen.log('http')[0]['head']


def test_host_map_leads_where_it_says(online, seen):
	run = online.sh(get('http://mapped.example/m', 'http://deep.mapped.example/d'), options=('--allow', '*.mapped.example',
		'--allow', 'mapped.example', '--host-map', f'mapped.example={UPSTREAM}', '--host-map',
		f'*.mapped.example={UPSTREAM}:80', *seen.net))
	assert run.lines == ['200', '200'] and paths(seen) == ['/m', '/d'], run
	assert not seen.log('dns')


@pytest.mark.parametrize('options, says', [
	(('--resolver', '203.0.113.77'), 'allowed.test'),
	(('--upstream-proxy', 'http://203.0.113.10:9'), 'proxy'),
])
def test_an_unreachable_way_out_fails_and_is_told(online, seen, options, says):
	net = options if options[0] == '--resolver' else (*seen.net, *options)
	run = online.sh('curl -sS -m 30 http://allowed.test/; echo "rc=$?"', options=net, limit_s=120)
	assert run.lines[-1] != 'rc=0' and not paths(seen), run
	told = [event for event in run.record.events() if event['kind'].startswith('net.')
		and (event.get('error') or event.get('result'))]
	assert told and says in json.dumps(told), run.record.events()


def at_terminal(cloche, answers, *args):
	"""Runs with a terminal and gives each answer when a question stands there; what was shown, and the exit code."""
	pid, fd = pty.fork()
	if pid == 0:
		os.environ.clear()
		os.environ.update(cloche.env())
		os.chdir(cloche.cwd)
		os.execvp('nsenter', ['nsenter', f'--net=/proc/{cloche.world.host.pid}/ns/net', str(harness.BUILD / 'cloche'), *args])
	shown, end, n = b'', time.monotonic() + 90, 0
	while time.monotonic() < end:
		if not select.select([fd], [], [], 1)[0]:
			continue
		try:
			data = os.read(fd, 4096)
		except OSError:
			break
		if not data:
			break
		shown += data
		if shown.count(b'then Enter: ') > n:
			os.write(fd, answers[n])
			n += 1
	_, status = os.waitpid(pid, 0)
	os.close(fd)
	return shown.decode(errors='replace'), os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize('terminal', ['-t', '-T'])
def test_ask_holds_until_somebody_answers(online, seen, terminal, tmp_path):
	id_file = tmp_path / 'id'
	script = get('http://allowed.test/a', 'http://other.wild.test/b', 'http://denied.test/c', 'http://denied.test/d')
	shown, code = at_terminal(online, [b'y\r', b'alwyas\r', b'always\r', b'n\r', b'n\r'], 'run', terminal, '-w', '/workspace', '--id-file',
		str(id_file), '--ask', *seen.net, '--', '/bin/sh', '-c', script)
	record = harness.Record(online, id_file.read_text().strip())
	asked = record.events('net.asked')
	assert [(event['host'], event['answer']) for event in asked[:3]] == [('allowed.test', 'allowed'),
		('other.wild.test', 'allowed'), ('denied.test', 'refused')], (shown, asked)
	assert all(event['actor'] == 'uid:0' and event['duration_ns'] > 0 for event in asked)
	assert paths(seen) == ['/a', '/b'], shown
	rules = record.events('net.rules')
	assert rules[-1]['rules'] == ['allow other.wild.test:80'] and rules[-1]['actor'] == 'uid:0'
	assert [(one['host'], one['port'], one['answer'], one['actor'], one['count']) for one in record.show()['asked'][:3]] == [
		(name, 80, answer, 'uid:0', 1) for name, answer in (('allowed.test', 'allowed'), ('other.wild.test', 'allowed'),
		('denied.test', 'refused'))]
	text = ' '.join(record.view('show').split())
	assert 'Asked allowed.test:80 allowed by uid:0; other.wild.test:80 allowed by uid:0; denied.test:80 refused by uid:0' in text, text
	assert [(row['host'], row['answer'], row['actor']) for row in record.json('timeline') if row.get('event') == 'net.asked'][:2] == [
		('allowed.test', 'allowed', 'uid:0'), ('other.wild.test', 'allowed', 'uid:0')]
	assert 'the sandbox wants to reach allowed.test port 80' in shown
	assert shown.count('the sandbox wants to reach other.wild.test port 80') == 2, shown


def test_ask_without_a_terminal_refuses_at_once(online, seen):
	begin = time.monotonic()
	process = online.start('run', '--ask', *seen.net, '-w', '/workspace', '--', '/bin/sh', '-c', get('http://allowed.test/'),
		start_new_session=True)
	out, err = process.communicate(timeout=60)
	assert out == b'403\n' and time.monotonic() - begin < 30, err
	assert not paths(seen)
	assert 'Asked allowed.test:80 refused by uid:0 (no terminal to ask at)' in ' '.join(err.decode().split()), err.decode()


def test_a_spec_file_says_the_same(online, seen, tmp_path):
	(tmp_path / 'spec.json').write_text(json.dumps({'network': {'allow': ['GET allowed.test/x'], 'resolver': UPSTREAM,
		'secrets': ['API_KEY@allowed.test,plain=yes']}, 'env': ['FROM_FILE=yes']}))
	run = online.sh('echo "$FROM_FILE"; curl -sS -m 10 -o /dev/null -w "%{http_code}\\n" -H "k: $API_KEY" http://allowed.test/x; '
		+ get('http://allowed.test/y'), options=('--spec', str(tmp_path / 'spec.json')), env={'API_KEY': KEY})
	assert run.lines == ['yes', '200', '403'], run
	assert f'k: {KEY}' in seen.log('http')[0]['head']
	(tmp_path / 'spec.json').write_text('{"network": {"secrets": [{"name": "K", "hosts": ["a"], "value": "sesame"}]}}')
	run = online.sh('true', options=('--spec', str(tmp_path / 'spec.json')))
	assert run.code == 2 and "there is no key 'value'" in run.err and 'sesame' not in run.err, run


def test_published_names_of_secrets_are_in_the_record(online, seen):
	run = online.sh('true', env={'API_KEY': KEY}, options=('--secret', 'API_KEY@allowed.test', *seen.net))
	meta = (online.state / 'records' / run.record.id / 'meta.json').read_text()
	assert json.loads(meta)['spec']['network']['secrets'] == [{'name': 'API_KEY', 'hosts': ['allowed.test'], 'plain': False}]
	assert KEY not in meta and 'BEGIN CERTIFICATE' not in meta


def test_secret_is_in_no_process_but_the_gateway(online, seen):
	box = online.create('--secret', 'API_KEY@allowed.test', *seen.net, env={'API_KEY': KEY})
	try:
		assert online.processes(f'CLOCHE_STATE={online.state}\0', 'cloche') and not online.processes(KEY)
		done = box.sh('curl -sS -m 10 -o /dev/null -H "x-api-key: $API_KEY" https://allowed.test/late')
		assert done.code == 0 and KEY in seen.log('http')[0]['head'], done
	finally:
		box.remove()


def test_questions_end_with_the_sandbox(online, seen):
	box = online.create('--ask', *seen.net)
	started = box.start('/bin/sh', '-c', get('http://allowed.test/'), start_new_session=True)
	wait_for(lambda: started.poll() is not None, 'the refusal', limit_s=30)
	assert box.remove().code == 0


@pytest.mark.parametrize('args, says', [
	(('run', '/bin/true', '--allow', 'allowed.test'), "'--allow' stands behind the command: put it before, or write --"),
	(('run', '--allow', 'GET', 'allowed.test/x', '--', '/bin/true'), "quote the rule as one, 'GET HOST[/PATH]'"),
	(('--net', 'none', 'run', '--', '/bin/true'), 'those of a verb stand behind it'),
	(('last', 'net'), '`cloche net last`'),
	(('rules', 'last'), "did you mean 'net-rules'?"),
	(('network', 'last'), "did you mean 'net'?")])
def test_what_stands_in_the_wrong_place_is_told(online, args, says):
	done = online.call(*args)
	assert done.code == 2 and says in done.err and not done.out, done


def test_options_of_the_command_are_its_own(online):
	run = online.run('/bin/echo', '--allow', options=('--net', 'none'))
	assert run.out == '--allow\n', run
