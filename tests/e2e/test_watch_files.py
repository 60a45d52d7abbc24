# SPDX-License-Identifier: Apache-2.0
"""What changes below a folder of a living sandbox, as it changes."""
import base64
import contextlib
import json
import os
import signal
import subprocess
import threading

import pytest
from harness import WORK, wait_for

LIMIT_S = 20


class Watcher:
	"""A running `cloche watch-files --jsonl`; lines as they come."""

	def __init__(self, cloche, *args):
		self.lines, self.said = [], []
		self.process = cloche.start('watch-files', '--jsonl', *args)
		self.threads = [threading.Thread(target=self.take, args=pair) for pair in
			((self.process.stdout, self.lines), (self.process.stderr, self.said))]
		for thread in self.threads:
			thread.start()
		wait_for(lambda: any(b'watching' in line for line in self.said) or self.process.poll() is not None, 'the watch to begin', LIMIT_S)
		assert self.process.poll() is None, self.said

	@staticmethod
	def take(stream, into):
		for line in stream:
			into.append(line)

	def changes(self):
		return [json.loads(line) for line in list(self.lines)]

	def short(self):
		"""`change path`, `change from path`, with what is special."""
		return [' '.join(filter(None, (c['change'], c.get('from'), c['path'], 'replaced' if c.get('replaced') else None,
			f"+{c['entries']}" if 'entries' in c else None))) for c in self.changes()]

	def until(self, *wanted):
		"""Exactly these since the last call, in any order."""
		wait_for(lambda: len(self.lines) >= len(wanted), f'{wanted}, has {self.short()}', LIMIT_S)
		assert sorted(self.short()) == sorted(wanted)
		got = self.changes()
		self.lines.clear()
		return got

	def ended(self):
		assert self.process.wait(LIMIT_S) == 0, self.said
		for thread in self.threads:
			thread.join()

	def stop(self):
		if self.process.poll() is None:
			self.process.send_signal(signal.SIGTERM)
			self.process.wait(LIMIT_S)
		for thread in self.threads:
			thread.join()
		self.process.stdout.close()
		self.process.stderr.close()


@pytest.fixture
def watch(cloche):
	with contextlib.ExitStack() as stack:
		def begin(*args):
			watcher = Watcher(cloche, *args)
			stack.callback(watcher.stop)
			return watcher
		yield begin


def test_one_line_a_settled_change(box, watch):
	seen = watch(box.id, WORK)
	box.sh('for i in 1 2 3 4 5; do echo $i >> a; done; mkdir d; echo x > d/x')
	[a, *_] = sorted(seen.until(f'created {WORK}/a', f'created {WORK}/d', f'created {WORK}/d/x'), key=lambda c: c['path'])
	assert {key: a[key] for key in ('change', 'path', 'type', 'size', 'mode', 'owner')} == {
		'change': 'created', 'path': f'{WORK}/a', 'type': 'file', 'size': 10, 'mode': '0644', 'owner': '0:0'}
	assert a['at'].endswith('Z') and 'links' not in a and 'replaced' not in a
	box.sh('echo n > .tmp; mv .tmp a; mv d/x y; chmod 600 y')
	seen.until(f'written {WORK}/a replaced', f'renamed {WORK}/d/x {WORK}/y', f'mode {WORK}/y')
	box.sh('mkdir -p d/e; echo 1 > d/e/1; echo 2 > d/e/2; : > short; rm short')
	seen.until(*(f'created {WORK}/d/e{name}' for name in ('', '/1', '/2')))
	box.sh('mv d moved; rm -r moved')
	seen.until(f'renamed {WORK}/d {WORK}/moved', f'deleted {WORK}/moved +3')


