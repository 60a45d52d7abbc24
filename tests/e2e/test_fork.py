# SPDX-License-Identifier: Apache-2.0
"""New sandboxes over the files of a suspended one: at once, as often as asked for, none seeing what the others do later."""
import contextlib
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from harness import PYTHON, Sandbox, kill_and_wait, wait_for


@pytest.fixture
def fork(cloche):
	"""Forks that are removed at the end of the test."""
	made = []

	def make(box, *options, **how):
		done = cloche.call('fork', box.id, *options, **how)
		assert done.code == 0, done
		made.append(Sandbox(cloche, done.out.strip()))
		return made[-1]

	yield make
	for box in made:
		box.remove()


def suspend(box):
	assert box.cloche.call('suspend', box.id).code == 0


def resume(box):
	assert box.cloche.call('resume', box.id).code == 0


def layers(cloche):
	return sorted(entry.name for entry in (cloche.state / 'layers').iterdir() if entry.name.startswith('sb_'))


def changes(box):
	return {root['root']: {kind: sorted(change['path'] for change in root.get(kind, []))
		for kind in ('added', 'removed', 'changed', 'renamed', 'mode_changed') if root.get(kind)} for root in box.record.changes()}


def test_what_an_interrupted_gc_left_is_not_in_the_way_of_the_next(own_cloche):
	layer = own_cloche.state / 'layers' / 'sb_0000000000000000.1'
	left = layer.with_name(f'.tmp-gone-{layer.name}')
	for folder in (layer, left):
		(folder / 'fs' / 'd').mkdir(parents=True)
	assert json.loads(own_cloche.call('gc', '--json').out)['layers'] == 1
	assert not layer.exists() and not left.exists()


def test_neither_sees_what_the_other_does_later(sandbox, cloche, fork, project):
	(project / 'a').write_text('host\n')
	(project / 'gone').write_text('host\n')
	box = sandbox('-m', f'{project}:/work:cow', '--label', 'k=v', '--memory', '300M')
	box.sh('echo source > /etc/s; echo one > /work/a; rm /work/gone; mkdir /usr/local/d; chmod 711 /opt; chown 5:6 /etc/s')
	suspend(box)
	first, second = fork(box), fork(box, '--name', 'second')
	look = 'cat /etc/s /work/a; ls /work; ls -d /usr/local/d; stat -c "%u %g" /etc/s; stat -c %a /opt'
	for one in (first, second):
		assert one.sh(look).out == 'source\none\na\n/usr/local/d\n5 6\n711\n'
	first.sh('echo first > /etc/s; echo first > /work/a; echo x > /work/first; rmdir /usr/local/d')
	resume(box)
	assert box.sh(look).out == second.sh(look).out == 'source\none\na\n/usr/local/d\n5 6\n711\n'
	box.sh('echo later > /work/a; touch /work/later; echo later > /etc/s')
	assert first.sh('cat /etc/s /work/a; ls /work; ls /usr/local').out.startswith('first\nfirst\na\nfirst\n')
	assert second.sh('cat /etc/s /work/a; ls /work').out == 'source\none\na\n'
	assert changes(box)['/work'] == {'added': ['/work/later'], 'changed': ['/work/a'], 'removed': ['/work/gone']}
	assert changes(first)['/work'] == {'added': ['/work/first'], 'changed': ['/work/a'], 'removed': ['/work/gone']}
	assert changes(second)['/work'] == {'changed': ['/work/a'], 'removed': ['/work/gone']}
	assert changes(first)['/etc'] == {'added': ['/etc/s']}
	about = json.loads(cloche.call('inspect', second.id).out)['meta']['spec']
	assert about['forked_from'] == box.id and about['name'] == 'second'
	assert about['labels'] == {'k': 'v'} and about['memory_bytes'] == 300 << 20
	assert [one['forked_from'] for one in json.loads(cloche.call('ps', '--json').out) if one['id'] == first.id] == [box.id]
	[created] = second.record.events('sandbox.created')
	assert created['reason'] == f'forked from {box.id}'
	for one in (box, first, second):
		assert cloche.call('verify', one.id).code == 0
	assert (project / 'a').read_text() == 'host\n'


