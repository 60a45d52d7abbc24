# SPDX-License-Identifier: Apache-2.0
"""The table of files: one entry for each real path, with what was done to it."""
import base64
import hashlib

import pytest

DONE = ('read', 'written', 'created', 'deleted', 'replaced', 'denied')


def done(entry):
	"""The set of things that were done to a file."""
	return {what for what in DONE if entry[what]}


def below(table, folder):
	return {path: entry for path, entry in table.items() if path == folder or path.startswith(folder + '/')}


def test_recursive_delete_has_every_path_at_its_level(cloche):
	run = cloche.sh('''
mkdir -p /workspace/t/a/b/c && cd /workspace && touch t/top t/a/f1 t/a/b/f2 t/a/b/c/f3 && rm -rf t
''')
	assert run.code == 0
	table = below(run.record.files(), '/workspace')
	folders = {'/workspace/t', '/workspace/t/a', '/workspace/t/a/b', '/workspace/t/a/b/c'}
	files = {'/workspace/t/top', '/workspace/t/a/f1', '/workspace/t/a/b/f2', '/workspace/t/a/b/c/f3'}
	assert {path for path, entry in table.items() if entry['created'] and entry['deleted']} == folders | files
	assert {event['path'] for event in run.record.events('dir.create') if 'result' not in event} == folders
	deleted = {event['path']: event.get('directory', False) for event in run.record.events('file.delete')}
	assert deleted == {**{path: True for path in folders}, **{path: False for path in files}}


def test_names_relative_to_a_folder_descriptor(cloche):
	run = cloche.py('''
import os
os.makedirs('/tmp/place/x')
os.chdir('/')
folder = os.open('/tmp/place', os.O_DIRECTORY | os.O_PATH)
for name in ('one', 'x/../two', '/tmp/absolute'):
	os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=folder))
os.mkdir('m', dir_fd=folder)
os.rename('one', 'three', src_dir_fd=folder, dst_dir_fd=folder)
os.unlink('two', dir_fd=folder)
os.symlink('three', 's', dir_fd=folder)
os.rename('/tmp/place', '/tmp/moved')
os.close(os.open('late', os.O_CREAT | os.O_WRONLY, dir_fd=folder))
''')
	assert run.code == 0
	table = run.record.files()
	assert table['/tmp/place/one']['renamed_to'] == '/tmp/place/three'
	assert table['/tmp/place/three']['renamed_from'] == '/tmp/place/one'
	assert {'created', 'deleted'} <= done(table['/tmp/place/two'])
	for path in ('/tmp/absolute', '/tmp/place/m', '/tmp/place/s', '/tmp/moved/late'):
		assert table[path]['created'], path
	assert table['/tmp/place']['renamed_to'] == '/tmp/moved'
	assert not {'/late', '/tmp/place/late', '/one', '/tmp/place/x/two'} & set(table)


def test_moved_folder_is_one_rename_and_writes_go_on_at_the_new_place(cloche):
	run = cloche.sh('''
mkdir -p old/sub; echo 1 >old/sub/f; exec 5>>old/sub/f
mv old new; echo 2 >&5; exec 5>&-; echo 3 >>new/sub/f
''', options=('-w', str(cloche.cwd)))
	assert run.code == 0
	here = str(cloche.cwd)
	renames = [(event['from'], event['to']) for event in run.record.events('file.rename')]
	assert renames == [(f'{here}/old', f'{here}/new')]
	table = run.record.files()
	assert table[f'{here}/old']['renamed_to'] == f'{here}/new'
	assert table[f'{here}/new/sub/f']['written']
	[mount] = [part for part in run.record.changes() if part['root'] == here]
	added = {entry['path']: entry['after'] for entry in mount['added']}
	assert added[f'{here}/new/sub/f'] == hashlib.sha256(b'1\n2\n3\n').hexdigest()
	assert not [path for path in added if '/old' in path]


def test_reads_through_links_are_filed_under_the_real_place(cloche):
	run = cloche.sh('''
cd /tmp; ln -s /etc e; ln -s e/passwd p1; ln -s p1 p2
cat p2 >/dev/null && cat /proc/self/root/etc/group >/dev/null && cat /proc/$$/cwd/e/hostname >/dev/null
ls /dev/fd/ >/dev/null
''')
	assert run.code == 0, run
	table = run.record.files()
	for path in ('/etc/passwd', '/etc/group', '/etc/hostname'):
		assert table[path]['read'], path
	for path in ('/tmp/p1', '/tmp/p2', '/tmp/e'):
		assert done(table[path]) == {'created'}, path


