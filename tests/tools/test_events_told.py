# SPDX-License-Identifier: Apache-2.0
"""The table of kinds and fields in src/event/event.h, docs/events.md and the schema say the same."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = (ROOT / 'src' / 'event' / 'event.h').read_text()
KINDS = set(re.findall(r'X\([A-Z_]+, "([a-z.]+)"\)', TABLE))
FIELDS = set(re.findall(r'X\((\w+), \w+, \w+\)', TABLE))
EVENT = json.loads((ROOT / 'docs' / 'events.schema.json').read_text())['$defs']['event']
DOCUMENT = (ROOT / 'docs' / 'events.md').read_text()


def test_the_schema_has_every_kind_and_no_other():
	assert set(EVENT['properties']['kind']['enum']) == KINDS
	assert {part['if']['properties']['kind']['const'] for part in EVENT['allOf']} == KINDS


def test_the_schema_has_every_field_and_no_other():
	told = {name for part in EVENT['allOf'] for name in part['then']['properties']}
	assert {name.removesuffix('_b64') for name in told} == FIELDS | {'task'}


def test_the_document_tells_every_kind():
	told = set(re.findall(r'`([a-z.]+)`', DOCUMENT)) | {f'sandbox{end}' for end in re.findall(r'`(\.[a-z]+)`', DOCUMENT)}
	assert KINDS - told == set()


def test_the_document_tells_every_field():
	implied = {'response_body', 'response_body_encoding', 'response_body_truncated', 'response_body_sha256', 'response_body_blob',
		'response_body_tail_blob'}
	assert {name for name in FIELDS - implied if not re.search(rf'`{name}`', DOCUMENT)} == set()
