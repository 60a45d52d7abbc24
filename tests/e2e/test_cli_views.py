# SPDX-License-Identifier: Apache-2.0
"""What the views' own options do: labels, following, other users, spec files, verify over all, completion."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest

from harness import BUILD, WORK, wait_for

OTHER = 4321


def as_user(cloche, uid, *args):
	"""Calls the program as a user who has neither sudo nor the test's folders."""
	return subprocess.run(['setpriv', '--reuid', str(uid), '--regid', str(uid), '--clear-groups', cloche.program, *args],
		env=cloche.env(), cwd='/', capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def open_cloche(own_cloche, tmp_path):
	"""A state that other users can reach, as /var/lib/cloche is."""
	for folder in [tmp_path, *tmp_path.parents][:3]:
		if folder != pathlib.Path('/tmp'):
			folder.chmod(0o755)
	copy = tmp_path / 'program'
	copy.mkdir()
	for name in ('cloche', 'cloche-supervisor', 'cloche-init', 'cloche-gateway'):
		shutil.copy(BUILD / name, copy / name)
	copy.chmod(0o755)
	own_cloche.program = copy / 'cloche'
	return own_cloche


def test_a_user_reads_his_own_records_and_no_others(open_cloche):
	theirs = open_cloche.run('/bin/true')
	own = open_cloche.run('/bin/echo', 'mine', env={'SUDO_UID': str(OTHER), 'SUDO_GID': str(OTHER)})
	done = as_user(open_cloche, OTHER, 'ps', '--all', '--quiet')
	assert done.stdout.split() == [own.record.id], done
	for verb in ('tree', 'commands', 'files', 'net', 'events', 'log', 'timeline', 'show', 'verify', 'inspect'):
		done = as_user(open_cloche, OTHER, verb, 'last')
		assert done.returncode == 0 and done.stdout, (verb, done)
		done = as_user(open_cloche, OTHER, verb, theirs.record.id)
		assert done.returncode == 125 and done.stdout == '', (verb, done)
		assert 'belongs to another user' in done.stderr and 'sudo' in done.stderr, (verb, done)
	assert as_user(open_cloche, OTHER + 1, 'log', 'last').returncode == 125
	assert json.loads(as_user(open_cloche, OTHER, 'log', 'last', '--jsonl').stdout)['argv'] == ['/bin/echo', 'mine']


def test_what_needs_root_says_so(open_cloche):
	box = open_cloche.create()
	for args in (['run', '--', '/bin/true'], ['create'], ['exec', box.id, '--', '/bin/true'], ['stop', box.id]):
		done = as_user(open_cloche, OTHER, *args)
		assert done.returncode == 125 and 'sudo' in done.stderr.splitlines()[0], done
	box.remove()
	own = open_cloche.run('/bin/true', options=('--keep',), env={'SUDO_UID': str(OTHER), 'SUDO_GID': str(OTHER)})
	for options in ([], ['--changes'], ['--bodies'], ['--record']):
		done = as_user(open_cloche, OTHER, 'rm', *options, own.record.id)
		assert done.returncode == 125 and 'sudo' in done.stderr, (options, done)
	assert own.record.show()['complete'] and open_cloche.call('rm', own.record.id).code == 0


@pytest.mark.parametrize('form', ['--json', '--jsonl'])
def test_gc_says_what_it_did_as_json(own_cloche, form):
	assert json.loads(own_cloche.call('gc', form).out) == {'mended': 0, 'records': 0, 'images': 0, 'layers': 0}


def test_label_reads_several_sandboxes_as_one(own_cloche):
	first = own_cloche.sh('touch /workspace/one', options=('--label', 'run=7', '--label', 'n=1'))
	second = own_cloche.sh('touch /workspace/two', options=('--label', 'run=7', '--label', 'n=2'))
	own_cloche.sh('touch /workspace/three', options=('--label', 'run=8'))
	both = {first.record.id, second.record.id}
	for verb in ('tree', 'commands', 'files', 'timeline', 'events', 'log', 'stats'):
		lines = [json.loads(line) for line in own_cloche.call(verb, '--label', 'run=7', '--jsonl').out.splitlines()]
		assert {line['sandbox'] for line in lines} == both, verb
		assert json.loads(own_cloche.call(verb, '--label', 'run=7', '--json').out) == lines, verb
		one = own_cloche.call(verb, '--label', 'run=7', '--label', 'n=2').out
		assert one == own_cloche.call(verb, second.record.id).out != '', verb
	at = [line['at'] for line in map(json.loads, own_cloche.call('timeline', '--label', 'run=7', '--jsonl').out.splitlines())]
	assert at == sorted(at)
	text = own_cloche.call('timeline', '--label', 'run=7').out.splitlines()
	assert {line.split()[0] for line in text} == both
	assert {show['sandbox'] for show in json.loads(own_cloche.call('show', '--label', 'run=7', '--json').out)} == both
	assert own_cloche.call('tree', '--label', 'run=9').code == 125
	assert own_cloche.call('tree', 'last', '--label', 'run=7').code == 2


def test_json_is_one_document_and_jsonl_one_object_a_line(cloche):
	run = cloche.sh("printf 'a\\nb' > \"$(printf 'x\\ny')\"; true")
	for verb in ('tree', 'commands', 'files', 'timeline', 'events', 'log', 'stats'):
		whole = json.loads(cloche.call(verb, run.record.id, '--json').out)
		lines = [json.loads(line) for line in cloche.call(verb, run.record.id, '--jsonl').out.splitlines()]
		assert whole == lines and whole, verb


@pytest.mark.parametrize('verb, says', [('events', 'file.open'), ('log', '/bin/touch'), ('timeline', '/workspace/made'),
	('files', '/workspace/made'), ('commands', 'touch'), ('stats', 'CPU%')])
def test_follow_ends_with_the_sandbox_and_has_all(sandbox, verb, says):
	box = sandbox('--trace')
	follower = box.cloche.start(verb, box.id, '--follow')
	box.exec('/bin/touch', '/workspace/made')
	box.cloche.call('stop', box.id)
	out, err = follower.communicate(timeout=30)
	assert follower.returncode == 0 and err == b'' and says in out.decode(), (out, err)


def test_follow_prints_while_the_command_runs(sandbox, tmp_path):
	box = sandbox('--trace')
	with open(tmp_path / 'out', 'wb') as out:
		follower = box.cloche.start('events', box.id, '--follow', '--jsonl', stdout=out)
	running = box.start('/bin/sh', '-c', 'touch /workspace/early; sleep 60')
	wait_for(lambda: '/workspace/early' in (tmp_path / 'out').read_text(), 'the event to arrive')
	assert running.poll() is None
	box.cloche.call('stop', box.id)
	assert follower.wait(30) == 0
	running.communicate(timeout=30)


def test_exec_is_found_by_its_beginning(sandbox):
	box = sandbox('--trace')
	first, second = box.sh('touch /workspace/one'), box.sh('touch /workspace/two')
	common = os.path.commonprefix([first.record.exec_id, second.record.exec_id])
	short = second.record.exec_id[:len(common) + 1]
	assert list(json.loads(box.cloche.call('files', box.id, '--exec', short, '--json').out))[-1]['path'] == '/workspace/two'
	done = box.cloche.call('files', box.id, '--exec', common)
	assert done.code == 125 and 'several' in done.err
	done = box.cloche.call('files', box.id, '--exec', 'ex_none')
	assert done.code == 125 and 'ex_none' in done.err


def test_spec_file_is_read_and_the_command_line_wins(cloche, tmp_path):
	(tmp_path / 'shown').mkdir()
	(tmp_path / 'shown' / 'f').write_text('in the spec\n')
	spec = {'task': 'from the file', 'name': 'n', 'labels': {'a': 'b'}, 'memory_bytes': '256M', 'trace': True,
		'mounts': [{'host': str(tmp_path / 'shown'), 'guest': '/shown', 'mode': 'ro'}]}
	(tmp_path / 'spec.json').write_text(json.dumps(spec))
	run = cloche.run('/bin/cat', '/shown/f', options=('--task', 'named', '--spec', str(tmp_path / 'spec.json')))
	assert run.out == 'in the spec\n', run
	meta = json.loads(cloche.call('inspect', run.record.id).out)['meta']['spec']
	assert (meta['task'], meta['name'], meta['labels'], meta['memory_bytes']) == ('named', 'n', {'a': 'b'}, 256 << 20)


@pytest.mark.parametrize('text, says', [('{"memry": 1}', "no key 'memry'"), ('a: b\n', 'JSON'), ('{', 'JSON'),
	('{"mounts": [{"host": "/nosuch", "guest": "/x", "mode": "ro"}]}', '/nosuch'), ('{"trace": {"mounts": 1}}', 'mounts')])
def test_bad_spec_file_is_one_sentence(own_cloche, tmp_path, text, says):
	(tmp_path / 'spec').write_text(text)
	done = own_cloche.call('create', '--spec', str(tmp_path / 'spec'))
	assert done.code in (2, 125) and says in done.err and len(done.err.splitlines()) == 1, done
	assert not own_cloche.left_behind()


def test_verify_all_names_a_record_that_is_gone(own_cloche):
	kept, lost, removed = (own_cloche.run('/bin/true').record.id for _ in range(3))
	assert own_cloche.call('rm', '--record', removed).code == 0
	done = own_cloche.call('verify', '--all')
	assert done.code == 0 and removed not in done.out, done
	shutil.rmtree(own_cloche.state / 'records' / lost)
	done = own_cloche.call('verify', '--all', '--json')
	found = {entry['sandbox']: entry for entry in json.loads(done.out)}
	assert done.code == 1 and found[kept]['intact'] and not found[lost]['intact'], done
	assert 'not there' in found[lost]['findings'][0] and removed not in found


def age(cloche, sandbox, days=31):
	past = time.time() - days * 86400
	os.utime(cloche.state / 'records' / sandbox / 'seal.json', (past, past))


def test_verify_says_what_aged_out(open_cloche):
	own_cloche = open_cloche
	old, young, removed = (own_cloche.run('/bin/true').record.id for _ in range(3))
	head = json.loads(own_cloche.call('verify', old, '--json').out)['head']
	age(own_cloche, old)
	assert own_cloche.call('gc', '--older', '40d').out == '0 sandboxes mended\n'
	gone = own_cloche.call('gc', '--older', '30d')
	assert gone.code == 0 and gone.out.splitlines()[1].startswith('1 record removed that aged out, '), gone
	assert own_cloche.call('rm', '--record', removed).code == 0
	assert {entry.name for entry in (own_cloche.state / 'records').iterdir()} == {young}
	for word in (old, old[:-1], old[3:]):
		told = own_cloche.call('verify', word)
		assert told.code == 0 and told.out.startswith(f'{old}  aged out  at 2') and f'by uid:0, its last head was {head} ' in told.out and 'missing' not in told.out, told
	assert own_cloche.call('verify', removed).out.startswith(f'{removed}  removed  at 2')
	told = json.loads(own_cloche.call('verify', old, '--json').out)
	assert (told['sandbox'], told['intact'], told['removed'], told['removed_by'], told['head'], told['findings']) == (old, None, 'aged out', 'uid:0', head, [])
	assert json.loads(own_cloche.call('verify', removed, '--jsonl').out)['removed'] == 'on request'
	assert own_cloche.call('verify', old, '--expect-head', head).code == 0
	wrong = own_cloche.call('verify', old, '--expect-head', 'f' * 64)
	assert wrong.code == 1 and f'its last head was {head}, not the expected {"f" * 64}' in wrong.out, wrong
	done = own_cloche.call('verify', '--all')
	assert done.code == 0 and done.out.splitlines()[-1] == '1 looked at, 0 not intact, 1 aged out, 1 removed' and old not in done.out, done
	assert [row['sandbox'] for row in json.loads(own_cloche.call('verify', '--all', '--json').out)] == [young]
	nothing = own_cloche.call('verify', 'sb_' + '0' * 16)
	assert nothing.code == 125 and 'there is no sandbox' in nothing.err, nothing
	nobody = as_user(own_cloche, OTHER, 'verify', old)
	assert nobody.returncode == 125 and 'which root can read' in nobody.stderr, nobody
	journal = own_cloche.state / 'audit.jsonl'
	journal.write_text('{"v":1,"n":1,"prev":"%s","at":"2026-01-01T00:00:00.000Z","act":"x"}\n{"v":1,"n":2,"prev":"%s","at":"2026-01-01T00:00:00.000Z","act":"x"}\n' % ('0' * 64, '0' * 64))
	done = own_cloche.call('verify', '--all')
	assert done.code == 1 and "the audit journal's chain breaks before line 2" in done.out, done
	journal.unlink()


def test_gc_keeps_what_is_in_use(own_cloche):
	(own_cloche.cwd / 'f').write_text('before')
	changed = own_cloche.sh('echo after > f', options=('-m', f'{own_cloche.cwd}:{WORK}:cow')).record.id
	plain, alive = own_cloche.run('/bin/true').record.id, own_cloche.create()
	account = own_cloche.run('/bin/true', options=('--account', 'a')).record.id
	for sandbox in (changed, plain, account):
		age(own_cloche, sandbox)
	over = own_cloche.call('gc', '--max', '1')
	assert over.code == 0 and '1 record removed that aged out' in over.out and '1 record over the size stay' in over.out, over
	assert {entry.name for entry in (own_cloche.state / 'records').iterdir()} == {changed, alive.id, account} and own_cloche.call('verify', plain).out.startswith(f'{plain}  aged out')
	assert json.loads(own_cloche.call('gc', '--older', '30d', '--json').out)['records'] == 1
	assert {entry.name for entry in (own_cloche.state / 'records').iterdir()} == {alive.id, account} and [entry.name for entry in (own_cloche.state / 'changes').iterdir()] == [alive.id]
	assert (own_cloche.cwd / 'f').read_text() == 'before'
	alive.remove()


def test_verify_takes_a_key_and_a_head_kept_elsewhere(own_cloche, tmp_path):
	run = own_cloche.run('/bin/true')
	entry = json.loads(own_cloche.call('verify', run.record.id, '--json').out)
	assert entry['sealed'] and entry['intact'] and entry['ledger']
	assert own_cloche.call('verify', run.record.id, '--expect-head', entry['head']).code == 0
	assert own_cloche.call('verify', run.record.id, '--expect-head', 'f' * 64).code == 1
	shutil.copy(own_cloche.state / 'host.pub', tmp_path / 'this.pub')
	assert own_cloche.call('verify', run.record.id, '--key', str(tmp_path / 'this.pub')).code == 0
	subprocess.run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', tmp_path / 'k'], check=True, capture_output=True)
	subprocess.run(['openssl', 'pkey', '-in', tmp_path / 'k', '-pubout', '-out', tmp_path / 'other.pub'], check=True)
	assert own_cloche.call('verify', run.record.id, '--key', str(tmp_path / 'other.pub')).code == 1


def test_rm_says_what_went_and_what_stays(own_cloche):
	box = own_cloche.create('-m', f'{own_cloche.cwd}:{WORK}:cow')
	assert box.sh('echo x > new').code == 0
	stay = 'its record and changes that were not applied stay'
	for options, told in (((), f'removed the sandbox; {stay}'), ((), f'removed nothing; {stay}'),
		(('--changes',), 'removed its changes; its record stays'), (('--record',), 'removed its record')):
		done = own_cloche.call('rm', *options, box.id)
		assert (done.code, done.out, done.err) == (0, f'{box.id}: {told}\n', ''), (options, done)
	assert own_cloche.call('ps').out == 'ID  STATE  AGE  NAME  TASK\n'
	for form in ('--quiet', '--json'):
		done = own_cloche.call('rm', form, own_cloche.run('/bin/true').record.id)
		assert (done.code, done.out, done.err) == (0, '', ''), done


def test_ps_tells_the_states_apart(own_cloche):
	ended = own_cloche.run('/bin/true', options=('--label', 'k=v')).record.id
	box = own_cloche.create('--name', 'boxed\x1b[2J')
	assert own_cloche.call('ps', '--quiet').out.split() == [box.id]
	states = {entry['id']: entry['state'] for entry in json.loads(own_cloche.call('ps', '--all', '--json').out)}
	assert states == {ended: 'ended', box.id: 'running'}
	own_cloche.call('pause', box.id)
	assert json.loads(own_cloche.call('ps', '--jsonl').out)['state'] == 'paused'
	assert '\x1b' not in own_cloche.call('ps').out
	assert own_cloche.call('ps', '--all', '--label', 'k=v', '--quiet').out.split() == [ended]
	assert own_cloche.call('ps', '--all', '--since', '1970-01-02', '--quiet').out.split() == [box.id, ended]
	box.remove()


@pytest.mark.parametrize('shell', ['bash', 'zsh', 'fish'])
def test_completion_names_every_verb(own_cloche, shell):
	done = own_cloche.call('completion', shell)
	assert done.code == 0
	for verb in ('run', 'exec', 'timeline', 'verify'):
		assert verb in done.out
	assert '--memory' in done.out or '-l memory' in done.out


def test_completion_completes_in_bash(own_cloche):
	script = own_cloche.call('completion', 'bash').out + '\nCOMP_WORDS=(cloche run --mem); COMP_CWORD=2; _cloche; echo "${COMPREPLY[@]}"'
	done = subprocess.run(['bash', '-c', script], capture_output=True, text=True, check=True)
	assert done.stdout == '--memory\n' and done.stderr == ''
