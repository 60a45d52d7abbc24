# SPDX-License-Identifier: Apache-2.0
"""A sandbox that ends its processes, keeps its files and goes on later: one record, one id, one verify."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest

from harness import kill_and_wait, wait_for


def state_of(cloche, sandbox):
	return json.loads(cloche.call('inspect', sandbox).out)['state']


def verify(cloche, sandbox):
	done = cloche.call('verify', sandbox)
	assert done.code == 0, done
	return done


def check_whole(box):
	"""No number is missing or doubled, time does not go back, every start has its end, rows count up."""
	events = box.record.events(None, '--noise', '--internal')
	assert [event['seq'] for event in events] == list(range(1, len(events) + 1))
	life = [event['guest_ns'] for event in events if event['kind'].startswith(('sandbox.', 'exec.'))]
	assert life == sorted(life)
	starts = [event['exec'] for event in events if event['kind'] == 'exec.start']
	assert sorted(starts) == sorted(event['exec'] for event in events if event['kind'] == 'exec.end')
	assert sorted(row['id'] for row in box.record.rows()) == list(range(1, len(starts) + 1))
	return events


def lives(box):
	return [event['kind'].split('.')[1] for event in box.record.events() if event['kind'].startswith('sandbox.') and event['kind'] != 'sandbox.stats']


def test_files_survive_and_the_record_goes_on(sandbox, cloche, project):
	(project / 'a').write_text('first')
	box = sandbox('-m', f'{project}:/work:cow', '--label', 'k=v')
	box.sh('echo mark > /etc/mark; mkdir /opt/d; echo o > /opt/d/o; echo second > /work/a; rm /usr/bin/awk; chown 7:8 /etc/mark; echo t > /dev/shm/t')
	[supervisor] = box.supervisor()
	assert cloche.call('suspend', box.id).code == 0
	assert not pathlib.Path(f'/proc/{supervisor}').exists() or wait_for(
		lambda: not pathlib.Path(f'/proc/{supervisor}').exists(), 'its end')
	assert state_of(cloche, box.id) == 'suspended'
	assert [(one['id'], one['state']) for one in json.loads(cloche.call('ps', '--json').out)] == [(box.id, 'suspended')]
	verify(cloche, box.id)
	assert [change['path'] for root in box.record.changes() for change in root.get('changed', [])] == ['/work/a']
	assert not any(cgroup for cgroup in cloche.left_behind() if cgroup.startswith(('cgroup', 'process', 'pin', 'mount')))
	refused = cloche.call('exec', box.id, '--', '/bin/true')
	assert refused.code == 125 and f'cloche resume {box.id}' in refused.err
	assert cloche.call('gc').out.startswith('0 sandboxes mended\n')

	assert cloche.call('resume', box.id, '--trace').code == 0
	assert state_of(cloche, box.id) == 'running'
	done = box.sh('cat /etc/mark /opt/d/o /work/a; ls /usr/bin/awk /dev/shm/t 2>/dev/null; stat -c "%u %g" /etc/mark /work/a; echo third > /work/a')
	assert done.out == 'mark\no\nsecond\n7 8\n0 0\n'
	assert done.record.nodes('/bin/cat') or done.record.nodes('/usr/bin/cat')  # traced from now on
	verify(cloche, box.id)
	assert cloche.call('suspend', box.id).code == 0 and cloche.call('resume', box.id, '--no-trace').code == 0
	assert box.sh('cat /work/a').out == 'third\n'
	assert cloche.call('stop', box.id).code == 0
	verify(cloche, box.id)
	check_whole(box)
	assert lives(box) == ['created', 'started', 'suspended', 'resumed', 'suspended', 'resumed', 'stopped', 'removed']
	assert (project / 'a').read_text() == 'first'
	assert cloche.call('apply', box.id).code == 0
	assert (project / 'a').read_text() == 'third\n'
	assert state_of(cloche, box.id) == 'ended'


def test_what_runs_ends_with_a_row(sandbox, cloche):
	box = sandbox('--trace')
	process = box.start('/bin/sh', '-c', 'echo begun; sleep 1000')
	assert process.stdout.readline() == b'begun\n'
	assert cloche.call('suspend', box.id).code == 0
	out, _ = process.communicate(timeout=10)
	assert out == b'' and process.returncode == 137
	assert cloche.call('resume', box.id).code == 0
	box.sh('exit 3')
	rows = box.record.rows()
	assert rows[0]['signal'] == 9 and rows[1]['exit_code'] == 3
	check_whole(box)
	verify(cloche, box.id)


def test_paused_one_is_suspended_and_wakes_up_running(sandbox, cloche):
	box = sandbox()
	assert cloche.call('pause', box.id).code == 0
	assert cloche.call('suspend', box.id).code == 0
	assert cloche.call('resume', box.id).code == 0
	assert box.sh('echo here').out == 'here\n'
	assert state_of(cloche, box.id) == 'running'
	assert lives(box) == ['created', 'started', 'paused', 'suspended', 'resumed']


def test_refused_with_a_sentence(sandbox, cloche):
	box = sandbox()
	running = cloche.call('resume', box.id)
	assert running.code == 125 and 'is running already' in running.err
	assert cloche.call('suspend', box.id).code == 0
	twice = cloche.call('suspend', box.id)
	assert twice.code == 125 and 'is suspended' in twice.err
	assert cloche.call('resume', box.id).code == 0
	cloche.call('stop', box.id)
	ended = cloche.call('resume', box.id)
	assert ended.code == 125 and 'has ended and kept no files' in ended.err
	assert cloche.call('resume', 'sb_0000000000000000').code == 125


def test_a_run_that_is_waited_for_is_not_suspended(cloche, tmp_path):
	id_file = tmp_path / 'id'
	process = cloche.start('run', '--id-file', id_file, '--', '/bin/sh', '-c', 'sleep 1; exit 5')
	sandbox = wait_for(lambda: id_file.exists() and id_file.read_text().strip(), 'the id')
	refused = cloche.call('suspend', sandbox)
	assert refused.code == 125 and '`cloche run`' in refused.err
	process.communicate(timeout=20)
	assert process.returncode == 5


def test_two_resumes_at_once(sandbox, cloche):
	box = sandbox()
	box.sh('echo x > /etc/x')
	cloche.call('suspend', box.id)
	results = []
	threads = [threading.Thread(target=lambda: results.append(cloche.call('resume', box.id))) for _ in range(4)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	assert sorted(done.code for done in results) == [0, 125, 125, 125]
	for done in results:
		assert done.code == 0 or 'is running' in done.err, done
	assert box.sh('cat /etc/x').out == 'x\n'
	assert len(box.supervisor()) == 1
	assert lives(box).count('resumed') == 1


def test_resume_that_fails_changes_nothing(sandbox, cloche, project):
	(project / 'in').mkdir()
	box = sandbox('-m', f'{project}/in:/work:cow')
	box.sh('echo x > /work/x; echo y > /etc/y')
	cloche.call('suspend', box.id)
	os.rename(project / 'in', project / 'away')
	refused = cloche.call('resume', box.id)
	assert refused.code == 125 and f'{project}/in' in refused.err
	assert state_of(cloche, box.id) == 'suspended'
	os.rename(project / 'away', project / 'in')
	# This one fails in the supervisor: its folder has been opened up to a link by then.
	lower = cloche.state / 'sandboxes' / box.id / 'root.work'
	os.rename(lower, lower.with_name('hidden'))
	lower.write_text('no folder')
	refused = cloche.call('resume', box.id)
	assert refused.code == 125, refused
	assert state_of(cloche, box.id) == 'suspended'
	verify(cloche, box.id)
	lower.unlink()
	os.rename(lower.with_name('hidden'), lower)
	assert cloche.call('resume', box.id).code == 0
	assert box.sh('cat /work/x /etc/y').out == 'x\ny\n'
	check_whole(box)


def test_suspend_that_cannot_keep_files_ends_with_what_changed(own_cloche, project):
	box = own_cloche.create('-m', f'{project}:/work:cow')
	box.sh('echo x > /work/new')
	(own_cloche.state / 'sandboxes' / box.id / 'rest.json' / 'full').mkdir(parents=True)
	refused = own_cloche.call('suspend', box.id)
	assert refused.code == 125 and 'its files cannot be kept, so it ended' in refused.err, refused
	assert state_of(own_cloche, box.id) == 'ended'
	assert '1 added' in own_cloche.call('show', box.id).out
	verify(own_cloche, box.id)


def test_removed_while_suspended(sandbox, cloche, project):
	(project / 'a').write_text('first')
	box = sandbox('-m', f'{project}:/work:cow')
	box.sh('echo second > /work/a; echo x > /etc/x')
	cloche.call('suspend', box.id)
	assert cloche.call('rm', box.id).code == 0
	assert not cloche.left_behind()
	assert not any(box.id in kept.read_text() for kept in (cloche.state / 'ids').iterdir())
	verify(cloche, box.id)
	assert lives(box)[-3:] == ['suspended', 'stopped', 'removed']
	assert state_of(cloche, box.id) == 'ended'
	roots = {root['root']: root for root in box.record.changes()}
	assert [change['path'] for change in roots['/etc']['added']] == ['/etc/x']
	assert cloche.call('apply', box.id).code == 0
	assert (project / 'a').read_text() == 'second\n'


def kill_at(cloche, sandbox, verb, after_s):
	"""Asks, and kills the supervisor that long afterwards."""
	process = cloche.start(verb, sandbox)
	time.sleep(after_s)
	for end in (lambda: None, lambda: process.communicate(timeout=20)):
		end()  # it may not have been there yet
		for pid in cloche.processes(sandbox, 'cloche-supervisor'):
			kill_and_wait(pid)


@pytest.mark.parametrize('verb', ['suspend', 'resume'])
@pytest.mark.parametrize('round_', range(6))
def test_killed_half_way(own_cloche, verb, round_):
	box = own_cloche.create()
	box.sh('echo x > /etc/x; dd if=/dev/urandom of=/usr/big bs=1M count=4 2>/dev/null')
	if verb == 'resume':
		assert own_cloche.call('suspend', box.id).code == 0
	kill_at(own_cloche, box.id, verb, random.Random(f'{verb}{round_}').random() * 0.06)
	done = own_cloche.call('gc')
	assert done.code == 0, done
	assert own_cloche.call('gc').out == '0 sandboxes mended\n'
	state = state_of(own_cloche, box.id)
	assert state in ('suspended', 'cut')
	verified = own_cloche.call('verify', box.id)
	assert verified.code == 0, verified
	if state == 'suspended':
		assert own_cloche.call('resume', box.id).code == 0
		assert box.sh('cat /etc/x').out == 'x\n'
		assert own_cloche.call('rm', box.id).code == 0
		verify(own_cloche, box.id)
	check_whole(box)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_resume_that_is_interrupted_loses_nothing(own_cloche, number):
	"""Its files were there before whoever resumes it, and stay when that one goes before it is done."""
	box = own_cloche.create()
	box.sh('echo precious > /etc/x')
	for after_s in (0.01, 0.03, 0.05, 0.07, 0.09):
		assert own_cloche.call('suspend', box.id).code == 0
		process = own_cloche.start('resume', box.id)
		time.sleep(after_s)
		process.send_signal(number)
		process.communicate(timeout=20)
		wait_for(lambda: box.sh('cat /etc/x').out == 'precious\n' or own_cloche.call('resume', box.id).code < 0, 'the file')
		verify(own_cloche, box.id)
	box.remove()


def test_ids_stay_reserved(own_cloche):
	box = own_cloche.create()
	box.sh('touch /etc/mine')
	own_cloche.call('suspend', box.id)
	[kept] = (own_cloche.state / 'ids').iterdir()
	assert kept.read_text() == f'{box.id} kept'
	others = [own_cloche.create() for _ in range(3)]
	assert len({entry.name for entry in (own_cloche.state / 'ids').iterdir()}) == 4
	for other in others:
		other.remove()
	assert own_cloche.call('resume', box.id).code == 0
	assert box.sh('stat -c "%u" /etc/mine').out == '0\n'
	assert kept.read_text() == box.id
	box.remove()


@pytest.mark.parametrize('what', [(), ('--changes',), ('--record',)])
def test_removed_while_it_is_put_away(own_cloche, project, what):
	"""Between its last answer and its rest it hears nobody: whoever removes it then waits."""
	if shutil.which('strace') is None:
		pytest.skip('needs strace')
	box = own_cloche.create('-m', f'{project}:/work:cow')
	box.sh('echo x > /work/x; echo y > /etc/y')
	[supervisor] = box.supervisor()
	slow = subprocess.Popen(['strace', '-qq', '-o', '/dev/null', '-e', 'inject=syncfs:delay_enter=1500000', '-p', str(supervisor)])
	wait_for(lambda: 'TracerPid:\t0\n' not in pathlib.Path(f'/proc/{supervisor}/status').read_text(), 'strace')
	process = own_cloche.start('suspend', box.id)
	wait_for(lambda: not own_cloche.processes(box.id, 'cloche-init'), 'its silence')
	time.sleep(0.3)
	assert process.poll() is None
	removed = own_cloche.call('rm', *what, box.id)
	assert process.communicate(timeout=20) == (b'', b'') and slow.wait(timeout=20) is not None
	assert removed.code == 0, removed
	assert not own_cloche.left_behind()
	assert (own_cloche.state / 'changes' / box.id).exists() == (not what)
	assert (own_cloche.state / 'records' / box.id).exists() == (what != ('--record',))
	if what != ('--record',):
		verify(own_cloche, box.id)
		assert {change['path'] for root in box.record.changes() for change in root.get('added', [])} == {'/work/x', '/etc/y'}
	assert own_cloche.call('verify', '--all').code == 0


def test_removed_while_others_end_and_resume_it(own_cloche, project):
	"""Whoever comes first: what was removed is gone with all that belongs to it, and nothing comes back."""
	how = random.Random(11)
	for _ in range(6):
		box = own_cloche.create('-m', f'{project}:/work:cow')
		if how.random() < 0.5:
			own_cloche.call('suspend', box.id)
		others = [own_cloche.start(how.choice(['suspend', 'resume', 'stop', 'fork', 'rm']), box.id) for _ in range(3)]
		time.sleep(how.random() * 0.08)
		removed = own_cloche.call('rm', '--record', box.id)
		forks = [process.communicate(timeout=30)[0].decode().split() for process in others]
		for fork in sum(forks, []):
			own_cloche.call('rm', '--record', fork)
		assert removed.code == 0, removed
		assert not (own_cloche.state / 'records' / box.id).exists() and not (own_cloche.state / 'changes' / box.id).exists()
		own_cloche.check_clean()
	assert own_cloche.call('verify', '--all').code == 0


def test_the_end_of_a_removed_one_is_told_once(own_cloche):
	"""Whoever removes it is killed when all is written but the seal: the next one seals it."""
	box = own_cloche.create()
	box.sh('echo y > /etc/y')
	assert own_cloche.call('suspend', box.id).code == 0
	killed = own_cloche.strace(['-f', '-e', 'inject=sendto:signal=KILL:when=1'], 'rm', box.id)
	assert killed.returncode == 125 and 'could not be mended' in killed.stderr, killed
	assert [event['kind'] for event in box.record.events()][-2:] == ['sandbox.stopped', 'sandbox.removed']
	assert own_cloche.call('gc').out == '1 sandbox mended\n'
	kinds = [event['kind'] for event in box.record.events()]
	assert kinds.count('sandbox.stopped') == 1 and kinds.count('sandbox.removed') == 1 and kinds[-1] == 'sandbox.removed', kinds
	verify(own_cloche, box.id)
