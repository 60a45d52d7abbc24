# SPDX-License-Identifier: Apache-2.0
"""What cannot work as it was asked for: one sentence for the user, an event in the record, and nothing half-open."""
import re

import harness
import pytest
import world as world_

NO_HOST = '203.0.113.77'  # in the network, and not there


@pytest.mark.parametrize('where, errors', [
	(f'{world_.UPSTREAM}:5399', {'ECONNREFUSED', 'timeout'}), (NO_HOST, {'EHOSTUNREACH', 'timeout'})], ids=['closed', 'away'])
def test_resolver_that_cannot_be_reached(online, where, errors):
	run = online.sh('curl -sS -m 30 http://allowed.test/; echo $?', options=('--allow', 'allowed.test', '--resolver', where))
	assert run.lines == ['6'] and 'Could not resolve host' in run.err, run
	asked = run.record.events('net.dns')
	port = '' if ':' in where else ':53'
	assert asked and {event['reason'] for event in asked} == {f'no DNS server answers: {where}{port}'}
	assert {event['error'] for event in asked} <= errors
	assert re.search(r'nothing was reached .*; 1 name only looked up, 1 of them without an answer \(', ' '.join(run.err.split())), run.err
	network = run.record.show()['network']
	assert (network['looked_up'], network['unanswered'], network['reached']) == (1, 1, 0)


def test_certificate_that_is_not_valid(online, world):
	"""Nothing of the request goes out, and the program fails as it would without us."""
	run = online.sh('curl -sS -m 20 https://allowed.test/secret; echo $?',
		options=('--allow', 'allowed.test', '--resolver', world_.UPSTREAM))
	assert run.lines == ['35'] and 'unknown ca' in run.err, run
	[flow] = run.record.events('net.flow')
	assert flow['failed'] and flow['error'].startswith("upstream's certificate is not valid: "), flow
	assert run.record.events('net.http') == [] and world.log('http') == []
	assert '1 place failed' in run.err
	harness.wait_for(lambda: world.log('tlsfail'), 'the server to be told')


@pytest.mark.parametrize('options, sentence', [
	(('--allow', 'a b c'), "network rule 'a b c': want a host name"),
	(('--deny', 'x.test:99999'), 'a port is a number from 1 to 65535'),
	(('--allow', 'GET'), 'a method without a host'),
	(('--deny', '@nosuch'), "there is no set '@nosuch'"),
	(('--secret', 'PATH@b.test', '--allow', 'a.test'), "secret PATH is bound to b.test, which no rule allows: add '--allow b.test'"),
	(('--secret', 'PATH@b.test,pass=*'), "secret PATH: '*' is no host"),
	(('--resolver', 'nosuch'), 'want the numeric address of a DNS server'),
	(('--upstream-proxy', 'https://a.test:1'), 'want an HTTP proxy that knows CONNECT'),
	(('--upstream-ca', '/etc/hostname'), 'holds no certificate'),
])
def test_options_that_cannot_hold(online, options, sentence):
	"""Told before anything is made: no sandbox, no record."""
	before = online.ids()
	done = online.call('run', *options, '--', '/bin/true')
	assert done.code in (2, 125) and sentence in done.err and done.err.count('\n') == 1, done
	assert online.ids() == before