def test_every_way_to_put_bytes_in_a_file(cloche):
	run = cloche.py('''
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
source = os.open('/etc/passwd', os.O_RDONLY)
def new(name):
	return os.open('/workspace/' + name, os.O_CREAT | os.O_RDWR, 0o644)
other = new('other')
os.write(other, b'0123456789' * 4)
os.lseek(other, 0, 0)
assert os.copy_file_range(other, new('copied'), 20) == 20
assert os.sendfile(new('sent'), source, 0, 20) == 20
a, b = os.pipe()
os.write(b, b'spliced')
assert os.splice(a, new('spliced'), 7) == 7
os.pwritev(new('vector'), [b'x', b'y'], 3)
os.posix_fallocate(new('allocated'), 0, 10)
os.truncate('/workspace/vector', 1)
os.ftruncate(new('grown'), 99)
how = (ctypes.c_ulonglong * 3)(os.O_CREAT | os.O_WRONLY, 0o600, 0)
assert libc.syscall(437, -100, b'/workspace/openat2', how, 24) >= 0
os.mkfifo('/workspace/fifo')
assert libc.syscall(133, b'/workspace/node', 0o100644, 0) == 0
''')
	assert run.code == 0, run
	table = run.record.files()
	for name in ('other', 'copied', 'sent', 'spliced', 'vector', 'allocated', 'grown', 'openat2'):
		assert {'created', 'written'} <= done(table[f'/workspace/{name}']), name
	for name in ('fifo', 'node'):
		assert table[f'/workspace/{name}']['created'], name
	assert {event['path'] for event in run.record.events('file.truncate')} == \
		{'/workspace/vector', '/workspace/grown'}
	assert done(table['/etc/passwd']) == {'read'}
	assert all(path.startswith('/') for path in table)


def test_long_and_deep_paths_are_whole_or_said_to_be_cut(cloche):
	run = cloche.py('''
import os
def make(length, width):
	path = '/tmp/long'
	while len(path) + width + 1 < length:
		path += '/' + 'k' * width
	os.makedirs(path, exist_ok=True)
	open(path + '/F', 'w').write('x')
	print(path + '/F')
make(300, 40)
make(1100, 100)
make(3900, 200)
make(320, 1)
os.chdir('/tmp/long')
for i in range(60):
	os.mkdir('D' * 99)
	os.chdir('D' * 99)
open('deep', 'w').write('x')
''')
	assert run.code == 0
	table = run.record.files()
	wanted = run.lines
	assert [len(path) > 290 for path in wanted] == [True] * 4
	for path in wanted:
		assert {'created', 'written'} <= done(table[path]), len(path)
	assert {path for path in table if path.endswith('/F')} == set(wanted)
	deep = [event for event in run.record.events('file.open') if event['path'].endswith('/deep')]
	assert len(deep) == 1
	whole = '/tmp/long/' + ('D' * 99 + '/') * 60 + 'deep'
	assert deep[0]['path'] == whole or deep[0]['path_unresolved'] is True


UNPRIVILEGED = '''
import os
os.makedirs('/workspace/priv')
open('/workspace/priv/key', 'w').write('s')
os.chmod('/workspace/priv', 0o700)
os.makedirs('/workspace/ro')
os.chmod('/workspace/ro', 0o555)
if os.fork() == 0:
	os.setgid(65534)
	os.setuid(65534)
	for act in (lambda: open('/workspace/priv/key'), lambda: open('/etc/shadow'),
			lambda: open('/workspace/ro/new', 'w'), lambda: os.unlink('/etc/passwd'),
			lambda: os.chmod('/etc/passwd', 0o777), lambda: open('/root/.ssh/id_rsa'),
			lambda: open('/nope/.aws/credentials'), lambda: open('/proc/1/environ'),
			lambda: os.listdir('/workspace/priv')):
		try:
			act()
			print('done', flush=True)
		except OSError as error:
			print(error.errno, flush=True)
	os._exit(0)
os.wait()
'''


