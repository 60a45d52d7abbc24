/* SPDX-License-Identifier: Apache-2.0 */
/* Heads on their way through a preview: what is written anew can be read, says the same of a body, and has nothing of ours in
 * it. The first byte chooses: a request, or an answer to one. */
#include <assert.h>
#include <stdint.h>

#include "server/preview_head.h"
#include "server/preview_pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct preview_way way = {.port = 3000,
	.host = {"pv-0123456789abcdef.preview.localhost", 37},
	.client = {"192.0.2.7", 9}};

static bool has(const struct http1_head *head, const char *name)
{
	return http1_find(head, name).p != NULL;
}

static void check_cookies(const struct http1_head *head, const char *field)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		struct slice rest = head->fields[i].value, name, pair;

		if (!http1_is(head->fields[i].name, field))
			continue;
		while (preview_pass_next_cookie(&rest, &name, &pair)) {
			assert(!preview_pass_is_ours(name));
			if (http1_is(slice_of(field), "set-cookie"))
				break; /* behind the first are attributes */
		}
	}
}

static void check_request(const struct http1_head *head)
{
	scoped_str struct str out = {0};
	struct http1_fault fault;
	struct http1_head again;
	size_t scanned = 0;

	preview_head_add_request(head, &way, &out);
	if (out.len > HTTP1_MAX_HEAD || head->target.p[0] != '/' || head->n_fields > 250)
		return; /* the door lets no other targets in, and a server inside has bounds of its own */
	assert(http1_find_end(str_slice(&out), &scanned, &fault) == (long)out.len);
	assert(http1_read_request(str_slice(&out), &again, &fault) == 0);
	assert(again.framing == head->framing && again.length == head->length);
	assert(slice_is(again.host, "localhost:3000"));
	assert(!again.upgrade.p == !preview_head_is_upgrade(head));
	assert(!has(&again, "proxy-authorization") && !has(&again, "te") &&
		!has(&again, "forwarded"));
	check_cookies(&again, "cookie");
	http1_head_done(&again);
}

static void check_answer(const struct http1_head *head)
{
	const struct http1_head request = {.method = slice_of("GET"), .minor = 1};
	scoped_str struct str out = {0};
	struct preview_answer how = preview_head_add_answer(head, &request, &way, false, &out);
	struct http1_fault fault;
	struct http1_head again;
	size_t scanned = 0;

	if (out.len > HTTP1_MAX_HEAD || head->n_fields > 250)
		return;
	assert(http1_find_end(str_slice(&out), &scanned, &fault) == (long)out.len);
	assert(http1_read_response(str_slice(&out), request.method, &again, &fault) == 0);
	assert(again.framing == how.framing && again.status == head->status);
	assert(how.framing != HTTP1_LENGTH || again.length == head->length);
	assert(!has(&again, "clear-site-data") && !has(&again, "alt-svc"));
	check_cookies(&again, "set-cookie");
	http1_head_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = {.p = (const char *)data + 1, .len = size ? size - 1 : 0};
	struct http1_fault fault;
	struct http1_head head;
	size_t scanned = 0;

	if (size < 2 || http1_find_end(in, &scanned, &fault) != (long)in.len)
		return 0;
	if (data[0] & 1 && http1_read_request(in, &head, &fault) == 0)
		check_request(&head);
	else if (!(data[0] & 1) && http1_read_response(in, slice_of("GET"), &head, &fault) == 0)
		check_answer(&head);
	else
		return 0;
	http1_head_done(&head);
	return 0;
}
