# SPDX-License-Identifier: Apache-2.0
"""What a sandbox changed, and taking it over."""
import hashlib
import json
import os
import stat
import subprocess
import time

import pytest

from harness import WORK, Cloche, kill_and_wait


def sha(text):
	return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def tree(project):
	"""A small project on the host."""
	(project / 'sub').mkdir()
	(project / 'keep').write_text('keep\n')
	(project / 'edit').write_text('before\n')
	(project / 'drop').write_text('drop\n')
	(project / 'sub' / 'move').write_text('move\n')
	(project / 'tool').write_text('#!/bin/sh\n')
	return project


EDITS = '''
echo after > edit; rm drop; echo new > add; mkdir -p deep/er; echo d > deep/er/f; mv sub/move sub/moved
chmod 755 tool; touch keep; ln -s edit link
'''


def edited(cloche, tree, script=EDITS, **how):
	run = cloche.sh(script, options=('-w', str(tree)), **how)
	assert run.code == 0, run
	return run


def change_set(run, root):
	[part] = [part for part in run.record.changes() if part['root'] == str(root)]
	return part


def paths(part, what):
	return sorted(os.path.relpath(entry['path'], part['root']) for entry in part[what])


def test_changes_are_listed_by_content(cloche, tree):
	part = change_set(edited(cloche, tree), tree)
	renamed = {(os.path.relpath(entry['from'], tree), os.path.relpath(entry['path'], tree)) for entry in part['renamed']}
	assert renamed in ({('sub/move', 'sub/moved')}, set())
	assert paths(part, 'added') == ['add', 'deep/er/f', 'link'] + ([] if renamed else ['sub/moved'])
	assert paths(part, 'removed') == ['drop'] + ([] if renamed else ['sub/move'])
	assert paths(part, 'changed') == ['edit'] and paths(part, 'mode_changed') == ['tool']
	[edit] = part['changed']
	assert (edit['before'], edit['after']) == (sha('before\n'), sha('after\n'))
	assert part['host_changed'] == []


def test_changes_name_the_exec_that_made_them(cloche, tree):
	run = edited(cloche, tree)
	[edit] = change_set(run, tree)['changed']
	assert edit['execs'] == [run.record.row()['exec']]


def test_touch_and_same_content_are_no_change(cloche, tree):
	part = change_set(edited(cloche, tree, 'touch keep; cp keep k2; cat k2 > keep; rm k2; chmod 644 edit'), tree)
	assert all(part[what] == [] for what in ('added', 'removed', 'changed', 'renamed'))


def test_apply_brings_everything_over(cloche, tree):
	run = edited(cloche, tree)
	assert (tree / 'edit').read_text() == 'before\n'
	done = cloche.call('apply', run.record.id)
	assert done.code == 0, done
	assert (tree / 'edit').read_text() == 'after\n' and not (tree / 'drop').exists()
	assert (tree / 'add').read_text() == 'new\n' and (tree / 'deep' / 'er' / 'f').read_text() == 'd\n'
	assert (tree / 'sub' / 'moved').read_text() == 'move\n' and not (tree / 'sub' / 'move').exists()
	assert stat.S_IMODE((tree / 'tool').stat().st_mode) == 0o755
	assert os.readlink(tree / 'link') == 'edit'
	again = cloche.call('apply', run.record.id)
	assert again.code in (0, 1) and 'nothing' in (again.out + again.err).lower()


def test_apply_of_one_path_leaves_the_rest(cloche, tree):
	run = edited(cloche, tree)
	assert cloche.call('apply', run.record.id, 'edit').code == 0
	assert (tree / 'edit').read_text() == 'after\n'
	assert (tree / 'drop').exists() and not (tree / 'add').exists()
	assert cloche.call('apply', run.record.id).code == 0
	assert not (tree / 'drop').exists() and (tree / 'add').exists()


