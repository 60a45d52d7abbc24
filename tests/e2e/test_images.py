# SPDX-License-Identifier: Apache-2.0
"""--image: a root made of an OCI layout, an archive, a plain tar or what a registry has."""
import contextlib
import fcntl
import glob
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tarfile
import tempfile
import termios
import time

import pytest

from harness import kill_and_wait, local_deb, small_root, wait_for
from images import ARCH, Layout, big_tar, docker_archive, docker_folder, entry, folder, hard_link, link, members_alone, sha, tar, tar_of

PROGRAMS = [f'/usr/bin/{name}' for name in ('sh', 'cat', 'ls', 'find', 'stat', 'env', 'id', 'readlink', 'touch', 'rm', 'mkdir')]
OLD = {'CLOCHE_OLD_OVERLAY': '1'}


@pytest.fixture(scope='module')
def base(tmp_path_factory):
	"""The tar of a root that runs a shell and a few programs."""
	root = tmp_path_factory.mktemp('base') / 'root'
	root.mkdir()
	small_root(root, *PROGRAMS)
	(root / 'etc' / 'passwd').write_text('root:x:0:0:root:/root:/bin/sh\nana:x:1234:1235::/home/ana:/bin/sh\n')
	(root / 'etc' / 'group').write_text('root:x:0:\nana:x:1235:\ncrew:x:2000:ana\n')
	return tar_of(root)


@pytest.fixture
def layout(tmp_path):
	return Layout(tmp_path / 'layout')


def layers(cloche):
	found = cloche.state / 'layers'
	return sorted(p.name for p in found.iterdir() if p.name not in ('base', 'lock')) if found.is_dir() else []


def spec_of(run):
	return json.loads(run.record.cloche.call('inspect', run.record.id).out)['meta']['spec']


def changed_paths(run):
	"""(path, what) of all that the sandbox changed."""
	kinds = ('added', 'removed', 'changed')
	return {(change['path'], kind) for part in run.record.changes() for kind in kinds for change in part[kind]}


def walk(top, shift=0):
	"""path -> what can be told of it, device nodes left out."""
	found = {}
	for where, names, files in os.walk(top):
		for name in names + files + (['.'] if where == str(top) else []):
			path = os.path.join(where, name)
			st = os.lstat(path)
			if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
				continue
			is_file = stat.S_ISREG(st.st_mode)
			found[os.path.relpath(path, top)] = (stat.filemode(st.st_mode), st.st_uid - shift, st.st_gid - shift,
				st.st_size if is_file else None, st.st_nlink if is_file else None, int(st.st_mtime),
				os.readlink(path) if stat.S_ISLNK(st.st_mode) else None,
				sha(pathlib.Path(path).read_bytes()) if is_file else None)
	return found


def test_debootstrap_tar(own_cloche, tmp_path, debian_root):
	file = tmp_path / 'debian.tar'
	subprocess.run(['tar', '-C', debian_root, '--numeric-owner', '-cf', file, '.'], check=True)
	shutil.move(local_deb(tmp_path), own_cloche.cwd / 'tiny-tool.deb')
	run = own_cloche.sh('''
set -e
cat /etc/debian_version | cut -c1-2; id -u; python3 -c 'print(6 * 7)'
apt-get install -y -q ./tiny-tool.deb >apt.log 2>&1 || { cat apt.log; exit 1; }
tiny-tool; printf 'all:\\n\\t@echo made\\n' > Makefile; make; rm /etc/motd
tail -1 /etc/ssl/certs/ca-certificates.crt; cat /etc/resolv.conf; echo $SSL_CERT_FILE
''', options=('--image', f'./../{file.name}', '-w', str(own_cloche.cwd)))
	assert run.lines == ['12', '0', '42', 'configured', 'made', '-----END CERTIFICATE-----', 'nameserver 10.0.0.53',
		'/etc/ssl/certs/ca-certificates.crt'], run
	assert run.record.show()['complete'] is True
	changed = changed_paths(run)
	assert {('/etc/tiny-tool.conf', 'added'), ('/etc/motd', 'removed')} <= changed
	[name] = layers(own_cloche)
	assert name == 'sha256-' + sha(file.read_bytes())[7:]
	fs, about = own_cloche.state / 'layers' / name / 'fs', json.loads((own_cloche.state / 'layers' / name / 'layer.json').read_text())
	assert walk(fs, about['base']) == walk(debian_root)
	# Known by now: no more is read than its name.
	assert own_cloche.run('/bin/true', options=('--image', str(file))).code == 0
	assert layers(own_cloche) == [name]


