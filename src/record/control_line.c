/* SPDX-License-Identifier: Apache-2.0 */
#include "record/control_line.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "record/record_journal.h"

#define EVENT_START "{\"v\":"
/* Within this many bytes of a line's start our writer has put its seq. */
#define SEQ_WITHIN 160

void control_line_done(struct control_line *line)
{
	str_done(&line->sums);
}

static bool get_text(const json_t *root, const char *key, char *out, size_t size)
{
	const json_t *v = json_object_get(root, key);
	size_t len = json_string_length(v);

	if (!json_is_string(v) || len >= size)
		return false;
	memcpy(out, json_string_value(v), len + 1);
	return true;
}

static bool get_number(const json_t *root, const char *key, uint64_t *out)
{
	const json_t *v = json_object_get(root, key);
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < 0 || (uint64_t)n > CONTROL_LINE_SEQ_MAX)
		return false;
	*out = (uint64_t)n;
	return true;
}

static bool read_header(const json_t *root, struct control_line *line)
{
	if (!get_text(root, "journal", line->journal, sizeof(line->journal)) ||
		!get_text(root, "sandbox", line->sandbox, sizeof(line->sandbox)))
		return false;
	line->segment = 0;
	if (strcmp(line->journal, "log") == 0)
		return get_text(root, "meta_sha256", line->hash, sizeof(line->hash));
	return get_text(root, "prev", line->hash, sizeof(line->hash)) &&
	       get_number(root, "segment", &line->segment);
}

static bool read_hash(const json_t *root, struct control_line *line)
{
	const json_t *sums = json_object_get(root, "sums");

	if (!json_is_string(sums))
		return false;
	str_add(&line->sums, json_string_value(sums), json_string_length(sums));
	return get_text(root, "h", line->hash, sizeof(line->hash)) &&
	       strlen(line->hash) == DIGEST_HEX_LEN && get_number(root, "batch", &line->batch) &&
	       get_number(root, "n", &line->n) && get_number(root, "seq", &line->seq) &&
	       get_number(root, "events", &line->events);
}

static bool read_file(const json_t *root, struct control_line *line)
{
	return get_text(root, "file", line->name, sizeof(line->name)) &&
	       get_text(root, "sha256", line->hash, sizeof(line->hash)) &&
	       get_number(root, "bytes", &line->bytes);
}

static bool read_gap(const json_t *root, struct control_line *line)
{
	const json_t *gap = json_object_get(root, "gap");

	return get_number(gap, "first", &line->first) && get_number(gap, "last", &line->last) &&
	       line->first <= line->last;
}

enum control_line_kind control_line_read(struct slice text, struct control_line *line)
{
	static const struct {
		const char *start;
		enum control_line_kind kind;
		bool (*read)(const json_t *root, struct control_line *line);
	} kinds[] = {
		{RECORD_JOURNAL_HASH_START, CONTROL_LINE_HASH, read_hash},
		{RECORD_JOURNAL_HEADER_START, CONTROL_LINE_HEADER, read_header},
		{"{\"file\":\"", CONTROL_LINE_FILE, read_file},
		{"{\"gap\":{", CONTROL_LINE_GAP, read_gap},
	};

	if (slice_starts(text, EVENT_START))
		return line->kind = CONTROL_LINE_EVENT;
	line->kind = CONTROL_LINE_BAD;
	str_reset(&line->sums);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		json_t *root;

		if (!slice_starts(text, kinds[i].start))
			continue;
		root = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, NULL);
		if (root && kinds[i].read(root, line))
			line->kind = kinds[i].kind;
		json_decref(root);
	}
	return line->kind;
}

int control_line_seq(struct slice text, uint64_t *ret_seq)
{
	static const char key[] = ",\"seq\":";
	const char *end = text.p + text.len, *at;
	uint64_t seq = 0;

	at = memmem(text.p, text.len < SEQ_WITHIN ? text.len : SEQ_WITHIN, key, sizeof(key) - 1);
	if (!at)
		return -EBADMSG;
	at += sizeof(key) - 1;
	for (; at < end && *at >= '0' && *at <= '9'; at++) {
		seq = seq * 10 + (uint64_t)(*at - '0');
		if (seq > CONTROL_LINE_SEQ_MAX)
			return -EBADMSG;
	}
	if (seq == 0 || at == end || *at != ',')
		return -EBADMSG;
	*ret_seq = seq;
	return 0;
}
