# SPDX-License-Identifier: Apache-2.0
"""Execs: results, outputs, limits of time, and what a command finds when it starts."""
import hashlib
import json
import os
import pathlib
import subprocess
import time

import pytest

from harness import PYTHON, cgroup_bases, wait_for

SHA_OF_NOTHING = hashlib.sha256(b'').hexdigest()


def alive_inside(box, marker):
	"""How many processes inside have this word among their arguments."""
	done = box.py('''
import os, sys
n = 0
for p in os.listdir('/proc'):
	try:
		args = open(f'/proc/{p}/cmdline', 'rb').read().split(b'\\0')
		state = open(f'/proc/{p}/stat').read().rsplit(')', 1)[1].split()[0]
	except OSError:
		continue
	n += p.isdigit() and int(p) != os.getpid() and sys.argv[1].encode() in args and state != 'Z'
print(n)
''', marker)
	return int(done.out)


@pytest.mark.parametrize('folder, says', [('/nonexistent', 'No such file'), ('/etc/passwd', 'Not a directory')])
def test_folder_that_is_none_is_named_and_not_the_command(cloche, folder, says):
	done = cloche.run('/bin/true', options=('-w', folder))
	assert done.code == 126
	assert f"working directory '{folder}': {says}" in done.err and 'not found' not in done.err
	[row] = done.record.rows()
	assert row['exit_code'] == 126 and folder in row['reason']


@pytest.mark.parametrize('options', [('-u', 'nosuchuser'), ('-u', '999999'), ('--id-file', '/nonexistent/x')])
def test_run_that_cannot_start_its_command_ends(own_cloche, options):
	done = own_cloche.call('run', '-q', *options, '--', '/bin/true', limit_s=20)
	assert done.code == 125 and len(done.err.splitlines()) == 1
	assert not own_cloche.left_behind()


def test_background_process_that_holds_the_output_does_not_hang_the_result(box):
	for _ in range(3):
		run = box.sh('sleep 120 & (sleep 120; echo late) & echo hi; exit 3')
		assert (run.code, run.out) == (3, 'hi\n')
		assert run.duration_s < 2
		assert run.record.row()['left_running'] >= 2
	assert box.sh('echo next').out == 'next\n'


def test_end_of_what_was_left_running_is_in_the_record(cloche):
	run = cloche.sh('sleep 300 >/dev/null 2>&1 & sleep 300 >/dev/null 2>&1 & exit 0')
	assert run.code == 0, run
	started = {event['child_pid'] for event in run.record.events('process.fork')}
	ended = {event['pid'] for event in run.record.events('process.exit')}
	assert len(started) >= 2 and started <= ended, (started, ended)


def test_commands_whose_daemons_have_ended_are_let_go(box):
	def groups():
		return [name for base in cgroup_bases() for name in base.glob(f'cloche/{box.id}/ex_*')]
	for _ in range(20):
		assert box.sh('sleep 0.1 >/dev/null 2>&1 </dev/null &').code == 0
	wait_for(lambda: all(not (name / 'cgroup.procs').read_text() for name in groups()), 'the end of the daemons')
	for _ in range(20):
		assert box.sh('sleep 0.1 >/dev/null 2>&1 </dev/null &').code == 0
	assert len(groups()) <= 36, groups()


def test_output_after_the_return_is_not_lost_in_silence(box):
	run = box.sh('(sleep 0.5; echo after-the-end) & echo hi')
	assert run.out == 'hi\n' and run.duration_s < 2

	def is_told():
		text = json.dumps(run.record.events() + box.record.rows())
		return 'after-the-end' in text or '"late_bytes": 14' in text

	wait_for(is_told, 'the late output in the record')


TIMEOUT_CHILDREN = '''
import os, signal, time
def behind(work):
	if os.fork() == 0:
		os.setsid()
		if os.fork():
			os._exit(0)
		work()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def beat():
	while True:
		open('/workspace/beat', 'a').write('.')
		time.sleep(0.1)
behind(beat)
behind(lambda: os.kill(os.getpid(), signal.SIGSTOP))
behind(lambda: time.sleep(999))
time.sleep(999)
'''


