// SPDX-License-Identifier: Apache-2.0
// A client of the control plane that knows of it what openapi-typescript makes of its document, and nothing else: compiled
// strictly, so that what the document does not promise is not used. Prints what it saw as one JSON object.
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

declare const process: { argv: string[] };

const [baseUrl, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

function got<T>(answer: { data?: T; error?: unknown }): T {
	if (answer.data === undefined)
		throw new Error(JSON.stringify(answer.error));
	return answer.data;
}

const made = got(await client.POST('/v1/sandboxes', { body: { labels: { made: 'by a generated client' } } }));
const path = { id: made.id };
const done = got(await client.POST('/v1/sandboxes/{id}/exec',
	{ params: { path }, body: { command: 'echo $A; exit 3', env: { A: 'b' } } }));
if (typeof done === 'string' || !('exit_code' in done)) // a stream, or one that goes on behind: nobody asked for it
	throw new Error(JSON.stringify(done));
const row: components['schemas']['ExecRow'] = done;
const put = got(await client.POST('/v1/sandboxes/{id}/files/create', { params: { path }, body: { path: '/workspace/f', content: 'one\ntwo\n' } }));
const seen = got(await client.POST('/v1/sandboxes/{id}/files/view', { params: { path }, body: { path: '/workspace/f', first_line: 2 } }));

const log: string[] = [];
for (let cursor: string | undefined; ;) {
	const page = got(await client.GET('/v1/sandboxes/{id}/log', { params: { path, query: { limit: 1, cursor } } }));
	log.push(...page.items.map((item) => item.operation));
	if (!page.next_cursor)
		break;
	cursor = page.next_cursor;
}
const files = got(await client.GET('/v1/sandboxes/{id}/trace/files', { params: { path } }));
const wrong = await client.GET('/v1/sandboxes/{id}', { params: { path: { id: 'sb_none' } } });
const gone = got(await client.DELETE('/v1/sandboxes/{id}', { params: { path } }));

console.log(JSON.stringify({ made, exit: row.exit_code, stdout: row.stdout, bytes: put.bytes, content: seen.content, log, wrong: wrong.error?.code,
	written: files.items.some((file) => file.path === '/workspace/f'), gone }));
