# SPDX-License-Identifier: Apache-2.0
"""Kinds of mounts: files and folders, one in another, on odd filesystems; and what root inside cannot do with them."""
import errno
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import time

import pytest

from harness import PYTHON, wait_for

SECRET = 'a secret of the host\n'


def mount(*args):
	subprocess.run(['mount', *map(str, args)], check=True)


@pytest.fixture
def mounted_at():
	"""Mounts for a test, undone after it."""
	places = []

	def make(*args):
		mount(*args)
		places.append(args[-1])
		return args[-1]

	yield make
	for place in reversed(places):
		subprocess.run(['umount', place], check=True)


@pytest.fixture
def unmappable(tmp_path, mounted_at):
	"""A project on an overlay, as in a container: its ids cannot be mapped."""
	for name in ('lower', 'upper', 'work', 'seen'):
		(tmp_path / name).mkdir()
	(tmp_path / 'lower' / 'f').write_text('of the host\n')
	(tmp_path / 'lower' / 'd').mkdir()
	(tmp_path / 'lower' / 'd' / 'private').write_text('only mine\n')
	(tmp_path / 'lower' / 'd' / 'private').chmod(0o600)
	os.symlink('f', tmp_path / 'lower' / 'link')
	layers = ','.join(f'{name}dir={tmp_path / name}' for name in ('lower', 'upper', 'work'))
	return pathlib.Path(mounted_at('-t', 'overlay', 'overlay', '-o', layers, tmp_path / 'seen'))


def test_where_ids_cannot_be_mapped_a_copy_is_mounted(cloche, unmappable):
	run = cloche.sh('cat f d/private link; echo x > new || true', options=('-m', f'{unmappable}:/p:ro', '-w', '/p'))
	assert run.out == 'of the host\nonly mine\nof the host\n' and 'Read-only file system' in run.err, run
	[hint] = run.record.events('hint')
	assert 'a copy of it is mounted (4 entries' in hint['reason'], hint
	run = cloche.sh('echo more >> f; echo new > n; rm d/private', options=('-m', f'{unmappable}:/p:cow', '-w', '/p'))
	assert run.code == 0, run
	assert (unmappable / 'f').read_text() == 'of the host\n'
	[part] = [part for part in run.record.changes() if part['root'] == '/p']
	assert ([e['path'] for e in part['added']], [e['path'] for e in part['changed']], [e['path'] for e in part['removed']]) == \
		(['/p/n'], ['/p/f'], ['/p/d/private'])
	assert cloche.call('apply', run.record.id).code == 0
	assert (unmappable / 'f').read_text() == 'of the host\nmore\n' and (unmappable / 'n').read_text() == 'new\n'
	assert not (unmappable / 'd' / 'private').exists()
	assert cloche.run('/bin/cat', '/one', options=('-m', f'{unmappable}/f:/one:ro')).out == 'of the host\nmore\n'


def test_a_copy_is_not_made_of_holes(cloche, unmappable):
	"""A file may say that it is as long as it likes."""
	with open(unmappable / 'holes', 'wb') as file:
		file.truncate(1 << 42)
	for source, place in ((unmappable, '/p'), (unmappable / 'holes', '/one')):
		done = cloche.run('/bin/true', options=('-m', f'{source}:{place}:ro'))
		assert done.code == 125 and 'too large for one' in done.err, done


def test_rw_where_ids_cannot_be_mapped_is_refused(cloche, unmappable):
	done = cloche.run('/bin/true', options=('-m', f'{unmappable}:/p:rw'))
	assert done.code == 125 and 'ids cannot be mapped' in done.err and 'mount it ro or cow' in done.err, done


def test_one_mount_in_another(cloche, tmp_path):
	for name in ('outer', 'inner', 'inner/deep'):
		(tmp_path / name).mkdir()
	(tmp_path / 'outer' / 'in').mkdir()
	(tmp_path / 'outer' / 'in' / 'covered').write_text('covered')
	(tmp_path / 'inner' / 'f').write_text('inner')
	script = 'ls in; cat in/f twice/f; echo w > in/w; cat twice/w; echo x > out || true; echo x > twice/no || true; echo y > in/deep/y'
	options = ('-m', f'{tmp_path}/inner:/p/in:rw', '-m', f'{tmp_path}/outer:/p:cow', '-m', f'{tmp_path}/inner:/p/twice:ro',
		'-m', f'{tmp_path}/inner/deep:/p/in/deep:ro', '-w', '/p')
	run = cloche.sh(script, options=options)
	assert run.lines == ['deep', 'f', 'innerinnerw'] and run.err.count('Read-only file system') == 2, run
	assert sorted(p.name for p in (tmp_path / 'inner').iterdir()) == ['deep', 'f', 'w'] and not any((tmp_path / 'inner/deep').iterdir())
	assert [e['path'] for part in run.record.changes() if part['root'] == '/p' for e in part['added'] if 'out' in e['path']] == ['/p/out']
	assert (tmp_path / 'outer' / 'in' / 'covered').exists()
	assert {event['path'] for event in run.record.events('mount.create')} == {'/p/in/w', '/p/out'}


