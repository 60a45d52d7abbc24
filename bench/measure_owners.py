# SPDX-License-Identifier: Apache-2.0
"""Connections that many processes open at once: how many of them are told with their process and exec. Cloche runs where
there is no way out, so that each is refused as soon as the gateway has tried."""
import collections

from common import Offline

ROUNDS = 2
PROCESSES, EACH = 60, 100

# All connect at the same moment, to a port of their own.
STORM = '''
import errno, os, select, socket, sys, time
ready, go = os.pipe()
for i in range(int(sys.argv[1])):
	pid = os.fork()
	if pid == 0:
		os.close(go)
		os.read(ready, 1)
		poll, left = select.poll(), {}
		for k in range(int(sys.argv[2])):
			s = socket.socket()
			s.setblocking(False)
			if s.connect_ex(('192.0.2.1', 1000 + i)) == errno.EINPROGRESS:
				poll.register(s, select.POLLOUT)
				left[s.fileno()] = s
		while left:
			for fd, _ in poll.poll(20000) or os._exit(1):
				poll.unregister(fd)
				left.pop(fd).close()
		os._exit(0)
	print(pid, 1000 + i)
sys.stdout.flush()
begin = time.monotonic()
os.close(go)
codes = [os.wait()[1] for i in range(int(sys.argv[1]))]
print(time.monotonic() - begin, sum(code != 0 for code in codes))
'''


def measure(bench):
	cloche = Offline(bench.cloche.state, bench.cloche.run_dir, bench.cloche.cwd)
	for _ in range(ROUNDS):
		done = cloche.py(STORM, str(PROCESSES), str(EACH), options=('-T', '--net', 'open'))
		assert done.code == 0, done
		*started, end = done.lines
		want = {int(port): int(pid) for pid, port in (line.split() for line in started)}
		right = collections.Counter(event.get('pid') == want.get(event['port']) and 'exec' in event
			for event in done.record.events() if event['kind'] in ('net.connect', 'net.refused'))
		yield {'connects': PROCESSES * EACH, 'told': sum(right.values()), 'owner_right': right[True], 'seconds': round(float(end.split()[0]), 3),
			'failed': int(end.split()[1]), 'goal': PROCESSES * EACH}
