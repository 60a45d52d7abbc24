# SPDX-License-Identifier: Apache-2.0
"""Requests made from the document that a server serves, and from nothing else: right ones, and ones that are wrong in one
known way. The same seed makes the same requests."""
import dataclasses
import json
import re._parser as regex
import string
import urllib.parse

ANY = 'aZ09_-./: %é漢\U0001f600\'"\\<&\n\t\u202e'
OPTIONAL = 0.3  # how often a member or parameter that may be left out is there
TEXT_MAX = 40
LIST_MAX = 3
DEPTH_MAX = 6
BODY_MAX = 1 << 20


class Maker:
	"""Values that a schema allows."""

	def __init__(self, document, random):
		self.document, self.random = document, random

	def text(self, schema):
		if 'pattern' in schema:
			return self.matching(regex.parse(schema['pattern']))
		if schema.get('format') == 'date-time':
			return f'20{self.random.randint(20, 35)}-0{self.random.randint(1, 9)}-1{self.random.randint(0, 9)}T0{self.random.randint(0, 9)}:11:12Z'
		least = schema.get('minLength', 0)
		return ''.join(self.random.choices(ANY, k=self.random.randint(least, min(schema.get('maxLength', TEXT_MAX), max(least, TEXT_MAX)))))

	def matching(self, parsed):
		"""A text of a regular expression, of the kinds that the document has."""
		return ''.join(self.part(op, value) for op, value in parsed)

	def part(self, op, value):
		name = str(op)
		if name == 'LITERAL':
			return chr(value)
		if name == 'AT':
			return ''
		if name == 'IN':
			return self.one_of(value)
		if name == 'CATEGORY':
			return self.random.choice(string.digits)
		if name == 'MAX_REPEAT':
			least, most, inner = value
			return ''.join(self.matching(inner) for _ in range(self.random.randint(least, min(int(most), least + 5))))
		if name == 'SUBPATTERN':
			return self.matching(value[3])
		if name == 'BRANCH':
			return self.matching(self.random.choice(value[1]))
		if name == 'NOT_LITERAL':
			return self.random.choice([one for one in ANY if one != chr(value)])
		if name == 'ANY':
			return self.random.choice(string.ascii_letters)
		raise NotImplementedError(f'a pattern with {name}: teach {__name__} to make one')

	def one_of(self, ranges):
		is_other = str(ranges[0][0]) == 'NEGATE'
		allowed = set()
		for op, value in ranges:
			if str(op) == 'RANGE':
				allowed |= {chr(one) for one in range(value[0], value[1] + 1)}
			elif str(op) == 'LITERAL':
				allowed.add(chr(value))
			elif str(op) == 'CATEGORY':
				allowed |= set(string.digits)
		return self.random.choice(sorted(set(string.ascii_letters + string.digits) - allowed if is_other else allowed))

	def value(self, schema, depth=0):
		schema = {**self.document.resolve(schema), **{key: value for key, value in schema.items() if key != '$ref'}}
		if 'const' in schema:
			return schema['const']
		if 'enum' in schema:
			return self.random.choice(schema['enum'])
		if 'oneOf' in schema and 'properties' not in schema:
			return self.value(self.random.choice(schema['oneOf']), depth)
		kinds = schema.get('type', 'object')
		kind = self.random.choice(kinds) if isinstance(kinds, list) else kinds
		return getattr(self, 'make_' + kind)(schema, depth)

	def make_null(self, _schema, _depth):
		return None

	def make_boolean(self, _schema, _depth):
		return self.random.random() < 0.5

	def make_integer(self, schema, _depth):
		least = schema.get('minimum', -(1 << 40))
		most = schema.get('maximum', max(least, 1 << 40))
		return self.random.choice((least, most, self.random.randint(least, most), self.random.randint(least, min(most, least + 100))))

	def make_number(self, schema, _depth):
		return self.random.uniform(schema.get('minimum', -1e9), schema.get('maximum', 1e9))

	def make_string(self, schema, _depth):
		return self.text(schema)

	def make_array(self, schema, depth):
		least = schema.get('minItems', 0)
		most = max(least, min(schema.get('maxItems', LIST_MAX), LIST_MAX if depth < DEPTH_MAX else 0))
		return [self.value(schema.get('items', {'type': 'string'}), depth + 1) for _ in range(self.random.randint(least, most))]

	def make_object(self, schema, depth):
		"""One of its alternatives, too, where it has such."""
		either = self.random.choice(schema['oneOf']) if 'oneOf' in schema else {}
		required = set(schema.get('required', [])) | set(either.get('required', []))
		closed = {name for name, one in either.get('properties', {}).items() if one.get('type') == 'null'}
		made = {}
		for name, one in schema.get('properties', {}).items():
			if name in required or (name not in closed and depth < DEPTH_MAX and self.random.random() < OPTIONAL):
				made[name] = self.value({**one, **either.get('properties', {}).get(name, {})}, depth + 1)
		if isinstance(schema.get('additionalProperties'), dict):
			names = schema.get('propertyNames', {'minLength': 1})
			for _ in range(self.random.randint(0, LIST_MAX)):
				made[self.text(names)] = self.value(schema['additionalProperties'], depth + 1)
		return made


