# SPDX-License-Identifier: Apache-2.0
"""What the record says of the network, and every view made of it, against what the server itself saw."""
import json

import pytest


def test_probe(online, world):
	run = online.sh('curl -sS http://allowed.test/echo -d hello; curl -sS https://allowed.test/n; curl -sS -m 5 http://denied.test/; true',
		options=('--allow', 'allowed.test', *world.net))
	print(run)
	for verb in (('net',), ('net', '--json'), ('show',), ('timeline',), ('events',), ('commands', '--json'), ('log', '--json'), ('export', '--har'), ('verify',)):
		done = online.call(verb[0], run.record.id, *verb[1:])
		print('==', verb, done.code, done.err)
		print(done.out[:6000])
	assert False
