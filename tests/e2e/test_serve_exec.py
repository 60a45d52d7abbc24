# SPDX-License-Identifier: Apache-2.0
"""Commands over HTTP: input for one that runs, and what a caller who leaves or is killed costs."""
import base64
import contextlib
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import threading

import pytest

import serving
from harness import wait_for

STORES = ['sqlite'] # nothing here asks the database but what test_serve.py does; CLOCHE_TEST_STORES=all runs both

MAX = 1 << 20 # of input that waits


@pytest.fixture(scope='module')
def box(server):
	made = server.admin.create()
	yield made
	assert server.admin.delete(at(made)).status == 200


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


def feed(client, box, exec_id, **body):
	return client.post(at(box, f'/exec/{exec_id}/stdin'), body)


def taken(reply):
	assert reply.status == 200, reply
	return reply.json


def refused(reply):
	assert reply.status >= 400, reply
	return reply.status, reply.json['code']


def detach(client, box, command, **how):
	begun = client.post(at(box, '/exec'), {'command': command, 'detach': True, **how})
	assert begun.status == 202, begun
	return begun.json['exec']


def row(client, box, exec_id):
	return wait_for(lambda: (got := client.get(at(box, f'/exec/{exec_id}'))).status == 200 and got.json, 'its row')


def test_a_dialogue(admin, box):
	"""Each line is answered while the command runs; what came with its begin comes first."""
	events = iter(admin.stream(at(box, '/exec'), {'command': 'while read -r line; do printf "<%s>\\n" "$line"; done; echo end; exit 3', 'stdin': 'zero\n', 'stdin_open': True}))
	exec_id = next(events)[2]['exec']
	assert next(events)[2]['data'] == '<zero>\n'
	for line in ('one', "'; DROP TABLE log; --", 'a\\b"%_é'):
		assert taken(feed(admin, box, exec_id, data=line + '\n'))['bytes'] == len(line.encode()) + 1
		assert next(events)[2]['data'] == f'<{line}>\n'
	assert taken(feed(admin, box, exec_id, data='last', eof=True)) == {'exec': exec_id, 'bytes': 4, 'waiting_bytes': 4, 'eof': True}
	rest = list(events)
	assert ''.join(data['data'] for name, _, data in rest if name == 'stdout') == 'end\n' and rest[-1][2]['exit_code'] == 3
	assert refused(feed(admin, box, exec_id, data='x')) == (409, 'ended')


def test_any_bytes_to_one_that_is_waited_for_or_detached(admin, box):
	every = bytes(range(256)) * 4
	done, seen = [], set(item['exec'] for item in admin.pages(at(box, '/log'), 1000))
	thread = threading.Thread(target=lambda: done.append(admin.post(at(box, '/exec'), {'argv': ['sha256sum'], 'stdin_open': True})))
	thread.start()
	begun = wait_for(lambda: next((event['exec'] for event in admin.pages(at(box, '/trace/events'), 1000) if event['kind'] == 'exec.start' and
		event['exec'] not in seen), None), 'its begin')
	detached = detach(admin, box, 'sha256sum', stdin_open=True)
	for exec_id in (begun, detached):
		for n in range(0, len(every), 300):
			taken(feed(admin, box, exec_id, data_b64=base64.b64encode(every[n:n + 300]).decode()))
		taken(feed(admin, box, exec_id, data='')) # nothing is no end
		taken(feed(admin, box, exec_id, data='\0é'))
		taken(feed(admin, box, exec_id, eof=True))
	thread.join()
	expected = hashlib.sha256(every + '\0é'.encode()).hexdigest() + '  -\n'
	assert done[0].json['stdout'] == expected == row(admin, box, detached)['stdout']


def test_input_given_whole_to_one_that_is_detached(admin, box):
	text = 'line\n' * 150000
	assert row(admin, box, detach(admin, box, 'sleep 0.2; wc -c', stdin=text))['stdout'] == f'{len(text)}\n'


def test_what_waits_is_bounded_and_nothing_is_half_taken(admin, box):
	admin.exec(box, 'mkfifo /tmp/go')
	exec_id = detach(admin, box, 'read -r go < /tmp/go; md5sum', stdin_open=True)
	digest, n, piece = hashlib.md5(usedforsecurity=False), 0, 'x' * 300000
	while (got := feed(admin, box, exec_id, data=piece)).status == 200:
		digest.update(piece.encode())
		n += 1
		assert n <= 5, got
	assert refused(got) == (429, 'stdin_full') and got.headers['Retry-After'] == '1' and n >= 3
	assert refused(feed(admin, box, exec_id, data=piece, eof=True)) == (429, 'stdin_full') # and so it is not at its end
	small = taken(feed(admin, box, exec_id, data='tail'))
	assert MAX - len(piece) < small['waiting_bytes'] <= MAX
	digest.update(b'tail')
	admin.exec(box, 'echo > /tmp/go')
	wait_for(lambda: feed(admin, box, exec_id, data='').json['waiting_bytes'] == 0, 'all of it to be read')
	taken(feed(admin, box, exec_id, data=piece, eof=True)) # and now it is taken
	digest.update(piece.encode())
	assert row(admin, box, exec_id)['stdout'] == digest.hexdigest() + '  -\n'