def readers_of(file):
	"""The processes that have this file open."""
	def is_open(fd):
		with contextlib.suppress(OSError): # gone since it was listed
			return os.readlink(fd) == str(file)
	return {int(fd.split('/')[2]) for fd in glob.glob('/proc/[0-9]*/fd/*') if is_open(fd)}


def terminal_words(cloche, image, *options):
	"""What stderr shows where it is a terminal, with an image whose unpacking stands still for a while, as a slow disk makes it."""
	ours, theirs = pty.openpty()
	process = cloche.start('run', *options, '--image', str(image), '--no-summary', '--', '/bin/sh', '-c', ':', stderr=theirs)
	os.close(theirs)
	readers = wait_for(lambda: readers_of(image), 'a reader of the image')
	for pid in readers:
		os.kill(pid, signal.SIGSTOP)
	time.sleep(0.6)
	for pid in readers:
		os.kill(pid, signal.SIGCONT)
	words = b''
	while True:
		try:
			more = os.read(ours, 4096)
		except OSError:
			break
		words += more
	os.close(ours)
	process.communicate(timeout=60)
	return process.returncode, words.decode()


def test_progress_is_shown_on_a_terminal_only_and_not_when_quiet(own_cloche, tmp_path, base):
	code, words = terminal_words(own_cloche, big_tar(tmp_path / 'one.tar', base))
	assert code == 0 and 'unpacking' in words and ' MB of ' in words, words
	assert terminal_words(own_cloche, big_tar(tmp_path / 'two.tar', base, 161), '--quiet') == (0, '')


LOWER = [folder('data'), entry('data/kept', b'kept'), entry('data/gone', b'x'), folder('data/dir'), entry('data/dir/old', b'old'),
	folder('data/opaque'), entry('data/opaque/old', b'old'), folder('data/became-file'), entry('data/became-file/x', b''),
	entry('data/became-dir', b'file'), folder('data/again'), entry('data/again/old', b'old'), folder('data/merged'),
	entry('data/merged/old', b'old'), entry('data/two-names', b'same'), hard_link('data/other-name', 'data/two-names')]
UPPER = [folder('data'), entry('data/.wh.gone', b''), entry('data/.wh.dir', b''), folder('data/opaque'),
	entry('data/opaque/.wh..wh..opq', b''), entry('data/opaque/new', b'new'), entry('data/became-file', b'now'),
	folder('data/became-dir'), entry('data/became-dir/new', b''), entry('data/.wh.again', b''), folder('data/again'),
	entry('data/again/new', b''), folder('data/merged'), entry('data/merged/new', b''), entry('data/.wh..wh.aufs', b''),
	entry('data/.wh.never-there', b''), entry('data/deep/er/.wh.x', b'')]
MERGED = ['again', 'again/new', 'became-dir', 'became-dir/new', 'became-file', 'deep', 'deep/er', 'kept', 'merged', 'merged/new',
	'merged/old', 'opaque', 'opaque/new', 'other-name', 'two-names']


@pytest.mark.parametrize('env', [{}, OLD], ids=['by-descriptor', 'by-path'])
@pytest.mark.parametrize('packing', ['', '+gzip', '+zstd'])
def test_layers_hide_what_lies_below(cloche, layout, base, packing, env):
	layout.add(layout.image(base, tar(*LOWER), tar(*UPPER), packing=packing))
	run = cloche.sh('cd /data; find . -mindepth 1 -printf "%P\\n"; cat became-file kept; stat -c %h two-names',
		options=('--image', str(layout.path)), env=env)
	assert sorted(run.lines[:-1]) == sorted(MERGED), run
	assert run.lines[-1] == 'nowkept2'
	assert spec_of(run)['image_digest'] == layout.manifests[0]['digest']


def test_tar_without_its_end(cloche, layout, base):
	"""As `umoci insert` writes it: nothing behind the last file, not even what fills its block."""
	layer = tar(entry('first', b'one'), entry('last', b'two'))
	cut = members_alone(layer)[:-509]
	assert cut.endswith(b'two')
	layout.add(layout.image(base, cut))
	run = cloche.sh('cat /first /last', options=('--image', str(layout.path)))
	assert run.out == 'onetwo', run


