# SPDX-License-Identifier: Apache-2.0
"""A workload in a traced sandbox against the same in an untraced one, with nothing attached on the host."""
from common import WORKLOADS, compare, interleave

ROUNDS = 20
GOALS = {'writes': 1.03, 'execs': 1.02, 'imports': 1.01, 'compile': 1.02}


def measure(bench):
	bench.warm()
	for name in WORKLOADS:
		results = interleave(ROUNDS, on=lambda name=name: bench.inside(name, '--trace'),
			off=lambda name=name: bench.inside(name, '--no-trace'))
		yield {'workload': name, 'rounds': ROUNDS, 'ratio': compare(results, 'on', 'off'), 'goal': GOALS[name]}
