# SPDX-License-Identifier: Apache-2.0
"""One apply after another, of a sandbox that goes on or where the host goes on: none takes back what an earlier one did, or loses
what the host or the sandbox has."""
import shutil
import subprocess
import time

import pytest

from harness import wait_for

CHANGED = '(the host has changed it meanwhile: `apply --force` goes over it)'


def tree(folder):
	return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob('*') if path.is_file() and not path.is_symlink()}


@pytest.fixture
def host(project):
	for name in ('f', 'g', 'a', 'p/f', 'q/f'):
		(project / name).parent.mkdir(exist_ok=True)
		(project / name).write_text(f'{name[0]} old\n') # some of one size, in one tick
	time.sleep(0.05)
	return project


def run(cloche, host, script, *options):
	done = cloche.sh(script, options=('--no-trace', *(options or ('-w', str(host)))), cwd=host)
	assert done.code == 0, done
	return done.record.id


def lines(done):
	return done.out.splitlines()


@pytest.mark.parametrize('edit', ['', '; echo more >>g'])
def test_what_was_renamed_over_a_changed_file_stays_at_its_old_place(cloche, host, edit):
	box = run(cloche, host, 'mv f g' + edit)
	(host / 'g').write_text('theirs\n')
	for _ in range(2):
		done = cloche.call('apply', box)
		assert done.code == 1 and lines(done)[:2] == ["refused  f  (it became 'g', which is refused)", f'refused  g  {CHANGED}'], done
	assert (host / 'f').read_text() == 'f old\n' and (host / 'g').read_text() == 'theirs\n'


def test_what_an_apply_made_at_an_old_place_is_not_what_was_there(cloche, host, tmp_path):
	box = run(cloche, host, 'mv p r; echo more >>r/f; echo n >r/n; mv q/f r/q; mkdir p; echo in >p/in')
	(host / 'p').rename(tmp_path / 'away')
	(host / 'q/f').write_text('theirs\n')
	first = cloche.call('apply', box)
	assert first.code == 1, first
	after = tree(host)
	assert after['r/f'] == 'p old\nmore\n' and after['r/n'] == 'n\n' and after['p/in'] == 'in\n'
	for _ in range(2):
		cloche.call('apply', box)
		assert tree(host) == after


def test_one_folder_mounted_twice(cloche, host):
	box = run(cloche, host, 'cd /v; mv p t; mv q p; mv t q; cd /w; echo more >>p/f; mv q/f z', '-w', '/v', '-m', f'{host}:/v:cow', '-m', f'{host}:/w:cow')
	done = cloche.call('apply', box)
	assert done.code == 1, done
	now = tree(host)
	assert (now['p/f'], now['q/f']) == ('q old\n', 'p old\n') and 'z' not in now


def test_removed_made_and_removed_again(own_cloche, host):
	box = own_cloche.create('-m', f'{host}:/w:cow')
	for verb in ('apply', 'discard'):
		for script, there in (('rm /w/f', verb == 'discard'), ('echo new >/w/f', True), ('rm /w/f', verb == 'discard')):
			box.sh(script)
			done = own_cloche.call(verb, box.id)
			assert done.code == 0 and (host / 'f').exists() == there, (script, done)
		(host / 'f').write_text('f old\n')
		box.remove()
		box = own_cloche.create('-m', f'{host}:/w:cow')
	box.remove()


@pytest.fixture
def overlay(tmp_path):
	"""A filesystem without file handles, as in a container."""
	for name in ('lower/p/d', 'lower/p/o', 'upper', 'work', 'merged'):
		(tmp_path / name).mkdir(parents=True)
	for name in ('d/x', 'd/y', 'o/x', 'o/y'):
		(tmp_path / 'lower/p' / name).write_text(f'{name[0]} old\n')
	merged = tmp_path / 'merged'
	subprocess.run(['mount', '-t', 'overlay', 'overlay', '-o', f'lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work,redirect_dir=on',
		merged], check=True)
	time.sleep(0.05)
	yield merged / 'p'
	subprocess.run(['umount', merged], check=True)


