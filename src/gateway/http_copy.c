/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/http_copy.h"

void http_copy_init(
	struct http_copy *copy, const struct http_setup *setup, bool is_response, bool is_model)
{
	*copy = (struct http_copy){.limit = setup->body_limit,
		.keep = !is_response || is_model || setup->record_responses,
		.spare = is_model ? setup->spare : NULL};
	if (copy->keep)
		digest_init(&copy->digest);
}

void http_copy_done(struct http_copy *copy)
{
	if (copy->spare)
		*copy->spare += copy->taken;
	str_done(&copy->bytes);
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

void http_copy_add(struct http_copy *copy, struct slice bytes)
{
	if (copy->keep) {
		digest_add(&copy->digest, bytes.p, bytes.len);
		/* Once something was left out, nothing more is added: what is kept is a beginning. */
		if (copy->bytes.len == copy->seen)
			str_add(&copy->bytes, bytes.p, room(copy, bytes.len));
	}
	copy->seen += bytes.len;
}

void http_copy_view(const struct http_copy *copy, struct http_copy_view *ret_view)
{
	*ret_view = (struct http_copy_view){.kept = copy->keep,
		.bytes = str_slice(&copy->bytes),
		.truncated = copy->keep && copy->bytes.len < copy->seen,
		.seen = copy->seen,
		.whole = copy->whole};
	if (copy->keep && copy->whole)
		digest_value_hex(&copy->digest, ret_view->sha256);
}
