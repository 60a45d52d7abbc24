# SPDX-License-Identifier: Apache-2.0
"""Loss and honesty: what was produced is recorded or counted, and a slice holds its own exec's work only."""
import contextlib
import ctypes
import os
import signal
import subprocess
import time

import pytest

from harness import PYTHON, wait_for

STORM = '''
import os, sys, time
time.sleep(float(sys.argv[2]))
for i in range(int(sys.argv[1])):
	os.close(os.open(f'/workspace/n{i % 1000}', os.O_CREAT | os.O_WRONLY))
'''


def is_storm(event):
	return event['kind'] == 'file.open' and event['path'].startswith('/workspace/n')


def count_storm(record):
	return sum(1 for event in record.events() if is_storm(event))


def test_ring_full_with_the_reader_stopped_counts_what_it_lost(sandbox):
	box = sandbox('--trace', '--on-loss', 'continue')
	quiet = box.exec(PYTHON, '-c', STORM, '0', '0')
	others = sum(1 for event in quiet.record.events('process.exec'))
	assert others == 1
	made = 400_000
	process = box.start(PYTHON, '-c', STORM, str(made), '1')
	[supervisor] = box.supervisor()
	time.sleep(0.5)
	os.kill(supervisor, signal.SIGSTOP)
	time.sleep(8)
	os.kill(supervisor, signal.SIGCONT)
	assert process.wait(60) == 0
	storm = box.record.rows()[1]['exec']
	record = box.record.of(storm)
	recorded = count_storm(record)
	dropped = [event for event in box.record.events('trace.dropped')]
	n_dropped = sum(event['count'] for event in dropped)
	assert 0 < recorded < made and n_dropped > 0
	# What else python does (its own opens, its exit) may be among the lost.
	assert 0 <= recorded + n_dropped - made <= len(quiet.record.events('file.open', '--noise')) + 20
	show = box.record.show()
	assert show['complete'] is False and show['dropped'] == n_dropped
	seqs = [event['seq'] for event in box.record.events()]
	assert seqs == sorted(seqs)
	after = box.sh('echo x > /workspace/after')
	assert after.record.file('/workspace/after')['created']
	assert after.record.row().get('slice_complete', True) is True


