/* SPDX-License-Identifier: Apache-2.0 */
/* `changes --json`, which is also what a record keeps of a run's end: docs/change-sets.md. */
#ifndef MANIFEST_CHANGES_JSON_H
#define MANIFEST_CHANGES_JSON_H

#include "manifest/changes.h"

/* A list with one object a root. Paths in it are absolute, as inside. */
void changes_json_write(struct str *out, const struct changes_list *list);

/* What a summary says of one root. */
struct changes_counts {
	char *root;
	bool cow, rw;
	size_t added, removed, changed, renamed, mode_changed;
	size_t skipped;      /* files below skipped folders, */
	size_t skipped_git;  /* and of these those below a .git */
	size_t runs_on_host; /* of all these, those that the host would run */
	size_t host_changed;
	char *added_path; /* where exactly one file was added: its path */
	bool counted;     /* as in struct changes, with n_files and unread */
	size_t n_files;
	char *unread;
};
struct changes_counts_list {
	struct changes_counts *roots;
	size_t n;
};
/* From a list, or from the JSON of one. -EBADMSG where it is none. */
void changes_json_count(const struct changes *changes, struct changes_counts *ret_counts);
int changes_json_read(struct slice text, struct changes_counts_list *ret_list);
void changes_json_counts_done(struct changes_counts_list *list);
/* Files that differ: what "N files changed, not yet in your folder" says. */
size_t changes_json_total(const struct changes_counts *counts);

#endif
