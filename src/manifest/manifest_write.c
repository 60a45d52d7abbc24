/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/stat.h>

#include "manifest/manifest_lines.h"
#include "manifest/manifest_words.h"
#include "util/jsonw.h"

#define VERSION 1

static void end_line(struct jsonw *j)
{
	jsonw_object_end(j);
	str_putc(j->out, '\n');
	j->comma = false;
}

static void write_head(struct jsonw *j, const struct manifest_head *head)
{
	jsonw_object(j);
	jsonw_kint(j, "manifest", VERSION);
	jsonw_ktext(j, "root", head->root);
	if (head->sandbox)
		jsonw_ktext(j, "sandbox", head->sandbox);
	jsonw_ktext(j, "made_at", head->made_at);
	jsonw_kbool(j, "all", head->all);
	end_line(j);
}

static void write_content(struct jsonw *j, const struct tree_entry *entry)
{
	if (S_ISREG(entry->mode)) {
		jsonw_kint(j, "size", entry->size);
		jsonw_ktext(j, "sha256", entry->sha256[0] ? entry->sha256 : NULL);
		if (entry->attributes[0])
			jsonw_ktext(j, "attributes", entry->attributes);
	}
	if (entry->target)
		jsonw_ktext(j, "target", entry->target);
	if (S_ISCHR(entry->mode) || S_ISBLK(entry->mode)) {
		char text[32];

		(void)snprintf(text, sizeof(text), "%c%u:%u", S_ISCHR(entry->mode) ? 'c' : 'b',
			entry->major, entry->minor);
		jsonw_ktext(j, "device", text);
	}
}

static void write_entry(struct jsonw *j, const struct tree_entry *entry)
{
	const char *problem = manifest_problem_word(entry->problem);

	jsonw_object(j);
	jsonw_ktext(j, "path", entry->path);
	jsonw_ktext(j, "type", manifest_type_word(entry->mode));
	if (entry->mode & ~(mode_t)S_IFMT || !problem) {
		manifest_write_mode(j, "mode", entry->mode);
		manifest_write_owner(j, "owner", entry->uid, entry->gid);
	}
	write_content(j, entry);
	if (problem)
		jsonw_ktext(j, "problem", problem);
	end_line(j);
}

static size_t n_problems(const struct tree *tree)
{
	size_t n = 0;

	for (size_t i = 0; i < tree->n; i++)
		n += tree->items[i].problem == TREE_CHANGED ||
		     tree->items[i].problem == TREE_HOLES ||
		     tree->items[i].problem == TREE_UNREADABLE;
	return n;
}

static size_t n_files(const struct tree *tree)
{
	size_t n = 0;

	for (size_t i = 0; i < tree->n; i++)
		n += S_ISREG(tree->items[i].mode) != 0;
	return n;
}

void manifest_lines_write(
	struct str *out, const struct manifest_head *head, const struct tree *tree)
{
	struct jsonw j = jsonw_to(out);

	write_head(&j, head);
	for (size_t i = 0; i < tree->n; i++)
		write_entry(&j, &tree->items[i]);
	jsonw_object(&j);
	jsonw_kint(&j, "entries", (int64_t)tree->n);
	jsonw_kint(&j, "files", (int64_t)n_files(tree));
	jsonw_kint(&j, "bytes", tree->bytes);
	jsonw_kint(&j, "vanished", (int64_t)tree->vanished);
	jsonw_kint(&j, "problems", (int64_t)n_problems(tree));
	end_line(&j);
}
