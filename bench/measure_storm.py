# SPDX-License-Identifier: Apache-2.0
"""Opens and unlinks on all cores as fast as they go: what was recorded, counted beside what was made. In memory, since
on a disk the file system would be what is measured."""
import json
import subprocess

from common import compiled, ms, n_cpus, ratio

ROUNDS = 3
CALLS = 600_000
STORM = '''
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int workers = atoi(argv[1]), each = atoi(argv[2]);
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int w = 0; w < workers; w++)
		if (fork() == 0) {
			char path[64];
			snprintf(path, sizeof(path), "/dev/shm/s%d", w);
			for (int i = 0; i < each; i++) {
				close(open(path, O_CREAT | O_WRONLY, 0600));
				unlink(path);
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%f\\n", (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
	return 0;
}
'''


def storm(bench, program, option):
	workers = n_cpus()
	box = bench.sandbox(option, '-m', f'{program.parent}:/storm:ro')
	done = bench.cloche.call('exec', box.id, '--', '/storm/main', str(workers), str(CALLS // 2 // workers), limit_s=300)
	assert done.code == 0, done
	return box, float(done.out)


def count(bench, box):
	"""Counted by reading the journal line by line, not by the product's own sums."""
	opens = deletes = 0
	reader = bench.cloche.start('events', box.id, '--jsonl', '--noise', stderr=subprocess.DEVNULL)
	for line in reader.stdout:
		if b'"/dev/shm/s' in line:
			kind = json.loads(line)['kind']
			opens += kind == 'file.open'
			deletes += kind == 'file.delete'
	reader.wait()
	return opens + deletes


def measure(bench):
	place = bench.folder / 'storm'
	place.mkdir()
	program = compiled(place, STORM)
	for _ in range(ROUNDS):
		box, bare = storm(bench, program, '--no-trace')
		bench.remove(box)
		box, traced = storm(bench, program, '--trace')
		recorded, show = count(bench, box), box.record.show()
		bench.remove(box)
		yield {'made': CALLS, 'recorded': recorded, 'dropped': show['dropped'], 'complete': show['complete'], 'bare_ms': ms(bare),
			'traced_ms': ms(traced), 'ratio': ratio(traced, bare), 'goal': 2.0}
