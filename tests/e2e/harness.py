# SPDX-License-Identifier: Apache-2.0
"""Runs the built program from outside, as a user does, and reads its record back through the views."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('CLOCHE_BUILD', ROOT / 'build')).resolve()
PYTHON = '/usr/bin/python3'
CALL_LIMIT_S = 90
WORK = '/workspace'

# Real ones, by the name of their npm package: native behind a starter on node; node alone.
AGENTS = {'codex': '@openai/codex', 'gemini': '@google/gemini-cli'}

# What a test may not pick up from whoever started it.
CLEAN_ENV = {
	'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/root', 'LANG': 'C.UTF-8',
	'TERM': 'dumb',
}
PASSED_ON = ('ASAN_OPTIONS', 'UBSAN_OPTIONS', 'LSAN_OPTIONS')


def wait_for(condition, what, limit_s=10):
	"""Waits for a thing with a deadline; returns what condition() gave."""
	end = time.monotonic() + limit_s
	while True:
		value = condition()
		if value:
			return value
		assert time.monotonic() < end, f'waited {limit_s} s for {what}'
		time.sleep(0.01)


def flatten(roots):
	"""Every node of a process tree, parents before their children."""
	for node in roots:
		yield node
		yield from flatten(node.get('children', []))


class Result:
	"""What one call of the program gave."""

	def __init__(self, code, out, err, duration_s):
		self.code, self.raw_out, self.raw_err, self.duration_s = code, out, err, duration_s
		self.out = out.decode(errors='surrogateescape')
		self.err = err.decode(errors='surrogateescape')

	def __repr__(self):
		return f'exit {self.code}\n--- out\n{self.out[-3000:]}\n--- err\n{self.err[-3000:]}'


class Record:
	"""The views of one sandbox's record; exec narrows them to one exec's slice."""

	def __init__(self, cloche, sandbox, exec_id=None):
		self.cloche, self.id, self.exec_id = cloche, sandbox, exec_id

	def of(self, exec_id):
		return Record(self.cloche, self.id, exec_id)

	def view(self, verb, *options):
		if self.exec_id:
			options += ('--exec', self.exec_id)
		done = self.cloche.call(verb, self.id, *options)
		assert done.code == 0, f'{verb}: {done}'
		return done.out

	def json(self, verb, *options):
		return json.loads(self.view(verb, '--json', *options))

	def lines(self, verb, *options):
		return [json.loads(line) for line in self.view(verb, '--jsonl', *options).split('\n') if line]

	def tree(self, *options):
		return self.json('tree', *options)

	def nodes(self, path=None, argv=None):
		"""Nodes of the tree, by the real path of the program or by what argv begins with."""
		return [node for node in flatten(self.tree())
			if (path is None or node['path'] == path)
			and (argv is None or node['argv'][:len(argv)] == argv)]

	def node(self, path=None, argv=None):
		found = self.nodes(path, argv)
		assert len(found) == 1, f'{len(found)} nodes for {path or argv}: {found}'
		return found[0]

	def files(self, *options):
		"""path -> entry"""
		entries = self.json('files', *options)
		table = {entry['path']: entry for entry in entries}
		assert len(table) == len(entries), 'a path stands twice in files'
		return table

	def file(self, path, *options):
		table = self.files(*options)
		assert path in table, f'{path} is not among {sorted(table)}'
		return table[path]

	def events(self, kind=None, *options):
		events = self.lines('events', *options)
		return [event for event in events if kind is None or event['kind'] == kind]

	def rows(self):
		return self.lines('log')

	def row(self):
		rows = [row for row in self.rows() if self.exec_id in (None, row['exec'])]
		assert len(rows) == 1, rows
		return rows[0]

	def commands(self):
		return self.json('commands')

	def show(self):
		return self.json('show')

	def changes(self):
		return self.json('changes')


class Run(Result):
	"""A finished `cloche run` or `cloche exec`, with the record it left."""

	def __init__(self, result, record):
		self.__dict__.update(result.__dict__)
		self.record = record

	@property
	def lines(self):
		return self.out.splitlines()


class Sandbox:
	"""A sandbox that stays until removed."""

	def __init__(self, cloche, sandbox):
		self.cloche, self.id = cloche, sandbox
		self.record = Record(cloche, sandbox)

	def exec(self, *argv, options=(), **how):
		before = {row['exec'] for row in self.record.rows()}
		done = self.cloche.call('exec', self.id, *options, '--', *argv, **how)
		new = [row['exec'] for row in self.record.rows() if row['exec'] not in before]
		return Run(done, self.record.of(new[-1] if new else None))

	def sh(self, script, *args, **how):
		return self.exec('/bin/sh', '-c', script, 'sh', *args, **how)

	def py(self, code, *args, **how):
		return self.exec(PYTHON, '-c', code, *args, **how)

	def start(self, *argv, options=(), **how):
		"""An exec that is not waited for: its subprocess.Popen."""
		return self.cloche.start('exec', self.id, *options, '--', *argv, **how)

	def remove(self):
		return self.cloche.call('rm', self.id)

	def supervisor(self):
		"""The host process that owns this sandbox."""
		return self.cloche.processes(self.id, 'cloche-supervisor')


class Cloche:
	"""One state folder and the program that works on it."""

	def __init__(self, state, run_dir, cwd):
		self.state, self.run_dir, self.cwd = pathlib.Path(state), pathlib.Path(run_dir), pathlib.Path(cwd)
		self.program = BUILD / 'cloche'
		self.n_runs = 0

	def env(self, extra=None):
		env = dict(CLEAN_ENV, CLOCHE_STATE=str(self.state), CLOCHE_RUN=str(self.run_dir))
		env.update({name: os.environ[name] for name in PASSED_ON if name in os.environ})
		env.update(extra or {})
		return env

	def start(self, *args, cwd=None, env=None, stdin=subprocess.DEVNULL, **how):
		how = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **how}
		return subprocess.Popen([self.program, *map(os.fspath, args)], cwd=cwd or self.cwd, env=self.env(env),
			stdin=stdin, **how)

	def strace(self, options, *args, cwd=None, background=False):
		"""The program under strace, which makes system calls fail, wait or kill: its CompletedProcess, or the Popen of it."""
		if shutil.which('strace') is None:
			import pytest # which those who only measure do not need
			pytest.skip('needs strace')
		# LeakSanitizer cannot work under a tracer.
		env = self.env({'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'})
		argv = ['strace', '-qq', '-o', '/dev/null', *options, self.program, *map(os.fspath, args)]
		how = {'cwd': cwd or self.cwd, 'env': env, 'text': True}
		if background:
			return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
		return subprocess.run(argv, capture_output=True, timeout=CALL_LIMIT_S, check=False, **how)

	def call(self, *args, stdin=None, cwd=None, env=None, limit_s=CALL_LIMIT_S):
		begin = time.monotonic()
		process = self.start(*args, cwd=cwd, env=env,
			stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
		try:
			out, err = process.communicate(stdin, timeout=limit_s)
		except subprocess.TimeoutExpired:
			process.kill()
			out, err = process.communicate()
			raise AssertionError(f'{args} hung for {limit_s} s: {out[-2000:]!r} {err[-2000:]!r}') from None
		return Result(process.returncode, out, err, time.monotonic() - begin)

	def run(self, *argv, options=(), **how):
		"""`cloche run`, started in /workspace inside unless options say -w."""
		self.n_runs += 1
		# Written with the rights of who asked (SUDO_UID), so in a place that is open to all.
		id_file = pathlib.Path(f'/tmp/cloche-test-id-{os.getpid()}-{self.n_runs}-{time.monotonic_ns()}')
		where = () if '-w' in options or '--workdir' in options else ('-w', WORK)
		done = self.call('run', '--id-file', id_file, *where, *options, '--', *argv, **how)
		sandbox = id_file.read_text().strip() if id_file.exists() else None
		id_file.unlink(missing_ok=True)
		return Run(done, Record(self, sandbox))

	def sh(self, script, *args, **how):
		return self.run('/bin/sh', '-c', script, 'sh', *args, **how)

	def bash(self, script, *args, **how):
		return self.run('/bin/bash', '-c', script, 'bash', *args, **how)

	def py(self, code, *args, **how):
		return self.run(PYTHON, '-c', code, *args, **how)

	def create(self, *options, **how):
		done = self.call('create', *options, **how)
		assert done.code == 0, done
		return Sandbox(self, done.out.strip())

	def ids(self):
		"""Every sandbox this state has heard of."""
		found = set()
		for folder in ('records', 'sandboxes', 'changes'):
			if (self.state / folder).is_dir():
				found.update(entry.name for entry in (self.state / folder).iterdir())
		return found

	def processes(self, needle, name=''):
		"""Host process ids whose arguments hold needle and begin with a program of that name."""
		found = []
		for entry in pathlib.Path('/proc').iterdir():
			if not entry.name.isdigit() or int(entry.name) == os.getpid():
				continue
			try:
				args = (entry / 'cmdline').read_bytes().decode(errors='replace')
				environ = (entry / 'environ').read_bytes().decode(errors='replace')
			except OSError:
				continue
			if os.path.basename(args.split('\0')[0]).startswith(name) and needle in args + environ:
				found.append(int(entry.name))
		return found

	def left_behind(self):
		"""What is still on the host although nothing runs: one sentence each."""
		ids, left = self.ids(), []
		sandboxes = self.state / 'sandboxes'
		if sandboxes.is_dir():
			left += [f'folder {entry}' for entry in sandboxes.iterdir()]
		left += [f'process {pid}' for pid in self.processes(f'CLOCHE_STATE={self.state}\0', 'cloche')]
		mounts = pathlib.Path('/proc/self/mountinfo').read_text().splitlines()
		left += [f'mount {line}' for line in mounts if f' {self.state}/' in line]
		for base in cgroup_bases():
			for folder, names, _ in os.walk(base / 'cloche'):
				left += [f'cgroup {folder}/{name}' for name in names if name in ids]
		for folder, names, files in os.walk(self.run_dir):
			left += [f'pin {folder}/{name}' for name in names + files if any(i in name for i in ids)]
		return left

	def check_clean(self, limit_s=10):
		"""A supervisor may still be removing what nobody waits for; then nothing is left."""
		end = time.monotonic() + limit_s
		while (left := self.left_behind()) and time.monotonic() < end:
			time.sleep(0.05)
		assert not left, 'left on the host:\n' + '\n'.join(left)


def contents(folder):
	"""Path and bytes of each regular file below. What is removed meanwhile (the trash of others) is no fault."""
	for at, _, names in os.walk(folder): # and not rglob, which raises on a folder that has gone
		for path in (pathlib.Path(at, name) for name in names):
			with contextlib.suppress(FileNotFoundError):
				if stat.S_ISREG(path.lstat().st_mode):
					yield path, path.read_bytes()


def copy_with_libraries(program, root):
	"""The program below usr/bin of a root, and what it is linked with."""
	listed = subprocess.run(['ldd', program], capture_output=True, text=True, check=True).stdout
	shutil.copy(os.path.realpath(program), root / 'usr/bin' / os.path.basename(program))
	for word in listed.split():
		if word.startswith('/'):
			target = root / word.lstrip('/')
			target.parent.mkdir(parents=True, exist_ok=True)
			shutil.copy(os.path.realpath(word), target)


def small_root(root, *programs):
	"""The smallest root filesystem that runs these, which are the host's own, in an empty folder."""
	for folder in ('etc', 'usr/bin', 'proc', 'dev', 'tmp', 'workspace', 'root'):
		(root / folder).mkdir(parents=True)
	os.symlink('usr/bin', root / 'bin')
	(root / 'etc' / 'passwd').write_text('root:x:0:0:root:/root:/bin/sh\n')
	for program in programs:
		copy_with_libraries(program, root)
	return root