def test_a_folder_that_was_moved_where_there_are_no_handles(cloche, overlay):
	box = run(cloche, overlay, 'rm d/x; echo mine >d/y')
	(overlay / 'd').rename(overlay / 'old')
	(overlay / 'o').rename(overlay / 'd')
	done = cloche.call('apply', box)
	assert done.code == 1 and lines(done)[:2] == [f'refused  d/x  {CHANGED}', f'refused  d/y  {CHANGED}'], done
	assert tree(overlay) == {'old/x': 'd old\n', 'old/y': 'd old\n', 'd/x': 'o old\n', 'd/y': 'o old\n'}


def test_parts_where_there_are_no_handles(cloche, overlay):
	"""Our own work gives folders new times."""
	box = run(cloche, overlay, 'rm d/x; echo mine >d/y; rm -r o')
	assert cloche.call('apply', box, 'd/y', cwd=overlay).code == 0
	done = cloche.call('apply', box)
	assert done.code == 0 and tree(overlay) == {'d/y': 'mine\n'}, done


def test_what_a_living_sandbox_wrote_while_it_was_taken_over(own_cloche, host):
	"""It is known by what was copied, not by what was listed before."""
	box = own_cloche.create('-m', f'{host}:/w:cow')
	box.sh('cd /w; echo one >f; echo one >a')
	slow = own_cloche.strace(['-e', 'inject=fsync:delay_enter=3000000:when=1'], 'apply', box.id, background=True)
	wait_for(lambda: [path for path in host.iterdir() if '.cloche-' in path.name], 'the first file') # the second was listed
	box.sh('echo two >/w/f')
	out, err = slow.communicate(timeout=60)
	assert slow.returncode == 0 and (host / 'f').read_text() == 'two\n', (out, err)
	box.sh('echo one >/w/f')
	done = own_cloche.call('apply', box.id)
	assert done.code == 0 and (host / 'f').read_text() == 'one\n', done
	box.remove()


def test_another_users_file_is_not_written_through_a_new_name(cloche, host):
	subprocess.run(['chown', '1000:1000', host], check=True)
	box = run(cloche, host, 'mv f n; echo mine >>n; mv g m; chmod 755 m; mv a b')
	done = cloche.call('apply', box)
	assert done.code == 1 and lines(done)[:3] == ['applied  R a -> b', 'refused  m  (belongs to another user (0) on the host)',
		'refused  n  (belongs to another user (0) on the host)'], done
	assert (host / 'f').read_text() == 'f old\n'


def test_no_mode_goes_through_a_mount_or_to_a_folder_of_the_host(cloche, host, tmp_path):
	box = run(cloche, host, 'chmod 777 p; chmod 666 f; mkdir n; echo n >n/n; chmod 777 n')
	other, file = tmp_path / 'other', tmp_path / 'file'
	other.mkdir(0o700)
	file.touch(0o600)
	(host / 'n').mkdir(0o700)
	mounts = ((other, host / 'p'), (file, host / 'f'))
	for source, target in mounts:
		subprocess.run(['mount', '--bind', source, target], check=True)
	done = cloche.call('apply', box)
	for _, target in mounts:
		subprocess.run(['umount', target], check=True)
	mounted = '(another file system is mounted there on the host)'
	assert done.code == 1 and set(lines(done)[:4]) == {f'refused  f  {mounted}', f'refused  n  {CHANGED}', 'applied  A n/n', f'refused  p  {mounted}'}, done
	assert [oct(path.stat().st_mode & 0o777) for path in (other, file, host / 'n')] == ['0o700', '0o600', '0o700']
	cloche.call('apply', box)
	assert (host / 'n').stat().st_mode & 0o777 == 0o700


