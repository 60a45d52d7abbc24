# SPDX-License-Identifier: Apache-2.0
"""What is removed goes in one step: a change set or a record is whole or gone, whatever cuts its removal off, and who comes next ends the work."""
import collections
import contextlib
import json
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from harness import Cloche, kill_and_wait, wait_for

CALLS = ('rename', 'unlinkat', 'rmdir')
ACTS = {'apply': ('apply',), 'discard': ('discard',), 'changes': ('rm', '--changes'), 'record': ('rm', '--record')}


@pytest.fixture(autouse=True)
def strace():
	if shutil.which('strace') is None:
		pytest.skip('needs strace')


def traced(cloche, *args, inject=None, log='/dev/null'):
	what = ['-e', f'inject={inject}'] if inject else []
	return cloche.strace(['-o', log, '-e', 'trace=' + ','.join(CALLS), *what], *args)


def names_in(folder):
	return {str(path.relative_to(folder)) for path in folder.rglob('*')} if folder.exists() else set()


def left_in(cloche, *folders):
	return sorted(str(path.relative_to(cloche.state)) for folder in folders for path in (cloche.state / folder).glob('*'))


class Removal:
	"""One act on change sets that are all alike, and what it calls without a fault."""

	def __init__(self, cloche, project, args, tmp_path):
		self.cloche, self.project, self.args, self.n = cloche, project, args, 0
		log = tmp_path / 'calls'
		done = traced(cloche, *args, self.make(), log=log)
		assert done.returncode == 0, done
		self.counts = collections.Counter(re.findall(r'^(\w+)\(', log.read_text(), re.M))
		assert self.counts['rename'] == (2 if '--record' in args else 1) and self.counts['unlinkat'] >= 4, self.counts

	def make(self):
		self.n += 1
		shutil.rmtree(self.project / 'd', ignore_errors=True)
		run = self.cloche.sh(f'mkdir -p d; echo {self.n} > d/f; echo {self.n} > g', options=('--no-trace', '-m', f'{self.project}:/work:cow', '-w', '/work'))
		assert run.code == 0, run
		return run.record.id

	def fail(self, call, fault):
		"""Returns what it said, and whether all is still there."""
		box = self.make()
		folders = [self.cloche.state / kind / box for kind in ('changes', 'records')]
		before = [names_in(folder) for folder in folders]
		done = traced(self.cloche, *self.args, box, inject=f'{call}:{fault}')
		for folder, names in zip(folders, before):
			assert names_in(folder) in (names, set()), (call, fault, done)
		return box, done, folders[self.args[-1] == '--record'].exists()

	def check_ended(self, box):
		assert left_in(self.cloche, 'changes', 'sandboxes') == [] and list((self.cloche.state / 'trash').glob('*.*')) == []
		assert self.cloche.call('gc').code == 0
		assert left_in(self.cloche, 'changes', 'sandboxes', 'trash') == []
		assert (self.cloche.state / 'records' / box).exists() == (self.args[-1] != '--record')
		assert self.cloche.call('verify', '--all').code == 0


@pytest.fixture(params=ACTS)
def removal(request, own_cloche, project, tmp_path):
	return Removal(own_cloche, project, ACTS[request.param], tmp_path)


def test_killed_at_each_call(own_cloche, removal):
	points = [(call, when) for call in CALLS for when in range(1, removal.counts[call] + 1)]
	for call, when in points[:3] + points[3::3]:
		box, done, is_there = removal.fail(call, f'signal=KILL:when={when}')
		assert done.returncode == -signal.SIGKILL, (call, when, done)
		if is_there:
			assert own_cloche.call(*removal.args, box).code == 0
		assert own_cloche.call('gc').code == 0
		removal.check_ended(box)


def test_a_disk_that_fails(own_cloche, removal):
	for error in ('EIO', 'EXDEV', 'ENOSPC'):
		box, done, is_there = removal.fail('rename', f'error={error}')
		assert (done.returncode != 0, is_there) == (error == 'EIO', error == 'EIO'), done
		if is_there:
			assert own_cloche.call(*removal.args, box).code == 0
		removal.check_ended(box)
	# Where only the trash cannot be emptied it is done all the same, and gc goes on.
	box, done, is_there = removal.fail('unlinkat', f'error=EIO:when={removal.counts["unlinkat"] - 1}+')
	assert done.returncode == 0 and not is_there, done
	assert list((own_cloche.state / 'trash').glob(f'{box}.*')) != []
	assert own_cloche.call('gc').code == 0
	removal.check_ended(box)


# ---- the end of a run in which nothing is pending ----

