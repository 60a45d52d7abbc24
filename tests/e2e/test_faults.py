# SPDX-License-Identifier: Apache-2.0
"""Parts killed at bad moments, full disks, crowds: the record stays readable and nothing stays behind."""
import base64
import contextlib
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import time

import pytest

from harness import PYTHON, Cloche, kill_and_wait, unmount_run_dir, wait_for

WORKLOAD = 'for i in 1 2 3 4 5; do echo $i > /workspace/k$i; /bin/true $i; sleep 0.05; done; exit 3'


def check_record(cloche, sandbox):
	"""Readable, in order, chained; every start of an exec has one definite end."""
	events = [json.loads(line) for line in cloche.call('events', sandbox, '--jsonl', '--noise', '--internal').out.splitlines()]
	seqs = [event['seq'] for event in events]
	assert len(set(seqs)) == len(seqs)
	assert sorted(seqs) == list(range(min(seqs), min(seqs) + len(seqs)))
	starts = [event['exec'] for event in events if event['kind'] == 'exec.start']
	ends = [event['exec'] for event in events if event['kind'] == 'exec.end']
	assert sorted(starts) == sorted(ends)
	return events


@pytest.mark.parametrize('part', ['cloche', 'cloche-supervisor', 'cloche-init'])
@pytest.mark.parametrize('round_', range(6))
def test_killed_part_leaves_a_readable_record_and_no_orphan(own_cloche, tmp_path, part, round_):
	id_file = tmp_path / 'id'
	process = own_cloche.start('run', '--id-file', id_file, '--', '/bin/sh', '-c', WORKLOAD)
	sandbox = wait_for(lambda: id_file.exists() and id_file.read_text().strip(), 'the id')
	time.sleep(random.Random(f'{part}{round_}').random() * 0.35)
	if part == 'cloche':
		process.kill()
	else:
		for pid in own_cloche.processes(sandbox, part) or own_cloche.processes(f'CLOCHE_STATE={own_cloche.state}\0', part):
			try:
				os.kill(pid, signal.SIGKILL)
			except ProcessLookupError:
				pass
	process.communicate(timeout=30)
	if process.returncode not in (3, -signal.SIGKILL):
		assert process.returncode in (125, 137), process.returncode
	wait_for(lambda: own_cloche.call('gc').code == 0 and not own_cloche.left_behind(), 'gc to have cleaned the host')
	events = check_record(own_cloche, sandbox)
	row = [event for event in events if event['kind'] == 'exec.end']
	if row:
		assert row[0].get('exit_code') == 3 or row[0].get('interrupted') or row[0].get('signal'), row
	verified = own_cloche.call('verify', sandbox)
	assert verified.code == 0, verified


@pytest.mark.parametrize('round_', range(6))
def test_supervisor_killed_beside_its_half_made_child_leaves_none(own_cloche, round_):
	process = own_cloche.start('run', '--', '/bin/true')
	children = pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children')
	end = time.monotonic() + 10
	supervisor = None
	while time.monotonic() < end and process.poll() is None:
		supervisor = supervisor or children.read_text().split()
		if supervisor and pathlib.Path(f'/proc/{supervisor[0]}/task/{supervisor[0]}/children').read_text():
			os.kill(int(supervisor[0]), signal.SIGKILL)
			break
	process.communicate(timeout=30)
	wait_for(lambda: own_cloche.call('gc').code == 0 and not own_cloche.left_behind(), 'the host to be clean')


def test_killed_supervisor_takes_its_sandbox_along(sandbox, cloche):
	box = sandbox('--trace')
	box.sh('setsid sleep 1234 & echo x > /workspace/f')
	[supervisor] = box.supervisor()
	kill_and_wait(supervisor)
	wait_for(lambda: not cloche.processes('sleep\x001234'), 'the end of what ran inside', 5)
	assert cloche.call('exec', box.id, '--', '/bin/true').code == 125
	assert cloche.call('gc').code == 0
	cloche.check_clean()
	assert box.record.file('/workspace/f')['created']
	show = box.record.show()
	assert show['ended_at'] and 'cut' in json.dumps(show['sealed'])