def test_apply_keeps_the_owner_of_the_folder(cloche, tree):
	for path in [tree, *tree.rglob('*')]:
		os.lchown(path, 1234, 1235)
	run = edited(cloche, tree)
	assert cloche.call('apply', run.record.id).code == 0
	for name in ('add', 'edit', 'deep', 'deep/er/f', 'link'):
		info = (tree / name).lstat()
		assert (info.st_uid, info.st_gid) == (1234, 1235), name


def test_apply_drops_set_id_bits_and_devices_and_names_them(cloche, tree):
	run = edited(cloche, tree, 'cp /bin/true tool; chmod 6755 tool; mkfifo pipe; echo plain > plain')
	done = cloche.call('apply', run.record.id)
	assert done.code == 0, done
	assert stat.S_IMODE((tree / 'tool').stat().st_mode) == 0o755
	assert 'tool' in done.out + done.err
	assert (tree / 'plain').exists()
	assert not (tree / 'pipe').exists() or stat.S_ISFIFO((tree / 'pipe').stat().st_mode)


def test_apply_refuses_what_the_host_changed_meanwhile(cloche, tree):
	run = edited(cloche, tree)
	(tree / 'edit').write_text('mine\n')
	part = change_set(run, tree)
	assert [os.path.basename(path if isinstance(path, str) else path['path']) for path in part['host_changed']] == ['edit']
	done = cloche.call('apply', run.record.id)
	assert done.code == 1 and 'edit' in done.err + done.out
	assert (tree / 'edit').read_text() == 'mine\n'
	assert cloche.call('apply', '--force', run.record.id).code == 0
	assert (tree / 'edit').read_text() == 'after\n'


def test_apply_does_not_write_through_links_of_the_host(cloche, tree, tmp_path):
	run = edited(cloche, tree, 'mkdir -p new; echo x > new/f')
	outside = tmp_path / 'outside'
	outside.mkdir()
	os.symlink(outside, tree / 'new')
	done = cloche.call('apply', run.record.id)
	assert done.code != 0
	assert list(outside.iterdir()) == []


def test_what_would_run_on_the_host_is_shown_and_applied_only_when_named(cloche, tree):
	subprocess.run(['git', 'init', '-q', tree], check=True)
	run = edited(cloche, tree, 'mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo x >> .envrc; echo y > plain')
	part = change_set(run, tree)
	shown = [os.path.relpath(entry if isinstance(entry, str) else entry['path'], tree) for entry in part['runs_on_host']]
	assert '.git/hooks/pre-commit' in shown and '.envrc' in shown
	assert cloche.call('apply', run.record.id).code in (0, 1)
	assert (tree / 'plain').exists()
	assert not (tree / '.git' / 'hooks' / 'pre-commit').exists() and not (tree / '.envrc').exists()
	assert cloche.call('apply', run.record.id, '.envrc').code == 0
	assert (tree / '.envrc').exists()


def test_what_is_left_of_a_skipped_folder_is_one_line(cloche, tree):
	subprocess.run(['git', 'init', '-q', tree], check=True)
	run = edited(cloche, tree, 'mkdir -p .git/hooks node_modules/m; echo x > .git/a; echo x > .git/z; echo x > .git/hooks/pre-commit; '
		'echo y > node_modules/m/a')
	done = cloche.call('apply', run.record.id)
	assert done.out.splitlines() == [
		'left     .git/  2 files  (files of .git do not come over one by one: --branch NAME brings the commits)',
		'left     .git/hooks/pre-commit  (the host would run it (git hook): name it to take it over)',
		'left     node_modules/  1 file  (name its folder to take it over)',
		'0 applied, 4 left']
	[part] = json.loads(cloche.call('apply', '--json', run.record.id).out)
	assert [entry['path'] for entry in part['changes']] == ['.git/a', '.git/hooks/pre-commit', '.git/z', 'node_modules/m/a']


