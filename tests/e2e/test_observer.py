# SPDX-License-Identifier: Apache-2.0
"""The observer alone, without a box: what `trace` sees of one command in a cgroup of its own."""
import json
import os
import pathlib
import re
import subprocess

import pytest

import harness

TRACE = harness.BUILD / 'tests' / 'trace'
PYTHON = '/usr/bin/python3'

pytestmark = pytest.mark.skipif(not TRACE.exists(), reason='built without BPF')


class Seen:
	"""What one traced command gave: its events by kind, and the driver's counts."""

	def __init__(self, done):
		self.out, self.code, self.err = done.stdout, done.returncode, done.stderr.decode(errors='replace')
		self.events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b'{"v":1,')]
		counts = re.search(r'events (\d+) dropped (\d+) blind (\d+)', self.err)
		assert counts, self.err
		self.n_events, self.dropped, self.blind = map(int, counts.groups())

	def of(self, kind, **want):
		return [event for event in self.events if event['kind'] == kind
			and all(event.get(key) == value for key, value in want.items())]

	def paths(self, kind, folder, **want):
		return [event['path'] for event in self.of(kind, **want) if event['path'].startswith(f'{folder}/')]

	def program(self, name):
		return [event for event in self.of('process.exec') if 'result' not in event and event['path'].endswith(f'/{name}')]


@pytest.fixture
def trace(run_dir, tmp_path):
	"""Runs a command traced, in a folder of its own; its output goes to a file."""
	def run(*command, options=(), env=None):
		command = ('sh', '-c', f'exec "$@" >{tmp_path}.output 2>{tmp_path}.errors </dev/null', 'sh', *command)
		done = subprocess.run([TRACE, *options, *command], capture_output=True, check=False, cwd=tmp_path, timeout=60,
			env={**harness.CLEAN_ENV, 'CLOCHE_RUN': str(run_dir), **(env or {})})
		assert 'trace:' not in done.stderr.decode(errors='replace'), done.stderr
		return Seen(done)
	return run


@pytest.fixture
def py(trace):
	return lambda code, *args, **more: trace(PYTHON, '-S', '-c', code, *args, **more)


def test_thread_that_execs_keeps_the_process_id(py):
	seen = py('''
import threading, os, time
threading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', '/bin/true; exit 9'])).start(); time.sleep(30)
''')
	[python] = seen.program('python3.11')
	shells = [e for e in seen.program('dash') if e['argv'][0] == 'sh' and 'exit 9' in e['argv'][-1] and len(e['argv']) == 3]
	assert [e['pid'] for e in shells] == [python['pid']] and seen.code == 9
	assert len(seen.of('process.exit', pid=python['pid'])) == 1
	assert seen.of('process.exit', pid=python['pid'])[0]['code'] == 9
	assert [e['ppid'] for e in seen.program('true')] == [python['pid']]


@pytest.mark.parametrize('argv', [['a', ''], ['', 'b'], ['a', '', 'b'], [''], []])
def test_empty_arguments_are_kept(trace, argv):
	[echo] = trace('/bin/echo', *argv).program('echo')
	assert echo['argv'] == ['/bin/echo', *argv]


@pytest.mark.parametrize('argv', [['A' * 120_000, 'tail'], [f'x{i}' for i in range(3000)], ['B' * 12_287, ''], ['C' * 50_000] * 4])
def test_long_arguments_are_whole(py, argv):
	seen = py(f"import os; os.execv('/bin/true', {['true', *argv]!r})" if len(str(argv)) < 100_000 else
		"import os; os.execv('/bin/true', ['true'] + " + ("['A' * 120000, 'tail']" if len(argv) == 2 else "['C' * 50000] * 4") + ')')
	[true] = seen.program('true')
	assert true['argv'] == ['true', *argv] and 'argv_truncated' not in true


