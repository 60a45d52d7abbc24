# SPDX-License-Identifier: Apache-2.0
"""A server that a sandbox shows by a preview: run inside, by Python's own library. Prints its port when it listens.

  /              a page that says so
  /head          the request's line and fields, as they came, as JSON
  /raw/HEX       these very bytes as the answer; /cut/HEX: then a reset, /close/HEX: then the end
  /sum           length and SHA-256 of the body
  /count         how often it was posted to
  /big/N, /big/N/chunked   N bytes
  /events        an event; another one once /go was asked for
  /hints         an informational answer first
  /slow/S        an answer after S seconds
  /ws            a WebSocket that echoes"""
import base64
import hashlib
import http.server
import json
import os
import socket
import struct
import sys
import threading
import time

GO, COUNT = threading.Event(), []
BLOCK = bytes(range(256)) * 256
GUID = b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'


class Handler(http.server.BaseHTTPRequestHandler):
	protocol_version = 'HTTP/1.1'

	def log_message(self, *args):
		pass

	def answer(self, body, kind='text/plain', **fields):
		self.send_response(200)
		self.send_header('Content-Type', kind)
		for name, value in fields.items():
			self.send_header(name.replace('_', '-'), value)
		self.send_header('Content-Length', str(len(body)))
		self.end_headers()
		if self.command != 'HEAD':
			self.wfile.write(body)

	def chunk(self, data):
		self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
		self.wfile.flush()

	def body(self):
		if self.headers.get('Transfer-Encoding') == 'chunked':
			while size := int(self.rfile.readline(), 16):
				while size:
					part = self.rfile.read(min(size, 65536))
					size -= len(part)
					yield part
				self.rfile.readline()
			self.rfile.readline()
			return
		left = int(self.headers.get('Content-Length', 0))
		while left:
			part = self.rfile.read(min(left, 65536))
			assert part
			left -= len(part)
			yield part

	def do_GET(self):
		path, _, rest = self.path.partition('?')[0][1:].partition('/')
		getattr(self, 'on_' + path if path and hasattr(self, 'on_' + path) else 'on_page')(rest)

	do_POST = do_PUT = do_HEAD = do_DELETE = do_OPTIONS = do_GET

	def on_page(self, rest):
		list(self.body())
		self.answer(b'<!doctype html><title>inside</title><h1>hello from inside</h1>', 'text/html')

	def on_head(self, rest):
		list(self.body())
		self.answer(json.dumps({'line': self.requestline, 'fields': self.headers.items()}).encode())

	def on_raw(self, rest):
		self.wfile.write(bytes.fromhex(rest))
		self.wfile.flush()

	def on_close(self, rest):
		self.on_raw(rest)
		self.close_connection = True

	def on_cut(self, rest):
		self.on_close(rest)
		self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
		with open(os.devnull) as nothing:
			os.dup2(nothing.fileno(), self.connection.fileno()) # the library would end it in order first

	def on_sum(self, rest):
		n, digest = 0, hashlib.sha256()
		for part in self.body():
			n += len(part)
			digest.update(part)
		self.answer(b'%d %s' % (n, digest.hexdigest().encode()))

	def on_count(self, rest):
		COUNT.extend([1] * (self.command == 'POST'))
		self.answer(b'%d' % len(COUNT))

	def on_big(self, rest):
		size, _, way = rest.partition('/')
		self.send_response(200)
		self.send_header('Transfer-Encoding', 'chunked') if way else self.send_header('Content-Length', size)
		self.end_headers()
		for at in range(0, int(size), len(BLOCK)):
			block = BLOCK[:int(size) - at]
			self.chunk(block) if way else self.wfile.write(block)
		if way:
			self.wfile.write(b'0\r\nX-Trailer: 1\r\n\r\n')

	def on_events(self, rest):
		self.send_response(200)
		self.send_header('Content-Type', 'text/event-stream')
		self.send_header('Transfer-Encoding', 'chunked')
		self.end_headers()
		self.chunk(b'data: one\n\n')
		if GO.wait(20):
			self.chunk(b'data: two\n\n')
		self.wfile.write(b'0\r\n\r\n')

	def on_go(self, rest):
		GO.set()
		self.answer(b'gone')

	def on_hints(self, rest):
		self.wfile.write(b'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n')
		self.answer(b'after')

	def on_slow(self, rest):
		time.sleep(float(rest))
		self.answer(b'slow')

	def on_ws(self, rest):
		accept = base64.b64encode(hashlib.sha1(self.headers['Sec-WebSocket-Key'].encode() + GUID).digest()).decode()
		self.send_response(101)
		for name, value in (('Upgrade', 'websocket'), ('Connection', 'Upgrade'), ('Sec-WebSocket-Accept', accept), ('Set-Cookie', 'cloche_preview=mine; Path=/')):
			self.send_header(name, value)
		self.end_headers()
		while frame := self.rfile.read(2):
			n = frame[1] & 127
			size = n if n < 126 else int.from_bytes(self.rfile.read(2 if n == 126 else 8), 'big')
			mask, data = self.rfile.read(4), self.rfile.read(size)
			data = (int.from_bytes(data, 'big') ^ int.from_bytes((mask * (size // 4 + 1))[:size], 'big')).to_bytes(size, 'big')
			op = {8: 8, 9: 10}.get(frame[0] & 15, frame[0] & 15)
			head = bytes([128 | op]) + (bytes([size]) if size < 126 else b'\x7e' + size.to_bytes(2, 'big') if size < 65536 else b'\x7f' + size.to_bytes(8, 'big'))
			self.wfile.write(head + data)
			if op == 8:
				break
		self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
	request_queue_size = 128
	daemon_threads = True


if __name__ == '__main__':
	server = Server(('127.0.0.1', int(sys.argv[1])), Handler)
	print(server.server_port, flush=True)
	server.serve_forever()