def test_paused_and_woken_and_seen_from_the_host(cloche, sandbox, tmp_path, watch):
	(tmp_path / 'p').mkdir()
	box = sandbox('-m', f'{tmp_path}/p:{WORK}:rw', '--no-trace')
	seen = watch(box.id, WORK)
	assert cloche.call('pause', box.id).code == 0
	(tmp_path / 'p' / 'of-the-host').write_text('x')
	seen.until(f'created {WORK}/of-the-host')
	os.rename(tmp_path / 'p' / 'of-the-host', tmp_path / 'p' / 'other')
	seen.until(f'renamed {WORK}/of-the-host {WORK}/other')
	assert cloche.call('wake', box.id).code == 0
	box.sh('echo y >> other')
	seen.until(f'written {WORK}/other')


def test_a_writer_that_goes_on_is_told_and_its_end_too(box, watch):
	seen = watch(box.id, '.')
	writer = box.start('/bin/sh', '-c', 'exec >> log; for i in $(seq 12); do echo $i; sleep 0.1; done', options=('-w', WORK))
	wait_for(lambda: any(c.get('writing') for c in seen.changes()), 'the first line of a long writer', LIMIT_S)
	assert writer.wait(LIMIT_S) == 0
	writer.stdout.close()
	writer.stderr.close()
	wait_for(lambda: 'writing' not in seen.changes()[-1], 'its end', LIMIT_S)
	*before, last = seen.changes()
	assert last['change'] == 'written' and last['size'] == sum(len(f'{i}\n') for i in range(1, 13)) and 1 <= len(before) <= 3


def test_it_ends_with_the_sandbox_and_tells_what_was_last(cloche, sandbox, watch):
	box = sandbox()
	seen, other = watch(box.id, WORK), watch(box.id, '/etc')
	box.sh('echo x > last')
	assert cloche.call('stop', box.id).code == 0
	seen.ended()
	other.ended()
	assert seen.short() == [f'created {WORK}/last'] and other.lines == []
	assert f'sandbox {box.id} has ended, or was suspended' in seen.said[-1].decode()
	done = cloche.call('watch-files', box.id, WORK)
	assert done.code == 125 and box.id in done.err


def test_it_ends_when_its_reader_has_gone(cloche, box):
	process = cloche.start('watch-files', '--quiet', box.id, WORK)
	process.stdout.close()
	assert process.wait(LIMIT_S) == 0 and process.stderr.read() == b''
	process.stderr.close()


def test_names_are_bytes(box, watch):
	seen = watch(box.id, WORK)
	box.py(f'import os\nopen(b"{WORK}/\\xff\\n", "w").close()')
	[made] = wait_for(seen.changes, 'a line', LIMIT_S)
	assert base64.b64decode(made['path_b64']) == os.fsencode(WORK) + b'/\xff\n' and made['path'] == f'{WORK}/\ufffd\n'
	seen.lines.clear()
	box.py(f'import os\nos.rename(b"{WORK}/\\xff\\n", b"{WORK}/" + b"x" * 255)')
	[moved] = wait_for(seen.changes, 'a line', LIMIT_S)
	assert base64.b64decode(moved['from_b64']) == os.fsencode(WORK) + b'/\xff\n' and moved['path'] == f'{WORK}/' + 'x' * 255


def test_text_is_escaped(cloche, box):
	process = cloche.start('watch-files', box.id, WORK)
	assert b'watching' in process.stderr.readline()
	box.py(f'open("{WORK}/\\x1b[31m\\n", "w").write("12345")')
	line = process.stdout.readline().decode()
	assert line.split(maxsplit=1)[1].startswith(f'created    {WORK}/\\x1b[31m\\n  5 ') and '\x1b' not in line
	process.send_signal(signal.SIGINT)
	process.wait(LIMIT_S)
	process.stdout.close()
	process.stderr.close()


def test_a_single_file_by_its_name(box, watch):
	box.sh('echo 1 > a; echo 1 > b')
	seen = watch(box.id, 'a')
	box.sh('echo 2 >> b; echo 2 > t; mv t a')
	seen.until(f'written {WORK}/a replaced')
	box.sh('mv a c')
	seen.until(f'renamed {WORK}/a {WORK}/c')
	box.sh('echo 3 >> c; rm b; echo new > a')
	seen.until(f'created {WORK}/a')


