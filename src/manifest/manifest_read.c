/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/manifest_lines.h"
#include "manifest/manifest_words.h"
#include "manifest/sum_line.h"
#include "util/base64.h"
#include "util/mem.h"

#define LINE_MAX_BYTES (1 << 20)

/* ---- our own lines ---- */

/* The bytes of a member: from <key>_b64 where the text could not hold them. NULL where it is none. */
static char *get_bytes(const json_t *object, const char *key)
{
	scoped_mem char *b64_key = mem_printf("%s_b64", key);
	const char *b64 = json_string_value(json_object_get(object, b64_key));
	scoped_str struct str bytes = {0};

	if (!b64)
		return mem_dup(json_string_value(json_object_get(object, key)));
	if (base64_decode(slice_of(b64), &bytes) < 0 || memchr(bytes.p, '\0', bytes.len))
		return NULL;
	return str_take(&bytes);
}

static const struct {
	const char *word;
	mode_t type;
} types[] = {{"file", S_IFREG}, {"directory", S_IFDIR}, {"link", S_IFLNK}, {"pipe", S_IFIFO},
	{"socket", S_IFSOCK}, {"device", S_IFCHR}};

static mode_t type_of(const char *word)
{
	for (size_t i = 0; word && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].word, word) == 0)
			return types[i].type;
	return 0;
}

static enum tree_problem problem_of(const char *word)
{
	for (int i = TREE_WHOLE + 1; word && i < TREE_N_PROBLEMS; i++)
		if (strcmp(manifest_problem_word((enum tree_problem)i), word) == 0)
			return (enum tree_problem)i;
	return TREE_WHOLE;
}

static bool get_hash(const json_t *line, const char *key, char ret[DIGEST_HEX_SIZE])
{
	const char *text = json_string_value(json_object_get(line, key));
	unsigned char value[DIGEST_LEN];

	if (!text)
		return true;
	if (digest_from_hex(text, value) < 0)
		return false;
	digest_hex(value, ret);
	return true;
}

static void get_numbers(const json_t *line, struct tree_entry *entry)
{
	const char *mode = json_string_value(json_object_get(line, "mode"));
	const char *owner = json_string_value(json_object_get(line, "owner"));
	const char *device = json_string_value(json_object_get(line, "device"));

	entry->size = json_integer_value(json_object_get(line, "size"));
	if (mode)
		entry->mode |= (mode_t)strtoul(mode, NULL, 8) & 07777;
	if (owner)
		(void)sscanf(owner, "%u:%u", &entry->uid, &entry->gid);
	if (device && device[0] == 'b')
		entry->mode = (entry->mode & ~(mode_t)S_IFMT) | S_IFBLK;
	if (device)
		(void)sscanf(device + 1, "%u:%u", &entry->major, &entry->minor);
}

static int take_entry(struct manifest *manifest, const json_t *line)
{
	char *path = get_bytes(line, "path");
	mode_t type = type_of(json_string_value(json_object_get(line, "type")));
	struct tree_entry *entry;

	if (!path || !*path || !type) {
		free(path);
		return -EBADMSG;
	}
	entry = tree_add(&manifest->tree, path);
	entry->mode = type;
	entry->problem = problem_of(json_string_value(json_object_get(line, "problem")));
	entry->target = S_ISLNK(type) ? get_bytes(line, "target") : NULL;
	get_numbers(line, entry);
	return get_hash(line, "sha256", entry->sha256) &&
	                       get_hash(line, "attributes", entry->attributes) &&
	                       !(S_ISLNK(type) && !entry->target)
	               ? 0
	               : -EBADMSG;
}

static struct manifest *add(struct manifest_list *list)
{
	list->items = mem_grow(list->items, list->n + 1, sizeof(*list->items));
	list->items[list->n] = (struct manifest){0};
	return &list->items[list->n++];
}

static int take_head(struct manifest_list *list, const json_t *line)
{
	struct manifest *manifest = add(list);

	manifest->root = get_bytes(line, "root");
	manifest->all = json_is_true(json_object_get(line, "all"));
	return manifest->root && json_integer_value(json_object_get(line, "manifest")) == 1
	               ? 0
	               : -EBADMSG;
}

