# SPDX-License-Identifier: Apache-2.0
"""Operations on a sandbox's files from outside: what they do, what they refuse, and that nothing leads out."""
import base64
import hashlib
import os
import pathlib
import socket
import threading
import time
import urllib.parse

import pytest

from harness import wait_for

RACE_ROUNDS = 50

STORES = ['sqlite'] # nothing here asks the database but what test_serve.py does; CLOCHE_TEST_STORES=all runs both


@pytest.fixture(scope='module')
def module_box(server):
	made = server.admin.create()
	yield made
	assert server.admin.delete(f'/v1/sandboxes/{made}').status == 200


class Files:
	"""The operations of one sandbox, each in a folder of this test's own."""

	def __init__(self, client, box, folder):
		self.client, self.box, self.folder = client, box, folder

	def post(self, operation, path=None, **members):
		body = {'path': path if path is None or path.startswith('/') else f'{self.folder}/{path}', **members}
		return self.client.post(f'/v1/sandboxes/{self.box}/files/{operation}', {key: value for key, value in body.items() if value is not None})

	def content(self, path, **query):
		path = path if path.startswith('/') else f'{self.folder}/{path}'
		return f'/v1/sandboxes/{self.box}/files/content?' + urllib.parse.urlencode({'path': path, **query})

	def put(self, path, body, **query):
		return self.client.call('PUT', self.content(path, **query), body)

	def get(self, path):
		return self.client.get(self.content(path))

	def run(self, command):
		row = self.client.exec(self.box, f'cd {self.folder} && {command}')
		assert row['exit_code'] == 0, row
		return row['stdout']

	def rows(self, n):
		return self.client.get(f'/v1/sandboxes/{self.box}/log?order=desc&limit={n}').json['items']


@pytest.fixture
def files(admin, module_box, request):
	folder = '/srv/' + hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
	admin.exec(module_box, f'mkdir -p {folder}')
	return Files(admin, module_box, folder)


def code(reply):
	return reply.status, reply.json['code']


def b64(data):
	return base64.b64encode(data).decode()


def test_create_view_replace(files):
	made = files.post('create', 'a.txt', content='one\ntwo\nthree')
	assert made.status == 201 and made.json == {'path': f'{files.folder}/a.txt', 'bytes': 13, 'created': True, 'exec': made.json['exec']}
	assert code(files.post('create', 'a.txt', content='x')) == (409, 'exists')
	assert files.run('cat a.txt; stat -c %a:%u a.txt') == 'one\ntwo\nthree644:0\n'
	assert files.post('view', 'a.txt').json['content'] == 'one\ntwo\nthree'
	part = files.post('view', 'a.txt', first_line=2, last_line=2).json
	assert (part['content'], part['first_line'], part['last_line'], part['has_more'], part['size']) == ('two\n', 2, 2, True, 13)
	beyond = files.post('view', 'a.txt', first_line=9).json
	assert (beyond['content'], beyond['last_line'], beyond['has_more']) == ('', 8, False)
	replaced = files.post('str_replace', 'a.txt', old='two', new='2')
	assert replaced.status == 200 and (replaced.json['line'], replaced.json['bytes']) == (2, 11)
	assert files.run('cat a.txt') == 'one\n2\nthree'
	for old, why in (('zzz', 'no_match'), ('e', 'many_matches'), ('ee', None)):
		got = files.post('str_replace', 'a.txt', old=old, new='E')
		assert (got.status == 200) if why is None else (code(got) == (409, why)), got
	assert files.run('cat a.txt; ls -A') == 'one\n2\nthrEa.txt\n'


def test_overwriting_keeps_owner_and_mode(files):
	files.run('echo old > f; chmod 750 f; chown 5:6 f; ln f other')
	done = files.post('create', 'f', content='new', overwrite=True)
	assert done.status == 200 and done.json['created'] is False
	assert files.run('cat f; stat -c :%a:%u:%g f; cat other; ls -A') == 'new:750:5:6\nold\nf\nother\n'
	assert files.post('create', 'g', content='x', mode='0600').status == 201
	assert files.put('deep/er/h', b'y', parents='true', mode='755').status == 201
	assert files.run('stat -c %a g deep deep/er deep/er/h') == '600\n755\n755\n755\n'
	assert code(files.post('create', 'none/h', content='y')) == (404, 'file_not_found')


