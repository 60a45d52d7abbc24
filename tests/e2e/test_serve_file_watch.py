# SPDX-License-Identifier: Apache-2.0
"""What changes in a sandbox's files, told over HTTP as it changes: live, over a cut line, to slow readers, and no process stays."""
import base64
import contextlib
import os
import pathlib
import queue
import signal
import socket
import threading
import time
import urllib.parse

import pytest

from harness import WORK, wait_for
from serving import Client, Receiver, ToldOfFiles, file_watches

# Of the account "default" alone: receivers are on loopback.
CONFIG = {'accounts': {'default': {'private': True}}}
STORES = ['sqlite'] # a watch asks the database for its sandbox alone; CLOCHE_TEST_STORES=all runs both
LIMIT_S = 20


@pytest.fixture(scope='module')
def module_box(server):
	made = server.admin.create()
	yield made
	assert server.admin.delete(f'/v1/sandboxes/{made}').status == 200


@pytest.fixture
def folder(admin, module_box, request):
	"""One of this test's own, in the module's sandbox."""
	path = f'{WORK}/{request.node.name[:60]}'
	assert admin.exec(module_box, f'mkdir -p {path}')['exit_code'] == 0
	return path


def target(box, path, **query):
	return f'/v1/sandboxes/{box}/files/watch?' + urllib.parse.urlencode({'path': path, **query})


class Watch:
	"""A stream that is read by a thread of its own; what has come so far is in `events`."""

	def __init__(self, client, box, path, last=None, **query):
		self.stream = client.stream(target(box, path, **query), headers={'Last-Event-ID': last} if last else {}, limit_s=60)
		self.status, self.events, self.come, self.is_over = self.stream.status, [], queue.Queue(), False
		if self.status == 200:
			self.thread = threading.Thread(target=self.read)
			self.thread.start()

	def read(self):
		with contextlib.suppress(OSError, ValueError, AttributeError):
			for event in self.stream:
				self.events.append(event)
				self.come.put(event)
		self.is_over = True

	def next(self):
		try:
			return self.come.get(timeout=LIMIT_S)
		except queue.Empty:
			raise AssertionError(f'nothing came behind {self.events[-3:]}') from None

	def begun(self):
		name, id, data = self.next()
		assert name == 'begin', (name, data)
		return id, data

	def changes(self, n):
		"""The next n, as `change path`."""
		got = [self.next() for _ in range(n)]
		assert {name for name, _, _ in got} == {'change'}, got
		return sorted(f"{data['change']} {data['path']}" for _, _, data in got)

	def close(self):
		if self.stream.connection.sock:
			with contextlib.suppress(OSError):
				self.stream.connection.sock.shutdown(socket.SHUT_RDWR)
		self.thread.join(LIMIT_S)
		assert not self.thread.is_alive()
		self.stream.close()


@pytest.fixture
def watch(admin, module_box):
	with contextlib.ExitStack() as stack:
		def begin(path, box=module_box, client=admin, **how):
			made = Watch(client, box, path, **how)
			assert made.status == 200
			stack.callback(made.close)
			return made
		yield begin


def code(admin, box, path=None, **query):
	"""Of what is refused."""
	query = {'path': path, **query} if path is not None else query
	stream = admin.stream(f'/v1/sandboxes/{box}/files/watch?' + urllib.parse.urlencode(query))
	stream.close()
	return stream.status, stream.problem['code'] if stream.problem else None


def test_changes_as_they_come(admin, module_box, folder, watch):
	seen, other = watch(folder), watch(f'{folder}/../{folder.rsplit("/", 1)[1]}/./')
	first, data = seen.begun()
	assert data == {'path': folder, 'unwatched': 0} == other.begun()[1] and first.startswith('fw_') and first.endswith('.0')
	assert len(file_watches(module_box)) == 1 # one watch for both
	admin.exec(module_box, f'cd {folder}; echo one > a; mkdir d; echo x > d/x')
	assert seen.changes(3) == [f'created {folder}/a', f'created {folder}/d', f'created {folder}/d/x'] == other.changes(3)
	admin.exec(module_box, f'cd {folder}; echo n > .tmp; mv .tmp a; mv d/x y; chmod 600 y')
	seen.changes(3)
	assert sorted((data['change'], data['path'], data.get('from'), data.get('replaced')) for _, _, data in seen.events[-3:]) == [
		('mode', f'{folder}/y', None, None), ('renamed', f'{folder}/y', f'{folder}/d/x', None), ('written', f'{folder}/a', None, True)]
	ids = [id for _, id, _ in seen.events]
	assert ids == [f'{first[:-2]}.{n}' for n in range(7)]
	late = watch(folder)
	assert late.begun()[0] == ids[-1]
	admin.exec(module_box, f'rm -r {folder}/d')
	assert late.changes(1) == [f'deleted {folder}/d'] == seen.changes(1)
	started = time.monotonic()
	admin.post(f'/v1/sandboxes/{module_box}/files/create', {'path': f'{folder}/soon', 'content': 'x'})
	assert seen.changes(1) == [f'created {folder}/soon'] and time.monotonic() - started < 1.5


