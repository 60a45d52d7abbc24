# SPDX-License-Identifier: Apache-2.0
"""The programs that runs and execs are compared with, set up for the same work: /bin/true on the host's /usr."""
import ctypes
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), '..', 'tests', 'e2e'))

import common  # noqa: E402  (the path comes first)

BWRAP = ['bwrap', '--unshare-all', '--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin', '--symlink', 'usr/lib', '/lib',
	'--symlink', 'usr/lib64', '/lib64', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--', '/bin/true']
CLONE_NEWNS = 0x20000
MS_REC_PRIVATE = 0x44000
UNIFIED = b'/sys/fs/cgroup/unified'


def crun_bundle(folder, args):
	"""A bundle whose root has /usr of the host, read-only, as the host view has."""
	root = folder / 'rootfs'
	for name in ('usr', 'proc', 'dev', 'sys', 'tmp', 'etc'):
		(root / name).mkdir(parents=True)
	for name in ('bin', 'lib', 'lib64', 'sbin'):
		os.symlink(f'usr/{name}', root / name)
	subprocess.run(['crun', 'spec'], cwd=folder, check=True)
	config = json.loads((folder / 'config.json').read_text())
	config['process'].update(terminal=False, args=args)
	config['mounts'].append({'destination': '/usr', 'type': 'bind', 'source': '/usr', 'options': ['rbind', 'ro']})
	(folder / 'config.json').write_text(json.dumps(config))
	return folder


class Crun:
	"""Runs crun in a mount namespace of its own and times it there: crun refuses a host whose v2 hierarchy
	lies beside v1 controllers, so that mount is taken out of its sight."""

	def __enter__(self):
		self.worker = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
		return self

	def __exit__(self, *error):
		self.worker.stdin.close()
		self.worker.wait()

	def __call__(self, *args):
		"""Seconds that one call took."""
		print(json.dumps(['crun', '--cgroup-manager=cgroupfs', *args]), file=self.worker.stdin, flush=True)
		answer = json.loads(self.worker.stdout.readline())
		assert isinstance(answer, float), answer
		return answer


def serve():
	libc = ctypes.CDLL(None, use_errno=True)
	if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(None, b'/', None, MS_REC_PRIVATE, None) != 0:
		raise OSError(ctypes.get_errno(), 'mount namespace')
	libc.umount2(UNIFIED, 2)
	for line in sys.stdin:
		try:
			answer = common.timed(json.loads(line))
		except RuntimeError as error:
			answer = str(error)
		print(json.dumps(answer), flush=True)


if __name__ == '__main__':
	serve()
