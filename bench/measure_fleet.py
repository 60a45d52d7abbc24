# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes over HTTP: 500 made and driven at once, then 1,000 alive: what the control plane holds, how long a restart
takes until it answers again for the last of them, and an exec beside one with a single sandbox there."""
import concurrent.futures
import os
import time

from common import ms, percentile, pss_kb, ratio
from harness import wait_for
from measure_http import Kept, exec_true

COUNT = int(os.environ.get('CLOCHE_BENCH_FLEET', '1000'))
DRIVEN = COUNT // 2
AT_ONCE = 16
EXECS = 100


def together(n, work):
	"""Calls work(i) for each, AT_ONCE at a time; how long it took and what they said."""
	begin = time.perf_counter()
	with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
		results = list(pool.map(work, range(n)))
	return time.perf_counter() - begin, results


def exec_latency(server, box):
	ask = Kept(server)
	return percentile([exec_true(ask, box) for _ in range(EXECS)], 0.5)


def held_kb(server):
	return pss_kb(server.process.pid) + pss_kb(server.serve_pid())


def drive(server):
	"""DRIVEN sandboxes, and four execs in each."""
	created_s, boxes = together(DRIVEN, lambda _: server.admin.create())
	driven_s, took = together(DRIVEN * 4, lambda i: exec_true(Kept(server), boxes[i % DRIVEN]))
	return boxes, {'sandboxes': DRIVEN, 'created_s': round(created_s, 2), 'goal_s': 10, 'execs': len(took),
		'execs_per_s': round(len(took) / driven_s), 'exec_p50_ms': ms(percentile(took, 0.5)), 'exec_p95_ms': ms(percentile(took, 0.95))}


def restart(server, box):
	"""How long nobody is answered."""
	server.stop()
	begin = time.perf_counter()
	server.start()
	exec_true(Kept(server), box)
	took = time.perf_counter() - begin
	wait_for(lambda: len(list(server.admin.pages('/v1/sandboxes', 1000))) == COUNT, 'all sandboxes', 60)
	return took


def measure(bench):
	with bench.server() as server:
		first = server.admin.create()
		alone, empty = exec_latency(server, first), held_kb(server)
		boxes, result = drive(server)
		yield result
		boxes += together(COUNT - DRIVEN - 1, lambda _: server.admin.create())[1]
		crowded, held = exec_latency(server, first), held_kb(server)
		yield {'sandboxes': COUNT, 'memory_mib': round(held / 1024, 1), 'memory_empty_mib': round(empty / 1024, 1),
			'restart_s': round(restart(server, boxes[-1]), 2), 'exec_alone_ms': ms(alone), 'exec_crowded_ms': ms(crowded),
			'ratio': ratio(crowded, alone), 'goal': 1.5}