def stop_with_a_fault(cloche, box, inject):
	[supervisor] = box.supervisor()
	slow = subprocess.Popen(['strace', '-qq', '-o', '/dev/null', '-e', f'inject={inject}', '-p', str(supervisor)])
	wait_for(lambda: 'TracerPid:\t0\n' not in pathlib.Path(f'/proc/{supervisor}/status').read_text(), 'strace')
	cloche.call('stop', box.id)
	slow.wait(timeout=20)


@pytest.mark.parametrize('call, whens', [('rename', (1, 2)), ('unlinkat', (1,))])
def test_a_supervisor_killed_at_its_end_leaves_no_empty_set(own_cloche, project, call, whens):
	"""Also between its seal and the removal of the set: whoever mends it finds that nothing waits."""
	for when in whens:
		box = own_cloche.create('--no-trace', '-m', f'{project}:/work:cow')
		box.sh('echo x > /work/x; rm /work/x; echo y > /etc/y')
		stop_with_a_fault(own_cloche, box, f'{call}:signal=KILL:when={when}')
		assert own_cloche.call('gc').out == '1 sandbox mended\n', (call, when)
		assert left_in(own_cloche, 'changes', 'trash', 'sandboxes') == [], (call, when)
		assert own_cloche.call('verify', '--all').code == 0
		assert [root['root'] for root in box.record.changes() if root.get('added')] == ['/etc']


# ---- a full disk ----

def fill(folder):
	for size in (1 << 20, 1 << 12):
		with open(folder / f'filler-{size}', 'ab', buffering=0) as filler, contextlib.suppress(OSError):
			while True:
				filler.write(bytes(size))


@pytest.fixture
def full(tmp_path, run_dir, project):
	"""A sandbox whose supervisor was killed, and a state without any room."""
	small = tmp_path / 'small'
	small.mkdir()
	subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=160m', 'tmpfs', small], check=True)
	cloche = Cloche(small / 'state', run_dir, project)
	try:
		box = cloche.create('--no-trace', '-m', f'{project}:/work:cow')
		assert box.sh('head -c 4000000 /dev/zero > /work/big; echo y > /etc/y').code == 0
		kill_and_wait(box.supervisor()[0])
		fill(small)
		yield cloche, box
		assert cloche.call('gc').code == 0
		cloche.check_clean()
		assert left_in(cloche, 'changes', 'trash') == []
		assert cloche.call('verify', '--all').code == 0
	finally:
		for filler in small.glob('filler-*'):
			filler.unlink()
		for box in cloche.ids():
			cloche.call('rm', '--record', box)
		subprocess.run(['umount', '-l', small], check=True)


def give_up_reserve(cloche, box):
	"""As its supervisor does for an end that it wants to write."""
	(cloche.state / 'records' / box.id / 'reserve').unlink()
	fill(cloche.state.parent)


def test_a_full_disk_has_room_for_an_end(full):
	cloche, box = full
	done = cloche.call('discard', box.id)
	assert (done.code, done.out, done.err) == (0, 'discarded big\n1 thrown away\n', ''), done
	assert {change['path'] for root in box.record.changes() for change in root.get('added', [])} == {'/work/big', '/etc/y'}


def test_a_full_disk_can_be_discarded_from(full, project):
	cloche, box = full
	give_up_reserve(cloche, box)
	why = f"the end of sandbox {box.id} cannot be written: the disk of '{cloche.state}' is full"
	for args in (('gc',), ('apply', box.id), ('rm', box.id)):
		refused = cloche.call(*args)
		assert refused.code == 125 and why in refused.err and f'`cloche discard {box.id}`' in refused.err, refused
	named = cloche.call('discard', box.id, str(project))
	assert named.code == 125 and 'make room, or discard all of it' in named.err, named
	done = cloche.call('discard', box.id)
	assert (done.code, done.out) == (0, 'discarded big\n1 thrown away\n'), done
	assert 'what is thrown away here is not in its record' in done.err and len(done.err.splitlines()) == 1
	assert cloche.call('gc').out == '0 sandboxes mended\n'
	errors = [event['reason'] for event in box.record.events() if event['kind'] == 'sandbox.error']
	assert len(errors) == 1 and errors[0].startswith('what was changed is not known: '), errors
	assert [line['detail'] for line in map(json.loads, (cloche.state / 'ledger.jsonl').read_text().splitlines()) if line['act'] == 'discard'] == ['1 change']


@pytest.mark.parametrize('what', ['--changes', '--record'])
def test_a_full_disk_can_be_removed_from(full, what):
	cloche, box = full
	give_up_reserve(cloche, box)
	done = cloche.call('rm', what, box.id)
	gone = 'its changes; its record stays' if what == '--changes' else 'its changes, its record'
	assert (done.code, done.out, done.err) == (0, f'{box.id}: removed the sandbox, {gone}\n', ''), done
	assert (cloche.state / 'records' / box.id).exists() == (what == '--changes')
