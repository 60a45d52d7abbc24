# SPDX-License-Identifier: Apache-2.0
"""The gateway beside a direct connection over loopback, squid (with ssl-bump), mitmproxy and slirp4netns."""
import os
import subprocess

import web
from common import interleave, percentile, ratio
from harness import PYTHON

ROUNDS = 5
SLOW_N = 300  # requests where a peer makes some hundred a second
FAST_N = 4000
NAME = 'bench.test'
TIMEOUT_S = 30
GOALS = {'http': 2.0, 'https': 1.5, 'new_http': 2.0, 'new_https': 2.0}

CONNECTS = '''
import socket, sys, time
took = []
for _ in range(300):
	begin = time.perf_counter()
	s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
	took.append(time.perf_counter() - begin)
	s.close()
print(sorted(took)[150] * 1e6)
'''


def output_of(command):
	return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S).stdout


def inside(box, command):
	done = box.exec(*command)
	if done.code != 0:
		raise RuntimeError(f'{command}: {done}')
	return done.out


class Slirp:
	"""A namespace whose way out is slirp4netns; the host's loopback is 10.0.2.2 in there."""

	def __enter__(self):
		self.box = subprocess.Popen(['unshare', '-n', 'sleep', '1000'])
		subprocess.run(['sh', '-c', 'while [ "$(readlink /proc/$0/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done',
			str(self.box.pid)], check=True)
		self.slirp = subprocess.Popen(['slirp4netns', '--configure', '--mtu=65520', '-r', '3', str(self.box.pid), 'tap0'],
			stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=lambda: os.dup2(1, 3), pass_fds=[3])
		self.slirp.stdout.read(1)
		return self

	def __exit__(self, *error):
		for process in (self.slirp, self.box):
			process.kill()
			process.wait()

	def run(self, command):
		return output_of(['nsenter', '-n', '-t', str(self.box.pid), *command])


def compare(sides, value, needed):
	"""The middle of each side's rounds, and why a peer has none: some cannot do everything, here or at all."""
	missing = {}
	for name, run in sides.items():
		try:
			run()
		except (subprocess.SubprocessError, FileNotFoundError, RuntimeError) as error:
			if name in needed:
				raise
			missing[name] = str(getattr(error, 'stderr', None) or error).strip()[-200:]
	results = interleave(ROUNDS, **{name: lambda run=run: value(run()) for name, run in sides.items() if name not in missing})
	return {name: percentile(values, 0.5) for name, values in results.items()}, {'missing': missing} if missing else {}


def relay(box, iperf):
	"""Bulk, in gigabits a second, up and down."""
	with Slirp() as slirp:
		for direction, down in (('up', False), ('down', True)):
			middle, missing = compare({
				'direct': lambda: output_of(web.iperf('127.0.0.1', iperf.port, down)),
				'cloche': lambda: inside(box, web.iperf(NAME, iperf.port, down)),
				'slirp4netns': lambda: slirp.run(web.iperf('10.0.2.2', iperf.port, down)),
			}, web.gigabits, ('direct', 'cloche'))
			yield {'part': f'bulk_{direction}', **{f'{name}_gbit': round(value, 2) for name, value in middle.items()},
				'ratio': ratio(middle['cloche'], middle['direct']), 'goal': 0.5, **missing}


def requests(box, server, squid, mitm):
	"""Requests a second, HTTP and HTTPS, on kept connections and on a new one for each."""
	for part, scheme, port, kept in (('http', 'http', server.port, True), ('https', 'https', server.tls_port, True),
			('new_http', 'http', server.port, False), ('new_https', 'https', server.tls_port, False)):
		n = SLOW_N if part == 'new_https' else FAST_N
		direct = f'{scheme}://127.0.0.1:{port}/page'
		middle, missing = compare({
			'direct': lambda: output_of(web.ab(direct, n, kept)),
			'cloche': lambda: inside(box, web.ab(f'{scheme}://{NAME}/page', n, kept)),
			'squid': lambda: output_of(web.ab(direct, n, kept, squid.port)),
			'mitmproxy': lambda: output_of(web.ab(direct, SLOW_N, kept, mitm.port)),
		}, web.rate, ('direct', 'cloche', 'squid'))
		yield {'part': part, **{f'{name}_per_s': round(value) for name, value in middle.items()},
			'ratio': ratio(middle['cloche'], middle['squid']), 'goal': GOALS[part], **missing}


def connects(box, server):
	results = interleave(ROUNDS, direct=lambda: float(output_of([PYTHON, '-c', CONNECTS, '127.0.0.1', str(server.port)])),
		cloche=lambda: float(inside(box, [PYTHON, '-c', CONNECTS, NAME, '80'])))
	middle = {name: percentile(values, 0.5) for name, values in results.items()}
	yield {'part': 'connect', **{f'{name}_us': round(value, 1) for name, value in middle.items()},
		'added_us': round(middle['cloche'] - middle['direct'], 1)}


def measure(bench):
	with web.Web(bench.folder / 'web') as server, web.Iperf() as iperf, web.Squid(bench.folder / 'squid', server) as squid, \
			web.Mitmproxy(bench.folder / 'mitm', server) as mitm:
		box = bench.sandbox('--trace', '--net', 'open', '--upstream-ca', str(server.ca), '--host-map', f'{NAME}:80=127.0.0.1:{server.port}',
			'--host-map', f'{NAME}:443=127.0.0.1:{server.tls_port}', '--host-map', f'{NAME}=127.0.0.1')
		yield from relay(box, iperf)
		yield from requests(box, server, squid, mitm)
		yield from connects(box, server)
