# SPDX-License-Identifier: Apache-2.0
"""For comparison: the same workloads under strace, told to look at files and processes only."""
from common import WORKLOADS, compare, interleave

ROUNDS = 5
STRACE = ('strace', '-f', '--seccomp-bpf', '-qq', '-o', '/dev/null', '-e', 'trace=file,process')


def measure(bench):
	for name in WORKLOADS:
		results = interleave(ROUNDS, on=lambda name=name: bench.outside(name, *STRACE), off=lambda name=name: bench.outside(name))
		yield {'workload': name, 'rounds': ROUNDS, 'ratio': compare(results, 'on', 'off')}
