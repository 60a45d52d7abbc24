# SPDX-License-Identifier: Apache-2.0
"""Whole cases of who looks on from outside: a line that drops at any byte, and names made to run in whatever shows them."""
import contextlib
import json
import os
import random
import re
import socket
import threading

import pytest

from harness import wait_for
from serving import Client, Receiver

CONFIG = {'accounts': {'default': {'private': True}}}
STORES = ['sqlite'] # of the store nothing is asked that test_serve.py does not ask of both; CLOCHE_TEST_STORES=all runs both
N_ROWS = int(os.environ.get('CLOCHE_TEST_ROWS', '50'))


def at(box, rest=''):
	return f'/v1/sandboxes/{box}{rest}'


# ---- R85


def some_bytes(client, path, last, n):
	"""What a stream gives in its first n bytes, as whole events: (id, name, data)."""
	got = b''
	with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', client.server.port), timeout=0.2) as sock:
		resume = f'Last-Event-ID: {last}\r\n' if last else ''
		sock.sendall(f'GET {path} HTTP/1.0\r\nAuthorization: Bearer {client.key}\r\n{resume}\r\n'.encode())
		while len(got) < n:
			chunk = sock.recv(min(n - len(got), 4096))
			if not chunk:
				break
			got += chunk
	head, _, body = got.partition(b'\r\n\r\n')
	assert not body or head.startswith(b'HTTP/1.1 200 ') or head.startswith(b'HTTP/1.0 200 '), head
	whole, end, _ = body.decode(errors='ignore').rpartition('\n\n')
	for event in whole.split('\n\n') if end else []:
		fields = dict(line.split(': ', 1) for line in event.split('\n') if not line.startswith(':'))
		if 'id' in fields:
			yield fields['id'], fields['event'], json.loads(fields['data'])