def test_the_folder_itself_goes_and_comes_again(box, watch):
	box.sh('mkdir -p build; echo x > build/x')
	seen = watch(box.id, 'build')
	box.sh('rm -r build')
	seen.until(f'deleted {WORK}/build +1')
	box.sh('mkdir t; echo y > t/y; mv t build')
	seen.until(f'created {WORK}/build', f'created {WORK}/build/y')
	box.sh('echo z > build/z')
	seen.until(f'created {WORK}/build/z')
	box.sh('mv build elsewhere; echo no > elsewhere/no')
	[gone] = seen.until(f'deleted {WORK}/build +2')
	assert 'moved' in gone['reason']


def test_no_link_leads_out(cloche, box, watch, tmp_path):
	"""Neither in the folder, nor as the path asked for."""
	box.sh(f'ln -s {tmp_path} out; ln -s / root; mkdir /etc/x; ln -s /etc/x etc')
	seen = watch(box.id, WORK)
	etc = watch(box.id, f'{WORK}/etc')
	(tmp_path / 'of-the-host').write_text('x')
	box.sh('echo 1 > etc/a; ln -s .. up; ln -sfn /tmp out')
	etc.until(f'created {WORK}/etc/a')
	seen.until(f'created {WORK}/up', f'written {WORK}/out replaced')
	for path in (f'{WORK}/out/x', '/proc', f'{WORK}/nothing', '/proc/1/root'):
		done = cloche.call('watch-files', box.id, path)
		assert done.code == 125 and path in done.err, done


def test_what_is_mounted_below_is_watched_too(sandbox, tmp_path, watch):
	(tmp_path / 'p' / 'data').mkdir(parents=True)
	(tmp_path / 'other').mkdir()
	box = sandbox('-m', f'{tmp_path}/p:{WORK}:cow', '-m', f'{tmp_path}/other:{WORK}/data:rw')
	seen = watch(box.id, WORK)
	box.sh(f'echo 1 > {WORK}/data/a; echo 2 > {WORK}/b')
	seen.until(f'created {WORK}/data/a', f'created {WORK}/b')
	(tmp_path / 'other' / 'a').write_text('of the host')
	seen.until(f'written {WORK}/data/a')


def test_a_lower_file_is_the_same_file_after_its_copy_up(sandbox, tmp_path, watch):
	(tmp_path / 'p' / 'd').mkdir(parents=True)
	for name in ('a', 'd/b', 'd/c'):
		(tmp_path / 'p' / name).write_text('x')
	box = sandbox('-m', f'{tmp_path}/p:{WORK}:cow')
	seen = watch(box.id, WORK)
	box.sh('echo y >> a; mv d/b d/e; chmod 600 d/c')
	seen.until(f'written {WORK}/a', f'renamed {WORK}/d/b {WORK}/d/e', f'mode {WORK}/d/c')
	box.sh('mv d f; echo z >> f/c; rm a')
	seen.until(f'renamed {WORK}/d {WORK}/f', f'written {WORK}/f/c', f'deleted {WORK}/a')
	assert (tmp_path / 'p' / 'a').read_text() == 'x'


def test_a_tree_deeper_than_a_path_may_be_long(box, watch):
	seen = watch(box.id, WORK)
	deep = '''
import os
os.mkdir("d")
os.chdir("d")
for i in range(40):
	os.mkdir("x" * 200)
	os.chdir("x" * 200)
open("end", "w").close()
'''
	box.py(deep, options=('-w', WORK))
	wait_for(lambda: len(seen.lines) >= 42, 'all folders', LIMIT_S)
	assert max(seen.changes(), key=lambda c: len(c['path']))['path'] == f'{WORK}/d/' + ('x' * 200 + '/') * 40 + 'end'
	seen.lines.clear()
	box.sh('rm -r d')
	seen.until(f'deleted {WORK}/d +41')


