# SPDX-License-Identifier: Apache-2.0
"""What the host moved meanwhile, what was applied before, and names like our own: apply takes nothing away that the sandbox never saw."""
import os
import shutil
import signal
import subprocess
import time

import pytest

CHANGED = '(the host has changed it meanwhile: `apply --force` goes over it)'


def tree(folder):
	return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob('*') if path.is_file() and not path.is_symlink()}


@pytest.fixture
def host(project, tmp_path):
	for name, text in {'d/x': 'one\n', 'd/y': 'two\n', 'a': 'a\n', 'b': 'b\n'}.items():
		(project / name).parent.mkdir(exist_ok=True)
		(project / name).write_text(text)
	(tmp_path / 'other').mkdir()
	(tmp_path / 'other' / 'x').write_text('other x\n')
	(tmp_path / 'other' / 'o').write_text('other o\n')
	time.sleep(0.05) # the clock of file times has gone on
	return project


def run(cloche, host, script):
	done = cloche.sh(script, options=('--no-trace', '-w', str(host)))
	assert done.code == 0, done
	return done.record.id


def refused(cloche, box, *paths):
	done = cloche.call('apply', box)
	assert done.code == 1 and set(paths) <= {line.split()[1] for line in done.out.splitlines() if line.endswith(CHANGED)}, done


def test_the_same_rename_by_the_host_and_by_another_sandbox(cloche, host):
	first, second = (run(cloche, host, 'mkdir src; mv d src/d') for _ in range(2))
	assert cloche.call('apply', first).code == 0
	before = tree(host)
	assert before['src/d/x'] == 'one\n'
	refused(cloche, second, 'src/d/x', 'src/d/y')
	assert tree(host) == before


@pytest.mark.parametrize('script, place', [('mv d e', 'e'), ('rm -r d; mkdir d; echo n >d/n', 'd'), ('rm -r d', 'd'), ('mkdir e; echo n >e/n', 'e'),
	('echo new >d/x; rm d/y', 'd')])
def test_an_old_folder_at_its_place_is_not_what_the_sandbox_saw(cloche, host, tmp_path, script, place):
	box = run(cloche, host, script)
	if (host / place).exists():
		shutil.move(host / place, tmp_path / 'away')
	(tmp_path / 'other' / 'y').write_text('other y\n')
	shutil.move(tmp_path / 'other', host / place)
	theirs = {f'{place}/{name}': f'other {name}\n' for name in 'xyo'}
	cloche.call('apply', box)
	now = tree(host)
	assert {name: now.get(name) for name in theirs} == theirs


def test_folders_that_changed_places_here_and_there(cloche, host):
	(host / 'e').mkdir()
	(host / 'e' / 'z').write_text('z\n')
	box = run(cloche, host, 'mv d t; mv e d; mv t e')
	for old, new in (('d', 't'), ('e', 'd'), ('t', 'e')):
		(host / old).rename(host / new)
	before = tree(host)
	refused(cloche, box, 'd', 'e')
	assert tree(host) == before


@pytest.mark.parametrize('how', ['whole', 'a first', 'killed'])
def test_data_that_a_shared_layer_leans_on(own_cloche, host, how):
	"""Once forked, a file that was renamed has its data below for good, where apply puts something else."""
	box = own_cloche.create('-m', f'{host}:/w:cow')
	box.sh('mv /w/a /w/c; echo new >/w/a')
	for args in (('suspend', box.id), ('fork', box.id)):
		done = own_cloche.call(*args)
		assert done.code == 0, done
	for args in (('rm', '--record', done.out.strip()), ('rm', box.id)):
		assert own_cloche.call(*args).code == 0
	if how == 'a first':
		done = own_cloche.call('apply', box.id, 'a', cwd=host)
		assert done.code == 0 and (host / 'a').read_text() == 'new\n' and not (host / 'c').exists(), done
	elif how != 'whole':
		done = own_cloche.strace(['-e', 'inject=fdatasync:signal=KILL:when=3'], 'apply', box.id)
		assert done.returncode == -signal.SIGKILL, done
	for _ in range(2):
		assert own_cloche.call('apply', box.id).code == 0
	assert tree(host) == {'a': 'new\n', 'c': 'a\n', 'b': 'b\n', 'd/x': 'one\n', 'd/y': 'two\n'}


