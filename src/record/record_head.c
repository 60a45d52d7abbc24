/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_head.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const end_names[] = {
	[RECORD_OPEN] = "open",
	[RECORD_FINAL] = "final",
	[RECORD_CUT] = "cut",
	[RECORD_SUSPENDED] = "suspended",
};

const char *record_head_end_name(enum record_end end)
{
	return end_names[end];
}

int record_head_find_end(struct slice name, enum record_end *ret_end)
{
	for (int i = RECORD_OPEN; i <= RECORD_SUSPENDED; i++) {
		if (!slice_is(name, end_names[i]))
			continue;
		*ret_end = (enum record_end)i;
		return 0;
	}
	return -ENOENT;
}

void record_head_text(const struct record_head *head, const char *id, struct str *out)
{
	str_printf(out,
		"cloche record 1\nsandbox %s\nend %s\nseq %" PRIu64 "\nevents %" PRIu64
		"\nlog %s\ntrace %s\n",
		id, end_names[head->end], head->seq, head->events, head->log, head->trace);
}

void record_head_seal(struct record_head *head, const char *id)
{
	scoped_str struct str text = {0};

	record_head_text(head, id, &text);
	digest_of(text.p, text.len, head->head);
}

int record_head_parse(
	struct slice text, char ret_id[RECORD_ID_MAX + 1], struct record_head *ret_head)
{
	char copy[RECORD_HEAD_TEXT_MAX + 1], id[RECORD_ID_MAX + 1], end[16];
	scoped_str struct str again = {0};
	struct record_head head = {0};

	if (text.len == 0 || text.len > RECORD_HEAD_TEXT_MAX || memchr(text.p, '\0', text.len))
		return -EBADMSG;
	memcpy(copy, text.p, text.len);
	copy[text.len] = '\0';
	if (sscanf(copy,
		    "cloche record 1\nsandbox %63s\nend %15s\nseq %" SCNu64 "\nevents %" SCNu64
		    "\nlog %64s\ntrace %64s\n",
		    id, end, &head.seq, &head.events, head.log, head.trace) != 6 ||
		record_head_find_end(slice_of(end), &head.end) < 0)
		return -EBADMSG;
	record_head_text(&head, id, &again);
	if (!slice_eq(str_slice(&again), text))
		return -EBADMSG;
	digest_of(text.p, text.len, head.head);
	memcpy(ret_id, id, sizeof(id));
	*ret_head = head;
	return 0;
}
