/* SPDX-License-Identifier: Apache-2.0 */
/* Texts with secrets: what was JSON is JSON without them, since detail and labels are redacted as they stand. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "record/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_json(struct slice text)
{
	json_t *root = json_loadb(text.p, text.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);

	json_decref(root);
	return root != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct redact *redact;
	struct slice text = {.p = (const char *)data, .len = size};
	scoped_str struct str out = {0};
	struct slice items[3];
	struct event_list list = {.items = items, .n = 3}, kept;
	struct event ev = {.kind = EVENT_EXEC_END};
	const struct event *kept_event;

	if (!redact)
		redact = redact_new("sb_fuzz");
	if (is_json(text))
		event_set(&ev, labels, text);
	event_set(&ev, headers, text);
	event_set(&ev, body, text);
	event_set(&ev, body_encoding, slice_of(size % 2 ? "base64" : "utf8"));
	kept_event = redact_event(redact, &ev);
	assert(!event_has(&ev, labels) || is_json(kept_event->labels));
	assert(is_json(kept_event->headers));
	(void)redact_text(redact, text, &out); /* whatever comes of it */
	for (size_t i = 0; i < 3; i++) {
		items[i].p = text.p + size / 3 * i;
		items[i].len = i < 2 ? size / 3 : size - size / 3 * 2;
	}
	(void)redact_list(redact, list, &kept);
	(void)redact_event(redact, &(struct event){.kind = EVENT_HINT}); /* lets go of the copies */
	return 0;
}
