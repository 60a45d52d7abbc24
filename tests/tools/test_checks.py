# SPDX-License-Identifier: Apache-2.0
"""The checks of tools/ catch what they are there for: each is run on a small tree made wrong in one way."""
import pathlib
import subprocess

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / 'tools'
LAYERS = 'util:\nevent: util\nsandbox: event util\n'


@pytest.fixture
def tree(tmp_path):
	"""A tree that every check passes."""
	for module in ('util', 'event', 'sandbox'):
		(tmp_path / 'src' / module).mkdir(parents=True)
	(tmp_path / 'tools').mkdir()
	(tmp_path / 'tools' / 'layers').write_text(LAYERS)
	write(tmp_path, 'src/util/str.c', '#include "util/str.h"\nint str_len(void)\n{\n\treturn 1;\n}\n')
	write(tmp_path, 'src/util/str.h', 'int str_len(void);\n')
	write(tmp_path, 'src/sandbox/cgroup.c', '#include "util/str.h"\nint cgroup_get(void)\n{\n\treturn str_len();\n}\n')
	return tmp_path


def write(tree, path, text):
	(tree / path).write_text(text)


def check(name, *args):
	done = subprocess.run([TOOLS / f'check-{name}', *args], capture_output=True, text=True, check=False)
	return done.returncode, done.stdout + done.stderr


def archive(tree):
	"""Compiles each source as meson names its objects and packs one archive a module."""
	build = tree / 'build'
	build.mkdir()
	for module in ('util', 'event', 'sandbox'):
		objects = []
		for source in (tree / 'src' / module).glob('*.c'):
			target = build / f'src_{module}_{source.name}.o'
			subprocess.run(['gcc', '-I', tree / 'src', '-c', source, '-o', target], check=True)
			objects.append(target)
		if objects:
			subprocess.run(['ar', 'rcs', build / f'lib{module}.a', *objects], check=True)


@pytest.mark.parametrize('name', ['layers', 'sizes', 'banned'])
def test_good_tree_passes(tree, name):
	assert check(name, tree) == (0, '')


@pytest.mark.parametrize('file, text, says', [
	('src/util/str.c', '#include "event/event.h"\n', 'src/util/str.c:1: util may not include event/'),
	('src/util/str.c', '#  include "sandbox/cgroup.h"\n', 'util may not include sandbox/'),
	('src/event/event.c', '#include "sandbox/cgroup.h"\n', 'event may not include sandbox/'),
	('src/sandbox/cgroup.c', '#include "util/str_internal.h"\n', 'util/str_internal.h is for util/ only'),
	('src/sandbox/cgroup.c', '#include "../util/str.h"\n', 'climbs'),
	('src/sandbox/cgroup.c', '#include "nowhere/x.h"\n', 'sandbox may not include nowhere/'),
	('tools/layers', 'util:\nevent: sandbox\nsandbox: event util\n', 'event names sandbox before it is defined'),
])
def test_layers_catch(tree, file, text, says):
	write(tree, file, text)
	code, out = check('layers', tree)
	assert code == 1
	assert says in out


@pytest.mark.parametrize('text', [
	'\tsprintf(a, b);\n', '\tchar *p = strcpy(a, b);\n', '\tif (atoi(s) > 1)\n', '\t(void)system(s);\n',
	'\tx = strtok (s, d);\n', '\tvsprintf(a, b, c);\n', '/* TO' 'DO: later */\n',
])
def test_banned_catch(tree, text):
	write(tree, 'src/event/event.c', text)
	assert check('banned', tree)[0] == 1


@pytest.mark.parametrize('text', [
	'\tsnprintf(a, n, b);\n', '\tfile_system(s);\n', ' * as strcpy() does, but bounded\n', '\tsd_atoi(s);\n',
])
def test_banned_lets_pass(tree, text):
	write(tree, 'src/event/event.c', text)
	assert check('banned', tree) == (0, '')