def test_apply_says_what_it_did(cloche, tree):
	run = edited(cloche, tree, 'echo x >> edit; rm drop; mv sub/move moved; echo n > new; chmod 755 tool; ln -s edit lk; for i in $(seq 10 40); do echo > m$i; done')
	done = cloche.call('apply', run.record.id)
	assert done.code == 0 and done.out.splitlines() == [
		'applied  D drop', 'applied  M edit', 'applied  A lk', *(f'applied  A m{i}' for i in range(10, 27)), 'applied  ... and 17 more',
		'37 applied'], done


def test_apply_says_in_json_and_at_the_end_of_a_run_what_it_did(cloche, tree):
	run = edited(cloche, tree, 'mv sub/move moved; chmod 755 tool; echo n > new')
	[part] = json.loads(cloche.call('apply', '--json', run.record.id, '.', 'nothing').out)
	assert part['changes'] == [
		{'path': 'nothing', 'result': 'refused', 'note': 'nothing to take over there'},
		{'path': 'moved', 'result': 'applied', 'change': 'renamed', 'from': 'sub/move'}, {'path': 'new', 'result': 'applied', 'change': 'added'},
		{'path': 'tool', 'result': 'applied', 'change': 'mode_changed'}], part
	run = cloche.sh('echo x > new; mv moved back', options=('--apply', '--no-summary', '-w', str(tree)))
	assert run.err == 'applied  R moved -> back\napplied  M new\n2 applied\n', run
	assert cloche.sh('echo y > new', options=('--apply', '--quiet', '-w', str(tree))).err == ''


def test_naming_node_modules_takes_all_of_it_and_counts_install_scripts(cloche, tree):
	run = edited(cloche, tree, 'mkdir -p node_modules/1/.github/workflows node_modules/1/.git/hooks; echo x | tee node_modules/1/.github/workflows/ci.yml '
		'node_modules/1/.npmrc node_modules/1/.git/hooks/post-merge; for i in 1 2 3; do mkdir -p node_modules/$i; echo x > node_modules/$i/i.js; '
		'echo \'{"scripts":{"test":"x"}}\' > node_modules/$i/package.json; done; echo \'{"scripts":{"postinstall":"x"}}\' > node_modules/2/package.json')
	hook = 'left     node_modules/1/.git/hooks/post-merge  (the host would run it (git hook): name it to take it over)'
	part = change_set(run, tree)
	assert [(os.path.relpath(note['path'], tree), note['reason']) for note in part['runs_on_host']] == [
		('node_modules/1/.git/hooks/post-merge', 'git hook'), ('node_modules/2/package.json', 'install script')]
	for paths in ((), ('.',)):
		whole = cloche.call('apply', run.record.id, *paths)
		assert whole.code == len(paths) and whole.out.splitlines() == [
			hook, 'left     node_modules/  8 files  (name its folder to take it over)', '0 applied, 9 left'], whole
	each = cloche.call('apply', '-v', run.record.id, 'node_modules/2')
	assert each.code == 0 and each.out.splitlines() == [
		'applied  A node_modules/2/i.js', 'applied  A node_modules/2/package.json  (has install scripts)', '2 applied'], each
	(tree / 'node_modules' / '2' / 'package.json').unlink()
	named = cloche.call('apply', run.record.id, 'node_modules')
	assert named.code == 1 and named.out.splitlines() == [
		hook, 'applied  A node_modules/1/.github/workflows/ci.yml', 'applied  A node_modules/1/.npmrc',
		*(f'applied  A node_modules/{i}/{name}' for i in (1, 3) for name in ('i.js', 'package.json')), '6 applied, 1 left'], named
	assert cloche.call('apply', run.record.id, 'node_modules/1/.git/hooks/post-merge').code == 0


def test_install_scripts_that_come_over_are_one_line(cloche, tree):
	run = edited(cloche, tree, 'for i in 1 2; do mkdir -p node_modules/$i; echo \'{"scripts":{"install":"x"}}\' > node_modules/$i/package.json; done')
	done = cloche.call('apply', run.record.id, 'node_modules')
	assert done.code == 0 and done.out.splitlines() == [
		'applied  A node_modules/1/package.json', 'applied  A node_modules/2/package.json',
		'applied  2 packages with install scripts  (-v lists them)', '2 applied'], done


