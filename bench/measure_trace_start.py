# SPDX-License-Identifier: Apache-2.0
"""What tracing adds to making a sandbox once the programs are loaded."""
from common import interleave, ms, percentile

ROUNDS = 40


def measure(bench):
	bench.warm()

	def create(option):
		box = bench.cloche.call('create', option)
		assert box.code == 0, box
		bench.cloche.call('rm', box.out.strip())
		return box.duration_s

	results = interleave(ROUNDS, on=lambda: create('--trace'), off=lambda: create('--no-trace'))
	on, off = percentile(results['on'], 0.5), percentile(results['off'], 0.5)
	yield {'rounds': ROUNDS, 'create_traced_ms': ms(on), 'create_untraced_ms': ms(off), 'start_ms': ms(on - off), 'goal_ms': 3}
