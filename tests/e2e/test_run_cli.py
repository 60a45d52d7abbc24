# SPDX-License-Identifier: Apache-2.0
"""The command line: exit statuses, the summary, derived commands, and one clear sentence for bad input."""
import json
import os
import pathlib
import re
import stat
import subprocess
import tempfile

import pytest

from harness import PYTHON

AGENT = '''
import subprocess, sys
STEPS = [
	['/bin/bash', '-c', 'ls /workspace'],
	['/bin/bash', '-c', 'echo one > /workspace/one && cat /workspace/one'],
	['/bin/sh', '-c', 'echo to-stderr >&2; exit 3'],
	['/usr/bin/grep', '-c', 'root', '/etc/passwd'],
	['/bin/bash', '-lc', 'cd /tmp && pwd'],
	['/bin/cat', '/etc/shadow'],
	['/usr/bin/python3', '-c', 'print(6 * 7)'],
	['/bin/bash', '-c', 'for i in 1 2 3; do echo line $i; done | wc -l'],
	['/usr/bin/head', '-c', '10000', '/dev/zero'],
	['/bin/sh', '-c', 'kill -9 $$'],
]
for step in STEPS:
	done = subprocess.run(step, capture_output=True)
	print(done.returncode, flush=True)
'''


def agent_steps():
	scope = {}
	exec(AGENT.split('for step')[0].replace('import subprocess, sys', ''), scope)  # noqa: S102 (our own text)
	return scope['STEPS']


def test_agent_of_ten_steps_gives_ten_commands(cloche, tmp_path):
	(tmp_path / 'agent.py').write_text(AGENT)
	run = cloche.run(PYTHON, '/agent/agent.py', options=('-m', f'{tmp_path}:/agent:ro'))
	codes = [int(line) for line in run.lines]
	assert len(codes) == 10 and codes[:5] == [0, 0, 3, 0, 0] and codes[6:] == [0, 0, 0, -9]
	commands = run.record.commands()
	derived = [command for command in commands if command['derived']]
	assert len(derived) == 10
	assert [command.get('argv') or command['command'] for command in derived] == [
		'ls /workspace', 'echo one > /workspace/one && cat /workspace/one', 'echo to-stderr >&2; exit 3',
		['/usr/bin/grep', '-c', 'root', '/etc/passwd'], 'cd /tmp && pwd', ['/bin/cat', '/etc/shadow'],
		['/usr/bin/python3', '-c', 'print(6 * 7)'], 'for i in 1 2 3; do echo line $i; done | wc -l',
		['/usr/bin/head', '-c', '10000', '/dev/zero'], 'kill -9 $$',
	]
	assert [command['signal'] or command['exit_code'] for command in derived] == [0, 0, 3, 0, 0, codes[5], 0, 0, 0, 9]
	assert derived[1]['stdout'] == 'one\n' and derived[1]['files_written'] == ['/workspace/one']
	assert derived[2]['stderr'] == 'to-stderr\n'
	assert derived[4]['stdout'] == '/tmp\n'
	assert derived[6]['stdout'] == '42\n' and derived[7]['stdout'].strip() == '3'
	assert [command['output'] for command in derived[6:9]] == ['whole', 'whole', 'head']
	assert [command for command in commands if not command['derived']][0]['exec'] == run.record.row()['exec']


@pytest.mark.parametrize('script, code', [('exit 0', 0), ('exit 1', 1), ('exit 77', 77), ('exit 255', 255),
	('kill -15 $$', 143), ('kill -9 $$', 137), ('kill -6 $$', 134)])
def test_exit_status_is_the_commands(cloche, script, code):
	assert cloche.sh(script).code == code


def test_timeout_is_124(cloche):
	run = cloche.run('/bin/sleep', '30', options=('--timeout', '1s'))
	assert run.code == 124 and run.duration_s < 5


def test_streams_pass_through_untouched(cloche):
	run = cloche.py("import os; os.write(1, bytes(range(256)) * 100); os.write(2, b'\\x00\\xff')", options=('--no-summary',))
	assert run.raw_out == bytes(range(256)) * 100
	assert run.raw_err == b'\x00\xff'


