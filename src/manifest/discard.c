/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/discard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "manifest/apply_plan.h"
#include "manifest/beneath.h"
#include "manifest/journal.h"
#include "util/aside.h"
#include "util/mem.h"

bool discard_means(const struct change *c, const struct apply_options *options)
{
	for (size_t i = 0; i < options->n_paths; i++)
		if (apply_plan_names(c, options->paths[i]))
			return true;
	return options->n_paths == 0;
}

/* A removed folder in which something stays after all stays, too. */
static bool holds_what_stays(
	const struct changes *changes, size_t folder, const struct apply_options *options)
{
	const char *path = changes->items[folder].path;

	if (changes->items[folder].kind != CHANGE_REMOVED)
		return false;
	for (size_t i = folder + 1; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];

		if (strncmp(c->path, path, strlen(path)) != 0)
			break;
		if (c->kind == CHANGE_REMOVED && c->path[strlen(path)] == '/' &&
			discard_means(c, options))
			return true;
	}
	return false;
}

static bool counts(const struct change *c)
{
	return !(c->flags & CHANGE_QUIET);
}

size_t discard_count(const struct changes *changes)
{
	size_t n = 0;

	for (size_t i = 0; i < changes->n_items; i++)
		n += counts(&changes->items[i]);
	return n;
}

/* A new file's data goes at once. Marks stay: without a whiteout or a redirect, others would read differently. */
static void remove_data(const struct change *c, int upper_fd)
{
	const char *name;
	scoped_fd int dirfd = -1;

	if (c->kind != CHANGE_ADDED || S_ISDIR(c->after.mode) || c->from)
		return;
	dirfd = beneath_open_parent(upper_fd, c->path, &name);
	if (dirfd >= 0)
		(void)unlinkat(dirfd, name, 0); /* it is settled, gone or not */
}

int discard_changes(struct change_set *set, const struct changes *changes,
	const struct apply_options *options, size_t *ret_n, struct err *err)
{
	scoped_fd int upper_fd =
		open(changes->layer->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool may_free;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];
		struct journal_entry entry = {
			.act = JOURNAL_DISCARDED, .removed = c->kind == CHANGE_REMOVED};

		if (!discard_means(c, options) && !holds_what_stays(changes, i, options))
			continue;
		memcpy(entry.state, c->state, sizeof(entry.state));
		r = journal_add(set->journal, changes->n, slice_of(c->path), &entry);
		n += counts(c);
	}
	if (r == 0)
		r = journal_sync(set->journal);
	if (r < 0)
		return err_set(err, r, "write '%s/journal.jsonl': %m", set->dir);
	/* Below it a shared layer's file would show. */
	may_free = !options->is_live && upper_fd >= 0 && changes->layer->n_stack == 0;
	for (size_t i = 0; may_free && i < changes->n_items; i++)
		if (discard_means(&changes->items[i], options))
			remove_data(&changes->items[i], upper_fd);
	*ret_n = n;
	return 0;
}

int discard_set(struct change_set *set, const char *trash, struct err *err)
{
	const char *id = strrchr(set->dir, '/');
	scoped_mem char *name = mem_printf("%s.changes", id ? id + 1 : set->dir);
	int r = aside_remove(trash, set->dir, name, CHANGE_SET_LAST);

	if (r < 0)
		return err_set(err, r, "remove '%s': %m", set->dir);
	return 0;
}

int discard_empty_set(struct change_set *set, const char *trash, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < set->n_layers; i++) {
		const struct changes_query query = {.layer = &set->layers[i], .below = ""};
		scoped(changes) struct changes *changes = NULL;

		if (set->layers[i].n < 0)
			continue;
		r = changes_read(set, &query, &changes, err);
		if (r == 0 && (changes->n_items > 0 || changes->unread))
			return 0;
	}
	if (r == 0)
		r = discard_set(set, trash, err);
	return r < 0 ? r : 1;
}
