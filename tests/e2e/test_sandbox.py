# SPDX-License-Identifier: Apache-2.0
"""The box: its root, mounts, users, limits and life cycle, and that it is never less than asked for."""
import errno
import json
import os
import pathlib
import shutil
import stat
import subprocess
import time

import pytest

from deny import without
import harness
from harness import WORK, wait_for


def test_three_thousand_orphans_leave_no_zombie(box):
	run = box.py('''
import os, time
for i in range(3000):
	if os.fork() == 0:
		if os.fork() == 0:
			os._exit(0)
		os._exit(0)
	os.wait()
time.sleep(0.5)
zombies = 0
for p in os.listdir('/proc'):
	try:
		zombies += p.isdigit() and open(f'/proc/{p}/stat').read().rsplit(')', 1)[1].split()[0] == 'Z'
	except OSError:
		pass
print(zombies)
''')
	assert (run.code, run.out) == (0, '0\n')
	[supervisor] = box.supervisor()
	children = pathlib.Path(f'/proc/{supervisor}/task/{supervisor}/children').read_text().split()
	states = [pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] for pid in children]
	assert 'Z' not in states


def test_folder_deleted_and_made_again_hides_what_lay_below(cloche, project):
	(project / 'base' / 'b').mkdir(parents=True)
	(project / 'base' / 'a').write_text('a')
	(project / 'base' / 'b' / 'c').write_text('c')
	here = str(project)
	run = cloche.sh('''
rm -rf base; mkdir base; echo n > base/n; cp -r base bak; mv bak/n bak/n2; rm -rf base; mv bak base; ls -R base
''', options=('-w', here))
	assert run.out == 'base:\nn2\n'
	[mount] = [part for part in run.record.changes() if part['root'] == here]
	assert {entry['path'] for entry in mount['removed']} == {f'{here}/base/a', f'{here}/base/b/c'}
	assert {entry['path'] for entry in mount['added']} == {f'{here}/base/n2'}
	table = run.record.files()
	assert table[f'{here}/base/a']['deleted'] and table[f'{here}/base/b/c']['deleted']
	assert (project / 'base' / 'a').read_text() == 'a' and not (project / 'base' / 'n2').exists()


def test_set_user_id_and_capabilities_give_nothing(cloche):
	run = cloche.sh('''
grep NoNewPrivs /proc/self/status
cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id
setpriv --reuid 1000 --regid 1000 --clear-groups /tmp/id -u
cp /bin/true /workspace/c
setcap cap_net_raw+ep /workspace/c 2>/dev/null; echo x >> /tmp/id; stat -c %a /tmp/id
''')
	assert run.lines == ['NoNewPrivs:\t1', '1000', '755'], run
	modes = [event for event in run.record.events('file.mode') if event['path'] == '/tmp/id']
	assert modes and modes[0]['mode'] & 0o7777 == 0o4755


# Each building block, and the words that must be in the sentence when it is missing.
BLOCKS = [
	({'clone3': errno.ENOSYS}, 'namespace'),
	({'clone3': errno.EPERM}, 'start'),
	({'fsopen': errno.ENODEV}, 'filesystem'),
	({'mount_setattr': errno.EINVAL}, 'map'),
	({'move_mount': errno.EPERM}, 'attach'),
]


@pytest.mark.parametrize('calls, says', BLOCKS, ids=['-'.join(calls) + str(*calls.values()) for calls, _ in BLOCKS])
def test_missing_block_means_nothing_runs(own_cloche, calls, says):
	process = own_cloche.start('run', '--', '/bin/sh', '-c', 'echo it ran', preexec_fn=without(**calls))
	out, err = process.communicate(timeout=60)
	assert process.returncode == 125
	assert out == b''
	first = err.decode().splitlines()[0]
	assert says in first.lower(), first
	own_cloche.check_clean()


def test_no_rights_for_tracing_is_said_and_never_complete(own_cloche, tmp_path):
	id_file = tmp_path / 'id'
	process = own_cloche.start('run', '--id-file', id_file, '--', '/bin/echo', 'ran', preexec_fn=without(bpf=errno.EPERM))
	out, err = process.communicate(timeout=60)
	if process.returncode == 0:
		done = own_cloche.call('show', id_file.read_text().strip(), '--json')
		assert json.loads(done.out)['complete'] is False
		assert b'not watched' in err or b'tracing is off' in err.lower()
	else:
		assert process.returncode == 125 and out == b''
		assert b'trac' in err or b'bpf' in err.lower()


