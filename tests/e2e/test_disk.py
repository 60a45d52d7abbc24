# SPDX-License-Identifier: Apache-2.0
"""--disk: what a sandbox may keep in the state folder, by project quotas of a filesystem made for the test."""
import ctypes
import fcntl
import os
import struct
import subprocess

import pytest

import harness

FSGETXATTR, FSSETXATTR, GETFLAGS, SETFLAGS = 0x801c581f, 0x401c5820, 0x80086601, 0x40086602
PROJINHERIT_FLAG = 0x20000000
QUOTACTL_FD, Q_GETQUOTA, PRJQUOTA = 443, 0x800007, 2
DENIED = ('Disk quota exceeded', 'No space left on device')
WRITE = 'dd if=/dev/zero of="$1" bs=64k count="$2" 2>&1'


@pytest.fixture
def quota_disk(tmp_path, state, run_dir):
	"""The program with a state on ext4 with project quotas."""
	image, mount, project = tmp_path / 'disk.img', tmp_path / 'disk', tmp_path / 'project'
	for folder in (mount, project):
		folder.mkdir()
	with open(image, 'wb') as file:
		file.truncate(200 << 20)
	made = subprocess.run(['mke2fs', '-q', '-F', '-t', 'ext4', '-O', 'project,quota', image], capture_output=True, text=True,
		check=False)
	if made.returncode:
		pytest.skip(f'mke2fs makes no ext4 with project quotas: {made.stderr.strip()}')
	mounted = subprocess.run(['mount', '-o', 'loop,prjquota', image, mount], capture_output=True, text=True, check=False)
	if mounted.returncode:
		pytest.skip('this host mounts no ext4 with project quotas (a kernel without QFMT_V2, or no loop devices)')
	cloche = harness.Cloche(mount / 'state', run_dir, project)
	yield cloche
	cloche.check_clean()
	harness.unmount_disk(mount)


def project_of(path):
	fd = os.open(path, os.O_RDONLY)
	try:
		return struct.unpack('5I8x', fcntl.ioctl(fd, FSGETXATTR, bytes(28)))[3]
	finally:
		os.close(fd)


def limit_of(cloche, project):
	"""In KiB; 0: none."""
	libc, block = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(72)
	fd = os.open(cloche.state, os.O_RDONLY)
	try:
		if libc.syscall(QUOTACTL_FD, fd, Q_GETQUOTA << 8 | PRJQUOTA, project, block):
			raise OSError(ctypes.get_errno(), 'quotactl_fd')
	finally:
		os.close(fd)
	return struct.unpack('Q', block.raw[:8])[0]


def test_disk_limit_holds_for_all_it_keeps_and_for_nobody_else(quota_disk):
	cloche, here = quota_disk, quota_disk.cwd
	box = cloche.create('--trace', '--disk', '10M', '-m', f'{here}:{here}:cow')
	other = cloche.create('--trace')
	try:
		limits(cloche, here, box, other)
	finally:
		box.remove()
		other.remove()


def limits(cloche, here, box, other):
	project = project_of(cloche.state / 'sandboxes' / box.id / 'root.upper')
	assert project == project_of(cloche.state / 'changes' / box.id / '0' / 'upper') > 0
	assert limit_of(cloche, project) == 10 << 10
	assert project_of(cloche.state / 'sandboxes' / other.id / 'root.upper') == 0
	# 3 MiB in each layer go in, and no more than the fourth.
	for place in ('/root/a', '/usr/a', f'{here}/a'):
		run = box.sh(WRITE, place, '48')
		assert run.code == 0, run
		assert run.record.row()['disk_full'] is False
	run = box.sh(WRITE, '/opt/a', '48')
	assert run.code == 1 and any(words in run.out for words in DENIED), run
	assert run.record.row()['disk_full'] is True and '--disk' in run.err
	held = box.record.json('stats')[-1]['disk_bytes']
	assert (10 << 20) - (64 << 10) <= held <= 10 << 20
	assert box.record.show()['commands']['disk_full'] == 1
	run = other.sh(WRITE, '/root/a', '320')
	assert run.code == 0 and run.record.row()['disk_full'] is False, run
	assert other.record.json('stats')[-1]['disk_bytes'] is None
	run = box.sh(f'rm /usr/a /opt/a; {WRITE}', '/root/b', '32')
	assert run.code == 0 and run.record.row()['disk_full'] is False, run
	# Root inside belongs to its project for good.
	run = box.py(f"""
import errno, fcntl, os, struct
fd = os.open('/root/a', os.O_RDONLY)
try:
	fcntl.ioctl(fd, {FSSETXATTR}, struct.pack('5I8x', 0, 0, 0, 0, 0))
	print('changed')
except OSError as error:
	print(errno.errorcode[error.errno])
fd = os.open('/root', os.O_RDONLY)
try:
	flags = struct.unpack('l', fcntl.ioctl(fd, {GETFLAGS}, bytes(8)))[0]
	fcntl.ioctl(fd, {SETFLAGS}, struct.pack('l', flags & ~{PROJINHERIT_FLAG}))
except OSError as error:
	pass
""")
	assert 'changed' not in run.out, run
	assert box.sh(WRITE, '/root/c', '160').code == 1
	# What is gone on with goes on in its project.
	assert box.sh('rm /root/c').code == 0
	assert cloche.call('suspend', box.id).code == 0 and limit_of(cloche, project) == 0
	assert cloche.call('resume', box.id).code == 0 and limit_of(cloche, project) == 10 << 10
	run = box.sh(WRITE, '/root/c', '160')
	assert run.code == 1 and run.record.row()['disk_full'] is True, run
	box.remove()
	assert (cloche.state / 'changes' / box.id / '0' / 'upper' / 'a').stat().st_size == 3 << 20
	assert limit_of(cloche, project) == 0


def test_files_count_too_and_a_killed_supervisor_leaves_no_limit(quota_disk):
	box = quota_disk.create('--disk', '1M')
	run = box.py("""
for i in range(3000):
	try:
		open(f'/root/{i}', 'w').close()
	except OSError as error:
		print(i < 1280, error.strerror)
		break
""")
	assert run.out.startswith('True ') and run.out[5:].strip() in DENIED, run
	assert run.record.row()['disk_full'] is True
	project = project_of(quota_disk.state / 'sandboxes' / box.id / 'root.upper')
	assert limit_of(quota_disk, project) == 1 << 10
	harness.kill_and_wait(box.supervisor()[0])
	assert quota_disk.call('gc').code == 0
	assert limit_of(quota_disk, project) == 0
	again = quota_disk.run('/bin/true', options=('--disk', '1M'))
	assert again.code == 0, again


def test_disk_limit_is_refused_where_there_are_no_quotas(cloche):
	[line] = [line for line in cloche.call('doctor').out.splitlines() if 'disk limit' in line]
	if line.startswith('on'):
		pytest.skip('the state folder of the tests has project quotas')
	assert 'prjquota' in line
	run = cloche.run('/bin/true', options=('--disk', '1G'))
	assert run.code == 125 and 'prjquota' in run.err and run.record.id is None
	assert cloche.call('run', '--disk', '10K', '--', 'true').code == 125
