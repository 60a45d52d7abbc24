# SPDX-License-Identifier: Apache-2.0
"""Every file below a folder with its hash, and what differs from an earlier list."""
import base64
import hashlib
import json
import os
import socket
import subprocess

import pytest

from harness import WORK

ODD_NAMES = [b'two\nlines', b'fake\n' + b'0' * 64 + b'  passwd', b'cr\rname', b'back\\slash', b'\\lead', b' lead', b'trail ', b'*star',
	b'\xff\xfe', b'-', b'--', b'\t', 'ü'.encode()]


def sha(data):
	return hashlib.sha256(data).hexdigest()


def name_of(entry, key='path'):
	"""The exact bytes."""
	return base64.b64decode(entry[f'{key}_b64']) if f'{key}_b64' in entry else entry[key].encode()


def listed(cloche, *args):
	"""path -> entry, of one root."""
	done = cloche.call('manifest', '--json', *args)
	assert done.code == 0, done
	head, *entries, end = [json.loads(line) for line in done.out.splitlines()]
	assert head['manifest'] == 1 and end['entries'] == len(entries) and [name_of(e) for e in entries] == sorted(name_of(e) for e in entries)
	return {name_of(entry): entry for entry in entries}


def keep(cloche, tmp_path, *args):
	path = tmp_path / 'earlier.jsonl'
	path.write_bytes(cloche.call('manifest', '--json', *args).raw_out)
	return path


def check(cloche, path, *args):
	"""The exit status, and the one root's differences."""
	done = cloche.call('manifest', '--json', '--check', str(path), *args)
	[part] = json.loads(done.out)
	return done.code, part


def names(part, kind, root):
	return sorted(os.path.relpath(os.fsdecode(name_of(entry)), root) for entry in part[kind])


@pytest.mark.parametrize('place', ['/proc/self', '/sys/kernel'])
def test_what_the_kernel_makes_is_no_folder_of_files(cloche, place):
	done = cloche.call('manifest', '--host', place, limit_s=20)
	assert done.code == 125 and 'is made by the kernel' in done.err, done


def test_odd_names_are_exact_and_each_is_one_entry(cloche, box, tmp_path):
	box.py(f'for n in {ODD_NAMES!r}: open(b"{WORK}/" + n, "wb").write(n)')
	table = listed(cloche, box.id)
	assert {path: entry['sha256'] for path, entry in table.items()} == {n: sha(n) for n in ODD_NAMES}
	earlier = keep(cloche, tmp_path, box.id)
	box.py(f'import os\nfor n in {ODD_NAMES[:3]!r}: os.unlink(b"{WORK}/" + n)\nopen("{WORK}/new", "w").write("new")')
	code, part = check(cloche, earlier, box.id)
	assert code == 1 and sorted(name_of(e) for e in part['removed']) == sorted(f'{WORK}/'.encode() + n for n in ODD_NAMES[:3])
	assert names(part, 'added', WORK) == ['new'] and part['changed'] == [] and part['renamed'] == []


def test_what_is_no_file_is_listed_and_never_opened(cloche, box, tmp_path):
	made = box.py('''
import os, socket
os.mkfifo('pipe'); os.symlink('/dev/zero', 'endless'); os.symlink('.', 'loop'); os.symlink('/nope', 'dangling')
os.symlink('/etc/passwd', 'link'); s = socket.socket(1); s.bind('sock'); os.mkdir('d'); os.symlink('../d', 'd/up')
open('plain', 'w').write('ok\\n')
''', options=('-w', WORK))
	assert made.code == 0, made
	table = listed(cloche, box.id)
	assert {path: (entry['type'], entry.get('target'), entry.get('sha256')) for path, entry in table.items()} == {
		b'pipe': ('pipe', None, None), b'endless': ('link', '/dev/zero', None), b'loop': ('link', '.', None),
		b'dangling': ('link', '/nope', None), b'link': ('link', '/etc/passwd', None), b'sock': ('socket', None, None),
		b'd': ('directory', None, None), b'd/up': ('link', '../d', None), b'plain': ('file', None, sha(b'ok\n'))}
	earlier = keep(cloche, tmp_path, box.id)
	box.sh('ln -sfn /elsewhere link', options=('-w', WORK))
	code, part = check(cloche, earlier, box.id)
	[change] = part['changed']
	assert code == 1 and (change['target_before'], change['target']) == ('/etc/passwd', '/elsewhere')


