#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A coding agent without a model: ten steps that a real one might take on the project it is started in.

It explores, runs the tests, looks where it should not, mends the fault, and adds a test. Each step is a
command of its own, started as agents start them: through a shell, with the output captured.
"""
import os
import subprocess
import sys

STEPS = [
	('look around', 'ls -la'),
	('read the code', 'cat leap.py'),
	('read the tests', 'cat test_leap.py'),
	('run the tests', 'python3 -m unittest 2>&1 | tail -n 20; exit ${PIPESTATUS[0]}'),
	('find the rule', 'grep -n "% 100" leap.py'),
	('look where it should not', 'cat .env'),
	('mend the rule', "sed -i 's/year % 100 != 0/(year % 100 != 0 or year % 400 == 0)/' leap.py"),
	('run the tests again', 'python3 -m unittest 2>&1 | tail -n 3; exit ${PIPESTATUS[0]}'),
	('add a test', "printf 'import leap\\n\\nassert leap.is_leap(2400) and not leap.is_leap(2100)\\n' > test_centuries.py"),
	('run the new test', 'python3 test_centuries.py && echo all good'),
]


def main():
	env = dict(os.environ, PYTHONDONTWRITEBYTECODE='1')
	for number, (why, command) in enumerate(STEPS, 1):
		done = subprocess.run(['/bin/bash', '-c', command], capture_output=True, text=True, env=env, check=False)
		last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ['']
		print(f'{number:2}. {why}: {command[:60]!r} -> {done.returncode}  {last[0][:60]}', flush=True)
	return 0


if __name__ == '__main__':
	sys.exit(main())
