/* SPDX-License-Identifier: Apache-2.0 */
/* The same events come out however the bytes are cut; the first byte says how. */
#include <assert.h>
#include <stdint.h>

#include "proto/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int note(void *ctx, const struct sse_event *event)
{
	struct str *out = ctx;

	str_printf(out, "%zu %zu %zu\n", event->name.len, event->id.len, event->data.len);
	str_add(out, event->name.p, event->name.len);
	str_add(out, event->id.p, event->id.len);
	str_add(out, event->data.p, event->data.len);
	return 0;
}

static void read_all(struct slice in, size_t step, struct str *out)
{
	struct sse sse = {.on_event = note, .ctx = out};

	for (size_t at = 0; at < in.len; at += step) {
		size_t n = in.len - at < step ? in.len - at : step;

		assert(sse_read(&sse, (struct slice){in.p + at, n}) == 0);
	}
	sse_done(&sse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str whole = {0}, cut = {0};
	struct slice in = {(const char *)data + 1, size - 1};

	if (size < 2)
		return 0;
	read_all(in, in.len, &whole);
	read_all(in, 1 + data[0] % 7, &cut);
	assert(slice_eq(str_slice(&whole), str_slice(&cut)));
	str_done(&whole);
	str_done(&cut);
	return 0;
}
