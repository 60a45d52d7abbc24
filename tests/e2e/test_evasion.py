# SPDX-License-Identifier: Apache-2.0
"""Ways past the recorder. Each ends recorded right, or refused and the refusal recorded; never unseen."""
import collections
import errno
import os
import pathlib
import signal
import subprocess

import pytest

from harness import wait_for

PRELUDE = '''
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
	ctypes.set_errno(0)
	result = libc.syscall(number, *args)
	return result, ctypes.get_errno()
'''


def refused(record):
	"""call name -> how often the sandbox refused it"""
	return collections.Counter(event['call'] for event in record.events('sandbox.refused'))


def compiled(tmp_path, name, source):
	"""A C program in a folder that can be mounted inside."""
	folder = tmp_path / name
	folder.mkdir()
	(folder / 'main.c').write_text(source)
	subprocess.run(['gcc', '-O2', '-pthread', '-o', folder / 'main', folder / 'main.c'], check=True)
	return folder


@pytest.mark.parametrize('number, args, name', [
	(425, '4, ctypes.create_string_buffer(120)', 'io_uring_setup'),
	(426, '3, 1, 0, 0, None, 0', 'io_uring_enter'),
	(427, '3, 0, None, 0', 'io_uring_register'),
])
def test_ring_of_calls_is_refused(cloche, number, args, name):
	run = cloche.py(PRELUDE + f'print(*call({number}, {args}))')
	assert run.out == f'-1 {errno.ENOSYS}\n'
	assert refused(run.record)[name] == 1
	assert run.record.events('sandbox.refused')[0]['result'] == 'ENOSYS'


def test_ring_from_outside_cannot_be_used(cloche, project):
	"""Even a ring that another process made and handed over takes no call: enter is refused by number."""
	run = cloche.py(PRELUDE + 'print(call(426, 0, 1, 1, 1, None, 0)[1])')
	assert run.out == f'{errno.ENOSYS}\n'


OLD_GATE = '''
import ctypes, mmap, struct
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, prot=7)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
path = b'/workspace/by_old_gate\\0'
page[512:512 + len(path)] = path
# push rbx; mov eax, 8 (creat); mov ebx, path; mov ecx, 0644; int 0x80; pop rbx; ret
code = b'\\x53\\xb8\\x08\\0\\0\\0\\xbb' + struct.pack('<I', at + 512) + b'\\xb9\\xa4\\x01\\0\\0\\xcd\\x80\\x5b\\xc3'
page[0:len(code)] = code
print(ctypes.CFUNCTYPE(ctypes.c_int)(at)())
'''


def test_old_call_gate_makes_nothing_unseen(cloche):
	run = cloche.py(OLD_GATE + "import os\nprint(os.path.exists('/workspace/by_old_gate'))")
	if run.code == 128 + signal.SIGSYS:
		assert run.record.node(argv=['/usr/bin/python3'])['signal'] == signal.SIGSYS
	else:
		assert run.lines[-1] == 'False', run
	assert '/workspace/by_old_gate' not in run.record.files()
	assert sum(refused(run.record).values()) >= 1 or run.code == 128 + signal.SIGSYS


def test_other_call_table_makes_nothing_unseen(cloche):
	run = cloche.py(PRELUDE + '''
print(*call(0x40000000 | 2, b'/workspace/by_x32', os.O_CREAT | os.O_WRONLY, 0o600))
print(os.path.exists('/workspace/by_x32'))
''')
	if run.code == 128 + signal.SIGSYS:
		assert run.record.node(argv=['/usr/bin/python3'])['signal'] == signal.SIGSYS
	else:
		assert run.lines == [f'-1 {errno.ENOSYS}', 'False']
		assert sum(refused(run.record).values()) == 1
	assert '/workspace/by_x32' not in run.record.files()


