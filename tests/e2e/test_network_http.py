# SPDX-License-Identifier: Apache-2.0
"""HTTP through the gateway, over plain and opened flows: what arrives is what was meant, what may not arrive does not,
and secrets are put in only where they belong."""
import hashlib
import os
import subprocess

import pytest

import harness
import world as world_

KEY = 'sk-ant-api03-' + 'Zq7' * 9 + '-xY'


def allow(world, *hosts):
	return (*(word for host in hosts for word in ('--allow', host)), *world.net)


def heads(world):
	return [entry['head'] for entry in world.log('http')]


def test_leave_to_send_a_body_comes_from_the_server(online, world):
	run = online.bash('''
head -c 2000000 /dev/zero > /tmp/b
for u in http://allowed.test/echo https://allowed.test/echo; do for h in 100-continue 100-Continue; do
timeout 20 curl -sS --http1.1 --expect100-timeout 10 -H "Expect: $h" --data-binary @/tmp/b $u -o /dev/null -w '%{http_code} %{time_total}\\n'
done; done
timeout 20 curl -sS --expect100-timeout 10 -H 'Expect: 100-continue' --data-binary @/tmp/b http://allowed.test/refuse -o /dev/null -w '%{http_code} %{size_upload}\\n'
''', options=allow(world, 'allowed.test'))
	*good, refused = [line.split() for line in run.lines]
	assert [code for code, _ in good] == ['200'] * 4, run
	assert all(float(seconds) < 3 for _, seconds in good), run
	assert refused[0] == '417' and int(refused[1]) < 200000, run
	digest = hashlib.sha256(bytes(2000000)).hexdigest()
	assert [(entry['n'], entry['sha']) for entry in world.log('body')] == [(2000000, digest)] * 4
	requests = run.record.events('net.http')
	assert [request['body_bytes'] for request in requests] == [2000000] * 5
	assert all(request['body_truncated'] for request in requests[:4])
	assert [request['body_sha256'] for request in requests[:4]] == [digest] * 4


PIPELINE = '''
import socket, sys, time
R = lambda p, b=b'': b'POST /%s HTTP/1.1\\r\\nHost: allowed.test\\r\\nAuthorization: Bearer x\\r\\nContent-Length: %d\\r\\n\\r\\n' % (p, len(b)) + b
s = socket.create_connection(('allowed.test', 80))
s.sendall(R(b'1', b'abcde') + R(b'2') + R(b'3', b'xyz')[:30]); time.sleep(.3)
for x in R(b'3', b'xyz')[30:]: s.sendall(bytes([x]))
s.settimeout(10); d = b''
while d.count(b'HTTP/1.1 200') < 3: d += s.recv(9999)
print([d.index(b'"/%d"' % i) < d.index(b'"/%d"' % (i + 1)) for i in (1, 2)])
'''


URGENT = '''
import socket
s = socket.create_connection(('allowed.test', 80)); s.settimeout(10)
s.sendall(b'POST /urgent HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: 6\\r\\n\\r\\nab')
s.send(b'!', socket.MSG_OOB); s.sendall(b'cd'); s.send(b'!', socket.MSG_OOB); s.sendall(b'ef')
print(s.recv(12))
'''


def test_urgent_data_stands_beside_the_rest(online, world):
	"""A read stops short at it; what is behind must not be waited for."""
	run = online.py(URGENT, options=allow(world, 'allowed.test'))
	assert run.out == "b'HTTP/1.1 200'\n", run
	assert [request['body_bytes'] for request in run.record.events('net.http')] == [6]


def test_requests_in_one_packet_and_byte_by_byte(online, world):
	run = online.py(PIPELINE, options=allow(world, 'allowed.test'))
	assert run.out == '[True, True]\n', run
	requests = run.record.events('net.http')
	assert [request['url'] for request in requests] == [f'http://allowed.test/{i}' for i in (1, 2, 3)]
	assert [request.get('body') for request in requests] == ['abcde', None, 'xyz']
	assert len({request['flow'] for request in requests}) == 1