def test_timeout_reaches_every_process_of_the_exec_and_no_other(box):
	early = box.sh('sh -c "sleep 300; :" earlier & :')
	assert early.code == 0
	run = box.exec(PYTHON, '-c', TIMEOUT_CHILDREN, options=('--timeout', '2s'))
	assert run.code == 124
	assert 1.9 <= run.duration_s < 3.5
	row = run.record.row()
	assert row['timed_out'] is True and 1900 <= row['duration_ms'] < 3500
	size = box.sh('stat -c %s /workspace/beat').out
	time.sleep(0.4)
	assert box.sh('stat -c %s /workspace/beat').out == size
	assert alive_inside(box, TIMEOUT_CHILDREN) == 0
	assert alive_inside(box, 'earlier') == 1
	events = run.record.events()
	started = {event['child_pid'] for event in events if event['kind'] == 'process.fork' and not event.get('thread')}
	ended = {event['pid'] for event in events if event['kind'] == 'process.exit'}
	assert len(started) >= 6 and started <= ended


def test_exit_status_by_number_and_by_signal(cloche):
	run = cloche.sh('''
sh -c 'exit 137'; echo a=$?; sh -c 'kill -9 $$'; echo b=$?; sh -c 'kill -15 $$'; echo c=$?
sh -c 'exit 255'; echo d=$?; /usr/bin/python3 -c 'import os; os._exit(256 + 4)'; echo e=$?; kill -9 $$
''')
	assert run.out == 'a=137\nb=137\nc=143\nd=255\ne=4\n'
	assert run.code == 128 + 9
	[sh] = run.record.tree()
	assert [(node['exit_code'], node['signal']) for node in sh['children']] == [
		(137, None), (None, 9), (None, 15), (255, None), (4, None)]
	row = run.record.row()
	assert (row['exit_code'], row['signal'], row['oom_killed'], row['timed_out']) == (None, 9, False, False)


def test_signals_start_at_their_defaults(cloche):
	run = cloche.bash('''
seq 1 1000000 | head -n1; echo "${PIPESTATUS[*]}"
grep -E '^Sig(Blk|Ign)' /proc/self/status
timeout 5 sh -c 'yes | head -c 10 >/dev/null' && echo ended
''')
	assert run.lines == ['1', '141 0', 'SigBlk:\t0000000000000000', 'SigIgn:\t0000000000000000', 'ended']


def test_no_input_reads_as_its_end(box):
	run = box.sh('cat; echo "cat done"; read x || echo eof; /usr/bin/python3 -c "import sys; print(sys.stdin.isatty())"')
	assert run.lines == ['cat done', 'eof', 'False']
	assert run.duration_s < 5


def test_input_that_is_not_read_hurts_nobody(box):
	run = box.exec('/bin/true', stdin=b'x' * 1000000, options=('-i',))
	assert run.code == 0
	assert box.sh('echo alive').out == 'alive\n'


def test_input_reaches_the_command_and_ends(box):
	assert box.exec('/bin/cat', stdin=b'abc', options=('-i',)).out == 'abc'


def test_input_ends_with_its_client(box):
	"""One that is killed: what it sent is read, and the command goes on."""
	client = box.start('/bin/sh', '-c', 'cat > /tmp/input; echo over >> /tmp/input; exit 6', options=('-i',), stdin=subprocess.PIPE)
	client.stdin.write(b'sent ')
	client.stdin.flush()
	wait_for(lambda: box.sh('cat /tmp/input').out == 'sent ', 'the command to read it')
	client.kill()
	client.communicate()
	wait_for(lambda: [row for row in box.record.rows() if row['exit_code'] == 6], 'its row')
	assert box.sh('cat /tmp/input').out == 'sent over\n'


def test_input_of_run_passes_through(cloche):
	run = cloche.run('/usr/bin/sha256sum', stdin=b'y' * 3000000)
	assert run.out.split()[0] == hashlib.sha256(b'y' * 3000000).hexdigest()


def memory_kb(pid, field='VmHWM'):
	for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
		if line.startswith(field + ':'):
			return int(line.split()[1])
	raise AssertionError(f'no {field} of process {pid}')


HUGE = 100_000_000