def test_more_arguments_than_are_kept_are_counted(py):
	seen = py("import os; os.execv('/bin/true', ['true'] + ['D' * 100000] * 10)")
	[true] = seen.program('true')
	assert true['argv_truncated'] and true['argv_count'] == 11 and true['argv_bytes'] == 5 + 10 * 100_001
	assert true['argv'][:3] == ['true', 'D' * 100_000, 'D' * 100_000]


@pytest.mark.parametrize('path, result', [('/no/such/prog', 'ENOENT'), ('./plain', 'EACCES'), ('./junk', 'ENOEXEC'), ('/etc', 'EACCES')])
def test_failed_exec_has_its_path_and_arguments(py, tmp_path, path, result):
	(tmp_path / 'plain').write_text('hi')
	(tmp_path / 'junk').write_text('junk')
	(tmp_path / 'junk').chmod(0o755)
	seen = py(f'''
import os
try: os.execv({path!r}, [{path!r}, 'x', '', 'y'])
except OSError: pass
''')
	[failed] = [e for e in seen.of('process.exec', result=result) if e['argv'][0] == path]
	assert failed['argv'] == [path, 'x', '', 'y']
	assert failed['path'] == os.path.normpath(tmp_path / path)


def test_program_path_is_the_file_that_ran(trace, tmp_path):
	(tmp_path / 'bin').mkdir()
	seen = trace('sh', '-c', 'cp /bin/true bin/t; ln -s bin/t lnk; ./bin/t 1; bin/../bin/t 2; ./lnk 3; cd bin; ../lnk 4; '
		'/proc/self/cwd/t 5; env -C / PATH=$PWD t 6')
	assert [(e['path'], e['argv'][1]) for e in seen.program('t')] == [(f'{tmp_path}/bin/t', str(i)) for i in range(1, 7)]


def test_every_short_program_has_start_and_end(trace):
	seen = trace('sh', '-c', 'for w in 1 2 3 4; do (i=0; while [ $i -lt 100 ]; do /bin/true w$w $i; i=$((i+1)); done) & done; wait')
	ran = seen.program('true')
	assert sorted(tuple(e['argv'][1:]) for e in ran) == sorted((f'w{w}', str(i)) for w in range(1, 5) for i in range(100))
	ended = {e['pid']: e for e in seen.of('process.exit')}
	assert all(ended[e['pid']]['code'] == 0 for e in ran) and seen.dropped == 0


def test_programs_without_a_name(py):
	seen = py('''
import os
d = open('/bin/true', 'rb').read(); f = os.memfd_create('kthreadd', 0); os.write(f, d)
if os.fork() == 0: os.execve(f, ['[kworker/1:0]', 'x'], {})
os.wait()
open('t3', 'wb').write(d); os.chmod('t3', 0o755); g = os.open('t3', os.O_RDONLY); os.unlink('t3')
if os.fork() == 0: os.execve(g, ['gone'], {})
os.wait()
''')
	[memory] = seen.of('process.exec', path_state='memory')
	assert memory['path'] == 'memfd:kthreadd' and memory['argv'] == ['[kworker/1:0]', 'x']
	[gone] = seen.of('process.exec', path_state='deleted')
	assert gone['path'].endswith('/t3') and gone['argv'] == ['gone']


def test_exit_codes_and_signals(trace):
	seen = trace('sh', '-c', "sh -c 'exit 137'; sh -c 'kill -9 $$'; sh -c 'kill -15 $$'; sh -c 'exit 255'; kill -9 $$")
	assert [(e.get('code'), e.get('signal')) for e in seen.of('process.exit')] == \
		[(137, None), (None, 9), (None, 15), (255, None), (None, 9)]


def test_recursive_delete(trace, tmp_path):
	seen = trace('sh', '-c', 'mkdir -p t/a/b/c && touch t/top t/a/f1 t/a/b/f2 t/a/b/c/f3 && rm -rf t')
	files = [f'{tmp_path}/t/{p}' for p in ('top', 'a/f1', 'a/b/f2', 'a/b/c/f3')]
	folders = [f'{tmp_path}/t{p}' for p in ('', '/a', '/a/b', '/a/b/c')]
	assert sorted(seen.paths('file.open', tmp_path, created=True)) == sorted(files)
	assert sorted(e['path'] for e in seen.of('dir.create') if 'result' not in e) == folders
	deleted = [e for e in seen.of('file.delete') if 'result' not in e]
	assert sorted(e['path'] for e in deleted if not e.get('directory')) == sorted(files)
	assert sorted(e['path'] for e in deleted if e.get('directory')) == folders


