# SPDX-License-Identifier: Apache-2.0
"""Whatever happens while `cloche apply` is at work: each file of the host is the old or the new one, and a second one ends the work."""
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

N_PARTS = 52
CALLS = ('renameat2', 'renameat', 'unlinkat', 'mkdirat', 'symlinkat', 'fsync', 'fdatasync', 'syncfs', 'fchmod', 'copy_file_range', 'write')

# In each part: a change, a removal, a new file in a new folder, modes, a rename, one with a new mode and no data of its own above, two files
# and two folders that change places, a file that becomes a folder and the reverse, a link.
EDITS = '''
for p in p*; do (cd $p; echo after > edit; rm drop; mkdir deep; echo new > deep/new; mkdir -m 750 shut; chmod 755 tool; mv move moved
mv rights right; chmod 755 right; mv a x; mv b a; mv x b; mv left x; mv other left; mv x other; chmod 600 left/o
rm file; mkdir file; echo in > file/in; rm -r folder; echo flat > folder; ln -s edit link); done
'''


def make_part(part):
	for name in ('folder', 'left', 'other'):
		(part / name).mkdir(parents=True)
	for name in ('edit', 'drop', 'tool', 'move', 'rights', 'a', 'b', 'file', 'folder/of', 'left/l', 'other/o'):
		(part / name).write_text(f'old {name}\n')


def snapshot(folder):
	kept = {}
	for path in folder.rglob('*'):
		name = str(path.relative_to(folder))
		if path.is_symlink():
			kept[name] = ('link', os.readlink(path))
		elif path.is_dir():
			kept[name] = ('folder', path.stat().st_mode & 0o777)
		else:
			kept[name] = ('file', path.stat().st_mode & 0o777, path.read_text())
	return kept


def ours(tree):
	return [name for name in tree if '.cloche-' in name]


def check_each_is_old_or_new(part, old, new):
	now = snapshot(part)
	parked = {name: entry for name, entry in snapshot(part.parent).items() if '.cloche-' in name}
	for name in {*now, *old, *new}:
		if '.cloche-' in name:
			continue
		# A folder is made before, and goes before, what takes its place; its mode comes last. What is in it goes along.
		states = [tree.get(name) for tree in (old, new)]
		between = [('folder', 0o700), None] if any(state and state[0] == 'folder' for state in states) else []
		if name.split('/')[0] in ('left', 'other', 'right', 'rights'):
			between += [None, *[entry[:1] + (mode,) + entry[2:] for entry in states if entry for mode in (0o600, 0o644, 0o755)]]
		assert now.get(name) in [*states, *between], name
	# What only moved is somewhere, whole.
	texts = [entry[2] for entry in {**now, **parked}.values() if entry[0] == 'file']
	for name in ('move', 'rights', 'left/l', 'other/o'):
		assert f'old {name}\n' in texts, name


def traced(cloche, *args, inject=None, log='/dev/null', calls=CALLS):
	what = ['-e', f'inject={inject}'] if inject else []
	return cloche.strace(['-o', log, '-e', 'trace=' + ','.join(calls), *what], *args)


class Parts:
	"""One change set over many like folders, each for one fault; the first two tell how it goes without any."""

	def __init__(self, cloche, top):
		self.top = top
		for i in range(N_PARTS):
			make_part(top / f'p{i:02}')
		self.old = snapshot(top / 'p00')
		cloche.cwd = top
		run = cloche.sh(EDITS, options=('--no-trace', '-w', str(top)))
		assert run.code == 0, run
		self.id = run.record.id
		log = top.parent / 'calls'
		for name in ('p00', 'p01'): # the first one does some work for all
			done = traced(cloche, 'apply', self.id, name, log=log)
			assert done.returncode == 0, done
		self.new = snapshot(top / 'p00')
		names = re.findall(r'^(\w+)\(', log.read_text(), re.M)
		self.counts = {name: names.count(name) for name in CALLS}
		self.free = [f'p{i:02}' for i in range(2, N_PARTS)]

	def take(self):
		return self.free.pop(0)

	def check_second(self, cloche, name):
		done = cloche.call('apply', self.id, name, cwd=self.top)
		assert snapshot(self.top / name) == self.new, done
		assert ours(snapshot(self.top)) == []
		assert done.code == 0 or 'nothing to take over there' in done.out, done


@pytest.fixture(scope='module')
def parts(module_cloche, tmp_path_factory):
	if shutil.which('strace') is None:
		pytest.skip('needs strace')
	return Parts(module_cloche, tmp_path_factory.mktemp('parts'))


