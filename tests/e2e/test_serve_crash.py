# SPDX-License-Identifier: Apache-2.0
"""Any part of the control plane is killed in the middle of its work: what was answered has its row, once, and nothing is orphaned."""
import http.client
import os
import signal
import threading
import time

import pytest

from harness import wait_for
from serving import Client


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


class Load:
	"""Threads that run commands, and one that watches; whatever is cut off is tried again."""

	def __init__(self, server, boxes):
		self.client = Client(server, server.admin.post('/v1/api-keys', {'rate_limit': 100000}).json['key'])
		self.answered, self.seen, self.is_over = {box: [] for box in boxes}, {box: [] for box in boxes}, False
		self.wrong = []
		self.threads = [threading.Thread(target=self.guard, args=(self.run, box)) for box in boxes for _ in range(2)]
		self.watchers = [threading.Thread(target=self.guard, args=(self.watch, box)) for box in boxes]
		for thread in self.threads + self.watchers:
			thread.start()

	def guard(self, work, box):
		try:
			work(box)
		except AssertionError as error:
			self.wrong.append(error)

	def run(self, box):
		while not self.is_over:
			try:
				done = self.client.post(at(box, '/exec'), {'argv': ['true']}, limit_s=20)
			except (OSError, http.client.HTTPException):
				time.sleep(0.05)
				continue
			if done.status == 200:
				self.answered[box].append(done.json['exec'])
			else: # between two lives
				assert done.status in (409, 503), done
				time.sleep(0.05)

	def watch(self, box):
		mine = self.seen[box]
		while not self.is_over:
			try:
				events = self.client.stream(at(box, '/watch'), headers={'Last-Event-ID': mine[-1][0]} if mine else {}, limit_s=2)
				for name, id, row in events:
					if name == 'row':
						mine.append((id, row['exec']))
					if self.is_over:
						break
				events.close()
			except (OSError, http.client.HTTPException, ValueError):
				time.sleep(0.05)

	def end(self):
		self.is_over = True
		for thread in self.threads + self.watchers:
			thread.join(timeout=60)
			assert not thread.is_alive()
		assert not self.wrong, self.wrong

	def check(self, admin):
		for box, answered in self.answered.items():
			rows = [row['exec'] for row in admin.pages(at(box, '/log'), 500)]
			assert len(answered) > 5 and len(rows) == len(set(rows)) and set(answered) <= set(rows), box
			ids, execs = zip(*self.seen[box])
			assert ids == tuple(f'r{n + 1}' for n in range(len(ids))) and len(set(execs)) == len(execs)
			assert list(execs) == rows[:len(execs)]


@pytest.mark.parametrize('part', ['serve', 'launcher'])
def test_a_part_is_killed_under_load(server, admin, part):
	boxes = [admin.create() for _ in range(2)]
	load = Load(server, boxes)
	for _ in range(3):
		time.sleep(0.7)
		if part == 'serve':
			os.kill(server.serve_pid(), signal.SIGKILL)
		else:
			server.process.kill()
			server.process.wait()
			server.process.stdout.close()
			server.log.close()
			server.start()
		wait_for(server.is_up, 'the next one', 20)
	time.sleep(0.7)
	load.end()
	wait_for(server.is_up, 'the last one', 20)
	load.check(admin)
	for box in boxes:
		assert admin.exec(box, 'echo alive')['stdout'] == 'alive\n'
		assert admin.delete(at(box)).status == 200


def test_a_supervisor_is_killed(server, admin):
	box, other = admin.create(), admin.create()
	rows = []
	thread = threading.Thread(target=lambda: rows.append(admin.post(at(box, '/exec'), {'command': 'sleep 30'})))
	thread.start()
	wait_for(lambda: any(event['kind'] == 'exec.start' for event in admin.get(at(box, '/trace/events')).json['items']), 'its start')
	for pid in server.cloche.processes(box, 'cloche-supervisor'):
		os.kill(pid, signal.SIGKILL)
	thread.join(timeout=30)
	assert rows and rows[0].status == 200 and rows[0].json['command'] == 'sleep 30' and rows[0].json['exit_code'] is None, rows
	assert [row['exec'] for row in admin.get(at(box, '/log')).json['items']] == [rows[0].json['exec']]
	assert admin.get(at(box)).json['state'] == 'ended'
	gone = admin.post(at(box, '/exec'), {'command': 'true'})
	assert gone.status == 409 and gone.json['code'] in ('not_running', 'ended'), gone
	assert admin.exec(other, 'true')['exit_code'] == 0
	for made in (box, other):
		assert admin.delete(at(made)).status == 200


def test_postgres_is_killed_under_load(request, server, admin):
	if server.database is None:
		pytest.skip('one file, no server')
	postgres = request.getfixturevalue('postgres')
	boxes = [admin.create()]
	load = Load(server, boxes)
	for _ in range(2):
		time.sleep(0.7)
		postgres.kill()
		time.sleep(0.3)
		postgres.start()
	time.sleep(1)
	load.end()
	wait_for(lambda: admin.get('/health').status == 200, 'the store')
	load.check(admin)
	assert admin.delete(at(boxes[0])).status == 200
