# SPDX-License-Identifier: Apache-2.0
"""What the caller's own descriptors may be: closed, full, gone, slow, non-blocking, of others."""
import os
import select
import subprocess
import time

import pytest

from harness import PYTHON

FOR_EVER = 'while True: print("y" * 100)'


def test_reader_that_goes_ends_a_writer_that_ignores_the_signal(cloche):
	process = cloche.start('run', '-q', '--', PYTHON, '-c', FOR_EVER)
	process.stdout.read(1000)
	process.stdout.close()
	_, err = process.communicate(timeout=20)
	assert process.returncode != 0
	assert b'BrokenPipeError' in err  # what the command itself heard, and stderr goes on


@pytest.mark.parametrize('closed', ['<&-', '>&-', '<&- >&-', '2>&-', '<&- >&- 2>&-'])
def test_closed_descriptors_are_nobody_elses(cloche, closed):
	"""Else the next thing that is opened, a socket to the supervisor, would be taken for one of them."""
	done = subprocess.run(['/bin/bash', '-c', f'"$0" run -q -- /bin/sh -c "cat; exit 5" {closed}', cloche.program],
		cwd=cloche.cwd, env=cloche.env(), stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
	assert (done.returncode, done.stdout, done.stderr) == (5, b'', b'')


def test_output_that_could_not_be_written_is_no_success(cloche):
	with open('/dev/full', 'wb') as full:
		process = cloche.start('run', '-q', '--', '/bin/echo', 'lost', stdout=full)
		_, err = process.communicate(timeout=20)
	assert process.returncode == 125
	assert b'No space left' in err


@pytest.mark.parametrize('code', [
	'signal.signal(signal.SIGCHLD, signal.SIG_IGN)', 'signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())',
])
def test_signals_that_the_caller_ignores_or_blocks_lose_no_status(cloche, code):
	start = f'import os, signal, sys; {code}; os.execv(sys.argv[1], sys.argv[1:])'
	done = subprocess.run([PYTHON, '-c', start, cloche.program, 'run', '-q', '--', '/bin/sh', '-c', 'exit 6'],
		cwd=cloche.cwd, env=cloche.env(), stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
	assert done.returncode == 6, done


@pytest.mark.parametrize('given', [b'', b'abc\n', b'abc'])
def test_end_of_input_reaches_a_terminal_that_was_forced(cloche, given):
	done = cloche.call('run', '-q', '-t', '--', '/bin/sh', '-c', 'stty -echo; cat; echo end', stdin=given, limit_s=20)
	assert done.code == 0 and done.out.replace('\r', '').endswith(given.decode() + 'end\n')


def test_nonblocking_output_loses_nothing(cloche):
	"""Whoever shares our stdout may have made it so."""
	ours, far = os.pipe()
	os.set_blocking(far, False)
	process = cloche.start('run', '-q', '--', PYTHON, '-c', 'print("y" * 3000000)', stdout=far)
	os.close(far)
	time.sleep(0.5)  # the pipe is full by now, whatever the pace
	got = 0
	while chunk := os.read(ours, 65536):
		got += len(chunk)
	os.close(ours)
	process.communicate(timeout=20)
	assert (process.returncode, got) == (0, 3000001)


def test_sandbox_that_stays_holds_no_pipe_of_its_makers(cloche):
	ours, far = os.pipe()
	box = None
	try:
		process = cloche.start('create', pass_fds=(far,))
		out, _ = process.communicate(timeout=20)
		box = out.decode().strip()
		os.close(far)
		# The keeper of the key lets go of what it got by the fork, a moment after create has ended.
		assert select.select([ours], [], [], 10)[0], 'somebody holds the pipe'
		assert os.read(ours, 1) == b''  # the end: nobody has the other one
	finally:
		os.close(ours)
		cloche.call('rm', box)