def test_what_came_went_and_came_again(own_cloche, host):
	box = own_cloche.create('-m', f'{host}:/w:cow')
	for script, there in (('echo n >/w/n; rm /w/a; ln -s b /w/l', True), ('rm /w/n; echo a >/w/a; ln -sfn d /w/l', False),
			('echo n >/w/n; rm /w/a; ln -sfn b /w/l', True)):
		box.sh(script)
		done = own_cloche.call('apply', box.id)
		assert done.code == 0, done
		assert (host / 'n').exists() == there and (host / 'a').exists() != there, script
		assert (host / 'l').readlink().name == ('b' if there else 'd')
	box.remove()


def test_names_like_our_own_are_the_sandboxes(cloche, host):
	box = run(cloche, host, 'mv a .cloche-a; mv d .cloche-d; mkdir d; echo n >d/n; echo x >.envrc')
	assert cloche.call('apply', box).code == 0
	assert tree(host) == {'.cloche-a': 'a\n', '.cloche-d/x': 'one\n', '.cloche-d/y': 'two\n', 'b': 'b\n', 'd/n': 'n\n'}
	assert cloche.call('discard', box).out == 'discarded .envrc\n1 thrown away\n'


def test_a_link_above_what_was_renamed_keeps_nobody_out(cloche, host):
	box = run(cloche, host, 'mv d/x z; rm -r d; mkdir e; ln -s e d; echo x >.envrc')
	assert cloche.call('apply', box).code == 0
	assert cloche.call('apply', box, '.envrc', cwd=host).code == 0
	assert (host / '.envrc').read_text() == 'x\n'


def test_what_the_host_removed_is_not_made_again_after_a_part(cloche, host):
	box = run(cloche, host, 'echo 1 >>a; echo 1 >>b')
	(host / 'b').unlink()
	assert cloche.call('apply', box, 'a', cwd=host).code == 0
	refused(cloche, box, 'b')
	assert not (host / 'b').exists()


def swap(host, other):
	"""Other content under the same names, in files that are older than the sandbox."""
	host.rename(host.with_name('away'))
	other.rename(host)


def mount_over(host, other):
	subprocess.run(['mount', '--bind', other, host], check=True)


@pytest.fixture
def twin(host, tmp_path):
	"""A folder with the names of the host's and other content."""
	folder = tmp_path / 'twin'
	shutil.copytree(host, folder)
	for path in folder.rglob('*'):
		if path.is_file():
			path.write_text('theirs\n')
	time.sleep(0.05)
	yield folder
	subprocess.run(['umount', '-q', host], check=False) # where something was mounted


@pytest.mark.parametrize('put', [swap, mount_over])
def test_another_folder_stands_where_it_was_mounted(cloche, host, twin, put):
	box = run(cloche, host, 'rm a; echo new >b; rm d/x; mv d/y y; echo n >n')
	put(host, twin)
	refused(cloche, box, 'a', 'b', 'd/x', 'd/y')
	assert tree(host) == {name: 'theirs\n' for name in ('a', 'b', 'd/x', 'd/y')} | {'n': 'n\n'}
	done = cloche.call('apply', '--force', box)
	assert done.code == 1 and 'refused  y  (its data was below and is gone)\n' in done.out, done
	assert tree(host) == {'b': 'new\n', 'n': 'n\n'}


def test_a_copy_in_its_place_is_known_by_content(cloche, host):
	box = run(cloche, host, 'rm a; echo new >b; mv d/y y')
	shutil.copytree(host, host.with_name('copy'))
	swap(host, host.with_name('copy'))
	done = cloche.call('apply', box)
	assert done.code == 0 and tree(host) == {'b': 'new\n', 'y': 'two\n', 'd/x': 'one\n'}, done