def test_start_of_the_next_run_cleans_after_a_killed_one(own_cloche):
	box = own_cloche.create('--trace')
	[supervisor] = box.supervisor()
	kill_and_wait(supervisor)
	assert own_cloche.run('/bin/true').code == 0
	own_cloche.check_clean()


def test_killed_client_of_an_exec_leaves_a_row(box):
	process = box.start('/bin/sh', '-c', 'sleep 1; echo finished > /workspace/f; exit 4')
	wait_for(lambda: box.record.events('exec.start'), 'the start of the exec')
	process.kill()
	process.communicate()
	rows = wait_for(box.record.rows, 'the row')
	assert rows[0]['exit_code'] == 4 or rows[0].get('signal') or rows[0].get('interrupted')


def test_change_set_survives_a_killed_supervisor(own_cloche):
	(own_cloche.cwd / 'f').write_text('before')
	here = own_cloche.cwd
	box = own_cloche.create('--trace', '-m', f'{here}:{here}:cow')
	box.sh(f'echo after > {here}/f')
	kill_and_wait(box.supervisor()[0])
	assert own_cloche.call('gc').code == 0
	assert own_cloche.call('apply', box.id).code == 0
	assert (here / 'f').read_text() == 'after\n'


def fill(path, leave):
	stat = os.statvfs(path.parent)
	with open(path, 'wb') as file:
		os.posix_fallocate(file.fileno(), 0, stat.f_bavail * stat.f_frsize - leave)


def test_full_disk_is_said_and_what_was_recorded_stays_readable(small_disk):
	first = small_disk.sh('echo ok > /workspace/f')
	assert first.code == 0, first
	fill(small_disk.state / 'ballast', leave=3 << 20)
	# Many lines in the record, one file in the sandbox.
	run = small_disk.py('''
import os
for i in range(300000):
	os.close(os.open('/workspace/' + 'n' * 200, os.O_CREAT | os.O_WRONLY))
''')
	assert run.code != 0
	assert 'space' in run.err.lower() or 'disk' in run.err.lower()
	if run.record.id:
		show = small_disk.call('show', run.record.id, '--json')
		assert show.code == 0 and json.loads(show.out)['complete'] is False
	assert small_disk.call('verify', first.record.id).code == 0
	assert small_disk.call('gc').code == 0
	small_disk.check_clean()


def n_mounts():
	return len(pathlib.Path('/proc/self/mountinfo').read_text().splitlines())


def test_crowd_of_sandboxes_leaves_nothing_and_mixes_nothing(own_cloche):
	own_cloche.run('/bin/true')
	before = n_mounts()
	count, at_once = int(os.environ.get('CLOCHE_TEST_CROWD', '60')), 12
	ids = {}
	for first in range(0, count, at_once):
		batch = {}
		for n in range(first, min(first + at_once, count)):
			id_file = own_cloche.cwd / f'id{n}'
			batch[n] = own_cloche.start('run', '--id-file', id_file, '--', '/bin/sh', '-c', f'echo {n} > /workspace/only_{n}')
		for n, process in batch.items():
			_, err = process.communicate(timeout=60)
			assert process.returncode == 0, err
			ids[n] = (own_cloche.cwd / f'id{n}').read_text().strip()
	own_cloche.check_clean()
	assert n_mounts() == before
	for n, sandbox in ids.items():
		table = json.loads(own_cloche.call('files', sandbox, '--json').out)
		assert [entry['path'] for entry in table if '/only_' in entry['path']] == [f'/workspace/only_{n}']


def test_commands_at_once_end_in_any_order_and_the_record_is_intact(own_cloche):
	box = own_cloche.create('--trace')
	running = [box.start('/bin/sh', '-c', f'sleep {0.05 * (4 - n % 5)}; exit {n}') for n in range(20)]
	assert [process.wait(timeout=60) for process in running] == list(range(20))
	for process in running:
		process.communicate()
	assert sorted(row['id'] for row in box.record.rows()) == list(range(1, 21))
	assert box.remove().code == 0
	verified = own_cloche.call('verify', box.id)
	assert verified.code == 0, verified


