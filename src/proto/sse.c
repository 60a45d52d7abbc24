/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/sse.h"

#include <errno.h>
#include <string.h>

#define MARK "\xef\xbb\xbf" /* of UTF-8, which may stand first of all */

void sse_done(struct sse *sse)
{
	str_done(&sse->line);
	str_done(&sse->name);
	str_done(&sse->data);
	str_done(&sse->id);
}

static int give(struct sse *sse)
{
	const struct sse_event event = {
		.name = sse->name.len ? str_slice(&sse->name) : slice_of("message"),
		.data = {sse->data.p ? sse->data.p : "", sse->data.len},
		.id = str_slice(&sse->id)};
	int r = sse->has_data ? sse->on_event(sse->ctx, &event) : 0;

	str_reset(&sse->name);
	str_reset(&sse->data);
	sse->has_data = false;
	return r < 0 ? r : 0;
}

static void set(struct str *to, struct slice value)
{
	str_reset(to);
	str_add(to, value.p, value.len);
}

static void take_field(struct sse *sse, struct slice name, struct slice value)
{
	if (slice_is(name, "data")) {
		if (sse->has_data)
			str_putc(&sse->data, '\n');
		str_add(&sse->data, value.p, value.len);
		sse->has_data = true;
	} else if (slice_is(name, "event")) {
		set(&sse->name, value);
	} else if (slice_is(name, "id") && !(value.len && memchr(value.p, '\0', value.len))) {
		set(&sse->id, value);
	}
}

static int take_line(struct sse *sse)
{
	struct slice line = str_slice(&sse->line), value = slice_of("");
	const char *colon;

	if (!sse->is_begun && slice_starts(line, MARK)) {
		line.p += strlen(MARK);
		line.len -= strlen(MARK);
	}
	sse->is_begun = true;
	if (line.len == 0)
		return give(sse);
	colon = memchr(line.p, ':', line.len);
	if (colon) {
		value = (struct slice){colon + 1, line.len - (size_t)(colon + 1 - line.p)};
		line.len = (size_t)(colon - line.p);
	}
	if (value.len && value.p[0] == ' ') {
		value.p++;
		value.len--;
	}
	take_field(sse, line, value); /* a comment has no name */
	return 0;
}

/* Up to a line's end. */
static size_t plain_len(struct slice in)
{
	const char *lf = memchr(in.p, '\n', in.len);
	size_t len = lf ? (size_t)(lf - in.p) : in.len;
	const char *cr = memchr(in.p, '\r', len);

	return cr ? (size_t)(cr - in.p) : len;
}

int sse_read(struct sse *sse, struct slice in)
{
	while (in.len > 0) {
		size_t n = plain_len(in);
		bool is_second = n == 0 && in.p[0] == '\n' && sse->was_cr; /* half of CR LF */
		int r = 0;

		if (sse->line.len + sse->data.len + n > SSE_EVENT_MAX)
			return -EMSGSIZE;
		str_add(&sse->line, in.p, n);
		sse->was_cr = n < in.len && in.p[n] == '\r';
		if (n < in.len && !is_second) {
			r = take_line(sse);
			str_reset(&sse->line);
		}
		if (r < 0)
			return r;
		n += n < in.len;
		in.p += n;
		in.len -= n;
	}
	return 0;
}
