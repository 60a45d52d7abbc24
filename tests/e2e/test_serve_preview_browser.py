# SPDX-License-Identifier: Apache-2.0
"""Previews in a real browser: origins, cookies and WebSockets as a browser has them, not as a test thinks it has."""
import pytest

import browser
from test_serve_previews import Page, link, make, serve_inside

STORES = ['sqlite']

pytestmark = pytest.mark.skipif(browser.find() is None, reason='needs chromium')


@pytest.fixture(scope='module')
def chromium(tmp_path_factory):
	made = browser.Browser(tmp_path_factory.mktemp('chromium'))
	yield made
	made.close()


SOCKET = '''new Promise(done => {
	const socket = new WebSocket(%s.replace("http", "ws") + "/ws")
	socket.onopen = () => socket.send("hello")
	socket.onmessage = event => done(event.data)
	socket.onerror = () => done("refused")
})'''


def test_a_person_opens_a_private_preview(server, chromium):
	admin = server.admin
	box = admin.create()
	serve_inside(admin, box)
	page, other, public = (Page(make(admin, box, seen)) for seen in ('private', 'private', 'public'))
	tab = chromium.tab(page.url)
	assert tab.js('document.title') == 'This preview is private'
	dashboard = chromium.tab('data:text/html,<a>dashboard</a>') # a page of another site, with the link
	url = link(admin, page.id)['url']
	dashboard.js(f'location.href = "{url}"; 0')
	browser.wait_for(lambda: dashboard.js('document.title') == 'inside', 'the preview')
	assert dashboard.js('location.href') == page.url and dashboard.js('document.referrer') == ''
	[cookie] = dashboard.cookies()
	assert (cookie['name'], cookie['httpOnly'], cookie['sameSite'], cookie['domain'], cookie['session']) == (
		'cloche_preview', True, 'Lax', page.host.partition(':')[0], False)
	# What the agent's page can do to it.
	assert dashboard.js('document.cookie') == ''
	assert dashboard.js('document.cookie = "cloche_preview=evil; path=/"; document.cookie = "=cloche_preview=evil2"; document.cookie = "cloche_preview=evil3; path=/head"; 0') == 0
	assert dashboard.js('document.cookie = "cloche_preview=evil4; domain=preview.localhost"; 0') == 0
	assert dashboard.js('fetch("/head").then(got => got.status)') == 200
	assert 'cloche_preview' not in dashboard.js('fetch("/head").then(got => got.text())')
	assert dashboard.js(SOCKET % 'location.origin') == 'hello'
	assert dashboard.js('navigator.serviceWorker.register("/sw.js").then(() => "registered", () => "refused")') == 'refused'
	# What a page of another preview can do to it: of the same site, so the cookie goes along.
	chromium.tab(link(admin, other.id)['url']).js('0')
	for stranger in (chromium.tab(public.url), chromium.tab(other.url)):
		assert stranger.js('document.title') == 'inside'
		for mode in ('no-cors', 'cors'):
			fetch = f'fetch("{page.url}count", {{mode: "{mode}", credentials: "include", method: "POST"}}).then(got => got.type, () => "failed")'
			assert stranger.js(fetch) == 'failed'
		assert stranger.js(SOCKET % f'"{page.origin}"') == 'refused'
		assert stranger.js(f'fetch("{page.url}").then(got => got.text(), () => "failed")') == 'failed'
		stranger.js(f'document.body.innerHTML = \'<iframe src="{page.url}"></iframe>\'; new Promise(done => document.querySelector("iframe").onload = () => done(0))')
		assert stranger.js('document.querySelector("iframe").contentDocument') is None
	assert dashboard.js('fetch("/count").then(got => got.text())') == '0'
	assert dashboard.js('fetch("/count", {method: "POST"}).then(got => got.text())') == '1'
	assert chromium.tab(page.url).js('document.title') == 'inside' # it still opens, whatever they put beside the cookie
	assert admin.delete('/v1/previews/' + page.id).status == 204
	assert chromium.tab(page.url).js('document.title') == 'There is no such preview'
	assert admin.delete(f'/v1/sandboxes/{box}').status == 200