def test_what_counts_as_a_change(cloche, box, tmp_path):
	box.sh('for f in a b c d e g k; do echo 0000 > $f; done; echo move > g; ln -s a s', options=('-w', WORK))
	earlier = keep(cloche, tmp_path, box.id)
	box.sh('''
echo 1111 > a; touch -d 2020-01-01 a; chmod 4755 b; chown 1:1 c; ln -sfn b s; rm e; mkdir e; echo q > e/in; mv g G; touch k
''', options=('-w', WORK))
	code, part = check(cloche, earlier, box.id)
	assert code == 1 and names(part, 'changed', WORK) == ['a', 's'] and names(part, 'mode_changed', WORK) == ['b', 'c']
	by_name = {os.path.basename(entry['path']): entry for entry in part['mode_changed']}
	assert by_name['b']['mode'] == '4755' and (by_name['c']['owner_before'], by_name['c']['owner']) == ('0:0', '1:1')
	assert names(part, 'removed', WORK) == ['e'] and names(part, 'added', WORK) == ['e', 'e/in']
	[renamed] = part['renamed']
	assert (renamed['from'], renamed['path']) == (f'{WORK}/g', f'{WORK}/G')


def test_a_list_of_sha256sum_is_read(cloche, project):
	for name in ODD_NAMES + [b'plain']:
		(project / os.fsdecode(name)).write_bytes(name)
	sums = subprocess.run('find . -type f -print0 | xargs -0 sha256sum', shell=True, cwd=project, check=True, capture_output=True).stdout
	path = project.parent / 'sums'
	path.write_bytes(sums)
	assert check(cloche, path, '--host', str(project)) == (0, check(cloche, path, '--host', str(project))[1])
	(project / 'plain').write_text('other')
	(project / '-').unlink()
	code, part = check(cloche, path, '--host', str(project))
	assert (code, names(part, 'changed', project), names(part, 'removed', project), part['added']) == (1, ['plain'], ['-'], [])
	[change] = part['changed']
	assert (change['before'], change['after']) == (sha(b'plain'), sha(b'other'))


def test_absolute_names_of_sha256sum_are_read(cloche, project):
	(project / 'f').write_text('f')
	path = project.parent / 'sums'
	path.write_bytes(subprocess.run(['sha256sum', project / 'f'], check=True, capture_output=True).stdout)
	assert check(cloche, path, '--host', str(project))[0] == 0


def test_a_list_of_sha256sum_in_other_dress_is_read(cloche, project):
	"""--tag, comments, empty lines, line ends of two characters; a name that ends in such a character is escaped."""
	for name in ODD_NAMES + [b'cr\r', b'a) = b', b'a']:
		(project / os.fsdecode(name)).write_bytes(name)
	(project / '.git').mkdir()
	(project / '.git' / 'HEAD').write_text('x')
	path = project.parent / 'sums'
	for options in ('', '--tag'):
		sums = subprocess.run(f'find . -type f -print0 | xargs -0 sha256sum {options}', shell=True, cwd=project, check=True, capture_output=True).stdout
		path.write_bytes(b'# made by hand\r\n\r\n' + sums.replace(b'\n', b'\r\n'))
		code, part = check(cloche, path, '--host', str(project))
		assert code == 0, (options, part)
	path.write_bytes(b'# nothing\n')
	assert 'it holds no sum' in cloche.call('manifest', '--check', str(path), '--host', str(project)).err
	path.write_bytes(b'MD5 (a) = ' + b'0' * 32 + b'\n')
	for out in (path.read_text(), cloche.call('manifest', '--host', str(project)).out):
		path.write_text(out)
		refused = cloche.call('manifest', '--check', str(path), '--host', str(project))
		assert refused.code == 125 and 'make the list with `cloche manifest --json`' in refused.err, refused
	assert 'line 1 belongs to no manifest' in cloche.call('manifest', '--check', str(path), '--host', str(project)).err


