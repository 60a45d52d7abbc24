/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch_files_text.h"

#include <jansson.h>
#include <string.h>

#include "cli/changes_text.h"
#include "util/log.h"

#define TIME_AT  11 /* of the time of day in a time as text */
#define TIME_LEN 12

static const char *text_of(const json_t *change, const char *key)
{
	const char *text = json_string_value(json_object_get(change, key));

	return text ? text : "";
}

static bool is(const json_t *change, const char *kind)
{
	return strcmp(text_of(change, "change"), kind) == 0;
}

static void add_escaped(struct str *out, const json_t *change, const char *key)
{
	log_add_escaped(out, slice_of(text_of(change, key)));
}

/* What it is now, as far as that says something. */
static void add_state(struct str *out, const json_t *change)
{
	bool is_file = strcmp(text_of(change, "type"), "file") == 0;

	if (is(change, "mode")) {
		str_puts(out, "  ");
		add_escaped(out, change, "mode");
		str_putc(out, ' ');
		add_escaped(out, change, "owner");
	} else if (is_file && !is(change, "deleted") && !is(change, "renamed")) {
		str_puts(out, "  ");
		view_text_add_bytes(out, json_integer_value(json_object_get(change, "size")));
	} else if (!is_file && !is(change, "overflow")) {
		str_puts(out, "  (");
		add_escaped(out, change, "type");
		str_putc(out, ')');
	}
}

static void add_tail(struct str *out, const json_t *change)
{
	add_state(out, change);
	if (json_object_get(change, "entries")) {
		str_puts(out, ", with ");
		view_text_add_count(out, json_integer_value(json_object_get(change, "entries")));
		str_puts(out, " in it");
	}
	if (json_object_get(change, "replaced"))
		str_puts(out, ", replaced");
	if (json_object_get(change, "writing"))
		str_puts(out, ", goes on");
	if (json_object_get(change, "reason")) {
		str_puts(out, ": ");
		add_escaped(out, change, "reason");
	}
}

static const char *color_of(const json_t *change)
{
	static const struct {
		const char *kind, *color;
	} colors[] = {{"created", VIEW_GREEN}, {"deleted", VIEW_RED}, {"overflow", VIEW_YELLOW},
		{"unwatched", VIEW_YELLOW}};

	for (size_t i = 0; i < sizeof(colors) / sizeof(colors[0]); i++)
		if (is(change, colors[i].kind))
			return colors[i].color;
	return VIEW_BOLD;
}

static void add_line(struct str *out, const struct view_style *style, const json_t *change)
{
	scoped_str struct str path = {0}, from = {0}, word = {0};
	const char *at = text_of(change, "at");

	changes_text_bytes(change, "path", &path);
	changes_text_bytes(change, "from", &from);
	add_escaped(&word, change, "change");
	while (word.len < 9)
		str_putc(&word, ' ');
	if (strlen(at) > TIME_AT)
		log_add_escaped(out, (struct slice){at + TIME_AT, strnlen(at + TIME_AT, TIME_LEN)});
	str_puts(out, "  ");
	view_text_add_color(out, style, color_of(change), str_slice(&word));
	str_puts(out, "  ");
	if (from.len > 0) {
		log_add_escaped(out, str_slice(&from));
		str_puts(out, " -> ");
	}
	log_add_escaped(out, str_slice(&path));
	add_tail(out, change);
}

void watch_files_text_add(struct str *out, const struct view_style *style, struct slice json)
{
	json_t *change = json_loadb(json.p ? json.p : "", json.len, JSON_ALLOW_NUL, NULL);

	if (json_is_object(change))
		add_line(out, style, change);
	json_decref(change);
}