def test_gc_beside_runs_that_end_finds_no_fault(own_cloche):
	own_cloche.run('/bin/true')
	runs = [own_cloche.start('run', '-q', '--', '/bin/sh', '-c', f'exit {n}') for n in range(8)]
	while any(process.poll() is None for process in runs):
		done = own_cloche.call('gc')
		assert done.code == 0, done
	for n, process in enumerate(runs):
		process.communicate()
		assert process.returncode == n


def test_clock_of_events_never_runs_backwards_and_wall_times_are_told(box):
	for _ in range(3):
		box.sh('/bin/true')
	log = [event for event in box.record.events() if event['kind'] in ('exec.start', 'exec.end')]
	assert [event['guest_ns'] for event in log] == sorted(event['guest_ns'] for event in log)
	assert abs(log[-1]['wall_ms'] / 1000 - time.time()) < 60


@pytest.mark.parametrize('damage, says', [
	('change', 'changed'), ('remove', 'missing'), ('swap', ''), ('cut', 'cut off'),
])
def test_verify_names_what_was_done_to_a_record(cloche, damage, says):
	run = cloche.sh('for i in 1 2 3 4 5; do echo $i > /workspace/f$i; done')
	assert cloche.call('verify', run.record.id).code == 0
	copy = cloche.state / 'records' / run.record.id
	kept = copy.with_name('kept')
	shutil.copytree(copy, kept)
	try:
		journal = copy / 'log.jsonl'
		lines = journal.read_text().splitlines(keepends=True)
		if damage == 'change':
			lines[2] = lines[2].replace('"wall_ms":1', '"wall_ms":2')
		elif damage == 'remove':
			del lines[2]
		elif damage == 'swap':
			lines[1], lines[2] = lines[2], lines[1]
		else:
			del lines[-2:]
		journal.write_text(''.join(lines))
		done = cloche.call('verify', run.record.id)
		assert done.code == 1
		assert says in (done.out + done.err).lower()
	finally:
		shutil.rmtree(copy)
		kept.rename(copy)
	assert cloche.call('verify', run.record.id).code == 0


def test_record_that_is_garbage_is_refused_in_one_sentence(cloche):
	run = cloche.run('/bin/true')
	record = cloche.state / 'records' / run.record.id
	kept = record.with_name('kept')
	shutil.copytree(record, kept)
	try:
		for path in record.iterdir():
			if path.is_file():
				path.write_bytes(os.urandom(4096))
		for verb in ('tree', 'files', 'events', 'log', 'show', 'verify'):
			done = cloche.call(verb, run.record.id)
			assert done.code in (1, 125), (verb, done)
			assert len(done.err.splitlines() or done.out.splitlines()) >= 1
	finally:
		shutil.rmtree(record)
		kept.rename(record)


def test_broken_host_key_is_told_before_anything_is_made(own_cloche):
	(own_cloche.state / 'host.key').write_text('no key\n')
	done = own_cloche.call('run', '--', '/bin/true')
	assert done.code == 125 and 'host.key' in done.err and done.duration_s < 3, done
	assert own_cloche.ids() == set()


def test_exec_into_a_frozen_sandbox_hangs_nobody(box):
	assert box.cloche.call('pause', box.id).code == 0
	begin = time.monotonic()
	done = box.cloche.call('exec', box.id, '--', '/bin/true', limit_s=20)
	assert done.code == 125 and time.monotonic() - begin < 10
	assert box.cloche.call('ps', '--json').code == 0
	assert box.cloche.call('wake', box.id).code == 0
	assert box.exec('/bin/echo', 'on').out == 'on\n'


def test_frozen_sandbox_can_be_removed(cloche):
	box = cloche.create('--trace')
	box.sh('setsid sleep 99 & :')
	assert cloche.call('pause', box.id).code == 0
	assert cloche.call('rm', box.id, limit_s=20).code == 0
	cloche.check_clean()


