# SPDX-License-Identifier: Apache-2.0
"""Ways out or up. Each must be refused; where the sandbox itself refused, the refusal is recorded."""
import errno
import os
import pathlib
import pty
import select
import socket
import time

import pytest

from harness import PYTHON
from test_evasion import PRELUDE, refused

FAMILIES = [
	(40, 1, 0, 'vsock'), (17, 3, 768, 'packet'), (2, 3, 1, 'raw icmp'), (2, 3, 255, 'raw'), (38, 5, 0, 'alg'),
	(30, 5, 0, 'tipc'), (44, 3, 0, 'xdp'), (15, 3, 2, 'key'), (29, 3, 1, 'can'), (31, 1, 3, 'bluetooth'), (21, 5, 0, 'rds'),
	(27, 1, 0, 'ib'), (2, 1, 132, 'sctp'), (10, 3, 58, 'raw icmp6'), (43, 1, 0, 'smc'), (16, 3, 12, 'netfilter'),
	(16, 3, 9, 'audit'), (16, 3, 15, 'kobject'), (16, 3, 16, 'generic'),
]


@pytest.mark.parametrize('family, kind, protocol', [row[:3] for row in FAMILIES], ids=[row[3] for row in FAMILIES])
def test_socket_family_is_refused(cloche, family, kind, protocol):
	run = cloche.py(f'''
import socket
try:
	socket.socket({family}, {kind}, {protocol})
	print('open')
except OSError as error:
	print(error.errno)
''')
	assert run.out.strip() in [str(number) for number in (errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES,
		errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT, errno.EINVAL)]
	assert refused(run.record)['socket'] == 1 or run.out.strip() == str(errno.EPROTONOSUPPORT)


def test_own_addresses_can_be_read(cloche):
	run = cloche.py('import socket; socket.socket(16, 3, 0); print(socket.if_nameindex())')
	assert run.out == "[(1, 'lo')]\n"


def test_abstract_sockets_of_the_host_are_out_of_reach(cloche):
	probe = socket.socket(socket.AF_UNIX)
	name = f'\0cloche-probe-{os.getpid()}'
	probe.bind(name)
	probe.listen()
	try:
		run = cloche.py('''
import socket, sys
try:
	socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[1])
	print('reached')
except OSError as error:
	print(error.errno)
a = socket.socket(socket.AF_UNIX)
a.bind('\\0mine')
a.listen()
socket.socket(socket.AF_UNIX).connect('\\0mine')
print('own ok')
''', name[1:])
	finally:
		probe.close()
	assert run.lines == [str(errno.ECONNREFUSED), 'own ok']


def test_no_socket_of_host_or_product_lies_inside(cloche):
	run = cloche.sh('find / -xdev -type s 2>/dev/null; find /run /workspace /tmp -type s 2>/dev/null; cat /proc/net/unix | tail -n +2')
	assert run.out == ''


def test_namespaces_of_process_one_cannot_be_entered(cloche):
	run = cloche.sh('''
for n in net pid ipc uts user cgroup; do nsenter --$n=/proc/1/ns/$n true 2>/dev/null && echo "in $n"; done
nsenter --mount=/proc/1/ns/mnt true 2>/dev/null && echo in mount
unshare -Urnm true 2>/dev/null && echo nested
umount -l /proc 2>/dev/null && echo unmounted
mount -o remount,rw /proc/sys 2>/dev/null && echo remounted
echo end
''')
	assert run.lines == ['end']
	assert refused(run.record)['unshare'] >= 1


def test_mount_table_shows_nothing_of_the_host(cloche):
	run = cloche.sh('cat /proc/self/mountinfo /proc/mounts')
	for word in (str(cloche.state), '/var/lib/cloche', 'upperdir=/', cloche.state.parent.name):
		assert word not in run.out, word


def test_devices_cannot_be_made_or_opened(cloche):
	run = cloche.sh('''
mknod /tmp/sda b 8 0 2>/dev/null && head -c 1 /tmp/sda && echo opened
mknod /tmp/mem c 1 1 2>/dev/null && head -c 1 /tmp/mem && echo opened
mknod /workspace/whiteout c 0 0 2>/dev/null && echo made
ls /dev/vd* /dev/sd* /dev/fuse /dev/kvm /dev/vhost* /dev/net/tun /dev/mem /dev/kmsg 2>/dev/null
echo end
''')
	assert run.lines == ['end']


