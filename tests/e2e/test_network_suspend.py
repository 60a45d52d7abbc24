# SPDX-License-Identifier: Apache-2.0
"""The network of a sandbox that was suspended: its rules as they were, its secrets given again, none of them kept."""
import json

from test_network_http import KEY, allow, heads, kept_anywhere

ASK = 'curl -sS https://allowed.test/ -H "Authorization: Bearer $API_KEY" -o /dev/null -w "%{http_code}\\n"; echo $API_KEY'


def rules(online, sandbox):
	return json.loads(online.call('net-rules', sandbox, '--json').out)


def test_secrets_are_given_again(online, world, tmp_path):
	box = online.create(*allow(world, 'allowed.test'), '--secret', 'API_KEY@allowed.test', env={'API_KEY': KEY})
	try:
		before = box.sh(ASK).lines
		assert before[0] == '200' and before[1] != KEY
		assert online.call('suspend', box.id).code == 0
		assert kept_anywhere(online.state, KEY) == ''
		refused = online.call('resume', box.id)
		assert refused.code == 125 and 'API_KEY' in refused.err
		assert online.call('resume', box.id, env={'API_KEY': KEY}).code == 0
		assert box.sh(ASK).lines == before  # the stand-in is the one that files inside may hold
		assert online.call('suspend', box.id).code == 0
		(tmp_path / 'key').write_text(KEY + '\n')
		assert online.call('resume', box.id, '--secret-file', f'API_KEY={tmp_path}/key').code == 0
		assert box.sh(ASK).lines == before
		assert [f'Bearer {KEY}' in head for head in heads(world)] == [True] * 3
		assert kept_anywhere(online.state, KEY) == ''
		assert online.call('verify', box.id).code == 0
	finally:
		box.remove()


def test_rules_stay_as_they_were_changed(online, world):
	box = online.create('--net', 'allow', *allow(world, 'allowed.test'))
	try:
		assert online.call('net-rules', box.id, '--allow', 'other.wild.test', '--deny', 'allowed.test').code == 0
		before = rules(online, box.id)
		assert online.call('suspend', box.id).code == 0 and online.call('resume', box.id).code == 0
		assert rules(online, box.id) == before
		done = box.sh('for h in allowed.test other.wild.test; do curl -sS -o /dev/null -w "%{http_code}\\n" http://$h/; done')
		assert done.lines[-1] == '200' and '200' not in done.lines[:-1], done
		assert online.call('net-rules', box.id, '--reset').code == 0
		assert rules(online, box.id)['allow'] == ['allowed.test']
	finally:
		box.remove()