def test_up_and_down(files):
	data = os.urandom(9_000_001)
	up = files.put('blob', data)
	assert up.status == 201 and up.json['bytes'] == len(data)
	down = files.get('blob')
	assert down.status == 200 and down.body == data and down.headers['Content-Type'] == 'application/octet-stream'
	rows = files.rows(2)
	assert [row['operation'] for row in rows] == ['download', 'upload']
	assert rows[0]['stdout_sha256'] == rows[1]['detail']['sha256'] == hashlib.sha256(data).hexdigest() and rows[0]['exec'] == down.headers['Cloche-Exec']
	assert code(files.put('blob', b'', overwrite='false')) == (409, 'exists')
	assert files.put('blob', b'').status == 200 and files.get('blob').body == b''
	assert files.client.call('HEAD', files.content('blob')).status == 405


def test_rows(files):
	def newest():
		return files.rows(1)[0]

	files.run('ln -s . way; mkdir sub')
	made = files.post('create', 'way/sub/f', content='abc')
	row = newest()
	assert (row['operation'], row['exit_code'], row['exec'], row['via'], row['source'], row['user']) == ('file_create', 0, made.json['exec'], 'api', 'agent', 'root')
	assert row['detail'] == {'path': f'{files.folder}/way/sub/f', 'bytes': 3, 'sha256': hashlib.sha256(b'abc').hexdigest(), 'used': f'{files.folder}/sub/f'}
	assert row['argv'] == ['file_create', f'{files.folder}/way/sub/f'] and row['actor'].startswith('key:')
	for operation, members, detail in (('view', {'first_line': 1}, {'first_line': 1}), ('str_replace', {'old': 'b', 'new': ''}, {'old_bytes': 1, 'new_bytes': 0})):
		files.post(operation, 'sub/f', **members)
		assert newest()['operation'] == operation
		assert newest()['detail'] == {'path': f'{files.folder}/sub/f', **detail, 'used': f'{files.folder}/sub/f'}
	files.post('glob', files.folder, pattern='s*/f')
	assert newest()['detail'] == {'path': files.folder, 'pattern': 's*/f', 'used': files.folder} and newest()['argv'] == ['glob', 's*/f']
	gone = files.post('view', 'gone')
	assert code(gone) == (404, 'file_not_found') and (newest()['exit_code'], newest()['detail']) == (3, {'path': f'{files.folder}/gone'})
	assert 'gone' in newest()['stderr']
	ids = [row['id'] for row in files.client.pages(f'/v1/sandboxes/{files.box}/log', 1000)]
	assert sorted(ids) == list(range(1, len(ids) + 1))
	printed = files.client.server.cloche.call('log', files.box).out
	assert f'glob {{"path":"{files.folder}","pattern":"s*/f"' in printed
	assert [row['exec'] for row in files.client.get(f'/v1/sandboxes/{files.box}/log?q={files.folder}/way/sub').json['items']] == [made.json['exec']]


def test_an_operation_that_is_stopped_is_no_row(admin):
	box = admin.create()
	admin.exec(box, 'yes aaaaaaaaaaaaaaaaaaaa | head -c 20000000 > /srv/big')
	admin.post(f'/v1/sandboxes/{box}/exec', {'command': 'while :; do pkill -9 cloche-files; done', 'detach': True})
	got = wait_for(lambda: next((reply for reply in [admin.post(f'/v1/sandboxes/{box}/files/grep', {'path': '/srv', 'pattern': '(a|b)*c'})] if reply.status == 502), None),
		'one that is killed', 30)
	assert got.json['code'] == 'operation_failed'
	rows = admin.get(f'/v1/sandboxes/{box}/log').json['items']
	errors = [event for event in admin.get(f'/v1/sandboxes/{box}/lifecycle').json['items'] if event['kind'] == 'sandbox.error']
	assert errors[-1]['reason'] == 'grep did not come to an end: its process was killed'
	assert errors[-1]['exec'] not in {row['exec'] for row in rows}
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200
	checked = admin.server.cloche.call('verify', box)
	assert checked.code == 0, checked
	rows = list(admin.pages(f'/v1/sandboxes/{box}/log', 1000))
	assert sorted(row['id'] for row in rows) == list(range(1, len(rows) + 1))