def test_fake_whiteout_hides_no_file_of_the_host_from_the_changes(cloche, project):
	(project / 'f').write_text('1')
	run = cloche.sh('rm f; mknod f c 0 0; ls', options=('-w', str(project)))
	[mount] = [part for part in run.record.changes() if part['root'] == str(project)]
	assert [entry['path'] for entry in mount['removed']] == [f'{project}/f']
	assert (project / 'f').read_text() == '1'


def test_replaced_null_device_is_never_written_through(box):
	box.sh('rm -f /dev/null; ln -s /proc/sys/kernel/core_pattern /dev/null; ln -sf /etc/made-by-null /dev/console')
	core = pathlib.Path('/proc/sys/kernel/core_pattern').read_text()
	for _ in range(2):
		assert box.exec('/bin/echo', 'next').out == 'next\n'
	assert box.exec('/bin/sh', '-c', 'echo t', options=('-t',)).out.strip() == 't'
	assert pathlib.Path('/proc/sys/kernel/core_pattern').read_text() == core
	assert not pathlib.Path('/etc/made-by-null').exists()


# name, number, the answers a program finds ordinary
RARE = [
	('ptrace', 101, {0, errno.EPERM, errno.ESRCH, errno.EIO}), ('syslog', 103, {errno.EPERM}),
	('pivot_root', 155, {errno.EPERM}), ('mount', 165, {errno.EPERM}), ('umount2', 166, {errno.EPERM}),
	('swapon', 167, {errno.EPERM}), ('reboot', 169, {errno.EPERM}), ('iopl', 172, {errno.EPERM}), ('ioperm', 173, {errno.EPERM}),
	('init_module', 175, {errno.EPERM}), ('delete_module', 176, {errno.EPERM}), ('quotactl', 179, {errno.EPERM}),
	('lookup_dcookie', 212, {errno.EPERM, errno.ENOSYS}), ('kexec_load', 246, {errno.EPERM}), ('add_key', 248, {errno.EPERM, errno.ENOSYS}),
	('request_key', 249, {errno.EPERM, errno.ENOSYS}), ('keyctl', 250, {errno.EPERM, errno.ENOSYS}), ('unshare', 272, {errno.EPERM}),
	('move_pages', 279, {errno.EPERM, errno.ENOSYS}), ('perf_event_open', 298, {errno.EPERM}), ('fanotify_init', 300, {errno.EPERM}),
	('name_to_handle_at', 303, {errno.EPERM, errno.ENOSYS, errno.EFAULT}), ('open_by_handle_at', 304, {errno.EPERM}),
	('clock_adjtime', 305, {errno.EPERM}), ('setns', 308, {errno.EPERM}), ('finit_module', 313, {errno.EPERM}),
	('kexec_file_load', 320, {errno.EPERM}), ('bpf', 321, {errno.EPERM}), ('userfaultfd', 323, {errno.EPERM, errno.ENOSYS}),
	('io_uring_setup', 425, {errno.ENOSYS}), ('open_tree', 428, {errno.EPERM, errno.ENOSYS}), ('move_mount', 429, {errno.EPERM, errno.ENOSYS}),
	('fsopen', 430, {errno.EPERM, errno.ENOSYS}), ('fsconfig', 431, {errno.EPERM, errno.ENOSYS}), ('fsmount', 432, {errno.EPERM, errno.ENOSYS}),
	('fspick', 433, {errno.EPERM, errno.ENOSYS}), ('clone3', 435, {errno.ENOSYS}), ('mount_setattr', 442, {errno.EPERM, errno.ENOSYS}),
	('quotactl_fd', 443, {errno.EPERM, errno.ENOSYS}), ('settimeofday', 164, {errno.EPERM}), ('clock_settime', 227, {errno.EPERM}),
	('acct', 163, {errno.EPERM}), ('nfsservctl', 180, {errno.ENOSYS, errno.EPERM}), ('uselib', 134, {errno.ENOSYS, errno.EPERM}),
	('vhangup', 153, {errno.EPERM, errno.ENOSYS}), ('no such call', 999, {errno.ENOSYS}),
]


def test_rare_calls_answer_as_a_kernel_does(cloche):
	"""Each is tried with arguments that mean nothing, in a child; none may succeed, none may kill the child."""
	run = cloche.py(PRELUDE + '''
import sys
for number in map(int, sys.argv[1:]):
	if os.fork() == 0:
		result, error = call(number, -1, 0, 0, 0, 0, 0)
		print(number, result, error, flush=True)
		os._exit(0)
	status = os.wait()[1]
	if status:
		print(number, 'status', status)
''', *[str(row[1]) for row in RARE])
	answers = {int(line.split()[0]): line.split()[1:] for line in run.lines}
	wrong = {name: answers.get(number) for name, number, good in RARE
		if answers.get(number, ['', ''])[0] not in ('-1',) or int(answers[number][1]) not in good}
	assert not wrong
	calls = refused(run.record)
	for name in ('mount', 'bpf', 'kexec_load', 'setns', 'io_uring_setup', 'perf_event_open'):
		assert calls[name] == 1, name