def test_programs_without_a_name_have_a_marked_path(cloche):
	run = cloche.py('''
import os
image = open('/bin/true', 'rb').read()
memory = os.memfd_create('kthreadd', 0)
os.write(memory, image)
if os.fork() == 0:
	os.execve(memory, ['[kworker/1:0]', 'x'], {})
os.wait()
open('/tmp/gone', 'wb').write(image)
os.chmod('/tmp/gone', 0o755)
file = os.open('/tmp/gone', os.O_RDONLY)
os.unlink('/tmp/gone')
if os.fork() == 0:
	os.execve(file, ['gone'], {})
os.wait()
''')
	assert run.code == 0, run
	[python] = run.record.tree()
	assert [(node['argv'], node['exit_code']) for node in python['children']] == [(['[kworker/1:0]', 'x'], 0), (['gone'], 0)]
	memory, gone = [event for event in run.record.events('process.exec') if event['argv'][0] in ('[kworker/1:0]', 'gone')]
	assert memory['path_state'] == 'memory' and 'kthreadd' in memory['path']
	assert gone['path_state'] == 'deleted' and gone['path'] == '/tmp/gone'


RACE = '''
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char path[] = "/workspace/race/AAAA";
static volatile int run = 1;
static void *flip(void *unused)
{
	volatile char *tail = path + 16;
	while (run) {
		for (int i = 0; i < 4; i++)
			tail[i] = 'B';
		for (int i = 0; i < 4; i++)
			tail[i] = 'A';
	}
	return unused;
}
int main(void)
{
	pthread_t thread;
	int made = 0;
	pthread_create(&thread, NULL, flip, NULL);
	for (int i = 0; i < 20000; i++) {
		int fd = open(path, O_CREAT | O_WRONLY, 0600);
		if (fd >= 0) {
			made++;
			close(fd);
		}
	}
	run = 0;
	pthread_join(thread, NULL);
	printf("%d\\n", made);
	return 0;
}
'''


def test_name_swapped_during_open_is_the_name_that_was_opened(cloche, tmp_path):
	folder = compiled(tmp_path, 'race', RACE)
	run = cloche.sh('mkdir /workspace/race && /p/main && ls /workspace/race', options=('-m', f'{folder}:/p:ro'))
	assert run.code == 0, run
	made, names = int(run.lines[0]), set(run.lines[1:])
	opens = [event['path'] for event in run.record.events('file.open')
		if event['path'].startswith('/workspace/race/') and not event.get('result')]
	assert {os.path.basename(path) for path in opens} == names
	assert len(opens) == made
	assert {os.path.basename(path) for path in run.record.files() if path.startswith('/workspace/race/')} == names


UNLINK_RACE = RACE.replace('int fd = open(path, O_CREAT | O_WRONLY, 0600);', 'int fd = open("/workspace/race/AAAA", O_CREAT | O_WRONLY, 0600);') \
	.replace('close(fd);', 'close(fd); unlink(path);')


def test_name_swapped_during_unlink_is_never_told_wrong(cloche, tmp_path):
	folder = compiled(tmp_path, 'race', UNLINK_RACE)
	run = cloche.sh('mkdir /workspace/race && /p/main && ls /workspace/race', options=('-m', f'{folder}:/p:ro'))
	assert run.code == 0, run
	deleted = {event['path'] for event in run.record.events('file.delete') if not event.get('result')}
	complete = run.record.show()['complete']
	# Only AAAA ever existed: another name in a delete is wrong, unless the record says that it cannot know.
	assert deleted <= {'/workspace/race/AAAA'} or complete is False


FLOOD = '''
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
	time_t end = time(NULL) + 5;
	for (int w = 0; w < 16; w++)
		if (fork() == 0) {
			while (time(NULL) < end)
				close(open("/tmp/n", O_CREAT | O_RDONLY, 0600));
			_exit(0);
		}
	sleep(2);
	int fd = open("/workspace/needle", O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || write(fd, "secret", 6) != 6)
		return 1;
	close(fd);
	if (fork() == 0)
		execl("/bin/echo", "echo", "needle-exec", (char *)NULL);
	while (wait(NULL) > 0)
		;
	return 0;
}
'''


