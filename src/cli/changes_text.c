/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/changes_text.h"

#include <stdint.h>
#include <string.h>

#include "manifest/changes.h"
#include "util/base64.h"
#include "util/log.h"
#include "util/map.h"

#define NOTABLE_MAX 3 /* of a folder that is only counted; -v: all */

static const struct {
	const char *key, *letter, *color;
} kinds[] = {
	{"added", "A", VIEW_GREEN},
	{"removed", "D", VIEW_RED},
	{"changed", "M", VIEW_YELLOW},
	{"renamed", "R", VIEW_YELLOW},
	{"mode_changed", "m", VIEW_YELLOW},
};

void changes_text_bytes(const json_t *object, const char *key, struct str *out)
{
	scoped_str struct str b64_key = {0};
	const char *b64;

	str_reset(out);
	str_printf(&b64_key, "%s_b64", key);
	b64 = json_string_value(json_object_get(object, b64_key.p));
	if (b64 && base64_decode(slice_of(b64), out) == 0)
		return;
	str_puts(out, json_is_string(json_object_get(object, key))
			      ? json_string_value(json_object_get(object, key))
			      : "");
}

/* Below the root, where it lies there; path holds its bytes. */
static struct slice read_path(
	const json_t *object, const char *key, const char *root, struct str *path)
{
	size_t len = root ? strlen(root) : 0;

	changes_text_bytes(object, key, path);
	if (len > 1 && path->len > len && memcmp(path->p, root, len) == 0 && path->p[len] == '/')
		return (struct slice){.p = path->p + len + 1, .len = path->len - len - 1};
	return str_slice(path);
}

static void add_path(struct str *out, const json_t *object, const char *key, const char *root)
{
	scoped_str struct str path = {0};

	log_add_escaped(out, read_path(object, key, root, &path));
}

static void add_pair(struct str *out, const json_t *change, const char *before, const char *after)
{
	const char *a = json_string_value(json_object_get(change, before));
	const char *b = json_string_value(json_object_get(change, after));

	if (a && b)
		str_printf(out, "  %s -> %s", a, b);
	else if (b)
		str_printf(out, "  %s", b);
}

static void add_details(struct str *out, const json_t *change)
{
	const char *type = json_string_value(json_object_get(change, "type"));

	if (type && strcmp(type, "link") == 0) {
		scoped_str struct str target = {0};

		changes_text_bytes(change, "target", &target);
		if (target.len == 0)
			changes_text_bytes(change, "target_before", &target);
		str_puts(out, " -> ");
		log_add_escaped(out, str_slice(&target));
	} else if (type) {
		str_printf(out, "  (%s)", type);
	}
	add_pair(out, change, "mode_before", "mode");
	if (json_object_get(change, "owner")) {
		str_puts(out, "  owner");
		add_pair(out, change, "owner_before", "owner");
	}
	if (json_is_true(json_object_get(change, "attributes")))
		str_puts(out, "  attributes");
	if (json_is_true(json_object_get(change, "capabilities")))
		str_puts(out, "  with capabilities");
	if (json_is_true(json_object_get(change, "unsure")))
		str_puts(out, "  (perhaps the same: nobody had read it before)");
	if (json_is_true(json_object_get(change, "before_by_others")))
		str_puts(out, "  (others had changed it before)");
	if (json_is_true(json_object_get(change, "after_by_others")))
		str_puts(out, "  (others changed it later)");
}

static void add_words(struct str *out, const json_t *change, const char *key)
{
	const json_t *word;
	size_t i;

	json_array_foreach(json_object_get(change, key), i, word)
	{
		const json_t *line = json_object_get(word, "line");

		str_puts(out, i ? ", " : "      by ");
		log_add_escaped(out, slice_of(json_string_value(line ? line : word)));
	}
	if (i > 0)
		str_putc(out, '\n');
}

