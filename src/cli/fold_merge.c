/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fold_merge.h"

#include <jansson.h>

#include "util/clock.h"
#include "util/mem.h"

struct row {
	int64_t at_ms;
	size_t order;
	char *line;
};

struct fold_merge {
	struct row *rows;
	size_t n, cap;
};

struct fold_merge *fold_merge_new(void)
{
	return new0(struct fold_merge);
}

void fold_merge_free(struct fold_merge *merge)
{
	if (!merge)
		return;
	for (size_t i = 0; i < merge->n; i++)
		free(merge->rows[i].line);
	free(merge->rows);
	free(merge);
}

static int64_t time_of(const char *json, size_t len)
{
	json_t *element = json_loadb(json, len, JSON_ALLOW_NUL, NULL);
	const char *at = json_string_value(json_object_get(element, "at"));
	int64_t ms = 0;

	if (!at || clock_parse(at, &ms) < 0)
		ms = 0;
	json_decref(element);
	return ms;
}

static void add_row(struct fold_merge *merge, int64_t at_ms, const char *line, size_t len)
{
	if (merge->n == merge->cap) {
		merge->cap = merge->cap ? merge->cap * 2 : 64;
		merge->rows = mem_grow(merge->rows, merge->cap, sizeof(struct row));
	}
	merge->rows[merge->n] =
		(struct row){.at_ms = at_ms, .order = merge->n, .line = mem_copy(line, len)};
	merge->n++;
}

/* The next line from *at on, and its length; NULL at the end. */
static const char *next_line(const struct str *text, size_t *at, size_t *ret_len)
{
	const char *line = text->p + *at, *end;

	if (*at >= text->len)
		return NULL;
	end = memchr(line, '\n', text->len - *at);
	*ret_len = end ? (size_t)(end - line) : text->len - *at;
	*at += *ret_len + 1;
	return line;
}

void fold_merge_add(struct fold_merge *merge, const struct str *json, const struct str *lines)
{
	size_t json_at = 0, lines_at = 0, json_len, len;
	const char *element, *line;

	while ((element = next_line(json, &json_at, &json_len)) &&
		(line = next_line(lines, &lines_at, &len)))
		add_row(merge, time_of(element, json_len), line, len);
}

static int compare(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	if (left->at_ms != right->at_ms)
		return left->at_ms < right->at_ms ? -1 : 1;
	return left->order < right->order ? -1 : 1;
}

void fold_merge_lines(struct fold_merge *merge, struct str *out)
{
	if (merge->n)
		qsort(merge->rows, merge->n, sizeof(struct row), compare);
	for (size_t i = 0; i < merge->n; i++)
		str_printf(out, "%s\n", merge->rows[i].line);
}
