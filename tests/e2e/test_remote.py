# SPDX-License-Identifier: Apache-2.0
"""The command line against a control plane: the same words, the same output, and what cannot be had is refused."""
import hashlib
import http.server
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from harness import BUILD, wait_for
from serving import free_port

CONFIG = {'accounts': {'default': {'private': True, 'host_roots': ['/tmp']}}} # of the server's own folder in there
STORES = ['sqlite'] # nothing here asks the database but what test_serve.py does; CLOCHE_TEST_STORES=all runs both
HOSTILE = 'a\x1b[31m\u202e\x07\nb'


class Remote:
	"""cloche with a server in its environment, and the same program on the server's own state."""

	def __init__(self, server, key=None, url=None):
		self.server, self.cloche = server, server.cloche
		self.folder = pathlib.Path(server.cloche.cwd) / 'project'
		self.there = {'CLOCHE_SERVER': url or f'http://127.0.0.1:{server.port}', 'CLOCHE_KEY': server.key if key is None else key}

	def __call__(self, *args, **how):
		return self.cloche.call(*args, env=self.there, **how)

	def start(self, *args, **how):
		return self.cloche.start(*args, env=self.there, **how)

	def lines(self, *args):
		done = self(*args)
		assert done.code == 0, done
		return done.out.splitlines()

	def create(self, *options):
		return self.lines('create', *options)[0]

	def both(self, *args):
		"""The same call here and there."""
		return self.cloche.call(*args), self(*args)


@pytest.fixture(scope='module')
def remote(server):
	made = Remote(server)
	made.folder.mkdir(exist_ok=True)
	(made.folder / 'a').write_text('one\n')
	return made


@pytest.fixture(scope='module')
def echo():
	"""A web server of this host: answers with what it was sent."""
	class Handler(http.server.BaseHTTPRequestHandler):
		def do_POST(self):
			body = self.rfile.read(int(self.headers['Content-Length']))
			self.send_response(200)
			self.send_header('Content-Length', str(len(body)))
			self.end_headers()
			self.wfile.write(body)

		def log_message(self, *args):
			pass

	with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as made:
		threading.Thread(target=made.serve_forever, daemon=True).start()
		yield made.server_address[1]
		made.shutdown()


@pytest.fixture(scope='module')
def box(remote, echo):
	"""One with a little of everything in its record."""
	made = remote.create('--trace', '--name', HOSTILE, '--label', 'team=a b', '--allow', 'big.example', '--host-map', f'big.example:80=127.0.0.1:{echo}',
		'--record-responses', '--body-limit', '1M')
	remote('exec', made, '--', 'sh', '-c', 'echo out; echo err >&2; mkdir /tmp/d; echo x > /tmp/d/f; mv /tmp/d/f "/tmp/d/$1"; ls /tmp/d; exit 3', 'sh', HOSTILE)
	remote('exec', made, '--shell', 'curl -sm5 -d @/etc/services http://big.example/ | wc -c; curl -sm5 http://no.example/; printf "\\377\\n"; kill -9 $$')
	remote('exec', made, '--', 'nonesuch')
	return made


def test_bodies_come_from_afar(remote, box):
	"""What is kept beside the events, too."""
	here, there = remote.both('net', box, '--json')
	assert here.raw_out == there.raw_out and here.code == 0
	sent = pathlib.Path('/etc/services').read_bytes().replace(b'\n', b'')
	request, = [request for entry in json.loads(there.out) for request in entry['requests'] if 'big.example' in request['url']]
	assert request['body'].encode() == request['response_body'].encode() == sent and request['body_blob'], request
	assert remote.server.admin.get(f'/v1/sandboxes/{box}/blobs/{request["body_blob"]}').body == sent
	assert remote.server.admin.get(f'/v1/sandboxes/{box}/blobs/{"0" * 64}').status == 404
	here, there = remote.both('export', box, '--har')
	assert here.raw_out == there.raw_out and here.code == 0


VIEWS = ['log', 'commands', 'tree', 'files', 'net', 'timeline', 'stats', 'events', 'allow-list']
FORMS = [(), ('--json',), ('--jsonl',), ('--color=always',), ('--noise', '--internal'), ('--since', '10', '--until', '60')]


@pytest.mark.parametrize('view', VIEWS)
def test_views_are_the_same_from_afar(remote, box, view):
	for form in FORMS:
		here, there = remote.both(view, box, *form)
		assert (here.code, here.raw_out, here.raw_err) == (there.code, there.raw_out, there.raw_err), (view, form)
		assert here.code == 0 and (here.raw_out or view in ('net', 'allow-list')), (view, form, here)
		assert b'\x1b' not in there.raw_out.replace(b'\x1b[', b'' if '--color=always' in form else b'\x1b['), (view, form)