def test_one_that_reads_no_more(admin, box):
	exec_id = detach(admin, box, 'exec < /dev/null; sleep 30', stdin_open=True)
	wait_for(lambda: feed(admin, box, exec_id, data='x').status == 409, 'it to be found out')
	assert refused(feed(admin, box, exec_id, data='x')) == (409, 'stdin_closed')
	assert admin.post(at(box, f'/exec/{exec_id}/kill')).status == 204
	assert row(admin, box, exec_id)['signal'] == 9
	assert refused(feed(admin, box, exec_id, eof=True)) == (409, 'ended')


def test_whom_no_input_can_be_sent(server, admin, box):
	closed, shut = detach(admin, box, 'sleep 30'), detach(admin, box, 'cat; sleep 30', stdin_open=True)
	taken(feed(admin, box, shut, eof=True))
	whole = detach(admin, box, 'sleep 30', stdin='x')
	other = admin.create()
	for exec_id, expected in ((closed, (409, 'stdin_not_open')), (whole, (409, 'stdin_not_open')), (shut, (409, 'stdin_closed')),
			('ex_0000000000000000', (404, 'not_found')), ('ex_', (404, 'not_found')), ("' OR 1=1 --".replace(' ', '%20'), (404, 'not_found'))):
		assert refused(feed(admin, box, exec_id, data='x')) == expected, exec_id
	open_one = detach(admin, box, 'cat', stdin_open=True)
	assert refused(feed(admin, other, open_one, data='x')) == (404, 'not_found') # it is another sandbox's
	assert refused(feed(server.client('admin', account='input'), box, open_one, data='x')) == (404, 'not_found')
	assert refused(feed(server.client('auditor'), box, open_one, data='x')) == (403, 'forbidden')
	for bad in ({}, {'eof': False}, {'data': 1}, {'data': 'a', 'data_b64': 'YQ=='}, {'data_b64': '*'}, {'eof': 'yes'}, {'data': 'a', 'nonsense': 1}):
		assert refused(feed(admin, box, open_one, **bad)) == (400, 'invalid'), bad
	assert admin.post(at(box, f'/exec/{open_one}/stdin'), b'{"data":"a","data":"b"}').status == 400
	assert admin.post(at(box, f'/exec/{open_one}/stdin'), b'{"data":"' + b'x' * (1 << 20) + b'"}').status == 413
	taken(feed(admin, box, open_one, data='only this', eof=True))
	assert row(admin, box, open_one)['stdout'] == 'only this'
	assert admin.delete(at(other)).status == 200
	assert refused(feed(admin, other, open_one, data='x')) == (404, 'not_found')
	for exec_id in (closed, shut, whole):
		assert admin.post(at(box, f'/exec/{exec_id}/kill')).status == 204


def test_one_that_is_held_for_its_input_counts_until_its_end(server, admin):
	assert admin.post('/v1/accounts', {'id': 'one', 'max_execs': 1}).status == 201
	one = server.client('admin', account='one')
	own = one.create()
	held = detach(one, own, 'cat', stdin_open=True)
	assert refused(one.post(at(own, '/exec'), {'command': 'true'})) == (429, 'quota')
	taken(feed(one, own, held, eof=True))
	wait_for(lambda: one.post(at(own, '/exec'), {'command': 'true'}).status == 200, 'its end to count')
	assert one.delete(at(own)).status == 200


def test_input_is_sent_once(admin, box):
	exec_id = detach(admin, box, 'cat', stdin_open=True)
	for _ in range(3):
		again = admin.post(at(box, f'/exec/{exec_id}/stdin'), {'data': 'once '}, headers={'Idempotency-Key': exec_id})
		assert taken(again)['bytes'] == 5
	taken(feed(admin, box, exec_id, eof=True))
	assert row(admin, box, exec_id)['stdout'] == 'once '


def test_a_client_that_leaves_does_not_end_the_input(admin, box):
	events = admin.stream(at(box, '/exec'), {'command': 'cat', 'stdin_open': True})
	exec_id = next(iter(events))[2]['exec']
	events.close()
	taken(feed(admin, box, exec_id, data='still ', eof=False))
	taken(feed(admin, box, exec_id, data='here', eof=True))
	assert row(admin, box, exec_id)['stdout'] == 'still here'


LEAVING = {'wait': {}, 'stream': {'Accept': 'text/event-stream'}}