@pytest.mark.parametrize('policy', ['freeze', 'continue'])
def test_needle_in_a_flood_is_found_or_missed_openly(cloche, tmp_path, policy):
	folder = compiled(tmp_path, 'flood', FLOOD)
	run = cloche.run('/p/main', options=('-m', f'{folder}:/p:ro', '--on-loss', policy))
	assert run.out == 'needle-exec\n'
	seen = run.record.files().get('/workspace/needle', {}).get('written', False) \
		and bool(run.record.nodes(argv=['echo', 'needle-exec']))
	if policy == 'freeze':
		assert seen and run.record.show()['complete'] is True
	else:
		assert seen or run.record.show()['complete'] is False


def test_own_mounts_are_refused_and_recorded(cloche):
	run = cloche.sh('''
mkdir -p /workspace/real /tmp/alias
unshare -Urm sh -c 'mount --bind /workspace/real /tmp/alias && echo 1 > /tmp/alias/f' 2>/dev/null || echo refused
mount --bind /workspace/real /tmp/alias 2>/dev/null || echo refused
mount -t tmpfs t /mnt 2>/dev/null || echo refused
''')
	assert run.lines == ['refused'] * 3
	calls = refused(run.record)
	assert calls['unshare'] >= 1 and calls['mount'] + calls['fsopen'] + calls['open_tree'] >= 2
	assert '/workspace/real/f' not in run.record.files() and '/tmp/alias/f' not in run.record.files()


@pytest.mark.parametrize('number, name, args', [
	(428, 'open_tree', "-100, b'/workspace', 1"),
	(429, 'move_mount', "-1, b'', -100, b'/mnt', 4"),
	(430, 'fsopen', "b'tmpfs', 0"),
	(442, 'mount_setattr', "-100, b'/', 0, 0, 0"),
	(155, 'pivot_root', "b'.', b'.'"),
	(165, 'mount', "b'a', b'/tmp', b'tmpfs', 0, 0"),
	(166, 'umount2', "b'/proc', 2"),
	(272, 'unshare', '0x10000000'),
	(308, 'setns', '0, 0'),
])
def test_mount_and_namespace_calls_are_refused_and_recorded(cloche, number, name, args):
	run = cloche.py(PRELUDE + f'print(*call({number}, {args}))')
	result, error = map(int, run.out.split())
	assert result == -1 and error in (errno.EPERM, errno.ENOSYS)
	[event] = run.record.events('sandbox.refused')
	assert (event['call'], event['result']) == (name, errno.errorcode[error])


def test_other_root_files_stand_under_their_path_from_the_sandboxes_root(cloche):
	run = cloche.py('''
import os
os.makedirs('/workspace/jail/etc')
os.chroot('/workspace/jail')
os.chdir('/')
os.close(os.open('/etc/passwd', os.O_CREAT | os.O_WRONLY))
''')
	table = run.record.files()
	if run.code == 0:
		assert table['/workspace/jail/etc/passwd']['created']
		assert not table.get('/etc/passwd', {}).get('written')
	else:
		assert refused(run.record)['chroot'] == 1
		assert not table.get('/etc/passwd', {}).get('written')


OWN_FILTER = '''
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.close(libc.open(b'/workspace/first', os.O_CREAT | os.O_WRONLY, 0o600))
def step(code, yes, no, k):
	return struct.pack('<HBBI', code, yes, no, k)
answer = int(sys.argv[1])
program = step(0x20, 0, 0, 0)
for number in (257, 2, 59, 87, 83):
	program += step(0x15, 0, 1, number) + step(6, 0, 0, 0x00050000 | answer)
program += step(6, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(program)
header = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', len(program) // 8, ctypes.addressof(text)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, header, 0, 0) == 0
print(libc.open(b'/workspace/never_made', os.O_CREAT | os.O_WRONLY, 0o600), libc.syscall(87, b'/workspace/first'),
	libc.syscall(59, b'/bin/never_run', None, None), libc.syscall(83, b'/workspace/no_folder', 0o755), flush=True)
os._exit(0)
'''


