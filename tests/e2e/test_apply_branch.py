# SPDX-License-Identifier: Apache-2.0
"""Commits made inside come over as a branch, and nothing else of the sandbox's repository does."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

import harness

IDENTITY = {'GIT_AUTHOR_NAME': 'n', 'GIT_AUTHOR_EMAIL': 'n@example.org', 'GIT_COMMITTER_NAME': 'n', 'GIT_COMMITTER_EMAIL': 'n@example.org',
	'GIT_CONFIG_NOSYSTEM': '1', 'GIT_CONFIG_GLOBAL': '/dev/null'}
INSIDE = 'export ' + ' '.join(f'{name}={value}' for name, value in IDENTITY.items()) + '; set -e\n'


def git(folder, *args, check=True):
	done = subprocess.run(['git', *args], cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **IDENTITY})
	assert not check or done.returncode == 0, done
	return done.stdout.strip()


def repository(folder, *options):
	folder.mkdir(exist_ok=True)
	git(folder, 'init', '-q', '-b', 'main', *options)
	(folder / 'a').write_text('a\n')
	git(folder, 'add', 'a')
	git(folder, 'commit', '-qm', 'one')
	return folder


def edited(cloche, folder, script):
	run = cloche.sh(INSIDE + script, options=('-w', str(folder)))
	assert run.code == 0, run
	return run.record.id


def state_of(folder):
	"""What only the host may change: every file of the work tree and of .git but objects and the branches' own."""
	kept = {}
	for path in folder.rglob('*'):
		name = str(path.relative_to(folder))
		if path.is_file() and not name.startswith(('.git/objects/', '.git/refs/heads/', '.git/logs/refs/heads/')):
			kept[name] = path.read_bytes()
	return kept


def subjects(folder, branch):
	return git(folder, 'log', '--format=%s', branch).split('\n')


@pytest.fixture
def repo(project):
	return repository(project)


def test_commits_become_a_branch_and_nothing_else_changes(cloche, repo):
	box = edited(cloche, repo, 'echo b >> a; git commit -qam two; git checkout -qb work; echo c > c; git add c; git commit -qm three; echo d > d')
	before = state_of(repo)
	done = cloche.call('apply', box, '--branch', 'agent')
	assert done.code == 0 and 'branch   agent at ' in done.out and ': 2 commits\n' in done.out and 'git log agent' in done.out, done
	assert f'cloche changes {box}' in done.out
	assert subjects(repo, 'agent') == ['three', 'two', 'one']
	assert state_of(repo) == before
	assert git(repo, 'branch', '--format=%(refname)') == 'refs/heads/agent\nrefs/heads/main'
	assert not list((repo / '.git' / 'objects').glob('tmp_*'))
	git(repo, 'fsck', '--strict')
	[part] = [part for part in json.loads(cloche.call('changes', '--json', box).out) if part['root'] == str(repo)]
	assert [os.path.basename(entry['path']) for entry in part['added']] == ['c', 'd']
	again = cloche.call('apply', box, '--branch', 'other')
	assert (again.code, again.out[:15], git(repo, 'branch', '--list', 'other')) == (0, 'no new commits:', '')
	lines = [json.loads(line) for line in (cloche.state / 'ledger.jsonl').read_text().splitlines()]
	assert [line['detail'] for line in lines if line['act'] == 'apply' and line['sandbox'] == box] == [
		f'branch agent at {git(repo, "rev-parse", "agent")}']