def test_names_relative_to_a_descriptor(py, tmp_path):
	seen = py('''
import os
base = os.getcwd()
os.makedirs('r18/x'); os.chdir('/'); d = os.open(base + '/r18', os.O_DIRECTORY | os.O_PATH)
for n in ('rel', 'x/../rel2', base + '/abs18'): os.close(os.open(n, os.O_CREAT | os.O_WRONLY, dir_fd=d))
os.mkdir('m', dir_fd=d); os.rename('rel', 'rel3', src_dir_fd=d, dst_dir_fd=d); os.unlink('rel2', dir_fd=d)
os.symlink('rel3', 's', dir_fd=d); os.link('rel3', 'h', src_dir_fd=d, dst_dir_fd=d)
os.rename(base + '/r18', base + '/r18b'); os.close(os.open('late', os.O_CREAT | os.O_WRONLY, dir_fd=d))
os.close(os.open(f'/proc/self/fd/{d}/byfd', os.O_CREAT | os.O_WRONLY)); os.unlink(f'/proc/self/fd/{d}/byfd')
os.rename(f'/proc/self/fd/{d}/late', f'/proc/self/fd/{d}/later')
''')
	b = str(tmp_path)
	assert seen.paths('file.open', b, created=True) == [f'{b}/r18/rel', f'{b}/r18/rel2', f'{b}/abs18', f'{b}/r18b/late', f'{b}/r18b/byfd']
	assert seen.of('dir.create')[-1]['path'] == f'{b}/r18/m'
	assert [(e['from'], e['to']) for e in seen.of('file.rename')] == \
		[(f'{b}/r18/rel', f'{b}/r18/rel3'), (f'{b}/r18', f'{b}/r18b'), (f'{b}/r18b/late', f'{b}/r18b/later')]
	assert [e['path'] for e in seen.of('file.delete')] == [f'{b}/r18/rel2', f'{b}/r18b/byfd']
	[soft, hard] = seen.of('file.link')
	assert (soft['path'], soft['target'], soft['symbolic']) == (f'{b}/r18/s', 'rel3', True)
	assert (hard['path'], hard['target'], 'symbolic' in hard) == (f'{b}/r18/h', f'{b}/r18/rel3', False)


def test_links_in_names_are_followed(trace, tmp_path):
	seen = trace('sh', '-c', 'ln -s /etc e; ln -s e/passwd p1; ln -s p1 p2; cat p2; cat /proc/self/root/etc/group; '
		'cat /proc/$$/cwd/e/hostname; mkdir real; ln -s real via; echo > via/f; rm via/f; cat via/none; echo > via/../g; rm via/../g')
	read = seen.paths('file.open', '/etc', access='read')
	assert {'/etc/passwd', '/etc/group', '/etc/hostname'} <= set(read)
	assert not [e for e in seen.of('file.open') if 'result' not in e and e['path'].endswith(('/p1', '/p2', 'root/etc/group'))]
	assert [e['path'] for e in seen.of('file.delete')] == [f'{tmp_path}/real/f', f'{tmp_path}/g']
	assert f'{tmp_path}/real/none' in [e['path'] for e in seen.of('file.open', result='ENOENT')]


