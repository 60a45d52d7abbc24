/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 requests and responses: in one piece and byte by byte they must read the same. The first byte chooses. */
#include <assert.h>
#include <stdint.h>

#include "../unit/http1_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(bool responses, struct slice in, size_t step, struct str *out)
{
	struct http1_walk walk = {.responses = responses, .method = slice_of("GET"), .out = out};

	for (size_t at = 0; at < in.len; at += step)
		http1_walk_feed(&walk, (struct slice){.p = in.p + at,
					       .len = in.len - at < step ? in.len - at : step});
	http1_walk_finish(&walk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_str struct str whole = {0}, bytes = {0};
	struct slice in;

	if (size < 2)
		return 0;
	in = (struct slice){.p = (const char *)data + 1, .len = size - 1};
	walk(data[0] & 1, in, in.len, &whole);
	walk(data[0] & 1, in, 1, &bytes);
	assert(slice_eq(str_slice(&whole), str_slice(&bytes)));
	return 0;
}