def test_own_files_have_own_ids_and_the_base_is_roots(cloche):
	run = cloche.sh('''
id -u; touch /workspace/mine; stat -c '%u %g' /workspace/mine /etc/passwd /usr/bin/env /proc/1
chown 1000:1000 /workspace/mine && stat -c '%u %g' /workspace/mine
mkdir -p /tmp/x && chmod 1777 /tmp/x && stat -c %a /tmp/x
''')
	assert run.lines == ['0', '0 0', '0 0', '0 0', '0 0', '1000 1000', '1777']


def test_map_is_a_range_of_its_own(sandbox):
	maps = [sandbox().sh('cat /proc/self/uid_map /proc/self/gid_map').out.split() for _ in range(2)]
	for words in maps:
		assert words[0] == words[3] == '0' and words[2] == words[5] == '65536'
		assert words[1] == words[4] and int(words[1]) >= 65536
	assert abs(int(maps[0][1]) - int(maps[1][1])) >= 65536


def test_kernel_settings_cannot_be_written(cloche):
	run = cloche.sh('''
for f in /proc/sys/kernel/panic /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/vm/drop_caches; do
	(echo 1 > $f) 2>/dev/null && echo "wrote $f"
done
cat /proc/kcore 2>/dev/null | head -c 1; ls /sys/firmware 2>/dev/null
hostname changed 2>/dev/null; ls /proc/1/root >/dev/null 2>&1; echo end
''')
	assert run.lines == ['end']
	assert os.uname().nodename != 'changed'


def test_host_view_has_programs_and_no_secrets(cloche):
	run = cloche.sh('''
ls -d /usr/bin /bin/sh /lib /etc/passwd /root /home /tmp /var /workspace /dev/null /dev/ptmx /dev/shm /proc/self
ls -A /root /workspace; cat /etc/shadow 2>/dev/null; ls /etc/ssh/*key* /etc/ssl/private/* /root/.ssh 2>/dev/null; echo end
''')
	assert run.lines[:13] == ['/bin/sh', '/dev/null', '/dev/ptmx', '/dev/shm', '/etc/passwd', '/home', '/lib',
		'/proc/self', '/root', '/tmp', '/usr/bin', '/var', '/workspace']
	assert run.lines[-1] == 'end' and not [line for line in run.lines if ':' in line and '$' in line]


def test_system_folders_take_writes_that_never_reach_the_host(cloche):
	run = cloche.sh('''
echo mine > /usr/local/bin/cloche-test-tool && echo mine > /etc/cloche-test && rm -f /usr/bin/env && ls /usr/bin/env
''')
	assert 'No such file' in run.err
	assert not pathlib.Path('/etc/cloche-test').exists() and not pathlib.Path('/usr/local/bin/cloche-test-tool').exists()
	assert pathlib.Path('/usr/bin/env').exists()


@pytest.fixture
def folder(project):
	(project / 'keep').write_text('before')
	return project


def test_current_folder_is_copy_on_write_at_its_own_path(cloche, folder):
	run = cloche.sh('pwd; cat keep; echo after > keep; echo new > added; cat keep added', options=('-w', str(folder)))
	assert run.lines == [str(folder), 'beforeafter', 'new']
	assert (folder / 'keep').read_text() == 'before' and not (folder / 'added').exists()


def test_rw_reaches_the_host_as_the_owners(cloche, folder):
	os.chown(folder, 1234, 1234)
	run = cloche.sh('stat -c "%u %g" .; echo new > added; mkdir sub; chmod 4755 added; touch own; chown 7:7 own 2>/dev/null; :',
		options=('--rw', '-w', str(folder)))
	assert run.code == 0, run
	assert run.lines == ['0 0']
	for name in ('added', 'sub'):
		info = (folder / name).stat()
		assert (info.st_uid, info.st_gid) == (1234, 1234), name
	assert not (folder / 'added').stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
	assert not any(path.stat().st_uid == 0 for path in folder.iterdir() if path.name != 'keep')


def test_ro_refuses_writes(cloche, folder):
	run = cloche.sh('cat keep; echo x > keep; echo x > new', options=('--ro', '-w', str(folder)))
	assert run.out == 'before' and run.err.count('Read-only file system') == 2
	assert [event['result'] for event in run.record.events('file.open') if event['path'] == f'{folder}/new'] == ['EROFS']