def test_views_by_exec_label_and_short_id(remote, box):
	execs = [json.loads(line)['exec'] for line in remote.lines('log', box, '--jsonl')]
	assert len(execs) == 3
	for args in (('tree', box, '--exec', execs[0]), ('log', '--label', 'team=a b'), ('log', box[:-1]), ('log', box[3:-1]), ('events', box, '--exec', 'ex_'),
		('log', box, '--exec', 'ex_zzz'), ('net', box, '--since', 'x')):
		here, there = remote.both(*args)
		assert (here.code, here.raw_out, here.raw_err) == (there.code, there.raw_out, there.raw_err), args
	assert remote('log', '--label', 'team=none').code == 125
	other = remote.create('--label', 'team=a b', '--trace')
	remote('exec', other, '--', 'true')
	for view in ('log', 'timeline', 'tree'):
		here, there = remote.both(view, '--label', 'team=a b', '--json')
		assert (here.code, here.raw_out) == (0, there.raw_out), view
	assert remote.lines('rm', other) == [f'{other}: removed the sandbox; its record stays']


def test_a_log_is_followed_over_a_lost_connection(remote):
	made = remote.create()
	cut = Relay(remote.server.port)
	follower = Remote(remote.server, url=f'http://127.0.0.1:{cut.port}').start('log', made, '--follow', '--jsonl')
	for n in range(3):
		assert remote('exec', made, '--', 'echo', str(n)).code == 0
		assert json.loads(follower.stdout.readline())['argv'] == ['echo', str(n)]
		cut.drop()
	remote('stop', made)
	assert follower.wait(timeout=20) == 0 and follower.stdout.read() == b''
	follower.stdout.close()
	follower.stderr.close()
	cut.close()
	assert remote('rm', made).code == 0


class Relay:
	"""Passes connections on to a port of this host, and cuts them off when told to. Of the first n_deaf nothing comes back: they
	are closed once the request has gone through."""

	def __init__(self, target, n_deaf=0):
		self.target, self.pairs, self.n_deaf = target, [], n_deaf
		self.listening = socket.create_server(('127.0.0.1', 0))
		self.port = self.listening.getsockname()[1]
		threading.Thread(target=self.accept, daemon=True).start()

	def accept(self):
		while True:
			try:
				client = self.listening.accept()[0]
			except OSError:
				return
			server = socket.create_connection(('127.0.0.1', self.target))
			if self.n_deaf > 0:
				self.n_deaf -= 1
				server.sendall(client.recv(65536))
				server.recv(1) # it has begun to answer
				client.close()
				server.close()
				continue
			self.pairs += [client, server]
			for source, sink in ((client, server), (server, client)):
				threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

	def copy(self, source, sink):
		try:
			while data := source.recv(65536):
				sink.sendall(data)
		except OSError:
			pass
		for end in (source, sink):
			try:
				end.shutdown(socket.SHUT_RDWR)
			except OSError:
				pass

	def drop(self):
		for end in self.pairs:
			try:
				end.shutdown(socket.SHUT_RDWR)
			except OSError:
				pass
		self.pairs = []

	def close(self):
		self.listening.close()
		self.drop()


# ---- life ----

def test_life(remote):
	made = remote.create('--name', 'first', '--label', 'of=life', '--task', 'to be tried')
	assert [row['id'] for row in json.loads(remote('ps', '--label', 'of=life', '--json').out)] == [made] == remote.lines('ps', '-q', '--label', 'of=life')
	assert json.loads(remote('inspect', 'last').out)['name'] == 'first'
	for verb, state in (('pause', 'paused'), ('wake', 'running'), ('suspend', 'suspended'), ('resume', 'running'), ('suspend', 'suspended')):
		assert remote.lines(verb, made) == []
		assert json.loads(remote('inspect', made).out)['state'] == state
	child = remote.lines('fork', made)[0]
	assert child != made and [row['id'] for row in json.loads(remote('ps', '--json').out)][:2] == [child, made]
	assert 'wrong_state' not in remote('fork', child).err and remote('fork', child).code == 125
	assert remote('stop', child).code == 0
	assert child not in remote.lines('ps', '-q') and child in remote.lines('ps', '-q', '--all')
	assert remote.lines('rm', child, made) == [f'{one}: removed the sandbox; its record stays' for one in (child, made)]
	assert remote('log', made).code == 0
	assert remote.lines('rm', '--record', made) == [f'{made}: removed the sandbox, its record']
	gone = remote('log', made)
	assert gone.code == 125 and made in gone.err
	assert remote.cloche.call('log', made).code == 125