def test_ordinary_calls_still_work(cloche):
	run = cloche.py(PRELUDE + '''
import os, select, signal, tempfile
print(call(135, 0xffffffff)[0] >= 0)
epoll = select.epoll()
r, w = os.pipe2(os.O_CLOEXEC)
epoll.register(r)
os.eventfd(0)
os.memfd_create('m')
print(os.stat('/etc/passwd').st_size > 0, os.sched_getaffinity(0) != set(), os.getrandom(4) != b'')
os.close(os.pidfd_open(os.getpid()))
print(os.waitstatus_to_exitcode(os.wait4(os.posix_spawn('/bin/true', ['true'], {}), 0)[1]))
''')
	assert run.lines == ['True', 'True True True', '0'], run


def test_only_own_processes_are_visible(box):
	run = box.py('''
import os
n = 0
for p in range(1, 70000):
	try:
		os.kill(p, 0)
		n += 1
	except OSError:
		pass
print(n, [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())])
''')
	assert run.out == '2 []\n'


def test_process_one_gives_nothing_away(cloche):
	run = cloche.sh('''
tr '\\0' '\\n' < /proc/1/environ 2>/dev/null | cut -d= -f1
for fd in /proc/1/fd/*; do [ "$(stat -Lc %d:%i $fd)" = "$(stat -Lc %d:%i /dev/null)" ] || echo "$fd is not our own null"; done
readlink /proc/1/root /proc/1/cwd | grep -v '^/$'
echo end
''', env={'CLOCHE_KEY': 'clo_secret'})
	assert run.lines == ['end'], run


WATCHER = '''
import os, sys, time
seen = set()
end = time.time() + float(sys.argv[1])
here = os.stat('/')
def tell(*words):
	if words not in seen:
		seen.add(words)
		print(*words, flush=True)
def is_own(path, file):
	try:
		return os.path.samestat(os.stat(path), os.fstat(file))
	except OSError:
		return False
print('watching', flush=True)
while time.time() < end:
	for p in os.listdir('/proc'):
		if not p.isdigit() or int(p) == os.getpid():
			continue
		file = None
		try:
			exe = os.readlink(f'/proc/{p}/exe')
			file = os.open(f'/proc/{p}/exe', os.O_RDONLY)
			if not is_own(exe, file):
				os.close(os.open(f'/proc/self/fd/{file}', os.O_WRONLY))
				tell('WRITABLE', exe)
		except OSError:
			pass
		finally:
			if file is not None:
				os.close(file)
		try:
			root = os.stat(f'/proc/{p}/root')
			if (root.st_ino, root.st_dev) != (here.st_ino, here.st_dev):
				tell('OTHER ROOT', p)
		except OSError:
			pass
		try:
			with open(f'/proc/{p}/mem', 'rb'):
				maps = open(f'/proc/{p}/maps').read()
				if 'supervisor' in maps:
					tell('SUPERVISOR MEMORY', p)
		except OSError:
			pass
		try:
			for f in os.listdir(f'/proc/{p}/fd'):
				target = os.readlink(f'/proc/{p}/fd/{f}')
				if target.startswith('/') and not os.path.lexists(target.split(' (')[0]):
					tell('FOREIGN FD', target)
		except OSError:
			pass
'''


def test_helper_that_comes_in_for_an_exec_cannot_be_caught(box):
	watcher = box.start(PYTHON, '-c', WATCHER, '8')
	assert watcher.stdout.readline() == b'watching\n'
	n, end = 0, time.monotonic() + 7
	while time.monotonic() < end:
		assert box.cloche.call('exec', box.id, '--', '/bin/true').code == 0
		n += 1
	out, err = watcher.communicate(timeout=30)
	assert n > 50
	# The command's own program lies in the sandbox's layer: once it has ended, it may be written there.
	told = [line for line in out.splitlines() if line != b'WRITABLE /usr/bin/true']
	assert (watcher.returncode, told) == (0, []), err