def test_modes_owners_times_and_attributes_are_kept(cloche, layout, base):
	def attributes(**values):
		return {f'SCHILY.xattr.{name.replace("__", ".")}': value for name, value in values.items()}

	layout.add(layout.image(base, tar(entry('x/setuid', b'', mode=0o4755, uid=1000, gid=65535, mtime=1_234_567_890),
		folder('x', mode=0o1770, uid=7, gid=8, mtime=1_111_111_111),
		entry('x/tagged', b'', pax_headers=attributes(user__note='hello', trusted__overlay__opaque='y', security__selinux='z')),
		entry('x/pipe', kind=tarfile.FIFOTYPE), link('x/link', '/etc/passwd', uid=5, gid=6),
		entry('x/n\udcff\n', b'bytes'), entry('x/device', kind=tarfile.CHRTYPE, devmajor=1, devminor=3))))
	run = cloche.sh('cd /x; stat -c "%n %f %u %g %Y" setuid link pipe .; ls -1b; cat n*', options=('--image', str(layout.path), '--verbose'))
	assert run.lines == ['setuid 89ed 1000 65535 1234567890', 'link a1ff 5 6 1600000000', 'pipe 11a4 0 0 1600000000',
		'. 43f8 7 8 1111111111', 'link', 'n\\377\\n', 'pipe', 'setuid', 'tagged', 'bytes'], run
	assert 'left out: 1 device node, 2 extended attributes' in run.err
	top = pathlib.Path(spec_of(run)['lowers'][0]['dir'])
	assert {name: os.getxattr(top / 'x' / 'tagged', name) for name in os.listxattr(top / 'x' / 'tagged')} == {'user.note': b'hello'}


def test_times_of_folders(cloche, layout, base):
	"""Marks in a folder are no change of it; of an entry that comes twice the last one holds."""
	layout.add(layout.image(base, tar(folder('hides'), entry('hides/gone', b''), entry('hides/kept', b'')),
		tar(folder('hides', mtime=1_111_111_111), entry('hides/.wh.gone', b''), folder('twice', mtime=1_222_222_222),
		folder('twice', mtime=1_333_333_333), entry('twice/x', b''))))
	run = cloche.sh('stat -c %Y /hides /twice; ls /hides', options=('--image', str(layout.path)))
	assert run.lines == ['1111111111', '1333333333', 'kept'], run


def test_file_capabilities_are_kept_for_the_ids_of_the_sandbox(cloche, layout, base):
	# Effective, CAP_NET_BIND_SERVICE permitted: bytes that a tar holds as text, so none is above 127.
	value = struct.pack('<IIIII', 0x02000001, 1 << 10, 0, 0, 0)
	layout.add(layout.image(base, tar(entry('able', b'', pax_headers={'SCHILY.xattr.security.capability': value.decode()}))))
	run = cloche.sh('ls /able', options=('--image', str(layout.path), '--verbose'))
	assert run.code == 0 and 'left out' not in run.err, run
	lower = spec_of(run)['lowers'][0]
	kept = os.getxattr(os.path.join(lower['dir'], 'able'), 'security.capability')
	assert kept == struct.pack('<IIIIII', 0x03000001, 1 << 10, 0, 0, 0, lower['base'])


def test_umoci_layout_docker_archive_and_oci_archive(own_cloche, tmp_path, base):
	if shutil.which('umoci') is None or shutil.which('skopeo') is None:
		pytest.skip('no umoci or no skopeo on this host')
	(tmp_path / 'base.tar').write_bytes(base)
	(tmp_path / 'more.tar').write_bytes(tar(*LOWER))
	made = tmp_path / 'made'

	def umoci(*args):
		subprocess.run(['umoci', *args], check=True, capture_output=True, cwd=tmp_path)

	umoci('init', '--layout', 'made')
	umoci('new', '--image', 'made:one')
	for name in ('base.tar', 'more.tar'):
		umoci('raw', 'add-layer', '--image', 'made:one', name)
	umoci('config', '--image', 'made:one', '--config.env', 'WHO=umoci', '--config.cmd', '/bin/sh', '--config.cmd', '-c',
		'--config.cmd', 'echo $WHO; cat /data/kept')
	for kind, target in (('docker-archive', 'd.tar:box:1'), ('oci-archive', 'o.tar:two')):
		subprocess.run(['skopeo', 'copy', '--insecure-policy', f'oci:{made}:one', f'{kind}:{tmp_path}/{target}'], check=True,
			capture_output=True)
	for image in (f'oci:{made}:one', str(made), f'{made}:one', f'docker-archive:{tmp_path}/d.tar', f'{tmp_path}/d.tar:1',
			f'oci-archive:{tmp_path}/o.tar:two', f'{tmp_path}/o.tar'):
		run = own_cloche.run(options=('--image', image, '--net', 'none'))
		assert run.code == 0 and run.out == 'umoci\nkept', (image, run)
		assert spec_of(run)['image'] == image
	# Unpacked once, whatever named them.
	assert layers(own_cloche) == sorted('sha256-' + sha(data)[7:] for data in (base, tar(*LOWER)))
	done = own_cloche.call('run', '--image', f'{made}:nosuch', '--', '/bin/true')
	assert done.code == 125 and "no image named 'nosuch'; there is: one" in done.err, done