def test_a_record_is_removed_by_admins_and_when_it_has_ended(remote):
	made = remote.create()
	member = Remote(remote.server, remote.server.client('member').key)
	assert remote.server.admin.delete(f'/v1/records/{made}').status == 409
	assert 'may not' in member('rm', '--record', made).err
	assert remote('log', made).code == 0
	assert remote.server.admin.delete(f'/v1/records/{made}').status == 204
	lines = [line for line in remote.server.admin.get('/v1/audit?order=desc').json['items'] if line['act'] == 'record.removed']
	assert lines[0]['sandbox'] == made and lines[0]['actor'].startswith('key:')
	assert remote.server.admin.delete(f'/v1/records/{made}').status == 404


# ---- commands ----

def test_exec_gives_the_same_as_here(remote, box):
	for argv in (['sh', '-c', 'echo out; echo err >&2; exit 3'], ['nonesuch'], ['/etc/passwd'], ['sh', '-c', 'kill -15 $$'], ['printf', r'\377\0x\n'],
		['sh', '-c', 'exit 200']):
		here, there = remote.both('exec', box, '--', *argv)
		assert (here.code, here.raw_out, here.raw_err) == (there.code, there.raw_out, there.raw_err), argv
	for options in (['--timeout', '200ms', '--', 'sleep', '20'], ['-w', '/tmp', '-e', 'A=b c', '-u', '1000:1000', '--shell', 'pwd; echo "$A"; id -u'],
		['-i', '--', 'wc', '-c']):
		given = 'x' * 100000 + 'é\n'
		here = remote.cloche.call('exec', box, *options, stdin=given.encode())
		there = remote('exec', box, *options, stdin=given.encode())
		assert (here.code, here.raw_out, here.raw_err) == (there.code, there.raw_out, there.raw_err), options
	detached = remote.lines('exec', box, '--detach', '--', 'sleep', '0.1')
	assert len(detached) == 1 and detached[0].startswith('ex_')


def test_input_goes_as_it_comes_and_only_once(remote, box):
	"""Bytes of any kind, more than a request takes, over a connection that is cut; and what is not read is not waited for."""
	data = random.Random(4).randbytes(3 << 20)
	relay = Relay(remote.server.port)
	far = Remote(remote.server, url=f'http://127.0.0.1:{relay.port}')
	process = far.start('exec', box, '-i', '--', 'sha256sum', stdin=subprocess.PIPE)
	for at in range(0, len(data), 1 << 20):
		process.stdin.write(data[at:at + (1 << 20)])
		process.stdin.flush()
		relay.drop()
	out, err = process.communicate(timeout=60)
	relay.close()
	assert out.split()[0].decode() == hashlib.sha256(data).hexdigest() and process.returncode == 0, err
	process = remote.start('exec', box, '-i', '--shell', 'read line; echo "got $line"', stdin=subprocess.PIPE)
	process.stdin.write(b'one\n')
	process.stdin.flush()
	assert process.stdout.readline() == b'got one\n' and process.wait(timeout=20) == 0 # and its stdin stays open
	process.communicate()
	assert remote('exec', box, '-i', '--', 'cat', stdin=b'').out == ''
	assert remote('exec', box, '--', 'cat', stdin=b'not for it').out == ''


def test_output_comes_as_it_is_made(remote, box):
	assert remote('exec', box, '--', 'mkfifo', '/tmp/go').code == 0
	process = remote.start('exec', box, '--shell', 'echo first; read x < /tmp/go; echo last')
	assert process.stdout.readline() == b'first\n'
	assert remote('exec', box, '--shell', 'echo > /tmp/go').code == 0
	assert process.communicate(timeout=20) == (b'last\n', b'') and process.returncode == 0


def test_ctrl_c_kills_and_says_so(remote, box):
	process = remote.start('exec', box, '--shell', 'echo begun; exec sleep 77')
	assert process.stdout.readline() == b'begun\n'
	process.send_signal(signal.SIGINT)
	out, err = process.communicate(timeout=20)
	assert process.returncode == 137 and out == b'' and b'SIGINT: the command is killed' in err, err
	assert remote('exec', box, '--shell', 'grep -azx 77 /proc/[0-9]*/cmdline').out == ''