def test_streams_trailers_and_ends(online, world):
	run = online.bash('''
curl -sS -N http://allowed.test/stream -D - | tr -d '\\r'
curl -sS http://allowed.test/noclen | wc -c
curl -sS -I http://allowed.test/bytes/777 | grep -ci 'content-length: 777'
curl -sS -H 'Transfer-Encoding: chunked' -d 'in chunks' http://allowed.test/c -o /dev/null -w '%{http_code}\\n'
printf 'GET /half HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n' | nc -N allowed.test 80 | head -1 | tr -d '\\r'
''', options=allow(world, 'allowed.test'))
	assert 'tick\n' * 5 in run.out, run
	assert '100000\n' in run.out and '\n1\n' in run.out and '\n200\n' in run.out, run
	assert 'HTTP/1.1 200 X' in run.lines[-1], run
	assert world.log('body')[-2]['n'] == 9


WEBSOCKET = '''
import socket, ssl, os, struct, base64, time
def fr(op, d):
    m = os.urandom(4); n = len(d)
    h = bytes([0x80 | op]) + (bytes([0x80 | n]) if n < 126 else b'\\xfe' + struct.pack('>H', n) if n < 65536 else b'\\xff' + struct.pack('>Q', n))
    return h + m + bytes(c ^ m[i % 4] for i, c in enumerate(d))
for tls in (0, 1):
    s = socket.create_connection(('allowed.test', 443 if tls else 80))
    if tls: s = ssl.create_default_context().wrap_socket(s, server_hostname='allowed.test')
    s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: allowed.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: ' + base64.b64encode(os.urandom(16)) + b'\\r\\n\\r\\n')
    print(s.recv(999)[:12]); s.sendall(fr(1, b'x' * 70000) + fr(9, b'ping')); n = 0
    while n < 70016: n += len(s.recv(99999))
    time.sleep(2); s.sendall(fr(1, b'late')); print(s.recv(99), n); s.close()
'''


def test_websocket_and_its_messages(online, world):
	run = online.py(WEBSOCKET, options=allow(world, 'allowed.test'))
	assert run.out == "b'HTTP/1.1 101'\nb'\\x81\\x04late' 70016\n" * 2, run
	upgrades = run.record.events('net.http')
	assert [(x['upgrade'], x['status']) for x in upgrades] == [('websocket', 101)] * 2
	messages = [message for entry in run.record.json('net') for message in entry.get('messages', ())]
	for flow in (x['flow'] for x in upgrades):
		for direction in ('out', 'in'):
			mine = [(m['opcode'], m['bytes'], m['body'][:4]) for m in messages
				if (m['flow'], m['direction']) == (flow, direction)]
			assert mine == [(1, 70000, 'xxxx'), (9, 4, 'ping'), (1, 4, 'late')]


UNFINISHED = '''
import base64, os, socket, struct
def frame(op, data, end=True):
	key = os.urandom(4)
	return bytes([128 * end + op, 128 + len(data)]) + key + bytes(byte ^ key[i % 4] for i, byte in enumerate(data))
for chunks in ([frame(1, b'first', False), frame(0, b', and more', False)], [frame(2, b'half of a frame')[:-7]],
	[frame(1, b'around', False), frame(9, b'a ping')[:-4]], [frame(1, b'before', False), frame(1, b'what is wrong')]):
	sock = socket.create_connection(('allowed.test', 80))
	sock.sendall(b'GET /ws HTTP/1.1\\r\\nHost: allowed.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'
		b'Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: ' + base64.b64encode(bytes(16)) + b'\\r\\n\\r\\n')
	print(sock.recv(999)[9:12].decode())
	for chunk in chunks:
		sock.sendall(chunk)
	sock.close()
'''


def test_websocket_messages_that_never_end(online, world):
	"""They have left all the same."""
	run = online.py(UNFINISHED, options=allow(world, 'allowed.test'))
	assert run.lines == ['101'] * 4, run
	told = [(event['opcode'], event['body'], event.get('error')) for event in run.record.events('net.ws')
		if event['direction'] == 'out']
	error = 'it was not finished'
	assert sorted(told) == [(1, 'around', error), (1, 'before', error), (1, 'first, and more', error), (2, 'half of ', error),
		(9, 'a ', error)]
	messages = [message for entry in run.record.json('net') for message in entry['messages']]
	assert [message['error'] for message in messages if message['direction'] == 'out'] == [error] * 5