def test_the_summary_tells_of_what_is_only_counted(cloche, tree):
	subprocess.run(['git', 'init', '-q', tree], check=True)
	run = edited(cloche, tree, 'mkdir -p node_modules/a n/node_modules; echo x | tee .git/a node_modules/a/b n/node_modules/c > plain')
	assert ', 0 removed; .git: 1 changed; node_modules: 2 changed; /etc unchanged;' in ' '.join(run.err.split()), run
	assert run.err.splitlines()[-1].startswith('1 file changed and 3 in .git and node_modules, not yet in your folder:  '), run
	for path, told in (('plain', '3 files changed in .git and node_modules, '), ('n/node_modules', '2 files changed in .git and node_modules, '),
		('node_modules', '1 file changed in .git, ')):
		assert cloche.call('apply', run.record.id, path).code == 0
		assert cloche.call('show', run.record.id).out.splitlines()[-1].startswith(told + 'not yet in your folder:  '), path
	shown = json.loads(cloche.call('show', '--json', run.record.id).out)
	assert (shown['changes_pending'], shown['changes_pending_skipped']) == (0, 1)
	assert cloche.call('discard', run.record.id).code == 0
	assert 'not yet in your folder' not in cloche.call('show', run.record.id).out


def test_no_folder_is_made_for_what_stays(cloche, tree):
	run = edited(cloche, tree, 'mkdir -p .github/workflows n/node_modules mixed/.github/workflows bare/deep; echo x | tee .github/workflows/ci.yml '
		'n/node_modules/a mixed/.github/workflows/ci.yml > mixed/plain')
	done = cloche.call('apply', run.record.id)
	assert done.code == 0 and done.out.splitlines()[-3:] == ['applied  A bare/deep', 'applied  A mixed/plain', '2 applied, 3 left'], done
	assert sorted(str(path.relative_to(tree)) for path in tree.rglob('*') if path.is_dir() and path.name != 'sub') == ['bare', 'bare/deep', 'mixed']
	assert cloche.call('apply', run.record.id, '.github/workflows').code == 0
	assert (tree / '.github/workflows/ci.yml').read_text() == 'x\n'
	last = cloche.call('apply', run.record.id, 'mixed/.github/workflows/ci.yml', 'n/node_modules')
	assert last.code == 0 and last.out.splitlines() == ['applied  A mixed/.github/workflows/ci.yml', 'applied  A n/node_modules/a', '2 applied'], last
	assert cloche.call('apply', run.record.id).out == 'nothing to apply\n'


def test_changes_folds_what_node_modules_would_run(cloche, tree):
	run = edited(cloche, tree, 'mkdir -p .git/hooks n/node_modules/a; echo x | tee .git/hooks/post-merge > .git/hooks/pre-commit; for i in $(seq 10 40); do '
		'mkdir -p node_modules/$i; echo \'{"scripts":{"install":"x"}}\' > node_modules/$i/package.json; done; cp node_modules/10/package.json n/node_modules/a')
	def told(*options):
		text = cloche.call('changes', *options, run.record.id).out
		return [line for line in text.splitlines() if line.startswith('  REVIEW') or 'node_modules: ' in line]
	review = '  REVIEW runs on the host:'
	hooks = [f'{review} .git/hooks/{name} (git hook)' for name in ('post-merge', 'pre-commit')]
	one = f'{review} n/node_modules/a/package.json (install script)'
	assert told() == ['  n/node_modules: 1 changed, a/package.json ADDED',
		'  node_modules: 31 changed, 10/package.json ADDED, 11/package.json ADDED, 12/package.json ADDED, and more',
		*hooks, one, f'{review} node_modules/  31 files (install script; -v lists them)']
	assert told('-v')[2:] == [*hooks, one, *(f'{review} node_modules/{i}/package.json (install script)' for i in range(10, 41))]
	assert len(change_set(run, tree)['runs_on_host']) == 34


