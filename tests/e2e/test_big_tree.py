# SPDX-License-Identifier: Apache-2.0
"""A real tree of some 50,000 files, changed, moved, deleted and built in by a script: what `changes` and `apply` say and do is what
other programs find between the two trees. The tree is of Debian source packages, fetched by apt-get; CLOCHE_TEST_TREE=FOLDER keeps them."""
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

PACKAGES = ('glibc', 'binutils', 'git')
FILES_MIN = 45000
FETCH_LIMIT_S = 120


def fetch(folder):
	"""The packages' archives, checked by apt; None, or why there are none."""
	sources = pathlib.Path('/etc/apt/sources.list.d/debian.sources')
	if not sources.exists():
		return 'no debian.sources to fetch from'
	for name in ('parts', 'lists/partial'):
		(folder / name).mkdir(parents=True, exist_ok=True)
	(folder / 'parts' / 'src.sources').write_text(re.sub(r'(?m)^Types:.*', 'Types: deb-src', sources.read_text()))
	options = ['-qq', '-o', 'Dir::Etc::sourcelist=/dev/null', '-o', f'Dir::Etc::sourceparts={folder}/parts', '-o', f'Dir::State::lists={folder}/lists',
		'-o', 'Debug::NoLocking=1', '-o', 'APT::Sandbox::User=root']
	try:
		for what in (['update'], ['source', '--download-only', *PACKAGES]):
			subprocess.run(['apt-get', *options, *what], cwd=folder, check=True, capture_output=True, timeout=FETCH_LIMIT_S)
	except (OSError, subprocess.SubprocessError) as error:
		return f'apt-get source: {error}'
	return None


def unpack(folder, tree):
	why = None if list(folder.glob('*.orig.tar.*')) else fetch(folder)
	if why:
		pytest.skip(why)
	for archive in sorted(folder.glob('*.orig.tar.*')):
		subprocess.run(['tar', '-xf', archive, '-C', tree, '--no-same-owner'], check=True)


def survey(top):
	"""path -> what it is: kind and mode, and hash or target"""
	kept = {}
	for folder, folders, files in os.walk(os.fsencode(top)):
		for name in folders + files:
			path = os.path.join(folder, name)
			info = os.lstat(path)
			key = os.fsdecode(os.path.relpath(path, os.fsencode(top)))
			if os.path.islink(path):
				kept[key] = ('link', os.fsdecode(os.readlink(path)))
			elif os.path.isdir(path):
				kept[key] = ('folder', info.st_mode & 0o7777)
			else:
				with open(path, 'rb') as file:
					kept[key] = ('file', info.st_mode & 0o7777, hashlib.file_digest(file, 'sha256').hexdigest())
	return kept


AGENT = r'''
import os, pathlib, shutil, subprocess
top = pathlib.Path('.')
files = sorted(str(p) for p in top.rglob('*') if p.is_file() and not p.is_symlink())
big = max((d for d in sorted(top.glob('*/*')) if d.is_dir() and not d.is_symlink()), key=lambda d: sum(len(f) for _, _, f in os.walk(d)))
files = [f for f in files if 'git' not in f.split('/')[0]] # that is for make
n = len(files)
for i in range(0, n, n // 200):
	open(files[i], 'ab').write(b'edited\n')
for i in range(7, n, n // 100):
	os.remove(files[i])
for i in range(11, n, n // 100):
	os.rename(files[i], files[i] + '.moved')
for i in range(13, n, n // 50):
	os.chmod(files[i], 0o755)
for i in range(17, n, n // 20):
	os.remove(files[i]); os.symlink('elsewhere', files[i])
for i in range(19, n, n // 10):
	os.remove(files[i]); os.mkdir(files[i]); open(files[i] + '/in', 'w').write('in\n')
for i in range(23, n, n // 20):
	os.rename(files[i], files[i] + '.too'); open(files[i] + '.too', 'a').write('more\n')
for i in range(29, n, n // 10):
	os.link(files[i], files[i] + '.linked')
small = sorted((sum(len(f) for _, _, f in os.walk(d)), str(d)) for d in top.glob('*/*') if d.is_dir() and d != big and 'git' not in d.parts[0])
shutil.rmtree(small[len(small) // 2][1])
os.rename(small[-1][1], small[-1][1] + '.new'); os.rename(str(big), str(big) + '-moved')
os.mkdir('added'); os.rename(small[-2][1], 'added/here')
for name in (b'two\nlines', b'\xff\xfe', b' lead', b'qu"ote', b'n' * 255):
	open(b'added/' + name, 'wb').write(b'odd\n')
open('added/binary', 'wb').write(bytes(range(256)) * 40)
'''