RAW = '''
import socket, sys
for port, text in ((80, b'CONNECT denied.test:443 HTTP/1.1\\r\\nHost: denied.test:443\\r\\n\\r\\n'),
	(80, b'GET http://denied.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'),
	(80, b'GET /h HTTP/1.1\\r\\nHost: denied.test\\r\\n\\r\\n'),
	(80, b'GET /u HTTP/1.1\\r\\nHost: allowed.test\\r\\nUpgrade: tcp-tunnel\\r\\nConnection: Upgrade\\r\\n\\r\\nRAW'),
	(80, b'GET /f HTTP/1.1\\r\\nHost: allowed.test\\r\\nX: a\\r\\n b\\r\\n\\r\\n'),
	(80, b'POST /l HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /s HTTP/1.1\\r\\n\\r\\n')):
	s = socket.create_connection(('allowed.test', port)); s.sendall(text); s.settimeout(5)
	try: print(s.recv(12))
	except OSError as e: print(type(e).__name__)
'''


def test_ways_around_the_target(online, world):
	run = online.py(RAW, options=allow(world, 'allowed.test'))
	assert run.lines == ["b'HTTP/1.1 403'"] * 4 + ["b'HTTP/1.1 400'"] * 2, run
	assert world.log('http') == []
	refused = run.record.events('net.refused')
	assert [event.get('host') for event in refused[:3]] == ['denied.test'] * 3
	assert all(event['stage'] == 'http' and event['rule'] and event['reason'] for event in refused)
	assert len(refused) == 6


def test_proxy_credentials_stay_here(online, world):
	run = online.sh("curl -sS -o /dev/null -w '%{http_code}' -H 'Proxy-Authorization: Basic eDp5' http://allowed.test/",
		options=allow(world, 'allowed.test'))
	assert run.out == '200'
	assert 'proxy-authorization' not in heads(world)[0].lower()


HIDING = '''
import os, base64, ssl, socket, time
k = os.environ['API_KEY'].encode()
def go(host, tls, head, body=b'', cut=None):
    s = socket.create_connection((host, 443 if tls else 80))
    if tls: s = ssl.create_default_context().wrap_socket(s, server_hostname=host)
    q = head.replace(b'HOST', host.encode()) + b'Content-Length: %d\\r\\nConnection: close\\r\\n\\r\\n' % len(body) + body
    if cut: i = q.index(k) + cut; s.sendall(q[:i]); time.sleep(.3); q = q[i:]
    s.sendall(q)
    try:
        d = b''
        while x := s.recv(9999): d += x
    except OSError as e: d = str(e).encode()
    print(host, tls, d[9:12].decode(), k in d or base64.b64encode(b'u:' + k) in d)
H = b'POST /s HTTP/1.1\\r\\nHost: HOST\\r\\n'
for host in ('allowed.test', 'other.wild.test'):
    for tls in (True, False):
        go(host, tls, H + b'Authorization: Bearer ' + k + b'\\r\\n')
        go(host, tls, H + b'Authorization: Basic ' + base64.b64encode(b'u:' + k) + b'\\r\\n')
        go(host, tls, H + b'X-Api-Key: ' + k + b'\\r\\n', cut=len(k) // 2)
        go(host, tls, H, b'{"k":"' + k + b'"}')
        go(host, tls, H.replace(b'/s', b'/s?k=' + k))
        go(host, tls, H + b'X-E: ' + b''.join(b'%%%02X' % c for c in k) + b'\\r\\n')
'''


def kept_anywhere(folder, text):
	found = subprocess.run(['grep', '-rlaF', text, folder], capture_output=True, text=True)
	return found.stdout


