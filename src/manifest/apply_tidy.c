/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/apply_tidy.h"

#include <string.h>

#include "manifest/apply_park.h"
#include "manifest/beneath.h"
#include "manifest/host_folder.h"
#include "manifest/journal.h"
#include "manifest/lower.h"
#include "util/mem.h"

/* Only names of ours, whatever the journal says. */
static bool is_ours(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, RENAMES_PARK, strlen(RENAMES_PARK)) == 0;
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

static bool is_untidy(const struct journal *journal, int n)
{
	struct slice path;
	size_t at = 0, parked = 0;

	return journal_next_temporary(journal, n, &at, &path) ||
	       journal_next_parked(journal, n, &parked);
}

void apply_tidy(struct change_set *set)
{
	for (size_t i = 0; i < set->n_layers; i++) {
		const struct change_layer *l = &set->layers[i];
		scoped(host_folder) struct host_folder *host = NULL;
		struct err err;

		if (!is_untidy(set->journal, l->n) ||
			host_folder_open(l->lower, l->owner_uid, l->owner_gid, &host, &err) < 0)
			continue;
		apply_park_back(set->journal, l->n, host);
		if (clean_all(set, l, host))
			(void)journal_add_tidy(
				set->journal, l->n); /* else once more, for nothing */
	}
}

static const char *find_parked(const struct journal *journal, const struct change_layer *layer)
{
	scoped_fd int top = -1;
	const char *parked;
	struct stat st;

	for (size_t i = 0; (parked = journal_next_parked(journal, layer->n, &i));) {
		if (top < 0)
			top = lower_open(layer->lower);
		if (top >= 0 && beneath_stat(top, parked, &st) == 0)
			return parked;
	}
	return NULL;
}

const char *apply_tidy_parked(const struct change_set *set)
{
	const char *parked = NULL;

	for (size_t i = 0; !parked && i < set->n_layers; i++)
		parked = find_parked(set->journal, &set->layers[i]);
	return parked;
}