def test_applied_from_one_marks_nothing_in_another(sandbox, cloche, fork, project):
	for name in 'abc':
		(project / name).write_text('host\n')
	box = sandbox('-m', f'{project}:/work:cow')
	box.sh('cd /work; echo s > a; echo s > b; echo s > c')
	assert cloche.call('discard', box.id, '--', str(project / 'c')).code == 0
	suspend(box)
	one, two = fork(box), fork(box)
	assert changes(one)['/work'] == {'changed': ['/work/a', '/work/b']}  # what was thrown away before stays so
	one.sh('echo one > /work/a')
	assert cloche.call('apply', one.id, '--', str(project / 'a')).code == 0
	assert (project / 'a').read_text() == 'one\n' and (project / 'b').read_text() == 'host\n'
	assert changes(one)['/work'] == {'changed': ['/work/b']}
	assert changes(two)['/work'] == {'changed': ['/work/a', '/work/b']}
	assert cloche.call('discard', two.id, '--', str(project / 'b')).code == 0
	assert changes(box)['/work'] == {'changed': ['/work/a', '/work/b']}
	assert two.sh('cat /work/b').out == 's\n'


# Some of everything that makes marks in an upper, and on what earlier ones made.
WORK = r'''
import os, random, shutil, sys
random.seed(sys.argv[1])
os.chdir('/work')
def all_of(kind):
    found = []
    for at, folders, files in os.walk('.'):
        found += [os.path.join(at, n) for n in (folders if kind == 'd' else files)]
    return sorted(found)
for i in range(40):
    act = random.choice('write write append remove rename move mkdir rmtree chmod link replace symlink opaque swap'.split())
    files, folders = all_of('f'), all_of('d') or ['.']
    new = os.path.join(random.choice(folders + ['.']), 'n%s_%d' % (sys.argv[1], i))
    try:
        if act == 'write': open(new, 'w').write(new)
        elif act == 'mkdir': os.mkdir(new)
        elif act == 'append': open(random.choice(files), 'a').write('more')
        elif act == 'remove': os.remove(random.choice(files))
        elif act == 'rename': os.rename(random.choice(files), new)
        elif act == 'move':
            at = random.choice(folders)
            if not (new + '/').startswith(at + '/'): os.rename(at, new)
        elif act == 'rmtree' and len(files) > 15: shutil.rmtree(random.choice(folders))
        elif act == 'chmod': os.chmod(random.choice(files), random.choice([0o600, 0o755, 0o644]))
        elif act == 'link': os.link(random.choice(files), new)
        elif act == 'symlink': os.symlink('a', new)
        elif act == 'replace':
            at = random.choice(files)
            os.remove(at); os.mkdir(at); open(at + '/in', 'w').write(at)
        elif act == 'opaque':
            at = random.choice(folders)
            if at != '.': shutil.rmtree(at); os.mkdir(at); open(at + '/again', 'w').write(at)
        elif act == 'swap':
            a, b = random.choice(files), random.choice(files)
            if a != b: os.rename(a, new); os.rename(b, a); os.rename(new, b)
    except (OSError, IndexError, shutil.Error): pass
'''

LIST = r'''
import hashlib, os, stat, sys
os.chdir(sys.argv[1])
for at, folders, files in sorted(os.walk('.')):
    for n in sorted(folders + files):
        p = os.path.join(at, n); st = os.lstat(p)
        what = os.readlink(p) if stat.S_ISLNK(st.st_mode) else hashlib.sha256(open(p, 'rb').read()).hexdigest() if stat.S_ISREG(st.st_mode) else ''
        print(p, oct(st.st_mode), what)
'''


