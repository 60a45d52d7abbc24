/* SPDX-License-Identifier: Apache-2.0 */
/* Reading uses jansson on one line at a time; strings stay in its tree, decoded base64 and lists in blocks
 * that the line owns. */
#include "event/event_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "event/event_pen.h"
#include "event/event_quick.h"
#include "util/base64.h"
#include "util/mem.h"

#define DEPTH_OF_LINE (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL)

void event_json_write(struct str *out, const struct event *ev, struct slice sandbox)
{
	event_pen_write(out, ev, sandbox);
}

struct event_line {
	struct event event;
	struct event_quick quick;
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
	line->root = NULL;
	line->n_blocks = line->n_item_blocks = 0;
	line->item_blocks = NULL;
	memset(&line->event, 0, sizeof(line->event));
}

void event_line_free(struct event_line *line)
{
	if (!line)
		return;
	line_clear(line);
	event_quick_done(&line->quick);
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
	if (event_quick_read(&line->quick, text, &line->event))
		return 0;
	memset(&line->event, 0, sizeof(line->event));
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