BUILD = '''
cd git-* 2>/dev/null || exit 0
make -s -j2 CFLAGS=-O0 NO_OPENSSL=1 NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_TCLTK=1 xdiff/lib.a reftable/libreftable.a >/dev/null 2>&1 || exit 3
'''


class Big:
	"""The tree as it was (`tree`, until something is applied) and as the sandbox left it (`after`)."""

	def __init__(self, cloche, top):
		self.tree, self.after = top / 'tree', top / 'after'
		archives = pathlib.Path(os.environ.get('CLOCHE_TEST_TREE') or top / 'archives')
		for folder in (self.tree, self.after, archives):
			folder.mkdir(exist_ok=True)
		unpack(archives, self.tree)
		self.old = survey(self.tree)
		(top / 'agent.py').write_text(AGENT)
		run = cloche.sh(f'{harness.PYTHON} /agent.py && ({BUILD}) && cp -a . /after/', limit_s=400, options=('--no-trace', '-w', str(self.tree),
			'-m', f'{self.tree}:{self.tree}:cow', '-m', f'{self.after}:/after:rw', '-m', f'{top}/agent.py:/agent.py:ro'))
		assert run.code == 0, run
		self.id, self.new = run.record.id, survey(self.after)


@pytest.fixture(scope='module')
def big(module_cloche, tmp_path_factory):
	top = tmp_path_factory.mktemp('big')
	yield Big(module_cloche, top)
	for name in ('tree', 'after'):
		shutil.rmtree(top / name)


def leaves(tree):
	return {path: entry for path, entry in tree.items() if entry[0] != 'folder'}


def moved(path, renamed):
	"""Where a path went with the nearest of what was renamed around it."""
	at = path
	while at:
		if at in renamed:
			return renamed[at] + path[len(at):]
		at = os.path.dirname(at)
	return path


def raw(entry, key):
	return os.fsdecode(base64.b64decode(entry[key + '_b64'])) if key + '_b64' in entry else entry[key]


def foretell(old, part):
	"""The tree that the list of changes makes of the old one; modes of files are in it where the list tells them."""
	def rel(entry, key='path'):
		return os.path.relpath(raw(entry, key), part['root'])

	renamed = {rel(entry, 'from'): rel(entry) for entry in part['renamed']}
	removed = {rel(entry) for entry in part['removed']}
	tree = {moved(path, renamed): entry for path, entry in leaves(old).items() if path not in removed}
	for kind in ('added', 'changed', 'renamed', 'mode_changed'):
		for entry in part[kind]:
			path = rel(entry)
			if entry.get('type') == 'link':
				tree[path] = ('link', raw(entry, 'target'))
			elif 'type' not in entry:
				before = tree.get(path, ('file', None, None))
				mode = int(entry['mode'], 8) if 'mode' in entry else before[1]
				tree[path] = ('file', mode, entry['after'] or before[2])
	return tree


def test_it_is_as_large_as_it_should_be(big):
	assert len(leaves(big.old)) >= FILES_MIN
	assert len(set(leaves(big.new)) ^ set(leaves(big.old))) > 2000


def test_changes_make_one_tree_of_the_other(cloche, big):
	[part] = [part for part in json.loads(cloche.call('changes', '--json', big.id).out) if part['root'] == str(big.tree)]
	assert part['unread'] is None and part['host_changed'] == []
	told, new = foretell(big.old, part), leaves(big.new)
	assert set(told) == set(new)
	wrong = [path for path in new if told[path] != new[path] and not (told[path][0] == 'file' and told[path][1] is None and told[path][2] == new[path][2])]
	assert wrong == []
	assert len(part['renamed']) > 100 and len(part['removed']) > 100


def test_diff_r_finds_the_same(big):
	found = subprocess.run(['diff', '-rq', '--no-dereference', big.tree, big.after], capture_output=True, check=False, env={'LC_ALL': 'C'})
	assert found.returncode == 1
	differ = set(re.findall(rb'(?m)^(?:Files|Symbolic links|File) ' + os.fsencode(big.tree) + rb'/(.*?)(?: and | is a )', found.stdout))

	def without_mode(entry):
		return {'file': (entry[0], entry[-1]), 'link': entry, 'folder': entry[:1]}[entry[0]]

	ours = {path for path in big.old.keys() & big.new.keys() if without_mode(big.old[path]) != without_mode(big.new[path])}
	assert {os.fsdecode(path) for path in differ} == ours


def test_apply_makes_one_tree_of_the_other(cloche, big):
	done = cloche.call('apply', big.id, limit_s=200)
	assert done.code == 0, (done.out[-2000:], done.err)
	got = survey(big.tree)
	assert [path for path in got.keys() | big.new.keys() if got.get(path) != big.new.get(path)] == []
	assert cloche.call('apply', big.id).out == 'nothing to apply\n'
