# SPDX-License-Identifier: Apache-2.0
"""The internet of the network tests, run in a network namespace of its own: HTTP, HTTPS (any name, a CA of its own),
DNS over UDP and TCP, DNS that only fails (port 54), a raw port, and a look at every packet that comes in. What each saw is a line of JSON in
LOGS/NAME.log: the independent witness that the record is compared with.

usage: upstream.py ADDRESS LOGS"""
import base64
import hashlib
import json
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

HTTP, HTTPS, DNS, DNS_FAILING, RAW = 80, 443, 53, 54, 18081
MARK = 65009
address, logs = sys.argv[1], pathlib.Path(sys.argv[2])
lock = threading.Lock()
kept = {'head': ''} # of the last request for /keep: what any later one for /kept is told


def note(log, **what):
	with lock, open(logs / f'{log}.log', 'a') as file:
		file.write(json.dumps(dict(what, t=time.time())) + '\n')


def make_certificates():
	def openssl(*args):
		subprocess.run(['openssl', *args], check=True, cwd=logs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
	openssl('req', '-x509', *curve, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '30', '-subj', '/CN=upstream CA')
	openssl('req', *curve, '-keyout', 'leaf.key', '-out', 'leaf.csr', '-subj', '/CN=upstream')
	# No client takes a wildcard right below the top.
	names = [f'{name}.test' for name in ('allowed', 'denied', 'cname', 'rebind', 'mixed', 'big')]
	names += ['*.allowed.test', '*.wild.test', '*.cdn.test']
	(logs / 'ext').write_text('subjectAltName=' + ','.join(f'DNS:{name}' for name in names) + f',IP:{address}\n')
	openssl('x509', '-req', '-in', 'leaf.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30',
		'-extfile', 'ext', '-out', 'leaf.pem')


class Stream:
	"""A connection that is read up to a mark or by count."""

	def __init__(self, sock):
		self.sock, self.bytes = sock, b''

	def more(self):
		data = self.sock.recv(65536)
		if not data:
			raise EOFError
		self.bytes += data

	def until(self, mark):
		while mark not in self.bytes:
			self.more()
		head, self.bytes = self.bytes.split(mark, 1)
		return head

	def take(self, n):
		while len(self.bytes) < n:
			self.more()
		data, self.bytes = self.bytes[:n], self.bytes[n:]
		return data


def read_body(stream, headers):
	if 'chunked' not in headers.get('transfer-encoding', '').lower():
		return stream.take(int(headers.get('content-length', 0)))
	body = b''
	while n := int(stream.until(b'\r\n').split(b';')[0], 16):
		body += stream.take(n)
		stream.take(2)
	while stream.until(b'\r\n'):
		pass
	return body


def answer(sock, status, body, extra=''):
	sock.sendall(f'HTTP/1.1 {status} X\r\n{extra}Content-Length: {len(body)}\r\n\r\n'.encode() + body)


def answer_stream(sock):
	sock.sendall(b'HTTP/1.1 200 X\r\nTrailer: x-end\r\nTransfer-Encoding: chunked\r\n\r\n')
	for _ in range(5):
		sock.sendall(b'5\r\ntick\n\r\n')
		time.sleep(.1)
	sock.sendall(b'0\r\nx-end: yes\r\n\r\n')


def echo_websocket(stream, headers):
	key = headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
	accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
	stream.sock.sendall('HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
		f'Sec-WebSocket-Accept: {accept}\r\n\r\n'.encode())
	while True:
		first, n = stream.take(2)
		masked, n = n & 128, n & 127
		if n >= 126:
			size = 2 if n == 126 else 8
			n = int.from_bytes(stream.take(size), 'big')
		mask = stream.take(4) if masked else b'\0' * 4
		data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(stream.take(n)))
		note('ws', op=first & 15, n=n)
		length = bytes([n]) if n < 126 else b'\x7e' + struct.pack('>H', n) if n < 65536 else b'\x7f' + struct.pack('>Q', n)
		stream.sock.sendall(bytes([first]) + length + data)
		if first & 15 == 8:
			return


