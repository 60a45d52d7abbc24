/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/http_copy.h"

#include <string.h>

void http_copy_init(
	struct http_copy *copy, const struct http_setup *setup, bool is_response, bool is_model)
{
	*copy = (struct http_copy){.limit = setup->body_limit,
		.keep = !setup->keeps_no_body &&
	                (!is_response || is_model || setup->record_responses),
		.spare = is_model ? setup->spare : NULL};
	if (copy->keep)
		digest_init(&copy->digest);
}

void http_copy_done(struct http_copy *copy)
{
	if (copy->spare)
		*copy->spare += copy->taken;
	str_done(&copy->bytes);
	str_done(&copy->tail);
	*copy = (struct http_copy){0};
}

/* How many of n more bytes are kept. Beyond the limit all copies draw on one spare. */
static size_t room(struct http_copy *copy, size_t n)
{
	size_t have = copy->bytes.len;
	size_t free = have < copy->limit ? copy->limit - have : 0;
	size_t more;

	if (n <= free || !copy->spare || have + n > HTTP_COPY_MODEL_MAX)
		return n < free ? n : free;
	more = n - free;
	if (more > *copy->spare)
		more = *copy->spare;
	*copy->spare -= more;
	copy->taken += more;
	return free + more;
}

static size_t tail_max(const struct http_copy *copy)
{
	return copy->limit < HTTP_COPY_TAIL_MAX ? copy->limit : HTTP_COPY_TAIL_MAX;
}

/* Room for twice of what is kept: it is moved to the front once for as many bytes as it has. */
static void add_tail(struct http_copy *copy, struct slice bytes)
{
	size_t max = tail_max(copy), keep;

	if (bytes.len == 0 || max == 0)
		return;
	if (bytes.len >= max) {
		str_reset(&copy->tail);
		bytes = (struct slice){.p = bytes.p + bytes.len - max, .len = max};
	} else if (copy->tail.len + bytes.len > 2 * max) {
		keep = max - bytes.len;
		memmove(copy->tail.p, copy->tail.p + copy->tail.len - keep, keep);
		copy->tail.len = keep;
	}
	str_add(&copy->tail, bytes.p, bytes.len);
}

void http_copy_add(struct http_copy *copy, struct slice bytes)
{
	size_t n = 0;

	if (copy->keep) {
		digest_add(&copy->digest, bytes.p, bytes.len);
		/* Once something was left out, nothing more is added: this is a beginning. */
		if (copy->bytes.len == copy->seen)
			n = room(copy, bytes.len);
		str_add(&copy->bytes, bytes.p, n);
		add_tail(copy, (struct slice){.p = bytes.p + n, .len = bytes.len - n});
	}
	copy->seen += bytes.len;
}

static struct slice tail_of(const struct http_copy *copy)
{
	struct slice tail = str_slice(&copy->tail);
	size_t max = tail_max(copy);

	return tail.len <= max ? tail : (struct slice){.p = tail.p + tail.len - max, .len = max};
}

void http_copy_view(const struct http_copy *copy, struct http_copy_view *ret_view)
{
	*ret_view = (struct http_copy_view){.kept = copy->keep,
		.bytes = str_slice(&copy->bytes),
		.tail = tail_of(copy),
		.truncated = copy->keep && copy->bytes.len < copy->seen,
		.seen = copy->seen,
		.whole = copy->whole};
	if (copy->keep && copy->whole)
		digest_value_hex(&copy->digest, ret_view->sha256);
}