def test_while_paused(admin):
	box = admin.create()
	assert admin.post(f'/v1/sandboxes/{box}/pause').status == 200
	for reply in (admin.post(f'/v1/sandboxes/{box}/files/ls', {'path': '/'}), admin.get(f'/v1/sandboxes/{box}/files/content?path=/etc/hosts'),
			admin.call('PUT', f'/v1/sandboxes/{box}/files/content?path=/srv/f', b'x' * 1000000), admin.post(f'/v1/sandboxes/{box}/exec', {'command': 'true'})):
		assert code(reply) == (409, 'paused'), reply
	assert admin.post(f'/v1/sandboxes/{box}/wake').status == 200
	assert admin.post(f'/v1/sandboxes/{box}/files/ls', {'path': '/srv'}).json['entries'] == []
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200
	assert admin.post(f'/v1/sandboxes/{box}/files/ls', {'path': '/'}).status in (404, 409)


NAMES = [b'plain', b'a b\'"', b'-rf', b'\xff\xfe', b'new\nline', b'\x1b[31m', 'ä\u2028'.encode(), b'*[?]', b'x' * 255]


def test_names_of_any_bytes(files):
	for name in NAMES:
		path = files.folder.encode() + b'/' + name
		made = files.post('create', path_b64=b64(path), content=name.hex())
		assert made.status == 201, (name, made)
		assert files.client.get(f'/v1/sandboxes/{files.box}/files/content?path_b64={urllib.parse.quote(b64(path))}').body == name.hex().encode()
	listed = files.post('ls', files.folder).json
	exact = [base64.b64decode(entry['name_b64']) if 'name_b64' in entry else entry['name'].encode() for entry in listed['entries']]
	assert exact == sorted(NAMES) and {entry['kind'] for entry in listed['entries']} == {'file'}
	found = files.post('glob', files.folder, pattern='*').json['matches']
	assert len(found) == len(NAMES) and sum('path_b64' in match for match in found) == 1
	assert {row['detail'].get('path_b64') for row in files.rows(15)} - {None} == {b64(files.folder.encode() + b'/\xff\xfe')}
	assert code(files.post('create', 'x' * 256, content='')) == (400, 'invalid')
	assert files.post('view', '/' + 'a/' * 2046 + 'b').status == 404 and files.post('view', '/' + 'a/' * 2048).status == 400


def test_binary_and_huge(files):
	assert files.post('create', 'bin', content_b64=b64(bytes(range(256)))).status == 201
	seen = files.post('view', 'bin').json
	assert base64.b64decode(seen['content_b64']) == bytes(range(256))
	assert files.post('str_replace', 'bin', old_b64=b64(b'\xfe\xff'), new_b64=b64(b'\x00')).json['bytes'] == 255
	files.run('truncate -s 900G huge; { yes ä | head -c 3000000; } > long; tr -d "\\n" < long > line')
	seen = files.post('view', 'long', max_bytes=1000).json
	assert seen['content'] == 'ä\n' * 333 + '' and seen['has_more'] and seen['last_line'] == 333 and len(seen['content'].encode()) == 999
	cut = files.post('view', 'line', max_bytes=1001).json
	assert cut['content'] == 'ä' * 500 and cut['is_cut'] and 'content_b64' not in cut
	assert files.post('view', 'long').json['content'] == ('ä\n' * 87382)[:len(files.post('view', 'long').json['content'])]
	assert code(files.post('str_replace', 'huge', old='a', new='b')) == (413, 'too_large')
	assert len(files.post('view', 'huge', max_bytes=10).json['content']) == 10
	got = files.post('grep', files.folder, pattern='ä', limit=5).json
	assert len(got['matches']) == 5 and got['truncated'] and got['why'] == 'limit' and got['binary_files'] >= 1
	# A client that leaves a download ends it, and the row says so.
	connection, response = files.client.open('GET', files.content('huge'))
	assert len(response.read(1000)) == 1000
	connection.sock.shutdown(socket.SHUT_RDWR)
	connection.close()
	row = wait_for(lambda: next((row for row in files.rows(5) if row['operation'] == 'download'), None), 'its row')
	assert row['exit_code'] == 14 and row['stdout_bytes'] < 100_000_000