def test_secret_reaches_only_its_host(online, world):
	run = online.py(HIDING, options=(*allow(world, 'allowed.test', '*.wild.test'), '--secret', 'API_KEY@allowed.test'),
		env={'API_KEY': KEY})
	lines = [line.split() for line in run.lines]
	at_home, elsewhere = lines[:6], lines[6:]
	assert [code for _, _, code, _ in at_home] == ['200'] * 6, run
	# The server repeats head and body: what comes back is the stand-in, in every place.
	assert [back for _, _, _, back in at_home[:3]] == ['True'] * 3, run
	assert [code for _, _, code, _ in elsewhere] == ['403'] * 18, run
	got = heads(world)
	assert len(got) == 6 and all('allowed.test' in head for head in got)
	assert f'Authorization: Bearer {KEY}\r\n' in got[0]
	assert f'X-Api-Key: {KEY}\r\n' in got[2]
	assert f'/s?k={KEY} ' in got[4]
	assert world.log('body')[3]['head64'] == f'{{"k":"{KEY}"}}'
	assert KEY not in got[5]
	misuse = run.record.events('secret.misuse')
	assert [event['name'] for event in misuse] == ['API_KEY'] * 18
	assert {event['host'] for event in misuse} == {'allowed.test', 'other.wild.test'}
	assert {event['where'] for event in misuse} == {'header', 'body', 'url'}
	assert [request['secrets'] for request in run.record.events('net.http')[:5]] == [['API_KEY']] * 5
	assert KEY not in run.out + run.err
	assert kept_anywhere(online.state, KEY) == ''


def test_stand_in_passes_in_a_body_as_it_is(online, world):
	"""pass=HOST: what an agent has read of its variables goes to its model again and again. In a header it is refused all
	the same, and so is everything for other hosts."""
	run = online.sh("""for u in https://other.wild.test http://other.wild.test https://deep.wild.test; do
curl -sS $u/echo -d "{\\"read\\": \\"$API_KEY\\"}" -o /dev/null -w '%{http_code}\\n'; done
curl -sS https://other.wild.test/ -H "X-Api-Key: $API_KEY" -w '%{http_code}\\n'""",
		options=(*allow(world, 'allowed.test', '*.wild.test'), '--secret', 'API_KEY@allowed.test,pass=other.wild.test'),
		env={'API_KEY': KEY})
	assert run.lines[:3] == ['200', '200', '403'], run
	assert 'It may go to allowed.test only' in run.lines[3] and run.lines[4] == '403', run
	passed = run.record.events('net.http')
	stand_in = passed[0]['body'][10:-2]
	assert [body['head64'] for body in world.log('body')] == [f'{{"read": "{stand_in}"}}'] * 2 and stand_in != KEY
	assert [(event['host'], event.get('secrets'), event['stand_ins']) for event in passed[:2]] == [
		('other.wild.test', None, ['API_KEY'])] * 2
	assert [(event['host'], event['where']) for event in run.record.events('secret.misuse')] == [
		('deep.wild.test', 'body'), ('other.wild.test', 'header')]
	assert "API_KEY's stand-in sent 1 time at other.wild.test" in ' '.join(run.err.split()), run.err
	totals = run.record.show()['network']['secrets']
	assert totals == [{'name': 'API_KEY', 'used': 0, 'passed': 1, 'host': 'other.wild.test'}] * 2


OTHER_DOORS = '''
curl -sS https://allowed.test/keep -H "X-Api-Key: $API_KEY" -o /dev/null -w '%{http_code}\\n'
for way in https://allowed.test/ http://allowed.test/ https://a.wild.test/ http://a.wild.test/; do
	curl -sS -i $way'kept' | grep -ao 'X-Api-Key: .*' | tr -d '\\r'
done
curl -sS -i http://allowed.test/kept -H 'Host: a.wild.test' | grep -ao 'X-Api-Key: .*' | tr -d '\\r'
curl -sS -i -0 -H 'Host:' http://allowed.test/kept | grep -ao 'X-Api-Key: .*' | tr -d '\\r'
for way in https://allowed.test/ http://a.wild.test/; do
	curl -sS -i -H 'Accept-Encoding: gzip' $way'kept' -o /dev/null
done
echo $API_KEY
'''


