# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a state folder a module, a project folder a test, and a check that nothing stays on the host."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import harness  # noqa: E402  (the path comes first)
import serving  # noqa: E402
import world as world_  # noqa: E402

# Whoever starts us in the background has us ignore Ctrl-C, and so what we start: with a handler of our own it does not.
signal.signal(signal.SIGINT, signal.default_int_handler)

INSTALL_LIMIT_S = 120


def pytest_collection_modifyitems(items):
	reason = harness.can_run()
	if reason:
		for item in items:
			item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope='session')
def run_dir(tmp_path_factory):
	"""Run-time folder with a bpffs of its own, shared by all modules so that programs load once."""
	folder = tmp_path_factory.mktemp('run')
	yield folder
	harness.unmount_run_dir(folder)


@pytest.fixture(scope='session')
def state(tmp_path_factory):
	"""One state for most tests: what is made once for a host is made once."""
	return tmp_path_factory.mktemp('shared') / 'state'


@pytest.fixture(scope='module')
def module_cloche(state, run_dir, tmp_path_factory):
	"""Whatever the tests of one module left on the host fails the module."""
	cloche = harness.Cloche(state, run_dir, tmp_path_factory.mktemp('module'))
	yield cloche
	cloche.check_clean()


@pytest.fixture
def cloche(module_cloche, tmp_path):
	"""The program, called from an empty project folder of this test's own."""
	project = tmp_path / 'project'
	project.mkdir()
	module_cloche.cwd = project
	return module_cloche


@pytest.fixture
def project(cloche):
	return cloche.cwd


@pytest.fixture
def own_cloche(tmp_path, state, run_dir):
	"""A state of this test's own, for tests that break it; only the view of the host is not made anew."""
	(tmp_path / 'own').mkdir()
	cloche = harness.Cloche(tmp_path / 'own-state', run_dir, tmp_path / 'own')
	harness.lend_skeleton(state, cloche.state)
	yield cloche
	cloche.check_clean()


@pytest.fixture
def sandbox(cloche):
	"""Makes sandboxes that are removed at the end of the test."""
	made = []

	def make(*options, **how):
		made.append(cloche.create(*options, **how))
		return made[-1]

	yield make
	for box in made:
		box.remove()


@pytest.fixture
def box(sandbox):
	"""A traced sandbox that stays for the test."""
	return sandbox('--trace')


@pytest.fixture(scope='module')
def world(tmp_path_factory):
	"""A network that ends at a server of the test's own (world.py)."""
	made = world_.World(tmp_path_factory.mktemp('world'))
	yield made
	made.close()


@pytest.fixture(scope='module')
def module_online(world, state, run_dir, tmp_path_factory):
	cloche = world.cloche(state, run_dir, tmp_path_factory.mktemp('module'))
	yield cloche
	cloche.check_clean()


@pytest.fixture
def online(module_online, world, tmp_path):
	"""The program, called where that network begins; what upstream saw before is forgotten."""
	project = tmp_path / 'project'
	project.mkdir()
	module_online.cwd = project
	world.clear()
	return module_online


def install(folder, package, failed):
	"""By the plain client; what went wrong goes into failed."""
	try:
		done = subprocess.run(['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error',
			'--fetch-retries=0', '--prefix', folder, package], capture_output=True, text=True, timeout=INSTALL_LIMIT_S,
			stdin=subprocess.DEVNULL, check=False)
	except subprocess.TimeoutExpired:
		failed[package] = f'npm install {package} took more than {INSTALL_LIMIT_S} s'
		return
	if done.returncode != 0:
		failed[package] = f'npm install {package} failed: {(done.stderr.strip().splitlines() or ["no reason"])[0]}'


@pytest.fixture(scope='session')
def installed(tmp_path_factory):
	"""A folder with both, and why one is missing; kept between runs where a folder is named."""
	kept = os.environ.get('CLOCHE_TEST_AGENTS')
	if shutil.which('npm') is None or shutil.which('node') is None:
		pytest.skip('no node with npm on this host')
	folder, failed = pathlib.Path(kept or tmp_path_factory.mktemp('npm')), {}
	threads = [threading.Thread(target=install, args=(folder / name, package, failed)) for name, package in harness.AGENTS.items()
		if not (folder / name / 'node_modules').is_dir()]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	yield folder, failed
	if not kept:
		shutil.rmtree(folder)


@pytest.fixture(scope='session')
def debian_root(tmp_path_factory):
	"""A root by debootstrap from where apt gets its packages; kept between runs where a folder is named."""
	kept = os.environ.get('CLOCHE_TEST_DEBIAN')
	if kept and pathlib.Path(kept, 'bin/sh').exists():
		return pathlib.Path(kept)
	if shutil.which('debootstrap') is None:
		pytest.skip('no debootstrap on this host')
	target = pathlib.Path(kept or tmp_path_factory.mktemp('debian') / 'root')
	done = subprocess.run(['debootstrap', '--variant=minbase', '--include=python3-minimal,make', 'bookworm', target],
		capture_output=True, text=True, timeout=400, check=False)
	if done.returncode != 0:
		pytest.skip(f'debootstrap found no packages: {done.stdout.strip().splitlines()[-1:]}')
	return target


@pytest.fixture
def small_disk(tmp_path, run_dir):
	"""A state on a small file system of its own."""
	image, mount = tmp_path / 'disk.img', tmp_path / 'disk'
	mount.mkdir()
	with open(image, 'wb') as file:
		file.truncate(160 << 20)
	subprocess.run(['mke2fs', '-q', '-F', '-t', 'ext4', image], check=True)
	subprocess.run(['mount', '-o', 'loop', image, mount], check=True)
	(tmp_path / 'project').mkdir()
	yield harness.Cloche(mount / 'state', run_dir, tmp_path / 'project')
	harness.unmount_disk(mount)


@contextlib.contextmanager
def open_folder(name):
	"""One that users other than root reach, unlike pytest's own."""
	folder = pathlib.Path(tempfile.mkdtemp(prefix=f'cloche-test-{name}-'))
	folder.chmod(0o755)
	yield folder
	shutil.rmtree(folder)


@pytest.fixture(scope='session')
def postgres():
	with open_folder('postgres') as folder:
		made = serving.Postgres(folder / 'own')
		yield made
		made.close()


def pytest_generate_tests(metafunc):
	"""Each test of a server over both databases, but where its module says that the database has no part in it (STORES)."""
	if 'server' in metafunc.fixturenames:
		stores = ['sqlite', 'postgres']
		if not os.environ.get('CLOCHE_TEST_STORES'):
			stores = getattr(metafunc.module, 'STORES', stores)
		metafunc.parametrize('server', stores, indirect=True, scope='module')


@pytest.fixture(scope='module')
def server(request, state, run_dir):
	"""A control plane with a state of its own, over each of the two databases; CONFIG of the module is its --config (@ in it stands
	for its folder), OPTIONS are more."""
	database = request.getfixturevalue('postgres').database() if request.param == 'postgres' else None
	with open_folder('serve') as folder:
		cloche = harness.Cloche(folder / 'state', run_dir, folder)
		harness.lend_skeleton(state, cloche.state)
		config = getattr(request.module, 'CONFIG', None)
		(folder / 'config.json').write_text(json.dumps(config or {}).replace('@', str(folder)))
		made = serving.Server(cloche, '--config', str(folder / 'config.json'), '--previews', '127.0.0.1:0', '--socket',
			str(folder / 'cloche.sock'), *getattr(request.module, 'OPTIONS', ()), database=database)
		yield made
		made.close()
		cloche.check_clean()


@pytest.fixture
def admin(server):
	return server.admin