def test_huge_output_is_clipped_and_hashed_whole(box):
	[supervisor] = box.supervisor()
	before = memory_kb(supervisor)
	process = box.start('/bin/sh', '-c', f'''
head -c {HUGE} /dev/zero | tr '\\0' x
(head -c {HUGE} /dev/zero | tr '\\0' y >&2) & head -c {HUGE} /dev/zero | tr '\\0' z; wait; printf END
''', stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	assert process.wait(60) == 0
	[row] = box.record.rows()
	assert (row['stdout_bytes'], row['stderr_bytes']) == (2 * HUGE + 3, HUGE)
	assert row['output_truncated'] is True
	assert row['stdout'].startswith('x' * 2000) and row['stdout'].endswith('z' * 1997 + 'END')
	assert '[...]' in row['stdout'] and len(row['stdout']) < 4100
	digest = hashlib.sha256()
	for letter in b'xz':
		for _ in range(HUGE // 1_000_000):
			digest.update(bytes([letter]) * 1_000_000)
	digest.update(b'END')
	assert row['stdout_sha256'] == digest.hexdigest()
	assert memory_kb(supervisor) - before < 64 * 1024


def test_both_streams_at_once_never_stand_still(box):
	"""One stream may empty the queue to the client for which the other one waits."""
	size, rounds = 8_000_000, 60
	process = box.start('/bin/sh', '-c', f'''
for i in $(seq {rounds}); do (head -c {size} /dev/zero >&2) & head -c {size} /dev/zero; wait; done
''', stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	assert process.wait(60) == 0
	[row] = box.record.rows()
	assert (row['stdout_bytes'], row['stderr_bytes']) == (rounds * size, rounds * size)


def test_output_is_never_cut_inside_a_character(box):
	run = box.py("import sys; sys.stdout.write('a' + '\\u20ac' * 5000)")
	row = run.record.row()
	assert '\ufffd' not in row['stdout'] and 'stdout_b64' not in row
	head, tail = row['stdout'].split('[...]')
	assert head.strip() == 'a' + '€' * 1999 and tail.strip() == '€' * 2000
	assert row['stdout_bytes'] == 1 + 3 * 5000


@pytest.mark.parametrize('command, code, says', [
	(['/no/such/program'], 127, 'no/such/program'),
	(['nosuchprogram'], 127, 'nosuchprogram'),
	(['/etc/passwd'], 126, '/etc/passwd'),
	(['/etc'], 126, '/etc'),
])
def test_command_that_cannot_start(cloche, command, code, says):
	run = cloche.run(*command)
	assert run.code == code
	assert says in run.err.splitlines()[0]
	assert run.out == ''


def test_row_says_everything_about_an_exec(box):
	run = box.exec('/bin/sh', '-c', 'echo out; echo err >&2; exit 7', options=('-e', 'TOKEN=secret-value', '-w', '/tmp'))
	row = run.record.row()
	assert row['argv'] == ['/bin/sh', '-c', 'echo out; echo err >&2; exit 7']
	assert (row['cwd'], row['exit_code'], row['signal']) == ('/tmp', 7, None)
	assert (row['stdout'], row['stderr']) == ('out\n', 'err\n')
	assert (row['stdout_bytes'], row['stderr_bytes'], row['output_truncated']) == (4, 4, False)
	assert row['stdout_sha256'] == hashlib.sha256(b'out\n').hexdigest()
	assert 'TOKEN' in row['env_names'] and 'secret-value' not in json.dumps(row)
	assert (row['source'], row['via'], row['operation']) == ('agent', 'cli', 'exec')
	assert row['sandbox'] == box.id and row['id'] == 1
	assert row['started_at'].endswith('Z') and row['duration_ms'] >= 0


def test_row_ids_count_without_gaps(box):
	processes = [box.start('/bin/echo', str(i)) for i in range(20)]
	for i, process in enumerate(processes):
		out, err = process.communicate(timeout=60)
		assert (process.returncode, out) == (0, f'{i}\n'.encode()), err
	rows = box.record.rows()
	assert sorted(row['id'] for row in rows) == list(range(1, 21))
	assert sorted(row['argv'][1] for row in rows) == sorted(map(str, range(20)))


def test_environment_is_clean(cloche):
	run = cloche.run('/usr/bin/env', env={'LEAKED': '1', 'SSH_AUTH_SOCK': '/x', 'TERM': 'xterm'},
		options=('-e', 'GIVEN=yes', '-e', 'LANG'))
	names = dict(line.split('=', 1) for line in run.lines)
	assert names['GIVEN'] == 'yes' and names['IS_SANDBOX'] == '1' and names['TERM'] == 'dumb'
	assert names['HOME'] == '/root' and names['LANG'] == 'C.UTF-8'
	assert {'/usr/bin', '/bin'} <= set(names['PATH'].split(':'))
	assert not {'LEAKED', 'SSH_AUTH_SOCK', 'CLOCHE_STATE'} & set(names)


def test_environment_of_an_exec_comes_on_top(box):
	run = box.exec('/usr/bin/env', options=('-e', 'A=1', '-e', 'B=two words'))
	assert {'A=1', 'B=two words'} <= set(run.lines)


def test_user_by_name_and_by_number(box):
	assert box.exec('/usr/bin/id', '-u', options=('-u', 'nobody')).out == '65534\n'
	assert box.sh('id -u; id -g', options=('-u', '1000:1001')).out == '1000\n1001\n'
	assert box.exec('/usr/bin/id', options=('-u', 'nosuchuser')).code == 125


def test_shell_string(box):
	done = box.cloche.call('exec', box.id, '--shell', 'echo $((40 + 2)) | cat')
	assert (done.code, done.out) == (0, '42\n')
	row = box.record.row()
	assert row['command'] == 'echo $((40 + 2)) | cat' and 'argv' not in row


def test_detached_exec_goes_on_and_gets_its_row(box):
	done = box.cloche.call('exec', box.id, '--detach', '--', '/bin/sh', '-c', 'sleep 0.5; echo x > /workspace/d; exit 5')
	assert done.code == 0 and done.duration_s < 0.5
	wait_for(lambda: [row for row in box.record.rows() if row['exit_code'] == 5], 'the row of the detached exec')
	assert box.record.file('/workspace/d')['created']


def test_many_execs_at_once_keep_their_outputs_apart(box):
	count = 24
	processes = [box.start('/bin/sh', '-c', f'for i in $(seq 200); do echo {n}; done') for n in range(count)]
	for n, process in enumerate(processes):
		out, _ = process.communicate(timeout=60)
		assert out == f'{n}\n'.encode() * 200


def test_terminal_inside_where_asked(cloche):
	run = cloche.run('/bin/sh', '-c', 'test -t 0 && test -t 1 && echo terminal; tty', options=('-t',))
	assert run.out.split() == ['terminal', '/dev/pts/0']
	run = cloche.run('/bin/sh', '-c', 'test -t 0 || echo none', options=('-T',))
	assert run.out == 'none\n'


def test_terminal_recording_is_an_asciicast(cloche):
	run = cloche.run('/bin/sh', '-c', "printf 'one\\n'; sleep 0.1; printf '\\342\\224\\200 two\\n'", options=('-t',))
	assert run.code == 0
	[cast] = (cloche.state / 'records' / run.record.id / 'casts').glob('*.cast')
	lines = [json.loads(line) for line in cast.read_text().splitlines()]
	assert lines[0]['version'] == 2 and lines[0]['width'] > 0 and lines[0]['height'] > 0
	assert ''.join(text for _, kind, text in lines[1:] if kind == 'o') == 'one\r\n─ two\r\n'
	times = [at for at, _, _ in lines[1:]]
	assert times == sorted(times) and times[-1] >= 0.1


def test_program_is_the_supervisors_child_so_its_status_cannot_be_faked(box):
	run = box.py('''
import os
os.kill(os.getppid(), 9) if os.getppid() > 1 else None
os._exit(11)
''')
	assert run.code == 11


@pytest.mark.parametrize('n', [int(os.environ.get('CLOCHE_TEST_EXECS', '300'))])
def test_supervisor_is_flat_over_many_execs(box, n):
	[supervisor] = box.supervisor()

	def state():
		return len(os.listdir(f'/proc/{supervisor}/fd')), memory_kb(supervisor, 'VmRSS')

	def some(count):
		for _ in range(count):
			assert box.cloche.call('exec', box.id, '--', '/bin/true').code == 0

	some(50)
	fds, rss = state()
	some(n)
	wait_for(lambda: state()[0] <= fds, 'as few descriptors as before')
	if 'ASAN_OPTIONS' not in os.environ:  # which keeps what was freed
		assert state()[1] - rss < 1024
