/* SPDX-License-Identifier: Apache-2.0 */
#include "event/event_quick.h"

#include <stdlib.h>
#include <string.h>

#include "util/json_text.h"
#include "util/mem.h"
#include "util/utf8.h"

#define DIGITS_MAX 18 /* more may not fit an int64_t */
#define NAMES_MAX  64 /* in one object: each is compared with those before */

struct key {
	const char *name;
	unsigned char len;
};
#define KEY(chars) \
	{ \
		chars, sizeof(chars) - 1 \
	}

#define FIELD_KEY(json, member, type) [EVENT_F_##member] = KEY(#json),
static const struct key field_keys[EVENT_N_FIELDS] = {EVENT_FIELDS(FIELD_KEY)};
#undef FIELD_KEY

enum header {
	HEADER_V,
	HEADER_SANDBOX,
	HEADER_SEQ,
	HEADER_GUEST_NS,
	HEADER_WALL_MS,
	HEADER_KIND,
	HEADER_PID,
	HEADER_TASK,
	HEADER_EXEC,
	HEADER_INTERNAL,
	N_HEADERS
};
static const struct key header_keys[N_HEADERS] = {
	[HEADER_V] = KEY("v"),
	[HEADER_SANDBOX] = KEY("sandbox"),
	[HEADER_SEQ] = KEY("seq"),
	[HEADER_GUEST_NS] = KEY("guest_ns"),
	[HEADER_WALL_MS] = KEY("wall_ms"),
	[HEADER_KIND] = KEY("kind"),
	[HEADER_PID] = KEY("pid"),
	[HEADER_TASK] = KEY("task"),
	[HEADER_EXEC] = KEY("exec"),
	[HEADER_INTERNAL] = KEY("internal"),
};

struct cursor {
	char *at, *end;
	struct event_quick *quick;
	struct event *ev;
	unsigned headers; /* those that came: a bit each */
	unsigned next;    /* the header or field that our writer puts next, or one behind it */
};

void event_quick_done(struct event_quick *quick)
{
	str_done(&quick->copy);
	free(quick->items);
	*quick = (struct event_quick){0};
}

static bool take_char(struct cursor *c, char want)
{
	if (c->at == c->end || *c->at != want)
		return false;
	c->at++;
	return true;
}

/* What is in it beyond ASCII was checked for the line as a whole. */
static bool take_text(struct cursor *c, struct slice *ret)
{
	bool escaped;
	size_t len;
	long n;

	if (!take_char(c, '"'))
		return false;
	n = json_text_find_end(c->at, (size_t)(c->end - c->at), &escaped);
	if (n < 0)
		return false;
	len = escaped ? json_text_decode(c->at, (size_t)n) : (size_t)n;
	*ret = (struct slice){.p = c->at, .len = len};
	c->at[len] = '\0';
	c->at += n + 1;
	return true;
}

static bool take_number(struct cursor *c, int64_t *ret)
{
	bool minus = take_char(c, '-');
	const char *start = c->at;
	int64_t v = 0;

	while (c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - start < DIGITS_MAX)
		v = v * 10 + (*c->at++ - '0');
	if (c->at == start || (*start == '0' && c->at - start > 1) || c->at == c->end)
		return false;
	if (*c->at != ',' && *c->at != '}')
		return false;
	*ret = minus ? -v : v;
	return true;
}

static bool take_word(struct cursor *c, const char *word, size_t len)
{
	if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
		return false;
	c->at += len;
	return true;
}

static bool take_bool(struct cursor *c, bool *ret)
{
	*ret = take_word(c, "true", 4);
	return *ret || take_word(c, "false", 5);
}

/* Items lie in one array that may move: the list keeps its place in it until the line is read. */
static bool take_list(struct cursor *c, enum event_field field, struct event_list *ret)
{
	struct event_quick *quick = c->quick;
	size_t first = quick->n_items;

	if (quick->n_lists == EVENT_QUICK_LISTS || !take_char(c, '['))
		return false;
	quick->lists[quick->n_lists++] = field;
	if (!take_char(c, ']')) {
		do {
			if (quick->n_items == quick->cap) {
				quick->cap = quick->cap ? quick->cap * 2 : 64;
				quick->items =
					mem_grow(quick->items, quick->cap, sizeof(struct slice));
			}
			if (!take_text(c, &quick->items[quick->n_items++]))
				return false;
		} while (take_char(c, ','));
		if (!take_char(c, ']'))
			return false;
	}
	ret->n = quick->n_items - first;
	return true;
}

/* All is read: lists have their places, and what stands behind an object is not needed any more. */
static void place_lists(struct event_quick *quick, struct event *ev)
{
	struct slice *at = quick->items;

	for (size_t i = 0; i < quick->n_raws; i++)
		*quick->raw_ends[i] = '\0';
	for (size_t i = 0; i < quick->n_lists; i++) {
		struct event_list *list =
			(void *)((char *)ev + event_field_table[quick->lists[i]].offset);

		list->items = at;
		at += list->n;
	}
}

static bool came_before(const struct slice *names, size_t n, struct slice name)
{
	for (size_t i = 0; i < n; i++)
		if (slice_eq(names[i], name))
			return true;
	return false;
}

