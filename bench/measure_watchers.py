# SPDX-License-Identifier: Apache-2.0
"""1,000 watchers of one sandbox over HTTP while 100 files a second are made in it: who missed one, how late they came, and
what the half that speaks HTTP holds meanwhile. The readers are one more program on the same cores."""
import json
import pathlib
import subprocess

from common import compiled, pss_kb
from harness import PYTHON

WATCHERS = 1000
EVENTS = 2000
# An event of some 300 bytes as JSON, its moment in the name.
MAKER = f'''
import os, time
begin = time.monotonic()
for i in range({EVENTS}):
	time.sleep(max(0, begin + i * 0.01 - time.monotonic()))
	os.close(os.open(f'/workspace/at{{time.monotonic_ns()}}' + '-' * 40, os.O_CREAT | os.O_WRONLY))
'''


def measure(bench):
	place = bench.folder / 'watch_load'
	place.mkdir()
	program = compiled(place, (pathlib.Path(__file__).parent / 'watch_load.c').read_text(), '-D_GNU_SOURCE')
	with bench.server() as server:
		box = server.admin.create()
		before = pss_kb(server.serve_pid())
		load = subprocess.Popen([program, str(server.port), server.admin.key, box, str(WATCHERS), str(EVENTS)], stdout=subprocess.PIPE, text=True)
		assert load.stdout.readline() == 'ready\n'
		bench.cloche.call('exec', box, '--', PYTHON, '-c', MAKER, limit_s=120)
		held = pss_kb(server.serve_pid())
		result = json.loads(load.stdout.readline())
		assert load.wait() == 0
	yield {**result, 'each': EVENTS, 'memory_mib': round((held - before) / 1024, 1), 'goal_ms': 100}