def test_docker_archive_whose_layers_are_links(cloche, tmp_path, base):
	file = docker_archive(tmp_path / 'saved.tar', base, tar(*LOWER), config={'Cmd': ['cat', '/data/kept']})
	assert cloche.run(options=('--image', f'docker-archive:{file}:box:1'.replace(':box:1', ':1'))).out == 'kept'


def test_folder_of_docker_is_read_anew(cloche, tmp_path, base):
	"""Its manifest.json stays the same where its files change."""
	for word in ('one', 'two'):
		saved = docker_folder(tmp_path / 'saved', base, tar(entry('word', word.encode())), config={'Cmd': ['cat', '/word']})
		assert cloche.run(options=('--image', str(saved))).out == word


def test_folder_of_skopeo_has_no_names(cloche, tmp_path, layout, base):
	"""What its transport dir: makes."""
	layout.add(layout.image(base, config={'Cmd': ['/bin/sh', '-c', 'echo started']}))
	fetched = tmp_path / 'fetched'
	shutil.copytree(layout.path / 'blobs' / 'sha256', fetched)
	(fetched / 'version').write_text('Directory Transport Version: 1.1\n')
	shutil.copy(layout.blob_path(layout.manifests[0]['digest']), fetched / 'manifest.json')
	assert cloche.run(options=('--image', str(fetched))).out == 'started\n'
	done = cloche.call('run', '--image', f'{fetched}:v2', '--', '/bin/true')
	assert done.code == 125 and 'leave out what is behind the colon' in done.err, done


CONFIG = {'Env': ['PATH=/own:/usr/bin', 'GREETING=hello', 'SHARED=image', 'TERM=weird', 'IS_SANDBOX=no'], 'WorkingDir': 'srv/app',
	'User': 'ana:crew', 'Entrypoint': ['/bin/sh', '-c', 'echo "$0" "$@"'], 'Cmd': ['a', 'b c'], 'Labels': {'org.example.what': 'a box'}}


def test_config_is_honoured(cloche, layout, base):
	layout.add(layout.image(base, config=CONFIG))
	image = ('--image', str(layout.path))

	def out(*argv, options=()):
		run = cloche.call('run', *image, '--no-summary', *options, '--', *argv)
		assert run.code == 0, run
		return run.out

	assert out() == 'a b c\n'
	assert out('x', 'y') == 'x y\n'
	assert out('/usr/bin/id', '-u', options=('--entrypoint', '')) == '1234\n'
	assert out('-c', 'pwd; id -g; echo $HOME', options=('--entrypoint', '/bin/sh', '-m', f'{cloche.cwd}:/mnt:ro', '-w', '/srv/app')) == \
		'/srv/app\n2000\n/home/ana\n'
	assert out('-u', options=('--entrypoint', '/usr/bin/id', '--user', '0')) == '0\n'
	shown = dict(line.split('=', 1) for line in out(options=('--entrypoint', '/usr/bin/env', '-e', 'SHARED=mine')).splitlines())
	assert (shown['PATH'], shown['GREETING'], shown['SHARED'], shown['TERM'], shown['IS_SANDBOX']) == \
		('/own:/usr/bin', 'hello', 'mine', 'weird', '1')
	done = cloche.call('run', *image, '--entrypoint', '', '--no-summary')
	assert done.code == 125 and 'names no command' in done.err


def test_entrypoint_of_one_empty_word_is_none(cloche, layout, base):
	layout.add(layout.image(base, config={'Entrypoint': [''], 'Cmd': ['/bin/sh', '-c', 'echo cmd']}))
	run = cloche.run(options=('--image', str(layout.path)))
	assert run.code == 0 and run.out == 'cmd\n', run


def test_exec_has_the_image_s_settings_but_no_entrypoint(sandbox, layout, base):
	layout.add(layout.image(base, config=CONFIG))
	box = sandbox('--image', str(layout.path))
	assert box.sh('pwd; id -un; id -gn; echo $GREETING').lines == ['/srv/app', 'ana', 'crew', 'hello']
	spec = json.loads(box.cloche.call('inspect', box.id).out)['meta']['spec']
	assert spec['image'] == str(layout.path) and spec['image_digest'] == layout.manifests[0]['digest']
	assert spec['image_labels'] == ['org.example.what=a box']
	assert spec['image_env'] == ['PATH', 'GREETING', 'SHARED', 'TERM', 'IS_SANDBOX']
	assert f"({layout.manifests[0]['digest'][:19]})" in box.cloche.call('show', box.id).out


