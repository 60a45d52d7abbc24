// SPDX-License-Identifier: Apache-2.0
// The other end of calls_server.js, run inside. Prints a line a call.
// usage: node calls_client.js BASE
'use strict';
const http2 = require('http2');
const session = http2.connect(process.argv[2]);

function frame(text) {
	const data = Buffer.from(text), head = Buffer.alloc(5);
	head.writeUInt32BE(data.length, 1);
	return Buffer.concat([head, data]);
}

// Calls PATH; talk(stream, message) is called at the start without a message and then for each that comes.
function call(path, headers, talk) {
	return new Promise(resolve => {
		const stream = session.request({':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers',
			...headers});
		const got = {messages: [], head: {}, trailers: {}};
		let rest = Buffer.alloc(0);
		stream.on('response', head => { got.head = head; });
		stream.on('trailers', trailers => { got.trailers = trailers; });
		stream.on('data', data => {
			rest = Buffer.concat([rest, data]);
			while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
				const end = 5 + rest.readUInt32BE(1);
				got.messages.push(rest.subarray(5, end).toString());
				rest = rest.subarray(end);
				talk(stream, got.messages.at(-1), got.messages.length);
			}
		});
		stream.on('error', error => { got.error = error.code; });
		stream.on('close', () => resolve({...got, code: stream.rstCode}));
		talk(stream);
	});
}

const once = text => stream => stream.writable && !stream.sent && (stream.sent = true, stream.end(frame(text)));

(async () => {
	const say = (...words) => console.log(...words);
	let got = await call('/t.T/Echo', {'x-head': 'h'}, once('hello'));
	say('unary', got.messages[0], got.head['x-head'], got.trailers['grpc-status'], got.trailers['x-messages']);
	got = await call('/t.T/Refuse', {}, once('x'));
	say('refuse', got.messages.length, got.head['grpc-status']);
	got = await call('/t.T/Fail', {}, once('x'));
	say('fail', got.trailers['grpc-status']);
	got = await call('/t.T/Count', {}, once('1000'));
	say('count', got.messages.length, got.messages.at(-1), got.trailers['grpc-status']);
	got = await call('/t.T/Sum', {}, (stream, message) => {
		if (message !== undefined)
			return;
		for (let i = 0; i < 50; i++)
			stream.write(frame('s'.repeat(40000)));
		stream.end();
	});
	say('sum', got.messages[0], got.trailers['x-messages']);
	// Each side waits for the other's word, then silence, then one more.
	got = await call('/t.T/Echo', {}, (stream, message, n = 0) => {
		if (n < 200)
			stream.write(frame(`m${n}`));
		else if (n === 200)
			setTimeout(() => stream.write(frame('late')), 3000);
		else
			stream.end();
	});
	say('talk', got.messages.length, got.messages.at(-1), got.trailers['grpc-status'], got.trailers['x-messages']);
	got = await call('/t.T/Hold', {}, (stream, message) => {
		if (message === undefined)
			stream.write(frame('x'));
		else
			stream.close(http2.constants.NGHTTP2_CANCEL);
	});
	say('cancel', got.messages.length, got.code);
	const many = await Promise.all(Array.from({length: 150}, (_, i) => call('/t.T/Echo', {}, once(`n${i}`))));
	say('many', many.filter((one, i) => one.messages[0] === `n${i}` && one.trailers['grpc-status'] === '0').length);
	session.close();
})();
