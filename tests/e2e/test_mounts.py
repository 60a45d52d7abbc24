# SPDX-License-Identifier: Apache-2.0
"""Mounted folders of the host: what is told of them (mount.*), with the bytes that went through each open file."""
import collections
import errno
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

import deny
from harness import PYTHON, wait_for

AT = '/data'
NAMES = ('path', 'from', 'to')


@pytest.fixture
def folder(tmp_path):
	(tmp_path / 'data').mkdir()
	(tmp_path / 'data' / 'ten').write_text('0123456789')
	return tmp_path / 'data'


@pytest.fixture(params=['rw', 'cow'])
def mounted(cloche, folder, request):
	"""Runs Python in the mounted folder."""
	def run(code, *args, options=()):
		return cloche.py(code, *args, options=('-m', f'{folder}:{AT}:{request.param}', '-w', AT, *options))
	return run


def of_mounts(record):
	return [event for event in record.events() if event['kind'].startswith('mount.') and not event.get('directory')]


def closes(record):
	"""path -> its closes, as (bytes read, bytes written)"""
	told = collections.defaultdict(list)
	for event in record.events('mount.close'):
		told[event['path'].removeprefix(f'{AT}/')].append((event['bytes_read'], event['bytes_written']))
	return {path: sorted(counts) for path, counts in told.items()}


def test_what_is_done_on_a_mount_is_told(mounted):
	run = mounted('''
import os
open('ten').read()
with open('new', 'w') as f: f.write('12345')
os.mkdir('d'); os.rename('new', 'd/moved'); os.truncate('d/moved', 2); os.symlink('ten', 'link'); os.link('ten', 'hard')
os.unlink('hard'); os.unlink('d/moved'); os.rmdir('d')
try: open('not there')
except FileNotFoundError: pass
os.close(os.open('ten', os.O_PATH)); open('/tmp/elsewhere', 'w').write('x'); open('/usr/bin/env', 'rb').read(1)
''')
	assert run.code == 0, run
	told = [(event['kind'].removeprefix('mount.'), *[event[name].removeprefix(f'{AT}/') for name in NAMES if name in event])
		for event in run.record.events() if event['kind'].startswith('mount.') and event['kind'] != 'mount.close']
	assert told == [('open', 'ten'), ('create', 'new'), ('mkdir', 'd'), ('rename', 'new', 'd/moved'), ('truncate', 'd/moved'),
		('create', 'link'), ('create', 'hard'), ('delete', 'hard'), ('delete', 'd/moved'), ('delete', 'd')]
	assert closes(run.record) in ({'ten': [(10, 0)], 'new': [(0, 5)]}, {'ten': [(10, 0)], 'd/moved': [(0, 5)]})
	for event in of_mounts(run.record):
		assert event['pid'] > 1 and event['exec'] == run.record.row()['exec'], event
	assert run.record.show()['complete'] is True
	assert 'mounts' in run.record.show()['observed']['sources']


def test_every_way_to_read_and_write_is_counted(mounted):
	run = mounted('''
import os, ctypes, socket
R = lambda: os.open('ten', os.O_RDONLY)
W = lambda name: os.open(name, os.O_CREAT | os.O_RDWR, 0o644)
def both(name, work): a, b = R(), W(name); work(a, b); os.close(a); os.close(b)
both('write', lambda a, b: os.write(b, os.read(a, 3)))
both('pwrite', lambda a, b: os.pwrite(b, os.pread(a, 4, 2), 1))
both('writev', lambda a, b: os.writev(b, [b'x' * os.readv(a, [bytearray(2), bytearray(3)]), b'y']))
both('pwritev', lambda a, b: os.pwritev(b, [b'z' * os.preadv(a, [bytearray(6)], 1)], 5))
both('pwritev2', lambda a, b: os.pwritev(b, [b'q' * os.preadv(a, [bytearray(7)], 0, os.RWF_HIPRI)], 0, os.RWF_SYNC))
both('copy_file_range', lambda a, b: os.copy_file_range(a, b, 8))
both('sendfile', lambda a, b: os.sendfile(b, a, 0, 9))
def splice(a, b):
	r, w = os.pipe()
	os.splice(a, w, 10); os.splice(r, b, 10)
both('splice', splice)
def read_only(a, b): os.read(a, 100); os.read(a, 100)
both('nothing', read_only)
''')
	assert run.code == 0, run
	told = closes(run.record)
	assert told.pop('ten') == [(n, 0) for n in (3, 4, 5, 6, 7, 8, 9, 10, 10)]
	assert told == {'write': [(0, 3)], 'pwrite': [(0, 4)], 'writev': [(0, 6)], 'pwritev': [(0, 6)], 'pwritev2': [(0, 7)],
		'copy_file_range': [(0, 8)], 'sendfile': [(0, 9)], 'splice': [(0, 10)], 'nothing': [(0, 0)]}
	entry = run.record.file(f'{AT}/sendfile')
	assert (entry['bytes_read'], entry['bytes_written'], entry['written'], entry['created']) == (0, 9, True, True)
	assert run.record.file(f'{AT}/ten')['bytes_read'] == 62