def test_ways_to_change_a_file(py, tmp_path):
	seen = py('''
import os, ctypes
L = ctypes.CDLL(None)
f = os.open('f', os.O_CREAT | os.O_RDWR, 0o644)
os.truncate('f', 1); os.ftruncate(f, 99)
how = (ctypes.c_ulonglong * 3)(os.O_CREAT | os.O_WRONLY, 0o600, 0); assert L.syscall(437, -100, b'oa2', how, 24) > 0
os.mkfifo('ff'); assert L.syscall(133, b'node', 0o100644, 0) == 0
os.chmod('f', 0o600); os.fchmod(f, 0o640); os.chown('f', 1, 2); os.chown(f, -1, 3)
try: os.setxattr('f', 'user.x', b'1')
except OSError: pass
os.rename('f', 'g')
open('h', 'w'); os.rename('g', 'h')
L.syscall(316, -100, b'h', -100, b'oa2', 2)
os.close(os.open('h', os.O_RDONLY | os.O_PATH)); open('h', 'w')
''')
	b = str(tmp_path)
	def opened(name):
		return [{k: e[k] for k in ('access', 'create', 'created', 'truncate', 'type') if k in e}
			for e in seen.of('file.open', path=f'{b}/{name}')]
	assert opened('f') == [{'access': 'read_write', 'create': True, 'created': True}]
	assert opened('oa2') == [{'access': 'write', 'create': True, 'created': True}]
	assert opened('ff') == [{'access': 'none', 'create': True, 'created': True, 'type': 'fifo'}]
	assert opened('node') == [{'access': 'none', 'create': True, 'created': True}]
	assert opened('h') == [{'access': 'write', 'create': True, 'created': True}, {'access': 'path'},
		{'access': 'write', 'create': True, 'truncate': True}]
	assert [(e['path'], e['size']) for e in seen.of('file.truncate')] == [(f'{b}/f', 1), (f'{b}/f', 99)]
	assert [(e['what'], e.get('mode'), e.get('owner'), e.get('group'), e.get('name')) for e in seen.of('file.mode', path=f'{b}/f')] == [
		('mode', 0o600, None, None, None), ('mode', 0o640, None, None, None), ('owner', None, 1, 2, None),
		('owner', None, None, 3, None), ('xattr', None, None, None, 'user.x')]
	assert [(e['from'], e['to'], e.get('replaced'), e.get('exchange')) for e in seen.of('file.rename')] == [
		(f'{b}/f', f'{b}/g', None, None), (f'{b}/g', f'{b}/h', True, None), (f'{b}/h', f'{b}/oa2', None, True)]


def test_long_and_deep_paths(py, tmp_path):
	seen = py('''
import os
base = os.getcwd()
def mk(n, c):
	p = base + '/x'
	while len(p) + c + 1 < n: p += '/' + 'k' * c
	os.makedirs(p, exist_ok=True); open(p + '/F', 'w').write('x')
mk(300, 40); mk(1100, 100); mk(3900, 200); mk(420, 1)
os.chdir(base + '/x')
for i in range(60): os.mkdir('D' * 99); os.chdir('D' * 99)
open('deep', 'w').write('x'); os.unlink('deep')
os.chdir(base)
''')
	found = subprocess.run(['find', tmp_path, '-name', 'F'], capture_output=True, check=True).stdout.decode().split()
	assert sorted(e['path'] for e in seen.of('file.open', created=True) if e['path'].endswith('/F')) == sorted(found)
	deep = f'{tmp_path}/x' + ('/' + 'D' * 99) * 60 + '/deep'
	[made] = [e for e in seen.of('file.open') if e['path'].endswith('/deep')]
	[gone] = [e for e in seen.of('file.delete') if e['path'].endswith('/deep')]
	assert made['path'] == deep and gone['path'] == deep
	subprocess.run(['rm', '-rf', tmp_path / 'x'], check=True)