def test_interrupt_ends_the_run_and_keeps_the_record(own_cloche, tmp_path):
	process = own_cloche.start('run', '--id-file', tmp_path / 'id', '--', PYTHON, '-c',
		"print('up', flush=True)\nimport time\ntime.sleep(60)", start_new_session=True)
	assert process.stdout.readline() == b'up\n'
	os.killpg(process.pid, signal.SIGINT)
	_, err = process.communicate(timeout=20)
	assert process.returncode == 130, err
	own_cloche.check_clean()
	sandbox = (tmp_path / 'id').read_text().strip()
	assert own_cloche.call('verify', sandbox).code == 0


@contextlib.contextmanager
def ledger_away(cloche):
	"""Nothing can be entered meanwhile, so nothing is signed."""
	ledger, aside = cloche.state / 'ledger.jsonl', cloche.state / 'aside'
	ledger.rename(aside)
	ledger.mkdir()
	yield
	ledger.rmdir()
	aside.rename(ledger)


def sealed_seq(cloche, sandbox):
	seal = cloche.state / 'records' / sandbox / 'seal.json'
	return json.loads(seal.read_text())['seq'] if seal.exists() else 0


def test_signing_goes_on_after_heads_that_could_not_be_signed(own_cloche):
	box = own_cloche.create()
	box.sh('true')
	wait_for(lambda: sealed_seq(own_cloche, box.id), 'a first seal')
	with ledger_away(own_cloche):
		before = sealed_seq(own_cloche, box.id)
		box.sh('true')
		time.sleep(3)  # a head is due every 2 s
		assert sealed_seq(own_cloche, box.id) == before
	wait_for(lambda: sealed_seq(own_cloche, box.id) > before, 'the next seal')
	assert own_cloche.call('stop', box.id).code == 0
	verified = own_cloche.call('verify', box.id)
	assert verified.code == 0, verified
	own_cloche.check_clean()


def test_mending_that_failed_is_taken_up_without_a_second_end(own_cloche):
	box = own_cloche.create('--trace')
	box.sh('true')
	kill_and_wait(box.supervisor()[0])
	leftover = own_cloche.state / 'trash' / 'sb_x' / 'folder'
	leftover.mkdir(parents=True)
	with ledger_away(own_cloche):
		for _ in range(2):
			assert own_cloche.call('gc').code != 0
		assert not leftover.exists()
	assert own_cloche.call('gc').code == 0
	kinds = [event['kind'] for event in check_record(own_cloche, box.id)]
	assert kinds.count('sandbox.stopped') == 1
	assert kinds.count('trace.blind') == 1
	assert own_cloche.call('verify', box.id).code == 0


def numbers_of(box):
	"""Of its pid and mount namespaces; the kernel gives them to others when the box is gone."""
	pid = json.loads(box.cloche.call('inspect', box.id).out)['supervisor']['init_pid']
	return {os.stat(f'/proc/{pid}/ns/{name}').st_ino for name in ('pid', 'mnt')}


def test_namespaces_that_get_the_numbers_of_a_dead_box_are_not_told(own_cloche, tmp_path):
	other = Cloche(tmp_path / 'other-state', tmp_path / 'other-run', own_cloche.cwd)
	box = own_cloche.create('--trace')
	dead = numbers_of(box)
	kill_and_wait(box.supervisor()[0])
	try:
		for _ in range(20):
			with_number = other.create('--trace')
			again = dead & numbers_of(with_number)
			assert with_number.sh('true; /bin/true').code == 0
			with_number.remove()
			if again:
				break
		else:
			own_cloche.call('gc')
			pytest.skip('this kernel did not give the numbers again')
	finally:
		other.check_clean()
		unmount_run_dir(other.run_dir)
	assert own_cloche.call('gc').code == 0
	kinds = [event['kind'] for event in check_record(own_cloche, box.id)]
	assert kinds.count('trace.blind') == 1 and 'process.exec' not in kinds, kinds


