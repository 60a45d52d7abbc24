# SPDX-License-Identifier: Apache-2.0
"""Everyday programs work inside as root, with the host view and with a root made by debootstrap."""
import os
import re
import shutil
import subprocess

import pytest

from harness import local_deb

PYPROJECT = '''
from setuptools import setup
setup(name='tinything', version='1.2.3', py_modules=['tinything'])
'''


def have(program):
	return pytest.mark.skipif(shutil.which(program) is None, reason=f'no {program} on this host')


def test_python_venv_and_pip_of_a_local_package(cloche, project):
	(project / 'pkg').mkdir()
	(project / 'pkg' / 'setup.py').write_text(PYPROJECT)
	(project / 'pkg' / 'tinything.py').write_text('ANSWER = 42\n')
	run = cloche.sh('''
set -e
/usr/bin/python3 -m venv --system-site-packages v
v/bin/pip install --no-index --no-build-isolation --disable-pip-version-check -q ./pkg
v/bin/python -c 'import tinything; print(tinything.ANSWER)'
''', options=('-w', str(project)))
	assert run.code == 0 and run.lines[-1] == '42', run
	table = run.record.files()
	assert any(path.endswith('site-packages/tinything.py') and entry['created'] for path, entry in table.items())
	assert not (project / 'v').exists()
	assert run.record.show()['complete'] is True


@have('npm')
def test_npm_of_a_local_package(cloche, project):
	(project / 'lib').mkdir()
	(project / 'lib' / 'package.json').write_text('{"name": "tiny-lib", "version": "1.0.0", "main": "i.js"}')
	(project / 'lib' / 'i.js').write_text('module.exports = 42\n')
	(project / 'package.json').write_text('{"name": "app", "version": "1.0.0", "private": true}')
	run = cloche.sh('''
set -e
npm install --offline --no-audit --no-fund --loglevel=error ./lib
node -e 'console.log(require("tiny-lib"))'
''', options=('-w', str(project)))
	assert run.code == 0 and run.lines[-1] == '42', run
	assert run.record.file(f'{project}/package-lock.json')['created']


def test_git_in_a_folder_of_another_user(cloche, project):
	subprocess.run(['git', 'init', '-q', '-b', 'main', project], check=True)
	(project / 'f').write_text('one\n')
	for path in [project, *project.rglob('*')]:
		os.chown(path, 1234, 1234)
	run = cloche.sh('''
set -e
git config user.email a@example.invalid; git config user.name A
git add f && git commit -q -m first
echo two >> f && git commit -q -a -m second
git log --oneline | wc -l; git status --short | wc -l; stat -c %u f
''', options=('-w', str(project)))
	assert run.code == 0, run
	assert [line.strip() for line in run.lines] == ['2', '0', '0']
	assert not (project / '.git' / 'refs' / 'heads' / 'main').exists()


def test_make_and_gcc_build_a_project(cloche, project):
	(project / 'Makefile').write_text('all: prog\nprog: a.o b.o\n\tgcc -o prog a.o b.o\n%.o: %.c\n\tgcc -O1 -c -o $@ $<\n')
	(project / 'a.c').write_text('#include <stdio.h>\nint b(void);\nint main(void)\n{\n\treturn printf("%d\\n", b()) < 0;\n}\n')
	(project / 'b.c').write_text('int b(void)\n{\n\treturn 42;\n}\n')
	run = cloche.sh('make -s -j2 && ./prog', options=('-w', str(project)))
	assert (run.code, run.out) == (0, '42\n'), run
	assert len(run.record.nodes(argv=['gcc'])) == 3
	assert run.record.file(f'{project}/prog')['created']
	assert len([node for node in run.record.nodes() if node['path'].endswith('/cc1')]) == 2