def test_denied_and_absent(py, tmp_path):
	tmp_path.chmod(0o755)
	for folder in list(tmp_path.parents)[:2]:
		folder.chmod(0o755)
	seen = py('''
import os
os.mkdir('priv'); open('priv/key', 'w').write('s'); os.chmod('priv', 0o700); os.mkdir('ro'); os.chmod('ro', 0o555)
os.setgid(65534); os.setuid(65534)
for f in (lambda: open('priv/key'), lambda: open('/etc/shadow'), lambda: open('ro/new', 'w'), lambda: os.unlink('/etc/passwd'),
		lambda: os.chmod('/etc/passwd', 0o777), lambda: open('/nope/.aws/credentials')):
	try: f()
	except OSError as e: pass
''')
	b = str(tmp_path)
	failed = {(e['kind'], e['path']): e['result'] for e in seen.events if e.get('result') and 'path' in e}
	assert failed['file.open', f'{b}/priv/key'] == 'EACCES'
	assert failed['file.open', '/etc/shadow'] == 'EACCES'
	assert failed['file.open', f'{b}/ro/new'] == 'EACCES'
	assert failed['file.delete', '/etc/passwd'] == 'EACCES'
	assert failed['file.mode', '/etc/passwd'] == 'EPERM'
	assert failed['file.open', '/nope/.aws/credentials'] == 'ENOENT'


FILTER = '''
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.close(libc.open(b'first', os.O_CREAT | os.O_WRONLY, 0o600))
time.sleep(0.1)
def step(code, yes, no, k): return struct.pack('<HBBI', code, yes, no, k)
program = step(0x20, 0, 0, 0)
for number in (257, 2, 59, 87, 83): program += step(0x15, 0, 1, number) + step(6, 0, 0, 0x00050000 | int(sys.argv[1]))
program += step(6, 0, 0, 0x7fff0000)
text = ctypes.create_string_buffer(program)
header = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', len(program) // 8, ctypes.addressof(text)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, header, 0, 0) == 0
libc.open(b'never_made', os.O_CREAT | os.O_WRONLY, 0o600); libc.syscall(87, b'first')
libc.syscall(59, b'/bin/never_run', None, None); libc.syscall(83, b'no_folder', 0o755)
os._exit(0)
'''


@pytest.mark.parametrize('answer', [0, 13])
def test_own_filter_makes_no_ghosts(py, tmp_path, answer):
	seen = py(FILTER, str(answer))
	assert seen.code == 0
	told = [e for e in seen.events if e.get('path') in (f'{tmp_path}/never_made', f'{tmp_path}/no_folder', '/usr/bin/never_run')
		or (e['kind'] == 'file.delete' and e['path'] == f'{tmp_path}/first')]
	assert all(e.get('own_filter') and e['result'] == 'EACCES' for e in told)
	assert len(told) == (4 if answer else 0)


def test_old_call_gate_is_never_read_as_ours(py):
	seen = py('''
import mmap, ctypes, struct
m = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, prot=7); a = ctypes.addressof(ctypes.c_char.from_buffer(m))
# int 0x80 with number 87, which is swapon there and unlink here
m[512:521] = b'/etc/some' ; code = b'\\x53\\xb8\\x57\\0\\0\\0\\xbb' + struct.pack('<I', a + 512) + b'\\x31\\xc9\\xcd\\x80\\x5b\\xc3'; m[0:len(code)] = code
ctypes.CFUNCTYPE(ctypes.c_int)(a)()
''')
	assert not seen.of('file.delete')


def test_output_is_copied_then_counted(trace):
	seen = trace('sh', '-c', 'printf abc; printf oops >&2; echo in-file > f; (printf sub); exec head -c 3000000 /dev/zero')
	out = seen.of('process.output', stream='stdout')
	[shell] = [e for e in seen.program('dash') if 'printf abc' in e['argv'][2] and len(e['argv']) == 3]
	assert [(e['data'], e['bytes']) for e in out[:2]] == [('abc', 3), ('sub', 3)]
	assert [e['data'] for e in seen.of('process.output', stream='stderr')] == ['oops']
	assert all(e['file'] == shell['stdout_file'] for e in out)
	assert sum(len(e['data']) for e in out[2:] if 'data' in e) == 4000
	assert sum(e['bytes'] for e in out[2:]) == 3_000_000 and 'data' not in out[-1]


