# SPDX-License-Identifier: Apache-2.0
"""Memory of an idle traced sandbox: Pss of its host processes, and what the kernel holds for it."""
import pathlib
import time

from common import pss_kb

COUNT = 40


def kernel_kb():
	"""Slab, stacks, page tables, per-CPU and vmalloc memory of the whole host."""
	fields = dict(line.split(':') for line in pathlib.Path('/proc/meminfo').read_text().splitlines())
	return sum(int(fields[name].split()[0]) for name in ('Slab', 'KernelStack', 'PageTables', 'Percpu', 'VmallocUsed'))


def measure(bench):
	bench.warm()
	time.sleep(1)
	before = kernel_kb()
	boxes = [bench.sandbox('--trace') for _ in range(COUNT)]
	time.sleep(2)
	kernel = (kernel_kb() - before) / COUNT
	pss = sum(pss_kb(pid) for pid in bench.cloche.processes(f'CLOCHE_STATE={bench.cloche.state}\0', 'cloche')) / COUNT
	inits = sum(pss_kb(pid) for box in boxes for pid in children(box)) / COUNT
	yield {'sandboxes': COUNT, 'pss_kib': round(pss), 'process_1_kib': round(inits), 'kernel_kib': round(kernel),
		'total_mib': round((pss + inits + kernel) / 1024, 2), 'goal_mib': 3}


def children(box):
	return [int(pid) for supervisor in box.supervisor() for pid in
		pathlib.Path(f'/proc/{supervisor}/task/{supervisor}/children').read_text().split()]