def test_index_of_several_machines(cloche, layout, base):
	other = {'amd64': 'arm64', 'arm64': 'amd64'}[ARCH]
	theirs = layout.image(tar(entry('nothing', b'')), arch=other)
	ours = layout.image(base, config={'Cmd': ['/bin/sh', '-c', 'echo ours']})
	index = layout.document({'schemaVersion': 2, 'manifests': [
		dict(theirs, platform={'os': 'linux', 'architecture': other}),
		dict(ours, platform={'os': 'linux', 'architecture': ARCH}),
		dict(ours, digest=sha(b'none'), platform={'os': 'unknown', 'architecture': 'unknown'})]},
		'application/vnd.oci.image.index.v1+json')
	layout.add(index, tag='both').add(theirs, tag='theirs')
	assert cloche.run(options=('--image', f'{layout.path}:both')).out == 'ours\n'
	done = cloche.call('run', '--image', f'{layout.path}:theirs', '--', '/bin/true')
	assert done.code == 125 and f'it is for linux/{other}, this host is linux/{ARCH}' in done.err, done
	done = cloche.call('run', '--image', str(layout.path), '--', '/bin/true')
	assert done.code == 125 and 'several images' in done.err and 'both, theirs' in done.err, done


def test_program_without_anything_else(cloche, layout, tmp_path):
	"""One static program: no shell, no /etc, no /tmp."""
	(tmp_path / 'hello.c').write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
	subprocess.run(['cc', '-static', '-o', tmp_path / 'hello', tmp_path / 'hello.c'], check=True)
	layout.add(layout.image(tar(entry('hello', (tmp_path / 'hello').read_bytes(), mode=0o755)), config={'Cmd': ['/hello']}))
	run = cloche.run(options=('--image', str(layout.path)))
	assert run.code == 0 and run.out == 'hello\n', run


def test_resolver_that_is_a_link_and_roots_that_lie_in_another_layer(cloche, layout, base):
	roots = b'-----BEGIN CERTIFICATE-----\nb3ducw==\n-----END CERTIFICATE-----\n'
	below = tar(folder('etc/ssl/certs'), entry('etc/ssl/certs/ca-certificates.crt', roots), link('etc/resolv.conf', '../run/none'))
	layout.add(layout.image(base, below, tar(folder('run')), config={'Env': ['SSL_CERT_FILE=/elsewhere']}))
	run = cloche.sh('cat /etc/resolv.conf; echo $SSL_CERT_FILE; cat /etc/ssl/certs/ca-certificates.crt',
		options=('--image', str(layout.path)))
	assert run.lines[:5] == ['nameserver 10.0.0.53', '/etc/ssl/certs/ca-certificates.crt', *roots.decode().splitlines()], run
	assert run.out.count('BEGIN CERTIFICATE') == 2


def test_changes_apply_and_manifest(cloche, project, layout, base):
	layout.add(layout.image(members_alone(base) + tar(*LOWER)))
	(project / 'file').write_text('before\n')
	run = cloche.sh('echo after > file; echo new > /etc/new; rm /etc/group; rm /data/kept', options=('--image', str(layout.path), '-w',
		str(project)))
	assert run.code == 0, run
	changed = changed_paths(run)
	assert changed == {(f'{project}/file', 'changed'), ('/etc/new', 'added'), ('/etc/group', 'removed')}, changed
	assert (project / 'file').read_text() == 'before\n'
	assert cloche.call('apply', run.record.id).code == 0
	assert (project / 'file').read_text() == 'after\n'
	box = cloche.create('--image', str(layout.path))
	try:
		listed = cloche.call('manifest', box.id, '/data', '--jsonl')
		paths = sorted(json.loads(line).get('path', '') for line in listed.out.splitlines())
		assert listed.code == 0 and 'dir/old' in paths and 'kept' in paths, listed
	finally:
		box.remove()


@pytest.mark.parametrize('env', [{}, OLD], ids=['by-descriptor', 'by-path'])
def test_changes_over_more_layers_than_one_value_names(sandbox, cloche, layout, base, env):
	"""A value of fsconfig(2) ends at 255 bytes; kernels before 6.13 take layers no other way there."""
	layout.add(layout.image(base, *(tar(folder('etc'), entry('etc/common', f'{n}\n'.encode()), entry(f'etc/own-{n}', b'')) for n in range(60)),
		packing=''))
	box = sandbox('--image', str(layout.path), env=env)
	done = box.sh('cat /etc/common; set -- /etc/own-*; echo $#; echo new > /etc/common; rm /etc/own-3')
	assert done.lines == ['59', '60'], done
	shown = cloche.call('diff', box.id, '/etc/common')
	assert shown.code == 0 and shown.out.endswith('-59\n+new\n'), shown
	[part] = [part for part in json.loads(cloche.call('changes', box.id, '--json').out) if part['root'] == '/etc']
	assert [entry['path'] for entry in part['changed'] + part['removed']] == ['/etc/common', '/etc/own-3'], part