def test_loss_is_counted_to_the_last_one(py):
	seen = py('''
import os
for i in range(30000): os.close(os.open(f'n{i % 100}', os.O_CREAT | os.O_WRONLY))
''', env={'CLOCHE_RING_BYTES': '8192'})
	assert seen.dropped > 0
	got = len([e for e in seen.of('file.open') if re.search(r'/n\d+$', e['path'])])
	assert 30_000 <= got + seen.dropped <= 30_100
	assert sum(e['count'] for e in seen.of('trace.dropped')) == seen.dropped
	assert all(e['exec'] for e in seen.of('trace.dropped'))


WHILE_NOBODY_READS = """
import os
for i in range(60000): os.close(os.open(f'n{i % 100}', os.O_CREAT | os.O_WRONLY))
"""


def away(py, buffer_bytes):
	"""60,000 opens while the reader does not read for two seconds: how many of them it got, and what the driver said."""
	seen = py(WHILE_NOBODY_READS, options=('-b', str(buffer_bytes), '-d', '2000'))
	n_holds = int(re.search(r'holds (\d+)', seen.err).group(1))
	return len([e for e in seen.of('file.open') if re.search(r'/n\d+$', e['path'])]), seen.dropped, n_holds


def test_reader_that_is_away_loses_nothing(py):
	assert away(py, 64 << 20) == (60_000, 0, 0)


def test_reader_that_is_away_has_the_box_held_before_memory_is_full(py):
	got, dropped, n_holds = away(py, 8 << 20)
	assert (got, dropped) == (60_000, 0) and n_holds > 0


def test_refused_calls_are_told(py):
	seen = py('''
import ctypes, os
L = ctypes.CDLL(None)
os.setuid(65534)
for n, a in ((165, (b'a', b'/tmp', b'tmpfs', 0, 0)), (272, (0x20000,)), (321, (5, 0, 0)), (9999, (1, 2)), (435, (0, 0))): L.syscall(n, *a)
''')
	assert [(e['call'], e['result']) for e in seen.of('sandbox.refused')] == \
		[('mount', 'EPERM'), ('unshare', 'EPERM'), ('bpf', 'EPERM'), ('9999', 'ENOSYS')]
	assert seen.of('sandbox.refused')[1]['args'][0] == '0x20000'


def test_tracing_that_begins_as_another_ends_tells_all_once(trace, tmp_path):
	"""The kernel takes programs down some milliseconds after the last user has gone: two of one would tell everything twice."""
	for n in range(120):
		seen = trace('/bin/sh', '-c', f': > made{n}')
		assert [e['path'] for e in seen.of('file.open') if e['path'].endswith(f'/made{n}')] == [f'{tmp_path}/made{n}'], (n, seen.events)
		assert len(seen.of('process.exit')) == 1, (n, seen.events)


def test_what_a_dead_reader_left_is_salvaged(run_dir, tmp_path):
	def call(*args):
		return subprocess.run([TRACE, *args], capture_output=True, check=True, cwd=tmp_path, timeout=60,
			env={**harness.CLEAN_ENV, 'CLOCHE_RUN': str(run_dir)})
	pins = pathlib.Path(run_dir, 'bpf')
	call('-x', '/bin/sh', '-c', 'echo > made; exit 7')
	assert list(pins.glob('*/link_*')) and list(pins.glob('*/ring_*'))
	events = [json.loads(line) for line in call('-s').stdout.splitlines()]
	assert [e['path'] for e in events if e.get('created')] == [f'{tmp_path}/made'], events
	assert [e['code'] for e in events if e['kind'] == 'process.exit'] == [7]
	assert all(e['exec'] == 'ex_0000000000000000' and e['guest_ns'] > 0 for e in events)
	assert not list(pins.glob('*/link_*')) and not list(pins.glob('*/ring_*'))
	assert call('-s').stdout == b''


def test_nothing_stays_attached(run_dir, trace):
	trace('/bin/true')
	assert not list(pathlib.Path(run_dir, 'bpf').glob('*/link_*')) and not list(pathlib.Path(run_dir, 'bpf').glob('*/ring_*'))
