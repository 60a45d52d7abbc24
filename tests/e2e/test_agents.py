# SPDX-License-Identifier: Apache-2.0
"""What real agent programs need from a sandbox, and do that an observer may get wrong; two of them are started."""
import errno
import json
import os
import shutil

import pytest

import harness

BASH = os.path.realpath('/bin/bash')


def script(folder, name, text):
	"""A program in a folder that is mounted as /opt/agent."""
	folder.mkdir(exist_ok=True)
	(folder / name).write_text(text)
	(folder / name).chmod(0o755)
	return ('--mount', f'{folder}:/opt/agent:ro')


def derived(record):
	"""The agent's commands: (string or argv, exit, stdout, stderr)"""
	return [(command.get('command') or command.get('argv'), command['exit_code'], command['stdout'], command['stderr'])
		for command in record.commands() if command['derived']]


# What a sandbox must give.

@pytest.mark.parametrize('code, out', [
	pytest.param('print(os.readlink("/proc/self") == str(os.getpid()), os.path.exists("/proc/1/status"),'
		' len([p for p in os.listdir("/proc") if p.isdigit()]) <= 3)', 'True True True', id='proc of its own processes'),
	pytest.param('a, b = os.openpty()\nos.write(a, b"x\\n")\nprint(os.ttyname(b).startswith("/dev/pts/"), os.read(b, 9))',
		"True b'x\\n'", id='terminals'),
	pytest.param('print(*(os.path.exists("/dev/" + n) for n in "null zero full random urandom tty ptmx pts shm fd stdin".split()))',
		' '.join(['True'] * 11), id='usual devices'),
	pytest.param('print(os.environ["HOME"], os.environ["IS_SANDBOX"], "/usr/bin" in os.environ["PATH"].split(":"), os.getuid())',
		'/root 1 True 0', id='variables'),
	pytest.param('s = socket.socket(socket.AF_UNIX)\nprint(s.connect_ex("/var/run/nscd/socket"), pwd.getpwuid(0).pw_name)',
		f'{errno.ENOENT} root', id='no name cache'),
	pytest.param('print(libc.syscall(425, 4, ctypes.create_string_buffer(120)), ctypes.get_errno())', f'-1 {errno.ENOSYS}',
		id='no ring of calls'),
	pytest.param('s = socket.create_server(("127.0.0.1", 0))\nc = socket.create_connection(s.getsockname())\nprint(c.getpeername()[0])',
		'127.0.0.1', id='loopback'),
])
def test_what_agents_need_is_there(cloche, code, out):
	run = cloche.py('import ctypes, os, pwd, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n' + code)
	assert (run.code, run.out) == (0, out + '\n'), run
	assert run.record.show()['complete'] is True


@pytest.mark.parametrize('folder', ['/tmp', '$HOME', '$HOME/.cache/unpacked', '/workspace'])
def test_programs_run_where_agents_unpack_them(cloche, folder):
	run = cloche.bash(f'mkdir -p {folder} && cd {folder} && cp /bin/echo own-echo && ./own-echo ran && pwd')
	assert run.code == 0 and run.lines[0] == 'ran', run
	assert run.record.node(argv=['./own-echo'])['path'] == f'{run.lines[1]}/own-echo'


def test_git_and_bash_are_there(cloche):
	run = cloche.bash('git --version | cut -d" " -f1; echo ${BASH_VERSION:+bash}')
	assert run.lines == ['git', 'bash'], run


# What an observer must get right.