def free_port():
	with socket.socket() as s:
		s.bind(('127.0.0.1', 0))
		return s.getsockname()[1]


@pytest.fixture
def registry(tmp_path):
	"""A registry on loopback, in plain HTTP; stop() ends it."""
	if shutil.which('docker-registry') is None or shutil.which('skopeo') is None:
		pytest.skip('no docker-registry or no skopeo on this host')
	port = free_port()
	(tmp_path / 'registry.yml').write_text(f'version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n'
		f'http: {{addr: "127.0.0.1:{port}"}}\n')
	# Plain HTTP has to be allowed by the settings of whoever asks, who need not be root.
	home = pathlib.Path(tempfile.mkdtemp())
	home.chmod(0o755)
	(home / '.config' / 'containers').mkdir(parents=True)
	(home / '.config' / 'containers' / 'registries.conf').write_text(f'[[registry]]\nlocation = "127.0.0.1:{port}"\ninsecure = true\n')
	process = subprocess.Popen(['docker-registry', 'serve', tmp_path / 'registry.yml'], stdout=subprocess.DEVNULL,
		stderr=subprocess.DEVNULL)
	wait_for(lambda: socket.socket().connect_ex(('127.0.0.1', port)) == 0, 'the registry')
	process.place = f'127.0.0.1:{port}'
	process.settings = {'HOME': str(home)}
	yield process
	process.kill()
	process.wait()
	shutil.rmtree(home)


def test_registry(own_cloche, registry, layout, base):
	layout.add(layout.image(base, tar(*LOWER), packing='+gzip', config={'Cmd': ['cat', '/data/kept']}), tag='one')
	name = f'{registry.place}/team/box'
	subprocess.run(['skopeo', 'copy', '--insecure-policy', '--dest-tls-verify=false', f'oci:{layout.path}:one', f'docker://{name}:1'],
		check=True, capture_output=True)
	digest = layout.manifests[0]['digest']

	def run(*options, image=f'{name}:1', **env):
		return own_cloche.call('run', '--no-summary', '--image', image, *options, env={**registry.settings, **env})

	done = run(PATH='/nowhere')
	assert done.code == 125 and 'skopeo, which fetches images from registries, is not installed' in done.err, done
	first = run()
	assert first.out == 'kept', first
	assert json.loads(own_cloche.call('inspect', 'last').out)['meta']['spec']['image_digest'] == digest
	# By someone who is not root, tag and digest at once.
	again = run(image=f'docker://{name}:1@{digest}', SUDO_UID='54321', SUDO_GID='54321')
	assert again.out == 'kept', again
	registry.kill()
	registry.wait()
	assert run().out == 'kept'
	done = run('--pull')
	assert done.code == 125 and 'skopeo' in done.err and 'refused' in done.err, done
	assert len(layers(own_cloche)) == 2


def test_registry_that_sends_too_much(own_cloche, tmp_path):
	programs = tmp_path / 'programs'
	programs.mkdir()
	fake = programs / 'skopeo'
	fake.write_text('#!/bin/sh\nmkdir /var/tmp/image\nhead -c 64M /dev/zero >/var/tmp/image/blob\nexec sleep 5\n')
	fake.chmod(0o755)
	done = own_cloche.call('run', '--image', 'registry.example/big', '--', '/bin/true',
		env={'PATH': f'{programs}:/usr/bin:/bin', 'CLOCHE_IMAGE_MAX': '16M'})
	assert done.code == 125 and 'raise CLOCHE_IMAGE_MAX' in done.err, done
	assert layers(own_cloche) == []


FAKES = {
	'ends, and what it started holds its stderr': ('sleep 300 & echo "no such image" >&2; exit 1', None, 'skopeo: no such image'),
	'ends, and what it started floods': ('yes >&2 & exit 1', None, 'skopeo: y'),
	'will not end': ("trap '' TERM INT; : >READY; sleep 300 & while :; do wait; sleep 1; done", signal.SIGINT, 'stopped by a signal'),
}


