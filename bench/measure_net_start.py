# SPDX-License-Identifier: Apache-2.0
"""What a network adds to `run` of a command that does not use it and to making a sandbox, beside `crun run`; what the first
use of it costs, when the gateway starts."""
import itertools

import peers
from common import Offline, interleave, ms, percentile, ratio, timed

ROUNDS = 40

# Run where there is no way out: refused as soon as the gateway has started and tried.
FIRST_USE = '''
import socket, time
took = []
for i in range(2):
	s = socket.socket()
	s.settimeout(5)
	begin = time.monotonic()
	s.connect_ex(('192.0.2.1', 9))
	took.append(time.monotonic() - begin)
print(*took)
'''


def measure(bench):
	bench.warm()
	bundle = peers.crun_bundle(bench.folder / 'bundle', ['/bin/true'])
	names = (f'cloche-bench-{n}' for n in itertools.count())

	def run(net):
		return timed([bench.cloche.program, 'run', '--no-summary', '-T', '--net', net, '--', '/bin/true'],
			env=bench.cloche.env(), cwd=bench.cloche.cwd)

	def create(net):
		box = bench.cloche.call('create', '--net', net)
		assert box.code == 0, box
		bench.cloche.call('rm', box.out.strip())
		return box.duration_s

	with peers.Crun() as crun:
		results = interleave(ROUNDS, run_none=lambda: run('none'), run_open=lambda: run('open'), create_none=lambda: create('none'),
			create_open=lambda: create('open'), crun=lambda: crun('run', '-b', str(bundle), next(names)))
	median = {name: percentile(values, 0.5) for name, values in results.items()}
	yield {'rounds': ROUNDS, **{f'{name}_ms': ms(value) for name, value in median.items()},
		'run_adds_ms': ms(median['run_open'] - median['run_none']), 'create_adds_ms': ms(median['create_open'] - median['create_none']),
		'ratio_crun': ratio(median['run_open'], median['crun']), 'goal': 1.0, 'goal_adds_ms': 1}
	offline = Offline(bench.cloche.state, bench.cloche.run_dir, bench.cloche.cwd)
	took = [[float(word) for word in offline.py(FIRST_USE, options=('-T', '--net', 'open')).out.split()] for _ in range(10)]
	yield {'first_use_ms': ms(percentile([first for first, _ in took], 0.5)), 'next_use_ms': ms(percentile([second for _, second in took], 0.5))}
