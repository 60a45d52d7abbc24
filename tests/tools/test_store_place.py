# SPDX-License-Identifier: Apache-2.0
"""The unit test of the store starts a PostgreSQL server of its own: nothing of it is left, however the test ends."""
import glob
import os
import pathlib
import signal
import subprocess
import time

import pytest

PROGRAM = pathlib.Path(os.environ['CLOCHE_BUILD']) / 'tests' / 'test_store'


def wait_for(what, seconds=30):
	until = time.monotonic() + seconds
	while not (found := what()):
		assert time.monotonic() < until, what
		time.sleep(0.02)
	return found


def server_of(folder):
	"""The server's process id, once it has made its socket."""
	if not glob.glob(f'{folder}/.s.PGSQL.*[0-9]'):
		return None
	return int(pathlib.Path(folder, 'data', 'postmaster.pid').read_text(encoding='utf-8').split()[0])


def shared_memory():
	"""Segments of both kinds, by number and by name."""
	segments = pathlib.Path('/proc/sysvipc/shm').read_text(encoding='utf-8').splitlines()[1:]
	return {line.split()[1] for line in segments} | set(glob.glob('/dev/shm/PostgreSQL.*'))


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGKILL])
def test_nothing_left_of_a_server(how):
	if not glob.glob('/usr/lib/postgresql/*/bin/postgres'):
		pytest.skip('PostgreSQL is not installed')
	before = set(glob.glob('/tmp/cloche-store-*'))
	shared_before = shared_memory()
	with subprocess.Popen([PROGRAM, 'postgres'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
			start_new_session=True) as test:
		folder = wait_for(lambda: [f for f in set(glob.glob('/tmp/cloche-store-*')) - before
			if pathlib.Path(f, 'data').is_dir()])[0]
		server = wait_for(lambda: server_of(folder))
		os.killpg(test.pid, how)
		test.wait()
	assert test.returncode == -how
	wait_for(lambda: not pathlib.Path(folder).exists())
	wait_for(lambda: not pathlib.Path('/proc', str(server)).exists())
	assert not shared_memory() - shared_before
