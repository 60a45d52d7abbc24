# SPDX-License-Identifier: Apache-2.0
"""Archives and layouts that mean harm, or are broken: refused with a sentence, or held within their layer."""
import gzip
import json
import os
import pathlib
import shutil
import tarfile

import pytest

from harness import small_root, wait_for
from images import LAYER, Layout, big_tar, entry, folder, hard_link, link, members_alone, sha, tar, tar_of


@pytest.fixture(scope='module')
def base(tmp_path_factory):
	root = tmp_path_factory.mktemp('base') / 'root'
	root.mkdir()
	return tar_of(small_root(root, *(f'/usr/bin/{name}' for name in ('sh', 'cat', 'ls', 'find', 'stat'))))


@pytest.fixture
def image(cloche, tmp_path):
	"""Runs a shell in an image of these layers, and gives what came of it."""
	layout = Layout(tmp_path / 'layout')

	def run(*tars, script=':', packing='+gzip', options=(), **how):
		layout.manifests.clear()
		layout.add(layout.image(*tars, packing=packing))
		return cloche.sh(script, options=('--image', str(layout.path), '--net', 'none', *options), **how)

	return run


def half_made(cloche):
	return [p.name for p in (cloche.state / 'layers').iterdir() if p.name.startswith('.tmp-')]


def whole(path, size):
	"""A member whose header claims more than there is."""
	info, _ = entry(path, size=size)
	return info.tobuf(tarfile.GNU_FORMAT)


def deep(n):
	return '/'.join(['d' * 200] * n)