def test_memory_maps_and_requests_in_the_background_are_said(mounted):
	run = mounted('''
import mmap, os, ctypes, struct
def mapped(name, flags, access, work):
	fd = os.open(name, flags | os.O_CREAT, 0o644)
	if flags: os.ftruncate(fd, 4096)
	m = mmap.mmap(fd, 0, access=access); os.close(fd); work(m); m.close()
mapped('ten', os.O_RDONLY, mmap.ACCESS_READ, lambda m: m[:4])
def put(m): m[:5] = b'hello'
mapped('shared', os.O_RDWR, mmap.ACCESS_WRITE, put)
mapped('private', os.O_RDWR, mmap.ACCESS_COPY, put)
fd = os.open('aio', os.O_CREAT | os.O_RDWR, 0o644)
libc = ctypes.CDLL(None, use_errno=True)
context = ctypes.c_ulong(0)
assert libc.syscall(206, 8, ctypes.byref(context)) == 0
data = ctypes.create_string_buffer(b'12345678')
request = ctypes.create_string_buffer(struct.pack('<QIIHhIQQqQII', 0, 0, 0, 1, 0, fd, ctypes.addressof(data), 8, 0, 0, 0, 0))
assert libc.syscall(209, context, 1, ctypes.byref(ctypes.c_void_p(ctypes.addressof(request)))) == 1
events = ctypes.create_string_buffer(32)
assert libc.syscall(208, context, 1, 1, events, None) == 1 and os.pread(fd, 9, 0) == b'12345678'
os.close(fd)
''')
	assert run.code == 0, run
	told = {event['path'].removeprefix(f'{AT}/'): event for event in run.record.events('mount.close')}
	assert {name: event.get('mapped') for name, event in told.items()} == {
		'ten': 'read', 'shared': 'write', 'private': 'read', 'aio': None}
	assert {name for name, event in told.items() if event.get('asynchronous')} == {'aio'}
	assert (told['shared']['bytes_written'], told['aio']['bytes_written'], told['aio']['bytes_read']) == (0, 0, 8)


def test_an_open_file_is_told_once_whoever_has_it(mounted):
	"""Descriptors made by dup and fork are one open file; two opens of one file at once are two."""
	run = mounted('''
import os, sys
one = os.open('one', os.O_CREAT | os.O_WRONLY)
two = os.dup(one)
os.write(one, b'abc'); os.write(two, b'de'); os.close(one)
if os.fork() == 0:
	os.write(two, b'from the child'); os._exit(0)
os.wait(); os.close(two)
a = os.open('twice', os.O_CREAT | os.O_WRONLY)
children = []
for n in (10, 20, 30):
	if os.fork() == 0:
		own = os.open('twice', os.O_WRONLY | os.O_APPEND); os.write(own, b'x' * n); os._exit(0)
	os.wait()
	os.write(a, b'y')
os.write(a, b'z' * 40); os.close(a)
''')
	assert run.code == 0, run
	assert closes(run.record) == {'one': [(0, 19)], 'twice': [(0, 10), (0, 20), (0, 30), (0, 43)]}
	made = {event['path']: event['pid'] for event in run.record.events('mount.create')}
	[one] = [event for event in run.record.events('mount.close') if event['path'] == f'{AT}/one']
	assert one['pid'] == made[f'{AT}/one']
	entry = run.record.file(f'{AT}/twice')
	assert entry['bytes_written'] == 103 and len(entry['processes']) == 4