def test_a_lost_connection_runs_nothing_twice(remote, box):
	relay = Relay(remote.server.port)
	far = Remote(remote.server, url=f'http://127.0.0.1:{relay.port}')
	assert remote('exec', box, '--', 'mkfifo', '/tmp/later').code == 0
	process = far.start('exec', box, '--shell', 'echo one; echo x >> /tmp/once; read x < /tmp/later; echo two; exit 9')
	assert process.stdout.readline() == b'one\n'
	relay.drop()
	assert remote('exec', box, '--shell', 'echo > /tmp/later').code == 0
	out, err = process.communicate(timeout=30)
	relay.close()
	assert (process.returncode, out) == (9, b'two\n'), err
	assert remote('exec', box, '--', 'cat', '/tmp/once').out == 'x\n'


def test_a_connection_lost_before_the_answer_runs_nothing_twice(remote, box):
	"""The request went through and nothing came back: it is sent again, and is the same one."""
	assert remote('exec', box, '--', 'mkfifo', '/tmp/begun').code == 0
	relay = Relay(remote.server.port, n_deaf=1)
	process = Remote(remote.server, url=f'http://127.0.0.1:{relay.port}').start('exec', box, '--shell', 'echo x >> /tmp/twice; echo > /tmp/begun; echo out; exit 6')
	assert remote('exec', box, '--shell', 'read x < /tmp/begun').code == 0
	out, err = process.communicate(timeout=30)
	relay.close()
	assert (process.returncode, out) == (6, b'out\n'), err
	assert remote('exec', box, '--', 'cat', '/tmp/twice').out == 'x\n'


def test_a_server_that_wants_to_be_left_alone_is(remote):
	lying = Lying({'/v1/sandboxes': [(429, json.dumps({'code': 'rate_limited', 'detail': 'wait'})), (200, json.dumps({'items': [], 'next_cursor': None}))]})
	waited = Remote(remote.server, url=f'http://127.0.0.1:{lying.port}')('ps', '-q', '--all')
	lying.close()
	assert waited.code == 0 and waited.duration_s > 0.9, waited


# ---- files and rules ----

@pytest.fixture(scope='module')
def changed(remote):
	"""One whose copy of a folder has changes, and runs."""
	(remote.folder / HOSTILE).write_text('two\n')
	made = remote.create('-m', f'{remote.folder}:/work:cow', '--trace')
	remote('exec', made, '--', 'sh', '-c', 'echo more >> a; rm "$1"; mkdir d; printf "\\377\\0" > d/b; ln -s a l', 'sh', HOSTILE)
	return made


def test_changes_and_patches(remote, changed):
	remote('stop', changed)
	for args in (('changes', changed), ('changes', changed, '-v'), ('changes', changed, '--json'), ('changes', changed, '--jsonl'), ('changes', changed, '--color=always'),
		('diff', changed), ('diff', changed, '--exit-code'), ('diff', changed, f'{remote.folder}/a'),
		('show', changed), ('show', changed, '--color=always'), ('show', changed, '--markdown'), ('show', changed, '--json'), ('show', changed, '--jsonl')):
		here, there = remote.both(*args)
		if args[0] == 'show' and '--json' not in args: # each names the program as it was started
			here.raw_out = here.raw_out.replace(str(BUILD / 'cloche').encode(), b'cloche')
			there.raw_out = there.raw_out.replace(b'sudo cloche', b'cloche')
		assert (here.code, here.raw_out) == (there.code, there.raw_out), (args, here, there)
		assert here.code == ('--exit-code' in args) and here.raw_out, args
	here, there = remote.both('diff', changed, '--json')
	assert json.loads(here.out) == json.loads(there.out) == [json.loads(line) for line in remote.lines('diff', changed, '--jsonl')] and b'\x1b' not in there.raw_out
	copy = pathlib.Path(remote.cloche.cwd) / 'copy'
	shutil.copytree(remote.folder, copy)
	(copy / HOSTILE).unlink()
	patch = remote('diff', changed, '/work/a').raw_out
	subprocess.run(['git', 'apply', '--unsafe-paths', f'--directory={copy}'], input=patch, cwd='/', check=True, capture_output=True)
	assert (copy / 'a').read_text() == 'one\nmore\n'
	assert remote('diff', changed, '/nowhere').code == 125
	assert remote.lines('discard', changed, '/work/d')[-1].endswith(' thrown away')
	assert json.loads(remote('discard', changed, '--json').out)['discarded'] >= 3
	assert remote('diff', changed).out == '' and remote.lines('discard', changed) == ['nothing to discard']