def test_default_loses_nothing_it_holds_the_sandbox_instead(sandbox):
	box = sandbox('--trace', '--buffer', '4194304')
	made = 100_000
	processes = [box.start(PYTHON, '-c', STORM, str(made // 2), '0') for _ in range(2)]
	assert [process.wait(120) for process in processes] == [0, 0]
	assert count_storm(box.record) == made
	show = box.record.show()
	assert show['complete'] is True and show['dropped'] == 0
	assert not box.record.events('trace.dropped')


PTRACE_DETACH, PTRACE_SYSCALL, PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_GET_SYSCALL_INFO = 17, 24, 0x4206, 0x4207, 0x420e
WALL, PTRACE_O_TRACESYSGOOD, SYSCALL_ENTRY = 0x40000000, 1, 1
WRITE = {'x86_64': 1, 'aarch64': 64}[os.uname().machine]


def ptrace(request, pid, address=None, data=None):
	call = ctypes.CDLL(None, use_errno=True).ptrace
	call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
	assert call(request, pid, address, data) >= 0, os.strerror(ctypes.get_errno())


def hold(thread):
	ptrace(PTRACE_SEIZE, thread, None, PTRACE_O_TRACESYSGOOD)
	ptrace(PTRACE_INTERRUPT, thread)
	os.waitpid(thread, WALL)


def run_to_write(thread):
	info = ctypes.create_string_buffer(88)
	while True:
		ptrace(PTRACE_SYSCALL, thread)
		os.waitpid(thread, WALL)
		ptrace(PTRACE_GET_SYSCALL_INFO, thread, len(info), info)
		if info.raw[0] == SYSCALL_ENTRY and int.from_bytes(info.raw[24:32], 'little') == WRITE:
			return


def n_lines(box):
	return sum(path.read_bytes().count(b'"file.open"') for path in (box.cloche.state / 'records' / box.id).glob('trace-*.jsonl'))


THREE_STORMS = '''
import os, time
open('/gate/started', 'w').close()
for gate, n in (('first', 1_000), ('second', 12_000), ('third', 100_000)):
	while not os.path.exists(f'/gate/{gate}'):
		time.sleep(0.05)
	for i in range(n):
		os.close(os.open(f'/workspace/n{i % 1000}', os.O_CREAT | os.O_WRONLY))
	open(f'/gate/{gate}-done', 'w').close()
'''


def test_reader_that_emptied_the_ring_and_stands_at_its_disk_loses_nothing(sandbox, tmp_path):
	"""The kernel wakes both threads for a ring that fills. Whichever of them empties it, the other one must be there
	for what comes while the reader waits for its write."""
	box = sandbox('--trace', '--on-loss', 'continue', '-m', f'{tmp_path}:/gate:rw')
	process = box.start(PYTHON, '-c', THREE_STORMS)
	[reader] = box.supervisor()
	wait_for(lambda: len(os.listdir(f'/proc/{reader}/task')) == 2, 'its other thread alone')
	[mover] = [int(name) for name in os.listdir(f'/proc/{reader}/task') if int(name) != reader]
	wait_for(lambda: (tmp_path / 'started').exists(), 'the program')

	def storm(name):
		(tmp_path / name).touch()
		wait_for(lambda: (tmp_path / f'{name}-done').exists(), f'the {name} storm')

	try:
		for thread in (reader, mover):
			hold(thread)
		storm('first')  # fills the small ring to its mark: the big one comes
		for thread in (reader, mover):
			ptrace(PTRACE_DETACH, thread)
		time.sleep(0.5)
		for thread in (reader, mover):
			hold(thread)
		storm('second')
		while n_lines(box) < 1_000 + 11_500:
			run_to_write(reader)
		ptrace(PTRACE_DETACH, mover)
		time.sleep(0.5)
		storm('third')
	finally:
		for thread in (reader, mover):
			with contextlib.suppress(AssertionError):
				ptrace(PTRACE_DETACH, thread)
	assert process.wait(60) == 0
	show = box.record.show()
	assert show['dropped'] == 0 and show['complete'] is True
	assert box.record.rows()[0].get('slice_complete', True) is True
	assert count_storm(box.record) == 1_000 + 12_000 + 100_000


def test_on_loss_stop_ends_the_sandbox(sandbox):
	box = sandbox('--trace', '--on-loss', 'stop')
	process = box.start(PYTHON, '-c', STORM, '2000000000', '1', stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	[supervisor] = box.supervisor()
	time.sleep(0.5)
	os.kill(supervisor, signal.SIGSTOP)
	time.sleep(6)
	os.kill(supervisor, signal.SIGCONT)
	assert process.wait(60) != 0
	wait_for(lambda: not box.supervisor(), 'the sandbox to end')
	show = box.record.show()
	assert show['complete'] is False and show['dropped'] > 0


@pytest.fixture(scope='module')
def storm_program(tmp_path_factory):
	"""A program in C, so that the storm is as fierce as the machine allows."""
	folder = tmp_path_factory.mktemp('storm')
	source = folder / 'storm.c'
	source.write_text('''
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int workers = atoi(argv[1]), each = atoi(argv[2]);
	for (int w = 0; w < workers; w++)
		if (fork() == 0) {
			char path[64];
			for (int i = 0; i < each; i++) {
				snprintf(path, sizeof(path), "/workspace/s%d-%d", w, i);
				close(open(path, O_CREAT | O_WRONLY, 0600));
				unlink(path);
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}
''')
	subprocess.run(['gcc', '-O2', '-o', folder / 'storm', source], check=True)
	return folder


def test_storm_on_all_cores_is_recorded_whole_three_times(sandbox, storm_program):
	workers, each = os.cpu_count(), 8_000
	for _ in range(3):
		box = sandbox('--trace', '-m', f'{storm_program}:/storm:ro')
		assert box.exec('/storm/storm', str(workers), str(each)).code == 0
		created, deleted = set(), set()
		n_opens = n_deletes = 0
		for event in box.record.events():
			if event['kind'] == 'file.open' and event['path'].startswith('/workspace/s'):
				n_opens += 1
				created.add(event['path'])
			if event['kind'] == 'file.delete':
				n_deletes += 1
				deleted.add(event['path'])
		wanted = {f'/workspace/s{w}-{i}' for w in range(workers) for i in range(each)}
		assert (n_opens, n_deletes) == (workers * each, workers * each)
		assert created == wanted and deleted == wanted
		assert box.record.show()['complete'] is True
		box.remove()


SLICES = '(sleep 0.3; touch /workspace/late_$1; setsid sh -c "sleep 0.5; touch /workspace/later_$1") & touch /workspace/now_$1'


def test_slices_of_execs_at_once_hold_their_own_work_also_late(box):
	processes = [box.start('/bin/sh', '-c', SLICES, 'sh', name) for name in 'AB']
	assert [process.wait(30) for process in processes] == [0, 0]
	rows = {row['argv'][-1]: row['exec'] for row in box.record.rows()}

	def touched(record):
		return {path for path, entry in record.files().items() if path.startswith('/workspace/') and entry['created']}

	wait_for(lambda: len(touched(box.record)) == 6, 'all six files')
	for name in 'AB':
		assert touched(box.record.of(rows[name])) == {f'/workspace/{when}_{name}' for when in ('now', 'late', 'later')}
		assert {event['exec'] for event in box.record.of(rows[name]).events()} == {rows[name]}
	opens = [event['path'] for event in box.record.events('file.open') if event.get('created')]
	assert len([path for path in opens if path.startswith('/workspace/')]) == 6


def test_seq_has_no_gap_and_every_line_has_its_header(box):
	for i in range(5):
		box.sh(f'echo {i} > /workspace/f{i}; rm /workspace/f{i}')
	events = box.record.lines('events', '--noise', '--internal')
	seqs = [event['seq'] for event in events]
	assert sorted(seqs) == list(range(min(seqs), min(seqs) + len(seqs)))
	for event in events:
		assert event['v'] == 1 and event['sandbox'] == box.id
		assert isinstance(event['guest_ns'], int) and isinstance(event['wall_ms'], int) and event['kind']


def test_slice_is_whole_the_moment_the_exec_returns(box):
	missing = []
	for i in range(50):
		run = box.sh(f'/bin/true {i}; echo x > /workspace/q{i % 7}')
		argvs = [node['argv'] for node in run.record.nodes()]
		if ['/bin/true', str(i)] not in argvs or f'/workspace/q{i % 7}' not in run.record.files():
			missing.append(i)
	assert missing == []


def test_events_arrive_while_the_command_runs(box):
	follow = box.cloche.start('events', box.id, '--jsonl', '--follow', stdout=subprocess.PIPE)
	time.sleep(0.3)
	process = box.start('/bin/sh', '-c', 'echo x > /workspace/seen; sleep 3')
	begin = time.monotonic()
	try:
		for line in follow.stdout:
			if b'/workspace/seen' in line:
				break
		assert time.monotonic() - begin < 1.5 and process.poll() is None
	finally:
		process.wait(30)
		follow.kill()
		follow.communicate()


def test_untraced_sandbox_has_no_trace_and_says_so(sandbox):
	box = sandbox('--no-trace')
	assert box.sh('echo x > /workspace/f').code == 0
	done = box.cloche.call('tree', box.id, '--json')
	assert done.code != 0 and 'trac' in done.err
	assert box.record.row()['exit_code'] == 0
	assert box.record.show()['complete'] is False


