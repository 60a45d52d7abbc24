/* SPDX-License-Identifier: Apache-2.0 */
/* The folders that an apply changed. Their times of change are ours from then on, and do not say that the host put them there.
 * What the host does in one of them between our act and the end passes as ours. */
#include <string.h>
#include <sys/stat.h>

#include "manifest/apply_work.h"
#include "manifest/journal.h"
#include "util/mem.h"

struct touched {
	struct apply *a;
	struct map *seen; /* paths, as a set */
	int r;
};

static void keep(struct touched *t, const char *folder)
{
	void **slot = map_slot(t->seen, slice_of(folder));
	struct stat st;

	if (*slot || t->r < 0)
		return;
	*slot = t;
	if (host_folder_stat(t->a->host, folder[0] ? folder : ".", &st) == 0 &&
		host_folder_has_worked_in(t->a->host, st.st_ino))
		t->r = journal_add_touched(t->a->set->journal, t->a->layer->n, &st);
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return mem_copy(path, slash ? (size_t)(slash - path) : 0);
}

static void keep_around(struct touched *t, const struct change *c)
{
	scoped_mem char *folder = folder_of(c->path);
	scoped_mem char *left = c->from ? folder_of(c->from) : NULL;
	scoped_mem char *left_now = left ? apply_work_now_at(t->a, left) : NULL;

	keep(t, folder);
	if (left_now)
		keep(t, left_now);
}

int apply_keep_touched(struct apply *a)
{
	struct touched t = {.a = a, .seen = map_new()};

	for (size_t i = 0; i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];

		/* What nobody knew before stays unknown. */
		if (!apply_work_is_done(a, i) || (c->flags & CHANGE_UNSEEN))
			continue;
		if (S_ISDIR(c->after.mode))
			keep(&t, c->path);
		keep_around(&t, c);
	}
	map_free(t.seen);
	return t.r;
}