def test_sample_hooks_are_run_by_nobody(cloche, tree):
	run = edited(cloche, tree, 'mkdir -p .git/hooks .git/modules/m.sample/hooks; cd .git; echo x > hooks/pre-commit.sample; '
		'echo x > modules/m.sample/hooks/a.sample; echo x > modules/m.sample/hooks/post-merge')
	part = change_set(run, tree)
	assert [os.path.relpath(entry['path'], tree) for entry in part['runs_on_host']] == ['.git/modules/m.sample/hooks/post-merge']
	assert [(entry['count'], entry['added']) for entry in part['skipped']] == [(3, 3)]
	assert cloche.call('apply', run.record.id, '.git').code == 1  # the samples, which are left
	assert [str(path.relative_to(tree)) for path in sorted((tree / '.git').rglob('*')) if path.is_file()] == ['.git/modules/m.sample/hooks/post-merge']


def test_discard_forgets(cloche, tree):
	run = edited(cloche, tree)
	assert cloche.call('discard', run.record.id).code == 0
	for form in ('--json', '--jsonl'):
		assert json.loads(cloche.call('discard', run.record.id, form).out) == {'discarded': 0}
	done = cloche.call('apply', run.record.id)
	assert done.code != 0 or 'nothing' in (done.out + done.err).lower()
	assert (tree / 'edit').read_text() == 'before\n'


def test_discard_counts_what_lies_in_skipped_folders(cloche, tree):
	command = 'mkdir -p .git/o n/node_modules/m .git-x; echo x | tee .git/a .git/o/b n/node_modules/m/c .git-x/d'
	whole, part = edited(cloche, tree, command), edited(cloche, tree, command)
	assert sorted(cloche.call('discard', whole.record.id).out.splitlines()) == [
		'4 thrown away', 'discarded .git-x/d', 'discarded .git/  2 files', 'discarded n/node_modules/  1 file']
	assert json.loads(cloche.call('discard', '--json', part.record.id, '.git').out) == {'discarded': 2}
	assert cloche.call('discard', part.record.id, '.git', 'n').out == 'discarded n/node_modules/  1 file\n1 thrown away\n'


@pytest.mark.parametrize('option, code, taken', [('--apply', 0, True), ('--apply', 3, True), ('--apply=on-success', 0, True),
	('--apply=on-success', 3, False)])
def test_apply_at_the_end_of_a_run(cloche, tree, option, code, taken):
	run = cloche.sh(f'echo after > edit; exit {code}', options=(option, '-w', str(tree)))
	assert run.code == code
	assert (tree / 'edit').read_text() == ('after\n' if taken else 'before\n')


@pytest.mark.parametrize('code, status', [(0, 1), (3, 3)])
def test_apply_at_the_end_says_by_its_status_that_something_was_refused(cloche, tree, code, status):
	os.chown(tree / 'edit', 1234, 1234)
	run = cloche.sh(f'echo after > edit; echo new > add; exit {code}', options=('--apply', '-w', str(tree)))
	assert run.code == status, run
	assert 'refused' in run.err and 'edit' in run.err
	assert (tree / 'edit').read_text() == 'before\n' and (tree / 'add').read_text() == 'new\n'


def test_moved_folder_is_applied_whole(cloche, tree):
	run = edited(cloche, tree, 'mv sub subway; echo more > subway/more')
	assert cloche.call('apply', run.record.id).code == 0
	assert not (tree / 'sub').exists()
	assert (tree / 'subway' / 'move').read_text() == 'move\n' and (tree / 'subway' / 'more').read_text() == 'more\n'


