# SPDX-License-Identifier: Apache-2.0
"""--agent: what a profile gives, from outside."""
import json
import os

import pytest

PROFILES = ('claude', 'codex', 'copilot', 'gemini', 'opencode', 'pi', 'qwen')


def spec_of(cloche, record):
	return json.loads((cloche.state / 'records' / record.id / 'meta.json').read_text())['spec']


@pytest.fixture
def home(tmp_path):
	folder = tmp_path / 'home'
	(folder / '.claude').mkdir(parents=True)
	(folder / '.claude' / 'settings.json').write_text('{"mine": true}\n')
	return folder


@pytest.mark.parametrize('name', PROFILES)
def test_each_profile_can_be_read(cloche, home, name):
	run = cloche.run('/bin/true', options=('--agent', name), env={'HOME': str(home)})
	assert run.code == 0, run
	spec = spec_of(cloche, run.record)
	assert spec['profile'] == name and spec['agent'] == name
	enforced = next(line for line in run.err.splitlines() if line.startswith('Enforced'))
	assert f'profile {name}' in enforced and '/root/' not in enforced
	assert run.record.show()['enforced']['profile'] == name
	# What the agent reads of other secrets it may send to its model again: not to others.
	run = cloche.run('/bin/true', options=('--agent', name, '--secret', 'MINE@mine.example'),
		env={'HOME': str(home), 'MINE': 'sesame-of-mine'})
	[mine] = [secret for secret in spec_of(cloche, run.record)['network']['secrets'] if secret['name'] == 'MINE']
	assert mine['hosts'] == ['mine.example'] and mine['pass'], mine


def test_folder_of_an_agent_is_its_own_copy(cloche, home):
	run = cloche.sh(
		'cat /root/.claude/settings.json && echo changed > /root/.claude/settings.json && echo new > /root/.claude/new'
		' && echo result > result', options=('--agent', 'claude', '-m', f'{cloche.cwd}:/workspace:cow'),
		env={'HOME': str(home)})
	assert run.code == 0 and '"mine": true' in run.out, run
	assert (home / '.claude' / 'settings.json').read_text() == '{"mine": true}\n'
	assert os.listdir(home / '.claude') == ['settings.json']
	# Counted, not listed, and not taken over with the project.
	roots = {root['root']: root for root in run.record.changes()}
	assert roots['/root/.claude']['files'] == 2 and not roots['/root/.claude']['cow']
	applied = cloche.call('apply', run.record.id)
	assert applied.code == 0, applied
	assert (cloche.cwd / 'result').read_text() == 'result\n'
	assert (home / '.claude' / 'settings.json').read_text() == '{"mine": true}\n'
	assert cloche.call('discard', run.record.id).code in (0, 1)


def test_picked_by_program_name(cloche, home):
	(cloche.cwd / 'claude').write_text('#!/bin/sh\necho "$DISABLE_AUTOUPDATER"\n')
	(cloche.cwd / 'claude').chmod(0o755)
	mount = ('-m', f'{cloche.cwd}:/workspace:ro')
	run = cloche.run('/workspace/claude', options=mount, env={'HOME': str(home)})
	assert run.out == '1\n' and spec_of(cloche, run.record)['profile'] == 'claude', run
	run = cloche.run('/workspace/claude', options=(*mount, '--agent', 'none'), env={'HOME': str(home)})
	assert run.out == '\n' and 'profile' not in spec_of(cloche, run.record), run
	run = cloche.run('/bin/true', env={'HOME': str(home)})
	assert 'profile' not in spec_of(cloche, run.record)


def test_never_from_the_project(cloche, home):
	"""A project is written by others: its files give an agent nothing."""
	for place in ('profiles', '.config/cloche/profiles', '.cloche/profiles'):
		(cloche.cwd / place).mkdir(parents=True)
		(cloche.cwd / place / 'evil.json').write_text('{"env": ["FROM=project"]}')
	run = cloche.sh('echo "$FROM"', options=('--agent', 'evil'), env={'HOME': str(home)})
	assert run.code == 125 and "there is no agent profile 'evil'" in run.err, run


def test_own_profile(cloche, home):
	(home / '.config/cloche/profiles').mkdir(parents=True)
	(home / '.config/cloche/profiles' / 'mine.json').write_text('{"env": ["FROM=mine"]}')
	run = cloche.sh('echo "$FROM"', options=('--agent', 'mine'), env={'HOME': str(home)})
	assert run.out == 'mine\n', run
	(home / '.config/cloche/profiles' / 'mine.json').write_text('{"env": "FROM=mine"}')
	run = cloche.sh('echo "$FROM"', options=('--agent', 'mine'), env={'HOME': str(home)})
	assert run.code == 125 and 'mine.json' in run.err and 'list of texts' in run.err, run
