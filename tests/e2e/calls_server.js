// SPDX-License-Identifier: Apache-2.0
// Calls as gRPC makes them, over HTTP/2 by Node's own server: messages with a five-byte head both ways, the status in
// the trailers. What each call brought is a line of LOGS/calls.log.
// usage: node calls_server.js ADDRESS PLAIN-PORT TLS-PORT LOGS
'use strict';
const fs = require('fs');
const http2 = require('http2');
const path = require('path');
const [address, plainPort, tlsPort, logs] = process.argv.slice(2);

function frame(data) {
	const head = Buffer.alloc(5);
	head.writeUInt32BE(data.length, 1);
	return Buffer.concat([head, data]);
}

function onMessages(stream, each) {
	let rest = Buffer.alloc(0);
	stream.on('data', data => {
		rest = Buffer.concat([rest, data]);
		while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
			const end = 5 + rest.readUInt32BE(1);
			each(rest.subarray(5, end));
			rest = rest.subarray(end);
		}
	});
}

function serve(stream, headers) {
	const call = {path: headers[':path'], authority: headers[':authority'], tls: stream.session.encrypted, messages: 0, bytes: 0};
	let status = '0';
	stream.on('error', () => {});
	stream.on('close', () => {
		call.code = stream.rstCode;
		fs.appendFileSync(path.join(logs, 'calls.log'), JSON.stringify(call) + '\n');
	});
	if (call.path === '/t.T/Refuse') { // an answer of trailers alone
		stream.respond({':status': 200, 'content-type': 'application/grpc', 'grpc-status': '7'}, {endStream: true});
		return;
	}
	stream.respond({':status': 200, 'content-type': 'application/grpc', 'x-head': headers['x-head'] || 'none'},
		{waitForTrailers: true});
	stream.on('wantTrailers', () => stream.sendTrailers({'grpc-status': status, 'x-messages': String(call.messages)}));
	onMessages(stream, message => {
		call.messages++;
		call.bytes += message.length;
		if (call.path === '/t.T/Echo' || call.path === '/t.T/Hold')
			stream.write(frame(message));
		if (call.path === '/t.T/Count')
			for (let i = 0; i < Number(message); i++)
				stream.write(frame(Buffer.from(String(i))));
	});
	stream.on('end', () => {
		if (call.path === '/t.T/Sum')
			stream.write(frame(Buffer.from(String(call.bytes))));
		if (call.path === '/t.T/Fail')
			status = '13';
		if (call.path !== '/t.T/Hold') // whose end is for the client to make
			stream.end();
	});
}

const secure = http2.createSecureServer({key: fs.readFileSync(path.join(logs, 'leaf.key')),
	cert: fs.readFileSync(path.join(logs, 'leaf.pem'))});
const plain = http2.createServer();
for (const server of [secure, plain])
	server.on('stream', serve).on('sessionError', () => {});
plain.listen(plainPort, address, () => secure.listen(tlsPort, address, () => console.log('ready')));
process.stdin.on('end', () => process.exit()).resume();
