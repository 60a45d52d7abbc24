# SPDX-License-Identifier: Apache-2.0
"""Previews by two replicas with one database: what one lets in or cuts off, the other does."""
import contextlib
import socket
import threading

import pytest

from harness import wait_for
from serving import Server
from test_serve_previews import Page, WebSocket, let_in, link, make, serve_inside, target_of


@pytest.fixture(scope='module')
def pair(server):
	second = Server(server.cloche, *server.options[:-1], server.options[-1] + '2', database=server.database, key=server.key)
	box = server.admin.create()
	serve_inside(server.admin, box)
	wait_for(lambda: second.admin.get(f'/v1/sandboxes/{box}').status == 200, 'the other replica to hear of it')
	yield server, second, box
	second.stop()


def on(server, page):
	"""The same preview, at another replica."""
	return Page(server.admin.get('/v1/previews/' + page.id).json, page.cookie)


def test_fifty_at_once(pair):
	"""R84: one token, two replicas, and one of fifty is let in."""
	first, second, box = pair
	made = make(first.admin, box)
	pages = [Page(made), on(second, Page(made))]
	target = target_of(link(first.admin, made['id'])['url'])
	barrier, got = threading.Barrier(50), []

	def go(page):
		with socket.create_connection(('127.0.0.1', page.port), 20) as sock:
			barrier.wait()
			sock.sendall(f'GET {target} HTTP/1.1\r\nHost: {page.host}\r\n\r\n'.encode())
			got.append((sock.recv(4096).split(b' ')[1], page))
	threads = [threading.Thread(target=go, args=(pages[n % 2],)) for n in range(50)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	assert sorted(status for status, _ in got) == [b'303'] + [b'403'] * 49
	assert all(page.status(target) == 403 for page in pages)


def test_what_one_replica_lets_in_the_other_does(pair):
	first, second, box = pair
	page = Page(make(first.admin, box))
	there = on(second, page)
	assert there.status() == 403
	let_in(second.admin, there)
	page.cookie = there.cookie
	assert page.status() == there.status() == 200
	with contextlib.closing(WebSocket(there)) as ws:
		assert ws.status == 101 and first.admin.put(f'/v1/previews/{page.id}/visibility', {'visibility': 'public'}).status == 200
		assert ws.ended()
	assert wait_for(lambda: Page({'id': there.id, 'url': there.url}).status() == 200, 'the change at the other replica')
	guest = first.client('member')
	assert first.admin.put(f'/v1/previews/{page.id}/visibility', {'visibility': 'private'}).status == 200
	let_in(guest, page)
	there.cookie = page.cookie
	with contextlib.closing(WebSocket(there)) as ws:
		assert ws.status == 101
		[key] = [one['id'] for one in first.admin.pages('/v1/api-keys', 1000) if guest.key.startswith(one['prefix'])]
		assert first.admin.delete('/v1/api-keys/' + key).status == 204
		assert ws.ended()
	assert there.status() == page.status() == 403


def test_a_link_is_good_over_a_restart(pair):
	first, _, box = pair
	page = Page(make(first.admin, box))
	target = target_of(link(first.admin, page.id)['url'])
	first.restart()
	page = on(first, page)
	assert page.status(target) == 303 and page.status(target) == 403
	assert let_in(first.admin, page).status() == 200