def test_more_than_the_kernel_keeps_is_said(cloche, box, watch):
	box.sh('echo 1 > a; mkdir d')
	seen = watch(box.id, WORK)
	os.kill(seen.process.pid, signal.SIGSTOP)
	box.py('import os\nfor i in range(9000): os.close(os.open("d/n", os.O_CREAT | os.O_WRONLY)); os.unlink("d/n")\nopen("b", "w").write("b")\nos.unlink("a")',
		options=('-w', WORK))
	os.kill(seen.process.pid, signal.SIGCONT)
	[lost, *_] = seen.until(f'overflow {WORK}', f'created {WORK}/b', f'deleted {WORK}/a')
	assert lost['change'] == 'overflow' and 'read again' in lost['reason']


def test_it_reads_as_the_root_of_the_sandbox_and_may_do_no_more(box, watch):
	seen = watch(box.id, WORK)
	with open(f'/proc/{seen.process.pid}/status', encoding='ascii') as status:
		fields = dict(line.rstrip('\n').split(':\t', 1) for line in status)
	assert len(set(fields['Uid'].split())) == 1 and int(fields['Uid'].split()[0]) >= 1 << 30 and fields['Uid'] == fields['Gid'] and fields['Groups'].strip() == ''
	assert int(fields['CapPrm'], 16) == int(fields['CapEff'], 16) == 1 << 2 and fields['NoNewPrivs'] == '1' # CAP_DAC_READ_SEARCH
	box.sh('umask 077; mkdir secret; echo x > secret/x; chown 5:5 secret secret/x')
	seen.until(f'created {WORK}/secret', f'created {WORK}/secret/x')


def test_bounds_for_programs(cloche, box):
	process = cloche.start('watch-files', '--quiet', '--bounds', '--wait', box.id, 'later/x')
	began = json.loads(process.stdout.readline())
	assert (began['change'], began['path'], began['at'][-1]) == ('began', f'{WORK}/later/x', 'Z')
	box.sh('mkdir later; echo x > later/x')
	made = json.loads(process.stdout.readline())
	assert (made['change'], made['path'], made['size']) == ('created', f'{WORK}/later/x', 2)
	for path, error in (('later/y', 'ENOENT'), ('later/x/y', 'ENOTDIR'), ('/proc', 'EXDEV')):
		done = cloche.call('watch-files', '--bounds', box.id, path)
		[line] = [json.loads(line) for line in done.out.splitlines()]
		assert done.code == 125 and (line['change'], line['error']) == ('failed', error) and line['reason'] in done.err, done
	assert cloche.call('stop', box.id).code == 0
	assert [json.loads(line)['change'] for line in process.stdout] == ['ended'] and process.wait(LIMIT_S) == 0
	process.stdout.close()
	process.stderr.close()
	done = cloche.call('watch-files', '--bounds', box.id, WORK)
	assert done.code == 125 and json.loads(done.out)['error'] == 'ESRCH'


def test_a_limit_on_what_it_knows(cloche, box, watch):
	box.sh('mkdir a b; for i in 1 2 3 4 5 6; do : > a/$i; : > b/$i; done')
	seen = watch('--files', '9', box.id, WORK)
	[left_out] = seen.changes()
	assert left_out['change'] == 'unwatched' and left_out['reason'] == 'too many files' and left_out['path'] in (f'{WORK}/a', f'{WORK}/b')
	other = ({f'{WORK}/a', f'{WORK}/b'} - {left_out['path']}).pop()
	seen.lines.clear()
	box.sh(f"echo x >> {left_out['path']}/1; echo x >> {other}/1")
	seen.until(f'written {other}/1')
	for bad in ('0', '-1', 'x', '1000001'):
		assert cloche.call('watch-files', '--files', bad, box.id, WORK).code == 2, bad


def test_only_root_may(cloche, box):
	done = subprocess.run(['setpriv', '--reuid', '65534', '--clear-groups', cloche.program, 'watch-files', box.id, WORK],
		env=cloche.env(), cwd='/', stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
	assert done.returncode == 125 and 'root' in done.stderr