def test_what_belongs_into_a_renamed_folder_waits_for_the_rename(cloche, tree, sandbox):
	"""While the sandbox runs no rename is done: a file written to its folder would go along with it later, to the wrong place."""
	box = sandbox('-m', f'{tree}:{tree}:cow')
	box.sh(f'cd {tree}; mv sub old; mkdir sub; echo new > sub/new; echo in > old/in; echo add > add')
	live = cloche.call('apply', box.id)
	assert live.code == 1 and (tree / 'add').exists() and sorted(os.listdir(tree / 'sub')) == ['move'], live
	assert "refused  sub/new  ('old' has to be renamed first, and is not)\n" in live.out, live
	assert cloche.call('stop', box.id).code == 0
	assert cloche.call('apply', box.id, str(tree / 'sub' / 'new')).code == 1
	assert sorted(os.listdir(tree / 'sub')) == ['move']
	assert cloche.call('apply', box.id).code == 0
	assert sorted(os.listdir(tree / 'sub')) == ['new'] and sorted(os.listdir(tree / 'old')) == ['in', 'move']


@pytest.mark.parametrize('what', ['deep/er', 'deep/er/file'], ids=['folder', 'file'])
def test_what_takes_the_place_of_the_folders_it_was_in(cloche, tree, what):
	(tree / 'deep' / 'er' / 'gone').mkdir(parents=True)
	(tree / 'deep' / 'er' / 'file').write_text('file\n')
	run = edited(cloche, tree, f'mv {what} aside; rm -r deep; mv aside deep')
	assert cloche.call('apply', run.record.id).code == 0
	assert (tree / 'deep' / 'file' if what == 'deep/er' else tree / 'deep').read_text() == 'file\n' and not list(tree.glob('.cloche*'))


def test_file_that_became_a_folder_and_back(cloche, tree):
	run = edited(cloche, tree, 'rm edit; mkdir edit; echo in > edit/in; rm -r sub; echo file > sub')
	assert cloche.call('apply', run.record.id).code == 0
	assert (tree / 'edit' / 'in').read_text() == 'in\n' and (tree / 'sub').read_text() == 'file\n'


def test_names_of_any_bytes_are_applied(cloche, tree):
	names = [b'two\nlines', b'cr\rname', b'back\\slash', b' lead', b'trail ', b'*star', b'\xff\xfe', b'-', b'--', b'\t', 'ü'.encode()]
	run = cloche.py('import os\n' + ''.join(f'open({os.fsencode(tree) + b"/" + name!r}, "wb").write(b"x")\n' for name in names),
		options=('-w', str(tree)))
	assert run.code == 0, run
	assert cloche.call('apply', run.record.id).code == 0
	assert set(names) <= set(os.listdir(os.fsencode(tree)))


def test_etc_and_usr_local_are_in_the_changes(cloche):
	run = cloche.sh('echo 1 > /etc/made; echo 2 > /usr/local/made; echo root:x >> /etc/passwd')
	parts = {part['root']: part for part in run.record.changes()}
	assert '/etc/made' in [entry['path'] for entry in parts['/etc']['added']]
	assert '/etc/passwd' in [entry['path'] for entry in parts['/etc']['changed']]
	assert [entry['path'] for entry in parts['/usr/local']['added']] == ['/usr/local/made']


def test_view_of_the_host_that_was_just_made_is_no_change_of_the_hosts(tmp_path, run_dir, project):
	fresh = Cloche(tmp_path / 'fresh', run_dir, project)
	run = fresh.sh('echo 127.0.0.9 mine >> /etc/hosts')
	[etc] = [part for part in run.record.changes() if part['root'] == '/etc']
	assert [entry['path'] for entry in etc['changed']] == ['/etc/hosts'] and etc['host_changed'] == []
	assert 'meanwhile' not in run.err
	fresh.check_clean()


def change_sets(cloche):
	folder = cloche.state / 'changes'
	return sorted(os.listdir(folder)) if folder.exists() else []


