# SPDX-License-Identifier: Apache-2.0
"""The document that a server serves at /openapi.json, and whether what it answers is as the document says.

Nothing here knows a route: a client built from the document alone. Every answer that tests get goes through it."""
import functools
import json
import re

import jsonschema

METHODS = ('get', 'put', 'post', 'delete', 'patch')
PROBLEM = 'application/problem+json'
# Of each kind of trace events and each stream so many are held against their schema, then every hundredth.
EVENTS_CHECKED = 20


def fitting(schema, value):
	"""Of a schema that has a part for each kind of event, the parts of this one's kind; else None. It spares milliseconds."""
	parts = schema.get('allOf', [])
	if not isinstance(value, dict) or not parts or not all('if' in part and 'kind' in part['if']['properties'] for part in parts):
		return None
	return [part['then'] for part in parts if part['if']['properties']['kind']['const'] == value.get('kind')]


def all_of(validator, parts, value, schema):
	for part in parts if fitting(schema, value) is None else fitting(schema, value):
		yield from validator.descend(value, part)


def unevaluated(validator, closed, value, schema):
	parts = fitting(schema, value)
	if parts is None or closed is not False:
		yield from jsonschema.Draft202012Validator.VALIDATORS['unevaluatedProperties'](validator, closed, value, schema)
		return
	known = set(schema['properties']).union(*(part.get('properties', {}) for part in parts))
	if unknown := sorted(set(value) - known):
		yield jsonschema.ValidationError(f'{unknown} are not members of this kind')


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {'allOf': all_of, 'unevaluatedProperties': unevaluated})


class Operation:
	"""One method of one path."""

	def __init__(self, document, path, method, item):
		self.path, self.method, self.data = path, method.upper(), item[method]
		self.parameters = [document.resolve(one) for one in item.get('parameters', []) + self.data.get('parameters', [])]
		self.right = self.data['x-cloche-right']
		self.answers = {int(status): document.resolve(answer) for status, answer in self.data['responses'].items()}

	def placed(self, place):
		return [one for one in self.parameters if one['in'] == place]

	def body(self):
		"""The schema of its body; None where it has none, or one that is no JSON."""
		return self.data.get('requestBody', {}).get('content', {}).get('application/json', {}).get('schema')

	def body_properties(self, document):
		"""Pairs of a member of its body and the schema of it."""
		return list(document.resolve(self.body() or {}).get('properties', {}).items())

	def target(self, **values):
		"""Its path with values for what stands in braces."""
		return re.sub(r'{(\w+)}', lambda match: values[match[1]], self.path)

	def __repr__(self):
		return f'{self.method} {self.path}'


class Document:
	def __init__(self, data):
		self.data = data
		self.operations = [Operation(self, path, method, item) for path, item in data['paths'].items() for method in METHODS if method in item]
		self.patterns = {path: re.compile(re.sub(r'\\{\w+\\}', '[^/]+', re.escape(path))) for path in data['paths']}
		self.validators = {}

	def resolve(self, node):
		while '$ref' in node:
			at = self.data
			for part in node['$ref'].removeprefix('#/').split('/'):
				at = at[part.replace('~1', '/').replace('~0', '~')]
			node = at
		return node

	def whole(self, node, above=()):
		"""A schema with what it names put in its place, which is checked twice as fast; what names itself stays a name."""
		if isinstance(node, list):
			return [self.whole(one, above) for one in node]
		if not isinstance(node, dict):
			return node
		ref = node.get('$ref')
		if not isinstance(ref, str):
			return {key: self.whole(value, above) for key, value in node.items()}
		if ref in above:
			return node
		return self.whole(self.resolve(node), (*above, ref))

	def validator(self, schema):
		key = id(schema) # all of them are parts of the document, which stays
		if key not in self.validators:
			resolver = jsonschema.RefResolver('', self.data)
			self.validators[key] = Validator(self.whole(schema), resolver=resolver)
		return self.validators[key]

	def find(self, method, path):
		"""The operation, and the methods that the path has."""
		method = 'GET' if method == 'HEAD' else method
		there = [one for one in self.operations if self.patterns[one.path].fullmatch(path)]
		return next((one for one in there if one.method == method), None), {one.method for one in there}

	def operation(self, name):
		return next(one for one in self.operations if one.data['operationId'] == name)

	def hold(self, schema, value, what):
		fault = jsonschema.exceptions.best_match(self.validator(schema).iter_errors(value))
		assert not fault, f'{what}: not as docs/openapi.yaml says: /{"/".join(map(str, fault.absolute_path))}: {fault.message[:2000]}'

	def problem(self, status, headers, body, what):
		"""An answer that belongs to no operation."""
		assert headers['Content-Type'] == PROBLEM, f'{what}: {headers["Content-Type"]}'
		value = json.loads(body)
		self.hold(self.data['components']['schemas']['Problem'], value, what)
		assert value['status'] == status, what

	def check(self, method, target, status, headers, body):
		"""Whether an answer is one that the document tells of. body None: it is still to come, or there is none."""
		path = target.partition('?')[0]
		operation, methods = self.find(method, path)
		what = f'{method} {path[:200]}: {status}'
		assert headers['X-Content-Type-Options'] == 'nosniff' and headers['Cache-Control'] == 'no-store', what
		assert headers['Referrer-Policy'] == 'no-referrer' and "frame-ancestors 'none'" in headers['Content-Security-Policy'], what
		assert not [name for name in headers if name.lower().startswith('access-control-')], what
		if not operation:
			assert status in (400, 403, 405 if methods else 404, 413, 421), f'{what}, but docs/openapi.yaml has no such route'
			assert status != 405 or methods <= set(headers['Allow'].split(', ')), what
			if method != 'HEAD':
				self.problem(status, headers, body, what)
			return
		assert status in operation.answers, f'{what}: docs/openapi.yaml tells of {sorted(operation.answers)} only: {body and body[:300]}'
		self.check_answer(operation.answers[status], None if method == 'HEAD' else body, headers, what)

	def check_answer(self, answer, body, headers, what):
		for name, header in answer.get('headers', {}).items():
			assert headers[name] or not header.get('required'), f'{what}: without {name}'
			if headers[name]:
				self.hold(header['schema'], headers[name], f'{what}: {name}')
		media = answer.get('content', {}).get(headers['Content-Type'])
		if 'content' not in answer:
			assert not body and not headers['Content-Type'], f'{what}: a body, where docs/openapi.yaml tells of none'
			return
		assert media is not None, f'{what}: docs/openapi.yaml has no {headers["Content-Type"]} here'
		if body is not None:
			self.check_body(media, headers['Content-Type'], body, what)

	def check_body(self, media, kind, body, what):
		if kind.endswith('json'):
			self.hold(media['schema'], json.loads(body), what)
		elif 'x-lines' in media:
			for line in body.decode().splitlines():
				self.hold(media['x-lines'], json.loads(line), what)
		elif media['schema'].get('format') != 'binary' and kind.startswith('text/'):
			body.decode()

	def stream(self, method, target):
		"""A function that checks one server-sent event of this answer: name, data."""
		operation, _ = self.find(method, target.partition('?')[0])
		known = operation.answers[200]['content']['text/event-stream']['x-events']
		seen = {}

		def check(name, data):
			assert name in known, f'{operation}: docs/openapi.yaml has no event {name}'
			kind = (name, data.get('kind'))
			seen[kind] = seen.get(kind, 0) + 1
			if seen[kind] <= EVENTS_CHECKED or seen[kind] % 100 == 0:
				self.hold(known[name], data, f'{operation}: event {name}')

		return check


@functools.cache
def parse(text):
	return Document(json.loads(text))
