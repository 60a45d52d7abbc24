# SPDX-License-Identifier: Apache-2.0
"""A real tree, changed, moved, deleted and built in by a script: what `changes`, `diff` and `apply` say and do is what other programs
find between the two trees. The tree is of Debian source packages, fetched by apt-get: some thousand files, with
CLOCHE_TEST_TREE=FOLDER, where they are kept, about 50,000."""
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

IS_WHOLE = 'CLOCHE_TEST_TREE' in os.environ
PACKAGES = ('glibc', 'binutils', 'git') if IS_WHOLE else ('gawk', 'git')
FILES_MIN = 45000 if IS_WHOLE else 4000
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
import os, pathlib, random, shutil
top = pathlib.Path('.')
files = sorted(str(p) for p in top.rglob('*') if p.is_file() and not p.is_symlink())
big = max((d for d in sorted(top.glob('*/*')) if d.is_dir() and not d.is_symlink()), key=lambda d: sum(len(f) for _, _, f in os.walk(d)))
files = [f for f in files if 'git' not in f.split('/')[0]] # that is for make
whole = len(files)
random.Random(1).shuffle(files)
kinds = {}
for kind, n in dict(edit=2000, remove=1000, move=1000, chmod=500, link=200, folder=100, move_edit=200, hard_link=100).items():
	kinds[kind] = [files.pop() for _ in range(max(1, n * whole // 200000))]
for f in kinds['edit']:
	open(f, 'ab').write(b'edited\n')
for f in kinds['remove']:
	os.remove(f)
for f in kinds['move']:
	os.rename(f, f + '.moved')
for f in kinds['chmod']:
	os.chmod(f, 0o755)
for f in kinds['link']:
	os.remove(f); os.symlink('elsewhere', f)
for f in kinds['folder']:
	os.remove(f); os.mkdir(f); open(f + '/in', 'w').write('in\n')
for f in kinds['move_edit']:
	os.rename(f, f + '.too'); open(f + '.too', 'a').write('more\n')
for f in kinds['hard_link']:
	os.link(f, f + '.linked')
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
	n, n_other = len(leaves(big.old)), len(set(leaves(big.new)) ^ set(leaves(big.old)))
	assert n >= FILES_MIN and n_other > FILES_MIN // 25, (n, n_other)


def test_changes_make_one_tree_of_the_other(cloche, big):
	[part] = [part for part in json.loads(cloche.call('changes', '--json', big.id).out) if part['root'] == str(big.tree)]
	assert part['unread'] is None and part['host_changed'] == []
	told, new = foretell(big.old, part), leaves(big.new)
	assert set(told) == set(new)
	wrong = [path for path in new if told[path] != new[path] and not (told[path][0] == 'file' and told[path][1] is None and told[path][2] == new[path][2])]
	assert wrong == []
	assert min(len(part['renamed']), len(part['removed'])) > FILES_MIN // 450


def test_diff_r_finds_the_same(big):
	found = subprocess.run(['diff', '-rq', '--no-dereference', big.tree, big.after], capture_output=True, check=False, env={'LC_ALL': 'C'})
	assert found.returncode == 1
	differ = set(re.findall(rb'(?m)^(?:Files|Symbolic links|File) ' + os.fsencode(big.tree) + rb'/(.*?)(?: and | is a )', found.stdout))

	def without_mode(entry):
		return {'file': (entry[0], entry[-1]), 'link': entry, 'folder': entry[:1]}[entry[0]]

	ours = {path for path in big.old.keys() & big.new.keys() if without_mode(big.old[path]) != without_mode(big.new[path])}
	assert {os.fsdecode(path) for path in differ} == ours


def as_git(tree):
	"""Without folders, and of modes only whether its owner may run it."""
	return {path: (entry[0], bool(entry[1] & 0o100), entry[2]) if entry[0] == 'file' else entry for path, entry in leaves(tree).items()}


def is_binary(path):
	return path.is_file() and b'\0' in path.read_bytes()


def test_patch_makes_one_tree_of_the_other(cloche, big, tmp_path):
	"""But for what is no text, which stands in a patch by size and hash: git would refuse all of it for that."""
	parts = re.split(rb'(?m)^(?=diff --git )', cloche.call('diff', big.id, limit_s=200).raw_out)
	binary = [part for part in parts if b'\nBinary files ' in part]
	copy = tmp_path / 'copy'
	subprocess.run(['cp', '-a', big.tree, copy], check=True)
	subprocess.run(['git', 'init', '-q', copy], check=True)
	done = subprocess.run(['git', 'apply', '--whitespace=nowarn'], cwd=copy, check=False, capture_output=True,
		input=b''.join(part for part in parts if part not in binary))
	assert done.returncode == 0, done.stderr[-2000:]
	shutil.rmtree(copy / '.git')
	got, new = as_git(survey(copy)), as_git(big.new)
	shutil.rmtree(copy)
	wrong = {path for path in got.keys() | new.keys() if got.get(path) != new.get(path)}
	assert [path for path in wrong if not any(is_binary(top / path) for top in (big.tree, big.after))] == []
	assert len(wrong) <= 2 * len(binary) < 200, 'a renamed one has two names'


def test_apply_makes_one_tree_of_the_other(cloche, big):
	done = cloche.call('apply', big.id, limit_s=200)
	assert done.code == 0, (done.out[-2000:], done.err)
	got = survey(big.tree)
	assert [path for path in got.keys() | big.new.keys() if got.get(path) != big.new.get(path)] == []
	assert cloche.call('apply', big.id).out == 'nothing to apply\n'
