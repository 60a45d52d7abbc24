# SPDX-License-Identifier: Apache-2.0
"""The control plane over HTTP: an exec of true beside `crun exec` and beside the same over the control socket, on a kept
connection and on a new one each; then the exec log: rows indexed from records, and read by pages of 1,000, on both databases."""
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import time

import peers
from common import interleave, ms, percentile, ratio
from control import Control
from harness import wait_for
from measure_exec import embedded
from serving import Postgres

ROUNDS = 200
ROWS = 6000
WORKERS = 4
READS = 5


class Kept:
	"""One connection, kept."""

	def __init__(self, server):
		self.connection = http.client.HTTPConnection('127.0.0.1', server.port, timeout=60)
		self.head = {'Authorization': f'Bearer {server.admin.key}', 'Content-Type': 'application/json'}

	def __call__(self, method, path, body=None):
		self.connection.request(method, path, body and json.dumps(body), self.head)
		response = self.connection.getresponse()
		text = response.read()
		assert response.status == 200, text
		return json.loads(text)


def exec_true(ask, box):
	begin = time.perf_counter()
	assert ask('POST', f'/v1/sandboxes/{box}/exec', {'argv': ['/bin/true']})['exit_code'] == 0
	return time.perf_counter() - begin


def execs(bench, server):
	bundle = peers.crun_bundle(bench.folder / 'bundle', ['/bin/sleep', '1000'])
	box, kept = server.admin.create(), Kept(server)
	control = Control(pathlib.Path(bench.cloche.env()['CLOCHE_STATE'], 'sandboxes', box, 'control.sock'))
	with contextlib.closing(control), peers.Crun() as crun:
		crun('run', '-d', '-b', str(bundle), 'cloche-bench-http')
		try:
			results = interleave(ROUNDS, http=lambda: exec_true(kept, box), http_new=lambda: exec_true(Kept(server), box),
				embedded=lambda: embedded(control), crun=lambda: crun('exec', 'cloche-bench-http', '/bin/true'))
		finally:
			crun('delete', '-f', 'cloche-bench-http')
	median = {name: percentile(values, 0.5) for name, values in results.items()}
	return {'rounds': ROUNDS, **{f'{name}_ms': ms(value) for name, value in median.items()},
		'ratio': ratio(median['http'], median['crun']), 'ratio_new': ratio(median['http_new'], median['crun']), 'goal': 0.5}


def fill(bench, server):
	"""ROWS rows in the record of one sandbox, made over its own socket."""
	box = server.admin.create()
	path = pathlib.Path(bench.cloche.env()['CLOCHE_STATE'], 'sandboxes', box, 'control.sock')

	def work(_):
		with contextlib.closing(Control(path)) as control:
			for _ in range(ROWS // WORKERS):
				control.exec('/bin/true')

	with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
		list(pool.map(work, range(WORKERS)))
	return box


def count(ask, box):
	"""Rows of a log, page by page."""
	n, cursor = 0, ''
	while True:
		page = ask('GET', f'/v1/sandboxes/{box}/log?limit=1000{cursor}')
		n += len(page['items'])
		if not page['next_cursor']:
			return n
		cursor = '&cursor=' + page['next_cursor']


def log(bench, box, place, name):
	"""A control plane with an empty database, which it fills from the record."""
	begin = time.perf_counter()
	with bench.server(database=place) as server:
		ask = Kept(server)
		wait_for(lambda: ask('GET', '/v1/sandboxes')['items'], 'the sandbox in the index', 60)
		wait_for(lambda: count(ask, box) >= ROWS, 'all rows in the index', 60)
		indexed = time.perf_counter() - begin
		begin = time.perf_counter()
		read = sum(count(ask, box) for _ in range(READS))
		took = time.perf_counter() - begin
	return {'database': name, 'rows': ROWS, 'index_s_with_start': round(indexed, 2), 'rows_read_per_s': round(read / took), 'goal': 5000}


def measure(bench):
	with bench.server() as server:
		yield execs(bench, server)
		box = fill(bench, server)
	with contextlib.closing(Postgres(bench.folder / 'postgres')) as postgres:
		yield log(bench, box, f'sqlite:{bench.folder}/state/server/second.db', 'sqlite')
		yield log(bench, box, postgres.database(), 'postgres')