def test_work_through_a_folder_handle_has_the_real_paths(cloche):
	run = cloche.py('''
import os, threading
os.mkdir('/workspace/p')
folder = os.open('/workspace/p', os.O_PATH | os.O_DIRECTORY)
def work(base, name):
	with open(f'{base}/{name}.tmp', 'w') as file:
		file.write(name)
	os.rename(f'{base}/{name}.tmp', f'{base}/{name}')
	open(f'{base}/{name}.lock', 'w').close()
	os.unlink(f'{base}/{name}.lock')
for base, name in ((f'/proc/self/fd/{folder}', 'a'), (f'/dev/fd/{folder}', 'b')):
	thread = threading.Thread(target=work, args=(base, name))
	thread.start()
	thread.join()
os.close(folder)
''')
	assert run.code == 0, run
	events = [event for event in run.record.events() if '/workspace/p' in json.dumps(event)]
	for name in 'ab':
		path = f'/workspace/p/{name}'
		told = [(event['kind'], event.get('path') or (event['from'], event['to'])) for event in events
			if event.get('path', event.get('from', '')).startswith(path)
			and (event['kind'] != 'file.open' or event.get('created'))]
		assert told == [
			('file.open', f'{path}.tmp'), ('file.rename', (f'{path}.tmp', path)), ('file.open', f'{path}.lock'),
			('file.delete', f'{path}.lock'),
		]
	assert len({event['task'] for event in events if event['kind'] == 'file.rename'}) == 2
	assert not [event for event in events if event.get('path_unresolved')]
	table = run.record.files('--noise')
	assert not [path for path in table if '/fd/' in path and path.endswith(('.tmp', '.lock', '/a', '/b'))]
	assert table['/workspace/p/a']['written'] and table['/workspace/p/a']['renamed_from'] == '/workspace/p/a.tmp'


def test_folder_handle_by_a_process_number_is_never_told_as_a_place(cloche):
	"""What the kernel half does not follow is said to be unresolved; an open is known from the file itself."""
	run = cloche.py('''
import os
folder = os.open('/workspace', os.O_PATH | os.O_DIRECTORY)
base = f'/proc/{os.getpid()}/fd/{folder}'
open(f'{base}/a', 'w').close()
os.rename(f'{base}/a', f'{base}/b')
os.unlink(f'{base}/b')
''')
	assert run.code == 0, run
	assert run.record.file('/workspace/a')['created']
	for event in run.record.events('file.rename') + run.record.events('file.delete'):
		path = event.get('path') or event['from']
		assert path.startswith('/workspace/') or event['path_unresolved'] is True


def test_short_lived_folders_of_threads_leave_the_record_complete(cloche):
	"""Node's programs lock by a folder: it may be gone before anybody can look whether it was there."""
	run = cloche.py('''
import os, threading
def work(n):
	for i in range(50):
		os.mkdir(f'/workspace/{n}-{i}.lock')
		os.rmdir(f'/workspace/{n}-{i}.lock')
		os.mkdir(f'/workspace/{n}-{i}')
		os.mkdir(f'/workspace/{n}-{i}/in')
		os.symlink('x', f'/workspace/{n}-{i}/in/link')
		os.rename(f'/workspace/{n}-{i}', f'/workspace/{n}-{i}.moved')
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
	thread.start()
for thread in threads:
	thread.join()
''')
	assert run.code == 0, run
	made = [event['path'] for event in run.record.events('dir.create')]
	assert sorted(made) == sorted(f'/workspace/{n}-{i}{end}' for n in range(4) for i in range(50) for end in ('.lock', '', '/in'))
	assert len(run.record.events('file.delete')) == len(run.record.events('file.rename')) == 200
	assert run.record.show()['complete'] is True


def test_handle_on_a_secret_is_no_read_until_it_is_read(cloche):
	look = "import os; fd = os.open('/etc/passwd', os.O_PATH | os.O_NOFOLLOW); os.fstat(fd); os.readlink(f'/proc/self/fd/{fd}')"
	run = cloche.py(look)
	assert run.code == 0, run
	[event] = [event for event in run.record.events('file.open') if event['path'] == '/etc/passwd']
	assert event['access'] == 'path'
	assert run.record.files().get('/etc/passwd', {'read': False})['read'] is False
	run = cloche.py(look + "; open(f'/proc/self/fd/{fd}').read()")
	assert run.record.file('/etc/passwd')['read'] is True


