# SPDX-License-Identifier: Apache-2.0
"""Random edits of random trees: `cloche apply` makes the host's tree that of the sandbox, whole, by parts, and after any faults.

CLOCHE_TEST_RANDOM=FIRST:COUNT runs other seeds, and more.
"""
import os
import random
import shutil

import pytest

import harness
import random_edits
from test_apply_faults import traced

FIRST, COUNT = map(int, os.environ.get('CLOCHE_TEST_RANDOM', '1:12').split(':'))
CALLS = ('renameat2', 'unlinkat', 'mkdirat', 'symlinkat', 'linkat', 'fsync', 'fdatasync', 'syncfs', 'fchmod', 'fchmodat', 'fchown', 'fchownat',
	'copy_file_range', 'write', 'pwrite64', 'read', 'pread64', 'openat2', 'openat', 'newfstatat', 'fstat', 'getdents64', 'readlinkat', 'utimensat')
FAULTS = ('signal=KILL', 'signal=KILL', 'error=EIO', 'error=ENOSPC', 'error=ENOMEM', 'error=EMFILE')
EDITS = harness.ROOT / 'tests/e2e/random_edits.py'
ENTER = f'{harness.PYTHON} /edits.py "$1" "$2" && cp -a . /after'


class Trial:
	"""A tree, and a change set of random edits of it."""

	def __init__(self, cloche, top, seed):
		self.cloche, self.tree, after = cloche, top / 'tree', top / 'after'
		for folder in (self.tree, after):
			shutil.rmtree(folder, ignore_errors=True)
			folder.mkdir()
		self.dice = random.Random(seed)
		random_edits.grow(self.tree, seed)
		cloche.cwd = self.tree
		run = cloche.sh(ENTER, str(seed), str(self.dice.choice((1, 3, 8, 20, 60))), options=('--no-trace', '-w', str(self.tree),
			'-m', f'{self.tree}:{self.tree}:cow', '-m', f'{after}:/after:rw', '-m', f'{EDITS}:/edits.py:ro'))
		assert run.code == 0, run
		self.id, self.want = run.record.id, random_edits.survey(after)

	def faulty_apply(self):
		"""One that a random fault ends, or not; what it did."""
		call, fault, when = self.dice.choice(CALLS), self.dice.choice(FAULTS), self.dice.randrange(1, 40)
		paths = self.some_paths() if self.dice.random() < 0.4 else []
		done = traced(self.cloche, 'apply', self.id, *paths, calls=CALLS, inject=f'{call}:{fault}:when={when}')
		return f'{call}:{fault}:when={when}', paths, done.returncode, done.stdout

	def some_paths(self):
		paths = sorted({*self.want, *random_edits.survey(self.tree)})
		return [os.path.join(os.fsencode(self.tree), path) for path in self.dice.sample(paths, min(len(paths), 2))]

	def check_whole_apply(self, before=None):
		done = self.cloche.call('apply', self.id)
		assert different(random_edits.survey(self.tree), self.want) == [], (done, before)
		assert done.code == 0, (done, before)
		self.cloche.call('rm', self.id, '--record')


def different(one, other):
	return [(path, one.get(path), other.get(path)) for path in sorted({*one, *other}) if one.get(path) != other.get(path)]


@pytest.mark.parametrize('seed', range(FIRST, FIRST + COUNT))
def test_whole(cloche, tmp_path, seed):
	Trial(cloche, tmp_path, seed).check_whole_apply()


@pytest.mark.parametrize('seed', range(FIRST, FIRST + COUNT))
def test_path_by_path(cloche, tmp_path, seed):
	trial = Trial(cloche, tmp_path, seed)
	said = [(paths, cloche.call('apply', trial.id, *paths)) for paths in [trial.some_paths() for _ in range(4)]]
	trial.check_whole_apply(said)


@pytest.mark.parametrize('seed', range(FIRST, FIRST + COUNT))
def test_after_faults(cloche, tmp_path, seed):
	trial = Trial(cloche, tmp_path, seed)
	trial.check_whole_apply([trial.faulty_apply() for _ in range(trial.dice.randrange(1, 4))])