def test_mount_options(cloche, tmp_path):
	for name in ('a', 'b', 'c'):
		(tmp_path / name).mkdir()
		(tmp_path / name / 'f').write_text(name)
	run = cloche.sh('cat /data/a/f /data/b/f /data/c/f; for m in a b c; do echo w > /data/$m/w; done',
		options=('-m', f'{tmp_path}/a:/data/a:ro', '-m', f'{tmp_path}/b:/data/b:rw', '--mount', f'{tmp_path}/c:/data/c:cow'))
	assert run.out == 'abc'
	assert [(tmp_path / name / 'w').exists() for name in ('a', 'b', 'c')] == [False, True, False]


def test_hidden_files_are_there_denied_and_recorded(cloche, project):
	(project / '.env').write_text('SECRET=1')
	(project / 'deep').mkdir()
	(project / 'deep' / '.env.local').write_text('SECRET=2')
	(project / 'token.txt').write_text('SECRET=3')
	run = cloche.sh('cat .env deep/.env.local token.txt', options=('-w', str(project), '--hide', 'token.txt'))
	assert run.out == '' and run.code == 1
	for name in ('.env', 'deep/.env.local', 'token.txt'):
		assert run.record.file(f'{project}/{name}')['denied'], name
	denied = run.record.show()['denied']
	assert {entry['path'] for entry in denied} >= {f'{project}/{name}' for name in ('.env', 'deep/.env.local', 'token.txt')}


def test_memory_limit_kills_and_is_named(cloche):
	run = cloche.py("x = bytearray(400 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('survived')",
		options=('--memory', '128M'))
	assert run.code == 137 and run.out == ''
	row = run.record.row()
	assert row['oom_killed'] is True and row['signal'] == 9 and row['oom_kills'] == 1
	assert 'memory' in run.err


def test_memory_limit_that_kills_a_child_is_named_too(cloche):
	code = "x = bytearray(400 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1"
	run = cloche.sh(f'{harness.PYTHON} -c "$1"; echo $?', code, options=('--memory', '128M'))
	assert run.code == 0 and run.lines[-1] == '137'
	row = run.record.row()
	assert row['oom_killed'] is False and row['oom_kills'] == 1
	assert '--memory' in run.err and '1 of its processes killed: out of memory' in ' '.join(run.err.split())


def test_process_limit_refuses_and_frees_again(sandbox):
	box = sandbox('--pids', '40')
	run = box.py('''
import os, time
n = 0
try:
	for i in range(200):
		if os.fork() == 0:
			time.sleep(2)
			os._exit(0)
		n += 1
except OSError as error:
	print(error.errno)
print(n < 40)
''')
	assert run.lines == [str(errno.EAGAIN), 'True']
	assert run.record.row()['pids_limited'] is True and '--pids' in run.err
	assert box.sh('true').record.row()['pids_limited'] is False
	wait_for(lambda: box.sh('for i in $(seq 20); do sleep 0 & done; wait; echo ok').out == 'ok\n', 'free places', 20)


def test_cpu_limit_slows(cloche):
	code = 'import time; t = time.process_time(); w = time.monotonic()\nwhile time.process_time() - t < 0.4: pass\n' \
		'print(time.monotonic() - w)'
	run = cloche.py(code, options=('--cpus', '0.25'))
	assert float(run.out) > 1.0
	assert 0 < run.record.row()['cpu_throttled_ms'] < 60000


def test_pause_stops_and_wake_goes_on(box):
	assert box.sh(': > /workspace/ticks; (while :; do echo . >> /workspace/ticks; sleep 0.02; done) & :').code == 0

	def ticks():
		return box.record.cloche.call('exec', box.id, '--', '/usr/bin/wc', '-l', '/workspace/ticks').out.split()[0]

	wait_for(lambda: int(ticks()) > 3, 'ticks')
	assert box.cloche.call('pause', box.id).code == 0
	refused = box.cloche.call('exec', box.id, '--timeout', '2s', '--', '/bin/true', limit_s=15)
	assert refused.code == 125 and 'paused' in refused.err
	assert box.cloche.call('wake', box.id).code == 0
	before = int(ticks())
	wait_for(lambda: int(ticks()) > before, 'ticks after waking')
	kinds = [event['kind'] for event in box.record.events()]
	assert kinds.index('sandbox.paused') < kinds.index('sandbox.woken')