def test_a_file_that_the_host_puts_in_the_way_at_the_last_moment(cloche, host):
	box = run(cloche, host, 'mv f n; rm p/f')
	slow = cloche.strace(['-e', 'inject=fdatasync:delay_enter=3000000:when=1'], 'apply', box, background=True)
	wait_for(lambda: '"begun"' in (cloche.state / 'changes' / box / 'journal.jsonl').read_text(), 'the journal') # it is being synced
	(host / 'new').write_text('theirs, and longer\n')
	(host / 'new').rename(host / 'f')
	(host / 'p').rename(host / 't')
	(host / 'q').rename(host / 'p')
	out, err = slow.communicate(timeout=60)
	assert slow.returncode == 1 and out.count('(the host changed it at this very moment)') == 2, (out, err)
	assert tree(host) == {'f': 'theirs, and longer\n', 'g': 'g old\n', 'a': 'a old\n', 't/f': 'p old\n', 'p/f': 'q old\n'}


def test_a_folder_renamed_into_one_that_was_made_anew(cloche, host):
	box = run(cloche, host, 'rm -r p; mkdir p; echo n >p/n; mv q p/q')
	assert cloche.call('apply', box, 'p/n', cwd=host).code == 0
	done = cloche.call('apply', box)
	assert done.code == 0 and tree(host) == {'f': 'f old\n', 'g': 'g old\n', 'a': 'a old\n', 'p/n': 'n\n', 'p/q/f': 'q old\n'}, done


def test_a_removed_folder_of_which_a_part_stays(cloche, host):
	(host / 'p/g').write_text('p\n')
	box = run(cloche, host, 'rm -r p')
	assert cloche.call('discard', box, 'p/g', cwd=host).code == 0
	done = cloche.call('apply', box)
	assert done.code == 0 and (host / 'p/g').exists() and not (host / 'p/f').exists(), done
	assert cloche.call('apply', box).out == 'nothing to apply\n'


def test_other_names_of_what_was_taken_away(own_cloche, host):
	(host / 'b').hardlink_to(host / 'a')
	time.sleep(0.05)
	box = run(own_cloche, host, 'rm a; echo b >b')
	assert own_cloche.call('apply', box, 'a', cwd=host).code == 0
	done = own_cloche.call('apply', box)
	assert done.code == 0 and (host / 'b').read_text() == 'b\n', done


def test_what_took_the_place_of_a_folder_and_went(own_cloche, host):
	"""One act took the folder away and put the file there; the file's removal is another."""
	box = own_cloche.create('-m', f'{host}:/w:cow')
	for script, kind in (('rm -r p; echo flat >p', 'is_file'), ('rm p', None), ('mkdir p; echo in >p/in', 'is_dir'), ('rm -r p; echo flat >p', 'is_file'),
			('rm p; mkdir p', 'is_dir'), ('rm -r p', None)):
		assert box.sh('cd /w; ' + script).code == 0
		done = own_cloche.call('apply', box.id)
		assert done.code == 0 and (getattr(host / 'p', kind)() if kind else not (host / 'p').exists()), (script, done)
	box.remove()


def forked(cloche, host, *scripts):
	"""The change set of a fork; an apply between the scripts."""
	box = cloche.create('-m', f'{host}:/w:cow')
	for n, script in enumerate(scripts):
		assert n == 0 or cloche.call('apply', box.id).code == 0
		assert box.sh('cd /w; ' + script).code == 0
	assert cloche.call('suspend', box.id).code == 0
	fork = cloche.call('fork', box.id).out.strip()
	for args in (('rm', fork), ('rm', '--record', box.id)):
		assert cloche.call(*args).code == 0
	return fork


SHARED = {'ring': ('mv a t; mv f a; mv t f', {'a': 'f old\n', 'f': 'a old\n'}),
	'folder that comes later': ('mv a q/a; mv p/f a; mv q r', {'a': 'p old\n', 'r/a': 'a old\n', 'r/f': 'q old\n', 'p/f': None, 'q/f': None}),
	'two names': ('ln a c; mv a p/b; echo new >a; mv p r', {'a': 'new\n', 'c': 'a old\n', 'r/b': 'a old\n', 'r/f': 'p old\n', 'p/f': None}),
	'folders that changed places': ('mv p t; mv q p; mv t q; ln p/f p/b', {'p/f': 'q old\n', 'p/b': 'q old\n', 'q/f': 'p old\n'})}


