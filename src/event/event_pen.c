/* SPDX-License-Identifier: Apache-2.0 */
/* Writing is on the path of every observed fact, so it goes by a pen: room is made once for many small
 * pieces, keys are literals of one size, and only text that needs escaping takes jsonw's way. */
#include "event/event_pen.h"

#include <string.h>

#include "util/jsonw.h"

#define LITERAL_SIZE 32
#define NUMBER_MAX   20  /* digits and sign */
#define HEADER_MAX   512 /* all before the first field, without texts */

struct literal {
	char text[LITERAL_SIZE]; /* copied whole, whatever len says */
	unsigned char len;
};
#define LITERAL(chars) \
	{ \
		chars, sizeof(chars) - 1 \
	}

#define KIND_LITERAL(symbol, name) [EVENT_##symbol] = LITERAL(",\"kind\":\"" name "\""),
static const struct literal kind_literals[EVENT_N_KINDS] = {EVENT_KINDS(KIND_LITERAL)};
#undef KIND_LITERAL

#define KEY_LITERAL(json, member, type) [EVENT_F_##member] = LITERAL(",\"" #json "\":"),
static const struct literal key_literals[EVENT_N_FIELDS] = {EVENT_FIELDS(KEY_LITERAL)};
#undef KEY_LITERAL

static const struct literal start = LITERAL("{\"v\":1"), before_sandbox = LITERAL(",\"sandbox\":"),
			    before_seq = LITERAL(",\"seq\":"),
			    before_guest_ns = LITERAL(",\"guest_ns\":"),
			    before_wall_ms = LITERAL(",\"wall_ms\":"),
			    before_pid = LITERAL(",\"pid\":"), before_task = LITERAL(",\"task\":"),
			    before_exec = LITERAL(",\"exec\":"),
			    is_internal = LITERAL(",\"internal\":true"), is_true = LITERAL("true"),
			    is_false = LITERAL("false");
_Static_assert(EVENT_SCHEMA == 1, "start says so");

struct pen {
	struct str *out;
	char *at; /* within out, behind what out->len knows of */
};

/* Makes sure that n bytes more can be written. */
static void pen_room(struct pen *pen, size_t n)
{
	pen->out->len = pen->at ? (size_t)(pen->at - pen->out->p) : pen->out->len;
	str_reserve(pen->out, n);
	pen->at = pen->out->p + pen->out->len;
}

static void pen_literal(struct pen *pen, const struct literal *literal)
{
	memcpy(pen->at, literal->text, LITERAL_SIZE);
	pen->at += literal->len;
}

static void pen_number(struct pen *pen, int64_t v)
{
	char digits[NUMBER_MAX];
	char *end = digits + sizeof(digits), *at = end;
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do {
		*--at = (char)('0' + u % 10);
		u /= 10;
	} while (u);
	if (v < 0)
		*--at = '-';
	memcpy(pen->at, at, (size_t)(end - at));
	pen->at += end - at;
}

