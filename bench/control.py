# SPDX-License-Identifier: Apache-2.0
"""An exec asked for over a supervisor's control socket (src/control/wire.h): what an embedding program pays."""
import json
import socket
import struct


class Control:
	def __init__(self, path):
		self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
		self.socket.connect(str(path))
		self.stream = self.socket.makefile('rb')

	def frame(self):
		length, kind = struct.unpack('<IB3x', self.stream.read(8))
		return chr(kind), self.stream.read(length)

	def exec(self, *argv):
		"""Runs a command to its end; returns its row."""
		request = json.dumps({'request': 'exec', 'spec': {'argv': argv}}).encode()
		self.socket.sendall(struct.pack('<IB3x', len(request), ord('J')) + request)
		while True:
			kind, payload = self.frame()
			answer = json.loads(payload) if kind == 'J' else {}
			if answer.get('ok') is False:
				raise RuntimeError(answer['error'])
			if 'row' in answer:
				return answer['row']

	def close(self):
		self.stream.close()
		self.socket.close()