@pytest.mark.parametrize('head', LEAVING.values(), ids=LEAVING)
def test_a_caller_who_goes_away_costs_no_row(admin, box, head):
	"""R89: in the middle of it, with output that nobody takes."""
	seen = [item['exec'] for item in admin.pages(at(box, '/log'), 1000)]
	body = {'command': 'head -c 3000000 /dev/zero; sleep 0.5; echo finished > /workspace/left; exit 4'}
	connection = http.client.HTTPConnection('127.0.0.1', admin.server.port)
	connection.request('POST', at(box, '/exec'), json.dumps(body), {'Authorization': f'Bearer {admin.key}', **head})
	wait_for(lambda: {event['exec'] for event in admin.pages(at(box, '/trace/events'), 1000) if event['kind'] == 'exec.start'} - set(seen), 'the command')
	connection.sock.shutdown(socket.SHUT_RDWR)
	connection.close()
	[done] = wait_for(lambda: [item for item in admin.pages(at(box, '/log'), 1000) if item['exec'] not in seen], 'its row')
	assert (done['exit_code'], done['stdout_bytes'], done['stdout_sha256']) == (4, 3000000, hashlib.sha256(bytes(3000000)).hexdigest())
	assert done['duration_ms'] >= 500 and admin.exec(box, 'cat /workspace/left; rm /workspace/left')['stdout'] == 'finished\n'


def test_a_crowd_that_goes_away(server, admin):
	"""Each at another moment, in every way of asking: what began has one row, what did not has none, and nobody is the worse for it."""
	box, rng, pid = admin.create(), random.Random(89), server.serve_pid()
	for _ in range(60):
		body = {'command': rng.choice(('echo x', 'head -c 300000 /dev/zero', 'sleep 0.05', 'cat')), 'timeout_ms': 2000,
			**{key: True for key in ('stdin_open', 'kill_on_disconnect', 'detach', 'trace') if rng.random() < 0.3}, **({'stdin': 'y' * 200000} if rng.random() < 0.3 else {})}
		text = json.dumps(body)
		accept = 'Accept: text/event-stream\r\n' if rng.random() < 0.5 else ''
		with socket.create_connection(('127.0.0.1', server.port), 5) as sock:
			sock.sendall(f'POST {at(box, "/exec")} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {admin.key}\r\n{accept}Content-Length: {len(text)}\r\n\r\n{text}'.encode())
			if rng.random() < 0.5:
				sock.settimeout(rng.random() / 50)
				with contextlib.suppress(TimeoutError):
					sock.recv(1000)

	def ended():
		begun = [event['exec'] for event in admin.pages(at(box, '/trace/events'), 1000) if event['kind'] == 'exec.start']
		rows = [item['exec'] for item in admin.pages(at(box, '/log'), 1000)]
		return len(begun) == len(rows) > 10 and sorted(rows) == sorted(begun)

	wait_for(ended, 'a row of each')
	assert server.serve_pid() == pid and admin.exec(box, 'echo alive')['stdout'] == 'alive\n'
	wait_for(lambda: b'\ncloche_execs_running 0\n' in admin.get('/metrics').body, 'nothing to be under way')
	assert admin.delete(at(box)).status == 200


def test_the_process_that_holds_the_input_is_killed(server, admin, box):
	"""The command goes on, and its input ends behind what it got."""
	running = [detach(admin, box, f'cat > /tmp/got; sleep 0.{n}; cat /tmp/got; exit 7', stdin_open=True) for n in (2, 3)]
	for exec_id in running:
		taken(feed(admin, box, exec_id, data='before'))
		wait_for(lambda exec_id=exec_id: feed(admin, box, exec_id, data='').json['waiting_bytes'] == 0, 'it to be read')
	waits = detach(admin, box, 'sleep 30', stdin_open=True)
	old = server.serve_pid()
	os.kill(old, signal.SIGKILL)
	wait_for(server.is_up, 'the next one', 20)
	assert server.serve_pid() != old
	assert refused(feed(admin, box, waits, data='x')) == (409, 'stdin_not_open')
	for exec_id in running:
		done = row(admin, box, exec_id)
		assert (done['stdout'], done['exit_code']) == ('before', 7)
	assert admin.post(at(box, f'/exec/{waits}/kill')).status == 204


def test_another_replica_says_who_holds_it(server, admin, box):
	replica = serving.Server(server.cloche, *server.options[:-1], server.options[-1] + '2', database=server.database, key=server.key)
	try:
		exec_id = detach(admin, box, 'cat', stdin_open=True)
		assert refused(feed(replica.admin, box, exec_id, data='x')) == (409, 'stdin_held_elsewhere')
		taken(feed(admin, box, exec_id, data='y', eof=True))
		assert row(replica.admin, box, exec_id)['stdout'] == 'y'
		assert refused(feed(replica.admin, box, exec_id, data='x')) == (409, 'ended')
	finally:
		replica.stop()