HOSTILE = '''
echo b >> a; git commit -qam two; tree=$(git write-tree); one=$(git rev-parse HEAD~1)
git replace HEAD $(git commit-tree $tree -m replaced); git update-ref refs/heads/evil HEAD
printf '#!/bin/sh\\ntouch OUT/hook\\n' > run; chmod 755 run; mkdir -p .git/hooks .git/objects/info
for h in post-update pre-receive reference-transaction post-checkout fsmonitor-watchman upload-pack proc-receive; do cp run .git/hooks/$h; done
cat > .git/inc <<X
[alias]
	fetch = !touch OUT/alias
	upload-pack = !touch OUT/alias
X
cat > .git/config <<X
[core]
	repositoryformatversion = 1
	fsmonitor = touch OUT/fsmonitor
	hooksPath = $PWD/.git/hooks
	sshCommand = touch OUT/ssh
	alternateRefsCommand = touch OUT/alternate
	gitProxy = touch OUT/proxy
	pager = touch OUT/pager
	askPass = touch OUT/askpass
[extensions]
	partialClone = origin
[remote "origin"]
	url = ext::touch OUT/ext
	promisor = true
	uploadpack = touch OUT/uploadpack
[uploadpack]
	packObjectsHook = touch OUT/pack
[include]
	path = inc
[filter "x"]
	smudge = touch OUT/smudge
	clean = touch OUT/clean
	required = true
[gpg]
	program = touch OUT/gpg
X
echo '* filter=x diff=x' > .git/info/attributes; echo OUT/objects > .git/objects/info/alternates
echo $one > .git/shallow; mkdir -p .git/modules/x; echo /etc > .git/commondir
mkfifo .git/objects/pack/pack-0000000000000000000000000000000000000000.pack; ln -s OUT .git/objects/zz
ln -s /dev/zero .git/objects/pack/pack-1111111111111111111111111111111111111111.pack
'''


def test_nothing_of_the_sandboxs_repository_is_run_or_honoured(cloche, repo, tmp_path):
	out = tmp_path / 'out'
	out.mkdir(mode=0o777)
	out.chmod(0o777)
	git(repo, 'config', 'user.name', 'host')
	before = state_of(repo)
	box = edited(cloche, repo, HOSTILE.replace('OUT', str(out)))
	done = cloche.call('apply', box, '--branch', 'agent')
	assert done.code == 0, done
	assert list(out.iterdir()) == []
	assert subjects(repo, 'agent') == ['two', 'one'] and state_of(repo) == before
	assert git(repo, 'for-each-ref', '--format=%(refname)') == 'refs/heads/agent\nrefs/heads/main'


def test_a_branch_that_is_there(cloche, repo):
	git(repo, 'branch', 'agent')
	git(repo, 'branch', 'other')
	git(repo, 'worktree', 'add', '-q', '-b', 'apart', repo.parent / 'apart')
	box = edited(cloche, repo, 'echo b >> a; git commit -qam two')
	(repo / 'a').write_text('host\n')
	git(repo, 'commit', '-qam', 'mine')
	git(repo, 'branch', '-f', 'other')
	mine = git(repo, 'rev-parse', 'other')
	forward = cloche.call('apply', box, '--branch', 'agent')
	assert forward.code == 0 and ': 1 commit more than ' in forward.out, forward
	git(repo, 'branch', '-D', 'agent')
	for name, reason in (('other', 'choose another name, or --force'), ('main', 'choose another name, or --force'), ('apart', 'checked out')):
		refused = cloche.call('apply', box, '--branch', name)
		assert refused.code == 1 and refused.out.startswith(f'refused  {name}  (') and reason in refused.out, refused
	git(repo, 'symbolic-ref', 'refs/heads/alias', 'refs/heads/main')
	for force in ((), ('--force',)):
		refused = cloche.call('apply', *force, box, '--branch', 'alias')
		assert refused.code == 1 and refused.out == 'refused  alias  (on the host that is another name for refs/heads/main: choose another name)\n', refused
	git(repo, 'symbolic-ref', '--delete', 'refs/heads/alias')
	for name in ('main', 'apart'):
		refused = cloche.call('apply', '--force', box, '--branch', name)
		assert refused.code == 1 and 'checked out' in refused.out, refused
	forced = cloche.call('--json', 'apply', '--force', box, '--branch', 'other')
	told = json.loads(forced.out)
	assert (told['result'], told['before'], told['commits'], told['commit']) == ('applied', mine, 1, git(repo, 'rev-parse', 'other'))
	assert subjects(repo, 'other') == ['two', 'one'] and subjects(repo, 'main') == ['mine', 'one']


