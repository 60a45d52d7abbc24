# SPDX-License-Identifier: Apache-2.0
"""How long after something happened inside a follower on the host has read it."""
import re
import subprocess
import time

from common import ms, percentile
from harness import PYTHON

COUNT = 1000
# Names carry the moment of the call; the clock is the same inside and outside.
MAKER = f'''
import os, random, time
random.seed(1)
for i in range({COUNT}):
	time.sleep(random.random() * 0.02)
	os.close(os.open(f'/workspace/at{{time.monotonic_ns()}}', os.O_CREAT | os.O_WRONLY))
'''


def measure(bench):
	box = bench.sandbox('--trace')
	follower = bench.cloche.start('events', box.id, '--jsonl', '--follow', stderr=subprocess.DEVNULL)
	maker = box.start(PYTHON, '-c', MAKER)
	delays = []
	for line in follower.stdout:
		now = time.monotonic_ns()
		found = re.search(rb'"file\.open".*/workspace/at(\d+)"', line)
		if found:
			delays.append((now - int(found[1])) / 1e9)
			if len(delays) == COUNT:
				break
	maker.wait()
	follower.kill()
	follower.communicate()
	yield {'events': COUNT, 'p50_ms': ms(percentile(delays, 0.5)), 'p99_ms': ms(percentile(delays, 0.99)),
		'max_ms': ms(max(delays)), 'goal_ms': 20}