def test_what_is_no_file(files):
	files.run('mkfifo fifo; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'sock\')"; mkdir dir; ln -s loop loop; ln -s /proc proc; '
		'ln -s /dev/zero zero; ln -s fifo tofifo; echo x > f')
	started = time.monotonic()
	for name in ('fifo', 'sock', 'dir', 'tofifo'):
		for reply in (files.post('view', name), files.get(name), files.put(name, b'x'), files.post('str_replace', name, old='a', new='b'),
				files.post('create', name, content='', overwrite=True)):
			assert code(reply) == (409, 'not_a_file'), (name, reply)
	for path in ('proc/version', '/proc/self/mem', '/proc/kcore', '/sys/kernel/notes', '/dev/zero', 'zero', '/dev/tty', '/proc/1/environ', '/dev/shm'):
		for reply in (files.post('view', path), files.get(path), files.post('ls', path)):
			assert code(reply) in ((403, 'forbidden_place'), (404, 'file_not_found'), (403, 'denied')), (path, reply)
	for path in ('/proc/sys/kernel/core_pattern', '/proc/self/oom_score_adj', '/dev/x', '/dev/shm/x', 'zero', 'proc/x'):
		assert code(files.put(path, b'|/bin/sh', parents='true')) in ((403, 'forbidden_place'), (403, 'denied'), (404, 'file_not_found')), path
	for path in ('/proc/self/exe', '/proc/self/root/etc/passwd', '/proc/1/root/etc/passwd', '/proc/self/fd/0', '/proc/self/fd/1', '/proc/self/cwd/etc'):
		assert files.get(path).status in (400, 403, 404, 409), path
	assert code(files.post('view', 'loop')) == (400, 'invalid') == code(files.put('loop', b''))
	assert code(files.post('ls', 'f')) == (409, 'not_a_folder') and code(files.post('glob', f'{files.folder}/f', pattern='*')) == (409, 'not_a_folder')
	assert code(files.put('f/g', b'')) == (409, 'not_a_folder') and code(files.get('f/g')) == (404, 'file_not_found')
	assert code(files.put('new/', b'')) == (409, 'not_a_file') and code(files.put('..', b'')) == (409, 'not_a_file')
	assert time.monotonic() - started < 30
	kinds = {entry['name']: (entry['kind'], entry.get('target')) for entry in files.post('ls', files.folder).json['entries']}
	assert kinds == {'dir': ('folder', None), 'f': ('file', None), 'fifo': ('pipe', None), 'loop': ('link', 'loop'), 'proc': ('link', '/proc'),
		'sock': ('socket', None), 'tofifo': ('link', 'fifo'), 'zero': ('link', '/dev/zero')}


def test_links_stay_inside(files):
	marker = pathlib.Path('/srv/cloche-test-outside')
	files.run('echo target > real; ln -s real link; ln -s ../../../../../../../../etc/hostname up; ln -s missing dangling; mkdir d; ln -s ../real d/l')
	assert files.get('link').body == b'target\n' and files.get('d/l').body == b'target\n'
	assert files.get('up').body == files.client.exec(files.box, 'cat /etc/hostname')['stdout'].encode()
	assert files.put('link', b'through').status == 200 and files.run('cat real; readlink link') == 'throughreal\n'
	assert files.put('dangling', b'made').status == 201 and files.run('cat missing') == 'made'
	assert files.put('../../../../../../../../../srv/cloche-test-outside', b'x').status == 201 and not marker.exists()