@pytest.mark.parametrize('fault', ['', 'fsync:signal=KILL:when=2', 'renameat:signal=KILL:when=2', 'renameat2:signal=KILL:when=1', 'fsync:error=ENOSPC:when=3'])
@pytest.mark.parametrize('name', SHARED)
def test_data_that_shared_layers_lack(own_cloche, host, name, fault):
	"""It lies below, where others want to go, and is kept before anything moves there."""
	script, want = SHARED[name]
	want = {path: text for path, text in {**tree(host), **want}.items() if text}
	box = forked(own_cloche, host, script)
	if fault:
		own_cloche.strace(['-e', f'inject={fault}'], 'apply', box)
	done = own_cloche.call('apply', box)
	assert done.code == 0 and tree(host) == want, done
	assert own_cloche.call('apply', box).out == 'nothing to apply\n'


def test_what_was_applied_and_then_shared_is_not_what_took_its_place(own_cloche, host):
	box = forked(own_cloche, host, 'echo v1 >n', 'mv f n')
	done = own_cloche.call('apply', box)
	assert done.code == 0 and (host / 'n').read_text() == 'f old\n' and not (host / 'f').exists(), done


def test_what_a_fork_discards_uncovers_nothing(own_cloche, host):
	box = own_cloche.create('-m', f'{host}:/w:cow')
	box.sh('echo parent >/w/n')
	assert own_cloche.call('suspend', box.id).code == 0
	fork = own_cloche.call('fork', box.id).out.strip()
	assert own_cloche.call('exec', fork, '--', 'sh', '-c', 'echo fork >/w/n').code == 0
	for args in (('rm', fork), ('rm', '--record', box.id), ('discard', fork)):
		assert own_cloche.call(*args).code == 0
	assert own_cloche.call('apply', fork).out == 'nothing to apply\n' and not (host / 'n').exists()


@pytest.mark.parametrize('hosts', [None, 'theirs\n'])
def test_data_that_an_apply_or_the_host_put_there_is_not_what_was_meant(cloche, host, hosts):
	box = run(cloche, host, 'mv a f; echo new >a')
	(host / 'a').unlink()
	if hosts:
		(host / 'a').write_text(hosts)
	for _ in range(2):
		cloche.call('apply', box)
	assert (host / 'f').read_text() == 'f old\n'


def test_a_folder_removed_after_an_apply_in_it(own_cloche, host):
	"""Its time of change is ours, and not the host's who may have put another one there."""
	box = own_cloche.create('-m', f'{host}:/w:cow')
	for script in ('cd /w; echo n >p/n; mkdir q/new', 'cd /w; rm -r p q'):
		assert box.sh(script).code == 0
		assert own_cloche.call('suspend', box.id).code == 0
		done = own_cloche.call('apply', box.id)
		assert done.code == 0, done
		assert own_cloche.call('resume', box.id).code == 0
	assert set(tree(host)) == {'f', 'g', 'a'} and not (host / 'p').exists() and not (host / 'q').exists()
	box.remove()


def test_a_folder_that_the_host_puts_there_after_an_apply_in_it(own_cloche, host, tmp_path):
	box = own_cloche.create('-m', f'{host}:/w:cow')
	(tmp_path / 'other').mkdir()
	(tmp_path / 'other/f').write_text('theirs\n')
	box.sh('echo n >/w/p/n')
	assert own_cloche.call('apply', box.id).code == 0
	box.sh('rm -r /w/p')
	(host / 'p').rename(tmp_path / 'away')
	(tmp_path / 'other').rename(host / 'p')
	(host / 'p/n').write_text('made\n')
	done = own_cloche.call('apply', box.id)
	assert done.code == 1 and f'refused  p/f  {CHANGED}' in lines(done), done
	assert tree(host / 'p') == {'f': 'theirs\n', 'n': 'made\n'}
	box.remove()


