# SPDX-License-Identifier: Apache-2.0
"""Files that were renamed and not written: their data lies on the host, under another name, until an apply."""
import os
import time

import pytest

from harness import wait_for

CHANGED = '(the host has changed it meanwhile: `apply --force` goes over it)'


@pytest.fixture
def host(project):
	(project / 'p').write_text('precious\n')
	(project / 'z').write_text('old z\n')
	time.sleep(0.05) # the clock of file times has gone on
	return project


def texts(folder):
	return {path.name: path.read_text() for path in folder.iterdir() if path.is_file() and not path.name.startswith('n')}


def run(cloche, host, script):
	done = cloche.sh(script, options=('--no-trace', '-w', str(host)))
	assert done.code == 0, done
	return done.record.id


def fork_of(cloche, box, *scripts):
	"""A fork of a sandbox that goes away."""
	assert cloche.call('suspend', box).code == 0
	fork = cloche.call('fork', box).out.strip()
	assert cloche.call('rm', box).code == 0
	for script in scripts:
		assert cloche.call('exec', fork, '--', 'sh', '-c', 'cd /w; ' + script).code == 0
	return fork


@pytest.mark.parametrize('rest', ['live', 'suspend', 'rm'])
@pytest.mark.parametrize('names', ['on the host', 'in the sandbox'])
def test_a_forks_copy_of_a_file_with_several_names(own_cloche, host, names, rest):
	"""overlayfs leaves no mark of what such a copy is of; its data must stay all the same."""
	if names == 'on the host':
		os.link(host / 'p', host / 'p2')
		first, then = 'mv p a', ['chmod +x a; rm p2']
	else:
		first, then = 'mv p a0; ln a0 a2', ['mv a0 a1', 'mv a1 a; rm a2']
	box = own_cloche.create('-m', f'{host}:/w:cow')
	assert box.sh('cd /w; ' + first).code == 0
	box = box.id
	for script in then:
		box = fork_of(own_cloche, box, script)
	if rest != 'live':
		assert own_cloche.call(rest, box).code == 0
	done = own_cloche.call('apply', box)
	if rest != 'rm':
		assert 'refused  a  (renamed, and the sandbox may go on' in done.out and (host / 'p').read_text() == 'precious\n', done
		assert rest == 'live' or own_cloche.call('resume', box).code == 0
		assert own_cloche.call('exec', box, '--', 'cat', '/w/a').out == 'precious\n'
		assert own_cloche.call('rm', box).code == 0
		done = own_cloche.call('apply', box)
	assert done.code == 0 and texts(host) == {'a': 'precious\n', 'z': 'old z\n'}, done
	for args in (('rm', '--record', box), ('gc',)):
		assert own_cloche.call(*args).code == 0


def test_renamed_over_what_an_apply_is_taking_over(own_cloche, host):
	"""A living sandbox puts a file without data of its own where the list has one with data."""
	for i in range(40):
		(host / f'n{i:02}').write_text('old\n')
	box = own_cloche.create('-m', f'{host}:/w:cow')
	assert box.sh('cd /w; for f in n*; do echo new >$f; done; echo new z >z').code == 0
	apply = own_cloche.strace(['-e', 'trace=fsync,renameat,renameat2', '-e', 'inject=fsync:delay_enter=30000'], 'apply', box.id, background=True)
	wait_for(lambda: (host / 'n00').read_text() == 'new\n', 'the first file')
	assert box.sh('mv /w/p /w/z').code == 0
	assert apply.poll() is None and (host / 'z').read_text() == 'old z\n'
	out, _ = apply.communicate(timeout=60)
	assert apply.returncode == 1 and '  z  (the sandbox changed it at this very moment)\n' in out, out
	assert texts(host) == {'p': 'precious\n', 'z': 'old z\n'}
	box.remove()
	assert own_cloche.call('apply', box.id).code == 0
	assert texts(host) == {'z': 'precious\n'}


@pytest.mark.parametrize('is_linked', [False, True])
@pytest.mark.parametrize('how', ['edited', 'replaced'])
def test_data_that_the_host_changed(cloche, host, is_linked, how):
	if is_linked:
		os.link(host / 'p', host / 'n2')
	box = run(cloche, host, 'mv p b; echo new >p')
	if how == 'replaced':
		(host / 'p').unlink()
	(host / 'p').write_text('theirs\n')
	done = cloche.call('apply', box, 'b', cwd=host)
	text = '(its data was below and is gone)' if how == 'replaced' and not is_linked else CHANGED
	assert done.code == 1 and f'refused  b  {text}\n' in done.out and not (host / 'b').exists(), done


@pytest.mark.parametrize('script', ['mv p b; echo new >p', 'ln p b; chmod 600 b', 'mv p b; rm n2'])
def test_data_that_the_host_only_touched(cloche, host, script):
	os.link(host / 'p', host / 'n2')
	box = run(cloche, host, script)
	os.chmod(host / 'p', 0o640)
	done = cloche.call('apply', box, cwd=host)
	assert done.code == 0 and (host / 'b').read_text() == 'precious\n', done


@pytest.mark.parametrize('script, place', [('rm p2; mv p q', 'q'), ('rm p; mv p2 q', 'q'), ('rm p2; mv p z', 'z')])
def test_the_last_name_stays_while_its_new_place_is_refused(cloche, host, script, place):
	os.link(host / 'p', host / 'p2')
	box = run(cloche, host, script)
	(host / place).write_text('theirs\n')
	for _ in range(2):
		assert cloche.call('apply', box).code == 1
		now = texts(host)
		assert now.pop(place) == 'theirs\n' and 'precious\n' in now.values(), now
	(host / place).unlink()
	if place == 'z': # a file that the host removed and the sandbox changed is the host's to decide
		return
	done = cloche.call('apply', box)
	assert done.code == 0 and texts(host) == {'q': 'precious\n', 'z': 'old z\n'}, done


def test_what_goes_with_a_rename(cloche, host):
	"""Attributes come over at once; an owner does not, which is said once."""
	os.setxattr(host / 'z', 'user.old', b'1')
	box = run(cloche, host, 'mv p q; mv z y; chown 1000:1000 q; exec /usr/bin/python3 -c "import os; os.setxattr(\'q\', \'user.new\', b\'2\'); os.removexattr(\'y\', \'user.old\')"')
	done = cloche.call('apply', box)
	assert done.code == 0 and 'applied  R p -> q  (without its owner)\n' in done.out, done
	assert os.listxattr(host / 'q') == ['user.new'] and os.listxattr(host / 'y') == [] and texts(host) == {'q': 'precious\n', 'y': 'old z\n'}
	assert cloche.call('apply', box).out == 'nothing to apply\n'