RUNNING_RIGHTS = {'chown': 0, 'dac_override': 1, 'dac_read_search': 2, 'fowner': 3, 'fsetid': 4, 'kill': 5, 'sys_chroot': 18,
	'sys_ptrace': 19, 'sys_admin': 21, 'sys_nice': 23, 'sys_resource': 24, 'perfmon': 38, 'bpf': 39}


# The gateway is started by it, and becomes another user.
NETWORK_RIGHTS = {'setgid': 6, 'setuid': 7}


@pytest.mark.parametrize('net, more', [('none', {}), ('open', NETWORK_RIGHTS)])
def test_supervisor_keeps_only_the_rights_that_running_takes(sandbox, net, more):
	box = sandbox('--trace', '--net', net)
	assert box.sh('true').code == 0  # what makes the network has more rights and ends before the first exec
	[supervisor] = box.supervisor()
	allowed = sum(1 << bit for bit in [*RUNNING_RIGHTS.values(), *more.values()])
	for task in pathlib.Path(f'/proc/{supervisor}/task').iterdir():
		status = dict(line.split(':\t', 1) for line in (task / 'status').read_text().splitlines() if ':\t' in line)
		for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
			assert int(status[name], 16) & ~allowed == 0, (task, name, status[name])
	assert box.sh('echo x > /etc/after && id -u').lines == ['0']


def test_record_is_not_visible_inside(cloche):
	run = cloche.sh('''
grep -rls 'process.exec' / --include='*.jsonl' --include='*.db' --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr 2>/dev/null
df 2>/dev/null | grep -i cloche
mkdir -p /var/lib/cloche/records && echo '{"kind":"process.exec","argv":["fake"]}' >> /var/lib/cloche/records/log.jsonl
echo '{"kind":"trace.dropped","count":7}' >&2
[ -c /dev/kmsg ] && echo kmsg
echo end
''')
	assert run.lines == ['end']
	assert run.record.file('/var/lib/cloche/records/log.jsonl')['written']
	assert not run.record.events('trace.dropped')
	assert run.record.row()['stderr'] == '{"kind":"trace.dropped","count":7}\n'
	assert ['fake'] not in [node['argv'] for node in run.record.nodes()]
	assert cloche.call('verify', run.record.id).code == 0


TERMINAL = '''
import fcntl, sys, termios
for c in b'id > /tmp/owned-by-terminal\\n':
	try:
		fcntl.ioctl(0, termios.TIOCSTI, bytes([c]))
	except OSError as error:
		print('TIOCSTI', error.errno)
		break
try:
	fcntl.ioctl(0, 0x541C, b'\\x03')
except OSError as error:
	print('TIOCLINUX', error.errno)
sys.stdout.write('\\x1b]0;title\\x07\\x1b[2Jdrawn\\n')
'''


def test_terminal_tricks_stay_inside_and_are_escaped_in_views(cloche, tmp_path):
	"""Run with a terminal of our own as the human's: nothing may be typed into it."""
	master, slave = pty.openpty()
	process = cloche.start('run', '--id-file', tmp_path / 'id', '-w', '/workspace', '--', PYTHON, '-c', TERMINAL,
		stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
	out = b''
	while process.poll() is None:
		if select.select([master], [], [], 0.1)[0]:
			out += os.read(master, 65536)
	assert process.returncode == 0, out
	os.close(slave)
	os.close(master)
	assert not pathlib.Path('/tmp/owned-by-terminal').exists()
	assert b'TIOCLINUX' in out
	sandbox = (tmp_path / 'id').read_text().strip()
	for verb in ('log', 'commands', 'timeline', 'show'):
		shown = cloche.call(verb, sandbox)
		assert shown.code == 0 and b'\x1b' not in shown.raw_out and b'\x07' not in shown.raw_out, verb


def test_hostile_names_cannot_forge_a_line_or_drive_a_terminal(cloche):
	run = cloche.py('''
import os, subprocess
for name in ('<img src=x>', 'a\\033]0;pwn\\007\\033[2J', 'x\\r\\n2026-01-01 fake row'):
	open('/workspace/' + name, 'w').close()
subprocess.run(['/bin/echo', '\\033]52;c;ZXZpbA==\\007', '=HYPERLINK("x")', 'two\\nlines'])
''')
	for verb in ('files', 'tree', 'events', 'commands', 'log', 'timeline', 'show'):
		shown = cloche.call(verb, run.record.id)
		assert shown.code == 0, shown
		for byte in b'\x1b\x07\r':
			assert byte not in shown.raw_out, (verb, byte)
		assert '\n2026-01-01 fake row' not in shown.out