/* An object of texts, as headers and labels are, kept as it stands. */
static bool take_raw(struct cursor *c, struct slice *ret)
{
	struct event_quick *quick = c->quick;
	struct slice rest = {.p = c->at, .len = (size_t)(c->end - c->at)};
	struct json_flat flat = json_flat_of(rest);
	struct json_flat_item item;
	struct slice names[NAMES_MAX];
	size_t n = 0;
	int r;

	while ((r = json_flat_next(&flat, &item)) > 0) {
		if (n == NAMES_MAX || came_before(names, n, item.name))
			return false;
		names[n++] = item.name;
	}
	if (r < 0 || quick->n_raws == EVENT_QUICK_LISTS)
		return false;
	ret->p = c->at;
	ret->len = (size_t)(flat.at - c->at);
	c->at += ret->len;
	quick->raw_ends[quick->n_raws++] = c->at;
	return true;
}

static bool take_errno(struct cursor *c, event_errno *ret)
{
	struct slice name;

	if (!take_text(c, &name))
		return false;
	*ret = event_errno_find(name);
	return true;
}

static bool take_field(struct cursor *c, enum event_field field)
{
	void *at = (char *)c->ev + event_field_table[field].offset;

	if (event_has_field(c->ev, field))
		return false;
	event_mark_field(c->ev, field);
	switch (event_field_table[field].type) {
	case EVENT_TYPE_int:
		return take_number(c, at);
	case EVENT_TYPE_bool:
		return take_bool(c, at);
	case EVENT_TYPE_text:
		return take_text(c, at);
	case EVENT_TYPE_list:
		return take_list(c, field, at);
	case EVENT_TYPE_errno:
		return take_errno(c, at);
	case EVENT_TYPE_raw:
		return take_raw(c, at);
	}
	return false;
}

static bool take_kind(struct cursor *c)
{
	struct slice name;

	return take_text(c, &name) && event_kind_find(name, &c->ev->kind) == 0;
}

static bool take_header(struct cursor *c, enum header header)
{
	struct event *ev = c->ev;
	int64_t v;

	if (c->headers >> header & 1)
		return false;
	c->headers |= 1U << header;
	switch (header) {
	case HEADER_V:
		return take_number(c, &v);
	case HEADER_SANDBOX:
		return take_text(c, &ev->sandbox);
	case HEADER_SEQ:
		if (!take_number(c, &v))
			return false;
		ev->seq = (uint64_t)v;
		return true;
	case HEADER_GUEST_NS:
		return take_number(c, &ev->guest_ns);
	case HEADER_WALL_MS:
		return take_number(c, &ev->wall_ms);
	case HEADER_KIND:
		return take_kind(c);
	case HEADER_PID:
		return take_number(c, &ev->pid);
	case HEADER_TASK:
		return take_number(c, &ev->task);
	case HEADER_EXEC:
		return take_text(c, &ev->exec);
	case HEADER_INTERNAL:
		return take_bool(c, &ev->internal);
	case N_HEADERS:
		break;
	}
	return false;
}

static bool is_key(const struct key *key, struct slice name)
{
	return key->len == name.len && memcmp(key->name, name.p, name.len) == 0;
}

/* Keys come in the order of the tables, so the search goes on where the last one ended. "task" is both a
 * thread and, on rows, a text. */
static bool take_member(struct cursor *c)
{
	struct slice name;

	if (!take_text(c, &name) || !take_char(c, ':') || c->at == c->end)
		return false;
	for (; c->next < N_HEADERS; c->next++) {
		if (c->next == HEADER_TASK && *c->at == '"')
			continue;
		if (is_key(&header_keys[c->next], name))
			return take_header(c, (enum header)c->next++);
	}
	for (; c->next < N_HEADERS + EVENT_N_FIELDS; c->next++)
		if (is_key(&field_keys[c->next - N_HEADERS], name))
			return take_field(c, (enum event_field)(c->next++ - N_HEADERS));
	return false;
}

/* No control character, and UTF-8. Eight bytes at a time: one below 0x20 sets its top bit. */
static bool is_simple(struct slice line)
{
	const uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
	uint64_t controls = 0, high = 0, w;
	size_t i = 0;

	for (; i + 8 <= line.len; i += 8) {
		memcpy(&w, line.p + i, 8);
		controls |= (w - ones * 0x20) & ~w;
		high |= w;
	}
	for (; i < line.len; i++) {
		w = (unsigned char)line.p[i];
		controls |= (w - 0x20) & ~w & 0x80;
		high |= w;
	}
	if (controls & tops)
		return false;
	return !(high & tops) || utf8_is_valid(line.p, line.len);
}

bool event_quick_read(struct event_quick *quick, struct slice line, struct event *ev)
{
	const unsigned needed = 1U << HEADER_SEQ | 1U << HEADER_KIND;
	struct cursor c = {.quick = quick, .ev = ev};

	if (!is_simple(line))
		return false;
	str_reset(&quick->copy);
	str_add(&quick->copy, line.p, line.len);
	quick->n_items = quick->n_lists = quick->n_raws = 0;
	c.at = quick->copy.p;
	c.end = c.at + line.len;
	if (!take_char(&c, '{'))
		return false;
	do {
		if (!take_member(&c))
			return false;
	} while (take_char(&c, ','));
	if (!take_char(&c, '}') || c.at != c.end || (c.headers & needed) != needed)
		return false;
	place_lists(quick, ev);
	return true;
}