def test_each_of_many_opens_of_one_file_has_its_own_count(mounted):
	run = mounted('''
import os
for i in range(3000):
	f = os.open(f'f{i % 7}', os.O_CREAT | os.O_WRONLY); os.write(f, b'x' * (i + 1)); os.close(f)
held = [os.open('ten', os.O_RDONLY) for _ in range(300)]
for i, f in enumerate(held): os.pread(f, i % 10, 0)
''')
	assert run.code == 0, run
	told = closes(run.record)
	assert told.pop('ten') == sorted((i % 10, 0) for i in range(300))
	assert {path: counts for path, counts in told.items()} == {
		f'f{k}': [(0, i + 1) for i in range(3000) if i % 7 == k] for k in range(7)}
	assert run.record.show()['complete'] is True


def test_a_file_that_moves_or_goes_while_it_is_open(mounted):
	run = mounted('''
import os, time
os.mkdir('old')
a = os.open('old/a', os.O_CREAT | os.O_WRONLY); b = os.open('b', os.O_CREAT | os.O_WRONLY); c = os.open('c', os.O_CREAT | os.O_WRONLY)
open('over', 'w').write('123'); time.sleep(0.1)
os.rename('old', 'new'); os.unlink('b'); os.rename('over', 'c')
for n, f in enumerate((a, b, c)): os.write(f, b'x' * (n + 1)); os.close(f)
''')
	assert run.code == 0, run
	told = {(event['path'].removeprefix(f'{AT}/'), event.get('path_state'), event['bytes_written'])
		for event in run.record.events('mount.close')}
	assert told == {('new/a', None, 1), ('b', 'deleted', 2), ('c', 'deleted', 3), ('over', None, 3)}
	files = run.record.files()
	assert {name: files[f'{AT}/{name}'].get('bytes_written') for name in ('new/a', 'b', 'c')} == {'new/a': 1, 'b': 2, 'c': 6}


def test_one_row_a_file_in_the_views(mounted):
	code = '''
import os
open('w.tmp', 'w').write('12'); os.rename('w.tmp', 'w'); open('ten').read(); os.mkdir('d'); open('gone', 'w').close(); os.unlink('gone')
'''
	both = mounted(code).record
	assert [(row['change'], row['path']) for row in both.json('timeline') if row['what'] == 'change' and row['path'].startswith(AT)] == \
		[('created', f'{AT}/w.tmp'), ('renamed', f'{AT}/w.tmp'), ('created', f'{AT}/d'), ('created', f'{AT}/gone'),
			('deleted', f'{AT}/gone')]
	assert (both.file(f'{AT}/w')['bytes_written'], both.file(f'{AT}/ten')['bytes_read']) == (2, 10)


def test_mounts_alone_are_enough_for_the_views(cloche, folder):
	code = '''
import os
open('w.tmp', 'w').write('12'); os.rename('w.tmp', 'w'); open('ten').read(); os.mkdir('d'); os.unlink('ten'); os.symlink('w', 'l')
open('/tmp/elsewhere', 'w').close()
'''
	run = cloche.py(code, options=('-m', f'{folder}:{AT}:cow', '-w', AT, '--trace-sources', 'mounts'))
	kinds = {event['kind'] for event in run.record.events()}
	assert not any(kind.startswith(('file.', 'dir.')) for kind in kinds), kinds
	files = run.record.files()
	assert set(files) == {f'{AT}/{name}' for name in ('w', 'w.tmp', 'ten', 'd', 'l')}
	assert files[f'{AT}/w']['written'] and files[f'{AT}/w']['renamed_from'] == f'{AT}/w.tmp' and files[f'{AT}/d']['directory']
	assert files[f'{AT}/ten']['deleted'] and files[f'{AT}/ten']['read'] and files[f'{AT}/l']['created']
	assert run.record.show()['observed']['sources'] == ['mounts', 'network'] or \
		run.record.show()['observed']['sources'] == ['mounts']


def test_nothing_is_told_where_it_was_not_asked_for(cloche, folder):
	run = cloche.py("open('ten').read()", options=('-m', f'{folder}:{AT}:ro', '-w', AT, '--trace-sources', 'processes,files'))
	assert of_mounts(run.record) == [] and run.record.file(f'{AT}/ten')['read']


def test_folders_of_path_are_no_mounts_of_the_users(cloche, tmp_path):
	tools = tmp_path / 'tools'
	tools.mkdir()
	(tools / 'tool').write_text('#!/bin/sh\necho from the tool\n')
	(tools / 'tool').chmod(0o755)
	run = cloche.sh('tool', env={'PATH': f'{tools}:/usr/bin:/bin'})
	assert run.out == 'from the tool\n', run
	assert [event for event in of_mounts(run.record) if 'tool' in event['path']] == []