def test_summary_stands_on_standard_error_in_one_screen(cloche, project):
	(project / 'f').write_text('x')
	(project / '.env').write_text('SECRET=1')
	run = cloche.sh('echo y > f; echo z > g; cat .env; cp f /tmp/f; /bin/false; true',
		options=('-w', str(project), '--task', 'try the summary'))
	lines = run.err.splitlines()
	assert run.out == ''
	summary = lines[[line.startswith(f'cloche {run.record.id}') for line in lines].index(True):]
	assert len(summary) <= 24 and 'task "try the summary"' in summary[0]
	heads = [line.split()[0] for line in summary if line and not line.startswith(' ')]
	for head in ('DENIED', 'Commands', 'Programs', 'Files', 'Network', 'Account', 'Observed', 'Enforced', 'Sealed'):
		assert head in heads, f'{head} in {summary}'
	assert heads.index('DENIED') < heads.index('Commands')
	text = '\n'.join(summary)
	assert re.search(r'^DENIED +\S*\.env \(read\) by cat', text, re.M)
	assert re.search(r'^Files +1 changed, 1 added', text, re.M)
	assert re.search(r'^Network +nothing was reached', text, re.M) and re.search(r'^Account +not watched', text, re.M)
	assert re.search(r'^Observed .*complete.* 0 dropped', text, re.M)
	assert 'cloche apply last' in text and ('cloche diff last' in text or 'cloche changes last' in text)
	assert '\x1b' not in text
	shown = cloche.call('show', run.record.id)
	assert [line.split()[0] for line in shown.out.splitlines()[:3]] == heads[:3]


def test_commands_of_the_summary_can_be_pasted(cloche, project, tmp_path):
	run = cloche.sh('echo y > f', options=('-w', str(project)))
	odd = tmp_path / "a b"
	odd.symlink_to(cloche.program.parent)

	def shown(program, **env):
		done = subprocess.run([program, 'show', run.record.id], cwd=cloche.program.parent.parent, env=cloche.env(env), timeout=30,
			check=True, capture_output=True, text=True)
		[line] = [line for line in done.stdout.splitlines() if 'not yet in your folder' in line]
		return line.partition(':  ')[2].replace(run.record.id, 'ID')

	relative = os.path.join(cloche.program.parent.name, 'cloche')
	assert shown(relative) == f'{relative} changes ID   {relative} apply ID'
	assert shown(relative, SUDO_UID='0') == f'{relative} changes ID   sudo {relative} apply ID'
	assert shown(f'{odd}/cloche') == f"'{odd}/cloche' changes ID   '{odd}/cloche' apply ID"
	assert shown(relative, PATH=f'/nowhere:{odd}') == 'cloche changes ID   cloche apply ID'
	markdown = cloche.call('show', '--markdown', run.record.id).out
	assert f'` cloche apply {run.record.id} `' in markdown


def test_run_says_when_the_current_folder_is_not_shown(cloche, project, tmp_path):
	(project / 'f').write_text('x')
	mount = ('-m', f'{tmp_path}:/m:ro')
	seen = [cloche.run('/bin/ls', str(project), options=('-w', '/', *mount, *more), cwd=project).out for more in ((), ('--ro',))]
	assert seen == ['', 'f\n']
	assert 'it is there only with one of --ro, --rw and --apply' in cloche.call('run', '--help').out


def test_summary_says_unchanged_only_where_somebody_looked(cloche):
	run = cloche.run('/bin/true')
	assert '/etc unchanged' in run.err and '/usr/local unchanged' in run.err
	run = cloche.sh('echo 1 > /etc/made; echo 2 > /usr/local/made')
	assert '/etc unchanged' not in run.err and '/usr/local unchanged' not in run.err


def test_show_has_every_form(cloche, project):
	(project / '.env').write_text('SECRET=1')
	run = cloche.sh(f'cat {project}/.env; exit 4')
	show = run.record.show()
	for key in ('sandbox', 'task', 'started_at', 'ended_at', 'refused', 'denied', 'misused', 'commands', 'programs', 'files',
			'network', 'account', 'stats', 'observed', 'enforced', 'sealed', 'complete', 'dropped', 'blind', 'events',
			'changes_pending'):
		assert key in show, key
	assert show['sandbox'] == run.record.id and show['complete'] is True and show['dropped'] == 0
	assert any(entry['path'] == f'{project}/.env' for entry in show['denied'])
	markdown = cloche.call('show', run.record.id, '--markdown')
	assert markdown.code == 0 and '.env' in markdown.out and run.record.id in markdown.out