/* Commands say most, then programs, then execs. */
static void add_who(struct str *out, const json_t *change)
{
	static const char *const keys[] = {"commands", "programs", "execs"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		add_words(out, change, keys[i]);
}

static size_t add_kinds(struct str *out, const struct view_style *style, const json_t *root,
	const char *name, bool verbose)
{
	size_t n = 0;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const json_t *list = json_object_get(root, kinds[k].key), *change;
		size_t i;

		json_array_foreach(list, i, change)
		{
			str_puts(out, "  ");
			view_text_add_color(out, style, kinds[k].color, slice_of(kinds[k].letter));
			str_putc(out, ' ');
			if (json_object_get(change, "from")) {
				add_path(out, change, "from", name);
				str_puts(out, " -> ");
			}
			add_path(out, change, "path", name);
			add_details(out, change);
			str_putc(out, '\n');
			if (verbose)
				add_who(out, change);
			n++;
		}
	}
	return n;
}

static void add_upper_word(struct str *out, const char *word)
{
	for (; word && *word; word++)
		str_putc(out, (char)(*word >= 'a' && *word <= 'z' ? *word - 32 : *word));
}

/* ".git: 34 changed, hooks/pre-commit ADDED" */
static size_t add_skipped(struct str *out, const json_t *root, const char *name, bool verbose)
{
	const json_t *folder, *note, *list = json_object_get(root, "skipped");
	size_t i, k;

	json_array_foreach(list, i, folder)
	{
		scoped_str struct str path = {0};

		changes_text_bytes(folder, "path", &path);
		str_puts(out, "  ");
		add_path(out, folder, "path", name);
		str_printf(out, ": %lld changed",
			(long long)json_integer_value(json_object_get(folder, "count")));
		json_array_foreach(json_object_get(folder, "notable"), k, note)
		{
			if (k == NOTABLE_MAX && !verbose) {
				str_puts(out, ", and more");
				break;
			}
			str_puts(out, ", ");
			add_path(out, note, "path", path.p);
			str_putc(out, ' ');
			add_upper_word(out, json_string_value(json_object_get(note, "change")));
		}
		str_putc(out, '\n');
	}
	return json_array_size(list);
}

/* The notes of one kind, folded: what lies in a node_modules, or in a .git for no reason of its own, comes in hundreds. */
struct notes {
	const char *name; /* the root's */
	const char *words;
	struct map *groups; /* reason and folder to how many; empty: none is folded */
};

static struct slice fold_folder(const struct notes *notes, const json_t *note, struct str *path)
{
	struct slice below = read_path(note, "path", notes->name, path);
	struct slice folder = {.p = below.p, .len = changes_skipped_len(below)};
	bool is_git = slice_ends(folder, ".git") && json_object_get(note, "reason");

	return is_git ? (struct slice){.p = below.p} : folder;
}

/* NULL: it stands for itself. */
static void **find_group(const struct notes *notes, const json_t *note, struct str *key)
{
	const char *reason = json_string_value(json_object_get(note, "reason"));
	scoped_str struct str path = {0};
	struct slice folder = fold_folder(notes, note, &path);

	if (folder.len == 0)
		return NULL;
	str_add(key, folder.p, folder.len);
	str_printf(key, "%c%s", '\0', reason ? reason : "");
	return map_slot(notes->groups, str_slice(key));
}

static void add_note(struct str *out, const struct view_style *style, const struct notes *notes,
	const json_t *note)
{
	const char *reason = json_string_value(json_object_get(note, "reason"));
	scoped_str struct str key = {0};
	void **group = find_group(notes, note, &key);
	size_t n = group ? (size_t)(uintptr_t)*group : 1;

	if (n == 0)
		return; /* told with the first of them */
	str_puts(out, "  ");
	view_text_add_color(out, style, VIEW_YELLOW, slice_of(notes->words));
	str_putc(out, ' ');
	if (n > 1) {
		log_add_escaped(out, slice_of(key.p));
		str_printf(out, "/  %zu files (%s%s-v lists them)", n, reason ? reason : "",
			reason ? "; " : "");
		*group = NULL;
	} else {
		add_path(out, note, "path", notes->name);
		if (reason)
			str_printf(out, " (%s)", reason);
	}
	str_putc(out, '\n');
}

