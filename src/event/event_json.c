/* SPDX-License-Identifier: Apache-2.0 */
/* Reading uses jansson on one line at a time; strings stay in its tree, decoded base64 and lists in blocks
 * that the line owns. */
#include "event/event_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "util/base64.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define DEPTH_OF_LINE (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL)

/* Writing is on the path of every observed fact, so it goes by a pen: room is made once for many small
 * pieces, keys are literals of one size, and only text that needs escaping takes jsonw's way. */
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

void event_json_write(struct str *out, const struct event *ev, struct slice sandbox)
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

struct event_line {
	struct event event;
	json_t *root;
	void *blocks[EVENT_N_FIELDS * 2];
	size_t n_blocks;
	void **item_blocks; /* decoded list items */
	size_t n_item_blocks;
};

static void line_clear(struct event_line *line)
{
	for (size_t i = 0; i < line->n_blocks; i++)
		free(line->blocks[i]);
	for (size_t i = 0; i < line->n_item_blocks; i++)
		free(line->item_blocks[i]);
	free(line->item_blocks);
	json_decref(line->root);
	memset(line, 0, sizeof(*line));
}

void event_line_free(struct event_line *line)
{
	if (!line)
		return;
	line_clear(line);
	free(line);
}

const struct event *event_json_get(const struct event_line *line)
{
	return &line->event;
}

static struct slice text_of(const json_t *v)
{
	return (struct slice){.p = json_string_value(v), .len = json_string_length(v)};
}

/* Decodes base64 into a block of its own; NULL where it is none. */
static char *decode_base64(struct slice in, size_t *ret_len)
{
	struct str out = {0};

	if (base64_decode(in, &out) < 0) {
		str_done(&out);
		return NULL;
	}
	*ret_len = out.len;
	return str_take(&out);
}

static const json_t *exact_bytes(const struct event_line *line, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_b64", name);
	return json_object_get(line->root, key);
}

static struct slice read_text(struct event_line *line, const char *name, const json_t *v)
{
	const json_t *b64 = exact_bytes(line, name);
	size_t len;
	char *block;

	if (!json_is_string(b64))
		return text_of(v);
	block = decode_base64(text_of(b64), &len);
	if (!block)
		return text_of(v);
	line->blocks[line->n_blocks++] = block;
	return (struct slice){.p = block, .len = len};
}

static struct slice read_item(struct event_line *line, const json_t *v, bool is_base64)
{
	size_t len;
	char *block;

	if (!json_is_string(v) || !is_base64)
		return json_is_string(v) ? text_of(v) : slice_of("");
	block = decode_base64(text_of(v), &len);
	if (!block)
		return slice_of("");
	line->item_blocks = mem_grow(line->item_blocks, line->n_item_blocks + 1, sizeof(void *));
	line->item_blocks[line->n_item_blocks++] = block;
	return (struct slice){.p = block, .len = len};
}

static struct event_list read_list(struct event_line *line, const char *name, const json_t *v)
{
	const json_t *b64 = exact_bytes(line, name);
	bool is_base64 = json_is_array(b64) && json_array_size(b64) == json_array_size(v);
	const json_t *from = is_base64 ? b64 : v;
	size_t n = json_array_size(from);
	struct slice *items = new0_n(struct slice, n);

	for (size_t i = 0; i < n; i++)
		items[i] = read_item(line, json_array_get(from, i), is_base64);
	line->blocks[line->n_blocks++] = items;
	return (struct event_list){.items = items, .n = n};
}

static struct slice read_raw(struct event_line *line, const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

	if (!text)
		return slice_of("null");
	line->blocks[line->n_blocks++] = text;
	return slice_of(text);
}

static void read_field(struct event_line *line, enum event_field field)
{
	const struct event_field_info *f = &event_field_table[field];
	const json_t *v = json_object_get(line->root, f->name);
	void *at = (char *)&line->event + f->offset;

	if (!v)
		return;
	if (f->type == EVENT_TYPE_int && json_is_integer(v))
		*(event_int *)at = json_integer_value(v);
	else if (f->type == EVENT_TYPE_bool && json_is_boolean(v))
		*(event_bool *)at = json_is_true(v);
	else if (f->type == EVENT_TYPE_text && json_is_string(v))
		*(event_text *)at = read_text(line, f->name, v);
	else if (f->type == EVENT_TYPE_list && json_is_array(v))
		*(event_list *)at = read_list(line, f->name, v);
	else if (f->type == EVENT_TYPE_errno && json_is_string(v))
		*(event_errno *)at = event_errno_find(text_of(v));
	else if (f->type == EVENT_TYPE_raw)
		*(event_raw *)at = read_raw(line, v);
	else
		return;
	event_mark_field(&line->event, field);
}

/* The table is longer than most lines: go by the members that are there. */
static void read_fields(struct event_line *line)
{
	for (void *it = json_object_iter(line->root); it;
		it = json_object_iter_next(line->root, it)) {
		const char *key = json_object_iter_key(it);

		for (int f = 0; f < EVENT_N_FIELDS; f++)
			if (event_field_table[f].name[0] == key[0] &&
				strcmp(event_field_table[f].name, key) == 0)
				read_field(line, (enum event_field)f);
	}
}

static int64_t header_int(const struct event_line *line, const char *key)
{
	return json_integer_value(json_object_get(line->root, key));
}

int event_json_read(struct slice text, struct event_line **ret_line, struct err *err)
{
	struct event_line *line = *ret_line ? *ret_line : new0(struct event_line);
	const json_t *kind;
	json_error_t why;

	*ret_line = line;
	line_clear(line);
	line->root = json_loadb(text.p ? text.p : "", text.len, DEPTH_OF_LINE, &why);
	if (!line->root)
		return err_set(err, -EBADMSG, "not a JSON line: %s", why.text);
	kind = json_object_get(line->root, "kind");
	if (!json_is_string(kind) || !json_is_integer(json_object_get(line->root, "seq")))
		return err_set(err, -EBADMSG, "a line without kind or seq");
	if (event_kind_find(text_of(kind), &line->event.kind) < 0)
		return err_set(err, -ENOENT, "unknown kind '%s'", json_string_value(kind));
	line->event.seq = (uint64_t)header_int(line, "seq");
	line->event.guest_ns = header_int(line, "guest_ns");
	line->event.wall_ms = header_int(line, "wall_ms");
	line->event.pid = header_int(line, "pid");
	line->event.task = header_int(line, "task");
	line->event.exec = text_of(json_object_get(line->root, "exec"));
	line->event.sandbox = text_of(json_object_get(line->root, "sandbox"));
	line->event.internal = json_is_true(json_object_get(line->root, "internal"));
	read_fields(line);
	return 0;
}