def test_quiet_and_no_summary(cloche):
	assert cloche.run('/bin/true', options=('--no-summary',)).err == ''
	assert cloche.call('--quiet', 'run', '--', '/bin/true').err == ''


def test_last_and_short_ids(cloche):
	cloche.run('/bin/true')
	run = cloche.run('/bin/echo', 'me')
	for name in ('last', run.record.id[:12], run.record.id):
		assert json.loads(cloche.call('log', name, '--jsonl').out)['stdout'] == 'me\n'
	assert cloche.call('log', 'sb_').code == 2 or 'more than one' in cloche.call('log', 'sb_').err


@pytest.mark.parametrize('condition, script, code', [
	('denied', 'cat .env; exit 0', 123), ('denied', 'exit 0', 0), ('refused', 'unshare -U true; exit 0', 123),
	('command', 'exit 0', 0), ('incomplete', 'exit 0', 0), ('denied', 'cat .env; exit 9', 9),
])
def test_fail_on(cloche, project, condition, script, code):
	(project / '.env').write_text('SECRET=1')
	assert cloche.sh(script, options=('--fail-on', condition, '-w', str(project))).code == code


def test_files_of_the_caller_are_made_with_his_rights_and_through_no_link(own_cloche, tmp_path):
	caller = {'SUDO_UID': '65534', 'SUDO_GID': '65534'}
	target = tmp_path / 'target'
	target.write_text('kept')
	(own_cloche.cwd / 'link').symlink_to(target)
	for name, env, says in (('link', {}, 'is a link'), ('link', caller, 'Permission denied'),
			('new', caller, 'Permission denied')):
		done = own_cloche.call('run', '--markdown-file', own_cloche.cwd / name, '-w', '/', '--', '/bin/true', env=env)
		assert done.code == 125 and says in done.err, done
	assert target.read_text() == 'kept' and not (own_cloche.cwd / 'new').exists()
	with tempfile.TemporaryDirectory() as folder:
		os.chown(folder, 65534, 65534)
		path = pathlib.Path(folder) / 'm.md'
		assert own_cloche.call('run', '--markdown-file', path, '--', '/bin/true', env=caller).code == 0
		assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)
		assert path.read_text().startswith('#')


def test_markdown_file(cloche, tmp_path):
	run = cloche.run('/bin/true', options=('--markdown-file', str(tmp_path / 'm.md')))
	assert run.record.id in (tmp_path / 'm.md').read_text()


@pytest.mark.parametrize('args, code, says', [
	(['nosuchverb'], 2, 'nosuchverb'),
	(['run', '--nosuchoption', '--', '/bin/true'], 2, '--nosuchoption'),
	(['run'], 2, 'command'),
	(['run', '--memory', 'lots', '--', '/bin/true'], 2, 'memory'),
	(['run', '--cpus', '-1', '--', '/bin/true'], 2, 'cpus'),
	(['run', '--timeout', 'soon', '--', '/bin/true'], 2, 'timeout'),
	(['run', '--net', 'sideways', '--', '/bin/true'], 2, 'sideways'),
	(['run', '--net', 'none', '--ask', '--', '/bin/true'], None, '--ask'),
	(['run', '--deny', 'a b c', '--', '/bin/true'], 2, 'deny'),
	(['run', '--allow', 'example.com:http', '--', '/bin/true'], 2, 'example.com:http'),
	(['run', '--allow', '@nosuchset', '--', '/bin/true'], None, '@nosuchset'),
	(['run', '--secret', 'NO_SUCH_KEY@a.example', '--', '/bin/true'], None, 'NO_SUCH_KEY'),
	(['run', '--secret', 'PATH@a.example', '--allow', 'b.example', '--', '/bin/true'], None, 'PATH'),
	(['run', '--entrypoint', 'x', '--', '/bin/true'], 2, '--image'),
	(['run', '-m', '/nosuchplace:/x:ro', '--', '/bin/true'], None, '/nosuchplace'),
	(['run', '-m', '/tmp:/x:sideways', '--', '/bin/true'], 2, 'sideways'),
	(['run', '-m', '/tmp:relative:ro', '--', '/bin/true'], None, 'relative'),
	(['run', '--rootfs', '/nosuchroot', '--', '/bin/true'], None, '/nosuchroot'),
	(['run', '--rootfs', '/proc', '--', '/bin/true'], None, '/proc'),
	(['run', '-m', '/sys:/x:rw', '--', '/bin/true'], None, '/sys'),
	(['exec', 'sb_0000000000000000', '--', '/bin/true'], None, 'sb_0000000000000000'),
	(['show', 'nosuchid'], None, 'nosuchid'),
	(['tree'], 2, ''),
	(['events', 'last', '--since', 'whenever'], 2, 'since'),
])
def test_bad_input_is_one_clear_sentence(own_cloche, args, code, says):
	if 'last' in args:
		own_cloche.run('/bin/true')
	done = own_cloche.call(*args)
	assert done.code == code if code is not None else done.code in (1, 2, 125), done
	assert done.out == ''
	first = done.err.splitlines()[0]
	assert says in first and len(first) < 300, done.err
	assert len(done.err.splitlines()) <= 4
	own_cloche.check_clean()