def local_deb(folder):
	"""A package with one program and a script that runs after it is unpacked."""
	tree = folder / 'tree'
	(tree / 'DEBIAN').mkdir(parents=True)
	(tree / 'usr' / 'bin').mkdir(parents=True)
	(tree / 'DEBIAN' / 'control').write_text('Package: tiny-tool\nVersion: 1.0\nArchitecture: all\nMaintainer: A <a@example.invalid>\n'
		'Description: a tiny tool\n')
	(tree / 'DEBIAN' / 'postinst').write_text('#!/bin/sh\necho configured > /etc/tiny-tool.conf\n')
	(tree / 'usr' / 'bin' / 'tiny-tool').write_text('#!/bin/sh\ncat /etc/tiny-tool.conf\n')
	for path in (tree / 'DEBIAN' / 'postinst', tree / 'usr' / 'bin' / 'tiny-tool'):
		os.chmod(path, 0o755)
	subprocess.run(['dpkg-deb', '--root-owner-group', '--build', tree, folder / 'tiny-tool.deb'], check=True, capture_output=True)
	return folder / 'tiny-tool.deb'


def cgroup_bases():
	"""Roots of the mounted cgroup hierarchies."""
	return [pathlib.Path(line.split()[1]) for line in pathlib.Path('/proc/self/mounts').read_text().splitlines()
		if line.split()[2] in ('cgroup', 'cgroup2')]


