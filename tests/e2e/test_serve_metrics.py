# SPDX-License-Identifier: Apache-2.0
"""What the server tells Prometheus, and in its log."""
import http.client
import json
import re
import socket

from harness import wait_for

STORES = ['sqlite'] # nothing here asks the database but what test_serve.py does; CLOCHE_TEST_STORES=all runs both

OPTIONS = ('--log', 'json', '--log-requests')


def scrape(admin):
	got = admin.get('/metrics')
	assert got.status == 200 and got.headers['Content-Type'].startswith('text/plain; version=0.0.4'), got
	values, types = {}, {}
	for line in got.body.decode().splitlines():
		if line.startswith('# TYPE '):
			name, kind = line.split()[2:]
			assert name not in types
			types[name] = kind
		elif not line.startswith('#'):
			series, value = line.rsplit(' ', 1)
			assert re.fullmatch(r'cloche_[a-z_]+(\{([a-z]+="[^"]*",?)+\})?', series) and series not in values, line
			assert re.sub(r'(_bucket|_sum|_count)?(\{.*)?$', '', series) in types or series.split('{')[0] in types, line
			values[series] = float(value)
	return values


def test_requests_are_counted(server, admin):
	route = 'method="GET",route="/v1/sandboxes/{id}"'
	before = scrape(admin)
	for _ in range(3):
		assert admin.get('/v1/sandboxes/sb_0000000000000000').status == 404
	assert admin.get('/nowhere').status == 404
	after = scrape(admin)
	def more(series):
		return after.get(series, 0) - before.get(series, 0)

	assert more(f'cloche_http_requests_total{{{route},status="404"}}') == 3 == more(f'cloche_http_request_duration_seconds_count{{{route}}}')
	assert more(f'cloche_http_request_duration_seconds_bucket{{{route},le="+Inf"}}') == 3 and more(f'cloche_http_request_duration_seconds_sum{{{route}}}') > 0
	assert more('cloche_http_requests_total{method="",route="none",status="404"}') == 1
	buckets = [value for series, value in after.items() if series.startswith(f'cloche_http_request_duration_seconds_bucket{{{route}')]
	assert buckets == sorted(buckets) and len(buckets) == 15
	assert 1e6 < after['cloche_process_resident_memory_bytes'] < 1e9


def test_what_is_under_way(server, admin):
	box = admin.create()
	events = admin.stream(f'/v1/sandboxes/{box}/watch')
	connection = http.client.HTTPConnection('127.0.0.1', server.port)
	connection.request('POST', f'/v1/sandboxes/{box}/exec', '{"command": "sleep 30"}', {'Authorization': f'Bearer {admin.key}'})
	values = wait_for(lambda: (values := scrape(admin))['cloche_execs_running'] == 1 and values, 'the exec')
	assert values['cloche_watchers'] == 1 == values['cloche_sandboxes{state="running"}'] and values['cloche_http_requests_running'] == 3
	assert admin.post(f'/v1/sandboxes/{box}/pause').status == 200
	values = scrape(admin)
	assert values['cloche_sandboxes{state="paused"}'] == 1 and 'cloche_sandboxes{state="running"}' not in values
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200
	connection.close()
	events.close()
	values = wait_for(lambda: (values := scrape(admin))['cloche_execs_running'] == values['cloche_watchers'] == 0 and values, 'their end')
	assert not any(series.startswith('cloche_sandboxes{') for series in values)


def test_deliveries_are_counted(admin):
	hook = admin.post('/v1/webhooks', {'url': 'http://hooks.invalid/', 'events': ['sandbox.created']}).json['id']
	box = admin.create()
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200
	values = wait_for(lambda: (values := scrape(admin))['cloche_webhook_tries_total{outcome="again"}'] == 1 and values, 'a try')
	assert values['cloche_webhook_deliveries{state="waiting"}'] == 1 and values['cloche_webhook_tries_total{outcome="sent"}'] == 0
	assert admin.delete(f'/v1/webhooks/{hook}').status == 204


def test_who_may_see_them(server):
	assert server.client('member').get('/metrics').status == 403 == server.client('admin', account='other').get('/metrics').status
	assert server.client('auditor').get('/metrics').status == 403
	place = server.options[server.options.index('--socket') + 1]
	with socket.socket(socket.AF_UNIX) as sock: # root, without a key
		sock.connect(place)
		sock.sendall(b'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n')
		assert sock.recv(65536).startswith(b'HTTP/1.1 200')


def test_a_line_for_each_request(server, admin):
	assert admin.get('/v1/log?q=a-word-that-was-said').status == 200
	assert admin.post('/v1/secrets', {'name': 'SAID', 'value': 'a-value-that-was-said', 'hosts': ['api.example.org']}).status == 201
	assert admin.get('/v1/no%0athing').status == 404
	def told():
		lines = [json.loads(line) for line in server.said().splitlines()]
		return [line for line in lines if line['message'] == 'request' and line['path'].startswith(('/v1/log', '/v1/secrets', '/v1/no'))]

	lines = wait_for(lambda: told() if len(told()) >= 3 else None, 'three lines')
	assert [(line['method'], line['path'], line['route'], line['status']) for line in lines] == [('GET', '/v1/log', '/v1/log', 200),
		('POST', '/v1/secrets', '/v1/secrets', 201), ('GET', '/v1/no\nthing', 'none', 404)]
	assert {line['level'] for line in lines} == {'info'} and all(line['at'].endswith('Z') and line['ms'] >= 0 for line in lines)
	assert [(line['account'], line['actor'][:4]) for line in lines] == [('default', 'key:'), ('default', 'key:'), ('', '')]
	assert all(line['peer'].startswith('127.0.0.1:') for line in lines)
	assert admin.get('/v1/log?q=more-that-was-said', headers={'Host': 'evil.test'}).status == 421
	refused = wait_for(lambda: [line for line in map(json.loads, server.said().splitlines()) if line.get('code')], 'the one that was refused')
	assert [(line['method'], line['path'], line['status'], line['code']) for line in refused] == [('GET', '/v1/log', 421, 'wrong_host')]
	assert 'that-was-said' not in server.said() and admin.key not in server.said()
	assert admin.delete('/v1/secrets/SAID').status == 204