def test_while_paused_and_to_its_end(admin):
	box = admin.create()
	seen, single = Watch(admin, box, WORK), Watch(admin, box, '/etc/hostname')
	try:
		seen.begun()
		single.begun()
		assert admin.post(f'/v1/sandboxes/{box}/pause').status == 200
		also = Watch(admin, box, '/etc')
		also.begun()
		assert admin.post(f'/v1/sandboxes/{box}/wake').status == 200
		admin.exec(box, f'echo x > {WORK}/last; echo y > /etc/t; mv /etc/t /etc/hostname')
		assert seen.changes(1) == [f'created {WORK}/last'] and single.changes(1) == ['written /etc/hostname'] == also.changes(1)
		last = seen.events[-1][1]
		assert admin.post(f'/v1/sandboxes/{box}/stop').status == 200
		for one in (seen, single, also):
			assert one.next() == ('end', None, {})
	finally:
		for one in (seen, single, also):
			one.close()
	# Who was cut off before the end hears the rest; who has it all does not begin again.
	before = f"{last.rsplit('.', 1)[0]}.0"
	again = Watch(admin, box, WORK, last=before)
	assert again.changes(1) == [f'created {WORK}/last'] and again.next() == ('end', None, {})
	again.close()
	assert code(admin, box, WORK) == (409, 'not_running')
	reply = admin.get(target(box, WORK), headers={'Last-Event-ID': last})
	assert (reply.status, reply.json['code']) == (409, 'not_running')
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200 and code(admin, box, WORK) == (409, 'not_running')
	wait_for(lambda: not file_watches(box), 'the end of its watches')


def test_a_line_that_is_cut_again_and_again(admin, module_box, folder):
	"""R85: no change twice, none missing, in their order."""
	often = Client(admin.server, admin.post('/v1/api-keys', {'rate_limit': 100000}).json['key'])
	n_files, mine, last = 100, [], None
	seen = Watch(often, module_box, folder)
	last = seen.begun()[0]
	writer = threading.Thread(target=admin.exec, args=(module_box, f'cd {folder}; for i in $(seq {n_files}); do echo $i > f$i; sleep 0.01; done'))
	writer.start()
	for round in range(1000):
		for _ in range(1 + round * 7 % 13):
			if len(mine) == n_files:
				break
			name, last, data = seen.next()
			assert name == 'change'
			mine.append((last, data['path']))
		seen.close()
		if len(mine) == n_files:
			break
		seen = Watch(often, module_box, folder, last=last)
	writer.join()
	feed = last.rsplit('.', 1)[0]
	assert [id for id, _ in mine] == [f'{feed}.{n + 1}' for n in range(n_files)]
	assert sorted(path for _, path in mine) == sorted(f'{folder}/f{n + 1}' for n in range(n_files))