@pytest.mark.parametrize('harm', ['no header', 'a link', 'a folder'])
def test_record_that_cannot_be_mended_stays_and_is_let_go(own_cloche, harm):
	box = own_cloche.create('--trace')
	box.sh('true')
	kill_and_wait(box.supervisor()[0])
	log = own_cloche.state / 'records' / box.id / 'log.jsonl'
	log.unlink()
	if harm == 'no header':
		log.touch()
	elif harm == 'a link':
		log.symlink_to('meta.json')
	else:
		log.mkdir()
	assert own_cloche.call('gc').code == 0
	assert not own_cloche.left_behind()
	assert own_cloche.call('verify', box.id).code != 0


def test_key_pair_that_does_not_match_is_refused(own_cloche):
	assert own_cloche.call('run', '--', '/bin/true').code == 0
	public = own_cloche.state / 'host.pub'
	right = public.read_bytes()
	wrong = bytearray(base64.b64decode(right.split(b'\n')[1]))
	wrong[-1] ^= 1
	public.write_bytes(b'-----BEGIN PUBLIC KEY-----\n' + base64.b64encode(wrong) + b'\n-----END PUBLIC KEY-----\n')
	refused = own_cloche.call('run', '--', '/bin/true')
	assert refused.code == 125 and 'host.pub' in refused.err and len(refused.err.splitlines()) == 1, refused
	public.write_bytes(right)
	assert own_cloche.call('gc').code == 0
	assert own_cloche.call('verify', '--all').code == 0


def test_changes_that_are_being_applied_are_not_removed(own_cloche):
	here = own_cloche.cwd
	box = own_cloche.create('-m', f'{here}:{here}:cow')
	box.sh(f'echo new > {here}/f')
	assert own_cloche.call('stop', box.id).code == 0
	folder = own_cloche.state / 'changes' / box.id
	fd = os.open(folder, os.O_RDONLY)
	fcntl.flock(fd, fcntl.LOCK_EX)
	refused = own_cloche.call('rm', '--changes', box.id)
	assert refused.code != 0 and 'at work' in refused.err, refused
	assert folder.exists()
	os.close(fd)
	assert own_cloche.call('rm', '--changes', box.id).code == 0
	assert not folder.exists()


def request(sock, **body):
	text = json.dumps(body).encode()
	sock.sendall(len(text).to_bytes(4, 'little') + b'J\0\0\0' + text)


def answer(sock):
	"""The next one: streams and messages are passed over."""
	while True:
		head = sock.recv(8, socket.MSG_WAITALL)
		payload = sock.recv(int.from_bytes(head[:4], 'little'), socket.MSG_WAITALL)
		if head[4:5] == b'J' and 'ok' in json.loads(payload):
			return json.loads(payload)


def test_second_command_on_an_attached_connection_is_refused(box):
	with socket.socket(socket.AF_UNIX) as sock:
		sock.connect(os.fspath(box.cloche.state / 'sandboxes' / box.id / 'control.sock'))
		request(sock, request='exec', spec={'argv': ['/bin/sleep', '60']})
		assert answer(sock)['ok'] is True
		request(sock, request='exec', spec={'argv': ['/bin/cat']})
		refused = answer(sock)
		assert refused['ok'] is False and refused['errno'] == 'EBUSY', refused
		request(sock, request='exec', spec={'argv': ['/bin/true'], 'detach': True})
		assert answer(sock)['ok'] is True


@pytest.mark.parametrize('verb', ['gc', 'rm'])
def test_two_that_clear_away_the_same(own_cloche, verb):
	"""A folder that is half removed is nobody's to mend."""
	box = own_cloche.create()
	box.sh('mkdir /opt/d; for i in $(seq 300); do echo > /opt/d/$i; done')  # more than is moved aside for later
	kill_and_wait(box.supervisor()[0])
	args = ('gc',) if verb == 'gc' else ('rm', box.id)
	slow = own_cloche.strace(['-f', '-e', 'trace=unlinkat', '-e', 'inject=unlinkat:delay_exit=3000'], *args, background=True)
	while slow.poll() is None:
		done = own_cloche.call(*args)
		assert done.code == 0, done
	out, err = slow.communicate()
	assert slow.returncode == 0, (out, err)
	assert not own_cloche.left_behind()
	assert own_cloche.call('gc').out == '0 sandboxes mended\n'
	assert own_cloche.call('verify', box.id).code == 0
