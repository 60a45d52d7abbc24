# SPDX-License-Identifier: Apache-2.0
"""Random trees and random edits of them, each the same for the same seed: a program that a test also runs in its sandbox.

`random_edits.py SEED N` makes N edits in the working folder. An edit that cannot be made where the dice led is left out, like
that of an agent who tries; all names are bytes.
"""
import os
import random
import shutil
import sys

NAMES = (b'a', b'b', b'c', b'd', b'A', b'x y', b'two\nlines', b'\x1b[31m', b'\xff\xfe', b'-rf', b' ', b'q"', b"'", b'.hid', b'tab\t', b'\\n',
	b'a.b', b'a=>b', b'{x}', b'end ', b'\xc3\xa9', b'e\xcc\x81', b'n' * 254)
TARGETS = (b'a', b'../a', b'.', b'/etc', b'nowhere')
MODES = (0o644, 0o755, 0o600, 0o640, 0o711, 0o444)


def survey(top):
	"""Path below top (bytes) -> what is there: its kind, mode and content or target."""
	kept = {}
	for at, folders, files in os.walk(os.fsencode(top)):
		for name in folders + files:
			path = os.path.join(at, name)
			key, mode = os.path.relpath(path, os.fsencode(top)), os.lstat(path).st_mode & 0o7777
			if os.path.islink(path):
				kept[key] = ('link', os.readlink(path))
			elif os.path.isdir(path):
				kept[key] = ('folder', mode)
			else:
				with open(path, 'rb') as file:
					kept[key] = ('file', mode, file.read())
	return kept


class Tree:
	"""A folder and the dice that say what happens in it."""

	def __init__(self, top, seed):
		self.top, self.dice = os.fsencode(top), random.Random(seed)

	def look(self):
		"""Its leaves and its folders, as they are now."""
		self.leaves, self.folders = [], []
		for at, folders, files in os.walk(self.top):
			folders.sort()
			links = [name for name in folders if os.path.islink(os.path.join(at, name))]
			self.leaves += [os.path.join(at, name) for name in sorted(files + links)]
			self.folders += [os.path.join(at, name) for name in folders if name not in links]

	def leaf(self):
		return self.dice.choice(self.leaves)

	def file(self):
		return self.dice.choice([path for path in self.leaves if not os.path.islink(path)])

	def folder(self):
		return self.dice.choice(self.folders)

	def place(self):
		"""A path that may or may not be taken."""
		name = self.dice.choice(NAMES) + self.dice.choice((b'', b'1', b'2'))
		return os.path.join(self.dice.choice([self.top, *self.folders]), name[:255])

	def content(self):
		return self.dice.choice((b'', b'%d\n' % self.dice.randrange(5), b'no newline', b'\r\nx\r\n' * 3, self.dice.randbytes(200),
			b''.join(b'line %d\n' % self.dice.randrange(50) for _ in range(self.dice.randrange(60)))))

	def change(self, kinds):
		self.look()
		try:
			getattr(self, self.dice.choice(kinds))()
		except (OSError, IndexError, shutil.Error): # nothing of that kind is there, or it cannot go there
			pass

	# What may happen.

	def write(self, path=None):
		with open(path or self.place(), 'wb') as file:
			file.write(self.content())

	def overwrite(self):
		self.write(self.file())

	def append(self):
		with open(self.file(), 'ab') as file:
			file.write(self.content())

	def write_the_same(self):
		with open(self.file(), 'r+b') as file:
			data = file.read()
			file.seek(0)
			file.write(data)

	def truncate(self):
		os.truncate(self.file(), 3)

	def write_anew(self):
		path = self.file()
		os.remove(path)
		self.write(path)

	def remove(self):
		os.remove(self.leaf())

	def rename(self):
		os.rename(self.leaf(), self.place())

	def replace(self):
		os.rename(self.leaf(), self.leaf())

	def move(self):
		path = self.leaf()
		os.rename(path, os.path.join(self.folder(), os.path.basename(path)))

	def exchange(self, pick=None):
		pick = pick or self.leaf
		one, other, aside = pick(), pick(), os.path.join(self.top, b'aside')
		os.rename(one, aside)
		os.rename(other, one)
		os.rename(aside, other)

	def link(self):
		os.link(self.leaf(), self.place(), follow_symlinks=False)

	def symlink(self):
		os.symlink(self.dice.choice(TARGETS), self.place())

	def mode(self):
		os.chmod(self.file(), self.dice.choice(MODES))

	def make_folder(self):
		os.mkdir(self.place())

	def remove_folder(self):
		os.rmdir(self.folder())

	def remove_all(self):
		shutil.rmtree(self.folder())

	def move_folder(self):
		os.rename(self.folder(), self.place())

	def exchange_folders(self):
		self.exchange(self.folder)

	def folder_mode(self):
		os.chmod(self.folder(), self.dice.choice(MODES) | 0o300)

	def file_to_folder(self):
		path = self.leaf()
		os.remove(path)
		os.mkdir(path)
		self.write(os.path.join(path, b'in'))

	def folder_to_file(self):
		path = self.folder()
		shutil.rmtree(path)
		self.write(path)

	def new_in_its_place(self):
		path = self.folder()
		shutil.rmtree(path)
		os.mkdir(path)
		self.write(os.path.join(path, b'only'))


GROW = ['write'] * 6 + ['make_folder'] * 5 + ['symlink', 'link', 'mode']
EDIT = ['write', 'overwrite', 'append', 'write_the_same', 'truncate', 'write_anew', 'remove', 'rename', 'rename', 'rename', 'replace', 'move',
	'exchange', 'link', 'symlink', 'mode', 'make_folder', 'remove_folder', 'remove_all', 'move_folder', 'move_folder', 'move_folder',
	'exchange_folders', 'folder_mode', 'file_to_folder', 'folder_to_file', 'new_in_its_place']


def grow(top, seed):
	tree = Tree(top, seed)
	for _ in range(tree.dice.randrange(1, 30)):
		tree.change(GROW)


def edit(top, seed, n):
	tree = Tree(top, f'edit {seed}')
	for _ in range(n):
		tree.change(EDIT)


if __name__ == '__main__':
	edit('.', sys.argv[1], int(sys.argv[2]))