def test_state_on_a_file_is_refused(own_cloche, tmp_path):
	(tmp_path / 'file').write_text('')
	done = own_cloche.call('run', '--', '/bin/true', env={'CLOCHE_STATE': str(tmp_path / 'file')})
	assert done.code == 125 and 'file' in done.err


def test_home_and_root_are_not_mounted_unless_named(own_cloche):
	for folder in ('/', '/root'):
		done = own_cloche.call('run', '--', '/bin/true', cwd=folder)
		assert done.code in (2, 125) and ('--mount' in done.err or '-m' in done.err), done


def test_without_rights_one_sentence_says_what_to_do(own_cloche):
	done = subprocess.run(['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', own_cloche.program, 'run', '--',
		'/bin/true'], env=own_cloche.env(), cwd='/tmp', capture_output=True, text=True, check=False)
	assert done.returncode == 125
	assert 'root' in done.stderr.splitlines()[0] and len(done.stderr.splitlines()) <= 3


def test_record_belongs_to_who_asked(own_cloche):
	run = own_cloche.run('/bin/true', env={'SUDO_UID': '4321', 'SUDO_GID': '4321', 'SUDO_USER': 'someone'})
	assert run.code == 0
	record = own_cloche.state / 'records' / run.record.id
	info = record.stat()
	assert (info.st_uid, stat.S_IMODE(info.st_mode)) == (4321, 0o700)
	for path in record.rglob('*'):
		assert path.stat().st_uid == 4321, path
		if path.is_file():
			assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_secrets_in_the_record_are_redacted(cloche):
	secret = 'ghp_' + 'Ab1' * 12
	run = cloche.run('/bin/echo', f'--token={secret}', options=('-e', 'MY_API_KEY=hunter2hunter2'))
	record = cloche.state / 'records' / run.record.id
	for path in record.rglob('*.json*'):
		text = path.read_text()
		assert secret not in text and 'hunter2hunter2' not in text, path
	assert '[redacted' in (record / 'log.jsonl').read_text()


def test_emitted_lines_fit_the_schema(cloche):
	schema_file = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'events.schema.json'
	if not schema_file.exists():
		pytest.skip('docs/events.schema.json is not there')
	import jsonschema
	validator = jsonschema.Draft202012Validator(json.loads(schema_file.read_text()))
	run = cloche.sh('''
echo a > /workspace/a; mv /workspace/a /workspace/b; ln /workspace/b /workspace/c; ln -s b /workspace/d; chmod 600 /workspace/b
mkdir /workspace/e; rmdir /workspace/e; truncate -s 0 /workspace/b; cat /etc/shadow; unshare -U true; /no/such; sleep 0 & wait
''')
	kinds = set()
	for event in run.record.lines('events', '--noise', '--internal'):
		kinds.add(event['kind'])
		errors = list(validator.iter_errors(event))
		assert not errors, (event, errors[0].message)
	assert {'process.exec', 'process.exit', 'process.fork', 'file.open', 'file.rename', 'file.link', 'file.mode', 'file.delete',
		'dir.create', 'file.truncate', 'sandbox.refused', 'exec.start', 'exec.end', 'sandbox.created'} <= kinds