/* Eight bytes at a time: one that is a control, a quote, a backslash or not ASCII sets its top bit. */
static bool is_plain(struct slice text)
{
	const uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
	size_t i = 0;

	for (; i + 8 <= text.len; i += 8) {
		uint64_t w, quote, slash;

		memcpy(&w, text.p + i, 8);
		quote = w ^ (ones * '"');
		slash = w ^ (ones * '\\');
		if ((w | (w + ones) | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & tops)
			return false;
	}
	for (; i < text.len; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			return false;
	}
	return true;
}

static void pen_plain(struct pen *pen, struct slice text)
{
	*pen->at++ = '"';
	if (text.len)
		memcpy(pen->at, text.p, text.len);
	pen->at += text.len;
	*pen->at++ = '"';
}

/* Lets jsonw go on behind what the pen wrote, and the pen behind that. */
static struct jsonw pen_lend(struct pen *pen)
{
	pen_room(pen, 0);
	return (struct jsonw){.out = pen->out, .comma = true};
}

static void pen_take_back(struct pen *pen)
{
	pen->at = pen->out->p + pen->out->len;
}

static void pen_text(
	struct pen *pen, const struct literal *key, const char *name, struct slice text)
{
	struct jsonw j;

	if (is_plain(text)) {
		pen_room(pen, text.len + LITERAL_SIZE + 2);
		pen_literal(pen, key);
		pen_plain(pen, text);
		return;
	}
	j = pen_lend(pen);
	jsonw_kslice(&j, name, text);
	pen_take_back(pen);
}

static bool is_plain_list(const struct event_list *list, size_t *ret_bytes)
{
	*ret_bytes = 2;
	for (size_t i = 0; i < list->n; i++) {
		if (!is_plain(list->items[i]))
			return false;
		*ret_bytes += list->items[i].len + 3;
	}
	return true;
}

static void pen_list(
	struct pen *pen, const struct literal *key, const char *name, const struct event_list *list)
{
	struct jsonw j;
	size_t bytes;

	if (!is_plain_list(list, &bytes)) {
		j = pen_lend(pen);
		jsonw_klist(&j, name, list->items, list->n);
		pen_take_back(pen);
		return;
	}
	pen_room(pen, LITERAL_SIZE + bytes);
	pen_literal(pen, key);
	*pen->at++ = '[';
	for (size_t i = 0; i < list->n; i++) {
		if (i > 0)
			*pen->at++ = ',';
		pen_plain(pen, list->items[i]);
	}
	*pen->at++ = ']';
}

static void pen_raw(struct pen *pen, const char *name, struct slice raw)
{
	struct jsonw j = pen_lend(pen);

	jsonw_key(&j, name);
	jsonw_raw(&j, raw);
	pen_take_back(pen);
}

static void pen_field(struct pen *pen, const struct event *ev, size_t f)
{
	const struct event_field_info *info = &event_field_table[f];
	const void *at = (const char *)ev + info->offset;
	const struct literal *key = &key_literals[f];

	switch (info->type) {
	case EVENT_TYPE_int:
		pen_room(pen, 2 * LITERAL_SIZE);
		pen_literal(pen, key);
		pen_number(pen, *(const event_int *)at);
		return;
	case EVENT_TYPE_bool:
		pen_room(pen, 2 * LITERAL_SIZE);
		pen_literal(pen, key);
		pen_literal(pen, *(const event_bool *)at ? &is_true : &is_false);
		return;
	case EVENT_TYPE_text:
		pen_text(pen, key, info->name, *(const event_text *)at);
		return;
	case EVENT_TYPE_list:
		pen_list(pen, key, info->name, at);
		return;
	case EVENT_TYPE_errno:
		pen_text(
			pen, key, info->name, slice_of(event_errno_name(*(const event_errno *)at)));
		return;
	case EVENT_TYPE_raw:
		pen_raw(pen, info->name, *(const event_raw *)at);
		return;
	}
}

static void pen_optional(struct pen *pen, const struct literal *key, int64_t v)
{
	if (!v)
		return;
	pen_literal(pen, key);
	pen_number(pen, v);
}

static void pen_header(struct pen *pen, const struct event *ev, struct slice sandbox)
{
	pen_room(pen, LITERAL_SIZE);
	pen_literal(pen, &start);
	pen_text(pen, &before_sandbox, "sandbox", sandbox);
	pen_room(pen, HEADER_MAX);
	pen_literal(pen, &before_seq);
	pen_number(pen, (int64_t)ev->seq);
	pen_literal(pen, &before_guest_ns);
	pen_number(pen, ev->guest_ns);
	pen_literal(pen, &before_wall_ms);
	pen_number(pen, ev->wall_ms);
	pen_literal(pen, &kind_literals[ev->kind]);
	pen_optional(pen, &before_pid, ev->pid);
	pen_optional(pen, &before_task, ev->task);
	if (ev->exec.len)
		pen_text(pen, &before_exec, "exec", ev->exec);
	pen_room(pen, 2 * LITERAL_SIZE);
	if (ev->internal)
		pen_literal(pen, &is_internal);
}

void event_pen_write(struct str *out, const struct event *ev, struct slice sandbox)
{
	struct pen pen = {.out = out};

	pen_header(&pen, ev, sandbox);
	for (size_t w = 0; w < EVENT_HAS_WORDS; w++)
		for (uint64_t bits = ev->has[w]; bits; bits &= bits - 1)
			pen_field(&pen, ev, w * 64 + (size_t)__builtin_ctzll(bits));
	pen_room(&pen, 2);
	*pen.at++ = '}';
	*pen.at = '\0';
	out->len = (size_t)(pen.at - out->p);
}
