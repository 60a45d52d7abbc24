/* SPDX-License-Identifier: Apache-2.0 */
#include "event/event_quick.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"
#include "util/utf8.h"

#define DIGITS_MAX 18 /* more may not fit an int64_t */

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

/* A string without escapes; what is in it beyond ASCII was checked for the line as a whole. */
static bool take_text(struct cursor *c, struct slice *ret)
{
	char *start, *stop;

	if (!take_char(c, '"'))
		return false;
	start = c->at;
	stop = memchr(start, '"', (size_t)(c->end - start));
	if (!stop)
		return false;
	*ret = (struct slice){.p = start, .len = (size_t)(stop - start)};
	*stop = '\0';
	c->at = stop + 1;
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

static void place_lists(struct event_quick *quick, struct event *ev)
{
	struct slice *at = quick->items;

	for (size_t i = 0; i < quick->n_lists; i++) {
		struct event_list *list =
			(void *)((char *)ev + event_field_table[quick->lists[i]].offset);

		list->items = at;
		at += list->n;
	}
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
		return false;
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

/* No escape, no control character, and UTF-8. */
static bool is_simple(struct slice line)
{
	bool ascii = true;

	for (size_t i = 0; i < line.len; i++) {
		unsigned char b = (unsigned char)line.p[i];

		if (b < 0x20 || b == '\\')
			return false;
		ascii &= b < 0x80;
	}
	return ascii || utf8_is_valid(line.p, line.len);
}

bool event_quick_read(struct event_quick *quick, struct slice line, struct event *ev)
{
	const unsigned needed = 1U << HEADER_SEQ | 1U << HEADER_KIND;
	struct cursor c = {.quick = quick, .ev = ev};

	if (!is_simple(line))
		return false;
	str_reset(&quick->copy);
	str_add(&quick->copy, line.p, line.len);
	quick->n_items = quick->n_lists = 0;
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
