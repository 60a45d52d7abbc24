# SPDX-License-Identifier: Apache-2.0
"""Layers over a root and over a folder, as reports of other sandboxes have found them wanting; and roots that are made of
links to the host."""
import os

import pytest

from harness import Sandbox, small_root


def listed(box, root):
	[found] = [one for one in box.record.changes() if one['root'] == root]
	return {kind: sorted(change['path'] for change in found[kind]) for kind in ('added', 'removed', 'changed', 'renamed') if found[kind]}


def test_deleted_and_made_again(sandbox, cloche, project):
	"""R48: nothing from below shows through, also after a fork."""
	(project / 'base' / 'b').mkdir(parents=True)
	(project / 'base' / 'a').write_text('a')
	(project / 'base' / 'b' / 'c').write_text('c')
	box = sandbox('--trace', '-m', f'{project}:/workspace:cow')
	done = box.sh('cd /workspace; rm -rf base; mkdir base; echo n > base/n; cp -r base bak; mv bak/n bak/n2; rm -rf base; mv bak base; ls base')
	assert done.out == 'n2\n', done
	want = {'added': ['/workspace/base/n2'], 'removed': ['/workspace/base/a', '/workspace/base/b/c']}
	assert listed(box, '/workspace') == want
	deleted = {event['path'] for event in box.record.events('file.delete')}
	assert {'/workspace/base/a', '/workspace/base/b/c'} <= deleted
	assert cloche.call('suspend', box.id).code == 0
	fork = cloche.call('fork', box.id).out.strip()
	try:
		assert cloche.call('exec', fork, '--', '/bin/ls', '/workspace/base').out == 'n2\n'
		assert listed(Sandbox(cloche, fork), '/workspace') == want
		assert cloche.call('resume', box.id).code == 0
		assert box.sh('ls /workspace/base').out == 'n2\n'
	finally:
		cloche.call('rm', fork)
	assert sorted(os.listdir(project / 'base')) == ['a', 'b']


def test_privileges_of_a_program_end_with_its_change(sandbox, tmp_path):
	"""R52: set-user-id bits go when the program is written to, and none of them gives anything inside."""
	root = small_root(tmp_path / 'root', '/bin/sh', '/bin/cat', '/bin/ls', '/bin/chmod', '/usr/bin/stat', '/bin/grep', '/bin/cp')
	tool = root / 'usr/bin/tool'
	tool.write_bytes((root / 'usr/bin/cat').read_bytes())
	tool.chmod(0o4755)
	box = sandbox('--rootfs', root)
	assert box.sh('cp -p /usr/bin/tool /tmp/s1; stat -c %a /usr/bin/tool /tmp/s1').lines == ['4755', '4755']
	done = box.sh('echo junk >> /usr/bin/tool; stat -c %a /usr/bin/tool; grep NoNewPrivs /proc/self/status')
	assert done.lines[0] == '755' and done.lines[1].split() == ['NoNewPrivs:', '1'], done
	as_user = box.exec('/tmp/s1', '/proc/self/status', options=('-u', '1000:1000'))
	assert [line.split()[1:3] for line in as_user.lines if line.startswith('Uid:')] == [['1000', '1000']], as_user
	assert tool.stat().st_mode & 0o7777 == 0o4755 and not tool.read_bytes().endswith(b'junk\n')


def test_ordinary_work_with_ids(sandbox, project):
	"""R55: own files are one's own, those of the base are nobody's least of all, and the kernel's switches are not inside."""
	box = sandbox('-m', f'{project}:/workspace:cow')
	done = box.sh('id -u; touch /workspace/mine; stat -c "%u %g" /workspace/mine /etc/passwd /proc/1; chown 1000:1000 /workspace/mine; '
		'stat -c "%u %g" /workspace/mine; mkdir -p /tmp/x && chmod 1777 /tmp/x; stat -c %a /tmp/x')
	assert done.lines == ['0', '0 0', '0 0', '0 0', '1000 1000', '1777'], done
	assert box.exec('/usr/bin/id', '-u', options=('-u', 'nobody')).out == '65534\n'
	for text, place in (('1', '/proc/sys/kernel/panic'), ('h', '/proc/sysrq-trigger')):
		refused = box.sh(f'echo {text} > {place}')
		assert refused.code != 0, refused
	assert box.sh('head -c1 /proc/kcore | wc -c; ls -A /sys/firmware 2>/dev/null | wc -l').lines[0] == '0'
	here = os.uname().nodename
	box.sh('hostname tr55')
	assert os.uname().nodename == here
	assert not (project / 'mine').exists()


@pytest.mark.parametrize('place', ['workspace', 'tmp', 'etc', 'etc/ssl', 'proc', 'dev'])
def test_root_with_links_at_mount_points(cloche, tmp_path, project, place):
	"""A35: whatever a root's links lead to, nothing is mounted, made or written out there."""
	root = small_root(tmp_path / 'root', '/bin/sh', '/bin/ls')
	target = tmp_path / 'target'
	target.mkdir(mode=0o777)
	at = root / place
	if at.is_dir():
		for name in os.listdir(at):
			(at / name).unlink()
		at.rmdir()
	at.parent.mkdir(parents=True, exist_ok=True)
	at.symlink_to(os.path.join(*['..'] * 20, str(target).lstrip('/')) if place == 'etc/ssl' else target)
	done = cloche.call('run', '--rootfs', root, '-m', f'{project}:/{place}/in:cow', '-w', '/', '--', '/bin/sh', '-c', 'echo x > /' + place + '/made; ls /')
	assert done.code in (0, 1, 2, 125), done
	assert os.listdir(target) == []
	assert str(target) not in open('/proc/self/mountinfo').read()
	cloche.check_clean()