@pytest.mark.parametrize('when', range(1, 9))
@pytest.mark.parametrize('fault', ['signal=KILL', 'error=EIO'])
def test_what_waits_is_not_put_into_another_folder_of_that_name(cloche, host, fault, when):
	"""It was parked out of a folder that went, and another one took its name."""
	for name in ('a1/x', 'f1/k', 'b1/own'):
		(host / name).parent.mkdir()
		(host / name).write_text(name + '\n')
	time.sleep(0.05)
	box = run(cloche, host, 'mv a1/x t; rm -r a1; mv f1 a1; mv b1 a1/h; mv t a1/h/e')
	cloche.strace(['-e', 'trace=renameat2,renameat', '-e', f'inject=renameat2:{fault}:when={when}'], 'apply', box)
	done = cloche.call('apply', box)
	assert done.code == 0, done
	assert {name: text for name, text in tree(host).items() if '1/' in name} == {'a1/k': 'f1/k\n', 'a1/h/own': 'b1/own\n', 'a1/h/e': 'a1/x\n'}


def test_nothing_comes_over_where_not_all_could_be_read(cloche, host):
	"""A folder that is new may be one that was renamed."""
	box = run(cloche, host, 'mv p r; echo n >r/n; rm f; echo more >>g; echo n >n')
	before = tree(host)
	for when in (10, 20, 30, 40):
		done = cloche.strace(['-P', host, '-P', 'p', '-P', 'r', '-e', f'inject=newfstatat,openat2,fgetxattr:error=EIO:when={when}+'], 'apply', box)
		if 'not all could be read' in done.stderr:
			assert done.returncode != 0 and tree(host) == before, done
			break
	else:
		pytest.fail('nothing could not be read')
	done = cloche.call('apply', box)
	assert done.code == 0 and tree(host) == {'g': 'g old\nmore\n', 'a': 'a old\n', 'n': 'n\n', 'q/f': 'q old\n', 'r/f': 'p old\n', 'r/n': 'n\n'}, done


def test_a_private_folder_in_the_place_of_one_that_was_applied(own_cloche, host):
	host.with_name('other').mkdir()
	box = own_cloche.create('-m', f'{host}:/w:cow', '-m', f"{host.with_name('other')}:/x:rw")
	box.sh('mkdir /w/n; echo n >/w/n/f')
	assert own_cloche.call('apply', box.id).code == 0
	shutil.rmtree(host / 'n')
	(host / 'n').mkdir(0o700)
	box.sh('chmod 777 /w/n')
	done = own_cloche.call('apply', box.id)
	assert done.code == 1 and f'refused  n  {CHANGED}' in lines(done), done
	assert (host / 'n').stat().st_mode & 0o777 == 0o700
	box.sh('echo x >/x/through')
	done = own_cloche.call('apply', box.id, '/x/through')
	assert done.code != 0 and done.code < 128 and 'cloche: ' in done.err, done
	box.remove()


@pytest.mark.parametrize('call', ['faccessat2', 'openat'])
def test_what_was_kept_and_cannot_be_read_is_not_looked_for_elsewhere(own_cloche, host, call):
	box = forked(own_cloche, host, 'mv a t; mv f a; mv t f')
	own_cloche.strace(['-e', 'inject=renameat:signal=KILL:when=3'], 'apply', box)
	kept = own_cloche.state / 'changes' / box / 'kept'
	assert len(list(kept.iterdir())) == 2
	done = own_cloche.strace(['-P', kept, '-P', next(kept.iterdir()), '-e', f'inject={call}:error=EIO'], 'apply', box)
	assert done.returncode != 0 and 'Input/output error' in done.stderr, done
	done = own_cloche.call('apply', box)
	assert done.code == 0 and (host / 'a').read_text() == 'f old\n' and (host / 'f').read_text() == 'a old\n', done