def test_sizes_catch_a_long_function(tree):
	body = '\tx++;\n' * 81
	write(tree, 'src/event/event.c', f'int short_one(void)\n{{\n\treturn 1;\n}}\n\nint long_one(int x)\n{{\n{body}}}\n')
	code, out = check('sizes', tree)
	assert code == 1
	assert 'long_one' in out and 'short_one' not in out


def test_sizes_let_eighty_lines_pass(tree):
	body = '\tx++;\n' * 78
	write(tree, 'src/event/event.c', f'int just_so(int x)\n{{\n{body}}}\n')
	assert check('sizes', tree) == (0, '')


def test_sizes_catch_a_long_file(tree):
	write(tree, 'src/event/event.c', 'int x;\n' * 801)
	code, out = check('sizes', tree)
	assert code == 1
	assert '801 lines' in out


def test_names_pass(tree):
	archive(tree)
	assert check('names', tree, 'build') == (0, '')


@pytest.mark.parametrize('text, says', [
	('int lost(void)\n{\n\treturn 1;\n}\n', 'lost does not begin with cgroup_'),
	('int cgroupx_get(void)\n{\n\treturn 1;\n}\n', 'cgroupx_get does not begin with cgroup_'),
	('int stray;\n', 'stray does not begin with cgroup_'),
])
def test_names_catch_a_prefix(tree, text, says):
	write(tree, 'src/sandbox/cgroup.c', text)
	archive(tree)
	code, out = check('names', tree, 'build')
	assert code == 1
	assert says in out


def test_names_catch_a_base_name_used_twice(tree):
	write(tree, 'src/sandbox/str.c', 'int str_other(void)\n{\n\treturn 1;\n}\n')
	archive(tree)
	code, out = check('names', tree, 'build')
	assert code == 1
	assert 'base name used twice' in out and 'str' in out


def test_names_need_a_build(tree):
	assert check('names', tree, 'build')[0] == 1


def test_libs_catch_a_library(tmp_path):
	write(tmp_path, 'a.c', '#include <math.h>\nint main(int n, char **v)\n{\n\treturn (int)cbrt(n);\n}\n')
	subprocess.run(['gcc', '-Wl,--no-as-needed', tmp_path / 'a.c', '-lm', '-o', tmp_path / 'a'], check=True)
	subprocess.run(['cp', TOOLS / 'check-libs', tmp_path], check=True)
	for allowed, code in (('libc.so.6 libm.so.6', 0), ('libc.so.6', 1)):
		write(tmp_path, 'libs', f'# programs\na: {allowed}\n')
		done = subprocess.run([tmp_path / 'check-libs', tmp_path], capture_output=True, text=True, check=False)
		assert done.returncode == code
	assert done.stdout == 'a loads libm.so.6, which tools/libs does not name for it\n'


def test_tally_counts_and_fails(tmp_path):
	tally = TOOLS.parent / 'tests' / 'tally'
	write(tmp_path, 'good.xml', '<testsuite><testcase classname="c" name="a"/><testcase classname="c" name="b">'
		'<skipped message="no disk"/></testcase></testsuite>')
	write(tmp_path, 'log.json', '{"name": "u", "result": "OK", "stdout": "[       OK ] x\\n[       OK ] y\\n"}\n')
	args = [tally, '--meson', tmp_path / 'log.json', '--junit', tmp_path / 'good.xml']
	done = subprocess.run(args, capture_output=True, text=True, check=False)
	assert done.returncode == 0
	assert done.stdout == 'skipped c.b: no disk\n3 passed, 0 failed, 1 skipped\n'
	done = subprocess.run([*args, '--junit', tmp_path / 'absent.xml'], capture_output=True, text=True, check=False)
	assert done.returncode == 1
	assert done.stdout.splitlines()[-1] == '3 passed, 1 failed, 1 skipped'
	write(tmp_path, 'crash.json', '{"name": "u", "result": "FAIL", "stdout": "[       OK ] x\\n"}\n')
	done = subprocess.run([tally, '--meson', tmp_path / 'crash.json'], capture_output=True, text=True, check=False)
	assert done.stdout == '1 passed, 1 failed\n'
