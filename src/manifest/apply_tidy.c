/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/apply_tidy.h"

#include <string.h>

#include "manifest/host_folder.h"
#include "manifest/journal.h"
#include "util/mem.h"

#define START ".cloche-"

/* Only names of ours, whatever the journal says. */
static bool is_ours(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, START, strlen(START)) == 0;
}

static bool clean_all(
	struct change_set *set, const struct change_layer *layer, struct host_folder *host)
{
	bool all = true;
	struct slice path;

	for (size_t i = 0; journal_next_temporary(set->journal, layer->n, &i, &path);) {
		scoped_mem char *at = mem_copy(path.p, path.len);

		if (is_ours(at) && host_folder_clean(host, at) < 0)
			all = false;
	}
	return all;
}

void apply_tidy(struct change_set *set)
{
	for (size_t i = 0; i < set->n_layers; i++) {
		const struct change_layer *l = &set->layers[i];
		scoped(host_folder) struct host_folder *host = NULL;
		struct slice path;
		struct err err;
		size_t at = 0;

		if (!journal_next_temporary(set->journal, l->n, &at, &path) ||
			host_folder_open(l->lower, l->owner_uid, l->owner_gid, &host, &err) < 0)
			continue;
		if (clean_all(set, l, host))
			(void)journal_add_tidy(
				set->journal, l->n); /* else once more, for nothing */
	}
}