def test_a_slow_reader_is_told_what_it_missed(admin, module_box, folder, watch):
	"""R87: it costs bounded memory, and keeps nobody waiting."""
	def rss():
		with open(f'/proc/{admin.server.serve_pid()}/status', encoding='ascii') as status:
			return int(next(line for line in status if line.startswith('VmRSS')).split()[1])

	long = 'x' * 240
	folder = f'{folder}/{long}/{long}/{long}/{long}/{long}/{long}' # so that what is told is more than the kernel's buffers of a connection hold
	admin.exec(module_box, f'mkdir -p {folder}')
	slow = admin.stream(target(module_box, folder))
	slow.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
	[(name, first, _)] = slow.take(1)
	assert name == 'begin'
	quick, before = watch(folder), rss()
	quick.begun()
	n_files, at_once = 4500, 500
	for n in range(0, n_files, at_once):
		done = admin.exec(module_box, f'cd {folder}; i={n}; while [ $i -lt {n + at_once} ]; do : > {long}$i; i=$((i + 1)); done')
		assert done['exit_code'] == 0
		wait_for(lambda behind=n + at_once: len(quick.events) > behind, f'what was made: {len(quick.events)}', LIMIT_S)
	assert [(name, id.rsplit('.', 1)[1]) for name, id, _ in quick.events[1:]] == [('change', str(n + 1)) for n in range(n_files)]
	if 'ASAN_OPTIONS' not in os.environ: # which keeps what was freed
		assert rss() < before + 8000
	told = left_out = gaps = 0
	for name, id, data in slow:
		told += name == 'change'
		gaps += name == 'gap'
		left_out += data['left_out'] if name == 'gap' else 0
		assert int(id.rsplit('.', 1)[1]) == told + left_out
		if told + left_out == n_files:
			break
	slow.close()
	assert gaps >= 1 and left_out > 100 and told > 100, (gaps, left_out, told)
	assert first.endswith('.0')


def test_nothing_stays(server, admin):
	box = admin.create()
	seen = [Watch(admin, box, path) for path in (WORK, '/etc', '/srv')]
	try:
		for one in seen:
			one.begun()
		assert len(file_watches(box)) == 3
		os.kill(file_watches(box)[0], signal.SIGKILL)
		ended = wait_for(lambda: next((one for one in seen if one.is_over), None), 'the one whose watch was killed')
		assert ended.events[-1][0] == 'error' and 'begin again' in ended.events[-1][2]['detail']
		# What was known is gone with it: whoever comes back is told so, and goes on.
		path, last = ended.events[0][2]['path'], ended.events[0][1]
		again = Watch(admin, box, path, last=last)
		seen.append(again)
		name, id, data = again.next()
		assert name == 'gap' and 'left_out' not in data and not id.startswith(last[:10] + last[10:19])
		admin.exec(box, f'echo x > {path}/x')
		assert again.changes(1) == [f'created {path}/x']
		os.kill(server.serve_pid(), signal.SIGKILL)
		wait_for(lambda: not file_watches(box), 'the end of all watches')
	finally:
		for one in seen:
			one.close()
	wait_for(server.is_up, 'the next one', 20)
	seen = Watch(admin, box, WORK, last=last)
	assert seen.next()[0] == 'gap'
	server.process.kill()
	server.process.wait()
	server.process.stdout.close()
	server.log.close()
	seen.close()
	wait_for(lambda: not file_watches(box), 'the end of the last watch')
	server.start()
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200


def test_no_more_than_so_many(server, admin):
	"""Of an account, with those that are kept for a client that may come again: these make room first."""
	box = admin.create()
	admin.exec(box, f'cd {WORK}; mkdir $(seq 20)')
	seen = []
	try:
		for n in range(8):
			seen.append(Watch(admin, box, f'{WORK}/{n + 1}'))
			seen[-1].begun()
		assert code(admin, box, f'{WORK}/9') == (429, 'quota')
		same = Watch(admin, box, f'{WORK}/8')
		same.begun()
		same.close()
		seen.pop(0).close()
		seen.append(Watch(admin, box, f'{WORK}/9'))
		seen[-1].begun()
		assert code(admin, box, f'{WORK}/10') == (429, 'quota')
		wait_for(lambda: len(file_watches(box)) == 8, 'the end of the one that made room')
		other = server.client('admin', account='another')
		others = other.create()
		assert Watch(other, others, WORK).close() is None
		assert other.delete(f'/v1/sandboxes/{others}').status == 200
	finally:
		for one in seen:
			one.close()
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200