/* is_open: between a first line and the last one that counts. */
static int take_object(struct manifest_list *list, bool *is_open, const json_t *line)
{
	struct manifest *last = list->n ? &list->items[list->n - 1] : NULL;
	const json_t *entries;

	if (json_object_get(line, "manifest")) {
		if (*is_open)
			return -EBADMSG;
		*is_open = true;
		return take_head(list, line);
	}
	if (!*is_open)
		return -EBADMSG;
	if (json_object_get(line, "path"))
		return take_entry(last, line);
	*is_open = false;
	last->tree.bytes = json_integer_value(json_object_get(line, "bytes"));
	last->tree.vanished = (size_t)json_integer_value(json_object_get(line, "vanished"));
	entries = json_object_get(line, "entries");
	return json_is_integer(entries) && json_integer_value(entries) == (json_int_t)last->tree.n
	               ? 0
	               : -EBADMSG;
}

static int take_json(struct manifest_list *list, bool *is_open, struct slice text)
{
	json_error_t why;
	json_t *line = text.len > LINE_MAX_BYTES
	                       ? NULL
	                       : json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	int r = json_is_object(line) ? take_object(list, is_open, line) : -EBADMSG;

	json_decref(line);
	return r;
}

/* ---- either ---- */

static bool next_line(struct slice *text, struct slice *ret_line)
{
	const char *end = text->len ? memchr(text->p, '\n', text->len) : NULL;
	size_t len = end ? (size_t)(end - text->p) : text->len;

	if (text->len == 0)
		return false;
	*ret_line = (struct slice){.p = text->p, .len = len};
	text->p += end ? len + 1 : len;
	text->len -= end ? len + 1 : len;
	return true;
}

static int read_lines(
	struct slice text, struct manifest_list *list, bool *is_open, size_t *ret_line)
{
	bool has_sums = text.len > 0 && text.p[0] != '{';
	struct slice line;
	int r = 0;

	if (has_sums)
		add(list)->has_sums_only = true;
	for (*ret_line = 1; r == 0 && next_line(&text, &line); ++*ret_line)
		r = has_sums ? sum_line_take(list->items, line) : take_json(list, is_open, line);
	--*ret_line;
	return r;
}

int manifest_lines_read(struct slice text, struct manifest_list *ret_list, struct err *err)
{
	struct manifest_list list = {0};
	bool is_open = false;
	size_t line;
	int r = read_lines(text, &list, &is_open, &line);

	if (r < 0)
		err_set(err, r,
			"line %zu belongs to no manifest and no list of sha256sum: make the list "
			"with `cloche manifest --json`",
			line);
	else if (list.n > 0 && list.items[0].has_sums_only && list.items[0].tree.n == 0)
		r = err_set(err, -ENODATA, "it holds no sum");
	else if (is_open || list.n == 0)
		r = err_set(
			err, -ENODATA, "it is cut off: the last line, which counts, is missing");
	for (size_t i = 0; i < list.n; i++)
		tree_sort(&list.items[i].tree);
	if (r < 0)
		manifest_list_done(&list);
	else
		*ret_list = list;
	return r;
}

void manifest_take_below(struct manifest *manifest, const char *root)
{
	struct slice folder = slice_of(root);

	while (folder.len > 0 && folder.p[folder.len - 1] == '/')
		folder.len--;
	for (size_t i = 0; i < manifest->tree.n; i++) {
		char *path = manifest->tree.items[i].path;

		if (path[0] == '/' && strncmp(path, folder.p, folder.len) == 0 &&
			path[folder.len] == '/')
			memmove(path, path + folder.len + 1, strlen(path + folder.len + 1) + 1);
	}
	tree_sort(&manifest->tree);
}

void manifest_list_done(struct manifest_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].root);
		tree_done(&list->items[i].tree);
	}
	free(list->items);
	*list = (struct manifest_list){0};
}
