# SPDX-License-Identifier: Apache-2.0
"""A model that follows a script, over TLS: answers each request of the Responses API with the next command to run, then
with a word, by server-sent events or on one WebSocket. What came is a line each of LOG.

usage: model.py ADDRESS PORT CERTIFICATE KEY LOG STEPS (a JSON list of commands)"""
import base64
import hashlib
import http.server
import json
import os
import ssl
import struct
import sys
import threading

address, port, certificate, key, log, steps = sys.argv[1], int(sys.argv[2]), *sys.argv[3:6], json.loads(sys.argv[6])
USAGE = {'input_tokens': 1, 'output_tokens': 1, 'total_tokens': 2}


def note(**what):
	with open(log, 'a') as file:
		file.write(json.dumps(what) + '\n')


def answer(request, n_before=0):
	"""The events of one turn behind n_before done commands, and how many are done; warming up gets no item."""
	begin, end = {'type': 'response.created', 'response': {'id': 'r'}}, {'type': 'response.completed', 'response': {'id': 'r',
		'usage': USAGE}}
	if request.get('generate') is False:
		return (begin, end), n_before
	n = (n_before if request.get('previous_response_id') else 0) + sum(item.get('type') == 'function_call_output' for item in request['input'])
	item = {'type': 'message', 'id': 'm', 'role': 'assistant', 'content': [{'type': 'output_text', 'text': 'finished'}]}
	if n < len(steps):
		item = {'type': 'function_call', 'id': f'f{n}', 'call_id': f'c{n}', 'name': 'exec_command',
			'arguments': json.dumps({'cmd': steps[n]})}
	return (begin, {'type': 'response.output_item.done', 'output_index': 0, 'item': item}, end), n


class Model(http.server.BaseHTTPRequestHandler):
	protocol_version = 'HTTP/1.1'

	def log_message(self, *_):
		pass

	def note(self, what, data):
		note(what=what, path=self.path, authorization=self.headers.get('authorization'), n=len(data),
			sha=hashlib.sha256(data).hexdigest())

	def head(self, status, **fields):
		self.send_response(status)
		for name, value in fields.items():
			self.send_header(name.replace('_', '-'), value)
		self.end_headers()

	def do_GET(self):
		if self.headers.get('upgrade', '').lower() == 'websocket' and self.path.endswith('/responses'):
			self.websocket()
		else:
			self.head(404, Content_Length='0')

	def do_POST(self):
		data = self.rfile.read(int(self.headers['content-length']))
		self.note('post', data)
		if not self.path.endswith('/responses'):
			self.head(404, Content_Length='0')
			return
		self.head(200, Content_Type='text/event-stream', Transfer_Encoding='chunked')
		for event in answer(json.loads(data))[0]:
			text = b'data: ' + json.dumps(event).encode() + b'\n\n'
			self.wfile.write(b'%x\r\n%s\r\n' % (len(text), text))
		self.wfile.write(b'0\r\n\r\n')

	def websocket(self):
		accept = self.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
		self.head(101, Upgrade='websocket', Connection='Upgrade',
			Sec_WebSocket_Accept=base64.b64encode(hashlib.sha1(accept.encode()).digest()).decode())
		self.close_connection, n_done = True, 0
		while head := self.rfile.read(2):
			n = head[1] & 127
			if n >= 126:
				n = int.from_bytes(self.rfile.read(2 if n == 126 else 8), 'big')
			mask = self.rfile.read(4)
			data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(self.rfile.read(n)))
			if head[0] & 15 != 1:
				self.frame(head[0] & 15, data)
				continue
			self.note('message', data)
			events, n_done = answer(json.loads(data), n_done)
			for event in events:
				self.frame(1, json.dumps(event).encode())

	def frame(self, opcode, data):
		opcode = 10 if opcode == 9 else opcode
		length = bytes([len(data)]) if len(data) < 126 else b'\x7e' + struct.pack('>H', len(data))
		self.wfile.write(bytes([128 | opcode]) + length + data)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = http.server.ThreadingHTTPServer((address, port), Model)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print('ready', flush=True)
os.read(0, 1) # whoever started this is gone