def one_request(stream, tls, sni):
	"""Whether another may follow on the same connection."""
	head, sock = stream.until(b'\r\n\r\n').decode('latin1'), stream.sock
	lines = head.split('\r\n')
	method, path, _ = lines[0].split(' ', 2)
	fields = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(':') for line in lines[1:])]
	headers = dict(fields)
	note('http', tls=tls, sni=sni, method=method, path=path, host=headers.get('host'), head=head)
	if headers.get('expect', '').lower() == '100-continue':
		if path.startswith('/refuse'):
			answer(sock, 417, b'no', 'Connection: close\r\n')
			return False
		sock.sendall(b'HTTP/1.1 100 Continue\r\n\r\n')
	if headers.get('upgrade', '').lower() == 'websocket':
		echo_websocket(stream, headers)
		return False
	if path == '/keep':
		kept['head'] = head
	body = read_body(stream, headers)
	digest = hashlib.sha256(body).hexdigest()
	note('body', path=path, n=len(body), sha=digest, head64=body[:64].decode('latin1'))
	if path.startswith('/stream'):
		answer_stream(sock)
	elif path.startswith('/bytes/'):
		answer(sock, 200, b'z' * int(path.split('/')[2]))
	elif path == '/kept':
		answer(sock, 200, kept['head'].encode('latin1'), ''.join(f'X-Kept: {line}\r\n' for line in kept['head'].split('\r\n')))
	elif path.startswith('/noclen'):
		sock.sendall(b'HTTP/1.1 200 X\r\nConnection: close\r\n\r\n' + b'y' * 100000)
		return False
	elif path.startswith('/redirect'):
		answer(sock, 302, b'', f"Location: {path.partition('?')[2]}\r\n")
	else:
		echo = dict(method=method, path=path, headers=fields, n=len(body), sni=sni, sha=digest)
		answer(sock, 200, json.dumps(echo).encode() + b'\n', 'Content-Type: application/json\r\n')
	return headers.get('connection', '').lower() != 'close'


def http(sock, tls=False, sni=None):
	stream = Stream(sock)
	try:
		while one_request(stream, tls, sni):
			pass
	except (EOFError, OSError, ValueError):
		pass
	finally:
		sock.close()


def https(sock):
	context, got = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), {}
	context.load_cert_chain(logs / 'leaf.pem', logs / 'leaf.key')
	context.sni_callback = lambda _sock, name, _context: got.update(name=name)
	try:
		wrapped = context.wrap_socket(sock, server_side=True)
	except OSError as error:
		note('tlsfail', error=str(error), sni=got.get('name'))
		return
	http(wrapped, True, got.get('name'))


def raw(sock):
	"""Reads to the end of file, then says what came."""
	n, digest = 0, hashlib.sha256()
	while data := sock.recv(65536):
		n += len(data)
		digest.update(data)
	note('raw', n=n, sha=digest.hexdigest())
	sock.sendall(f'{n} {digest.hexdigest()}\n'.encode())
	sock.close()


def labels(name):
	return b''.join(bytes([len(label)]) + label.encode('latin1') for label in name.split('.')) + b'\0'


FIXED = {'loop.test': '127.0.0.1', 'meta.test': '169.254.169.254', 'priv.test': '10.0.0.5'}
asked = {}


def records(name, kind):
	"""(owner, type, ttl, data) each; none: no such name."""
	def a(owner, to, ttl=30):
		return (owner, 1, ttl, socket.inet_aton(to))
	low = name.lower()
	asked[low] = asked.get(low, 0) + (kind == 1)
	if low == 'cname.test':
		return [(name, 5, 30, labels('edge.cdn.test')), ('edge.cdn.test', 5, 30, labels('pop7.cdn.test')),
			a('pop7.cdn.test', address)]
	if low == 'rebind.test':
		return [a(name, address if asked[low] % 2 else '127.0.0.1', 0)]
	if low == 'mixed.test':
		return [a(name, address), a(name, '127.0.0.1')]
	if low == 'crossed.test':
		return [a(name, '127.0.0.1'), a(name, address)]
	if low == 'big.test':
		return [a(name, address)] * 60
	if low in FIXED:
		return [a(name, FIXED[low])]
	return [a(name, address)] if low.endswith('.test') else []