def test_what_it_does_without_a_fault(parts):
	assert parts.new == {'edit': ('file', 0o644, 'after\n'), 'deep': ('folder', 0o755), 'deep/new': ('file', 0o644, 'new\n'),
		'shut': ('folder', 0o750), 'right': ('file', 0o755, 'old rights\n'), 'left': ('folder', 0o755), 'left/o': ('file', 0o600, 'old other/o\n'),
		'other': ('folder', 0o755), 'other/l': ('file', 0o644, 'old left/l\n'),
		'tool': ('file', 0o755, 'old tool\n'), 'moved': ('file', 0o644, 'old move\n'), 'a': ('file', 0o644, 'old b\n'),
		'b': ('file', 0o644, 'old a\n'), 'file': ('folder', 0o755), 'file/in': ('file', 0o644, 'in\n'), 'folder': ('file', 0o644, 'flat\n'),
		'link': ('link', 'edit')}
	assert parts.counts['renameat2'] >= 6 and parts.counts['fsync'] >= 4


@pytest.mark.parametrize('call', ['renameat2', 'unlinkat', 'mkdirat', 'symlinkat', 'fchmod', 'copy_file_range', 'write'])
def test_killed_at_each_call(cloche, parts, call):
	n = parts.counts[call]
	assert n > 0
	for when in range(1, n + 1, 1 if call == 'renameat2' else -(-n // 3)):
		name = parts.take()
		done = traced(cloche, 'apply', parts.id, str(parts.top / name), inject=f'{call}:signal=KILL:when={when}')
		assert done.returncode == -signal.SIGKILL, done
		check_each_is_old_or_new(parts.top / name, parts.old, parts.new)
		assert not re.search(r'(b/|to )\.cloche-', cloche.call('diff', parts.id, name, cwd=parts.top).out)
		parts.check_second(cloche, name)


@pytest.mark.parametrize('call, error', [('renameat2', 'ENOSPC'), ('renameat2', 'EDQUOT'), ('fsync', 'EIO'), ('mkdirat', 'ENOSPC'),
	('copy_file_range', 'ENOSPC'), ('unlinkat', 'EIO'), ('syncfs', 'EIO'), ('fdatasync', 'EIO')])
def test_a_disk_that_fails(cloche, parts, call, error):
	name = parts.take()
	done = traced(cloche, 'apply', '-v', parts.id, str(parts.top / name), inject=f'{call}:error={error}:when={1 if call == "syncfs" else 2}+')
	assert done.returncode == 125, done
	check_each_is_old_or_new(parts.top / name, parts.old, parts.new)
	now = snapshot(parts.top / name)
	told = re.findall(rf'^(applied|refused) +(?:[AMDm] |R \S+ -> )?{name}/(\S+)', done.stdout, re.M)
	assert len(told) >= 12, done
	for word, path in told:
		if not re.match('file|folder|move|right|left|other', path): # told as two each, or with their folders
			assert now.get(path) == (parts.new if word == 'applied' else parts.old).get(path), (path, done)
	parts.check_second(cloche, name)


@pytest.mark.parametrize('call', ['openat', 'openat2', 'newfstatat', 'getdents64', 'fgetxattr'])
def test_what_cannot_be_read_is_not_gone(cloche, parts, project, tmp_path, call):
	"""Nothing is taken away of which a part that could not be read may be all that is left; and the next one ends the work."""
	part, log = project / 'part', tmp_path / 'calls'

	def apply_new(inject):
		make_part(part)
		run = cloche.sh(EDITS.replace('p*', 'part'), options=('--no-trace', '-w', str(project)))
		assert run.code == 0, run
		done = traced(cloche, 'apply', run.record.id, inject=inject, log=log, calls=[call])
		check_each_is_old_or_new(part, parts.old, parts.new)
		again = cloche.call('apply', run.record.id)
		assert again.code == 0 and snapshot(part) == parts.new, (inject, done, again)
		shutil.rmtree(part)

	apply_new(None)
	n = len(re.findall(rf'^{call}\(', log.read_text(), re.M))
	assert n > 8
	for i in range(8):
		apply_new(f'{call}:error=EIO:when={1 + n * i // 8}')


@pytest.mark.parametrize('number', ['INT', 'TERM'])
def test_ctrl_c_ends_it_between_two_files(cloche, parts, number):
	name = parts.take()
	done = traced(cloche, 'apply', parts.id, str(parts.top / name), inject=f'fsync:signal={number}:when=1')
	assert done.returncode == 125 and 'stopped: what was not reached is still pending' in done.stderr, done
	assert f'applied  M {name}/a\n' in done.stdout and f'refused  {name}/link  (not reached)\n' in done.stdout, done
	now = snapshot(parts.top / name)
	assert now['a'] == parts.new['a'] and now['edit'] == parts.old['edit'] and 'link' not in now and ours(now) == []
	parts.check_second(cloche, name)


def test_discard_after_a_kill_takes_away_what_it_left(cloche, parts):
	name = parts.take()
	done = traced(cloche, 'apply', parts.id, str(parts.top / name), inject='fsync:signal=KILL:when=1')
	assert done.returncode == -signal.SIGKILL and len(ours(snapshot(parts.top / name))) == 1
	assert cloche.call('discard', parts.id, name, cwd=parts.top).code == 0
	assert snapshot(parts.top / name) == parts.old


# ---- the host meanwhile ----

@pytest.fixture
def edited(cloche, project):
	make_part(project / 'p')
	run = cloche.sh(EDITS, options=('-w', str(project)))
	assert run.code == 0, run
	return project / 'p', run.record.id


def test_a_change_without_a_new_time_is_seen_and_the_same_content_is_none(cloche, edited):
	part, box = edited
	info = (part / 'edit').stat()
	(part / 'edit').write_text('own edit\n')
	os.utime(part / 'edit', ns=(info.st_atime_ns, info.st_mtime_ns))
	(part / 'copy').write_text('old drop\n')
	os.rename(part / 'copy', part / 'drop')
	done = cloche.call('apply', box)
	assert done.code == 1 and 'refused  p/edit  (the host has changed it meanwhile: `apply --force` goes over it)\n' in done.out, done
	assert (part / 'edit').read_text() == 'own edit\n' and not (part / 'drop').exists()
	forced = cloche.call('apply', '--force', box)
	own = hashlib.sha256(b'own edit\n').hexdigest()
	assert forced.out == (f'about to overwrite p/edit  (sha256 {own})\n'
		f'applied  M p/edit  (over what the host changed meanwhile, sha256 {own})\n1 applied\n'), forced
	assert (part / 'edit').read_text() == 'after\n'


def test_what_became_something_else_is_left_alone(cloche, edited, tmp_path):
	part, box = edited
	outside = tmp_path / 'outside'
	outside.mkdir()
	(part / 'edit').unlink()
	(part / 'edit').mkdir()
	(part / 'edit' / 'own').write_text('own\n')
	(part / 'drop').unlink()
	(part / 'drop').symlink_to(outside)
	(part / 'deep').symlink_to(outside)
	(part / 'moved').write_text('own\n')
	subprocess.run(['mount', '--bind', outside, part / 'folder'], check=True)
	try:
		done = cloche.call('apply', box)
	finally:
		subprocess.run(['umount', part / 'folder'], check=True)
	assert done.code == 1, done
	assert list(outside.iterdir()) == []
	assert (part / 'edit' / 'own').read_text() == 'own\n' and os.readlink(part / 'deep') == str(outside)
	assert (part / 'moved').read_text() == 'own\n' and (part / 'move').read_text() == 'old move\n'
	assert ours(snapshot(part)) == []
	for name in ('deep/new', 'moved'):
		assert re.search(rf'^refused  p/{name}  \(', done.out, re.M), (name, done)


def test_rights_that_were_taken_away(cloche, project):
	make_part(project / 'p')
	for path in [project, *project.rglob('*')]:
		os.lchown(path, 1234, 1235)
	run = cloche.sh(EDITS, options=('-w', str(project)))
	assert run.code == 0, run
	os.chown(project / 'p', 0, 0)
	done = cloche.call('apply', run.record.id)
	assert done.code == 1 and 'refused  p/edit  (Permission denied)\n' in done.out, done
	now = snapshot(project / 'p')
	assert now['edit'] == ('file', 0o644, 'old edit\n') and 'link' not in now and ours(now) == []
	os.chown(project / 'p', 1234, 1235)
	done = cloche.call('apply', run.record.id)
	assert done.code == 0 and (project / 'p' / 'edit').read_text() == 'after\n', done


def test_a_full_disk(cloche, project, tmp_path):
	small = tmp_path / 'small'
	small.mkdir()
	subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', small], check=True)
	try:
		make_part(small / 'p')
		run = cloche.sh(EDITS + 'mkdir big; head -c 1000000 /dev/urandom > big/f; echo z > z', options=('-w', str(small), '-m', f'{small}:{small}:cow'))
		if 'ids cannot be mapped' in run.err:
			pytest.skip('no id-mapped tmpfs before Linux 6.3')
		assert run.code == 0, run
		done = cloche.call('apply', run.record.id)
		assert done.code == 125 and 'applied  A big\n' in done.out and 'refused  big/f  (No space left on device)\n' in done.out and 'refused  z  (not reached)' in done.out, done
		assert f"the disk of '{small}' is full: make room there and call it again" in done.err, done
		assert list((small / 'big').iterdir()) == [] and ours(snapshot(small)) == []
		subprocess.run(['mount', '-o', 'remount,size=4m', small], check=True)
		assert cloche.call('apply', run.record.id).code == 0
		assert (small / 'big' / 'f').stat().st_size == 1000000 and (small / 'z').read_text() == 'z\n'
	finally:
		subprocess.run(['umount', '-l', small], check=True)


@pytest.mark.parametrize('call', ['write', 'fdatasync'])
def test_a_full_disk_of_the_state_is_not_told_as_the_folders(cloche, project, call):
	make_part(project / 'p')
	run = cloche.sh(EDITS, options=('--no-trace', '-w', str(project)))
	changes = cloche.state / 'changes' / run.record.id
	done = cloche.strace(['-P', changes / 'journal.jsonl', '-e', f'inject={call}:error=ENOSPC:when=2+'], 'apply', run.record.id, cwd=project)
	assert done.returncode == 125 and done.stderr.startswith(f"cloche: apply: the disk of '{changes}' is full: make room there"), done
	assert cloche.call('apply', run.record.id).code == 0


def test_folders_in_folders_as_deep_as_their_names_are_long(cloche, project):
	"""Past what the kernel takes as one path, new and in what was there."""
	os.makedirs(project / '/'.join(['h' * 200] * 15))
	run = cloche.py(f'''
import os
for name, was in (('n' * 200, 0), ('h' * 200, 15)):
	os.chdir({str(project)!r})
	for i in range(280):
		if i >= was: os.mkdir(name)
		os.chdir(name)
	open('f', 'w').write('deep')
''', options=('--no-trace', '-w', str(project)))
	assert run.code == 0, run
	done = cloche.call('apply', run.record.id)
	assert done.code == 0 and done.out.endswith('\n2 applied\n') and done.err == '', done
	for name in 'nh':
		fd = os.open(project, os.O_RDONLY)
		for _ in range(280):
			below = os.open(name * 200, os.O_RDONLY, dir_fd=fd)
			os.close(fd)
			fd = below
		with open(os.open('f', os.O_RDONLY, dir_fd=fd)) as file:
			assert file.read() == 'deep'
		os.close(fd)
	subprocess.run(['rm', '-rf', project / ('n' * 200), project / ('h' * 200)], check=True)


def test_holes_attributes_hard_links_and_long_names(cloche, project):
	(project / 'plain').write_text('plain\n')
	name, odd = 'n' * 255, 'two\nlines\x1b[2J'
	run = cloche.py(f'''
import os
os.setxattr('plain', 'user.note', b'kept'); os.link('plain', 'second')
f = os.open({name!r}, os.O_CREAT | os.O_WRONLY); os.pwrite(f, b'end', 1 << 26); os.close(f)
open({odd!r}, 'w').write('odd'); os.symlink('nowhere', 'dangling'); os.mkdir('only'); os.chmod('only', 0o2770)
''', options=('-w', str(project)))
	assert run.code == 0, run
	done = cloche.call('apply', run.record.id)
	assert done.code == 0 and 'applied  A two\\nlines\\x1b[2J\n' in done.out, done
	assert (project / name).stat().st_size == (1 << 26) + 3 and (project / name).stat().st_blocks * 512 < 1 << 20
	assert os.getxattr(project / 'plain', 'user.note') == b'kept' and (project / 'second').read_text() == 'plain\n'
	assert (project / odd).read_text() == 'odd' and os.readlink(project / 'dangling') == 'nowhere'
	assert pathlib.Path(project / 'only').stat().st_mode & 0o7777 == 0o770


def test_what_was_parked_goes_back_or_on(cloche, project):
	"""A file that takes the place of its folder has to be parked, and that one was not named."""
	(project / 'd').mkdir()
	(project / 'd' / 'f').write_text('f\n')
	(project / 'd' / 'rest').write_text('rest\n')
	run = cloche.sh('mv d/f f; rm -r d; mv f d', options=('--no-trace', '-w', str(project)))
	done = cloche.call('apply', run.record.id, 'd/f')
	assert done.code == 1 and done.out == 'refused  d  (something else is there on the host)\n0 applied, 1 refused\n', done
	assert sorted(snapshot(project)) == ['d', 'd/f', 'd/rest']
	# Killed while it is parked, with something else at its place since.
	done = traced(cloche, 'apply', run.record.id, inject='renameat2:signal=KILL:when=2')
	[parked] = ours(snapshot(project))
	(project / 'd').mkdir(exist_ok=True)
	(project / 'd' / 'f').write_text('own\n')
	done = cloche.call('discard', run.record.id)
	assert done.code == 125 and f"an apply that was cut off left '{parked}' in your folder" in done.err, done
	done = cloche.call('apply', run.record.id)
	assert done.code == 1 and f"refused  d  (the host's folder holds more than the sandbox saw; it waits as '{parked}')\n" in done.out, done
	assert (project / parked).read_text() == 'f\n'
	(project / 'd' / 'f').unlink()
	assert cloche.call('discard', run.record.id).code == 0
	assert ours(snapshot(project)) == [] and (project / 'd' / 'f').read_text() == 'f\n'