def test_program_that_starts_itself_again_has_its_real_path(cloche):
	run = cloche.bash('''
cp /bin/bash /tmp/agent && ln -s agent /tmp/agent-helper && ln /tmp/agent /tmp/agent-twin
/tmp/agent -c '(exec -a "helper one" /proc/self/exe -c :); /proc/$$/exe -c : two; /tmp/agent-helper -c : three; /tmp/agent-twin -c : four; :'
''')
	assert run.code == 0, run
	[agent] = run.record.nodes(argv=['/tmp/agent'])
	assert agent['path'] == '/tmp/agent'
	told = [(node['path'], node['argv'][0], node['argv'][3:]) for node in agent['children']]
	assert [path for path, _, _ in told] == ['/tmp/agent', '/tmp/agent', '/tmp/agent', '/tmp/agent-twin']
	assert told[0][1] == 'helper one'
	assert told[1][1].startswith('/proc/') and told[1][2] == ['two']
	assert told[2][1:] == ('/tmp/agent-helper', ['three'])


def test_edit_by_a_temporary_file_is_a_change_of_the_file(cloche, project):
	(project / 'a.py').write_text('old\n')
	run = cloche.py('''
import os
open('a.py').read()
with open('a.py.tmp.1', 'w') as file:
	file.write('new\\n')
os.rename('a.py.tmp.1', 'a.py')
os.makedirs('/root/.agent')
for n in range(40):
	open(f'/root/.agent/{n}.lock', 'w').close()
	os.unlink(f'/root/.agent/{n}.lock')
open('/root/.agent/session.jsonl', 'w').write('{}')
''', options=('-w', str(project)))
	assert run.code == 0, run
	entry = run.record.file(f'{project}/a.py')
	assert entry['replaced'] and entry['renamed_from'] == f'{project}/a.py.tmp.1' and not entry['deleted']
	[line] = [line for line in run.err.splitlines() if line.startswith('Files ')]
	assert line.split(maxsplit=1)[1].startswith('1 changed, 0 added, 0 removed'), line


def test_output_that_goes_to_a_file_that_is_removed_is_still_told(cloche, tmp_path):
	options = script(tmp_path / 'agent', 'agent.py', '''
import os, subprocess
for n, command in enumerate(('echo hello; echo bad >&2; exit 3', 'echo again')):
	with open(f'/tmp/out-{n}', 'w') as file:
		subprocess.run(['/bin/sh', '-c', command], stdout=file, stderr=file)
	os.unlink(f'/tmp/out-{n}')
''')
	run = cloche.run(harness.PYTHON, '/opt/agent/agent.py', options=options)
	assert (run.code, run.out) == (0, '')
	told = derived(run.record)
	assert [(command, code) for command, code, _, _ in told] == [('echo hello; echo bad >&2; exit 3', 3), ('echo again', 0)]
	assert told[0][2] + told[0][3] in ('hello\nbad\n', 'bad\nhello\n') and told[1][2] == 'again\n'
	entry = run.record.file('/tmp/out-0')
	assert entry['created'] and entry['deleted']


# What an agent runs is found behind its wrappers.

CLAUDE = '''#!/usr/bin/python3
import subprocess
SNAPSHOT = '/root/.claude/shell-snapshots/snapshot-bash-1.sh'
def bash(text):
	subprocess.run(['/bin/bash', '-c', '-l', text])
bash(f'SNAPSHOT_FILE={SNAPSHOT}\\nmkdir -p /root/.claude/shell-snapshots\\necho "shopt -s extglob" > "$SNAPSHOT_FILE"\\n')
for command in ("echo hi && echo there", "cat /no/such", "cd /tmp && printf '%s\\\\n' \\"it's\\"", "exit 7"):
	quoted = "'" + command.replace("'", "'\\"'\\"'") + "'"
	bash(f"source {SNAPSHOT} && eval {quoted} \\\\< /dev/null && pwd -P >| /tmp/claude-1-cwd")
'''

CODEX = '''#!/usr/bin/python3
import os, subprocess, sys
if sys.argv[1:2] == ['--helper']:
	os.execv('/bin/bash', ['/bin/bash', '-lc', sys.argv[2]])
def helper(text):
	if os.fork() == 0:
		os.execv('/proc/self/exe', ['codex-linux-sandbox', sys.argv[0], '--helper', text])
	os.wait()
SNAPSHOT = '/root/.codex/shell_snapshots/1.sh'
os.makedirs(os.path.dirname(SNAPSHOT))
subprocess.run(['/bin/bash', '-lc', f"if true; then\\n:\\nfi\\necho '# Snapshot file'\\nshopt -p > {SNAPSHOT}\\n"],
	stdout=subprocess.DEVNULL)
subprocess.run(['/bin/bash', '-c', f'set -e; . "{SNAPSHOT}"'])
helper('echo one; echo two >&2')
subprocess.run(['/bin/bash', '-c', f"if . '{SNAPSHOT}' >/dev/null 2>&1; then :; fi\\n\\nexec '/bin/bash' -c 'false'"])
subprocess.run(['bwrap', '--ro-bind', '/', '/', '--unshare-user', '--', '/bin/bash', '-lc', 'echo never'], executable='/bin/false')
'''


