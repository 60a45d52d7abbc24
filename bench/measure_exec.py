# SPDX-License-Identifier: Apache-2.0
"""An exec of true in a running, traced sandbox, by the command line, beside `crun exec`."""
import peers
from common import interleave, ms, percentile, ratio, timed

ROUNDS = 100


def measure(bench):
	bundle = peers.crun_bundle(bench.folder / 'bundle', ['/bin/sleep', '1000'])
	with peers.Crun() as crun:
		crun('run', '-d', '-b', str(bundle), 'cloche-bench-exec')
		try:
			box = bench.sandbox('--trace')
			cloche = [bench.cloche.program, 'exec', box.id, '--', '/bin/true']
			results = interleave(ROUNDS, cloche=lambda: timed(cloche, env=bench.cloche.env()),
				crun=lambda: crun('exec', 'cloche-bench-exec', '/bin/true'))
		finally:
			crun('delete', '-f', 'cloche-bench-exec')
	median = {name: percentile(values, 0.5) for name, values in results.items()}
	yield {'rounds': ROUNDS, 'cloche_ms': ms(median['cloche']), 'crun_ms': ms(median['crun']),
		'ratio': ratio(median['cloche'], median['crun']), 'goal': 0.25}