def test_manifests_rules_and_watches(remote):
	made = remote.create('--allow', 'one.example', '--trace')
	remote('exec', made, '--', 'sh', '-c', 'mkdir -p /workspace/d/.git; echo x > "/workspace/d/$1"; echo y > /workspace/d/.git/HEAD', 'sh', HOSTILE)
	for args in ((made,), (made, '--all'), (made, '/workspace/d', '/etc')):
		here, there = remote.both('manifest', *args)
		assert (here.code, here.raw_out) == (0, there.raw_out) and b'\x1b' not in there.raw_out, args
	before = pathlib.Path(remote.cloche.cwd) / 'before'
	before.write_bytes(remote('manifest', made, '--json').raw_out)
	remote('exec', made, '--', 'sh', '-c', 'echo z > /workspace/d/z')
	for form in ((), ('--json',)):
		here, there = remote.both('manifest', '--check', str(before), made, *form)
		assert (here.code, here.raw_out) == (1, there.raw_out) and there.code == 1 and b'/z' in there.raw_out, form
	assert remote.lines('net-rules', made) == ['net    allow', 'allow  one.example']
	assert remote.lines('net-rules', made, '--allow', 'two.example', '--deny', 'bad.two.example', '--remove', 'one.example') == ['net    allow',
		'allow  two.example', 'deny   bad.two.example']
	here, there = remote.both('net-rules', made)
	assert here.raw_out == there.raw_out and 'no rule' in remote('net-rules', made, '--remove', 'none.example').err
	assert remote.lines('net-rules', made, '--upstream-proxy', 'http://u:word@127.0.0.1:9')[-1] == 'proxy  http://127.0.0.1:9'
	assert remote.lines('net-rules', made, '--upstream-proxy', 'none') == here.out.splitlines()
	watches = [remote.cloche.start('watch-files', made, '/workspace'), remote.start('watch-files', made, '/workspace')]
	for watch in watches:
		assert b'watching /workspace' in watch.stderr.readline()
	remote('exec', made, '--', 'sh', '-c', 'echo x > "/workspace/$1"; chmod 600 "/workspace/$1"; sleep 1; rm -r /workspace/d', 'sh', HOSTILE)
	got = [[watch.stdout.readline() for _ in range(2)] for watch in watches]
	remote('stop', made)
	rest = [watch.communicate(timeout=20) for watch in watches]
	shown = [[line.split(b'  ', 1)[1] for line in lines] for lines in got]
	assert shown[0] == shown[1] and r'a\x1b[31m\u202e\x07\nb' in shown[1][0].decode(), (got, rest)
	assert b'has ended' in rest[1][1]
	for verb in (('watch', made), ('watch', made, '--events', '--jsonl')):
		here, there = remote.both(*verb)
		assert (here.code, here.raw_out) == (0, there.raw_out) and here.raw_out, verb


def test_run(remote, tmp_path):
	done = remote('run', '--id-file', str(tmp_path / 'id'), '--label', 'of=run', '-m', f'{remote.folder}:/work:cow', '-w', '/work', '--markdown-file', str(tmp_path / 'md'),
		'--', 'sh', '-c', 'cat > new; cat a; exit 5', stdin=b'given\n')
	made = (tmp_path / 'id').read_text().strip()
	assert done.code == 5 and done.out == 'one\n' and made in done.err and 'Sealed' in done.err, done
	assert made in (tmp_path / 'md').read_text()
	assert made not in remote.lines('ps', '-q') and '+given' in remote('diff', made).out
	assert remote('discard', made).code == 0
	plain = remote('run', '--no-summary', '--', 'pwd')
	assert plain.code == 0 and 'not in it' in plain.err and plain.err.count('\n') == 1
	assert remote('run', '-q', '--', 'pwd').err == ''
	for args, code in ((('--fail-on', 'refused,command', '--', 'sh', '-c', 'unshare -U true; exit 0'), 123), (('--fail-on', 'command,incomplete', '--', 'true'), 0),
		(('--fail-on', 'incomplete', '--no-trace', '--', 'true'), 123), (('--apply', '--', 'true'), 2), (('--rw', '--', 'true'), 2), (('--', 'nonesuch'), 127)):
		done = remote('run', '-q', *args)
		assert done.code == code, (args, done)


# ---- what a control plane alone has ----

