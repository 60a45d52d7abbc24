# SPDX-License-Identifier: Apache-2.0
"""A real browser, by its own debugging protocol over a pipe: Debian's chromium, without a library between."""
import contextlib
import json
import os
import select
import shutil
import subprocess
import time

from harness import wait_for

PROGRAMS = ('chromium', 'chromium-browser', 'google-chrome')
LIMIT_S = 30


def find():
	return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
	"""One that is thrown away, with what it keeps; names below localhost lead to loopback, as they do by themselves."""

	def __init__(self, folder):
		self.n, self.left = 0, b''
		into, self.to = os.pipe()
		self.out, back = os.pipe()
		# It reads from 3 and writes to 4.
		script = f'exec 3<&{into} 4>&{back}; exec "$@"'
		self.process = subprocess.Popen(['/bin/bash', '-c', script, 'sh', find(), '--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', '--no-first-run',
			'--disable-background-networking', '--disable-component-update', f'--user-data-dir={folder}', 'about:blank'], pass_fds=(into, back), stdin=subprocess.DEVNULL,
			stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
		os.close(into)
		os.close(back)

	def receive(self, end):
		while b'\0' not in self.left:
			readable, _, _ = select.select([self.out], [], [], max(0, end - time.monotonic()))
			assert readable, 'the browser does not answer'
			part = os.read(self.out, 65536)
			assert part, 'the browser has gone'
			self.left += part
		text, _, self.left = self.left.partition(b'\0')
		return json.loads(text)

	def call(self, method, session=None, **params):
		self.n += 1
		os.write(self.to, json.dumps({'id': self.n, 'method': method, 'params': params, **({'sessionId': session} if session else {})}).encode() + b'\0')
		end = time.monotonic() + LIMIT_S
		while True:
			answer = self.receive(end)
			if answer.get('id') == self.n:
				assert 'result' in answer, answer
				return answer['result']

	def tab(self, url='about:blank'):
		return Tab(self, url)

	def close(self):
		with contextlib.suppress(AssertionError, OSError):
			self.call('Browser.close')
		self.process.wait(timeout=LIMIT_S)
		os.close(self.to)
		os.close(self.out)


class Tab:
	def __init__(self, browser, url):
		self.browser = browser
		self.id = browser.call('Target.createTarget', url='about:blank')['targetId']
		self.session = browser.call('Target.attachToTarget', targetId=self.id, flatten=True)['sessionId']
		if url != 'about:blank':
			self.go(url)

	def call(self, method, **params):
		return self.browser.call(method, self.session, **params)

	def go(self, url):
		"""Follows a link to it, and waits until it is there."""
		self.call('Page.navigate', url=url)
		wait_for(lambda: self.js('document.readyState') == 'complete', url, LIMIT_S)

	def js(self, code):
		"""What an expression comes to; a promise is waited for."""
		answer = self.call('Runtime.evaluate', expression=code, awaitPromise=True, returnByValue=True)
		assert 'exceptionDetails' not in answer, answer
		return answer['result'].get('value')

	def cookies(self):
		return self.call('Network.getCookies')['cookies']