def test_value_comes_back_through_no_other_door(online, world):
	"""A server that keeps what it was told, asked for it without TLS and by another name that leads to the same place."""
	run = online.bash(OTHER_DOORS, options=(*allow(world, 'allowed.test', '*.wild.test'), '--secret', 'API_KEY@allowed.test:443'),
		env={'API_KEY': KEY})
	stand_in = run.lines[-1]
	assert stand_in != KEY and run.lines[0] == '200', run
	assert heads(world)[0].endswith(f'\r\nX-Api-Key: {KEY}')
	# Each way twice: in a field of the answer, and in its body.
	assert run.lines[1:-1] == [f'X-Api-Key: {stand_in}'] * 12, run
	assert KEY not in run.out
	assert all('gzip' not in head for head in heads(world)), 'answers have to be readable'


def test_name_in_a_request_gets_no_value(online, world):
	"""Without an allow list a request may name another host than its certificate does: the value stays here."""
	run = online.sh('''
curl -sS https://other.wild.test/ -H 'Host: allowed.test' -H "X-Api-Key: $API_KEY" -o /dev/null -w '%{http_code}\\n'
curl -sS http://other.wild.test/ -H 'Host: allowed.test' -H "X-Api-Key: $API_KEY" -o /dev/null -w '%{http_code}\\n'
''', options=('--net', 'open', *world.net, '--secret', 'API_KEY@allowed.test'), env={'API_KEY': KEY})
	assert run.lines == ['403', '403'], run
	assert world.log('http') == []
	assert [event['name'] for event in run.record.events('secret.misuse')] == ['API_KEY'] * 2


@pytest.fixture
def h2_server(world, tmp_path):
	"""nghttpd: HTTP/2 as another server speaks it, on a plain and a TLS port."""
	(tmp_path / 'big').write_bytes(os.urandom(5 << 20))
	(tmp_path / 'small').write_text('small\n')
	leaf = [str(world.logs / 'leaf.key'), str(world.logs / 'leaf.pem')]
	common = ['nghttpd', '-a', world_.UPSTREAM, '-d', str(tmp_path), '--trailer', 'x-end: yes', '--echo-upload']
	started = [subprocess.Popen(world.command(world.internet, *common, '--no-tls', '8080')),
		subprocess.Popen(world.command(world.internet, *common, '8443', *leaf))]
	for port in (8080, 8443):
		harness.wait_for(lambda port=port: subprocess.run(world.command(world.host, 'nc', '-z', world_.UPSTREAM, str(port)))
			.returncode == 0, f'nghttpd on {port}')
	yield tmp_path
	for process in started:
		process.kill()
		process.wait()


def test_http2_as_another_server_speaks_it(online, world, h2_server):
	run = online.bash('''
for u in http://allowed.test:8080 https://allowed.test:8443; do
for f in small big; do curl -sS --http2-prior-knowledge $u/$f -o /tmp/$f -w '%{http_code} %{http_version}\\n'; done
cat /tmp/small; sha256sum < /tmp/big
head -c 3000000 /dev/zero | curl -sS --http2-prior-knowledge -T - $u/up -o /dev/null -w '%{http_code} %{size_upload}\\n'
curl -sS --http2-prior-knowledge --parallel --parallel-immediate $(for i in $(seq 30); do echo $u/small; done) | sort | uniq -c | tr -s ' '
done
''', options=allow(world, 'allowed.test'))
	digest = hashlib.sha256((h2_server / 'big').read_bytes()).hexdigest()
	want = ['200 2', '200 2', 'small', f'{digest}  -', '200 3000000', ' 30 small']
	assert run.lines == want * 2, run
	requests = run.record.events('net.http')
	assert len(requests) == 66 and {request['protocol'] for request in requests} == {'h2'}
	uploads = [request for request in requests if request['method'] == 'PUT']
	assert [request['body_sha256'] for request in uploads] == [hashlib.sha256(bytes(3000000)).hexdigest()] * 2


