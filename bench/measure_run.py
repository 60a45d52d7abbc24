# SPDX-License-Identifier: Apache-2.0
"""`cloche run` of true (made, traced, recorded, sealed, removed) beside `crun run` and bwrap, which record nothing."""
import itertools

import peers
from common import interleave, ms, percentile, ratio, timed

ROUNDS = 40


def measure(bench):
	bench.warm()
	bundle = peers.crun_bundle(bench.folder / 'bundle', ['/bin/true'])
	names = (f'cloche-bench-{n}' for n in itertools.count())
	cloche = [bench.cloche.program, 'run', '--no-summary', '-T', '--', '/bin/true']
	with peers.Crun() as crun:
		results = interleave(ROUNDS, cloche=lambda: timed(cloche, env=bench.cloche.env(), cwd=bench.cloche.cwd),
			crun=lambda: crun('run', '-b', str(bundle), next(names)), bwrap=lambda: timed(peers.BWRAP))
	median = {name: percentile(values, 0.5) for name, values in results.items()}
	yield {'rounds': ROUNDS, **{f'{name}_ms': ms(value) for name, value in median.items()},
		'ratio_crun': ratio(median['cloche'], median['crun']), 'ratio_bwrap': ratio(median['cloche'], median['bwrap']), 'goal': 1.0}
