# SPDX-License-Identifier: Apache-2.0
"""What a sandbox changed in folders that it was given rw: by content, against what they were at its start."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

import harness

KINDS = ('added', 'removed', 'changed', 'renamed', 'mode_changed')


def sha(text):
	return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def tree(project):
	(project / 'sub' / 'deep').mkdir(parents=True)
	for name in ('keep', 'edit', 'drop', 'tool', 'move', 'sub/one', 'sub/deep/two'):
		(project / name).write_text(f'{name}\n')
	(project / 'link').symlink_to('edit')
	return project


def rw(folder):
	return ('-m', f'{folder}:{folder}:rw', '-w', str(folder))


def part_of(changes, root):
	[part] = [part for part in changes if part['root'] == str(root)]
	assert (part['cow'], part['rw'], part['unread']) == (False, True, None), part
	return part


def told(part):
	"""Each change as one word and a path below the root; renames with where they came from."""
	def name(entry, key='path'):
		return os.path.relpath(entry[key], part['root'])
	return {(kind, *([name(entry, 'from')] if kind == 'renamed' else []), name(entry)) for kind in KINDS for entry in part[kind]}


def entry_of(part, name):
	[entry] = [entry for kind in KINDS for entry in part[kind] if entry['path'] == os.path.join(part['root'], name)]
	return entry


def run(cloche, tree, script, options=()):
	done = cloche.sh(script, options=(*rw(tree), *options))
	assert done.code == 0, done
	return done


def changed_by(cloche, tree, script, options=()):
	return part_of(run(cloche, tree, script, options).record.changes(), tree)


def test_every_kind_of_change_is_told_by_content(cloche, tree):
	part = changed_by(cloche, tree, 'echo new > edit; rm drop; chmod 755 tool; mv move moved; echo a > add; mkdir empty; '
		'ln -sf keep link; mv sub elsewhere; echo 2 > elsewhere/deep/two; touch keep; mkfifo pipe')
	assert told(part) == {('changed', 'edit'), ('removed', 'drop'), ('mode_changed', 'tool'), ('renamed', 'move', 'moved'),
		('added', 'add'), ('added', 'empty'), ('changed', 'link'), ('renamed', 'sub', 'elsewhere'),
		('changed', 'elsewhere/deep/two'), ('added', 'pipe')}
	edit, link, tool = (entry_of(part, name) for name in ('edit', 'link', 'tool'))
	assert (edit['before'], edit['after']) == (sha('edit\n'), sha('new\n'))
	assert (link['target_before'], link['target'], link['before']) == ('edit', 'keep', None)
	assert (tool['mode_before'], tool['mode']) == ('0644', '0755')
	assert entry_of(part, 'elsewhere/deep/two')['from'] == str(tree / 'sub/deep/two')
	assert entry_of(part, 'pipe')['type'] == 'pipe'
	assert part['host_changed'] == [] and part['runs_on_host'] == []


@pytest.mark.parametrize('error', ['EIO', 'EACCES'])
def test_what_cannot_be_looked_at_is_not_called_gone(sandbox, cloche, tree, error):
	"""A disk that fails, and what is mounted by a user or from a server that is away."""
	box = sandbox('-m', f'{tree}:{tree}:rw')
	assert box.sh(f'cd {tree}; echo more >> edit; rm drop').code == 0
	done = cloche.strace(['-f', '-P', 'keep', '-P', 'sub', '-e', f'inject=statx:error={error}'], 'changes', box.id, '--json')
	assert done.returncode == 0, done
	[part] = [part for part in json.loads(done.stdout) if part['root'] == str(tree)]
	assert told(part) == {('changed', 'edit'), ('removed', 'drop')}, part
	assert bool(part['unread']) == (error == 'EIO'), part


@pytest.mark.parametrize(('name', 'which'), [('keep', 2), ('one', 1)])
def test_what_cannot_be_looked_at_below_a_copy_is_told_as_such(sandbox, cloche, tree, name, which):
	"""The call that looks at what lies below: of a changed file it is the second one of that name, of a removed one the first."""
	box = sandbox('-m', f'{tree}:{tree}:cow')
	assert box.sh(f'cd {tree}; echo more >> edit; echo more >> keep; rm -r sub; rm drop').code == 0
	done = cloche.strace(['-f', '-P', name, '-e', f'inject=newfstatat:error=EIO:when={which}'], 'changes', box.id, '--json')
	assert done.returncode == 0, done
	[part] = [part for part in json.loads(done.stdout) if part['root'] == str(tree)]
	everything = {('changed', 'edit'), ('changed', 'keep'), ('removed', 'drop'), ('removed', 'sub/one'), ('removed', 'sub/deep/two')}
	assert told(part) == {entry for entry in everything if not entry[1].endswith(name)}, part
	assert name in part['unread'] and 'Input/output error' in part['unread'], part


# What is done in a copy of the tree, and what it is told as.
CASES = {
	'touched': ('touch keep; touch -d 2001-01-01 edit', set()),
	'written': ('cp keep k2; cat k2 > keep; rm k2', set()),
	'replaced': ('cp keep k2; mv k2 keep', set()),
	'made again': ('cp -r sub s2; rm -r sub; mv s2 sub', set()),
	'mode and back': ('chmod 600 keep; chmod 644 keep', set()),
	# As long as it was, and with its old times.
	'hidden': ('cp -p keep k2; printf "peek\\n" > keep; touch -r k2 keep; rm k2', {('changed', 'keep')}),
	'mode': ('chmod 600 keep', {('mode_changed', 'keep')}),
	'case': ('mv keep KEEP', {('renamed', 'keep', 'KEEP')}),
	'folder': ('rm keep; mkdir keep; echo x > keep/f', {('removed', 'keep'), ('added', 'keep/f')}),
	'file': ('rm -r sub; echo x > sub', {('removed', 'sub/one'), ('removed', 'sub/deep/two'), ('added', 'sub')}),
	'link': ('rm keep; ln -s edit keep', {('changed', 'keep')}),
	'new under the old name': ('mv sub old; mkdir sub; echo x > sub/one', {('renamed', 'sub', 'old'), ('added', 'sub/one')}),
	'swapped': ('mv keep k2; mv edit keep; mv k2 edit', {('changed', 'keep'), ('changed', 'edit')}),
	'removed': ('rm -r sub', {('removed', 'sub/one'), ('removed', 'sub/deep/two')}),
	'mostly removed': ('rm -r sub; mkdir sub; echo sub/one > sub/one', {('removed', 'sub/deep/two')}),
	'over it': ('echo x > t; mv t keep', {('changed', 'keep')}),
	'deep in a moved one': ('mv sub up; mv up/deep up/deeper; echo x > up/one; rm up/deeper/two',
		{('renamed', 'sub', 'up'), ('renamed', 'sub/deep', 'up/deeper'), ('changed', 'up/one'), ('removed', 'sub/deep/two')}),
}


def test_what_is_a_change_and_what_is_none(cloche, tree, tmp_path):
	all_of_them = tmp_path / 'cases'
	for name in CASES:
		shutil.copytree(tree, all_of_them / name, symlinks=True)
	script = '; '.join(f"(cd '{name}' && {{ {script}; }})" for name, (script, _) in CASES.items())
	found = told(changed_by(cloche, all_of_them, script))
	for name, (_, wanted) in CASES.items():
		inside = {(change[0], *(os.path.relpath(path, name) for path in change[1:])) for change in found
			if change[-1].split('/')[0] == name}
		assert inside == wanted, name


def test_all_names_of_a_file_change_with_it(cloche, tree):
	os.link(tree / 'keep', tree / 'other')
	part = changed_by(cloche, tree, 'echo x >> other; ln edit edit2')
	assert told(part) == {('changed', 'keep'), ('changed', 'other'), ('added', 'edit2')}
	assert part['host_changed'] == []


MAPPED = '''
import mmap, os
fd = os.open('big', os.O_RDWR)
m = mmap.mmap(fd, 8192)
assert m[:4] == b'....'   # mapped for reading first
m[4096:4100] = b'####'
m.close()
'''


@pytest.mark.parametrize('where', ['disk', 'memory'])
def test_a_write_through_a_mapping_is_found(cloche, tree, tmp_path, where):
	folder = tree
	if where == 'memory':
		folder = tmp_path / 'memory'
		folder.mkdir()
		subprocess.run(['mount', '-t', 'tmpfs', 'none', folder], check=True)
	try:
		(folder / 'big').write_bytes(b'.' * 8192)
		(folder / 'same').write_bytes(b'.' * 8192)
		done = cloche.py(MAPPED, options=rw(folder))
		assert done.code == 0, done
		part = part_of(done.record.changes(), folder)
		assert told(part) == {('changed', 'big')}
		assert entry_of(part, 'big')['before'] == hashlib.sha256(b'.' * 8192).hexdigest()
	finally:
		if where == 'memory':
			subprocess.run(['umount', folder], check=True)


def test_full_finds_what_left_no_stamp_and_nobody_saw(tmp_path, cloche, sandbox):
	folder = tmp_path / 'memory'
	folder.mkdir()
	subprocess.run(['mount', '-t', 'tmpfs', 'none', folder], check=True)
	try:
		(folder / 'big').write_bytes(b'.' * 8192)
		os.utime(folder / 'big', (1, 1))
		time.sleep(0.1)  # older than a tick of the clock of files: else it is read in any case
		box = sandbox('--no-trace', '--full', *rw(folder)[:2])
		stamp = (folder / 'big').stat().st_ctime_ns
		assert box.py(MAPPED.replace("'big'", f"'{folder}/big'")).code == 0
		if (folder / 'big').stat().st_ctime_ns == stamp:  # as the kernel has it
			assert told(part_of(box.record.changes(), folder)) == set()
		full = json.loads(cloche.call('changes', '--json', '--full', box.id).out)
		assert told(part_of(full, folder)) == {('changed', 'big')}
		assert box.remove().code == 0
		assert told(part_of(box.record.changes(), folder)) == {('changed', 'big')}  # --full: the end reads all, too
	finally:
		subprocess.run(['umount', '-l', folder], check=True)


def test_who_made_each_change_is_named(cloche, tree):
	done = run(cloche, tree, 'echo new > edit; cp keep copy; echo x > t; mv t into')
	part = part_of(done.record.changes(), tree)
	exec_id = done.record.row()['exec']
	for name, program in (('edit', 'dash'), ('copy', 'cp'), ('into', 'mv')):
		entry = entry_of(part, name)
		assert entry['execs'] == [exec_id], name
		assert program in {os.path.basename(path) for path in entry['programs']}, entry
		assert len(entry['processes']) >= 1 and len(entry['commands']) == 1, entry
	assert 'dash' in {os.path.basename(path) for path in entry_of(part, 'into')['programs']}  # who wrote what was moved
	text = cloche.call('changes', '--verbose', done.record.id).out
	assert f'M edit\n      by {entry_of(part, "edit")["commands"][0]["line"]}\n' in text, text


def test_who_made_what_lies_in_a_renamed_folder_is_named(cloche, tree):
	done = run(cloche, tree, 'mkdir a a/in; cp keep a/in/x; /usr/bin/tee a/y < keep > a/gone; mv a/in a/out; mv a b; rm b/gone; '
		'mkdir -p a/out; /usr/bin/install keep a/out/x; dd if=keep of=b/gone 2>/dev/null')
	part = part_of(done.record.changes(), tree)
	exec_id = done.record.row()['exec']
	for name, programs in (('b/out/x', ['cp']), ('b/y', ['tee']), ('a/out/x', ['install']), ('b/gone', ['dd', 'rm'])):
		entry = entry_of(part, name)
		assert sorted({os.path.basename(path) for path in entry['programs']}) == programs, entry
		assert entry['execs'] == [exec_id] and len(entry['processes']) == len(programs), entry
		assert sorted(command['line'].split()[0].split('/')[-1] for command in entry['commands']) == ['sh'], entry


def test_part_of_a_run_knows_what_it_made_by_the_name_of_now(cloche, tree, sandbox):
	box = sandbox('--trace', *rw(tree)[:2])
	for script in ('mkdir a; echo 1 > a/x', 'mv a b; echo 2 > b/z'):
		assert box.sh(f'cd {tree}; {script}').code == 0
	execs = [row['exec'] for row in box.record.rows()]
	for exec_id, want in zip(execs, ({'b/x'}, {'b/x', 'b/z'})):
		part = part_of(json.loads(cloche.call('changes', '--json', '--exec', exec_id, box.id).out), tree)
		assert {name for kind, name in told(part) if kind == 'added'} == want, part


def test_without_tracing_changes_are_told_and_nobody_is_named(cloche, tree):
	done = run(cloche, tree, 'echo new > edit', options=('--no-trace',))
	part = part_of(done.record.changes(), tree)
	assert told(part) == {('changed', 'edit')} and part['traced'] is False
	assert [entry_of(part, 'edit')[key] for key in ('execs', 'processes', 'programs', 'commands')] == [[], [], [], []]
	assert 'files were not watched' in cloche.call('changes', '-v', done.record.id).out
	refused = cloche.call('changes', '--exec', 'ex_', done.record.id)
	assert refused.code != 0 and 'not watched' in refused.err


def test_what_the_host_runs_is_said_first(cloche, tree):
	subprocess.run(['git', 'init', '-q', tree], check=True)
	done = run(cloche, tree, 'echo evil > .git/hooks/pre-commit; git add -A 2>/dev/null; echo x > .envrc; echo y > plain; '
		'mkdir -p node_modules/m; echo z > node_modules/m/index.js; mkdir node_modules/n node_modules/o; '
		'echo \'{"scripts":{"test":"x"}}\' > node_modules/n/package.json; echo \'{"scripts":{"install":"x"}}\' > node_modules/o/package.json')
	part = part_of(done.record.changes(), tree)
	assert {(os.path.relpath(note['path'], tree), note['reason']) for note in part['runs_on_host']} == {
		('.git/hooks/pre-commit', 'git hook'), ('.envrc', 'shell set-up'), ('node_modules/o/package.json', 'install script')}
	assert told(part) == {('added', '.envrc'), ('added', 'plain')}
	skipped = {os.path.relpath(folder['path'], tree): folder for folder in part['skipped']}
	assert set(skipped) == {'.git', 'node_modules'}
	assert [os.path.relpath(note['path'], tree) for note in skipped['.git']['notable']] == ['.git/hooks/pre-commit']
	assert (skipped['node_modules']['count'], skipped['node_modules']['added']) == (3, 3)
	assert '3 files changed in place that the host runs' in cloche.call('show', done.record.id).out
	lines = cloche.call('changes', done.record.id).out.splitlines()
	at = lines.index(f'{tree} (rw: this is in the host\'s folder already)')
	assert lines[at + 1].startswith('  REVIEW in place, the host will run: .'), lines


def test_what_the_host_changed_during_the_run_is_not_the_sandboxs(cloche, tree, sandbox):
	box = sandbox('--trace', *rw(tree)[:2])
	assert box.sh(f'cd {tree}; echo box > edit; mv sub elsewhere').code == 0
	(tree / 'keep').write_text('host\n')
	(tree / 'mine').write_text('host\n')
	(tree / 'drop').unlink()
	part = part_of(box.record.changes(), tree)
	assert told(part) == {('changed', 'edit'), ('changed', 'keep'), ('added', 'mine'), ('removed', 'drop'),
		('renamed', 'sub', 'elsewhere')}
	assert {(os.path.relpath(note['path'], tree), note['change']) for note in part['host_changed']} == {
		('keep', 'changed'), ('mine', 'added'), ('drop', 'removed')}


def test_the_end_is_kept_and_later_edits_are_not_in_it(cloche, tree):
	done = run(cloche, tree, 'echo new > edit')
	(tree / 'keep').write_text('later\n')
	(tree / 'edit').write_text('later\n')
	part = part_of(done.record.changes(), tree)
	assert told(part) == {('changed', 'edit')}
	assert entry_of(part, 'edit')['after'] == sha('new\n') and entry_of(part, 'edit')['execs'] == [done.record.row()['exec']]
	assert cloche.call('rm', '--changes', done.record.id).code == 0
	assert part_of(done.record.changes(), tree) == part


def test_changes_of_a_sandbox_whose_supervisor_was_killed(own_cloche, tmp_path):
	tree = tmp_path / 'tree'
	tree.mkdir()
	(tree / 'edit').write_text('edit\n')
	box = own_cloche.create('--trace', *rw(tree)[:2])
	assert box.sh(f'echo new > {tree}/edit').code == 0
	[supervisor] = box.supervisor()
	os.kill(supervisor, signal.SIGKILL)
	harness.wait_for(lambda: not box.supervisor(), 'the supervisor to be gone')
	harness.wait_for(lambda: own_cloche.call('gc').code == 0 and not own_cloche.left_behind(), 'gc to have cleaned the host')
	part = part_of(box.record.changes(), tree)
	assert told(part) == {('changed', 'edit')} and entry_of(part, 'edit')['before'] == sha('edit\n')
	assert len(entry_of(part, 'edit')['execs']) == 1


def test_a_single_file_that_is_rw(cloche, tree):
	single = tree / 'edit'
	done = cloche.sh('echo new > /single', options=('-m', f'{single}:/single:rw'))
	part = part_of(done.record.changes(), '/single')
	assert told(part) == {('changed', '.')}
	[entry] = part['changed']
	assert (entry['path'], entry['before'], entry['after']) == ('/single', sha('edit\n'), sha('new\n'))


def test_names_of_any_bytes(cloche, tree):
	name = b'a\xff\nb'
	(tree / 'x').write_text('x')
	os.rename(os.fsencode(tree) + b'/x', os.fsencode(tree) + b'/' + name)
	part = changed_by(cloche, tree, 'for f in a*; do echo y > "$f"; done')
	[entry] = part['changed']
	assert 'path_b64' in entry and entry['after'] == sha('y\n')


# ---- the hashes of before ----

def snapshots(cloche):
	return list((cloche.state / 'hashes').iterdir())


def test_hashes_are_kept_for_the_next_sandbox_and_full_does_not_trust_them(own_cloche, tmp_path):
	tree = tmp_path / 'tree'
	tree.mkdir()
	(tree / 'a').write_text('aaaa\n')
	(tree / 'b').write_text('bbbb\n')
	time.sleep(0.1)  # older than a tick of the clock of files: else they are read at each start
	box = own_cloche.create(*rw(tree)[:2])
	before = next((own_cloche.state / 'changes' / box.id).glob('before.*'))
	harness.wait_for(lambda: hashlib.sha256(b'aaaa\n').digest() in before.read_bytes(), 'the files to be read')
	box.remove()
	[kept] = snapshots(own_cloche)
	assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
	# A hash that cannot be: it is believed, as the file's stamps are the same; but not with --full.
	kept.write_bytes(kept.read_bytes().replace(hashlib.sha256(b'aaaa\n').digest(), b'\1' * 32))
	seen = {}
	for options in ((), ('--full',)):
		done = own_cloche.sh(f'printf "cccc\\n" > {tree}/a', options=(*rw(tree)[:2], *options))
		entry = entry_of(part_of(done.record.changes(), tree), 'a')
		seen[options] = entry['before']
		(tree / 'a').write_text('aaaa\n')
		os.utime(tree / 'a')
	assert seen[('--full',)] == sha('aaaa\n')


@pytest.mark.parametrize('damage', [b'', b'nonsense', None])
def test_a_damaged_store_of_hashes_is_no_harm(own_cloche, tmp_path, damage):
	tree = tmp_path / 'tree'
	tree.mkdir()
	(tree / 'a').write_text('a\n')
	assert own_cloche.sh('true', options=rw(tree)[:2]).code == 0
	[kept] = snapshots(own_cloche)
	text = kept.read_bytes()
	kept.write_bytes(text[:len(text) // 2] if damage is None else damage)
	done = own_cloche.sh(f'echo b > {tree}/a', options=(*rw(tree)[:2], '--full'))
	assert done.code == 0, done
	assert entry_of(part_of(done.record.changes(), tree), 'a')['before'] == sha('a\n')


def test_several_sandboxes_in_one_folder_at_once(cloche, tree, sandbox):
	boxes = [sandbox('--trace', *rw(tree)[:2]) for _ in range(3)]
	for n, box in enumerate(boxes):
		assert box.sh(f'echo {n} > {tree}/of{n}').code == 0
	for n, box in enumerate(boxes):
		part = part_of(box.record.changes(), tree)
		assert told(part) == {('added', f'of{k}') for k in range(3)}
		assert {os.path.basename(note['path']) for note in part['host_changed']} == {f'of{k}' for k in range(3) if k != n}


def test_full_reads_what_the_stamps_hide(cloche, tree, sandbox):
	(tree / 'huge').write_bytes(b'\0' * (65 << 20))
	box = sandbox('--no-trace', '--full', *rw(tree)[:2])
	assert box.sh(f'cd {tree}; touch huge').code == 0
	assert told(part_of(box.record.changes(), tree)) == set()
	lazy = sandbox('--no-trace', *rw(tree)[:2])
	assert lazy.sh(f'cd {tree}; touch huge').code == 0
	part = part_of(lazy.record.changes(), tree)
	assert told(part) == {('changed', 'huge')}
	assert entry_of(part, 'huge')['unsure'] is True and entry_of(part, 'huge')['before'] is None


# ---- part of a run ----

@pytest.mark.parametrize('mode', ['rw', 'cow'])
def test_what_some_execs_changed(cloche, tree, sandbox, mode):
	box = sandbox('--trace', '-m', f'{tree}:{tree}:{mode}')
	first = box.sh(f'cd {tree}; echo 1 > edit; echo 1 > only1; echo 1 > passing').record.exec_id
	second = box.sh(f'cd {tree}; echo 2 > edit; echo 2 > only2; rm passing').record.exec_id
	def of(*execs):
		changes = json.loads(cloche.call('changes', '--json', '--exec', ','.join(execs), box.id).out)
		[part] = [part for part in changes if part['root'] == str(tree)]
		return part
	part = of(first)
	assert told(part) == {('changed', 'edit'), ('added', 'only1')}
	edit = entry_of(part, 'edit')
	assert (edit['before'], edit['after'], edit['after_by_others']) == (sha('edit\n'), None, True)
	assert [(os.path.basename(one['path']), one['did']) for one in part['touched']] == [('passing', ['written', 'created'])]
	part = of(second)
	assert told(part) == {('changed', 'edit'), ('added', 'only2')}
	edit = entry_of(part, 'edit')
	assert (edit['before'], edit['before_by_others'], edit['after']) == (None, True, sha('2\n'))
	part = of(first, second)
	assert told(part) == {('changed', 'edit'), ('added', 'only1'), ('added', 'only2')}
	assert (entry_of(part, 'edit')['before'], entry_of(part, 'edit')['after']) == (sha('edit\n'), sha('2\n'))
	assert cloche.call('changes', '--exec', 'ex_none', box.id).code != 0


def test_what_was_changed_since_a_moment(cloche, tree, sandbox):
	box = sandbox('--trace', *rw(tree)[:2])
	box.sh(f'echo 1 > {tree}/edit')
	seq = max(event['seq'] for event in box.record.events())
	box.sh(f'echo 2 > {tree}/keep')
	changes = json.loads(cloche.call('changes', '--json', '--since', str(seq), box.id).out)
	assert told(part_of(changes, tree)) == {('changed', 'keep')}
	changes = json.loads(cloche.call('changes', '--json', '--until', str(seq), box.id).out)
	assert told(part_of(changes, tree)) == {('changed', 'edit')}
	assert cloche.call('changes', '--since', 'nonsense', box.id).code == 2


# ---- the root's own folders ----

def test_etc_and_usr_local_of_an_unpacked_root(cloche, tmp_path):
	root = tmp_path / 'root'
	for name in ('bin', 'etc', 'usr/local/bin', 'root', 'home', 'tmp', 'dev', 'proc', 'sys'):
		(root / name).mkdir(parents=True)
	subprocess.run(['cp', '/bin/busybox', root / 'bin' / 'sh'], check=True)
	(root / 'etc' / 'conf').write_text('old\n')
	done = cloche.call('run', '--rootfs', root, '-w', '/', '--', '/bin/sh', '-c',
		'echo new > /etc/conf; echo t > /usr/local/bin/tool')
	assert done.code == 0, done
	changes = json.loads(cloche.call('changes', '--json', 'last').out)
	found = {part['root']: [entry['path'] for kind in KINDS for entry in part[kind]] for part in changes}
	assert found['/etc'] == ['/etc/conf'] and found['/usr/local'] == ['/usr/local/bin/tool']
	[conf] = next(part for part in changes if part['root'] == '/etc')['changed']
	assert (conf['before'], conf['after']) == (sha('old\n'), sha('new\n'))
	assert conf['programs'] == ['/bin/sh']