def test_places_where_nothing_can_be_mounted(cloche, tmp_path):
	for name in ('outer/other', 'inner'):
		(tmp_path / name).mkdir(parents=True)
	(tmp_path / 'outer' / 'f').write_text('f')
	for path in (tmp_path / 'outer', tmp_path / 'outer' / 'f'):
		os.chown(path, 1234, 1234)
	nothing = 'nothing is there to mount it on, and'
	for mode, source, at, says in (('cow', 'inner', 'f', 'a file is there or on the way, and what is mounted is a folder'),
			('cow', 'inner', 'f/x', 'a file is there or on the way, and what is mounted is a folder'),
			('cow', 'outer/f', 'other', 'a folder is there, or a file on the way, and what is mounted is a file'),
			('ro', 'inner', 'new', f'{nothing} what is mounted around it is read-only: make it there first'),
			('rw', 'inner', 'other/new', f'{nothing} root inside may not make it in what is mounted around it: make it there first')):
		kind = 'ro' if source == 'outer/f' else 'cow'
		done = cloche.run('/bin/true', options=('-m', f'{tmp_path}/outer:/p:{mode}', '-m', f'{tmp_path / source}:/p/{at}:{kind}'))
		assert (done.code, done.err) == (125, f"cloche: run: mount at '/p/{at}': {says}\n"), (at, done)


def test_a_source_named_by_a_link_and_one_that_goes(cloche, tmp_path):
	(tmp_path / 'real').mkdir()
	(tmp_path / 'real' / 'f').write_text('real')
	os.symlink('real', tmp_path / 'link')
	box = cloche.create('--trace', '-m', f'{tmp_path}/link:/p:rw')
	process = box.start('/bin/sh', '-c', 'exec 3</p/f; touch /p/ready; while [ -e /p/ready ]; do sleep 0.02; done; cat <&3; ls /p | wc -l')
	wait_for((tmp_path / 'real' / 'ready').exists, 'the command')
	shutil.rmtree(tmp_path / 'real')
	out, err = process.communicate(timeout=20)
	assert (out, process.returncode) == (b'real0\n', 0), err
	box.remove()


def test_a_single_file_is_written_in_place_and_not_replaced(cloche, tmp_path):
	(tmp_path / 'conf').write_text('one\n')
	inode = (tmp_path / 'conf').stat().st_ino
	run = cloche.sh('echo two >> /conf; sed -i s/one/three/ /conf; rm /conf; cat /conf', options=('-m', f'{tmp_path}/conf:/conf:rw'))
	assert run.out == 'one\ntwo\n' and 'busy' in run.err, run
	assert (tmp_path / 'conf').read_text() == 'one\ntwo\n' and (tmp_path / 'conf').stat().st_ino == inode
	[hint] = [event for event in run.record.events('hint')]
	assert 'mount the folder' in hint['advice']
	run = cloche.sh('echo x > /conf', options=('-m', f'{tmp_path}/conf:/conf:ro'))
	assert 'Read-only' in run.err and (tmp_path / 'conf').read_text() == 'one\ntwo\n'
	done = cloche.run('/bin/true', options=('-m', f'{tmp_path}/conf:/conf:cow'))
	assert done.code in (2, 125) and 'use ro or rw for a file' in done.err


def test_sources_that_are_refused(cloche, tmp_path, mounted_at):
	for name in ('proc', 'alias', 'open'):
		(tmp_path / name).mkdir()
	os.symlink(cloche.state, tmp_path / 'link')
	mounted_at('-t', 'proc', 'proc', tmp_path / 'proc')
	mounted_at('--bind', cloche.state, tmp_path / 'alias')
	for source, says in (('/', 'the whole host'), (tmp_path / 'proc', 'stay outside'), ('/proc/self', 'stay outside'),
			('/sys', 'stay outside'), ('/dev', 'stay outside'), (tmp_path / 'alias', "Cloche's own state"),
			(tmp_path / 'link', "Cloche's own state"), (cloche.state.parent, "Cloche's own state"),
			(cloche.state / 'records', "Cloche's own state"), (cloche.run_dir, "Cloche's own state")):
		done = cloche.run('/bin/true', options=('-m', f'{source}:/p:ro'))
		assert done.code in (2, 125) and says in done.err and len(done.err.splitlines()) == 1, (source, done)
	# What is mounted below a source is not shown with it.
	mounted_at('--bind', cloche.state, tmp_path / 'open')
	run = cloche.sh('ls /p/open | wc -l', options=('-m', f'{tmp_path}:/p:ro'))
	assert run.lines == ['0'] or "Cloche's own state" in run.err, run


