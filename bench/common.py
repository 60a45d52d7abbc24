# SPDX-License-Identifier: Apache-2.0
"""What the measures share: a state of their own, workloads, interleaving, percentiles."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from harness import PYTHON, Cloche, unmount_run_dir
from serving import Server

# Each is run by a shell, in an empty writable folder, and takes some tenths of a second.
WORKLOADS = {
	'writes': 'i=0; while [ $i -lt 3000 ]; do echo x > f; rm f; i=$((i+1)); done',
	'execs': 'i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done',
	'imports': 'for i in 1 2 3 4; do /usr/bin/python3 -c "import json, http.client, email, decimal, asyncio"; done',
	'compile': 'for i in 1 2 3 4 5 6; do gcc -O1 -c -o a$i.o a.c; done; gcc -o prog main.c a1.o',
}
SOURCES = {
	'a.c': '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n' + ''.join(
		f'int a{i}(int x)\n{{\n\treturn x * {i} + (int)strlen("a{i}");\n}}\n' for i in range(40)),
	'main.c': 'int a1(int x);\nint main(void)\n{\n\treturn a1(0) == 0;\n}\n',
}

# Runs a shell text and prints the CPU and wall time it took, children included.
STOPWATCH = '''
import json, resource, subprocess, sys, time
begin = time.monotonic()
subprocess.run(['/bin/sh', '-c', sys.argv[1]], check=True)
wall = time.monotonic() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({'wall': wall, 'cpu': used.ru_utime + used.ru_stime}))
'''


def cpu_model():
	for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
		if line.startswith('model name'):
			return line.split(':')[1].strip()
	return 'unknown'


def n_cpus():
	return len(os.sched_getaffinity(0))


def percentile(values, part):
	"""The value below which that part of them lies, by rank."""
	values = sorted(values)
	return values[min(len(values) - 1, int(part * len(values)))]


def ms(seconds):
	return round(seconds * 1000, 3)


def ratio(a, b):
	return round(a / b, 3)


def pss_kb(pid):
	"""What a process holds, shared pages by their share."""
	for line in pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines():
		if line.startswith('Pss:'):
			return int(line.split()[1])
	return 0


def interleave(rounds, **sides):
	"""Calls each side once a round, the order turned round every time; returns side -> list of results."""
	results = {name: [] for name in sides}
	names = list(sides)
	for n in range(rounds):
		for name in (names if n % 2 == 0 else reversed(names)):
			results[name].append(sides[name]())
	return results


def timed(command, **how):
	"""Seconds that a command took; what it leaves running may keep its error output open."""
	with tempfile.TemporaryFile() as errors:
		begin = time.monotonic()
		code = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
			**how).returncode
		took = time.monotonic() - begin
		if code != 0:
			errors.seek(0)
			raise RuntimeError(f'{command}: exit {code}: {errors.read().decode()}')
	return took


def compiled(folder, source, *options):
	"""Builds one C file beside its source and returns the program."""
	(folder / 'main.c').write_text(source)
	subprocess.run(['gcc', '-O2', '-o', folder / 'main', folder / 'main.c', *options], check=True)
	return folder / 'main'


class Offline(Cloche):
	"""The program in a network namespace that has nothing but a loopback interface that is down."""

	def start(self, *args, **how):
		program, self.program = self.program, 'unshare'
		try:
			return super().start('--net', program, *args, **how)
		finally:
			self.program = program


class Bench:
	"""A Cloche with a state of its own, gone with everything in it at the end."""

	def __enter__(self):
		self.folder = pathlib.Path(tempfile.mkdtemp(prefix='cloche-bench-', dir='/var/tmp'))
		self.folder.chmod(0o711) # a control plane's half without rights has its database below it
		(self.folder / 'project').mkdir()
		self.cloche = Cloche(self.folder / 'state', self.folder / 'run', self.folder / 'project')
		self.sandboxes = []
		return self

	def __exit__(self, *error):
		self.remove_all()
		self.cloche.call('gc')
		unmount_run_dir(self.folder / 'run')
		shutil.rmtree(self.folder, ignore_errors=True)

	@contextlib.contextmanager
	def server(self, **how):
		"""A control plane whose admin is not held back; its sandboxes stay."""
		server = Server(self.cloche, **how)
		server.admin = server.client(rate_limit=100000)
		try:
			yield server
		finally:
			server.stop()

	def sandbox(self, *options):
		box = self.cloche.create(*options)
		self.sandboxes.append(box)
		return box

	def remove(self, box):
		self.sandboxes.remove(box)
		done = box.remove()
		assert done.code == 0, done

	def remove_all(self):
		"""Every sandbox there is, eight at a time."""
		folder = self.cloche.state / 'sandboxes'
		ids = [box.name for box in folder.iterdir()] if folder.is_dir() else []
		with concurrent.futures.ThreadPoolExecutor(8) as pool:
			list(pool.map(lambda one: self.cloche.call('rm', one), ids))
		self.sandboxes = []

	def warm(self):
		"""Everything that happens once for the host has happened."""
		self.remove(self.sandbox('--trace'))

	def inside(self, workload, *options):
		"""CPU and wall time of a workload in a sandbox of its own."""
		box = self.sandbox(*options)
		for name, text in SOURCES.items():
			box.exec('/bin/sh', '-c', f'cat > {name}', options=('-i',), stdin=text.encode())
		done = self.cloche.call('exec', box.id, '--', PYTHON, '-c', STOPWATCH, WORKLOADS[workload])
		assert done.code == 0, done
		self.remove(box)
		return json.loads(done.out)

	def outside(self, workload, *prefix):
		"""The same on the host, behind a command like strace."""
		place = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
		for name, text in SOURCES.items():
			(place / name).write_text(text)
		done = subprocess.run([PYTHON, '-c', STOPWATCH, f'cd {place}; ' + (f'{" ".join(prefix)} /bin/sh -c ' if prefix else '') +
			(f"'{WORKLOADS[workload]}'" if prefix else WORKLOADS[workload])], capture_output=True, text=True, check=True)
		shutil.rmtree(place)
		return json.loads(done.stdout)


def compare(results, a, b):
	"""Ratios of a to b: of CPU and of wall time, at the 10th percentile and at the median."""
	out = {}
	for what in ('cpu', 'wall'):
		for name, part in (('p10', 0.1), ('p50', 0.5)):
			out[f'{what}_{name}'] = ratio(percentile([r[what] for r in results[a]], part),
				percentile([r[what] for r in results[b]], part))
	return out