def test_doctor_speaks_in_words(own_cloche):
	done = own_cloche.call('doctor')
	assert done.code in (0, 1)
	for word in ('kernel', 'BTF', 'cgroup', 'overlay', 'user namespaces'):
		assert word.lower() in done.out.lower(), word


def test_a_command_that_only_the_host_has_is_told_so(cloche, tmp_path):
	outside, inside = tmp_path / 'out', tmp_path / 'in'
	inside.mkdir()
	outside.mkdir()
	(outside / 'agent.sh').write_text('#!/bin/sh\necho ran\n')
	(outside / 'agent.sh').chmod(0o755)
	told = 'agent.sh: command not found in the sandbox, though the host has it: put it into the current folder, or show its folder with `-m DIR:DIR:ro`;'
	for program in (str(outside / 'agent.sh'), '../out/agent.sh'):
		done = cloche.call('run', '--', program, cwd=inside)
		assert done.code == 127 and told in done.err, done
	assert cloche.call('run', '-m', f'{outside}:{outside}:ro', '--', str(outside / 'agent.sh'), cwd=inside).out == 'ran\n'
	(inside / 'broken').write_text('#!/nothing/there\n')
	(inside / 'broken').chmod(0o755)
	for program, end in (('./broken', ', or the interpreter that its first line names'), ('nothing-of-that-name', '')):
		done = cloche.call('run', '--no-summary', '--', program, cwd=inside)
		assert done.code == 127 and f'{program}: command not found in the sandbox{end}\n' in done.err, done


def test_help_is_a_word_too(cloche):
	assert cloche.call('help').out == cloche.call('--help').out != ''
	for verb in ('run', 'net-rules'):
		assert cloche.call('help', verb).out == cloche.call(verb, '--help').out != ''
	assert cloche.call('help', 'runs').code == cloche.call('help', 'run', 'x').code == 2
	assert "'runs'" in cloche.call('help', 'runs').err


def test_help_names_every_verb(own_cloche):
	done = own_cloche.call('--help')
	assert done.code == 0
	for verb in ('run', 'create', 'exec', 'ps', 'pause', 'wake', 'stop', 'rm', 'doctor', 'gc', 'tree', 'commands', 'files', 'events',
			'log', 'timeline', 'show', 'verify', 'changes', 'apply', 'discard'):
		assert re.search(rf'^ +{verb}\b', done.out, re.M), verb
	assert '--net' in own_cloche.call('run', '--help').out
	assert re.match(r'^cloche \d+\.\d+\.\d+', own_cloche.call('--version').out)


def test_views_narrow_by_exec_and_time(box):
	first, second = box.sh('touch /workspace/one'), box.sh('touch /workspace/two')
	assert '/workspace/two' not in first.record.files() and '/workspace/two' in second.record.files()
	seq = second.record.events()[0]['seq']
	late = box.record.files('--since', str(seq))
	assert '/workspace/two' in late and '/workspace/one' not in late
	early = box.record.files('--until', str(seq - 1))
	assert '/workspace/one' in early and '/workspace/two' not in early


def test_output_is_coloured_only_on_a_terminal_or_when_told(cloche):
	cloche.run('/bin/false')
	assert b'\x1b' not in cloche.call('tree', 'last').raw_out
	assert b'\x1b' in cloche.call('tree', 'last', '--color', 'always').raw_out
	assert b'\x1b' in cloche.call('tree', 'last', '--color', 'always', env={'NO_COLOR': '1'}).raw_out  # what is named wins


def test_program_folders_of_the_invoking_user_are_there(own_cloche, tmp_path):
	tools = tmp_path / 'tools'
	tools.mkdir()
	(tools / 'mytool').write_text('#!/bin/sh\necho from my tool\n')
	os.chmod(tools / 'mytool', 0o755)
	run = own_cloche.run('mytool', env={'PATH': f'{tools}:/usr/bin:/bin'})
	assert run.out == 'from my tool\n', run