def test_keys_accounts_and_the_audit_log(remote):
	made = remote('keys', 'create', '--name', HOSTILE, '--role', 'member', '--rate-limit', '50')
	key = made.out.strip()
	assert made.code == 0 and made.out == key + '\n' and key.startswith('clo_') and 'only now' in made.err and '\x1b' not in made.err
	row, = [row for row in json.loads(remote('keys', '--json').out) if row['name'] == HOSTILE]
	assert (row['role'], row['rate_limit'], row['revoked_at']) == ('member', 50, None)
	shown = remote('keys', 'list')
	assert row['id'] in shown.out and r'a\x1b[31m' in shown.out and '\x1b' not in shown.out
	member = Remote(remote.server, key)
	assert member('ps').code == 0 and 'may not' in member('keys').err
	assert remote.lines('keys', 'revoke', row['id']) == [] and 'revoked' in member('ps').err
	assert remote.lines('accounts', 'create', 'remote-team', '--max-sandboxes', '3') == ['remote-team'] == [one for one in remote.lines('accounts', '-q') if one == 'remote-team']
	assert 'already' in remote('accounts', 'create', 'remote-team').err
	theirs = Remote(remote.server, remote.lines('keys', 'create', '--account', 'remote-team', '-q')[0])
	assert theirs.lines('ps', '--all', '-q') == [] and theirs('accounts').code == 125
	acts = [json.loads(line) for line in remote.lines('audit', '--jsonl', '--limit', '4')]
	assert [line['act'] for line in acts] == ['key.created', 'key.revoked', 'account.created', 'key.created'] and acts[1]['object'] == row['id']
	assert 'account.created' in remote('audit', '--since', '1m').out and remote.lines('audit', '--until', '2020-01-01T00:00:00Z', '-q') == []
	follower = remote.start('audit', '--follow', '--jsonl', '--limit', '1')
	assert json.loads(follower.stdout.readline()) == acts[-1]
	remote('keys', 'create', '-q')
	assert json.loads(follower.stdout.readline())['act'] == 'key.created'
	follower.terminate()
	follower.communicate()


def test_secrets_and_webhooks(remote, box):
	value = {'REMOTE_KEY': 'sesame-open-now', **remote.there}
	assert remote.cloche.call('secrets', 'create', 'REMOTE_KEY', '--host', 'big.example', '--plain', env=value).out == ''
	assert 'REMOTE_KEY' in remote('secrets').out and 'sesame' not in remote('secrets', '--json').out
	made = remote.lines('create', '--secret', 'REMOTE_KEY@big.example')[0]
	inside = remote('exec', made, '--shell', 'echo $REMOTE_KEY').out
	assert inside.strip() and 'sesame' not in inside
	assert remote('rm', '-q', made).code == 0
	assert remote('secrets', 'create', 'OTHER_KEY', '--host', 'x.example', '--file', '-', stdin=b'from-a-pipe-8\n').code == 0
	assert 'OTHER' in remote('secrets', '-q').out and remote.lines('secrets', 'delete', 'OTHER_KEY', 'REMOTE_KEY') == [] == remote.lines('secrets', '-q')
	assert 'variable NOT_SET_HERE' in remote('secrets', 'create', 'NOT_SET_HERE', '--host', 'x.example').err
	hook = remote('webhooks', 'create', 'http://127.0.0.1:9/x', '--event', 'exec.end', '--sandbox', box)
	assert hook.out.startswith('whsec_') and hook.out.count('\n') == 1, hook
	ident = remote.lines('webhooks', '-q')[0]
	assert ident in hook.err and '127.0.0.1:9' in remote('webhooks').out
	remote('exec', box, '--', 'true')
	delivery = wait_for(lambda: remote.lines('webhooks', 'deliveries', ident, '-q'), 'a delivery')[0]
	assert 'still waits' in remote('webhooks', 'redeliver', ident, delivery).err
	assert remote.lines('webhooks', 'delete', ident) == [] == remote.lines('webhooks', '-q')


def test_verbs_of_a_server_ask_the_one_of_this_host(remote, tmp_path):
	"""Without a server named, the socket in CLOCHE_RUN; and their options are refused where they mean nothing."""
	socket_path = next(pathlib.Path(remote.cloche.cwd).glob('*.sock'))
	(tmp_path / 'run').mkdir()
	os.symlink(socket_path, tmp_path / 'run' / 'cloche.sock')
	here = {'CLOCHE_RUN': str(tmp_path / 'run')}
	assert remote.cloche.call('keys', '-q', env=here).out == remote('keys', '-q').out != ''
	none = remote.cloche.call('keys', env={'CLOCHE_RUN': str(tmp_path)})
	assert none.code == 125 and 'No such file or directory' in none.err and 'cloche serve' in none.err
	for args in (('keys', 'list', '--role', 'admin'), ('keys', 'make'), ('keys', 'revoke'), ('accounts', 'create'), ('webhooks', 'redeliver', 'x'), ('audit', 'x')):
		done = remote(*args)
		assert done.code == 2 and done.err.count('\n') == 1, (args, done)