def dns_reply(query, tcp):
	at, parts = 12, []
	while query[at]:
		parts.append(query[at + 1:at + 1 + query[at]].decode('latin1'))
		at += query[at] + 1
	name, kind, end = '.'.join(parts), int.from_bytes(query[at + 1:at + 3], 'big'), at + 5
	note('dns', name=name, type=kind, tcp=tcp)
	if name == 'old.test' and query[11]: # a server that knows no EDNS
		return query[:2] + b'\x81\x81' + bytes(8)
	all_of_it = records(name, kind)
	fit = [record for record in all_of_it if record[1] in (kind, 5)]
	body = b''.join(labels(owner) + struct.pack('>HHIH', code, 1, ttl, len(data)) + data for owner, code, ttl, data in fit)
	flags, n = 0x8180 | (0 if all_of_it else 3), len(fit)
	if not tcp and len(body) > 480:
		flags, body, n = flags | 0x200, b'', 0
	return query[:2] + struct.pack('>HHHHH', flags, 1, n, 0, 0) + query[12:end] + body


def datagrams(port):
	"""A socket for them, bound by who starts a thread with it: then all are there."""
	sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	sock.bind((address, port))
	return sock


def dns_that_fails(sock):
	"""A server that is up, but of no use."""
	while True:
		query, sender = sock.recvfrom(4096)
		sock.sendto(query[:2] + b'\x81\x82' + query[4:6] + bytes(6) + query[12:query.index(b'\0', 12) + 5], sender)


def echo_udp(sock):
	"""Datagrams to the raw port come back."""
	while True:
		data, sender = sock.recvfrom(65536)
		sock.sendto(data, sender)


def dns_udp(sock):
	while True:
		query, sender = sock.recvfrom(4096)
		try:
			sock.sendto(dns_reply(query, False), sender)
		except (IndexError, struct.error):
			note('dns', name=None, bytes=query.hex())


def dns_tcp(sock):
	stream = Stream(sock)
	try:
		while True:
			reply = dns_reply(stream.take(int.from_bytes(stream.take(2), 'big')), True)
			sock.sendall(struct.pack('>H', len(reply)) + reply)
	except (EOFError, OSError, IndexError):
		sock.close()


def watch_packets():
	"""Destination, protocol and port of whatever comes in."""
	sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
	while True:
		packet, (_, ether, direction, *_) = sock.recvfrom(65536)
		if direction == socket.PACKET_OUTGOING:
			continue
		if ether == 0x800:
			behind, protocol, to = packet[(packet[0] & 15) * 4:], packet[9], socket.inet_ntoa(packet[16:20])
		elif ether == 0x86dd:
			behind, protocol, to = packet[40:], packet[6], socket.inet_ntop(socket.AF_INET6, packet[24:40])
			if protocol in (0, 58):
				continue # neighbours
		else:
			continue
		port = int.from_bytes(behind[2:4], 'big') if protocol in (6, 17) else 0
		note('wire', to=to, protocol={6: 'tcp', 17: 'udp'}.get(protocol, protocol), port=port)


def listen(port, serve):
	sock = socket.create_server((address, port), backlog=256)

	def accept():
		while True:
			threading.Thread(target=serve, args=(sock.accept()[0],), daemon=True).start()
	threading.Thread(target=accept, daemon=True).start()


make_certificates()
for where in ((HTTP, http), (HTTPS, https), (RAW, raw), (DNS, dns_tcp)):
	listen(*where)
threading.Thread(target=watch_packets, daemon=True).start()
for work, port in ((dns_udp, DNS), (dns_that_fails, DNS_FAILING), (echo_udp, RAW)):
	threading.Thread(target=work, args=(datagrams(port),), daemon=True).start()
# Taken, so that what the tests mark time with (world.py) is not answered: the kernel sends only so many refusals a second.
mark = datagrams(MARK)
print('ready', flush=True)
os.read(0, 1) # whoever started this is gone