@pytest.mark.parametrize('case', FAKES)
def test_fetching_ends_with_all_that_it_started(own_cloche, tmp_path, case):
	script, number, says = FAKES[case]
	programs = tmp_path / 'programs'
	programs.mkdir()
	fake = programs / 'skopeo'
	ready = tmp_path / 'ready'
	fake.write_text(f'#!/bin/sh\n{script}\n'.replace('READY', str(ready)))
	fake.chmod(0o755)
	process = own_cloche.start('run', '--image', 'registry.example/x', '--', '/bin/true', env={'PATH': f'{programs}:/usr/bin:/bin'})
	if number:
		wait_for(ready.exists, 'skopeo')
		os.kill(child_of(process), number)
	_, err = process.communicate(timeout=30)
	assert process.returncode == 125 and says in err.decode(), err
	wait_for(lambda: not left_of(fake), f"the end of all: {case}") # killed, which takes its time


def test_what_fetching_starts_cannot_hang_on_the_terminal(own_cloche, tmp_path):
	fake = tmp_path / 'programs' / 'skopeo'
	fake.parent.mkdir()
	fake.write_text('#!/bin/sh\nread x </dev/tty || echo "nobody to ask" >&2\nexit 1\n')
	fake.chmod(0o755)
	master, slave = pty.openpty()
	process = own_cloche.start('run', '--image', 'registry.example/x', '--', '/bin/true', env={'PATH': f'{fake.parent}:/usr/bin:/bin'},
		stdin=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
	try:
		_, err = process.communicate(timeout=20)
	finally:
		process.kill()
		os.close(master)
		os.close(slave)
	assert process.returncode == 125 and 'nobody to ask' in err.decode(), err


def left_of(script):
	"""Processes that a script started: they have its folder in their PATH."""
	found = []
	for environ in pathlib.Path('/proc').glob('[0-9]*/environ'):
		try:
			if f'PATH={script.parent}:'.encode() in environ.read_bytes():
				found.append(environ)
		except OSError:
			pass  # it ended meanwhile
	return found


def test_interrupted_while_a_child_hangs(own_cloche, tmp_path):
	for attempt in range(50):
		file = tmp_path / f'{attempt}.tar'  # less than the pipe to the child holds: it is waited for, and nothing else
		file.write_bytes(tar(*(entry(f'{attempt}-{n}', b'') for n in range(1500))))
		process = own_cloche.start('run', '--image', str(file), '--', '/bin/true')
		if child := stop_child(child_of(process)):
			break
		process.communicate(timeout=30)
	os.kill(child_of(process), signal.SIGINT)
	_, err = process.communicate(timeout=30)
	assert process.returncode == 125 and b'stopped by a signal' in err, (attempt, err)
	assert not [name for name in layers(own_cloche) if name.startswith('.tmp-')] and not os.path.exists(f'/proc/{child}')


def stop_child(pid):
	"""Stops the first child that a process has, if that does not end first."""
	try:
		child = int(wait_for(pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text, 'its child').split()[0])
		os.kill(child, signal.SIGSTOP)
		return wait_for(lambda: child if ') T ' in pathlib.Path(f'/proc/{child}/stat').read_text() else None, 'it to stop')
	except OSError:
		return None


def child_of(process):
	"""The one that unpacks; asked from where it is cheap, since it will not wait."""
	return int(wait_for(pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text, 'its child').split()[0])


def test_killed_while_unpacking(own_cloche, tmp_path, base):
	file = big_tar(tmp_path / 'big.tar', base)
	for _ in range(2):
		process = own_cloche.start('run', '--image', str(file), '--', '/bin/sh', '-c', 'ls /data | cat')
		temp = wait_for(lambda: list(own_cloche.state.glob('layers/.tmp-*/fs/data/9')), 'the first files')
		kill_and_wait(child_of(process))
		out, err = process.communicate(timeout=30)
		assert process.returncode == 125 and b'without an answer' in err, err
		assert temp and [name for name in layers(own_cloche) if not name.startswith('.tmp-')] == []
	assert own_cloche.call('gc').code == 0
	assert layers(own_cloche) == []
	run = own_cloche.sh('ls /data | { n=0; while read -r x; do n=$((n + 1)); done; echo $n; }', options=('--image', str(file)))
	assert run.out == '640\n', run
	assert layers(own_cloche) == ['sha256-' + sha(file.read_bytes())[7:]]


def test_interrupted_leaves_nothing(own_cloche, tmp_path, base):
	file = big_tar(tmp_path / 'big.tar', base)
	process = own_cloche.start('run', '--image', str(file), '--', '/bin/true')
	wait_for(lambda: list(own_cloche.state.glob('layers/.tmp-*/fs/data/9')), 'the first files')
	os.kill(child_of(process), signal.SIGINT)
	_, err = process.communicate(timeout=30)
	assert process.returncode == 125 and b'stopped by a signal' in err, err
	assert layers(own_cloche) == []


def test_two_unpack_the_same_at_once(own_cloche, tmp_path, layout, base):
	file = big_tar(tmp_path / 'big.tar', base, 40)
	layout.add(layout.image(file.read_bytes(), packing=''))
	runs = [own_cloche.start('run', '--no-summary', '--image', str(layout.path), '--', '/bin/sh', '-c', 'cat /etc/passwd')
		for _ in range(4)]
	outs = [run.communicate(timeout=60) for run in runs]
	assert [run.returncode for run in runs] == [0] * 4, outs
	assert len({out for out, _ in outs}) == 1
	assert layers(own_cloche) == ['sha256-' + sha(file.read_bytes())[7:]]


def test_full_disk(small_disk, tmp_path, base):
	file = big_tar(tmp_path / 'big.tar', base, 200)
	done = small_disk.call('run', '--image', str(file), '--', '/bin/true')
	assert done.code == 125 and 'No space left on device' in done.err, done
	assert layers(small_disk) == []


def test_layers_go_with_the_last_image_that_names_them(own_cloche, tmp_path, base):
	tops = [tar(entry('top', name)) for name in (b'one', b'two')]
	layout = Layout(tmp_path / 'layout')
	for tag, top in zip(('one', 'two'), tops):
		layout.add(layout.image(base, top), tag)
	names = {sha(layer).replace(':', '-') for layer in (base, *tops)}

	def there():
		return {name for name in os.listdir(own_cloche.state / 'layers') if name.startswith('sha256-')}

	def gc(*options):
		done = own_cloche.call('gc', '--json', *options)
		assert done.code == 0, done
		return {key: value for key, value in json.loads(done.out).items() if key not in ('mended', 'records')}

	box = own_cloche.create('--image', f'{layout.path}:one')
	assert own_cloche.sh('cat /top', options=('--image', f'{layout.path}:two')).out == 'two'
	assert there() == names and gc() == gc('--older', '1h') == gc('--max', '1G') == {'images': 0, 'layers': 0}
	assert gc('--max', '1') == {'images': 2, 'layers': 1}, 'what a sandbox stands on stays'
	assert there() == names - {sha(tops[1]).replace(':', '-')} and box.sh('cat /top').out == 'one'
	assert own_cloche.call('suspend', box.id).code == 0
	assert gc() == {'images': 0, 'layers': 0}
	assert own_cloche.call('resume', box.id).code == 0 and box.sh('cat /top').out == 'one'
	box.remove()
	assert gc() == {'images': 0, 'layers': 2} and there() == set()
	for file in (own_cloche.state / 'images').iterdir():
		file.unlink()
	assert own_cloche.sh('cat /top', options=('--image', f'{layout.path}:two')).out == 'two'
	for file in (own_cloche.state / 'images').iterdir():
		os.utime(file, (0, 0))
	assert gc('--older', '30d') == {'images': 1, 'layers': 2}


def test_layer_that_could_not_be_removed_whole(own_cloche, layout, base):
	"""What gc was kept from, half-way, is no layer for the next image."""
	layout.add(layout.image(base))
	image = ('--image', str(layout.path))
	run = own_cloche.sh('echo first', options=image)
	assert run.out == 'first\n', run
	shutil.rmtree(own_cloche.state / 'images')
	stuck = pathlib.Path(spec_of(run)['lowers'][0]['dir']) / 'etc'
	subprocess.run(['mount', '-t', 'tmpfs', 'cloche-test', stuck], check=True)
	try:
		assert own_cloche.call('gc').code == 0
	finally:
		[mounted] = [line.split()[1] for line in pathlib.Path('/proc/self/mounts').read_text().splitlines()
			if f' {own_cloche.state}/' in line]
		subprocess.run(['umount', mounted], check=True)
	assert own_cloche.sh('echo second', options=image).out == 'second\n'
	assert own_cloche.call('gc').code == 0
	assert len(layers(own_cloche)) == 1


def test_gc_that_cannot_look_removes_no_layer(own_cloche, tmp_path, layout, base):
	layout.add(layout.image(base))
	assert own_cloche.sh(':', options=('--image', str(layout.path))).code == 0
	shutil.rmtree(own_cloche.state / 'images')
	there = layers(own_cloche)
	(own_cloche.state / 'changes').rename(tmp_path / 'changes')
	(own_cloche.state / 'changes').write_text('')
	done = own_cloche.call('gc')
	assert done.code == 125 and 'Not a directory' in done.err, done
	(own_cloche.state / 'changes').unlink()
	(tmp_path / 'changes').rename(own_cloche.state / 'changes')
	assert len(there) == 1 and layers(own_cloche) == there