def test_no_link_leads_out(admin, module_box, folder, watch, tmp_path):
	admin.exec(module_box, f'cd {folder}; ln -s {tmp_path} out; ln -s / root; ln -s ../../../../../../../../etc up; mkdir -p /etc/x; ln -s /proc/1/root magic; '
		'ln -s loop loop; echo x > file')
	seen, up = watch(folder), watch(f'{folder}/up/x')
	seen.begun()
	assert up.begun()[1]['path'] == f'{folder}/up/x'
	(tmp_path / 'of-the-host').write_text('x')
	admin.exec(module_box, f'echo 1 > /etc/x/a; ln -sfn /tmp {folder}/out')
	assert up.changes(1) == [f'created {folder}/up/x/a'] and seen.changes(1) == [f'written {folder}/out']
	for path, expected in ((f'{folder}/out2', (404, 'file_not_found')), (f'{folder}/{tmp_path.name}', (404, 'file_not_found')), (str(tmp_path), (404, 'file_not_found')),
			(f'{folder}/file/x', (404, 'file_not_found')), ('/proc', (403, 'forbidden_place')), ('/proc/1/root', None),
			(f'{folder}/magic/etc', None), (f'{folder}/loop/x', (400, 'invalid')), (f'{folder}/{"x" * 256}', (400, 'invalid'))):
		got = code(admin, module_box, path)
		assert got == expected or (expected is None and got in ((400, 'invalid'), (403, 'forbidden_place'), (403, 'denied'), (404, 'file_not_found'))), (path, got)
	single = watch(f'{folder}/file')
	single.begun()
	admin.exec(module_box, f'echo y > {folder}/file; echo z > {folder}/beside')
	assert single.changes(1) == [f'written {folder}/file']


SWAP = '''
import os
os.chdir(FOLDER)
while True:
	try:
		os.rename('d', 'd2'); os.symlink(OUTSIDE, 'd'); os.unlink('d'); os.rename('d2', 'd')
	except OSError:
		pass
'''


def test_a_folder_that_is_swapped_for_a_link_to_the_host(admin, module_box, folder, tmp_path):
	"""R93: what is watched is the sandbox's own, whoever wins."""
	outside = tmp_path / 'outside'
	outside.mkdir()
	swap = SWAP.replace('FOLDER', repr(folder)).replace('OUTSIDE', repr(str(outside)))
	admin.exec(module_box, f'mkdir {folder}/d; cat > /srv/swap.py; nohup python3 /srv/swap.py >/dev/null 2>&1 & echo', stdin=swap)
	got, seen = [], []
	for n in range(16):
		stream = Watch(admin, module_box, f'{folder}/d{"" if n % 2 else "/."}')
		got.append(stream.next()[0] if stream.status == 200 else stream.stream.problem['code'])
		if stream.status == 200:
			seen.append(stream)
		(outside / f'of-the-host-{n}').write_text('x')
	admin.exec(module_box, f'pkill -f [s]wap.py; cd {folder}; rm -f d; [ -d d ] || mv d2 d; echo x > d/last')
	try:
		assert set(got) <= {'begin', 'file_not_found'} and seen, got
		for stream in seen:
			while (event := stream.next())[2]['path'] != f'{folder}/d/last':
				assert event[0] == 'change' and event[2]['path'] == f'{folder}/d', event
	finally:
		for stream in seen:
			stream.close()


def test_names_are_bytes(admin, module_box, folder, watch):
	name = folder.encode() + b'/\xff\n<b>'
	path = base64.b64encode(name).decode()
	admin.exec(module_box, f'python3 -c "import os; os.mkdir({name!r})"')
	made = Watch(admin, module_box, None, path_b64=path)
	assert made.status == 400 # both
	reply = admin.stream(f'/v1/sandboxes/{module_box}/files/watch?' + urllib.parse.urlencode({'path_b64': path}))
	[(_, _, begin)] = reply.take(1)
	assert base64.b64decode(begin['path_b64']) == name and begin['path'] == f'{folder}/\ufffd\n<b>'
	admin.exec(module_box, f'python3 -c "import os; open({name + b"/" + bytes([27, 0xfe])!r}, chr(119))"')
	[(_, _, change)] = reply.take(1)
	assert base64.b64decode(change['path_b64']) == name + b'/\x1b\xfe'
	reply.close()


