# SPDX-License-Identifier: Apache-2.0
"""What changed, 10 of 50,000 files, in a cow and an rw mount, beside git status in the same tree; and once as many files
as a middling npm install brings are there. CPU times stand beside wall times, since a machine that is shared adds to these."""
import os
import resource
import shutil
import subprocess

from common import interleave, ms, percentile, ratio, timed
from measure_manifest import FILES, make_tree

CHANGED = 10
ROUNDS = 9
PACKAGES, IN_A_PACKAGE = 300, 50
EDIT = f'n=0; while [ $n -lt {CHANGED} ]; do echo more >> d$n/s$n/f$n.c; n=$((n + 1)); done'
INSTALL = f'''p=0; mkdir node_modules; while [ $p -lt {PACKAGES} ]; do
mkdir -p node_modules/p$p/lib; f=0
while [ $f -lt {IN_A_PACKAGE} ]; do echo "module $p $f" > node_modules/p$p/lib/$f.js; f=$((f + 1)); done; p=$((p + 1)); done'''


def git(tree, *args):
	subprocess.run(['git', '-C', str(tree), '-c', 'user.name=b', '-c', 'user.email=b@localhost', '-c', 'gc.auto=0', *args],
		check=True, stdout=subprocess.DEVNULL)


def measured(command, **how):
	"""Wall and CPU seconds of a command."""
	before = resource.getrusage(resource.RUSAGE_CHILDREN)
	wall = timed(command, **how)
	after = resource.getrusage(resource.RUSAGE_CHILDREN)
	return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compare(bench, tree, sides):
	"""Median wall and CPU seconds of each side, interleaved."""
	env = bench.cloche.env()
	results = interleave(ROUNDS, **{name: lambda command=command: measured(command, env=env, cwd=tree) for name, command in sides.items()})
	return {name: [percentile([value[i] for value in values], 0.5) for i in range(2)] for name, values in results.items()}


def report(what, found, goals):
	for name, goal in goals.items():
		wall, cpu = (ratio(found[name][i], found['git'][i]) for i in range(2))
		yield {'what': what, 'side': name, 'files': FILES, 'rounds': ROUNDS, 'ms': ms(found[name][0]), 'cpu_ms': ms(found[name][1]),
			'git_ms': ms(found['git'][0]), 'git_cpu_ms': ms(found['git'][1]), 'ratio': wall, 'ratio_cpu': cpu, 'goal': goal,
			'load': round(os.getloadavg()[0], 1)}


def measure(bench):
	trees, boxes = {}, {}
	for mode in ('cow', 'rw'):
		tree = trees[mode] = bench.folder / mode
		tree.mkdir()
		make_tree(tree)
		git(tree, 'init', '-q')
		git(tree, 'add', '-A')
		git(tree, 'commit', '-qm', 'all')
		git(tree, 'repack', '-adq')
		boxes[mode] = bench.cloche.create('--trace', '-m', f'{tree}:{tree}:{mode}', '-m', f'{tree}/.git:{tree}/.git:ro')
	def run(script):
		for mode, box in boxes.items():
			done = box.sh(f'cd {trees[mode]}; {script}')
			assert done.code == 0, done
	def sides(verb):
		return {mode: [str(bench.cloche.program), verb, '--json', box.id] if verb == 'changes' else [str(bench.cloche.program), verb, box.id]
			for mode, box in boxes.items()}
	run(EDIT)
	status = {'git': ['git', 'status', '--porcelain']}
	# In the rw tree git sees the same ten changes.
	yield from report('10 changed', compare(bench, trees['rw'], {**sides('changes'), **status}), {'cow': 0.1, 'rw': 1.0})
	diff = {'cow': sides('diff')['cow'], 'git': ['git', 'diff']}
	yield from report('diff after 10', compare(bench, trees['rw'], diff), {'cow': None})
	run(INSTALL)
	yield from report(f'and {PACKAGES * IN_A_PACKAGE} files of packages', compare(bench, trees['rw'],
		{**sides('changes'), 'git': ['git', 'status', '--porcelain', '-uall']}), {'cow': None, 'rw': None})
	for box in boxes.values():
		box.remove()
	for tree in trees.values():
		shutil.rmtree(tree)
