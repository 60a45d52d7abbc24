# SPDX-License-Identifier: Apache-2.0
"""An exec of true in a running, traced sandbox beside `crun exec`: over the control socket, as an embedding program
asks for it, and by the command line."""
import pathlib
import time

import peers
from control import Control
from common import interleave, ms, percentile, ratio, timed

ROUNDS = 100


def embedded(control):
	start = time.perf_counter()
	assert control.exec('/bin/true')['exit_code'] == 0
	return time.perf_counter() - start


def measure(bench):
	bundle = peers.crun_bundle(bench.folder / 'bundle', ['/bin/sleep', '1000'])
	with peers.Crun() as crun:
		crun('run', '-d', '-b', str(bundle), 'cloche-bench-exec')
		try:
			box = bench.sandbox('--trace')
			control = Control(pathlib.Path(bench.cloche.env()['CLOCHE_STATE'], 'sandboxes', box.id, 'control.sock'))
			cloche = [bench.cloche.program, 'exec', box.id, '--', '/bin/true']
			results = interleave(ROUNDS, embedded=lambda: embedded(control), cloche=lambda: timed(cloche, env=bench.cloche.env()),
				crun=lambda: crun('exec', 'cloche-bench-exec', '/bin/true'))
		finally:
			crun('delete', '-f', 'cloche-bench-exec')
	median = {name: percentile(values, 0.5) for name, values in results.items()}
	yield {'rounds': ROUNDS, **{f'{name}_ms': ms(value) for name, value in median.items()},
		'ratio': ratio(median['embedded'], median['crun']), 'ratio_cli': ratio(median['cloche'], median['crun']), 'goal': 0.25}