@have('dpkg-deb')
def test_apt_installs_a_local_package(cloche, project, tmp_path):
	shutil.move(local_deb(tmp_path), project / 'tiny-tool.deb')
	run = cloche.sh('''
apt-get install -y -q ./tiny-tool.deb >apt.log 2>&1 || { cat apt.log; exit 1; }
tiny-tool; dpkg-query -W -f '${Status}\\n' tiny-tool
''', options=('-w', str(project)))
	assert run.lines == ['configured', 'install ok installed'], run
	assert not os.path.exists('/usr/bin/tiny-tool') and not os.path.exists('/etc/tiny-tool.conf')
	assert subprocess.run(['dpkg-query', '-W', 'tiny-tool'], capture_output=True, check=False).returncode != 0
	assert run.record.file('/etc/tiny-tool.conf')['created']


def test_tar_find_and_sqlite(cloche, project):
	(project / 'd' / 'e').mkdir(parents=True)
	for n in range(20):
		(project / 'd' / 'e' / f'f{n}').write_text(str(n))
	run = cloche.sh('''
set -e
tar -C d -czf d.tar.gz e && mkdir out && tar -C out -xzf d.tar.gz && find out -type f | wc -l
diff -r d out && echo same
/usr/bin/python3 - <<'END'
import sqlite3
db = sqlite3.connect('t.db')
db.execute('create table t (n)')
db.executemany('insert into t values (?)', [(i,) for i in range(100)])
db.commit()
print(db.execute('select sum(n) from t').fetchone()[0])
END
command -v sqlite3 >/dev/null && sqlite3 t.db 'select count(*) from t' || echo 100
''', options=('-w', str(project)))
	assert run.lines == ['20', 'same', '4950', '100'], run
	table = run.record.files()
	assert len([path for path in table if path.startswith(f'{project}/out/e/f') and table[path]['created']]) == 20
	assert {'created', 'deleted'} == {what for what in ('created', 'deleted') if table[f'{project}/t.db-journal'][what]}


@have('strace')
def test_counts_agree_with_strace_on_the_same_work(cloche, project, tmp_path):
	script = 'for i in 1 2 3 4 5 6 7 8 9 10; do echo $i > f$i; cat f$i >/dev/null; mv f$i g$i; rm g$i; done; mkdir d; rmdir d'
	outside = tmp_path / 'outside'
	outside.mkdir()
	subprocess.run(['strace', '-f', '-qq', '-o', tmp_path / 'log', '-e', 'trace=execve,unlinkat,unlink,rename,renameat2,mkdir,rmdir,openat',
		'/bin/sh', '-c', script], cwd=outside, check=True)
	log = (tmp_path / 'log').read_text()
	run = cloche.sh(script, options=('-w', str(project)))
	assert run.code == 0

	def count(pattern):
		return len([line for line in log.splitlines() if re.search(pattern, line) and line.rstrip().endswith('= 0')])

	events = run.record.events()
	kinds = [event['kind'] for event in events]
	assert len(run.record.nodes()) == count(r'execve\(')
	assert kinds.count('file.rename') == count(r'rename')
	assert kinds.count('file.delete') == count(r'unlink|rmdir\(')
	assert kinds.count('dir.create') == count(r'mkdir\(')
	created = len(re.findall(r'openat\(AT_FDCWD, "f\d+", O_WRONLY\|O_CREAT', log))
	assert len([event for event in events if event['kind'] == 'file.open' and event.get('created')]) == created == 10


def test_debootstrap_root(cloche, project, tmp_path, debian_root):
	shutil.move(local_deb(tmp_path), project / 'tiny-tool.deb')
	before = sorted(os.listdir(debian_root / 'usr' / 'bin'))
	run = cloche.sh('''
set -e
cat /etc/debian_version | cut -c1-2; id -u; python3 -c 'print(6 * 7)'
apt-get install -y -q ./tiny-tool.deb >apt.log 2>&1 || { cat apt.log; exit 1; }
tiny-tool; printf 'all:\\n\\t@echo made\\n' > Makefile; make; find /etc -maxdepth 1 -name passwd; tar -cf t.tar Makefile && tar -tf t.tar
''', options=('--rootfs', str(debian_root), '-w', str(project)))
	assert run.lines == ['12', '0', '42', 'configured', 'made', '/etc/passwd', 'Makefile'], run
	assert sorted(os.listdir(debian_root / 'usr' / 'bin')) == before
	assert run.record.show()['complete'] is True