def fork(cloche, host, script, later):
	"""The change set of a fork over what its parent did by script."""
	box = cloche.create('-m', f'{host}:/w:cow')
	assert box.sh('cd /w; ' + script).code == 0
	assert cloche.call('suspend', box.id).code == 0
	later()
	done = cloche.call('fork', box.id)
	assert done.code == 0, done
	for args in (('rm', done.out.strip()), ('rm', '--record', box.id)):
		assert cloche.call(*args).code == 0
	return done.out.strip()


@pytest.mark.parametrize('script, paths', [('rm d/x; echo mine >d/y', ['d/x', 'd/y']), ('mv d e; rm e/x; echo mine >e/y', ['e', 'd/x', 'e/y'])])
@pytest.mark.parametrize('when', ['before', 'after'])
def test_a_fork_knows_the_folders_of_its_parent(own_cloche, host, twin, script, paths, when):
	def move():
		(host / 'd').rename(host / 'old')
		(twin / 'd').rename(host / 'd')

	box = fork(own_cloche, host, script, move if when == 'before' else lambda: None)
	if when == 'after':
		move()
	refused(own_cloche, box, *paths)
	assert (host / 'd/x').read_text() == (host / 'd/y').read_text() == 'theirs\n'


def test_a_fork_knows_the_folder_that_was_mounted(own_cloche, host, twin):
	box = fork(own_cloche, host, 'rm a; echo mine >b', lambda: swap(host, twin))
	refused(own_cloche, box, 'a', 'b')
	assert (host / 'a').read_text() == (host / 'b').read_text() == 'theirs\n'


def test_a_fork_whose_parent_moved_and_changed_is_applied(own_cloche, host):
	box = fork(own_cloche, host, 'rm d/x; echo mine >d/y; mkdir n; echo n >n/n; mv d e', lambda: None)
	done = own_cloche.call('apply', box)
	assert done.code == 0 and tree(host) == {'a': 'a\n', 'b': 'b\n', 'e/y': 'mine\n', 'n/n': 'n\n'}, done


@pytest.mark.parametrize('place', ['ln -s b a', 'mkdir a; echo i >a/i'])
def test_what_took_the_place_of_a_forks_data(own_cloche, host, place):
	"""Once applied nothing of it is left to do, though the data of b is not where it was any more."""
	box = fork(own_cloche, host, 'mv a b; ' + place, lambda: None)
	assert own_cloche.call('apply', box).code == 0
	assert (host / 'b').read_text() == 'a\n'
	assert own_cloche.call('apply', box).out == 'nothing to apply\n'


@pytest.mark.parametrize('make', [lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to('b')])
def test_something_else_where_the_data_of_a_renamed_file_was(cloche, host, make):
	box = run(cloche, host, 'mv a g; echo new >b')
	(host / 'a').unlink()
	make(host / 'a')
	done = cloche.call('apply', box)
	assert done.code == 1 and 'applied  M b\n' in done.out and 'refused  g  (its data was below and is gone)\n' in done.out, done


def test_a_path_in_a_folder_takes_no_file_away_that_the_host_changed(cloche, host):
	box = run(cloche, host, 'rm b; mkdir b; echo new >b/n')
	(host / 'b').write_text('precious\n')
	done = cloche.call('apply', box, 'b/n', cwd=host)
	assert done.code == 1 and 'refused  b/n  (something else is there on the host)\n' in done.out, done
	assert (host / 'b').read_text() == 'precious\n'


def test_a_path_in_a_folder_takes_nothing_away_that_has_to_be_named(cloche, host):
	file = host / '.pre-commit-config.yaml' # which git hooks read
	file.write_text('x\n')
	box = run(cloche, host, f'rm {file.name}; mkdir {file.name}; echo new >{file.name}/n')
	cloche.call('apply', box)
	assert file.read_text() == 'x\n'