def lend_skeleton(state, other):
	"""Gives another state the host view that this one has made, by links: making it takes a second or more."""
	if (state / 'skel').is_dir():
		other.mkdir(mode=0o711)
		subprocess.run(['cp', '-al', state / 'skel', other / 'skel'], check=True)


def kill_and_wait(pid):
	"""Ends a process that is not our child, and waits until it is gone."""
	try:
		os.kill(pid, signal.SIGKILL)
	except ProcessLookupError:
		return
	wait_for(lambda: not pathlib.Path(f'/proc/{pid}').exists(), f'the end of process {pid}')


def can_run():
	"""None, or why nothing here can be tried."""
	if os.geteuid() != 0:
		return 'needs root'
	if not (BUILD / 'cloche').exists():
		return f'{BUILD}/cloche is not built'
	return None


def unmount_run_dir(run_dir):
	"""The tests' own bpffs is theirs to take away."""
	if os.path.ismount(run_dir / 'bpf'):
		subprocess.run(['umount', run_dir / 'bpf'], check=True)
	shutil.rmtree(run_dir, ignore_errors=True)


def unmount_disk(mount):
	"""Of a disk of a test's own: what a supervisor still removes may hold it for a moment."""
	for _ in range(50):
		if subprocess.run(['umount', mount], check=False, capture_output=True).returncode == 0:
			return
		time.sleep(0.1)
	subprocess.run(['umount', '-l', mount], check=False)
	raise AssertionError('the disk is still in use')