def test_what_an_earlier_manifest_left_out_is_left_out(cloche, project, tmp_path):
	(project / '.git').mkdir()
	(project / '.git' / 'HEAD').write_text('x')
	for then, now in (((), ('--all',)), (('--all',), ())):
		earlier = keep(cloche, tmp_path, *then, '--host', str(project))
		assert check(cloche, earlier, *now, '--host', str(project))[0] == 0


def test_what_was_not_looked_at_is_said(cloche, project, tmp_path):
	path = tmp_path / 'before'
	told = {(): f'{project} unchanged\n  (.git and node_modules not looked at: make the list with --all)\n', ('--all',): f'{project} unchanged\n'}
	for name in ('.git', 'a/node_modules'):
		(project / name).mkdir(parents=True)
	for options, text in told.items():
		path.write_text(cloche.call('manifest', '--json', *options, '--host', str(project)).out)
		assert cloche.call('manifest', '--check', str(path), '--host', str(project)).out == text


def test_a_relative_root_is_named_as_it_lies(cloche, box, project, tmp_path):
	"""Below where the caller is, or where commands start: a list that is read elsewhere says which folder it was."""
	(project / 'sub').mkdir()
	(project / 'sub' / 'f').write_text('f')
	earlier = tmp_path / 'earlier.jsonl'
	for root, cwd in (('.', project / 'sub'), ('sub', project), ('../sub', project / 'sub')):
		earlier.write_bytes(cloche.call('manifest', '--json', '--host', root, cwd=cwd).raw_out)
		assert json.loads(earlier.read_text().splitlines()[0])['root'] == str(project / 'sub')
	(project / 'sub' / 'g').write_text('g')
	done = cloche.call('manifest', '--json', '--host', '--check', str(earlier), '.', cwd=project / 'sub')
	[part] = json.loads(done.out)
	assert done.code == 1 and part['root'] == str(project / 'sub') and part['added'][0]['path'] == str(project / 'sub' / 'g')
	done = cloche.call('manifest', '--json', '--host', 'nowhere', cwd=project)
	assert done.code == 125 and "open 'nowhere': No such file" in done.err, done
	assert box.sh(f'mkdir {WORK}/sub; echo > {WORK}/sub/f').code == 0
	for root in ('sub', './sub/', f'{WORK}/sub'):
		head, entry, _ = [json.loads(line) for line in cloche.call('manifest', '--json', box.id, root).out.splitlines()]
		assert (head['root'].rstrip('/'), entry['path']) == (f'{WORK}/sub', 'f')


def test_skipped_folders_other_filesystems_and_holes_are_said(cloche, project):
	(project / '.git' / 'hooks').mkdir(parents=True)
	(project / '.git' / 'hooks' / 'pre-commit').write_text('x')
	with open(project / 'holes', 'wb') as f:
		f.truncate(1 << 40)
	(project / 'mounted').mkdir()
	subprocess.run(['mount', '-t', 'tmpfs', 'none', project / 'mounted'], check=True)
	try:
		(project / 'mounted' / 'inside').write_text('x')
		table = listed(cloche, '--host', str(project))
	finally:
		subprocess.run(['umount', project / 'mounted'], check=True)
	assert {path: entry.get('problem') for path, entry in table.items()} == {b'.git': 'skipped', b'holes': 'holes', b'mounted': 'mount'}
	assert table[b'holes']['sha256'] is None and table[b'holes']['size'] == 1 << 40
	assert b'.git/hooks/pre-commit' in listed(cloche, '--host', '--all', str(project))


def test_a_path_longer_than_the_kernel_takes(cloche, project):
	deep = 'n' * 200
	here = os.open(project, os.O_RDONLY)
	for _ in range(30):
		os.mkdir(deep, dir_fd=here)
		there = os.open(deep, os.O_RDONLY, dir_fd=here)
		os.close(here)
		here = there
	with open(os.open('leaf', os.O_WRONLY | os.O_CREAT, dir_fd=here), 'w') as f:
		f.write('deep')
	os.close(here)
	table = listed(cloche, '--host', str(project))
	assert table['/'.join([deep] * 30 + ['leaf']).encode()]['sha256'] == sha(b'deep') and len(table) == 31
	subprocess.run(['rm', '-rf', project], check=True)
	project.mkdir()


