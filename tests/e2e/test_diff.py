# SPDX-License-Identifier: Apache-2.0
"""What a sandbox changed, as a patch that git and patch take."""
import hashlib
import json
import os
import re
import shutil
import subprocess

import pytest


@pytest.fixture
def tree(project):
	(project / 'd').mkdir()
	(project / 'a.txt').write_text('one\ntwo\nthree\n')
	(project / 'sp ace').write_text('x')
	(project / 'd' / 'f').write_text('moved\n')
	(project / 'gone').write_text('gone\n')
	(project / 'tool').write_text('#!/bin/sh\n')
	os.symlink('a.txt', project / 'link')
	return project


EDITS = '''
sed -i s/two/2/ a.txt; printf 'xx\\n' > 'sp ace'; ln -sfn gone link; mv d/f d/g; rm gone; echo new > new; chmod 755 new; : > empty
chmod 755 tool; printf q > 'q"uo	te'; printf u > ü; printf '\\377\\n' > bytes
'''


def edited(cloche, tree, script):
	run = cloche.sh(script, options=('-w', str(tree)))
	assert run.code == 0, run
	return run.record.id


def snapshot(folder):
	"""path -> (kind and mode as git keeps it, content)"""
	table = {}
	for path in sorted(folder.rglob('*')):
		name = str(path.relative_to(folder))
		if name.startswith('.git') or path.is_dir() and not path.is_symlink():
			continue
		table[name] = ('link', os.readlink(path)) if path.is_symlink() else (path.stat().st_mode & 0o111 != 0, path.read_bytes())
	return table


@pytest.mark.parametrize('command', [['git', 'apply'], ['patch', '-p1', '-s']], ids=['git', 'patch'])
def test_patch_makes_one_tree_of_the_other(cloche, tree, tmp_path, command):
	script = EDITS if command[0] == 'git' else "sed -i s/two/2/ a.txt; printf 'xx\\n' > 'sp ace'; rm gone; echo new > new"
	copy = tmp_path / 'copy'
	shutil.copytree(tree, copy, symlinks=True)
	box = edited(cloche, tree, script)
	done = cloche.call('diff', box)
	assert done.code == 0, done
	subprocess.run(['git', 'init', '-q', copy], check=True)
	subprocess.run(command, cwd=copy, input=done.raw_out, check=True)
	assert cloche.call('apply', box).code == 0
	assert snapshot(copy) == snapshot(tree)


def test_a_renamed_folder_is_every_file_in_it(cloche, tree, tmp_path):
	for name in ('d/sub/deep/x', 'd/sub/y', 'd/gone', 'd/out'):
		(tree / name).parent.mkdir(parents=True, exist_ok=True)
		(tree / name).write_text(f'{name}\n')
	os.symlink('sub', tree / 'd' / 'link')
	copy = tmp_path / 'copy'
	shutil.copytree(tree, copy, symlinks=True)
	box = edited(cloche, tree, 'mv d e; echo more >> e/f; rm e/gone; mv e/out out; mv e/sub/deep deeper; chmod 755 e/sub; echo n > e/new')
	patch = cloche.call('diff', box).raw_out
	subprocess.run(['git', 'init', '-q', copy], check=True)
	subprocess.run(['git', 'apply'], cwd=copy, input=patch, check=True)
	assert cloche.call('apply', box).code == 0
	assert snapshot(copy) == snapshot(tree) and 'deeper/x' in snapshot(tree) and 'e/sub/y' in snapshot(tree)


def test_a_folder_that_ends_in_a_space(cloche, tree, tmp_path):
	copy = tmp_path / 'copy'
	shutil.copytree(tree, copy, symlinks=True)
	box = edited(cloche, tree, 'mkdir "d /"; : > "d /empty"; echo x > "d /x"')
	subprocess.run(['git', 'init', '-q', copy], check=True)
	subprocess.run(['git', 'apply'], cwd=copy, input=cloche.call('diff', box).raw_out, check=True)
	assert cloche.call('apply', box).code == 0
	assert snapshot(copy) == snapshot(tree)


def test_what_is_no_text_stands_by_size_and_hash(cloche, tree):
	(tree / 'bin').write_bytes(b'a\0b')
	box = edited(cloche, tree, "printf 'a\\0c' > bin")
	lines = cloche.call('diff', box).out.splitlines()
	assert lines == ['diff --git a/bin b/bin', 'old mode 100644', 'new mode 100644', 'Binary files a/bin and b/bin differ',
		f'# before: 3 bytes, sha256 {hashlib.sha256(bytes([97, 0, 98])).hexdigest()}',
		f'# after: 3 bytes, sha256 {hashlib.sha256(bytes([97, 0, 99])).hexdigest()}']


def test_what_is_no_text_can_be_left_out(cloche, tree, tmp_path):
	(tree / 'bin').write_bytes(b'a\0b')
	copy = tmp_path / 'copy'
	shutil.copytree(tree, copy, symlinks=True)
	done = cloche.call('diff', edited(cloche, tree, "printf 'a\\0c' > bin; ln -sfn gone link; echo y > 'sp ace'"))
	subprocess.run(['git', 'init', '-q', copy], check=True)
	whole = subprocess.run(['git', 'apply'], cwd=copy, input=done.raw_out, capture_output=True, check=False)
	assert whole.returncode == 1 and b"cannot apply binary patch to 'bin'" in whole.stderr, whole
	subprocess.run(['git', 'apply', '--exclude=bin'], cwd=copy, input=done.raw_out, check=True)
	assert os.readlink(copy / 'link') == 'gone' and (copy / 'sp ace').read_text() == 'y\n'
	assert (copy / 'bin').read_bytes() == b'a\0b'