def test_read_only_folder_and_single_file(cloche, folder):
	(folder / 'one').write_text('single')
	run = cloche.py('''
import os
print(open('ten').read(), open('/etc/one').read())
for path in ('new', 'ten', '/etc/one'):
	try: open(path, 'w')
	except OSError as e: print(path, e.errno)
''', options=('-m', f'{folder}:{AT}:ro', '-m', f'{folder}/one:/etc/one:ro', '-w', AT))
	assert run.out.splitlines() == ['0123456789 single', f'new {errno.EROFS}', f'ten {errno.EROFS}', f'/etc/one {errno.EROFS}'], run
	told = [(event['kind'], event['path'], event.get('result')) for event in of_mounts(run.record)]
	assert sorted(told, key=str) == sorted([('mount.open', f'{AT}/ten', None), ('mount.open', '/etc/one', None),
		('mount.open', f'{AT}/new', 'EROFS'), ('mount.open', f'{AT}/ten', 'EROFS'), ('mount.open', '/etc/one', 'EROFS'),
		('mount.close', f'{AT}/ten', None), ('mount.close', '/etc/one', None)], key=str)


def test_a_program_that_is_run_from_a_mount(mounted):
	run = mounted('''
import os, shutil, subprocess
shutil.copy('/bin/true', 'tool'); subprocess.run(['./tool'], check=True)
open('script', 'w').write('#!/bin/sh\\necho from a script\\n'); os.chmod('script', 0o755); subprocess.run(['./script'], check=True)
''')
	assert run.out == 'from a script\n', run
	opened = [(event['path'], event['access']) for event in run.record.events('mount.open')]
	assert (f'{AT}/tool', 'exec') in opened and (f'{AT}/script', 'read') in opened
	assert not [event for event in of_mounts(run.record) if event.get('witness')]


def test_an_open_from_outside_is_seen_by_the_witness(sandbox, folder):
	(folder / 'other').write_text('before')
	box = sandbox('--trace', '-m', f'{folder}:{AT}:rw')
	process = box.start('/bin/sleep', '20')
	[sleep] = wait_for(lambda: [pid for pid in box.cloche.processes('20', 'sleep')
		if pathlib.Path(f'/proc/{pid}/cgroup').read_text().find(box.id) >= 0], 'the sleep inside')
	assert pathlib.Path(f'/proc/{sleep}/root{AT}/ten').read_text() == '0123456789'
	with open(f'/proc/{sleep}/root{AT}/other', 'r+', encoding='utf-8') as file:
		file.write('x')
	[made] = wait_for(lambda: [event for event in box.record.events('mount.close') if event['path'] == f'{AT}/other'],
		'the second witness to tell')
	assert (made['witness'], made['entered'], made['access'], made.get('pid')) == (True, True, 'write', None)
	assert [event['access'] for event in box.record.events('mount.open') if event['path'] == f'{AT}/ten'] == ['read']
	assert box.record.file(f'{AT}/other')['written']
	assert box.record.show()['complete'] is True
	process.kill()
	process.wait()


def test_a_file_that_is_open_when_the_sandbox_ends(cloche, folder):
	"""Killed with its process; or handed out of the sandbox, so that it is open still."""
	listener = socket.socket(socket.AF_UNIX)
	listener.bind(str(folder / 'socket'))
	os.chmod(folder / 'socket', 0o777)
	listener.listen()
	box = cloche.create('--trace', '-m', f'{folder}:{AT}:rw')
	process = box.start(PYTHON, '-c', '''
import os, socket, time
out = os.open('/data/out', os.O_CREAT | os.O_WRONLY); os.write(out, b'1234')
kept = os.open('/data/kept', os.O_CREAT | os.O_WRONLY); os.write(kept, b'12')
s = socket.socket(socket.AF_UNIX); s.connect('/data/socket'); socket.send_fds(s, [b'x'], [out]); time.sleep(60)
''')
	peer, _ = listener.accept()
	_, [out], _, _ = socket.recv_fds(peer, 1, 1)
	assert cloche.call('stop', box.id).code == 0
	process.wait()
	told = {event['path']: event for event in box.record.events('mount.close')}
	assert {path: (event['bytes_written'], event.get('open_at_end')) for path, event in told.items()} == {
		f'{AT}/out': (4, True), f'{AT}/kept': (2, None)}
	os.close(out)
	listener.close()
	box.remove()


