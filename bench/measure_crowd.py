# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes: how long 500 take to make, and an exec with all of them there against with one."""
import time

from common import ms, percentile, ratio, timed
from harness import Sandbox

COUNT = 500
AT_ONCE = 8
EXECS = 60


def exec_latency(bench, box):
	command = [bench.cloche.program, 'exec', box.id, '--', '/bin/true']
	return percentile([timed(command, env=bench.cloche.env()) for _ in range(EXECS)], 0.5)


def measure(bench):
	first = bench.sandbox('--trace')
	alone = exec_latency(bench, first)
	begin = time.monotonic()
	made = []
	for start in range(0, COUNT, AT_ONCE):
		batch = [bench.cloche.start('create', '--trace') for _ in range(min(AT_ONCE, COUNT - start))]
		for process in batch:
			out, err = process.communicate()
			assert process.returncode == 0, err
			made.append(Sandbox(bench.cloche, out.decode().strip()))
	created_s = time.monotonic() - begin
	bench.sandboxes += made
	crowded = exec_latency(bench, first)
	yield {'sandboxes': COUNT, 'created_s': round(created_s, 2), 'goal_s': 10, 'exec_alone_ms': ms(alone),
		'exec_crowded_ms': ms(crowded), 'ratio': ratio(crowded, alone), 'goal': 1.5}
