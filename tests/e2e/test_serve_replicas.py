# SPDX-License-Identifier: Apache-2.0
"""Two servers with one state and one database agree: on keys, on rates, on what was done, on what is done once."""
import threading
import time

import pytest

from harness import wait_for
from serving import Client, Server

STORES = ['postgres'] # what they agree by is the store's, whose tests race two processes on both


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


@pytest.fixture(scope='module')
def both(server):
	"""A client of each, with the same key."""
	second = Server(server.cloche, *server.options[:-1], server.options[-1] + '2', database=server.database, key=server.key)
	yield server.admin, second.admin
	second.stop()


@pytest.fixture
def box(both):
	made = both[0].create()
	yield made
	assert both[1].delete(at(made)).status == 200


def at_once(*works):
	"""What each gives, all begun together."""
	got, start = [None] * len(works), threading.Barrier(len(works))

	def run(n):
		start.wait()
		got[n] = works[n]()

	threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(works))]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join(timeout=60)
	return got


def test_a_key_is_one_key(both):
	one, other = both
	made = one.post('/v1/api-keys', {'role': 'member'}).json
	mine, theirs = Client(one.server, made['key']), Client(other.server, made['key'])
	assert mine.get('/v1/sandboxes').status == theirs.get('/v1/sandboxes').status == 200
	assert one.delete('/v1/api-keys/' + made['id']).status == 204
	assert theirs.get('/v1/sandboxes').status == mine.get('/v1/sandboxes').status == 401, 'from the next request on'
	assert other.delete('/v1/api-keys/' + made['id']).status == 404


def test_what_one_did_the_other_tells(both, box):
	one, other = both
	for n in range(4): # at once, without a wait
		row = (one, other)[n % 2].exec(box, f'echo {n}')
		assert (other, one)[n % 2].get(at(box, '/log')).json['items'][-1] == row
	assert other.get(at(box)).json == one.get(at(box)).json
	assert other.post(at(box, '/pause')).json['state'] == 'paused' == one.get(at(box)).json['state']
	assert one.post(at(box, '/wake')).json['state'] == 'running' == other.get(at(box)).json['state']
	events = other.stream(at(box, '/watch'))
	assert [row['command'] for _, _, row in events.take(4)] == [f'echo {n}' for n in range(4)]
	threading.Timer(0.1, one.exec, (box, 'echo live')).start()
	assert [row['command'] for _, _, row in events.take(1)] == ['echo live']
	events.close()
	acts = [(line['act'], line['object']) for line in other.get('/v1/audit?limit=1000').json['items']]
	assert acts == [(line['act'], line['object']) for line in one.get('/v1/audit?limit=1000').json['items']] and ('sandbox.created', box) in acts


def test_a_rate_is_one_rate(both):
	limit = 24
	key = both[0].post('/v1/api-keys', {'rate_limit': limit}).json['key']
	clients = [Client(client.server, key) for client in both]
	wait_for(lambda: time.time() % 1 < 0.1, 'the begin of a second')
	begin, over = time.time(), time.time() + 1.2

	def hammer(client):
		good = 0
		while time.time() < over:
			good += client.get('/v1/sandboxes?limit=1').status == 200
		return good

	good = sum(at_once(*(lambda client=client: hammer(client) for client in clients * 2)))
	seconds = int(time.time()) - int(begin) + 1
	assert good <= limit * seconds, 'never more, over both'
	assert good >= limit - 2 * (limit // 8), 'no more is lost than a share of each'


def test_what_is_asked_twice_is_done_once(both, box):
	asks = [lambda client=client: client.post(at(box, '/exec'), {'command': 'sleep 0.3; date +%N'}, headers={'Idempotency-Key': 'both'}) for client in both]
	got = at_once(*asks * 2)
	done = {reply.body for reply in got if reply.status == 200}
	assert len(done) == 1 and {reply.status for reply in got} <= {200, 409}, got
	assert {ask().body for ask in asks} == done and len(both[0].get(at(box, '/log')).json['items']) == 1


def test_sandboxes_are_made_by_both(both):
	boxes = at_once(*(client.create for client in both * 3))
	assert len(set(boxes)) == 6
	for client in both:
		assert {one['id'] for one in client.get('/v1/sandboxes?state=running').json['items']} == set(boxes)
	gone = at_once(*(lambda box=box, client=client: client.delete(at(box)).status for box, client in zip(boxes, both[::-1] * 3)))
	assert gone == [200] * 6 and all(client.get('/v1/sandboxes?state=running').json['items'] == [] for client in both)
	rows = both[0].get('/v1/audit?limit=1000').json['items']
	assert len({row['n'] for row in rows}) == len(rows) and {row['object'] for row in rows if row['act'] == 'sandbox.removed'} >= set(boxes)
