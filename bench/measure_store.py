# SPDX-License-Identifier: Apache-2.0
"""The store on both databases: rows added one by one by 16 threads, each on disk before its call returns, and in batches;
then pages of 100 rows and searches among all of them. Load of the machine is told beside, since nothing is compared."""
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

ROWS = int(os.environ.get('CLOCHE_BENCH_ROWS', '1000000'))
POSTGRES = max(pathlib.Path('/usr/lib/postgresql').glob('[1-9]*/bin'), default=pathlib.Path('/nonexistent'))


@contextlib.contextmanager
def folder():
	place = tempfile.mkdtemp(prefix='cloche-bench-store-', dir='/var/tmp')
	try:
		yield place
	finally:
		shutil.rmtree(place)


@contextlib.contextmanager
def postgres(place):
	"""A server of its own, with Debian's settings: every commit is on disk. It refuses root."""
	user = pwd.getpwnam('postgres')
	os.chown(place, user.pw_uid, user.pw_gid)
	how = {'cwd': place, 'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': [],
		'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
	subprocess.run([POSTGRES / 'initdb', '-D', 'data', '-A', 'trust', '-U', 'cloche', '-E', 'UTF8', '--locale=C.UTF-8'],
		check=True, **how)
	server = subprocess.Popen([POSTGRES / 'postgres', '-D', 'data', '-k', place, '-c', 'listen_addresses='], **how)
	try:
		until = time.monotonic() + 30
		while subprocess.run([POSTGRES / 'pg_isready', '-q', '-h', place], check=False).returncode:
			assert time.monotonic() < until, 'PostgreSQL did not start'
			time.sleep(0.1)
		yield f'postgres://cloche@/postgres?host={place}'
	finally:
		server.send_signal(signal.SIGINT)
		server.wait()


def run(where):
	program = pathlib.Path(os.environ['CLOCHE_BUILD']) / 'tests' / 'store_load'
	done = subprocess.run([program, where, str(ROWS)], check=True, capture_output=True, text=True)
	return {**json.loads(done.stdout), 'load': round(os.getloadavg()[0], 1)}


def measure(bench):
	with folder() as place:
		yield {'database': 'sqlite', **run(f'sqlite:{place}/db')}
	if (POSTGRES / 'postgres').exists():
		with folder() as place, postgres(place) as where:
			yield {'database': 'postgres', **run(where)}