# ---- what is wrong ----

def test_what_is_refused_says_what_to_do(remote, box):
	for args, words in ((('verify', box), 'on the server'), (('apply', box), 'git apply'), (('doctor',), 'CLOCHE_SERVER'), (('gc',), 'CLOCHE_SERVER'),
		(('serve',), 'CLOCHE_SERVER'), (('exec', box, '-t', '--', 'sh'), 'no terminal'), (('exec', box, '--source', 'human_takeover', '--', 'sh'), '--source'),
		(('create', '--agent', 'claude'), '--agent'), (('create', '--pull', '--image', 'debian:12'), '--pull'), (('fork', box, '--name', 'x'), 'leave the options out'),
		(('resume', box, '--no-trace'), 'leave the options out'), (('run', '--ask', '--', 'true'), 'POST .../asks'), (('exec', box, '-i', '--detach', '--', 'cat'), '--detach'), (('rm', '--bodies', box), '--bodies'), (('--state', '/tmp', '--server', 'http://x', 'ps'), '--state'),
		(('ps', '--key', 'x', '--key-file', 'y'), 'exclude each other'), (('create', '-m', 'relative:/x:ro'), 'absolute')):
		done = remote(*args)
		assert done.code in (2, 125) and words in done.err and done.out == '' and done.err.count('\n') == 1, (args, done)
		assert done.code == 2 or args[0] == 'ps', (args, done)
	before = remote.lines('ps', '-q', '--all')
	assert 'host folders' in remote('create', '-m', '/etc:/x:ro').err or remote('create', '-m', '/etc:/x:ro').code == 125
	assert remote.lines('ps', '-q', '--all') == before


def test_keys_and_servers_that_are_not_there(remote, tmp_path):
	def call(*args, url=None, **env):
		return remote.cloche.call('ps', *args, env={'CLOCHE_SERVER': url or remote.there['CLOCHE_SERVER'], **env})

	(tmp_path / 'key').write_text(remote.server.key + '\n')
	(tmp_path / 'empty').write_text('\n')
	assert call('--key-file', str(tmp_path / 'key')).code == 0 == call('--key', remote.server.key).code
	for done, words in ((call(), 'CLOCHE_KEY'), (call(CLOCHE_KEY='clo_wrong'), 'does not know this key'), (call('--key-file', str(tmp_path / 'empty')), 'holds no key'),
		(call('--key-file', str(tmp_path / 'none')), 'No such file'), (call(CLOCHE_KEY='a b'), 'holds no key'),
		(call(url=f'http://127.0.0.1:{free_port()}'), 'check the URL'), (call(url=f'https://127.0.0.1:{remote.server.port}'), 'check the URL'),
		(call(url=f'unix://{tmp_path}/none'), 'cloche serve'), (call(url='127.0.0.1:7410'), 'https://127.0.0.1:7410'), (call(url='ftp://x'), 'https://'),
		(call(url='http://u:p@x'), 'https://')):
		assert done.code == 125 and words in done.err and done.err.count('\n') == 1 and done.out == '', done
	socket_path = next(pathlib.Path(remote.cloche.cwd).glob('*.sock'))
	assert call(url=f'unix://{socket_path}').code == 0