@dataclasses.dataclass
class Request:
	operation: object
	method: str
	target: str
	headers: dict
	body: bytes | None
	fault: str | None = None  # what is wrong with it
	expects: tuple = ()  # the statuses that say so

	def __repr__(self):
		body = self.body and (self.body if len(self.body) < 600 else self.body[:300] + b'...%d bytes' % len(self.body))
		return f'{self.method} {self.target[:300]} {self.headers} {body!r} fault: {self.fault}'


class Requests:
	"""ids: what stands for each parameter of a path, by its name; dead_keys: such as were revoked."""

	def __init__(self, document, random, ids, right_bodies=None, dead_keys=()):
		self.document, self.random, self.ids, self.dead_keys = document, random, ids, dead_keys
		self.maker = Maker(document, random)
		self.right_bodies = right_bodies or {}  # changes of right bodies, by operationId

	def query(self, operation):
		return [(one['name'], self.as_text(self.maker.value(one['schema']))) for one in operation.placed('query')
			if one.get('required') or self.random.random() < OPTIONAL]

	@staticmethod
	def as_text(value):
		return {True: 'true', False: 'false'}.get(value, str(value)) if isinstance(value, bool) else str(value)

	def body(self, operation):
		schema = operation.body()
		if schema is None:
			return None
		made = self.maker.value(schema)
		return self.right_bodies.get(operation.data['operationId'], lambda body: body)(made)

	def right(self, operation):
		"""One that the document allows."""
		query, body = self.query(operation), self.body(operation)
		headers = {one['name']: self.maker.value(one['schema']) for one in operation.placed('header') if self.random.random() < OPTIONAL / 3}
		target = operation.target(**{name: urllib.parse.quote(value, safe='') for name, value in self.ids.items()})
		if query:
			target += '?' + urllib.parse.urlencode(query)
		return Request(operation, operation.method, target, headers, body if body is None else json.dumps(body).encode())

	# ---- wrong in one way; each may say that it does not fit (None) ----

	def wrong(self, operation):
		ways = [getattr(self, name) for name in sorted(vars(Requests)) if name.startswith('wrong_')]
		while True:
			made = self.random.choice(ways)(operation)
			if made:
				return made

	def spoiled(self, operation, fault, expects=(400,), **changes):
		return dataclasses.replace(self.right(operation), fault=fault, expects=expects, **changes)

	def with_query(self, operation, pairs, fault, expects=(400,)):
		target = self.right(operation).target.partition('?')[0]
		return self.spoiled(operation, fault, expects, target=target + '?' + '&'.join(pairs))

	def wrong_method(self, operation):
		path = self.right(operation).target.partition('?')[0]
		others = {one.method for one in self.document.operations if one.path == operation.path} | {'HEAD'}
		method = self.random.choice(sorted({'GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'get', 'G-E-T'} - others))
		return Request(operation, method, path, {}, None, 'method', (400, 405))

	def wrong_id(self, operation):
		names = [one['name'] for one in operation.placed('path')]
		if not names:
			return None
		name = self.random.choice(names)
		value = self.random.choice(('0', 'sb_0000000000000000', 'ex_0000000000000000', 'ke_0000000000000000', self.ids[name].swapcase(), self.ids[name] + '0',
			self.ids[name][:-1], '..%2f..', '%2e', "'%20OR%201=1--", 'a' * 3000, '%F0%9F%98%80', '*', '$where', ';', '-', '--help', '%0a', '%25'))
		ids = {**{one: urllib.parse.quote(text, safe='') for one, text in self.ids.items()}, name: value}
		query = self.right(operation).target.partition('?')[1:]
		expects = (404,) if name in ('id', 'exec', 'key') else (400, 404) # a name may be none
		return self.spoiled(operation, 'id', expects, target=operation.target(**ids) + ''.join(query))

	def wrong_escape(self, operation):
		ids = {name: self.random.choice(('%ff', '%', '%0', '%zz', '%00', '%c3%28', '%ed%a0%80')) for name in self.ids}
		return self.spoiled(operation, 'escape', target=operation.target(**ids)) if operation.placed('path') else None

	def wrong_path(self, operation):
		path = self.right(operation).target.partition('?')[0]
		made = self.random.choice((path + '/', '/' + path, path.replace('/v1/', '/v2/'), path.replace('/v1/', '/v1//'), path.upper(), path + '%2f', path + ';a', '/./' + path[1:]))
		return None if self.document.find(operation.method, made)[1] else self.spoiled(operation, 'path', (404,), target=made)

	def wrong_parameter(self, operation):
		return self.with_query(operation, [self.random.choice(('nonsense=1', 'limits=1', 'LIMIT=1', '=', '%5b%5d=1', 'a'))], 'unknown parameter')

	def wrong_parameter_escape(self, operation):
		return self.with_query(operation, [self.random.choice(('limit=%ff', 'limit=%', 'q=%00', '%ff=1', 'cursor=%c3'))], 'escape in a parameter')

	def wrong_parameter_twice(self, operation):
		query = operation.placed('query')
		if not query:
			return None
		one = self.random.choice(query)
		text = urllib.parse.quote(self.as_text(self.maker.value(one['schema'])), safe='')
		return self.with_query(operation, [f'{one["name"]}={text}'] * 2, 'a parameter twice')

	def wrong_many_parameters(self, operation):
		return self.with_query(operation, [f'a{n}=1' for n in range(40)], 'many parameters')

	def wrong_parameter_value(self, operation):
		numbers = [one for one in operation.placed('query') if self.document.resolve(one['schema']).get('type') in ('integer', 'boolean') or 'enum' in self.document.resolve(one['schema'])
			or one['schema'].get('format') == 'date-time']
		if not numbers:
			return None
		value = self.random.choice(('', '0x10', '-1', '1.5', '1e3', '99999999999999999999', 'ten', '%20%205', '5%20', '%D9%A5', 'NaN', 'tRuE', "1;--"))
		return self.with_query(operation, [f'{self.random.choice(numbers)["name"]}={value}'], 'value of a parameter')

	def wrong_body_where_none(self, operation):
		if operation.data.get('requestBody'):
			return None
		return self.spoiled(operation, 'a body where there is none', body=self.random.choice((b'{}', b'x', b'\0' * 100)))

	def wrong_json(self, operation):
		if operation.body() is None:
			return None
		return self.spoiled(operation, 'no JSON', body=self.random.choice((b'{', b'[]', b'null', b'1', b'"x"', b'{"a":1}{"b":2}', b'{"a":1,"a":2}', b'\xef\xbb\xbf{}', b'{"name":"\xff"}',
			b'{"name":"\\ud800"}', b'{"a":NaN}', b'{"a":1e999}', b'{"a":99999999999999999999999}', '{"a":1}'.encode('utf-16'), b'[' * 100000, b'{"a":' * 50000, b'{"a":\0}', b"{'a':1}", b'a=1&b=2',
			b'{"a":"\xed\xa0\x80"}', b'{"a":"' + b'\xe6\xbc\xa2' * 400 + b'\xff"}')))

	def wrong_member(self, operation):
		body = self.body(operation)
		if body is None:
			return None
		body[self.random.choice(('nonsense', '', ' ', '$where', 'é' * 300, 'account_id', '__proto__'))] = self.random.choice((1, None, 'x', [], {}))
		return self.spoiled(operation, 'unknown member', (400, 413), body=json.dumps(body).encode())

	def wrong_type(self, operation):
		if operation.body() is None or not operation.body_properties(self.document):
			return None
		body = self.body(operation) or {}
		name, schema = self.random.choice(operation.body_properties(self.document))
		value = self.other_type(schema)
		if value is None:
			return None
		return self.spoiled(operation, f'type of {name}', (400, 403), body=json.dumps({**body, name: value}).encode())

	def other_type(self, schema):
		schema = self.document.resolve(schema)
		if 'type' not in schema and 'enum' not in schema:
			return None
		kinds = schema.get('type', 'string')
		kinds = set(kinds if isinstance(kinds, list) else [kinds])
		if 'number' in kinds:
			kinds.add('integer')
		samples = {'string': 'x' * self.random.randint(0, 5), 'integer': 7, 'boolean': True, 'array': [[]], 'object': {'a': {}}}
		return self.random.choice([value for kind, value in samples.items() if kind not in kinds])

	def wrong_missing(self, operation):
		schema = self.document.resolve(operation.body() or {})
		required = schema.get('required')
		if not required:
			return None
		body = self.body(operation)
		del body[self.random.choice(required)]
		return self.spoiled(operation, 'missing member', body=json.dumps(body).encode())

	def wrong_number(self, operation):
		numbers = [(name, one) for name, one in operation.body_properties(self.document) if 'maximum' in self.document.resolve(one)]
		if not numbers:
			return None
		name, schema = self.random.choice(numbers)
		schema = self.document.resolve(schema)
		value = self.random.choice((schema['minimum'] - 1, schema['maximum'] + 1, -(1 << 63), (1 << 63) - 1, 1e300))
		return self.spoiled(operation, f'bounds of {name}', body=json.dumps({**self.body(operation), name: value}).encode())

	def wrong_size(self, operation):
		body = b' ' * (BODY_MAX + self.random.choice((1, 100, 3 * BODY_MAX)))
		if operation.data.get('requestBody') and operation.body() is None:
			return None  # an upload, which may be longer
		return self.spoiled(operation, 'too big', (413,), body=body)

	def wrong_key(self, operation):
		if not any(one['name'] == 'Idempotency-Key' for one in operation.placed('header')):
			return None
		return self.spoiled(operation, 'Idempotency-Key', headers={'Idempotency-Key': self.random.choice(('', 'x' * 201, 'x' * 20000))})

	def wrong_caller(self, operation):
		"""Sent without a key that is good."""
		if operation.right == 'anyone':
			return None
		value = self.random.choice((None, '', 'Bearer', 'Bearer ', 'Bearer clo_', 'Basic YTpi', 'Bearer clo_' + 'A' * 43, 'Bearer ' + 'x' * 5000, 'clo_' + 'A' * 43, 'Bearer \xff\xfe',
			"Bearer ' OR 1=1--", 'Digest a=b', *(f'Bearer {key}' for key in self.dead_keys)))
		return self.spoiled(operation, 'caller', (401,), headers={'Authorization': value})
