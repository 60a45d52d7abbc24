# SPDX-License-Identifier: Apache-2.0
"""Ways to get data out past the rules. Each is refused and the refusal recorded, and nothing of it arrives."""
import subprocess

import world as world_


def test_witness_sees_what_leaves(world):
	"""Without a sandbox between: so that an empty log means something below."""
	world.clear()
	script = '''
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for to, port in (('203.0.113.9', 9), ('169.254.169.254', 80), ('192.0.2.1', 7)):
	sock.sendto(b'x', (to, port))
print(socket.create_connection(('203.0.113.10', 80), 5).getpeername()[0])
'''
	done = subprocess.run(world.command(world.host, '/usr/bin/python3', '-c', script), capture_output=True, timeout=20)
	assert done.stdout.decode() == world_.UPSTREAM + '\n', done
	assert {('203.0.113.9', 'udp', 9), ('169.254.169.254', 'udp', 80), ('192.0.2.1', 'udp', 7),
		('203.0.113.10', 'tcp', 80)} <= world.wire()