def test_bad_requests(server, admin, module_box):
	other, auditor, member = server.client('admin', account='elsewhere'), server.client('auditor'), server.client('member')
	for query in ({}, {'path': ''}, {'path': 'relative'}, {'path': '/a', 'path_b64': 'L2E='}, {'path_b64': '%%'}, {'path_b64': base64.b64encode(b'/a\0b').decode()},
			{'path': '/' + 'x/' * 2100}, {'path': WORK, 'nonsense': '1'}, {'path': '/a\0b'}):
		assert code(admin, module_box, **query) == (400, 'invalid'), query
	for last in ('r1', 's1', 'fw_0000000000000000', 'fw_0000000000000000.', 'fw_0000000000000000.-1', 'fw_0000000000000000.1x', 'fw_000000000000000.1', '.', 'x' * 5000,
			'fw_0000000000000000.99999999999999999999'):
		reply = admin.get(target(module_box, WORK), headers={'Last-Event-ID': last})
		assert (reply.status, reply.json['code']) == (400, 'invalid'), last
	assert code(other, module_box, WORK) == (404, 'not_found') and code(auditor, module_box, WORK) == (403, 'forbidden')
	assert code(admin, 'sb_0000000000000000', WORK) == (404, 'not_found')
	seen = Watch(member, module_box, WORK)
	assert seen.status == 200
	seen.close()
	assert admin.call('HEAD', target(module_box, WORK)).status == 200
	assert admin.post(target(module_box, WORK), {}).status == 405
	# A client that leaves before the watch has begun leaves nothing.
	for _ in range(3):
		with socket.create_connection(('127.0.0.1', server.port)) as sock:
			sock.sendall(f'GET {target(module_box, "/usr")} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {admin.key}\r\n\r\n'.encode())
	wait_for(lambda: not any(b'/usr' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes() for pid in file_watches(module_box)), 'nothing of it')


# ---- webhooks: what the database has a part in is in test_serve_webhooks.py


@pytest.fixture
def hook(admin):
	"""Makes webhooks that hear of files: (what they told, id)."""
	made, receivers = [], []

	def make(box, *paths):
		receivers.append(Receiver())
		got = admin.post('/v1/webhooks', {'url': receivers[-1].url, 'sandbox': box, 'events': ['file.changed'], 'paths': list(paths)})
		assert got.status == 201, got
		made.append(got.json['id'])
		return ToldOfFiles(receivers[-1]), made[-1]

	yield make
	for one in made:
		assert admin.delete(f'/v1/webhooks/{one}').status in (204, 404)
	for one in receivers:
		one.close()


def test_many_changes_go_together_and_are_bounded(admin, module_box, hook):
	told, _ = hook(module_box, '/workspace/many/**')
	told.begun()
	before = len(told.data())
	admin.exec(module_box, 'mkdir /workspace/many; cd /workspace/many; i=0; while [ $i -lt 500 ]; do : > f$i; i=$((i + 1)); done')
	wait_for(lambda: len(told.changes()) + sum(data['left_out'] for data in told.data()) == 501, f'all of them: {len(told.changes())}')
	new = told.data()[before:]
	assert len(new) <= 8 and max(len(data['changes']) for data in new) <= 100 and sum(data['left_out'] for data in new) > 0
	assert len(set(told.changes())) == len(told.changes()) and max(len(body) for _, body in told.receiver.got) < 20000


def test_a_webhook_over_a_suspend_and_to_the_end(admin, hook):
	box = admin.create()
	told, made = hook(box, '/workspace')
	told.begun()
	admin.exec(box, 'echo x > /workspace/a')
	assert admin.post(f'/v1/sandboxes/{box}/suspend').status == 200
	wait_for(lambda: told.changes() == ['created /workspace/a'], 'what was last')
	assert admin.post(f'/v1/sandboxes/{box}/resume').status == 200
	told.begun(2)
	admin.exec(box, 'echo y > /workspace/b')
	wait_for(lambda: 'created /workspace/b' in told.changes(), 'what came then')
	assert len({data['watch'] for data in told.data()}) == 2 and sorted(told.changes()) == ['created /workspace/a', 'created /workspace/b']
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200
	assert admin.delete(f'/v1/webhooks/{made}').status == 204
	wait_for(lambda: not file_watches(box), 'the end of the watch')


def test_a_path_that_cannot_be_watched_is_said_once(admin, module_box, hook):
	told, _ = hook(module_box, '/proc/**', '/workspace/x')
	wait_for(lambda: any('/proc' in gap for gap in told.gaps()), 'why')
	admin.exec(module_box, 'echo x > /workspace/x')
	wait_for(lambda: told.changes() == ['created /workspace/x'], 'the other one')
	assert sum('/proc' in gap for gap in told.gaps()) == 1
