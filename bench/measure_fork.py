# SPDX-License-Identifier: Apache-2.0
"""Time of `cloche fork` against how many files the source changed: half of them in its root, half in its copy of a folder.
A first fork makes shared layers of them, later ones only use these. Beside it, what copying those files would take."""
import shutil
import subprocess
import time

from common import percentile, ratio
from harness import PYTHON, Sandbox

FEW, MANY = 1000, 50000
ROUNDS = 9

FILL = '''
import os, sys
n = int(sys.argv[1]) // 2
for top in ('/work/t', '/usr/local/t'):
    for i in range(n):
        at = f'{top}/{i // 500}'
        if i % 500 == 0: os.makedirs(at)
        with open(f'{at}/{i}', 'w') as f: f.write('x' * 100)
'''


def source(bench, n_files):
	"""A suspended sandbox that changed so many files."""
	box = bench.sandbox('-m', f'{bench.folder}/project:/work:cow')
	done = bench.cloche.call('exec', box.id, '--', PYTHON, '-c', FILL, str(n_files), limit_s=600)
	assert done.code == 0, done
	done = bench.cloche.call('suspend', box.id, limit_s=600)
	assert done.code == 0, done
	return box


def fork_ms(bench, box):
	begin = time.monotonic()
	done = bench.cloche.call('fork', box.id)
	took = (time.monotonic() - begin) * 1000
	assert done.code == 0, done
	fork = Sandbox(bench.cloche, done.out.strip())
	bench.sandboxes.append(fork)
	bench.remove(fork)
	return took


def copy_ms(bench, box):
	"""The same files by `cp -a`, out of the layers."""
	target = bench.folder / 'copy'
	begin = time.monotonic()
	target.mkdir()
	for layer in sorted((bench.cloche.state / 'layers').glob(f'{box.id}.*')):
		subprocess.run(['cp', '-a', layer / 'fs', target / layer.name], check=True)
	took = (time.monotonic() - begin) * 1000
	shutil.rmtree(target)
	return took


def measure(bench):
	bench.warm()
	boxes = {n: source(bench, n) for n in (FEW, MANY)}
	first = {n: fork_ms(bench, box) for n, box in boxes.items()}
	later = {n: [] for n in boxes}
	for _ in range(ROUNDS):
		for n, box in boxes.items():
			later[n].append(fork_ms(bench, box))
	middle = {n: percentile(times, 0.5) for n, times in later.items()}
	copied = copy_ms(bench, boxes[MANY])
	yield {'files_few': FEW, 'files_many': MANY, 'first_few_ms': round(first[FEW], 1), 'first_many_ms': round(first[MANY], 1),
		'later_few_ms': round(middle[FEW], 1), 'later_many_ms': round(middle[MANY], 1),
		'many_to_few': ratio(middle[MANY], middle[FEW]), 'goal': 1.1,
		'copy_many_ms': round(copied), 'copy_to_fork': ratio(copied, first[MANY])}