def test_denied_and_absent_are_told_apart(cloche):
	run = cloche.py(UNPRIVILEGED)
	assert run.code == 0
	assert run.lines == ['13', '13', '13', '13', '1', '13', '2', '13', '13']
	table = run.record.files('--noise')
	for path in ('/workspace/priv/key', '/etc/shadow', '/workspace/ro/new', '/etc/passwd', '/root/.ssh/id_rsa',
			'/proc/1/environ', '/workspace/priv'):
		assert table[path]['denied'], path
	assert done(table['/workspace/ro/new']) == {'denied'}
	assert not table['/etc/passwd']['deleted']
	absent = table.get('/nope/.aws/credentials')
	assert absent is None or done(absent) == set()
	failed = [event for event in run.record.events('file.open') if event['path'] == '/nope/.aws/credentials']
	assert [event['result'] for event in failed] == ['ENOENT']


def test_life_of_files_within_one_command(cloche):
	run = cloche.sh('''
cd /workspace; echo a > gone; rm gone; echo data > emptied; : > emptied
echo AAAA > same; echo BBBB > same.tmp; mv same.tmp same; cat nosuch 2>/dev/null; true
''')
	assert run.code == 0
	table = run.record.files()
	assert {'created', 'deleted'} <= done(table['/workspace/gone'])
	assert 'written' in done(table['/workspace/emptied'])
	assert {'created', 'written', 'replaced'} <= done(table['/workspace/same'])
	assert table['/workspace/same']['renamed_from'] == '/workspace/same.tmp'
	assert table['/workspace/same.tmp']['renamed_to'] == '/workspace/same'
	absent = table.get('/workspace/nosuch')
	assert absent is None or done(absent) == set()


@pytest.mark.parametrize('code, path', [
	# An agent program opens a folder with O_PATH and works through /proc/self/fd.
	('''
folder = os.open('/workspace', os.O_PATH)
os.close(os.open(f'/proc/self/fd/{folder}/new', os.O_CREAT | os.O_WRONLY))
os.rename(f'/proc/self/fd/{folder}/new', f'/proc/self/fd/{folder}/kept')
os.close(os.open(f'/proc/self/fd/{folder}/gone', os.O_CREAT | os.O_WRONLY))
os.unlink(f'/proc/self/fd/{folder}/gone')
''', {'/workspace/new', '/workspace/kept', '/workspace/gone'}),
	# Another thread made the descriptor and changed the working folder.
	('''
import threading
def elsewhere():
	os.mkdir('/workspace/w')
	os.chdir('/workspace/w')
thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
os.close(os.open('new', os.O_CREAT | os.O_WRONLY))
os.mkdir('m')
os.rmdir('m')
''', {'/workspace/w', '/workspace/w/new', '/workspace/w/m'}),
])
def test_real_place_behind_descriptors_and_working_folders(cloche, code, path):
	run = cloche.py('import os\n' + code)
	assert run.code == 0, run
	assert set(below(run.record.files(), '/workspace')) - {'/workspace'} == path


def test_path_only_open_of_a_secret_is_not_a_read(cloche):
	run = cloche.py("import os; os.close(os.open('/etc/passwd', os.O_PATH))")
	assert run.code == 0
	assert '/etc/passwd' not in run.record.files() or not run.record.file('/etc/passwd')['read']


def test_names_that_are_not_text_are_exact(cloche):
	run = cloche.py('''
import os
for name in (b'two\\nlines', b'cr\\rname', b'back\\\\slash', b' lead', b'trail ', b'\\xff\\xfe', b'-', 'ü'.encode(),
		b'esc\\x1b[2J', b'<b>&"'):
	os.close(os.open(b'/workspace/' + name, os.O_CREAT | os.O_WRONLY))
''')
	assert run.code == 0
	table = run.record.files()
	for name in ('two\nlines', 'cr\rname', 'back\\slash', ' lead', 'trail ', '-', 'ü', 'esc\x1b[2J', '<b>&"'):
		assert table[f'/workspace/{name}']['created'], name
	[odd] = [event for event in run.record.events('file.open') if 'path_b64' in event]
	assert odd['path'] == '/workspace/\ufffd\ufffd'
	assert odd['path_b64'] == base64.b64encode(b'/workspace/\xff\xfe').decode()


def test_views_filter_noise_and_lift_it(cloche):
	run = cloche.sh('cat /proc/self/status >/dev/null; cat /etc/passwd >/dev/null')
	assert run.code == 0
	plain, all_of_it = run.record.files(), run.record.files('--noise')
	assert not [path for path in plain if path.startswith(('/proc/', '/sys/', '/dev/')) or '.so' in path]
	assert any(path.endswith('/status') for path in all_of_it)
	assert any('libc.so.6' in path for path in all_of_it)
	assert set(plain) < set(all_of_it)