def test_a_path_without_an_end_is_cut_and_told(cloche, project):
	"""Each folder costs a look-up of its whole path: what an agent makes deeper than anybody needs may not keep us for hours."""
	here = os.open(project, os.O_RDONLY)
	for _ in range(6000):
		os.mkdir('d', dir_fd=here)
		there = os.open('d', os.O_RDONLY, dir_fd=here)
		os.close(here)
		here = there
	os.close(here)
	try:
		table = listed(cloche, '--host', str(project))
		last = max(table, key=len)
		assert 8192 < len(last) < 8195 and len(table) == (len(last) + 1) // 2
		assert {path: entry['problem'] for path, entry in table.items() if 'problem' in entry} == {last: 'unreadable'}
		run = cloche.sh('echo x > new', options=('--full', '-m', f'{project}:{project}:rw', '-w', str(project)))
		[part] = [part for part in run.record.changes() if part['root'] == str(project)]
		assert [os.path.basename(entry['path']) for entry in part['added']] == ['new'] and 'File name too long' in part['unread'], json.dumps(part)[:3000]
	finally:
		subprocess.run(['rm', '-rf', project], check=True)
		project.mkdir()


def test_a_folder_whose_disk_fails_is_told(cloche, project):
	for n in range(3000):
		(project / f'f{n}').write_text('')
	done = cloche.strace(['-f', '-P', project, '-e', 'inject=getdents64:error=EIO:when=2'], 'manifest', '--host', project.parent, '--jsonl')
	problems = [entry for entry in map(json.loads, done.stdout.splitlines()) if entry.get('problem')]
	assert [(entry['path'], entry['problem']) for entry in problems] == [(project.name, 'unreadable')], done


def test_what_changes_meanwhile_is_said_and_ends(cloche, box):
	writer = box.start('python3', '-c', f'''
import os
while True:
	for i in range(20):
		open("{WORK}/f%d" % i, "w").write("x" * 200000)
	for i in range(20):
		os.unlink("{WORK}/f%d" % i)
''')
	try:
		for _ in range(20):
			for entry in listed(cloche, box.id).values():
				assert entry['type'] == 'file' and (entry['sha256'] is not None or entry['problem'] == 'changed')
	finally:
		writer.kill()
		writer.wait()


def test_other_roots_of_a_sandbox(cloche, box):
	box.sh('mkdir -p /srv/one; echo 1 > /srv/one/f; chown 5:6 /srv/one/f; ln -s /srv/one /srv/two')
	for root in ('/srv/one', '/srv/two'):
		assert listed(cloche, box.id, root)[b'f']['owner'] == '5:6'
	refused = cloche.call('manifest', box.id, '/proc')
	assert refused.code == 125 and "'/proc' is made by the kernel" in refused.err
	gone = cloche.call('manifest', box.id, '/srv/none')
	assert gone.code == 125 and 'No such file' in gone.err


def test_bad_input_is_said(cloche, box, project):
	whole = cloche.call('manifest', '--json', box.id, '/etc').out
	cut = project / 'cut'
	for text, words in ((whole[:len(whole) // 2].rsplit('\n', 1)[0] + '\n', 'cut off'), ('nonsense\n', 'line 1'), ('', 'cut off'),
			(whole.replace('"path"', '"pfad"', 1), 'line 2'), ('{"manifest":2,"root":"/etc"}\n', 'line 1')):
		cut.write_text(text)
		done = cloche.call('manifest', '--check', str(cut), box.id, '/etc')
		assert done.code == 125 and words in done.err, (text[:80], done)
	box.remove()
	ended = cloche.call('manifest', box.id)
	assert ended.code == 125 and box.id in ended.err


def test_a_socket_on_the_host_is_listed(cloche, project):
	with socket.socket(socket.AF_UNIX) as s:
		s.bind(str(project / 'sock'))
		assert listed(cloche, '--host', str(project))[b'sock']['type'] == 'socket'