@pytest.mark.parametrize('answer', [0, errno.EACCES])
def test_own_filter_that_lies_makes_no_ghosts(cloche, answer):
	run = cloche.py(OWN_FILTER, str(answer))
	assert run.code == 0 and run.out == ('0 0 0 0\n' if answer == 0 else '-1 -1 -1 -1\n')
	table = run.record.files()
	assert not table.get('/workspace/never_made', {}).get('created')
	assert table['/workspace/first']['created'] and not table['/workspace/first']['deleted']
	assert not table.get('/workspace/no_folder', {}).get('created')
	assert len(run.record.nodes()) == 1
	if answer == errno.EACCES:
		for path in ('/workspace/never_made', '/workspace/first', '/bin/never_run'):
			assert not table.get(path, {}).get('denied'), f'{path}: its own filter said no, not the sandbox'


FIGHT = '''
kill -9 -1 2>/dev/null
kill -STOP 1; kill -9 1
ls /sys/fs/bpf /sys/kernel/tracing /sys/kernel/debug 2>/dev/null
(echo 0 > /sys/kernel/tracing/tracing_on) 2>/dev/null && echo wrote
mount -t tracefs t /mnt 2>/dev/null && echo mounted
mount -t bpf b /mnt 2>/dev/null && echo mounted
dmesg 2>/dev/null | head -n 1
for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done | grep -i -E '[s]upervisor|[r]ecorder'
echo still here
'''


def test_nothing_of_the_recorder_is_within_reach(box):
	[supervisor] = box.supervisor()
	before = box.sh('setsid sleep 100 & :')
	assert before.code == 0
	run = box.exec('/bin/bash', '-c', FIGHT)
	assert run.lines == ['still here']
	assert box.supervisor() == [supervisor]
	assert box.sh('echo next').out == 'next\n'
	assert box.record.show()['complete'] is True
	killed = [event for event in before.record.events('process.exit') if event.get('signal') == signal.SIGKILL]
	assert killed, 'kill -1 reached the other exec, and the record says so'


@pytest.mark.parametrize('number, name, args', [
	(321, 'bpf', '5, 0, 0'),
	(298, 'perf_event_open', '0, 0, -1, -1, 0'),
	(175, 'init_module', "0, 0, b''"),
	(313, 'finit_module', "0, b'', 0"),
	(246, 'kexec_load', '0, 0, 0, 0'),
	(103, 'syslog', '3, 0, 0'),
	(300, 'fanotify_init', '0, 0'),
])
def test_calls_against_the_kernel_are_refused_and_recorded(cloche, number, name, args):
	run = cloche.py(PRELUDE + f'print(*call({number}, {args}))')
	result, error = map(int, run.out.split())
	assert result == -1 and error in (errno.EPERM, errno.ENOSYS)
	assert refused(run.record)[name] == 1


def test_stop_loop_against_the_next_exec_hangs_nobody(box):
	"""Root inside stops everything it sees, over and over, while execs come in."""
	looping = box.start('/usr/bin/python3', '-c', '''
import os, signal, time
end = time.time() + 6
while time.time() < end:
	try:
		os.kill(-1, signal.SIGSTOP)
	except OSError:
		pass
''')
	for _ in range(10):
		done = box.cloche.call('exec', box.id, '--timeout', '1s', '--', '/bin/true', limit_s=20)
		assert done.code in (0, 124, 125), done
	assert looping.wait(30) == 0
	assert box.sh('echo back').out == 'back\n'


def test_program_that_enters_by_another_way_is_marked(box):
	[supervisor] = box.supervisor()
	box.sh('setsid sleep 60 & :')
	inside = wait_for(lambda: [pid for pid in box.cloche.processes('sleep') if is_inside(pid, supervisor)], 'the program behind') # it may not have come so far
	done = subprocess.run(['nsenter', '-t', str(inside[0]), '-m', '-p', '--', '/bin/sh', '-c', 'echo in > /workspace/by_nsenter'],
		check=False, capture_output=True)
	assert done.returncode == 0, done.stderr
	def entered():
		return [event for event in box.record.events('process.exec') if event.get('entered')]
	wait_for(entered, 'the event of what came in')
	assert entered()[0]['path'].endswith('sh')


def is_inside(pid, supervisor):
	own = os.readlink('/proc/self/ns/mnt')
	try:
		args = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
		return os.readlink(f'/proc/{pid}/ns/mnt') != own and pid != supervisor and args.startswith(b'sleep\x0060')
	except OSError:
		return False
