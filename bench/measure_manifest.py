# SPDX-License-Identifier: Apache-2.0
"""A manifest of 50,000 files from nothing, beside find with sha256sum and beside git hash-object."""
import random
import shutil

from common import interleave, ms, percentile, ratio, timed

FILES = 50_000
IN_A_FOLDER = 100
SIZES = (200, 2000, 6000)  # bytes: sources
ROUNDS = 5


def make_tree(folder):
	chance = random.Random(1)
	for n in range(FILES // IN_A_FOLDER):
		place = folder / f'd{n % 25}' / f's{n}'
		place.mkdir(parents=True)
		for k in range(IN_A_FOLDER):
			(place / f'f{k}.c').write_bytes(chance.randbytes(chance.choice(SIZES)))


def measure(bench):
	tree = bench.folder / 'tree'
	tree.mkdir()
	make_tree(tree)
	sides = {
		'cloche': [str(bench.cloche.program), 'manifest', '--host', '--json', str(tree)],
		'sha256sum': ['sh', '-c', f'find {tree} -type f -print0 | xargs -0 sha256sum'],
		'git': ['sh', '-c', f'find {tree} -type f | git hash-object --stdin-paths'],
	}
	timed(sides['sha256sum'])  # all of it is in memory then
	results = interleave(ROUNDS, **{name: lambda command=command: timed(command, env=bench.cloche.env()) for name, command in sides.items()})
	median = {name: percentile(values, 0.5) for name, values in results.items()}
	shutil.rmtree(tree)
	yield {'files': FILES, 'rounds': ROUNDS, **{f'{name}_ms': ms(value) for name, value in median.items()},
		'ratio_sha256sum': ratio(median['sha256sum'], median['cloche']), 'goal_sha256sum': 3,
		'ratio_git': ratio(median['git'], median['cloche']), 'goal_git': 2}
