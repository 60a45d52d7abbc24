# SPDX-License-Identifier: Apache-2.0
"""The tree of programs: one node for each that really started, under the one that started it."""
import os

import pytest

SH = os.path.realpath('/bin/sh')
PYTHON = os.path.realpath('/usr/bin/python3')


def test_thread_that_execs_keeps_the_process_id(cloche):
	run = cloche.py('''
import os, threading, time
def replace():
	os.execv('/bin/sh', ['sh', '-c', '/bin/true; exit 9'])
threading.Thread(target=replace).start()
time.sleep(30)
''')
	assert run.code == 9
	[python] = run.record.tree()
	assert python['path'] == PYTHON
	[sh] = python['children']
	assert (sh['path'], sh['argv'][1:], sh['exit_code']) == (SH, ['-c', '/bin/true; exit 9'], 9)
	assert sh['pid'] == python['pid']
	[true] = sh['children']
	assert (true['argv'], true['exit_code'], true['children']) == (['/bin/true'], 0, [])
	assert len(run.record.nodes()) == 3


def test_empty_arguments_are_kept(cloche):
	run = cloche.sh('/bin/echo a ""; /bin/echo "" b; /bin/echo a "" b; /bin/echo ""; /bin/echo')
	assert run.code == 0
	assert [node['argv'] for node in run.record.nodes(path=os.path.realpath('/bin/echo'))] == [
		['/bin/echo', 'a', ''], ['/bin/echo', '', 'b'], ['/bin/echo', 'a', '', 'b'], ['/bin/echo', ''], ['/bin/echo'],
	]


def whole_or_said(event, argv):
	"""The whole argv, or a prefix of it with the true counts beside."""
	if not event.get('argv_truncated'):
		assert event['argv'] == argv
		return
	kept = event['argv']
	assert kept[:-1] == argv[:len(kept) - 1]
	assert argv[len(kept) - 1].startswith(kept[-1])
	assert event['argv_count'] == len(argv)
	assert event['argv_bytes'] == sum(len(arg) + 1 for arg in argv)


def event_of_program(run, path, n=0):
	return [event for event in run.record.events('process.exec')
		if event.get('path') == path and not event.get('result')][n]


def test_one_huge_argument_is_whole_or_said_to_be_cut(cloche):
	run = cloche.py("import subprocess as s; s.run(['/bin/true', 'A' * 120000, 'tail'], check=True)")
	assert run.code == 0
	whole_or_said(event_of_program(run, '/usr/bin/true'), ['/bin/true', 'A' * 120000, 'tail'])


def test_three_thousand_arguments_are_whole_or_said_to_be_cut(cloche):
	run = cloche.py("import subprocess as s; s.run(['/bin/true'] + [f'x{i}' for i in range(3000)], check=True)")
	assert run.code == 0
	whole_or_said(event_of_program(run, '/usr/bin/true'), ['/bin/true'] + [f'x{i}' for i in range(3000)])


def test_long_program_path_does_not_spill_into_the_arguments(cloche):
	run = cloche.py('''
import os, shutil, subprocess
folder = '/tmp/' + '/'.join(['d' * 200] * 14)
os.makedirs(folder)
shutil.copy('/bin/true', folder + '/prog')
subprocess.run([folder + '/prog', 'p', 'q'], check=True)
''')
	assert run.code == 0
	path = '/tmp/' + '/'.join(['d' * 200] * 14) + '/prog'
	[event] = [event for event in run.record.events('process.exec') if event['argv'][0].startswith('/tmp/ddd')]
	assert event['path'] == path or event.get('path_unresolved')
	whole_or_said(event, [path, 'p', 'q'])


@pytest.mark.parametrize('name, path, result, denied', [
	('/no/such/prog', '/no/such/prog', 'ENOENT', None),
	('./plain', '/tmp/plain', 'EACCES', True),
	('./junk', '/tmp/junk', 'ENOEXEC', False),
	('/etc', '/etc', 'EACCES', True),
])
def test_failed_exec_is_an_event_and_no_node(cloche, name, path, result, denied):
	run = cloche.py('''
import os, sys
os.chdir('/tmp')
open('junk', 'w').write('junk')
os.chmod('junk', 0o755)
open('plain', 'w').write('hi')
os.chmod('plain', 0o644)
try:
	os.execv(sys.argv[1], [sys.argv[1], 'x', 'y'])
except OSError as error:
	print(error.errno)
''', name)
	assert run.code == 0
	[event] = [event for event in run.record.events('process.exec') if event.get('result')]
	assert (event['path'], event['argv'], event['result']) == (path, [name, 'x', 'y'], result)
	[python] = run.record.tree()
	assert python['children'] == []
	entry = run.record.files().get(path)
	if denied is None:
		assert entry is None or not entry['denied']
	elif denied:
		assert entry['denied'] is True


def test_path_is_the_file_that_ran_however_it_was_named(cloche):
	run = cloche.sh('''
cd /tmp && mkdir -p bin && cp /bin/true bin/t && ln -sf bin/t lnk
./bin/t 1; bin/../bin/t 2; ./lnk 3; cd bin; ../lnk 4; /proc/self/cwd/t 5; env -C / PATH=/tmp/bin t 6
''')
	assert run.code == 0
	assert [node['argv'] for node in run.record.nodes(path='/tmp/bin/t')] == [
		['./bin/t', '1'], ['bin/../bin/t', '2'], ['./lnk', '3'], ['../lnk', '4'], ['/proc/self/cwd/t', '5'], ['t', '6'],
	]
	for node in run.record.nodes():
		assert node['path'].startswith('/') and not node['path'].startswith('/proc/')


def test_four_thousand_short_programs_all_have_a_node(cloche):
	run = cloche.sh('''
for w in 1 2 3 4 5 6 7 8; do
	(i=0; while [ $i -lt 500 ]; do /bin/true w$w $i; i=$((i+1)); done) &
done
wait
''')
	assert run.code == 0
	[sh] = run.record.tree()
	nodes = run.record.nodes(path='/usr/bin/true')
	show = run.record.show()
	if len(nodes) < 4000:  # a machine too busy to keep up: then it says so
		assert show['complete'] is False and show['dropped'] > 0, show['observed']
		return
	assert sorted(tuple(node['argv'][1:]) for node in nodes) == \
		sorted((f'w{w}', str(i)) for w in range(1, 9) for i in range(500))
	assert {node['exit_code'] for node in nodes} == {0}
	assert sh['path'] == SH and len(sh['children']) == 4000
	assert show['complete'] is True


def test_every_way_to_start_a_program_nests_under_the_process(cloche):
	run = cloche.py('''
import os, subprocess, threading
subprocess.run(['/bin/echo', 'vfork'], capture_output=True)
os.waitpid(os.posix_spawn('/bin/echo', ['echo', 'spawn'], os.environ), 0)
if os.fork() == 0:
	os.execv('/bin/echo', ['echo', 'fork'])
os.wait()
thread = threading.Thread(target=lambda: subprocess.run(['/bin/echo', 'thread'], capture_output=True))
thread.start()
thread.join()
subprocess.run(['/bin/echo', 'cwd'], cwd='/tmp', capture_output=True, preexec_fn=lambda: os.umask(0))
''')
	assert run.code == 0 and run.duration_s < 20
	[python] = run.record.tree()
	assert [node['argv'][1] for node in python['children']] == ['vfork', 'spawn', 'fork', 'thread', 'cwd']
	assert {(node['path'], node['exit_code']) for node in python['children']} == {('/usr/bin/echo', 0)}
	assert len(run.record.nodes()) == 6
	assert python['children'][4]['cwd'] == '/tmp'
