# SPDX-License-Identifier: Apache-2.0
"""A workload on the host, outside every sandbox, while a traced sandbox lives against while none does."""
from common import WORKLOADS, compare, interleave

ROUNDS = 20


def measure(bench):
	bench.warm()

	def beside(name):
		box = bench.sandbox('--trace')
		try:
			return bench.outside(name)
		finally:
			bench.remove(box)

	for name in WORKLOADS:
		results = interleave(ROUNDS, on=lambda name=name: beside(name), off=lambda name=name: bench.outside(name))
		yield {'workload': name, 'rounds': ROUNDS, 'ratio': compare(results, 'on', 'off'), 'goal': 1.02}