@pytest.mark.parametrize('name', ['', 'x y', '-d', 'a..b', 'HEAD', 'x.lock', '@{-1}', 'a/../b', 'refs\n', 'x' * 251])
def test_a_name_that_is_none(cloche, repo, name):
	box = getattr(test_a_name_that_is_none, 'box', None) or edited(cloche, repo, 'true')
	done = cloche.call('apply', box, '--branch', name)
	assert done.code == 125 and 'is no name for a branch' in done.err, done


KINDS = '''
commit() { echo $RANDOM more >> a; git add a; git commit -qm "$1"; }
(cd packed; commit two; git gc -q; git pack-refs --all; commit three)
(cd detached; git checkout -q --detach; commit two)
(cd sha256; commit two)
(cd moved; commit two; git repack -adq; mv .git .git2; mv .git2 .git; mkdir .git/x)
(cd shallow; commit two)
(cd bare; git --git-dir=. update-ref refs/heads/main $(git --git-dir=. commit-tree -p HEAD -m two HEAD^{tree}))
(cd same; git checkout -qb elsewhere)
(cd unborn; git checkout -q --orphan fresh)
(cd new; git init -q; commit two)
(cd tree; echo more > more)
rm -rf other/.git; (cd other; git init -q --object-format=sha256; commit two)
(cd broken; commit two; f=.git/objects/$(git rev-parse HEAD^{tree} | sed 's|^..|&/|'); chmod u+w $f; echo x > $f)
(cd lost; commit two; rm -f .git/objects/$(git rev-parse HEAD:a | sed 's|^..|&/|'))
(cd nohead; commit two; echo 'ref: ../../../etc/passwd' > .git/HEAD)
(cd link; commit two; mv .git/HEAD .git/H; ln -s H .git/HEAD)
(cd noid; echo 1234567890123456789012345678901234567890 > .git/HEAD)
(cd bad; t=$(printf '100644 blob %s\\t.git\\n' $(git rev-parse HEAD:a) | git mktree 2>/dev/null || printf '100644 .git\\0' | cat - /dev/null |
	git hash-object -t tree -w --literally --stdin); git update-ref HEAD $(git commit-tree -p HEAD -m two $t))
'''

RIGHT = {'packed': ['three', 'two', 'one'], 'detached': ['two', 'one'], 'sha256': ['two', 'one'], 'moved': ['two', 'one'],
	'shallow': ['two', 'one'], 'bare': ['two', 'one']}
SENTENCES = {
	'same': (0, 'is in the host\'s refs/heads/main'), 'unborn': (125, "is on branch 'heads/fresh', which has no commit yet"),
	'new': (125, 'no git repository on the host: run `git init` there first'), 'plain': (125, 'there is no git repository in '),
	'tree': (125, 'is a file, as a worktree or a submodule has it'), 'other': (125, 'names its objects by SHA-256, the host\'s does not'),
	'broken': (125, 'git fetch from the sandbox\'s commits: '), 'lost': (125, 'git fetch from the sandbox\'s commits: '),
	'nohead': (125, 'cannot be made out'), 'link': (125, 'cannot be made out'), 'noid': (125, 'is no commit in its repository'),
	'bad': (125, 'git fetch from the sandbox\'s commits: '),
}


@pytest.fixture(scope='module')
def kinds(module_cloche, tmp_path_factory):
	"""One sandbox over repositories of every kind."""
	top = tmp_path_factory.mktemp('kinds')
	for name in ('packed', 'detached', 'moved', 'same', 'unborn', 'other', 'broken', 'lost', 'nohead', 'link', 'noid', 'bad'):
		repository(top / name)
	repository(top / 'sha256', '--object-format=sha256')
	for name in ('new', 'plain'):
		(top / name).mkdir()
	git(top / 'packed', 'worktree', 'add', '-q', top / 'tree')
	source = repository(top / 'source')
	(source / 'b').write_text('b\n')
	git(source, 'add', 'b')
	git(source, 'commit', '-qm', 'one')
	git(top, 'clone', '-q', '--depth=1', f'file://{source}', top / 'shallow')
	git(top, 'clone', '-q', '--bare', top / 'same', top / 'bare')
	module_cloche.cwd = top
	return top, edited(module_cloche, top, KINDS)