def tree_of(folder):
	return subprocess.run([PYTHON, '-c', LIST, folder], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize('seed', range(5))
def test_changes_of_a_fork_of_a_fork_make_the_host_the_same(sandbox, cloche, fork, project, seed):
	for i in range(12):
		folder = project / f'd{i % 4}' / f'e{i % 3}'
		folder.mkdir(parents=True, exist_ok=True)
		(folder / f'f{i}').write_text(f'{i}\n' * i)
		(project / f'top{i}').write_text(f'top{i}')
	box = sandbox('-m', f'{project}:/work:cow')
	generations = [box]
	for generation in range(3):
		done = generations[-1].py(WORK, f'{seed}{generation}')
		assert done.code == 0, done
		if generation < 2:
			suspend(generations[-1])
			generations.append(fork(generations[-1]))
	last = generations[-1]
	inside = last.py(LIST, '/work').out
	before = changes(last)
	for one in generations:
		assert cloche.call('rm', one.id).code == 0
	assert changes(last)['/work'] == before['/work']
	patch = cloche.call('diff', last.id)
	assert patch.code == 0, patch
	done = cloche.call('apply', last.id)
	assert done.code == 0, done
	assert tree_of(project) == inside


def test_twenty_forks_of_forks_are_as_one(sandbox, cloche, fork, project):
	"""More layers than one value of fsconfig(2) names, each with a commit."""
	git = 'git -c user.name=n -c user.email=n@example.org -c commit.gpgsign=false'
	subprocess.run(f'git init -q -b main; echo 0 > f; git add f; {git} commit -qm 0', shell=True, check=True, cwd=project)
	box = sandbox('-m', f'{project}:/work:cow')
	for n in range(20):
		done = box.sh(f'cd /work; echo {n + 1} > f; echo {n} > own{n}; git add .; {git} commit -qm {n + 1}')
		assert done.code == 0, done
		suspend(box)
		box = fork(box)
	done = cloche.call('apply', box.id, '--branch', 'agent')
	assert done.code == 0 and ': 20 commits\n' in done.out, done
	assert subprocess.run(['git', 'log', '--format=%s', 'agent'], cwd=project, check=True, capture_output=True, text=True).stdout.split() == [
		str(n) for n in range(20, -1, -1)]
	assert changes(box)['/work'] == {'changed': ['/work/f'], 'added': sorted(f'/work/own{n}' for n in range(20))}
	assert cloche.call('apply', box.id).code == 0
	assert (project / 'f').read_text() == '20\n' and (project / 'own19').read_text() == '19\n'


@pytest.mark.parametrize('call', ['openat', 'getdents64'])
@pytest.mark.parametrize('folder', ['changes', 'images'])
def test_no_layer_goes_where_what_names_it_cannot_be_read(own_cloche, folder, call):
	box = own_cloche.create('-m', f'{own_cloche.cwd}:/work:cow')
	box.sh('echo s > /work/a')
	suspend(box)
	one = Sandbox(own_cloche, own_cloche.call('fork', box.id).out.strip())
	assert own_cloche.call('rm', '--changes', box.id).code == 0
	assert own_cloche.call('rm', one.id).code == 0
	(own_cloche.state / 'images').mkdir(exist_ok=True)
	before = layers(own_cloche)
	done = own_cloche.strace(['-f', '-P', own_cloche.state / folder, '-e', f'inject={call}:error=EIO'], 'gc')
	assert done.returncode != 0 and f'{folder}\': Input/output error' in done.stderr, done
	assert layers(own_cloche) == before and f'{box.id}.1' in before
	assert changes(one)['/work'] == {'added': ['/work/a']}


def test_layers_go_when_nobody_names_them(own_cloche):
	project = own_cloche.cwd
	(project / 'a').write_text('host\n')
	box = own_cloche.create('-m', f'{project}:/work:cow')
	box.sh('echo s > /work/a; echo s > /etc/s')
	suspend(box)
	one = Sandbox(own_cloche, own_cloche.call('fork', box.id).out.strip())
	assert layers(own_cloche) == [f'{box.id}.1', f'{box.id}.2']
	assert own_cloche.call('rm', '--changes', box.id).code == 0
	assert own_cloche.call('gc').code == 0
	assert layers(own_cloche) == [f'{box.id}.1', f'{box.id}.2']
	assert one.sh('cat /work/a /etc/s').out == 's\ns\n'
	kill_and_wait(one.supervisor()[0])
	assert own_cloche.call('gc').code == 0
	assert layers(own_cloche) == [f'{box.id}.1', f'{box.id}.2']  # its change set is still to be applied
	assert changes(one)['/work'] == {'changed': ['/work/a']}
	assert own_cloche.call('apply', one.id).code == 0
	assert (project / 'a').read_text() == 's\n'
	assert own_cloche.call('gc').out == '0 sandboxes mended\n2 layers removed that nothing uses\n'
	assert layers(own_cloche) == []


@pytest.mark.parametrize('round_', range(8))
def test_fork_killed_half_way(own_cloche, round_):
	box = own_cloche.create()
	box.sh('echo s > /etc/s; echo s > /usr/s; echo s > /opt/s')
	suspend(box)
	process = own_cloche.start('fork', box.id)
	time.sleep(0.001 + 0.003 * round_)
	process.send_signal(signal.SIGKILL)
	process.communicate()
	sandboxes = own_cloche.state / 'sandboxes'

	def only_the_first():
		for name in set(os.listdir(sandboxes)) - {box.id}:
			own_cloche.call('rm', '--changes', name)  # the kill may have come when all was done
		return own_cloche.call('gc').code == 0 and os.listdir(sandboxes) == [box.id]

	wait_for(only_the_first, 'gc')
	again = own_cloche.call('fork', box.id)
	assert again.code == 0, again
	one = Sandbox(own_cloche, again.out.strip())
	assert one.sh('cat /etc/s /usr/s /opt/s').out == 's\ns\ns\n'
	resume(box)
	assert box.sh('cat /etc/s /usr/s /opt/s').out == 's\ns\ns\n'
	one.remove()
	box.remove()
	assert own_cloche.call('gc').code == 0
	assert own_cloche.call('rm', '--changes', box.id).code == own_cloche.call('rm', '--changes', one.id).code == 0
	for sandbox in own_cloche.ids():
		own_cloche.call('rm', '--changes', sandbox)
	assert own_cloche.call('gc').code == 0
	assert layers(own_cloche) == []


def test_no_fork_while_what_it_changed_is_applied(own_cloche):
	"""An apply reads the uppers that a fork moves away."""
	box = own_cloche.create('-m', f'{own_cloche.cwd}:/work:cow')
	box.sh('echo s > /work/s')
	suspend(box)
	folder = own_cloche.state / 'changes' / box.id
	fd = os.open(folder, os.O_RDONLY)
	fcntl.flock(fd, fcntl.LOCK_EX)
	refused = own_cloche.call('fork', box.id)
	assert (refused.code, refused.out) == (125, '') and 'an apply, discard or fork of it is at work: try again' in refused.err, refused
	assert own_cloche.ids() == {box.id} and layers(own_cloche) == [] and (folder / '0' / 'upper' / 's').exists()
	resume(box)  # moves nothing
	suspend(box)
	os.close(fd)
	one = Sandbox(own_cloche, own_cloche.call('fork', box.id).out.strip())
	assert one.sh('cat /work/s').out == 's\n'
	for made in (one, box):
		assert own_cloche.call('rm', '--record', made.id).code == 0


def test_what_a_killed_apply_left_is_not_the_forks(cloche, sandbox, fork, project):
	box = sandbox('--no-trace', '-m', f'{project}:/work:cow')
	box.sh('echo s > /work/s')
	suspend(box)
	cloche.strace(['-e', 'inject=renameat2:signal=KILL'], 'apply', box.id, cwd=project)
	[left] = os.listdir(project)
	assert left.startswith('.cloche-')
	one = fork(box)
	assert os.listdir(project) == []
	lines = [json.loads(line) for line in (cloche.state / 'changes' / one.id / 'journal.jsonl').read_text().splitlines()]
	assert [line['act'] for line in lines if line['act'] in ('temporary', 'tidy')] == ['temporary', 'tidy']
	assert cloche.call('apply', one.id).code == 0 and os.listdir(project) == ['s']


def test_a_full_disk_is_said_with_its_place(own_cloche):
	box = own_cloche.create('--no-trace')
	box.sh('echo s > /etc/s')
	suspend(box)
	layer = own_cloche.state / 'layers' / f'{box.id}.1'
	done = own_cloche.strace(['-P', layer, '-e', 'inject=mkdir:error=ENOSPC'], 'fork', box.id)
	assert (done.returncode, done.stderr) == (125, f"cloche: fork: make '{layer}': No space left on device\n"), done
	assert own_cloche.call('rm', '--record', box.id).code == 0


def test_kept_one_is_forked_and_not_resumed(cloche, fork):
	run = cloche.sh('echo kept > /etc/k', options=('--keep',))
	assert run.code == 0, run
	box = Sandbox(cloche, run.record.id)
	refused = cloche.call('resume', box.id)
	assert refused.code == 125 and f'`cloche fork {box.id}`' in refused.err
	assert cloche.call('gc').code == 0
	for _ in range(2):
		assert fork(box).sh('cat /etc/k').out == 'kept\n'
	assert cloche.call('verify', box.id).code == 0
	assert {one['id']: one['state'] for one in json.loads(cloche.call('ps', '--json').out)}[box.id] == 'kept'
	box.remove()
	assert box.id not in cloche.call('ps', '--quiet').out
	assert {one['id']: one['state'] for one in json.loads(cloche.call('ps', '--all', '--json').out)}[box.id] == 'ended'


@pytest.mark.parametrize('round_', range(4))
def test_kept_one_whose_supervisor_is_killed_behind_its_files(own_cloche, round_):
	process = own_cloche.start('run', '--keep', '--', '/bin/sh', '-c', 'echo kept > /etc/k')
	children = pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children')
	wait_for(lambda: children.read_text().split(), 'the supervisor')
	supervisor = int(children.read_text().split()[0])
	boxes = own_cloche.state / 'sandboxes'
	end = time.monotonic() + 30
	while time.monotonic() < end and process.poll() is None and not list(boxes.glob('*/rest.json')):
		pass
	with contextlib.suppress(ProcessLookupError): # it was faster: then nothing is left to mend
		os.kill(supervisor, signal.SIGKILL)
	process.communicate(timeout=30)
	[kept] = boxes.iterdir()
	box = Sandbox(own_cloche, kept.name)
	wait_for(lambda: own_cloche.call('gc').code == 0, 'gc')
	assert box.record.events('sandbox.stopped')
	assert own_cloche.call('gc').out.startswith('0 sandboxes mended')
	verified = own_cloche.call('verify', box.id)
	assert verified.code == 0 and 'open' not in verified.out, verified
	forked = own_cloche.call('fork', box.id)
	assert forked.code == 0, forked
	one = Sandbox(own_cloche, forked.out.strip())
	assert one.sh('cat /etc/k').out == 'kept\n'
	one.remove()
	for sandbox in own_cloche.ids():
		own_cloche.call('rm', '--changes', sandbox)
	assert own_cloche.call('gc').code == 0


def test_fork_refused(sandbox, cloche):
	box = sandbox()
	running = cloche.call('fork', box.id)
	assert running.code == 125 and 'cloche suspend' in running.err
	cloche.call('stop', box.id)
	assert 'kept no files' in cloche.call('fork', box.id).err


@pytest.mark.parametrize('guest, n', [('/', 128), ('/elsewhere', 1024)])
def test_over_as_many_layers_as_can_be_joined(sandbox, cloche, guest, n):
	"""One more could not be started, and what says so must not have been written down: the source could not either."""
	box = sandbox()
	box.sh('echo x > /etc/of-the-source')
	suspend(box)
	rest = cloche.state / 'sandboxes' / box.id / 'rest.json'
	whole = rest.read_bytes()
	about = json.loads(whole)
	about['spec']['lowers'] = [{'guest': guest, 'dir': f'/nowhere/{i}/fs', 'base': 0} for i in range(n)]
	rest.write_text(json.dumps(about))
	full = rest.read_bytes()
	done = cloche.call('fork', box.id)
	assert done.code == 125 and "changed at '/' is one layer more than can be joined" in done.err
	assert rest.read_bytes() == full
	rest.write_bytes(whole)
	resume(box)
	assert box.sh('cat /etc/of-the-source').out == 'x\n'


def test_rootfs_and_more_mounts(cloche, sandbox, fork, project, tmp_path):
	from harness import small_root
	root = small_root(tmp_path / 'root', '/bin/sh', '/bin/cat', '/bin/ls')
	(project / 'a').write_text('a')
	box = sandbox('--rootfs', root)
	box.sh('echo s > /etc/s')
	suspend(box)
	one = fork(box, '-m', f'{project}:/work:ro', '--trace')
	assert one.sh('cat /etc/s /work/a').out == 's\na'
	assert not (root / 'etc/s').exists()