def test_create_exec_stop_rm_leave_a_record(cloche):
	box = cloche.create('--trace', '--name', 'one', '--task', 'try it', '--label', 'team=x')
	assert box.id.startswith('sb_') and len(box.id) == 19
	listed = json.loads(cloche.call('ps', '--json').out)
	assert [entry['id'] for entry in listed if entry['id'] == box.id] == [box.id]
	assert box.sh('echo kept > /workspace/f').code == 0
	assert cloche.call('stop', box.id).code == 0
	after = cloche.call('exec', box.id, '--', '/bin/true')
	assert after.code == 125 and box.id in after.err
	assert cloche.call('rm', box.id).code == 0
	assert box.record.row()['exit_code'] == 0
	kinds = [event['kind'] for event in box.record.events()]
	for kind in ('sandbox.created', 'sandbox.started', 'sandbox.stopped', 'sandbox.removed'):
		assert kind in kinds, kind
	assert cloche.call('verify', box.id).code == 0


def test_stop_ends_every_process(box):
	[supervisor] = box.supervisor()
	box.sh('setsid sleep 777 & setsid sh -c "trap : TERM; sleep 777" & :')
	assert box.cloche.call('stop', box.id).code == 0
	wait_for(lambda: not box.supervisor(), 'the supervisor to end')
	assert not box.cloche.processes('sleep\000777')


def test_rootfs_folder(cloche, tmp_path, rootfs):
	run = cloche.sh('cat /etc/mark; echo changed > /etc/mark; cat /etc/mark', options=('--rootfs', str(rootfs)))
	assert run.out == 'base\nchanged\n', run
	assert (rootfs / 'etc' / 'mark').read_text() == 'base\n'


@pytest.fixture(scope='module')
def rootfs(tmp_path_factory):
	"""The smallest root that runs a shell: the host's own, with what it links to."""
	root = harness.small_root(tmp_path_factory.mktemp('root'), '/bin/sh', '/bin/cat', '/bin/ls', '/bin/true')
	(root / 'etc' / 'mark').write_text('base\n')
	return root


@pytest.mark.parametrize('place', ['proc', 'dev', 'tmp', 'workspace'])
def test_root_whose_mount_points_are_links_never_reaches_outside(own_cloche, tmp_path, rootfs, place):
	base, target = tmp_path / 'base', tmp_path / 'target'
	subprocess.run(['cp', '-a', rootfs, base], check=True)
	target.mkdir()
	shutil.rmtree(base / place)
	os.symlink(target, base / place)
	run = own_cloche.run('/bin/sh', '-c', f'echo x > /{place}/made; echo x > /tmp/made; ls /proc >/dev/null',
		options=('--rootfs', str(base)))
	assert list(target.iterdir()) == []
	assert run.code != 125 or len(run.err.splitlines()[0]) > 10
	assert str(target) not in pathlib.Path('/proc/self/mountinfo').read_text()


def test_root_with_a_climbing_link_never_reaches_outside(own_cloche, tmp_path, rootfs):
	base, target = tmp_path / 'base', tmp_path / 'target'
	subprocess.run(['cp', '-a', rootfs, base], check=True)
	target.mkdir()
	os.symlink('../../../../../../../../..' + str(target), base / 'etc' / 'ssl')
	run = own_cloche.run('/bin/sh', '-c', 'echo x > /etc/ssl/made', options=('--rootfs', str(base)))
	assert list(target.iterdir()) == []
	assert run.code in (0, 1, 2)


def test_two_sandboxes_do_not_see_each_other(sandbox):
	one, two = sandbox(), sandbox()
	one.sh('echo private > /workspace/f; echo t > /tmp/t; setsid sleep 50 & :')
	run = two.sh('ls /workspace /tmp; ls /proc | grep -c "^[0-9]"; cat /proc/*/cmdline | tr "\\0" " " | grep -c "sleep [5]0"')
	assert 'f' not in run.lines and run.lines[-1] == '0'


def test_only_loopback_without_a_network(cloche):
	run = cloche.py('''
import os, socket
print(sorted(os.listdir('/sys/class/net')) if os.path.isdir('/sys/class/net') else
	[line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line])
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
print('own loopback')
try:
	socket.create_connection(('192.0.2.1', 80), 2)
	print('out')
except OSError as error:
	print(error.errno)
''', options=('--net', 'none'))
	assert run.lines == ["['lo']", 'own loopback', str(errno.ENETUNREACH)]


def test_create_is_quick_and_rm_too(cloche):
	begin = time.monotonic()
	box = cloche.create()
	assert box.exec('/bin/true').code == 0
	assert box.remove().code == 0
	assert time.monotonic() - begin < 2


def test_start_folder_is_work_where_nothing_else_is_said(box):
	assert box.exec('/bin/pwd').out == WORK + '\n'
