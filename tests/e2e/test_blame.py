# SPDX-License-Identifier: Apache-2.0
"""Which sandbox, command and program changed a file, in all records."""
import json
import os
import pwd
import subprocess

from harness import WORK


def blame(cloche, *args):
	done = cloche.call('blame', '--json', *args)
	assert done.code in (0, 1), done
	rows = json.loads(done.out)
	assert (done.code == 0) == bool(rows) and rows == sorted(rows, key=lambda row: row['at'], reverse=True)
	return rows


def brief(rows):
	return [' '.join(filter(None, (row['change'], row.get('from'), row['path']))) for row in rows]


def test_every_run_that_changed_it_newest_first(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	(project / 'a').write_text('a\n')
	rw = cloche.run('/bin/sh', '-c', 'echo b >> a', options=('-m', f'{project}:{WORK}:rw', '--task', 'the first'))
	cow = cloche.run('/bin/sh', '-c', '/usr/bin/tee -a a < /dev/null; rm a', options=('-m', f'{project}:{WORK}:cow'))
	cloche.run('/bin/sh', '-c', 'cat a', options=('-m', f'{project}:{WORK}:rw'))
	cloche.run('/bin/sh', '-c', 'echo other > a', options=('-w', '/tmp'))
	deleted, tee, first = blame(cloche, project / 'a')
	assert brief([deleted, tee, first]) == [f'deleted {WORK}/a', f'written {WORK}/a', f'written {WORK}/a']
	assert {row['sandbox'] for row in (deleted, tee)} == {cow.record.id} and first['sandbox'] == rw.record.id
	assert (first['task'], first['mount'], first['program'], first['argv']) == ('the first', 'rw', os.path.realpath('/bin/sh'), ['/bin/sh', '-c', 'echo b >> a'])
	assert (tee['program'], tee['mount'], tee['applied']) == ('/usr/bin/tee', 'cow', [])
	[event] = [e for e in rw.record.events('file.open') if e['seq'] == first['seq']]
	assert event['path'] == f'{WORK}/a' and event['exec'] == first['exec'] and event['pid'] == first['pid']
	assert first['command_argv'] == ['/bin/sh', '-c', 'echo b >> a']
	text = cloche.call('blame', 'a', cwd=project)
	assert text.code == 0 and f'{rw.record.id} event {first["seq"]}, task the first, rw mount' in text.out and '/usr/bin/tee' in text.out


def test_renames_are_followed_back(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	cloche.run('/bin/sh', '-c', 'mkdir d; echo 1 > d/old; mv d/old d/new; mv d e; echo other > f; mkdir d; echo x > d/old',
		options=('-m', f'{project}:{WORK}:rw'))
	assert brief(blame(cloche, project / 'e' / 'new')) == [f'renamed {WORK}/d {WORK}/e', f'renamed {WORK}/d/old {WORK}/d/new', f'created {WORK}/d/old']
	assert f'renamed {WORK}/d/old {WORK}/d/new' in brief(blame(cloche, project / 'd' / 'old'))
	assert brief(blame(cloche, project / 'f')) == [f'created {WORK}/f']
	assert blame(cloche, project / 'never') == []


def test_a_folder_is_all_below_and_may_be_limited(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	cloche.run('/bin/sh', '-c', 'mkdir s ss; for i in 1 2 3; do echo $i > s/$i; done; echo x > ss/x', options=('-m', f'{project}:{WORK}:rw'))
	rows = blame(cloche, project / 's')
	assert sorted(brief(rows)) == [f'created {WORK}/s', *(f'created {WORK}/s/{i}' for i in (1, 2, 3))]
	assert blame(cloche, '--limit', '2', project / 's') == rows[:2]
	cut = cloche.call('blame', '--limit', '2', project / 's')
	assert cut.out.count(f'{WORK}/s') == 2 and '2 older ones' in cut.err


def test_paths_inside_and_mounts_that_hide(cloche, tmp_path):
	(tmp_path / 'p' / 'data').mkdir(parents=True)
	(tmp_path / 'q').mkdir()
	cloche.run('/bin/sh', '-c', 'echo x > data/f; echo y > /etc/of-blame', options=('-m', f'{tmp_path}/p:{WORK}:rw', '-m', f'{tmp_path}/q:{WORK}/data:rw'))
	assert brief(blame(cloche, tmp_path / 'q' / 'f')) == [f'created {WORK}/data/f']
	assert blame(cloche, tmp_path / 'p' / 'data' / 'f') == []
	assert brief(blame(cloche, '--guest', '/etc/of-blame')) == brief(blame(cloche, '/etc/of-blame')) == ['created /etc/of-blame']
	assert f'created {WORK}/data/f' in brief(blame(cloche, '--guest', f'{WORK}/data'))


def test_without_a_trace_the_change_is_told_and_what_was_applied(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	(project / 'a').write_text('a\n')
	(project / 'b').write_text('b\n')
	done = cloche.run('/bin/sh', '-c', 'echo x >> a', options=('-m', f'{project}:{WORK}:cow', '--no-trace'))
	[row] = blame(cloche, project / 'a')
	assert (row['change'], row['path'], row['exec'], row['sandbox'], row['applied']) == ('changed', f'{WORK}/a', None, done.record.id, [])
	assert cloche.call('apply', done.record.id).code == 0
	[row] = blame(cloche, project / 'a')
	assert [act['act'] for act in row['applied']] == ['applied']
	assert row['state'] == 'applied' and ', cow mount; applied at 20' in cloche.call('blame', project / 'a').out
	assert blame(cloche, project / 'b') == []
	cloche.run('/bin/mv', 'b', 'c', options=('-m', f'{project}:{WORK}:cow', '--no-trace'))
	assert f'renamed  {WORK}/b -> {WORK}/c, by whom' in cloche.call('blame', project / 'b').out


def test_what_became_of_each_file(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	done = cloche.run('/bin/sh', '-c', 'mkdir d; for f in a b c d/e; do echo $f > $f; done; echo t > tmp; mv tmp t; echo h > .envrc',
		options=('-m', f'{project}:{WORK}:cow'))

	def states():
		return {row['path'][len(WORK) + 1:]: row.get('state') for row in blame(cloche, project) if row['sandbox'] == done.record.id}

	assert set(states().values()) == {'neither'}
	assert cloche.call('apply', done.record.id, 'a', 'd').code == 0 and cloche.call('discard', done.record.id, 'b').code == 0
	known = {'a': 'applied', 'b': 'discarded', 'c': 'neither', 'd/e': 'applied', 't': 'neither', '.envrc': 'neither'}
	assert {path: states()[path] for path in known} == known
	text = cloche.call('blame', project / 'a').out
	assert ', cow mount; applied at 20' in text and '; discarded at 20' in cloche.call('blame', project / 'b').out
	assert cloche.call('blame', project / 'c').out.endswith(', cow mount; not applied\n')
	assert cloche.call('apply', done.record.id).code == 0
	assert {row['path'][len(WORK) + 1:]: row['state'] for row in blame(cloche, project / 't')} == {'t': 'applied', 'tmp': 'applied'}
	assert states()['.envrc'] == 'neither'
	assert cloche.call('discard', done.record.id).code == 0  # the set is gone: the ledger counts, and has both
	assert set(states().values()) == {None}
	assert ('; applied or discarded, which is not known any more: of this sandbox\'s changes some were applied (2 times) '
		'and some discarded (2 times), last at 20') in cloche.call('blame', project / 'a').out


def test_what_came_over_with_a_renamed_folder_is_not_called_unapplied(cloche, tmp_path):
	project = tmp_path / 'p'
	(project / 'd').mkdir(parents=True)
	for name in ('d/same', 'd/new'):
		(project / name).write_text('before')
	done = cloche.run('/bin/sh', '-c', 'echo 1 > d/new; mv d e; echo 1 > left', options=('-m', f'{project}:{WORK}:cow'))
	assert cloche.call('apply', done.record.id, 'e').code == 0
	states = {row['path'][len(WORK) + 1:]: row.get('state') for row in blame(cloche, project)}
	assert states == {'d/new': None, 'e': 'applied', 'left': 'neither'}
	[row] = blame(cloche, project / 'e/same')
	assert (row['change'], row['path'], row.get('state')) == ('renamed', f'{WORK}/e', None)


def test_what_the_ledger_says_of_all_is_said_of_each(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	for verbs, state in (((('apply',),), 'applied'), ((('discard',),), 'discarded'), ((('apply', 'a'), ('apply',)), 'applied'),
			((('apply', 'a'), ('rm', '--changes')), None), ((('apply', 'a'), ('apply', 'b')), None)):
		(project / 'a').write_text('before')
		(project / 'b').write_text('before')
		done = cloche.run('/bin/sh', '-c', 'echo 1 > a; echo 1 > b', options=('-m', f'{project}:{WORK}:cow'))
		for verb, *paths in verbs:
			options = [path for path in paths if path.startswith('-')]
			assert cloche.call(verb, *options, done.record.id, *(path for path in paths if path not in options)).code == 0
		[row] = [row for row in blame(cloche, project / 'b') if row['sandbox'] == done.record.id]
		assert row.get('state') == state, verbs


def test_what_lies_in_skipped_folders_is_one_line(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	done = cloche.run('/bin/sh', '-c', 'mkdir .git n n/node_modules; for i in 1 2 3; do echo $i > .git/$i; done; echo x > n/node_modules/x; echo y > y',
		options=('-m', f'{project}:{WORK}:rw'))
	heads = [line for line in cloche.call('blame', project).out.splitlines() if line[0] != ' ']
	assert sorted(line.split(' by ')[0][21:] for line in heads) == [
		f'changed  {WORK}/.git/ (4 changes: name it, or --all)', f'changed  {WORK}/n/node_modules/ (2 changes: name it, or --all)',
		f'created  {WORK}/n', f'created  {WORK}/y']
	assert len([line for line in cloche.call('blame', '--all', project).out.splitlines() if line[0] != ' ']) == 8
	assert len([line for line in cloche.call('blame', project / '.git').out.splitlines() if line[0] != ' ']) == 4
	assert len(blame(cloche, project)) == 8 and done.code == 0


def test_what_left_for_a_skipped_folder_has_a_line_of_its_own(cloche, tmp_path):
	project = tmp_path / 'p'
	(project / 'node_modules').mkdir(parents=True)
	(project / 'a').write_text('a')
	cloche.run('/bin/sh', '-c', 'mv a node_modules/a; mv node_modules/a node_modules/b', options=('-m', f'{project}:{WORK}:rw'))
	heads = [line.split(' by ')[0][21:] for line in cloche.call('blame', project / 'a').out.splitlines() if line[0] != ' ']
	assert heads == [f'renamed  {WORK}/a -> {WORK}/node_modules/a']
	heads = [line.split(' by ')[0][21:] for line in cloche.call('blame', project).out.splitlines() if line[0] != ' ']
	assert sorted(heads) == [f'changed  {WORK}/node_modules/ (1 change: name it, or --all)', f'renamed  {WORK}/a -> {WORK}/node_modules/a']


def test_odd_names(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	names = [b'\xff\xfe', b'two\nlines', b'quo"te\\', 'ü'.encode(), b' ']
	cloche.py(f'for n in {names!r}: open(b"{WORK}/" + n, "w").close()', options=('-m', f'{project}:{WORK}:rw'))
	for name in names:
		[row] = blame(cloche, os.path.join(os.fsencode(project), name))
		assert row['change'] == 'created', name
	done = cloche.py('import os\nfor n in os.listdir(b"."): open(n, "w").write("x")', options=('-m', f'{project}:{WORK}:cow', '--no-trace'))
	for name in names:
		states = [row.get('state') for row in blame(cloche, os.path.join(os.fsencode(project), name)) if row['sandbox'] == done.record.id]
		assert states == ['neither'], name


def test_nobody_reads_others_records(cloche, tmp_path):
	project = tmp_path / 'p'
	project.mkdir()
	cloche.run('/bin/sh', '-c', 'echo x > a', options=('-m', f'{project}:{WORK}:rw'))
	assert len(blame(cloche, project / 'a')) == 1
	nobody = pwd.getpwnam('nobody')
	other = subprocess.run([cloche.program, 'blame', '--guest', f'{WORK}/a'], env=cloche.env(), cwd='/', stdin=subprocess.DEVNULL,
		capture_output=True, text=True, timeout=30, check=False, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
	assert other.returncode != 0 and WORK not in other.stdout