@pytest.mark.parametrize('mender', ['gc', 'apply'])
def test_one_that_is_killed_has_its_changes_in_the_record(own_cloche, mender):
	(own_cloche.cwd / 'in').mkdir()
	box = own_cloche.create('-m', f'{own_cloche.cwd}:{WORK}:cow', '-m', f'{own_cloche.cwd}/in:/in:rw')
	assert box.sh('echo new > new; echo s > /etc/s; echo s > /in/s').code == 0
	kill_and_wait(box.supervisor()[0])
	assert own_cloche.call(mender, *([box.id] if mender == 'apply' else [])).code == 0
	assert own_cloche.call('gc').code == 0
	parts = {part['root']: [entry['path'] for entry in part['added']] for part in json.loads(own_cloche.call('changes', '--json', box.id).out)}
	assert parts['/etc'] == ['/etc/s'] and parts['/in'] == ['/in/s'] and parts[WORK] == [f'{WORK}/new'], parts
	assert own_cloche.call('apply', box.id).code == 0
	assert (own_cloche.cwd / 'new').read_text() == 'new\n'
	assert change_sets(own_cloche) == []
	verified = own_cloche.call('verify', box.id)
	assert verified.code == 0, verified


def test_no_change_set_stays_of_one_that_changed_nothing_to_apply(own_cloche):
	run = own_cloche.sh('cat /etc/passwd; echo s > /etc/s')
	assert run.code == 0 and change_sets(own_cloche) == []
	assert {part['root'] for part in run.record.changes() if part['added']} == {'/etc'}
	assert own_cloche.call('apply', run.record.id).code == 0
	assert own_cloche.call('discard', run.record.id).code == 0
	box = own_cloche.create('-m', f'{own_cloche.cwd}:{WORK}:cow')
	kill_and_wait(box.supervisor()[0])
	assert own_cloche.call('gc').code == 0 and change_sets(own_cloche) == []
	run = own_cloche.sh('echo s > file', options=('-w', str(own_cloche.cwd)))
	assert run.code == 0 and change_sets(own_cloche) == [run.record.id]


def test_special_files_are_listed_and_never_opened(cloche, tree):
	run = edited(cloche, tree, 'mkfifo pipe; ln -s /dev/zero endless; ln -s . loop; ln -s /nope dangling; echo ok > plain')
	part = change_set(run, tree)
	assert {'endless', 'loop', 'dangling', 'plain', 'pipe'} <= set(paths(part, 'added'))


def test_kept_one_that_is_removed_leaves_no_empty_change_set(own_cloche):
	run = own_cloche.sh('echo s > /etc/s', options=('--keep',))
	assert run.code == 0 and change_sets(own_cloche) == [run.record.id]
	assert own_cloche.call('rm', run.record.id).out == f'{run.record.id}: removed the sandbox; its record stays\n'
	assert change_sets(own_cloche) == []


@pytest.mark.parametrize('after_ms', [8, 16, 24])
def test_mender_that_is_killed(own_cloche, after_ms):
	(own_cloche.cwd / 'in').mkdir()
	box = own_cloche.create('-m', f'{own_cloche.cwd}:{WORK}:cow', '-m', f'{own_cloche.cwd}/in:/in:rw')
	assert box.sh('echo new > new; for i in $(seq 500); do echo $i > /etc/s$i; done; echo s > /in/s').code == 0
	kill_and_wait(box.supervisor()[0])
	process = own_cloche.start('gc')
	time.sleep(after_ms / 1000)
	for pid in own_cloche.processes(box.id, 'cloche-supervisor'):
		kill_and_wait(pid)
	process.communicate(timeout=30)
	done = own_cloche.call('gc')
	assert done.code == 0, done
	parts = {part['root']: [entry['path'] for entry in part['added']] for part in json.loads(own_cloche.call('changes', '--json', box.id).out)}
	assert len(parts['/etc']) == 500 and parts['/in'] == ['/in/s'] and parts[WORK] == [f'{WORK}/new'], parts
	assert own_cloche.call('apply', box.id).code == 0
	assert change_sets(own_cloche) == []
	verified = own_cloche.call('verify', box.id)
	assert verified.code == 0, verified
