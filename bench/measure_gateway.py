# SPDX-License-Identifier: Apache-2.0
"""The gateway beside a direct connection over loopback, squid (with ssl-bump), mitmproxy and slirp4netns."""
import json
import os
import pathlib
import subprocess

import web
from common import compiled, interleave, percentile, ratio
from harness import PYTHON

ROUNDS = 5
SLOW_N = 300  # requests where a peer makes some hundred a second
FAST_N = 4000
NAME = 'bench.test'
TIMEOUT_S = 30
GOALS = {'http': 2.0, 'https': 1.5, 'new_http': 2.0, 'new_https': 2.0, 'resumed_https': 2.0}

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

	def attempt(name, run):
		if name in missing:
			return None
		try:
			return value(run())
		except (subprocess.SubprocessError, FileNotFoundError, RuntimeError) as error:
			if name in needed:
				raise
			missing[name] = str(getattr(error, 'stderr', None) or error).strip()[-200:]
			return None

	for name, run in sides.items():
		attempt(name, run)  # warms up
	results = interleave(ROUNDS, **{name: lambda name=name, run=run: attempt(name, run) for name, run in sides.items()})
	return {name: percentile(values, 0.5) for name, values in results.items() if name not in missing}, \
		{'missing': missing} if missing else {}


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
	"""Requests a second over HTTP, on kept connections and on a new one for each."""
	for part, kept in (('http', True), ('new_http', False)):
		direct = f'http://127.0.0.1:{server.port}/page'
		middle, missing = compare({
			'direct': lambda: output_of(web.ab(direct, FAST_N, kept)),
			'cloche': lambda: inside(box, web.ab(f'http://{NAME}/page', FAST_N, kept)),
			'squid': lambda: output_of(web.ab(direct, FAST_N, kept, squid.port)),
			'mitmproxy': lambda: output_of(web.ab(direct, SLOW_N, kept, mitm.port)),
		}, web.rate, ('direct', 'cloche', 'squid'))
		yield {'part': part, **{f'{name}_per_s': round(value) for name, value in middle.items()},
			'ratio': ratio(middle['cloche'], middle['squid']), 'goal': GOALS[part], **missing}


def tls_requests(box, program, server, squid, verified, mitm):
	"""The same over HTTPS. squid answers before it knows upstream's certificate, squid_verified and the others do not."""
	for part, how, n in (('https', 'kept', FAST_N), ('new_https', 'new', SLOW_N), ('resumed_https', 'resumed', SLOW_N)):
		def through(peer, n=n, how=how):
			return output_of(web.load(program, peer.ca, '127.0.0.1', server.tls_port, how, n, None if peer is server else peer.port))
		middle, missing = compare({
			'direct': lambda: through(server),
			'cloche': lambda how=how, n=n: inside(box, web.load('/load/main', 'none', NAME, 443, how, n)),
			'squid': lambda: through(squid),
			'squid_verified': lambda: through(verified),
			'mitmproxy': lambda: through(mitm, SLOW_N),
		}, lambda output: json.loads(output)['per_s'], ('direct', 'cloche', 'squid'))
		yield {'part': part, **{f'{name}_per_s': round(value) for name, value in middle.items()},
			'ratio': ratio(middle['cloche'], middle['squid']), 'goal': GOALS[part],
			**({'ratio_verified': ratio(middle['cloche'], middle['squid_verified'])} if 'squid_verified' in middle else {}), **missing}


def connects(box, server):
	results = interleave(ROUNDS, direct=lambda: float(output_of([PYTHON, '-c', CONNECTS, '127.0.0.1', str(server.port)])),
		cloche=lambda: float(inside(box, [PYTHON, '-c', CONNECTS, NAME, '80'])))
	middle = {name: percentile(values, 0.5) for name, values in results.items()}
	yield {'part': 'connect', **{f'{name}_us': round(value, 1) for name, value in middle.items()},
		'added_us': round(middle['cloche'] - middle['direct'], 1)}


def measure(bench):
	place = bench.folder / 'load'
	place.mkdir()
	program = compiled(place, (pathlib.Path(__file__).parent / 'load.c').read_text(), '-D_GNU_SOURCE', '-pthread', '-lssl', '-lcrypto')
	with web.Web(bench.folder / 'web') as server, web.Iperf() as iperf, \
			web.Squid(bench.folder / 'squid', server, web.BUMP_EARLY) as squid, \
			web.Squid(bench.folder / 'verified', server, web.BUMP_VERIFIED) as verified, \
			web.Mitmproxy(bench.folder / 'mitm', server) as mitm:
		box = bench.sandbox('--trace', '--net', 'open', '--upstream-ca', str(server.ca), '--host-map', f'{NAME}:80=127.0.0.1:{server.port}',
			'--host-map', f'{NAME}:443=127.0.0.1:{server.tls_port}', '--host-map', f'{NAME}=127.0.0.1', '-m', f'{place}:/load:ro')
		yield from relay(box, iperf)
		yield from requests(box, server, squid, mitm)
		yield from tls_requests(box, program, server, squid, verified, mitm)
		yield from connects(box, server)