@pytest.mark.parametrize('name', RIGHT)
def test_kinds_of_repositories(cloche, kinds, name):
	top, box = kinds
	done = cloche.call('apply', box, '--branch', 'agent', str(top / name))
	assert done.code == 0, done
	assert subjects(top / name, 'agent') == RIGHT[name]
	git(top / name, 'fsck')


@pytest.mark.parametrize('name', SENTENCES)
def test_what_cannot_come_over_is_said(cloche, kinds, name):
	top, box = kinds
	done = cloche.call('apply', box, '--branch', 'agent', name, cwd=top)
	assert done.code == SENTENCES[name][0] and SENTENCES[name][1] in done.out + done.err, done
	if (top / name / '.git').is_dir():
		assert git(top / name, 'branch', '--list', 'agent') == '' and not list((top / name / '.git' / 'objects').glob('tmp_*'))


def test_several_repositories_and_none(cloche, kinds, tmp_path):
	top, box = kinds
	none = cloche.call('apply', box, '--branch', 'agent')
	assert none.code == 125 and 'name the one in it that is' in none.err, none
	two = cloche.call('apply', box, '--branch', 'agent', 'packed', 'same', cwd=top)
	assert two.code == 125 and 'name one folder' in two.err, two


@pytest.fixture
def open_folder():
	"""One that every user can reach: git runs as the owner of what is in it."""
	with tempfile.TemporaryDirectory() as folder:
		os.chmod(folder, 0o755)
		yield pathlib.Path(folder)


def test_a_sandbox_that_runs_and_an_owner_that_is_not_root(cloche, open_folder):
	repo = repository(open_folder / 'repo')
	for path in [repo, *repo.rglob('*')]:
		os.lchown(path, 1234, 1235)
	box = cloche.create('-m', f'{repo}:/workspace:cow')
	try:
		done = box.sh(INSIDE + 'cd /workspace; echo b >> a; git commit -qam two')
		assert done.code == 0, done
		done = cloche.call('apply', box.id, '--branch', 'agent')
		assert done.code == 0, done
		again = box.sh(INSIDE + 'cd /workspace; echo c >> a; git commit -qam three')
		assert again.code == 0, again
		done = cloche.call('apply', box.id, '--branch', 'agent')
		assert done.code == 0 and '1 commit more than' in done.out, done
	finally:
		box.remove()
	assert git(repo, '-c', 'safe.directory=*', 'log', '--format=%s', 'agent').split('\n') == ['three', 'two', 'one']
	assert {(path.lstat().st_uid, path.lstat().st_gid) for path in repo.rglob('*')} == {(1234, 1235)}


def test_killed_in_the_middle_it_leaves_nothing_that_a_second_does_not_take_away(cloche, repo, tmp_path):
	box = edited(cloche, repo, 'echo b >> a; git commit -qam two')
	fake = tmp_path / 'bin' / 'git'
	fake.parent.mkdir()
	fake.write_text('#!/bin/sh\ncase "$*" in *\\ fetch\\ *) kill -9 $PPID;; esac\nexec /usr/bin/git "$@"\n')
	fake.chmod(0o755)
	killed = cloche.call('apply', box, '--branch', 'agent', env={'PATH': f'{fake.parent}:{os.environ["PATH"]}'})
	assert killed.code == -signal.SIGKILL
	harness.wait_for(lambda: not cloche.processes(str(repo), 'git'), 'its git to end')
	assert [path.name for path in (repo / '.git' / 'objects').glob('tmp_*')] == [f'tmp_cloche_{box}']
	git(repo, 'branch', '-D', 'agent', check=False)
	done = cloche.call('apply', box, '--branch', 'agent')
	assert done.code == 0, done
	assert not list(pathlib.Path(repo / '.git' / 'objects').glob('tmp_*'))
	assert subjects(repo, 'agent') == ['two', 'one']