static void add_notes(struct str *out, const struct view_style *style, const json_t *list,
	const struct notes *head, bool verbose)
{
	struct notes notes = *head;
	const json_t *note;
	size_t i;

	notes.groups = map_new();
	json_array_foreach(list, i, note)
	{
		scoped_str struct str key = {0};
		void **group = find_group(&notes, note, &key);

		if (group)
			*group = (void *)(verbose ? 1 : (uintptr_t)*group + 1);
	}
	json_array_foreach(list, i, note) add_note(out, style, &notes, note);
	map_free(notes.groups);
}

/* What part of a run touched and is as it was at the end of the whole. */
static void add_touched(struct str *out, const json_t *root, const char *name)
{
	const json_t *touched = json_object_get(root, "touched"), *one, *word;
	size_t i, k;

	json_array_foreach(touched, i, one)
	{
		str_puts(out, "  . ");
		add_path(out, one, "path", name);
		json_array_foreach(json_object_get(one, "did"), k, word)
		{
			str_puts(out, k ? ", " : "  (");
			log_add_escaped(out, slice_of(json_string_value(word)));
		}
		str_puts(out, k ? "; no change in the end)\n" : "\n");
	}
	if (json_object_get(root, "touched_cut"))
		str_printf(out, "  ... and %lld more\n",
			(long long)json_integer_value(json_object_get(root, "touched_cut")));
}

static void add_head(struct str *out, const json_t *root, const char *name, bool is_empty)
{
	log_add_escaped(out, slice_of(name));
	if (json_object_get(root, "files"))
		str_printf(out, ": %lld of the agent's own",
			(long long)json_integer_value(json_object_get(root, "files")));
	else if (is_empty && !json_string_value(json_object_get(root, "unread")))
		str_puts(out, " unchanged");
	else if (json_is_true(json_object_get(root, "rw")))
		str_puts(out, " (rw: this is in the host's folder already)");
	if (json_is_false(json_object_get(root, "pending")))
		str_puts(out, " (as it was at the end: nothing of it is pending)");
	str_putc(out, '\n');
}

void changes_text_add(
	struct str *out, const struct view_style *style, const json_t *root, bool verbose)
{
	bool is_rw = json_is_true(json_object_get(root, "rw"));
	scoped_str struct str name = {0}, body = {0};
	const char *unread = json_string_value(json_object_get(root, "unread"));
	size_t n;

	changes_text_bytes(root, "root", &name);
	n = add_kinds(&body, style, root, name.p, verbose) +
	    add_skipped(&body, root, name.p, verbose);
	add_head(out, root, name.p, n == 0);
	/* There is nothing to hold back any more: said before anything else. */
	if (is_rw)
		add_notes(out, style, json_object_get(root, "runs_on_host"),
			&(struct notes){name.p, "REVIEW in place, the host will run:"}, verbose);
	str_add(out, body.p, body.len);
	if (!is_rw)
		add_notes(out, style, json_object_get(root, "runs_on_host"),
			&(struct notes){name.p, "REVIEW runs on the host:"}, verbose);
	add_notes(out, style, json_object_get(root, "host_changed"),
		&(struct notes){name.p, is_rw ? "not by the sandbox, as far as was seen:"
					      : "REVIEW the host changed it too:"},
		verbose);
	add_touched(out, root, name.p);
	if (verbose && n > 0 && json_is_false(json_object_get(root, "traced")))
		str_puts(out, "  who made them is not known: files were not watched\n");
	if (unread) {
		str_puts(out, "  not all could be read: ");
		log_add_escaped(out, slice_of(unread));
		str_putc(out, '\n');
	}
}