@pytest.mark.parametrize('name, text, want', [
	('claude', CLAUDE, [
		('echo hi && echo there', 0, 'hi\nthere\n', ''),
		('cat /no/such', 1, '', 'cat: /no/such: No such file or directory\n'),
		("cd /tmp && printf '%s\\n' \"it's\"", 0, "it's\n", ''),
		('exit 7', 7, '', ''),
	]),
	('codex', CODEX, [
		('echo one; echo two >&2', 0, 'one\n', 'two\n'),
		('false', 1, '', ''),
		('echo never', 1, '', ''),
	]),
], ids=('claude', 'codex'))
def test_wrappers_of_agents_are_folded_away(cloche, tmp_path, name, text, want):
	run = cloche.run(f'/opt/agent/{name}', options=script(tmp_path / 'agent', name, text))
	assert run.code == 0, run
	assert derived(run.record) == want
	assert run.record.show()['complete'] is True


# Refusals come with what to do.

@pytest.mark.parametrize('command, call, says', [
	(['unshare', '-Ur', 'true'], 'unshare', 'a sandbox inside was refused'),
	(['bwrap', '--ro-bind', '/', '/', 'true'], 'clone', 'a sandbox inside was refused'),
	(['nsenter', '-t', '1', '-n', 'true'], 'setns', 'a sandbox inside was refused'),
	(['mount', '-t', 'tmpfs', 'x', '/mnt'], 'mount', 'a mount was refused'),
])
def test_refused_inner_sandbox_says_what_to_do(cloche, command, call, says):
	if shutil.which(command[0]) is None:
		pytest.skip(f'no {command[0]} on this host')
	run = cloche.sh('"$@"; "$@"; exit 0', *command)
	assert run.code == 0
	kinds = [event['kind'] for event in run.record.events() if event['kind'] in ('sandbox.refused', 'hint')]
	assert kinds.count('hint') == 1 and kinds[:2] == ['sandbox.refused', 'hint'] and kinds.count('sandbox.refused') >= 2
	[hint] = run.record.events('hint')
	first = run.record.events('sandbox.refused')[0]
	assert (first['call'], first['pid'], first['exec']) == (call, hint['pid'], hint['exec'])
	assert hint['advice'].startswith(says)
	assert f'\nHINT      {says}' in run.err
	assert run.record.show()['hints'] == [hint['advice']]


def test_probes_that_programs_do_without_give_no_hint(cloche):
	run = cloche.py('import ctypes; ctypes.CDLL(None).syscall(425, 4, None)')
	assert run.record.events('sandbox.refused') and not run.record.events('hint')


# The programs themselves.

@pytest.fixture
def agent(cloche, installed, project):
	"""Runs one of them in the project, with options of run before its arguments."""
	folder, failed = installed

	def run(name, *args, options=(), before=()):
		if harness.AGENTS[name] in failed:
			pytest.skip(failed[harness.AGENTS[name]])
		return cloche.run(*before, f'/opt/agents/{name}/node_modules/.bin/{name}', *args, options=(
			'--mount', f'{folder}:/opt/agents:ro', '--mount', f'{project}:{project}:cow', '-w', str(project),
			'--timeout', '60s', *options))

	return run


def test_native_agent_starts(agent):
	run = agent('codex', '--version')
	assert run.code == 0 and run.out.startswith('codex-cli '), run
	[node] = [node for node in run.record.nodes() if node['path'].endswith('/bin/codex')]
	assert (node['argv'][1:], node['exit_code'], node['children']) == (['--version'], 0, [])
	assert derived(run.record) == []
	assert run.record.show()['complete'] is True


