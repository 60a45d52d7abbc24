# SPDX-License-Identifier: Apache-2.0
"""A client that is made from the document alone, by a generator of others: openapi-typescript writes the types, a strict
compiler holds a program to them (generated_client.ts), and what it does comes out right at a server."""
import json
import pathlib
import shutil
import subprocess

import pytest

from serving import Client

PACKAGES = ['openapi-typescript@7', 'openapi-fetch@0.17', 'typescript@5']
LIMIT_S = 120
STORES = ['sqlite'] # the database has no part in it

SETTINGS = {'compilerOptions': {'strict': True, 'target': 'es2022', 'module': 'nodenext', 'moduleResolution': 'nodenext', 'skipLibCheck': True,
	'types': [], 'lib': ['es2022', 'dom']}, 'files': ['client.ts']}


@pytest.fixture(scope='module')
def generator(tmp_path_factory):
	if shutil.which('npm') is None or shutil.which('node') is None:
		pytest.skip('no node with npm on this host')
	folder = tmp_path_factory.mktemp('client')
	(folder / 'package.json').write_text('{"type": "module", "private": true}')
	done = subprocess.run(['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', *PACKAGES],
		cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False)
	if done.returncode != 0:
		pytest.skip(f'npm could not install the generator: {(done.stderr.strip().splitlines() or ["no reason"])[0]}')
	yield folder
	shutil.rmtree(folder)


def call(folder, *command):
	done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
	assert done.returncode == 0, done.stdout + done.stderr
	return done.stdout


def test_a_client_made_of_the_document_works(server, admin, generator):
	(generator / 'openapi.json').write_bytes(Client(server, None).get('/openapi.json').body)
	shutil.copy(pathlib.Path(__file__).with_name('generated_client.ts'), generator / 'client.ts')
	(generator / 'tsconfig.json').write_text(json.dumps(SETTINGS))
	call(generator, 'node_modules/.bin/openapi-typescript', 'openapi.json', '--default-non-nullable=false', '-o', 'api.d.ts')
	call(generator, 'node_modules/.bin/tsc', '-p', '.')
	saw = json.loads(call(generator, 'node', 'client.js', f'http://127.0.0.1:{server.port}', admin.key))
	assert saw['made']['labels'] == {'made': 'by a generated client'} and saw['made']['state'] == 'running'
	assert (saw['exit'], saw['stdout'], saw['bytes'], saw['content']) == (3, 'b\n', 8, 'two\n')
	assert saw['log'] == ['exec', 'file_create', 'view'] and saw['written'] and saw['wrong'] == 'not_found'
	assert admin.get(f'/v1/sandboxes/{saw["made"]["id"]}').json['state'] == saw['gone']['state'] == 'ended', saw