def test_a_kernel_without_fanotify_is_said(cloche, folder, tmp_path):
	def call(*args):
		done = subprocess.run([cloche.program, *args], env=cloche.env(), cwd=folder, capture_output=True, text=True, check=False,
			timeout=60, preexec_fn=deny.without(fanotify_init=errno.ENOSYS))
		return done

	done = call('run', '--id-file', str(tmp_path / 'id'), '-m', f'{folder}:{AT}:rw', '-w', AT, '--', PYTHON, '-c',
		"open('new', 'w').write(open('ten').read())")
	assert done.returncode == 0, done
	assert 'mounts are not watched by a witness' in done.stderr and 'fanotify' in done.stderr
	record = cloche.call('events', (tmp_path / 'id').read_text().strip(), '--jsonl').out
	events = [json.loads(line) for line in record.splitlines()]
	assert {(e['kind'], e['path']) for e in events if e['kind'].startswith('mount.')} == \
		{('mount.open', f'{AT}/ten'), ('mount.create', f'{AT}/new')}
	[blind] = [e for e in events if e['kind'] == 'trace.blind']
	assert blind['source_lost'] == 'mounts'
	doctor = call('doctor')
	assert 'mounts (fanotify)' in doctor.stdout and 'built without fanotify' in doctor.stdout, doctor


def test_more_events_than_the_kernel_keeps_are_said(sandbox, folder):
	"""With the supervisor stopped nothing is read: what overflows is told, and each close all the same."""
	queue = int(pathlib.Path('/proc/sys/fs/fanotify/max_queued_events').read_text())
	box = sandbox('--on-loss', 'continue', '--trace-sources', 'mounts', '-m', f'{folder}:{AT}:rw')
	process = box.start(PYTHON, '-S', '-c', '''
import os, sys, time
held = os.open('/data/held', os.O_CREAT | os.O_WRONLY); os.write(held, b'123456'); os.mkdir('/data/many')
for i in range(500): os.close(os.open(f'/data/many/{i}', os.O_CREAT | os.O_WRONLY))
open('/data/ready', 'w').close()
while not os.path.exists('/data/go'): time.sleep(0.01)
os.close(held)
for _ in range(int(sys.argv[1]) // 500 + 2):
	if os.fork() == 0:
		for i in range(500): os.close(os.open(f'/data/many/{i}', os.O_RDONLY))
		os._exit(0)
	os.wait()
open('/data/done', 'w').close()
''', str(queue))
	wait_for((folder / 'ready').exists, 'the command to be ready', 30)
	time.sleep(0.2)
	[supervisor] = box.supervisor()
	os.kill(supervisor, signal.SIGSTOP)
	try:
		(folder / 'go').touch()
		wait_for((folder / 'done').exists, 'all files to be opened', 60)
	finally:
		os.kill(supervisor, signal.SIGCONT)
	assert process.wait(60) == 0
	reasons = {event['reason'] for event in box.record.events('trace.blind')}
	assert "the witness of mounts lost events: the kernel's queue was full" in reasons
	assert box.record.show()['complete'] is False
	[held] = [event for event in box.record.events('mount.close') if event['path'] == f'{AT}/held']
	assert held['bytes_written'] == 6


def test_a_storm_of_opens_is_told_whole(sandbox, folder):
	"""As many as the supervisor cannot follow: each open and close is told once, none by the second witness alone."""
	box = sandbox('--trace-sources', 'mounts', '-m', f'{folder}:{AT}:rw')
	run = box.py('''
import os
for i in range(200): os.close(os.open(f's{i}', os.O_CREAT | os.O_WRONLY))
for _ in range(4):
	if os.fork() == 0:
		for i in range(6000): f = os.open(f's{i % 200}', os.O_RDWR); os.write(f, b'xy'); os.close(f)
		os._exit(0)
for _ in range(4): os.wait()
''', options=('-w', AT))
	assert run.code == 0, run
	told = collections.Counter(event['kind'] for event in of_mounts(box.record))
	assert told == {'mount.create': 200, 'mount.open': 24_000, 'mount.close': 24_200}, told
	assert not [event for event in of_mounts(box.record) if event.get('witness')]
	assert sum(event['bytes_written'] for event in box.record.events('mount.close')) == 48_000
	assert box.record.show()['complete'] is True