def test_folders_of_its_own_root_where_they_are_named(cloche, tree):
	box = cloche.create('-m', f'{tree}:{tree}:cow')
	try:
		box.sh('echo x > /etc/new; echo y >> /etc/hostname; mkdir -p /usr/local/bin; echo z > /usr/local/bin/tool')
		assert cloche.call('diff', box.id).out == ''
		own = cloche.call('diff', box.id, '/etc/new', '/usr/local')
		assert own.code == 0 and own.out == ''.join(f'# below {root}\ndiff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n'
			f'+++ b/{name}\n@@ -0,0 +1 @@\n+{line}\n' for root, name, line in (('/etc', 'new', 'x'), ('/usr/local', 'bin/tool', 'z'))), own
		assert '\n+y\n' in cloche.call('diff', box.id, '/etc').out
		for verb in ('apply', 'discard'):
			assert 'lies in no folder that the sandbox had as a copy' in cloche.call(verb, box.id, '/etc/new').err
	finally:
		box.remove()
	assert 'its own root is gone' in cloche.call('diff', box.id, '/etc').err


def test_a_large_file_is_not_compared(cloche, tree):
	box = edited(cloche, tree, 'yes | head -c 9000000 > big')
	assert 'Binary files /dev/null and b/big differ' in cloche.call('diff', box).out


@pytest.mark.parametrize('tool', ['kill -ALRM $$', 'exec yes', 'exit 2'], ids=['too-long', 'too-much', 'trouble'])
def test_a_file_that_cannot_be_compared_hides_no_other(cloche, tree, tmp_path, tool):
	"""Two large files without a line in common keep diff(1) busy until its alarm ends it."""
	fake = tmp_path / 'bin' / 'diff'
	fake.parent.mkdir()
	fake.write_text(f'#!/bin/sh\ngrep -qa hard /dev/fd/4 || exec {shutil.which("diff")} "$@"\n{tool}\n')
	fake.chmod(0o755)
	box = edited(cloche, tree, 'echo hard > a.txt; echo y > "sp ace"')
	done = cloche.call('diff', box, env={'PATH': f'{fake.parent}:{os.environ["PATH"]}'})
	assert done.code == 0, done
	text = hashlib.sha256(b'one\ntwo\nthree\n').hexdigest()
	assert ('diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100644\nBinary files a/a.txt and b/a.txt differ\n'
		f'# before: 14 bytes, sha256 {text}\n# after: 5 bytes, sha256 {hashlib.sha256(b"hard" + bytes([10])).hexdigest()}\n') in done.out
	assert '\n+y\n' in done.out


def test_a_link_in_the_place_of_a_file(cloche, tree):
	box = edited(cloche, tree, 'rm a.txt; ln -s d a.txt')
	out = cloche.call('diff', box).out
	assert out.index('deleted file mode 100644') < out.index('new file mode 120000') and out.count('diff --git a/a.txt b/a.txt') == 2


def test_paths_exit_code_and_json(cloche, tree):
	box = edited(cloche, tree, EDITS)
	assert cloche.call('diff', '--exit-code', box).code == 1
	one = cloche.call('diff', box, 'd')
	assert one.out.startswith('diff --git a/d/f b/d/g\nrename from d/f\nrename to d/g\n') and one.out.count('diff --git') == 1, one
	[entry] = json.loads(cloche.call('diff', '--json', box, 'new').out)
	assert (entry['root'], entry['path']) == (str(tree), 'new') and entry['patch'].endswith('+new\n')
	none = cloche.call('diff', '--exit-code', box, 'no-such')
	assert (none.code, none.out) == (0, '') and f'cloche changes {box}' in none.err
	same = edited(cloche, tree, 'true')
	assert (cloche.call('diff', '--exit-code', same).code, cloche.call('diff', same).out) == (0, '')
	assert cloche.call('apply', box).code == 0
	gone = cloche.call('diff', box)
	assert (gone.code, gone.out) == (0, '') and f'cloche changes {box}' in gone.err
	assert cloche.call('diff', '--json', box).out == '[]\n'


def test_folders_that_are_too_deep_are_said_to_be_missing(cloche, tree):
	deep = 'import os\nfor _ in range(310):\n os.mkdir("in"); os.chdir("in")\nopen("f", "w")'
	run = cloche.py(deep, options=('-w', str(tree)))
	assert run.code == 0, run
	for verb, code in (('diff', 0), ('apply', 1)):
		done = cloche.call(verb, run.record.id)
		assert done.code == code and 'not all could be read' in done.err, done
	assert 'not all could be read' in cloche.call('changes', run.record.id).out


def test_what_lies_too_deep_in_a_renamed_folder_is_said_to_be_missing(cloche, tree):
	os.makedirs(tree / ('t' + '/d' * 305))
	for folder in ('t' + '/d' * 300, 't' + '/d' * 301, 't'):
		(tree / folder / 'f').write_text('f')
	done = cloche.call('diff', edited(cloche, tree, 'mv t u'))
	assert done.code == 0 and set(re.findall('^diff --git a/(.*) b/.*', done.out, re.M)) == {'t' + '/d' * 300 + '/f', 't/f'}, done
	assert re.findall('^# .*', done.out, re.M) == ['# not in this patch, more than 300 folders deep: u' + '/d' * 301], done


def test_a_sandbox_that_runs(cloche, tree):
	box = cloche.create('-m', f'{tree}:{tree}:cow')
	try:
		box.sh(f'echo four >> {tree}/a.txt')
		assert '\n+four\n' in cloche.call('diff', box.id).out
	finally:
		box.remove()