def test_a_line_that_drops_at_any_byte(server, admin):
	"""Two watchers, of rows and of events, while rows are written, and over a restart of the server."""
	box = admin.create()
	often = Client(server, admin.post('/v1/api-keys', {'rate_limit': 100000}).json['key'])
	seen, wrong, drops, is_over = {'': [], '?events=true': []}, [], [0], threading.Event()

	def watch(what, seed):
		rest, mine = random.Random(seed), seen[what]
		try:
			while not is_over.is_set():
				for id, name, data in some_bytes(often, at(box, '/watch' + what), mine[-1][0] if mine else None, rest.randrange(300, 9000)):
					mine.append((id, name, data.get('command')))
				drops[0] += 1
		except (AssertionError, ValueError, KeyError) as error:
			wrong.append(error)

	watchers = [threading.Thread(target=watch, args=(what, seed)) for seed, what in enumerate(seen)]
	for thread in watchers:
		thread.start()
	for n in range(N_ROWS // 2):
		admin.exec(box, f'true {n}')
	server.restart()
	for n in range(N_ROWS // 2, N_ROWS):
		admin.exec(box, f'true {n}')
	wait_for(lambda: wrong or all(mine and any(command == f'true {N_ROWS - 1}' for _, _, command in mine[-8:]) for mine in seen.values()), 'both at the end', 30 + N_ROWS / 20)
	is_over.set()
	for thread in watchers:
		thread.join()
	assert not wrong, wrong
	rows, events = seen.values()
	assert [id for id, _, _ in rows] == [f'r{n + 1}' for n in range(N_ROWS)] and [command for _, _, command in rows] == [f'true {n}' for n in range(N_ROWS)]
	traced = [int(id[1:]) for id, name, _ in events if name == 'trace']
	assert traced == list(range(1, len(traced) + 1)) and len(traced) > 3 * N_ROWS and drops[0] > 30, (len(traced), drops)
	# A row has the id of the event that ended it: who was cut off between the two has that one already.
	told = [command for _, name, command in events if name == 'row']
	assert len(told) == len(set(told)) and set(told) <= {f'true {n}' for n in range(N_ROWS)}
	assert admin.delete(at(box)).status == 200


# ---- R91


NAMES = ['<img src=x onerror=alert(1)>', 'a\x1b]0;pwn\x07\x1b[2J\x1b[H', 'x\r\n2026-01-01 fake row', 'y\n\nevent: end\ndata: {}\n\n']
WORDS = ['</script><script>alert(2)</script>', '\x1b]52;c;ZXZpbA==\x07', '=HYPERLINK("x")', '{{7*7}}', 'javascript:alert(3)']
MAKE = f'''
import os, subprocess
for name in {NAMES!r}:
	open('/workspace/' + name, 'w').write(name)
subprocess.run(['/bin/echo', *{NAMES!r}, *{WORDS!r}])
'''
CONTROL = re.compile(r'[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]')


@pytest.fixture
def receiver():
	made = Receiver()
	yield made
	made.close()


def texts(value):
	if isinstance(value, str):
		yield value
	for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
		yield from texts(one)


def test_what_is_made_to_run_where_it_is_shown(server, admin, receiver):
	box = admin.create(name='plain')
	every = admin.post('/v1/webhooks', {'url': receiver.url, 'sandbox': box, 'paths': ['/workspace']})
	assert every.status == 201
	files = admin.stream(at(box, '/files/watch?path=/workspace'))
	assert files.take(1)[0][0] == 'begin'
	wait_for(lambda: 'file.changed' in receiver.kinds(), 'its watch')
	made = admin.post(at(box, '/exec'), {'argv': ['/usr/bin/python3', '-c', MAKE, *NAMES, *WORDS]})
	assert made.status == 200 and made.json['exit_code'] == 0, made
	# Streams: each event is one, whatever stands in it.
	told = files.take(len(NAMES))
	files.close()
	assert {(name, data['path']) for name, _, data in told} == {('change', '/workspace/' + name) for name in NAMES}
	watched = admin.stream(at(box, '/watch'))
	[(name, id, row)] = watched.take(1)
	watched.close()
	assert (name, id) == ('row', 'r1') and row['argv'][3:] == [*NAMES, *WORDS] and row['stdout'] == ' '.join([*NAMES, *WORDS]) + '\n'
	# Lists: JSON that no browser takes for a page.
	for path in ('/log', '/trace/files', '/trace/processes', '/trace/events', '/trace/timeline', '/trace/commands', '/changes', '/report', '/lifecycle'):
		got = admin.get(at(box, path + ('?limit=1000' if path == '/trace/events' else '')))
		assert got.headers['Content-Type'] == 'application/json' and got.headers['X-Content-Type-Options'] == 'nosniff', path
		assert "default-src 'none'" in got.headers['Content-Security-Policy'] and not CONTROL.search(got.body.decode().replace('\n', '')), path
		if path in ('/log', '/trace/files', '/trace/processes', '/trace/events'):
			assert any(NAMES[0] in text for text in texts(got.json)), path
	listed = {entry['path'] for entry in admin.get(at(box, '/trace/files')).json['items']}
	assert {'/workspace/' + name for name in NAMES} <= listed
	assert {entry['name'] for entry in admin.post(at(box, '/files/ls'), {'path': '/workspace'}).json['entries']} == set(NAMES)
	# Webhooks: JSON, with the names as they are.
	wait_for(lambda: {'exec.end', 'file.changed'} <= set(receiver.kinds()) and sum(len(one['data'].get('changes', [])) for one in map(json.loads, [body for _, body in receiver.got])) == len(NAMES),
		'the deliveries')
	bodies = [body.decode() for _, body in receiver.got]
	assert not any(CONTROL.search(body) or '\n' in body for body in bodies)
	assert {change['path'] for body in bodies for change in json.loads(body)['data'].get('changes', [])} == {'/workspace/' + name for name in NAMES}
	# For people: text that steers no terminal, one record a line, no markup.
	markdown = admin.get(at(box, '/report'), headers={'Accept': 'text/markdown'}).body.decode()
	assert not CONTROL.search(markdown) and not re.search(r'<(img|script)', markdown), markdown
	for verb, *options in (('log',), ('files',), ('tree',), ('timeline',), ('commands',), ('show',), ('changes',)):
		printed = server.cloche.call(verb, box, *options)
		assert printed.code == 0 and not CONTROL.search(printed.out), (verb, printed)
		assert not any(line.startswith(('2026-01-01 fake row', 'event: end')) for line in printed.out.splitlines()), (verb, printed)
	# What is asked for is told back in problems, too.
	problem = admin.get('/v1/sandboxes/%3Cimg%20src=x%20onerror=alert(1)%3E%1B%5B2J')
	assert problem.status == 404 and problem.headers['Content-Type'] == 'application/problem+json' and not CONTROL.search(problem.body.decode())
	assert admin.delete(f'/v1/webhooks/{every.json["id"]}').status == 204
	assert admin.delete(at(box)).status == 200
