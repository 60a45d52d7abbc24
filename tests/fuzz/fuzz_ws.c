/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames: what is accepted must come out the same when written anew. The first byte chooses. */
#include <assert.h>
#include <stdint.h>

#include "proto/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_str struct str copy = {0};
	struct ws_reader r = {0};
	struct slice in;
	size_t at = 0, step, whole = 0;

	if (size < 2)
		return 0;
	r.from_client = data[0] & 1;
	r.may_compress = data[0] & 2;
	step = (data[0] >> 2) + 1U;
	in = (struct slice){.p = (const char *)data + 1, .len = size - 1};
	while (at < in.len) {
		size_t n = in.len - at < step ? in.len - at : step;
		struct ws_piece piece;
		long used = ws_read(&r, (struct slice){.p = in.p + at, .len = n}, &piece);

		if (used < 0)
			break;
		assert(used > 0 && (size_t)used <= n);
		at += (size_t)used;
		if (piece.begins)
			ws_add_head(&copy, &r.frame);
		str_add(&copy, piece.payload.p, piece.payload.len);
		if (r.in_payload || piece.ends)
			whole = at;
	}
	assert(copy.len == whole && (!whole || memcmp(copy.p, in.p, whole) == 0));
	return 0;
}