def test_nothing_of_root_reaches_a_folder_that_is_written_through(cloche, tmp_path):
	"""The folder is another user's: who is root inside is that user outside, whatever is tried."""
	folder = tmp_path / 'data'
	folder.mkdir()
	os.chown(folder, 4321, 4321)
	(folder / 'foreign').write_text('of somebody else')
	os.chown(folder / 'foreign', 5678, 5678)
	(folder / 'foreign').chmod(0o600)
	run = cloche.py('''
import os, stat
def tried(name, work):
	try: work(); print(name, 'done')
	except OSError as e: print(name, e.errno)
open('own', 'w').write('x'); os.mkdir('dir')
tried('set-user-id', lambda: os.chmod('own', 0o6755)); tried('set-group-id', lambda: os.chmod('dir', 0o2755))
tried('device', lambda: os.mknod('device', 0o600 | stat.S_IFCHR, os.makedev(1, 3)))
tried('whiteout', lambda: os.mknod('whiteout', 0o600 | stat.S_IFCHR, 0))
tried('capability', lambda: os.setxattr('own', 'security.capability', bytes.fromhex('0100000200200000000000000000000000000000')))
tried('foreign', lambda: open('foreign').read())
open('given', 'w').close(); tried('chown', lambda: os.chown('given', 7, 7))
tried('link', lambda: os.link('own', '/workspace/own')); tried('move', lambda: os.rename('own', '/workspace/own'))
print(os.stat('own').st_uid, os.stat('foreign').st_uid)
''', options=('-m', f'{folder}:/data:rw', '-w', '/data'))
	told = dict(line.split(' ') for line in run.lines)
	assert told['link'] == told['move'] == str(errno.EXDEV), run
	assert told['device'] != 'done' and told['whiteout'] != 'done' and told['capability'] != 'done', run
	assert told['foreign'] == str(errno.EACCES) and told['0'] == '65534', run
	assert (folder / 'given').stat().st_uid > 65535  # nobody's
	for path in folder.rglob('*'):
		st = path.lstat()
		assert path.name == 'given' or st.st_uid == (5678 if path.name == 'foreign' else 4321), path
		assert not st.st_mode & 0o6000, path
		assert stat.S_ISREG(st.st_mode) or stat.S_ISDIR(st.st_mode), path
		assert 'security.capability' not in os.listxattr(path)


SWAP = '''
import os, sys
os.makedirs('/data/d.real', exist_ok=True); open('/data/d.real/inner', 'w').write('harmless')
open('/data/f.real', 'w').write('harmless')
os.symlink(sys.argv[1], '/data/d.link'); os.symlink(sys.argv[1] + '/inner', '/data/f.link')
open('/data/ready', 'w').close()
while not os.path.exists('/data/stop'):
	for name in ('d', 'f'):
		for kind in ('real', 'link'):
			os.rename(f'/data/{name}.{kind}', f'/data/{name}'); os.rename(f'/data/{name}', f'/data/{name}.{kind}')
'''


def test_links_that_are_swapped_in_while_the_host_reads(sandbox, tmp_path):
	"""A folder and a file that turn into links to a secret of the host and back, as fast as can be."""
	(tmp_path / 'secret').mkdir()
	(tmp_path / 'secret' / 'inner').write_text(SECRET)
	(tmp_path / 'data').mkdir()
	box = sandbox('--trace-sources', 'processes', '-m', f'{tmp_path}/data:/data:rw')
	process = box.start(PYTHON, '-S', '-c', SWAP, tmp_path / 'secret')
	wait_for((tmp_path / 'data' / 'ready').exists, 'the swapping to begin')
	end = time.monotonic() + 2
	told = ''
	while time.monotonic() < end:
		told += box.cloche.call('manifest', box.id, '/data').out
		told += box.cloche.call('manifest', '--host', str(tmp_path / 'data')).out
		told += box.cloche.call('changes', box.id, '--json').out
	(tmp_path / 'data' / 'stop').touch()
	assert process.wait(20) == 0
	assert hashlib.sha256(b'harmless').hexdigest() in told
	assert hashlib.sha256(SECRET.encode()).hexdigest() not in told


def test_a_place_for_a_mount_that_leads_out_by_a_link(cloche, tmp_path):
	"""What lies in a folder may have been put there by the last agent."""
	for name in ('data', 'target', 'other'):
		(tmp_path / name).mkdir()
	os.symlink(tmp_path / 'target', tmp_path / 'data' / 'sub')
	(tmp_path / 'other' / 'f').write_text('other')
	run = cloche.run('/bin/cat', '/data/sub/here/f', options=('-m', f'{tmp_path}/data:/data:rw', '-m', f'{tmp_path}/other:/data/sub/here:ro'))
	assert not any((tmp_path / 'target').iterdir())
	assert run.out == 'other' or run.code == 125, run


def test_hidden_names_that_are_made_later(cloche, tmp_path):
	"""What --hide found at the start stays hidden; a file of that name that is made inside is the agent's own."""
	(tmp_path / '.env').write_text(SECRET)
	(tmp_path / 'd').mkdir()
	run = cloche.sh('cat .env; mv .env moved; cat moved; rm -f .env; ln .env hard; cp -r . /workspace/all; echo own > d/.env; cat d/.env',
		options=('-m', f'{tmp_path}:/p:cow', '-w', '/p'))
	assert run.out == 'own\n' and SECRET not in run.err, run
	assert run.record.file('/p/.env')['denied']