REFUSED = {
	'climbs': (tar(entry('../../escaped', b'x')), 'climbs out'),
	'climbs-inside': (tar(entry('a/../../escaped', b'x')), 'climbs out'),
	'hard-link-climbs': (tar(hard_link('h', '../../etc/shadow')), 'climbs out'),
	'hard-link-to-nothing': (tar(hard_link('h', '/etc/shadow')), 'not in the archive'),
	'hard-link-to-host-by-link': (tar(link('l', '/etc'), hard_link('h', 'l/shadow')), 'not in the archive'),
	'hard-link-to-a-folder': (tar(folder('d'), hard_link('h', 'd')), 'link it'),
	'below-a-file': (tar(entry('f', b''), entry('f/g', b'')), 'Not a directory'),
	'below-a-looping-link': (tar(link('l', 'l'), entry('l/g', b'')), 'Too many levels'),
	'owner-beyond-range': (tar(entry('f', b'', uid=65536)), 'ids 0 to 65535'),
	'group-beyond-range': (tar(entry('f', b'', gid=4_000_000_000)), 'ids 0 to 65535'),
	'name-too-long': (tar(entry('n' * 256, b'')), 'longer than 255'),
	'path-too-long': (tar(entry(deep(21), b'')), 'longer than 4095'),
	'whiteout-of-nothing': (tar(entry('.wh.', b'')), 'hides nothing'),
	'whiteout-of-the-parent': (tar(folder('a'), entry('a/.wh...', b'')), 'hides nothing'),
	'whiteout-below-a-link': (tar(link('l', 'etc'), entry('l/.wh.passwd', b'')), 'below a link'),
	'opaque-below-a-link': (tar(link('l', '/etc'), entry('l/.wh..wh..opq', b'')), 'below a link'),
	'claims-too-much': (whole('huge', 1 << 50), 'CLOCHE_IMAGE_MAX'),
	'cut-in-a-file': (tar(entry('f', b'x' * 4096))[:2048], 'damaged'),
	'no-tar': (b'this is no tar' * 100, 'no tar'),
	'root-is-a-file': (tar(entry('.', b'x')), 'root and no folder'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_layer_is_refused(cloche, image, name):
	data, says = REFUSED[name]
	run = image(data)
	assert run.code == 125 and says in run.err and 'sb_' not in run.err, run
	assert len(run.err.strip().splitlines()) == 1, run
	assert half_made(cloche) == [] and not (cloche.state / 'layers' / ('sha256-' + sha(data)[7:])).exists()


def test_what_leads_out_leads_nowhere(cloche, image, base, tmp_path):
	"""Absolute names, links out of the layer and what is written through them."""
	victim = tmp_path / 'victim'
	victim.mkdir()
	up = '../' * 40
	run = image(base, tar(entry('/absolute', b'1'), folder(str(victim)), link('out', str(victim)), entry('out/through', b'2'),
		link('up', up + str(victim)[1:]), entry('up/through-up', b'3'), folder('proc/1/root'), link('proc-root', '/proc/1/root'),
		entry('proc-root/x', b'4'), entry('passwd', b'5'), hard_link('twin', '/passwd'),
		link('swapped', '/etc'), folder('swapped'), entry('swapped/inside', b'6')),
		script=f'cat /absolute {victim}/through {victim}/through-up /passwd /swapped/inside')
	assert run.out.startswith('12356'), run
	assert list(victim.iterdir()) == []
	assert not os.path.exists('/absolute') and not os.path.exists('/x') and not os.path.exists('/etc/inside')


def test_marks_of_overlayfs_are_not_an_archive_s_to_make(cloche, image, base):
	run = image(base, tar(entry('etc/passwd', kind=tarfile.CHRTYPE, devmajor=0, devminor=0),
		folder('etc', pax_headers={'SCHILY.xattr.trusted.overlay.opaque': 'y', 'SCHILY.xattr.trusted.overlay.redirect': '/root'}),
		entry('dev/sda', kind=tarfile.BLKTYPE, devmajor=8, devminor=0)), script='cat /etc/passwd; find /dev/sda')
	assert run.out == 'root:x:0:0:root:/root:/bin/sh\n', run
	layer = pathlib.Path(json.loads(cloche.call('inspect', run.record.id).out)['meta']['spec']['lowers'][0]['dir'])
	assert os.listxattr(layer / 'etc') == [] and os.listdir(layer / 'etc') == []


def test_limits_on_bytes_and_entries(cloche, image, base):
	limits = {'CLOCHE_IMAGE_MAX': '32M', 'CLOCHE_IMAGE_MAX_ENTRIES': '500'}
	bomb = tar(entry('zeros', bytes(100 << 20)))
	run = image(bomb, env=limits)
	assert run.code == 125 and 'CLOCHE_IMAGE_MAX' in run.err, run
	run = image(tar(*(entry(f'f{n}', b'') for n in range(501))), env=limits)
	assert run.code == 125 and 'more than 500 entries' in run.err, run
	# Folders above what a path names are made, too.
	run = image(tar(*(entry(f'{n}/' + 'd/' * 100 + 'f', b'') for n in range(20))), env=limits)
	assert run.code == 125 and 'more than 500 entries' in run.err, run
	# Heads are no files, and a limit that is as good as none is one.
	heads = tar(*(entry(f'f{n}', b'', pax_headers={'comment': 'c' * 500_000}) for n in range(70)))
	assert image(base, heads, env={**limits, 'CLOCHE_IMAGE_MAX_ENTRIES': str(1 << 52)}).code == 0
	# What follows the tar's end counts too, though no file is made of it.
	run = image(base + bytes(100 << 20), env=limits)
	assert run.code == 125 and 'without its compression' in run.err, run
	assert half_made(cloche) == []
	assert image(bomb, base).code == 0


def test_sparse_files_take_no_room(cloche, image, base, tmp_path):
	(tmp_path / 'sparse').mkdir()
	with open(tmp_path / 'sparse' / 'file', 'wb') as file:
		file.truncate(8 << 30)
		file.seek(4 << 30)
		file.write(b'middle')
	os.system(f'tar -C {tmp_path}/sparse --sparse --format=gnu -cf {tmp_path}/sparse.tar file')
	run = image(base, (tmp_path / 'sparse.tar').read_bytes(), script='stat -c "%s %b" /file')
	size, blocks = run.out.split()
	assert size == str(8 << 30) and int(blocks) < 1000, run


@pytest.mark.parametrize('what', ['index', 'manifest', 'config', 'layer', 'diff', 'length', 'missing', 'link-out'])
def test_what_has_another_digest_is_refused(cloche, tmp_path, base, what):
	layout = Layout(tmp_path / 'layout')
	layout.add(layout.image(members_alone(base) + tar(entry(f'only-{what}', b'')), diffs=[sha(b'other')] if what == 'diff' else None))
	manifest = layout.manifests[0]
	described = json.loads(layout.blob_path(manifest['digest']).read_text())
	victims = {'manifest': manifest, 'config': described['config'], 'layer': described['layers'][0], 'length': manifest,
		'missing': described['layers'][0], 'link-out': described['layers'][0]}
	says = 'is damaged or was replaced'
	if what in victims:
		path = layout.blob_path(victims[what]['digest'])
		data = path.read_bytes()
	if what == 'index':
		layout.manifests[0]['digest'] = 'sha256:../../../../etc/passwd'
		layout.write()
		says = 'a digest in it is none'
	elif what == 'length':
		path.write_bytes(data + b' ')
		says = 'has not the length'
	elif what == 'missing':
		path.unlink()
		says = 'No such file'
	elif what == 'link-out':
		(tmp_path / 'outside').write_bytes(data)
		path.unlink()
		path.symlink_to(tmp_path / 'outside')
		says = 'Invalid cross-device link'
	elif what != 'diff':
		path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
	done = cloche.call('run', '--image', str(layout.path), '--', '/bin/true')
	assert done.code == 125 and says in done.err, done
	assert half_made(cloche) == []


@pytest.mark.parametrize('claimed, says', [(None, 'has not the length'), (8 << 40, 'raise CLOCHE_IMAGE_MAX')])
def test_endless_layer_is_not_read(cloche, tmp_path, base, claimed, says):
	"""A hole that takes no room would take hours to hash."""
	layout = Layout(tmp_path / 'layout')
	descriptor = layout.image(base + tar(entry('never-unpacked', b'')))
	manifest = json.loads(layout.blob_path(descriptor['digest']).read_text())
	os.truncate(layout.blob_path(manifest['layers'][0]['digest']), 8 << 40)
	if claimed:
		manifest['layers'][0]['size'] = claimed
	layout.add(layout.document(manifest, descriptor['mediaType']))
	done = cloche.call('run', '--image', str(layout.path), '--', '/bin/true')
	assert done.code == 125 and says in done.err, done


@pytest.mark.parametrize('data, says', [
	(b'', 'is not JSON'), (b'[]', 'no list of images'), (b'{"manifests": 7}', 'no list of images'),
	(b'{"manifests": [' + b'[' * 3000, 'is not JSON'), (b'{"a": 1, "a": 2}', 'is not JSON'),
	(b'{"manifests": [{"digest": "sha512:' + b'a' * 128 + b'", "size": 1}]}', 'SHA-512'),
	(b'{"manifests": [{"digest": "sha256:' + b'a' * 64 + b'"}]}', 'without its size'),
	(b'{"x": "' + b'a' * (5 << 20) + b'"}', 'longer than 4 MiB'),
], ids=lambda value: value if isinstance(value, str) else '')
def test_broken_index(cloche, tmp_path, data, says):
	layout = Layout(tmp_path / 'layout')
	(layout.path / 'index.json').write_bytes(data)
	done = cloche.call('run', '--image', str(layout.path), '--', '/bin/true')
	assert done.code == 125 and says in done.err, done
	assert len(done.err.strip().splitlines()) == 1


def test_index_that_leads_to_itself_and_too_many_layers(cloche, tmp_path, base):
	layout = Layout(tmp_path / 'layout')
	nested = layout.image(base)
	for _ in range(6):
		nested = layout.document({'schemaVersion': 2, 'manifests': [nested]}, 'application/vnd.oci.image.index.v1+json')
	layout.add(nested)
	done = cloche.call('run', '--image', str(layout.path), '--', '/bin/true')
	assert done.code == 125 and 'without end' in done.err, done
	many = Layout(tmp_path / 'many')
	many.add(many.image(*[tar(entry('f', str(n).encode())) for n in range(129)]))
	done = cloche.call('run', '--image', str(many.path), '--', '/bin/true')
	assert done.code == 125 and '129 layers, 128 is the most' in done.err, done


def test_many_layers_and_the_same_one_twice(cloche, tmp_path, base):
	layout = Layout(tmp_path / 'layout')
	tars = [tar(entry(f'f{n}', str(n).encode()), entry('last', str(n).encode())) for n in range(40)]
	layout.add(layout.image(base, *tars, tars[3], tar(entry('.wh.f0', b'')), packing=''))
	for env in ({}, {'CLOCHE_OLD_OVERLAY': '1'}):
		run = cloche.sh('cat /last; ls -d /f* | { n=0; while read -r x; do n=$((n + 1)); done; echo " $n"; }',
			options=('--image', str(layout.path)), env=env)
		assert run.out == '3 39\n', run


def test_archives_whose_maker_has_a_high_id(cloche, tmp_path, base):
	"""Whose the archive's own files are does not matter; whose a root's are does."""
	layout = Layout(tmp_path / 'layout')
	layout.add(layout.image(base))

	def strange(info):
		info.uid = info.gid = 1_234_567_890
		return info

	with tarfile.open(tmp_path / 'image.tar', 'w') as file:
		file.add(layout.path, arcname='.', filter=strange)
	run = cloche.sh('echo started', options=('--image', str(tmp_path / 'image.tar')))
	assert run.out == 'started\n', run
	(tmp_path / 'root.tar').write_bytes(tar(entry('etc/passwd', b'', uid=65536)))
	done = cloche.call('run', '--image', str(tmp_path / 'root.tar'), '--', '/bin/true')
	assert done.code == 125 and '1 of its files belong' in done.err, done
	assert half_made(cloche) == []


def test_layer_that_hides_all_below_it(image, base):
	run = image(tar(entry('below', b'')), tar(entry('.wh..wh..opq', b''), entry('above', b'')), base, script='ls -d /below /above')
	assert run.out == '/above\n' and "'/below'" in run.err, run


def test_folders_in_folders_that_go_again(image, base):
	"""Deeper than who unpacks may have files open."""
	deep = '/'.join(['d'] * 300)
	assert image(base, tar(folder(deep), entry('d', b'file')), script='cat /d').out == 'file'


@pytest.mark.parametrize('cut', [10, 1000, -1])
def test_cut_compression(cloche, tmp_path, base, cut):
	file = tmp_path / 'cut.tar.gz'
	file.write_bytes(gzip.compress(base, 1)[:cut])
	done = cloche.call('run', '--image', str(file), '--', '/bin/true')
	assert done.code == 125 and str(file)[:20] in done.err, done
	assert half_made(cloche) == []


@pytest.mark.parametrize('place, is_refused', [('proc', True), ('dev', True), ('tmp', False), ('workspace', False), ('etc/ssl', False)])
def test_links_at_mount_points(cloche, image, base, tmp_path, place, is_refused):
	"""A35: nothing on the host is written to through a link where something is mounted or made."""
	target = pathlib.Path('/tmp') / f'cloche-test-link-{os.getpid()}-{place.replace("/", "-")}'
	target.mkdir()
	try:
		run = image(base, tar(link(place, f'../../../..{target}')), script='echo started', options=('-m', '/usr:/mnt:ro', '-w', '/'))
		assert list(target.iterdir()) == []
		if is_refused:
			assert run.code == 125 and f"'/{place}' of the root filesystem is a link" in run.err, run
		else:
			assert run.out == 'started\n', run
	finally:
		shutil.rmtree(target)


def test_names_that_are_none(cloche):
	for name, says in (('', 'named by 1'), ('-x', 'no name of a registry'), ('a b', "has ' ' in it"), ('./nosuch', 'No such file'),
			('oci:', 'want PATH'), ('/dev/null', 'neither a file nor a folder'), ('docker://$(id)', 'no name of a registry')):
		done = cloche.call('run', '--image', name, '--', '/bin/true')
		assert done.code == 125 and says in done.err, (name, done)
	done = cloche.call('run', '--image', './nosuch', '-m', '/nosuchfolder:/x:ro', '--', '/bin/true')
	assert done.code in (2, 125) and '/nosuchfolder' in done.err, done
	done = cloche.call('run', '--image', './x', '--rootfs', '/', '--', '/bin/true')
	assert done.code == 125 and 'leave out --image or --rootfs' in done.err, done


def test_folder_that_is_no_image(cloche, tmp_path):
	done = cloche.call('run', '--image', str(tmp_path), '--', '/bin/true')
	assert done.code == 125 and '--rootfs' in done.err, done


def test_kinds_of_layers_that_are_none(cloche, tmp_path, base):
	for kind, says in ((LAYER + '+gzip+encrypted', 'encrypted'), ('application/vnd.example.model', 'no image of files')):
		layout = Layout(tmp_path / kind.rsplit('.', 1)[1])
		descriptor = layout.image(base)
		manifest = json.loads(layout.blob_path(descriptor['digest']).read_text())
		manifest['layers'][0]['mediaType'] = kind
		layout.add(layout.document(manifest, descriptor['mediaType']))
		done = cloche.call('run', '--image', str(layout.path), '--', '/bin/true')
		assert done.code == 125 and says in done.err, done


def test_who_reads_images_knows_no_secret(cloche, tmp_path, base):
	"""What lies in the caller's environment is no business of the processes that foreign bytes are read by."""
	file = big_tar(tmp_path / 'big.tar', base)
	process = cloche.start('run', '--secret', 'API_KEY@a.example', '--image', str(file), '--', '/bin/true',
		env={'API_KEY': 'sesame-sesame-sesame'})
	child = wait_for(pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text, 'its child').split()[0]
	wait_for(lambda: b'cloche-image' in pathlib.Path(f'/proc/{child}/cmdline').read_bytes(), 'its program')
	names = {pair.split(b'=')[0].decode() for pair in pathlib.Path(f'/proc/{child}/environ').read_bytes().split(b'\0') if pair}
	process.communicate(timeout=60)
	assert 'PATH' in names and not names - {'PATH', 'HOME', 'TERM', 'CLOCHE_STATE', 'CLOCHE_RUN', 'ASAN_OPTIONS', 'UBSAN_OPTIONS',
		'LSAN_OPTIONS'}, names


def test_name_of_its_program_gets_an_image_nothing(cloche, tmp_path, base):
	"""A profile hands over folders and keys: who asks for it is the caller, not what the image calls its entrypoint."""
	(tmp_path / 'home' / '.claude').mkdir(parents=True)
	(tmp_path / 'home' / '.claude' / 'login').write_text('token')
	env = {'HOME': str(tmp_path / 'home'), 'ANTHROPIC_API_KEY': 'sesame-sesame-sesame'}
	layout = Layout(tmp_path / 'layout')
	layout.add(layout.image(base, tar(link('usr/bin/claude', 'sh')), config={'Entrypoint': ['/usr/bin/claude'],
		'Cmd': ['-c', 'echo "$ANTHROPIC_API_KEY"; cat ~/.claude/login']}))
	run = cloche.run(options=('--image', str(layout.path)), env=env)
	assert run.out == '\n' and run.code == 1, run
	run = cloche.run(options=('--image', str(layout.path), '--agent', 'claude'), env=env)
	assert run.out.endswith('\ntoken') and len(run.out) > len('\ntoken'), run