def test_what_the_server_says_is_shown_and_not_obeyed(remote):
	"""A server that lies: its words are escaped, and what is no control plane is called so."""
	answers = {
		'/v1/sandboxes': (200, json.dumps({'items': [{'id': 'sb_0000000000000000', 'state': HOSTILE, 'name': HOSTILE, 'labels': {}}], 'next_cursor': None})),
		'/v1/sandboxes/sb_0000000000000000': (404, json.dumps({'code': 'not_found', 'detail': HOSTILE})),
		'/v1/sandboxes/sb_0000000000000000/watch': (200, 'id: s1\nevent: trace\ndata: {"v":1,"x":"\x1b[31m"}\n\nevent: end\ndata: {}\n\n'),
		'/v1/sandboxes/sb_1111111111111111': (200, '<html>\x1b[31m'), '/v1/sandboxes/sb_2222222222222222': (500, '<html>\x1b[31m'),
	}
	lying = Lying(answers)
	liar = Remote(remote.server, url=f'http://127.0.0.1:{lying.port}')
	shown = liar('ps')
	assert shown.code == 0 and r'a\x1b[31m\u202e\x07\nb' in shown.out, shown
	assert r'a\x1b[31m' in liar('inspect', 'sb_0000000000000000').err
	assert 'a control plane' in liar('inspect', 'sb_1111111111111111').err and 'not a control plane' in liar('inspect', 'sb_2222222222222222').err
	for call in (shown, liar('ps', '--json'), liar('events', 'sb_0000000000000000', '--jsonl'), liar('inspect', 'sb_0000000000000000'), liar('inspect', 'sb_1111111111111111')):
		assert b'\x1b' not in call.raw_out + call.raw_err and b'\x07' not in call.raw_out + call.raw_err, call
	lying.close()


class Lying:
	"""Answers each path with what it is told to."""

	def __init__(self, answers):
		class Handler(http.server.BaseHTTPRequestHandler):
			def do_GET(self):
				told = answers.get(self.path.split('?')[0], (404, '{}'))
				status, body = told if isinstance(told, tuple) else told.pop(0)
				self.send_response(status)
				self.send_header('Content-Type', 'text/event-stream' if body.startswith('id:') else 'application/json')
				self.send_header('Content-Length', str(len(body.encode())))
				self.end_headers()
				self.wfile.write(body.encode())

			def log_message(self, *args):
				pass

		self.http = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
		self.port = self.http.server_address[1]
		threading.Thread(target=self.http.serve_forever, daemon=True).start()

	def close(self):
		self.http.shutdown()
		self.http.server_close()


def test_the_key_is_not_left_in_the_list_of_processes(remote, box):
	process = remote.cloche.start('--server', remote.there['CLOCHE_SERVER'], '--key', remote.server.key, 'exec', box, '--shell', 'echo begun; exec sleep 77')
	assert process.stdout.readline() == b'begun\n'
	shown = pathlib.Path(f'/proc/{process.pid}/cmdline').read_bytes()
	process.send_signal(signal.SIGINT)
	process.communicate(timeout=20)
	assert b'--key' in shown and remote.server.key.encode() not in shown


def test_https_is_verified(remote, tmp_path):
	"""A relay with TLS before the server: an authority of one's own is named, or it is refused."""
	def openssl(*args):
		subprocess.run(['openssl', *args], cwd=tmp_path, check=True, capture_output=True)

	openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'key.pem', '-out', 'cert.pem', '-days', '2',
		'-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost')
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(tmp_path / 'cert.pem', tmp_path / 'key.pem')
	listening = context.wrap_socket(socket.create_server(('127.0.0.1', 0)), server_side=True)

	def serve():
		while True:
			try:
				client = listening.accept()[0]
			except ssl.SSLError:
				continue
			except OSError:
				return
			with client, socket.create_connection(('127.0.0.1', remote.server.port)) as server:
				server.sendall(client.recv(65536).replace(b'HTTP/1.1\r\n', b'HTTP/1.1\r\nConnection: close\r\n', 1))
				while data := server.recv(65536):
					client.sendall(data)

	threading.Thread(target=serve, daemon=True).start()
	port = listening.getsockname()[1]
	far = Remote(remote.server, url=f'https://localhost:{port}')
	refused = far('ps')
	assert refused.code == 125 and '--server-ca' in refused.err, refused
	assert far('ps', '--server-ca', str(tmp_path / 'cert.pem')).code == 0
	assert remote.cloche.call('ps', env={**far.there, 'CLOCHE_SERVER_CA': str(tmp_path / 'cert.pem')}).code == 0
	wrong = Remote(remote.server, url=f'https://127.0.0.1:{port}')('ps', '--server-ca', str(tmp_path / 'cert.pem'))
	assert wrong.code == 125 and 'not to be trusted' in wrong.err, wrong
	listening.close()


def test_without_a_server_nothing_changes(remote, box):
	"""Plain cloche neither loads nor starts what speaks HTTP, and --state means this host whatever the environment says."""
	assert remote.cloche.call('log', box).code == 0
	done = remote('--state', str(remote.cloche.state), 'doctor', '--json')
	assert done.code in (0, 1) and 'not with a server' not in done.err
	assert (BUILD / 'cloche-remote').exists() and os.access(BUILD / 'cloche-remote', os.X_OK)