RACE = '''
import os
os.chdir(FOLDER)
while True:
	try:
		os.rename('d', 'd2'); os.symlink('/etc', 'd'); os.unlink('d'); os.rename('d2', 'd')
	except OSError:
		pass
'''


def test_a_folder_that_is_swapped_for_a_link(files):
	"""R93: whoever wins, it is the sandbox's own; nothing appears on the host."""
	files.run('mkdir d; echo in > d/passwd; ln -s /etc l; ln -s /proc/self/root/etc m')
	files.client.exec(files.box, 'echo "inside:x:1:1::/:/bin/false" >> /etc/passwd')
	inside = files.client.exec(files.box, 'cat /etc/passwd')['stdout'].encode()
	assert inside.endswith(b'/bin/false\n')
	before = set(os.listdir('/etc'))
	files.client.exec(files.box, 'cat > /srv/race.py; nohup python3 /srv/race.py >/dev/null 2>&1 & echo', stdin=RACE.replace('FOLDER', repr(files.folder)))
	got, put = set(), set()

	def work(n):
		for _ in range(RACE_ROUNDS // 2):
			reply = files.get(('d/passwd', 'l/passwd', 'm/passwd')[n % 3])
			got.add(reply.body if reply.status == 200 else reply.json['code'])
			put.add(files.put('d/pwned', b'x').status)
			n += 1

	threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	files.client.exec(files.box, 'pkill -f race.py')
	assert got <= {b'in\n', inside, 'file_not_found', 'invalid', 'forbidden_place'} and inside in got, got
	assert put <= {200, 201, 404} and set(os.listdir('/etc')) == before
	# Each call is a row, with the path asked for and, where it came to one, the path used.
	rows = [row for row in files.client.pages(f'/v1/sandboxes/{files.box}/log', 1000) if row['operation'] in ('download', 'upload') and row['detail']['path'].startswith(files.folder)]
	assert len(rows) == 4 * (RACE_ROUNDS // 2) and {row['detail']['path'] for row in rows} == {f'{files.folder}/{name}' for name in ('d/passwd', 'l/passwd', 'm/passwd', 'd/pwned')}
	assert {row['detail'].get('used') for row in rows if row['exit_code'] == 0} <= {*(f'{files.folder}/{name}' for name in ('d/passwd', 'd2/passwd', 'd/pwned', 'd2/pwned')),
		'/etc/passwd', '/etc/pwned'}


WATCH = '''
import os, sys, time
seen, end = set(), time.time() + 2
me = os.getpid()
while time.time() < end:
	for p in os.listdir('/proc'):
		if not p.isdigit() or int(p) in (1, me):
			continue
		try:
			name = open(f'/proc/{p}/comm').read().strip()
		except OSError:
			continue
		for what in ('exe', 'root', 'cwd', 'mem', 'environ', 'maps'):
			try:
				if what in ('exe', 'root', 'cwd'):
					text = os.readlink(f'/proc/{p}/{what}')
				else:
					text = os.open(f'/proc/{p}/{what}', os.O_RDONLY) and 'opened'
				if (name, what, text) not in seen:
					seen.add((name, what, text)); print('SAW', name, what, text, flush=True)
				if what == 'exe':
					f = os.open(f'/proc/{p}/exe', os.O_RDONLY)
					os.open(f'/proc/self/fd/{f}', os.O_WRONLY); print('WRITABLE', text, flush=True)
			except OSError:
				pass
		try:
			for f in os.listdir(f'/proc/{p}/fd'):
				text = os.readlink(f'/proc/{p}/fd/{f}')
				if text.startswith('/') and not os.path.lexists(text.split(' (')[0]):
					print('FOREIGN FD', name, text, flush=True)
		except OSError:
			pass
		if name.startswith('cloche') or 'memfd' in name or name == '3':
			print('MET', name, flush=True)
'''


def test_nobody_inside_catches_the_helper(files):
	"""A32: its image cannot be written or read, and nobody looks into it."""
	done = []
	watcher = threading.Thread(target=lambda: done.append(files.client.exec(files.box, 'python3 -', stdin=WATCH)))
	watcher.start()
	end = time.monotonic() + 2
	while time.monotonic() < end:
		files.post('grep', '/usr/bin', pattern='(a|b)*cloche-nothing', limit=10)
		files.get('/usr/bin/python3')
	watcher.join()
	row, = done
	lines = row['stdout'].splitlines()
	assert not [line for line in lines if line.startswith(('WRITABLE', 'FOREIGN'))], lines
	met = {line.split(' ', 1)[1] for line in lines if line.startswith('MET')}
	assert met, lines
	assert not [line for line in lines if line.startswith('SAW') and line.split(' ')[1] in met], lines


def test_glob(files):
	files.run('mkdir -p a/b/c .h; touch a/x.py a/b/y.py a/b/c/z.py a/b/c/z.txt .h/v.py top.py; ln -s a link')

	def paths(pattern, **how):
		got = files.post('glob', files.folder, pattern=pattern, **how).json
		return [match['path'].removeprefix(files.folder + '/') for match in got['matches']], got['truncated']

	assert paths('**/*.py') == (['.h/v.py', 'a/b/c/z.py', 'a/b/y.py', 'a/x.py', 'top.py'], False)
	assert paths('*.py') == (['top.py'], False) and paths('a/*/*.py') == (['a/b/y.py'], False)
	assert paths('a/**/z.*') == (['a/b/c/z.py', 'a/b/c/z.txt'], False) and paths('a/[!a]/?') == (['a/b/c'], False)
	assert paths('**/*.py', limit=2) == (['.h/v.py', 'a/b/c/z.py'], True)
	assert paths('link/*') == ([], False) and paths('**/none') == ([], False)
	assert files.post('glob', pattern='etc/host[n]ame').json['matches'] == [{'path': '/etc/hostname', 'kind': 'file'}]
	assert files.post('glob', pattern='proc/*/status').json['matches'] == [] == files.post('glob', pattern='sys/*/*').json['matches']
	started = time.monotonic()
	assert paths('*' + 'a*' * 400 + 'b') == ([], False) and time.monotonic() - started < 20


def test_grep(files):
	files.run('mkdir -p s/t; printf "one\\nTwo (2)\\r\\nthree" > s/a.txt; printf "two\\n" > s/t/b.md; printf "x\\0two\\n" > s/bin; echo two > s/secret; chmod 0 s/secret; ln -s a.txt s/l')

	def grep(pattern, **how):
		got = files.post('grep', f'{files.folder}/s', pattern=pattern, **how)
		assert got.status == 200, got
		return [(match['path'].rsplit('/', 1)[1], match['line'], match['text']) for match in got.json['matches']]

	assert grep('^t(w|h)') == [('a.txt', 3, 'three'), ('secret', 1, 'two'), ('b.md', 1, 'two')]
	assert grep('two', ignore_case=True) == [('a.txt', 2, 'Two (2)'), ('secret', 1, 'two'), ('b.md', 1, 'two')]
	assert grep('o (2)', literal=True) == [('a.txt', 2, 'Two (2)')] == grep('O (2)', literal=True, ignore_case=True)
	assert grep('two', glob='*.md') == [('b.md', 1, 'two')] == grep('two', glob='t/*') and grep('two', glob='*.txt') == []
	assert grep('\\)$') == [('a.txt', 2, 'Two (2)')]
	assert files.post('grep', f'{files.folder}/s', pattern='two').json['binary_files'] == 1
	assert [match['line'] for match in files.post('grep', 's/a.txt', pattern='e$').json['matches']] == [1, 3]
	assert code(files.post('grep', files.folder, pattern='(')) == (400, 'invalid')
	assert code(files.post('grep', '/proc', pattern='Linux')) == (403, 'forbidden_place')


def test_rights_inside(files):
	"""As root inside: what no mode forbids it; what is hidden or read-only stays so."""
	files.run('echo mine > f; chown 1000:1000 f; chmod 0 f; mkdir d; chmod 0 d')
	assert files.get('f').body == b'mine\n' and files.put('d/x', b'').status == 201
	assert files.put('/etc/hosts', b'127.0.0.1 localhost\n').status == 200
	assert files.client.exec(files.box, 'stat -c %U:%G /etc/hosts')['stdout'] == 'root:root\n'


BAD = [('create', {}), ('create', {'path': 'relative'}), ('create', {'path': '/a\0b'}), ('create', {'path': 5}), ('create', {'path': '/a', 'path_b64': 'L2E='}),
	('create', {'path': '/srv/a', 'content': 5}), ('create', {'path': '/srv/a', 'content_b64': '!'}), ('create', {'path': '/srv/a', 'mode': '4755'}),
	('create', {'path': '/srv/a', 'mode': 'rwx'}), ('create', {'path': '/srv/a', 'mode': 493}), ('create', {'path': '/srv/a', 'nonsense': 1}),
	('create', {'path': '/srv/a', 'overwrite': 'yes'}), ('view', {'path': '/etc/hosts', 'first_line': 0}), ('view', {'path': '/etc/hosts', 'first_line': 3, 'last_line': 2}),
	('view', {'path': '/etc/hosts', 'max_bytes': 1 << 30}), ('view', {'path_b64': 'L2EAYg=='}), ('str_replace', {'path': '/etc/hosts', 'old': ''}),
	('str_replace', {'path': '/etc/hosts', 'old': '', 'new': ''}), ('str_replace', {'path': '/etc/hosts', 'old': 'a'}), ('ls', {'path': '/', 'limit': 0}),
	('ls', {'path': '/', 'limit': 100000}), ('glob', {}), ('glob', {'pattern': ''}), ('glob', {'pattern': 'x' * 2000}), ('grep', {'pattern': ['a']}),
	('grep', {'pattern': 'a', 'literal': 'x'}), ('grep', {'pattern': 'a\0'})]


def test_bad_requests(server, files):
	before = files.rows(1)
	for operation, body in BAD:
		got = files.client.post(f'/v1/sandboxes/{files.box}/files/{operation}', body)
		assert code(got) == (400, 'invalid') and got.json['detail'], (operation, body, got)
	place = f'/v1/sandboxes/{files.box}/files/content'
	for method, target in (('GET', place), ('GET', place + '?path=a'), ('GET', place + '?path=/a&path_b64=L2E%3D'), ('PUT', place), ('PUT', place + '?path=/a&mode=9'),
			('PUT', place + '?path=/a&overwrite=maybe'), ('GET', place + '?path=/a&x=1'), ('GET', place + '?path=/%ff'), ('PUT', place + '?path_b64=%21')):
		assert code(files.client.call(method, target, b'x' if method == 'PUT' else None)) == (400, 'invalid'), target
	connection, response = files.client.open('PUT', place + '?path=/srv/big', headers={'Content-Length': str((64 << 20) + 1)})
	assert response.status == 413
	connection.close()
	assert files.rows(1) == before
	auditor, other = server.client('auditor'), server.client('admin', account='other')
	for client, status in ((auditor, 403), (other, 404)):
		for operation in ('create', 'view', 'str_replace', 'ls', 'glob', 'grep'):
			assert client.post(f'/v1/sandboxes/{files.box}/files/{operation}', {'path': '/etc/hosts'}).status == status
		assert client.get(place + '?path=/etc/hosts').status == status == client.call('PUT', place + '?path=/srv/x', b'').status
	assert files.rows(1) == before