def test_http2_stream_for_another_host(online, world, h2_server):
	run = online.bash('''
curl -sS --http2-prior-knowledge http://allowed.test:8080/small -H 'Host: denied.test' -w '%{http_code}\\n'
curl -sS --http2 https://allowed.test:8443/small -H 'Host: denied.test' -o /dev/null -w '%{http_code}\\n'
curl -sS --http2 https://allowed.test:8443/small -w '%{http_code}\\n'
''', options=allow(world, 'allowed.test'))
	assert 'Retrying will not help' in run.lines[0], run
	assert run.lines[1:] == ['403', '403', 'small', '200'], run
	assert [event['host'] for event in run.record.events('net.refused')] == ['denied.test'] * 2


def test_secret_over_http2(online, world, h2_server):
	run = online.bash('''
curl -sS --http2 https://allowed.test:8443/up -d "k=$API_KEY" -o /tmp/back -w '%{http_code} %{http_version}\\n'
test "$(cat /tmp/back)" = "k=$API_KEY" && echo turned back
curl -sS --http2-prior-knowledge http://allowed.test:8080/small -H "X: $API_KEY" -o /dev/null -w '%{http_code}\\n'
''', options=(*allow(world, 'allowed.test'), '--secret', 'API_KEY@allowed.test'), env={'API_KEY': KEY})
	assert run.lines == ['200 2', 'turned back', '403'], run
	assert run.record.events('net.http')[0]['secrets'] == ['API_KEY']
	assert [event['where'] for event in run.record.events('secret.misuse')] == ['header']
	assert kept_anywhere(online.state, KEY) == ''


GRPC_SERVER = """
import grpc, sys
from concurrent import futures
class Any(grpc.GenericRpcHandler):
	def service(self, call):
		if call.method == '/t.T/Chat':
			def chat(asked, context):
				for one in asked: yield b're:' + one
				context.set_trailing_metadata((('x-end', 'yes'),))
			return grpc.stream_stream_rpc_method_handler(chat)
		def fail(asked, context): context.abort(grpc.StatusCode.NOT_FOUND, 'no such thing')
		return grpc.unary_unary_rpc_method_handler(fail)
server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Any()])
key, leaf = (open(f'{sys.argv[2]}/leaf.{end}', 'rb').read() for end in ('key', 'pem'))
server.add_insecure_port(f'{sys.argv[1]}:8081')
server.add_secure_port(f'{sys.argv[1]}:8444', grpc.ssl_server_credentials([(key, leaf)]))
server.start()
print('ready', flush=True)
server.wait_for_termination()
"""
GRPC_CLIENT = """
import grpc, queue, time
ca = open('/etc/ssl/certs/ca-certificates.crt', 'rb').read()
for channel in (grpc.insecure_channel('allowed.test:8081'), grpc.secure_channel('allowed.test:8444', grpc.ssl_channel_credentials(ca))):
	say = queue.Queue()
	answers = channel.stream_stream('/t.T/Chat')(iter(say.get, None), timeout=20)
	for i in range(3):
		say.put(b'x' * 10 ** (2 * i)); answer = next(answers); print(answer[:4], len(answer))
	say.put(None); print(list(answers), answers.code().name, dict(answers.trailing_metadata())['x-end'])
	try: channel.unary_unary('/t.T/Fail')(b'q', timeout=20)
	except grpc.RpcError as e: print(e.code().name, e.details())
"""


def test_grpc_streams_both_ways(online, world):
	server = subprocess.Popen(world.command(world.internet, harness.PYTHON, '-c', GRPC_SERVER, world_.UPSTREAM, world.logs),
		stdout=subprocess.PIPE)
	try:
		assert server.stdout.readline() == b'ready\n'
		run = online.py(GRPC_CLIENT, options=allow(world, 'allowed.test'))
	finally:
		server.kill()
		server.wait()
	want = ["b're:x' 4", "b're:x' 103", "b're:x' 10003", '[] OK yes', 'NOT_FOUND no such thing']
	assert run.lines == want * 2, run
	requests = run.record.events('net.http')
	assert [(x['protocol'], x['url'].rpartition('/')[2], x['status']) for x in requests] == [
		('h2', 'Chat', 200), ('h2', 'Fail', 200)] * 2
	assert requests[0]['headers']['content-type'] == 'application/grpc'