def test_native_agent_whose_inner_sandbox_is_refused(agent, project):
	run = agent('codex', 'sandbox', '--', '/bin/sh', '-c', 'echo in > x; cat x')
	assert run.code == 1 and not (project / 'x').exists(), run
	assert derived(run.record)[-1][:2] == ('echo in > x; cat x', 1)
	[hint] = run.record.events('hint')
	assert '--dangerously-bypass-approvals-and-sandbox' in hint['advice']


MODEL = '''
import http.server, json, subprocess, sys, threading
STEPS = json.loads(sys.argv[1])

class Model(http.server.BaseHTTPRequestHandler):
	"""Answers each request with the next command to run, then with a word."""
	protocol_version = 'HTTP/1.1'
	asked = 0

	def log_message(self, *args):
		pass

	def do_POST(self):
		self.rfile.read(int(self.headers['Content-Length']))
		n, Model.asked = Model.asked, Model.asked + 1
		item = {'type': 'message', 'id': 'm', 'role': 'assistant', 'content': [{'type': 'output_text', 'text': 'finished'}]}
		if n < len(STEPS):
			item = {'type': 'function_call', 'id': f'f{n}', 'call_id': f'c{n}', 'name': 'exec_command',
				'arguments': json.dumps({'cmd': STEPS[n]})}
		usage = {'input_tokens': 1, 'output_tokens': 1, 'total_tokens': 2}
		body = ''.join('data: ' + json.dumps(event) + '\\n\\n' for event in (
			{'type': 'response.created', 'response': {'id': 'r'}},
			{'type': 'response.output_item.done', 'output_index': 0, 'item': item},
			{'type': 'response.completed', 'response': {'id': 'r', 'usage': usage}})).encode()
		self.send_response(200)
		self.send_header('Content-Type', 'text/event-stream')
		self.send_header('Content-Length', str(len(body)))
		self.end_headers()
		self.wfile.write(body)

server = http.server.ThreadingHTTPServer(('127.0.0.1', 8123), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL).returncode)
'''
PROVIDER = '{name="local",base_url="http://127.0.0.1:8123/v1",wire_api="responses",env_key="MODEL_KEY"}'


def test_native_agent_works_by_a_scripted_model(agent, project):
	(project / 'a.txt').write_text('1\n')
	steps = ['cat a.txt', 'cat /no/such', 'echo 2 > made.txt; echo written']
	run = agent('codex', 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '-m', 'scripted',
		'-c', 'model_provider=local', '-c', f'model_providers.local={PROVIDER}', 'do it', options=('-e', 'MODEL_KEY=k'),
		before=(harness.PYTHON, '-c', MODEL, json.dumps(steps)))
	assert run.code == 0 and run.lines[-1] == 'finished', run
	assert [told for told in derived(run.record) if told[0] in steps] == [
		(steps[0], 0, '1\n', ''), (steps[1], 1, '', 'cat: /no/such: No such file or directory\n'), (steps[2], 0, 'written\n', ''),
	]
	assert not [told for told in derived(run.record) if 'snapshot' in str(told[0]).lower()]
	assert run.record.show()['complete'] is True
	[line] = [line for line in run.err.splitlines() if line.startswith('Files ')]
	assert '0 changed, 1 added (made.txt), 0 removed' in line
	assert not (project / 'made.txt').exists()


def test_agent_on_node_goes_as_far_as_it_can_without_a_network(agent):
	run = agent('gemini', '--skip-trust', '-p', 'say hi', options=('-e', 'GEMINI_API_KEY=k', '--timeout', '10s'))
	assert run.code != 0 and run.out == '', run
	nodes = [node for node in run.record.nodes() if os.path.basename(node['path']) == 'node']
	assert nodes and all('/opt/agents/gemini/node_modules/.bin/gemini' in node['argv'] for node in nodes)
	assert not run.record.events('hint')
	assert any(path.startswith('/root/.gemini/') and entry['created'] for path, entry in run.record.files().items())
	assert 'GEMINI_API_KEY' in run.record.row()['env_names']
	assert run.record.show()['complete'] is True
