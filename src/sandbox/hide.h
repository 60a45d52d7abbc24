/* SPDX-License-Identifier: Apache-2.0 */
/* Which places below a mounted folder --hide means. */
#ifndef SANDBOX_HIDE_H
#define SANDBOX_HIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "spec/spec.h"

#define HIDE_MAX_FOUND   512u
#define HIDE_MAX_ENTRIES 100000u /* looked at below one mount */
#define HIDE_MAX_DEPTH   12u

struct hide_found {
	char *path; /* relative to the mount */
	bool is_folder;
};

struct hide_list {
	struct hide_found *items;
	size_t n;
	size_t n_seen;
	bool is_cut; /* a limit or an error ended the search: what lies behind it was not looked at */
};
void hide_list_done(struct hide_list *list);

/* Whether a pattern means the entry: without a slash its name anywhere, with one its path below the mount;
 * a slash at the end means folders only; *, ? and [] as in a shell, ** / any folders in front. Pure. */
bool hide_matches(const char *pattern, const char *path, bool is_folder);

/* Walks a folder of the host without following links or leaving its filesystem; not into .git and
 * node_modules. A folder that cannot be read holds nothing to hide. */
void hide_find(const char *folder, const struct spec_words *patterns, struct hide_list *ret_list);

#endif
