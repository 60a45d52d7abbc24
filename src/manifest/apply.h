/* SPDX-License-Identifier: Apache-2.0 */
/* Takes what a sandbox changed over into the host's folder.
 *
 * Works on the list of changes_read(), made just before. Data that lies at other places is brought to where
 * nothing changes first. Order then: files changed at their place; removals; renames,
 * those in a ring by way of a parking name; new folders; new files; modes of folders. Each file is the old one or
 * the new one at any moment, and the journal remembers what was done. What cannot be taken over is refused by
 * itself, and the rest goes on; only a failing disk, or the user, ends the work. What a killed one left beside the files
 * it worked on is taken away by apply_tidy.h. */
#ifndef MANIFEST_APPLY_H
#define MANIFEST_APPLY_H

#include <signal.h>

#include "manifest/change_set.h"
#include "manifest/changes.h"

struct apply_options {
	const char *const *paths; /* below the root; what lies at or below them. n_paths 0: all */
	size_t n_paths;
	bool force;   /* also over what the host changed meanwhile, and over other users' files */
	bool is_live; /* the sandbox still runs: renames wait */
	const volatile sig_atomic_t *stop; /* not NULL: ends the work early once it is not 0 */
};

enum apply_result {
	APPLY_WAITING,   /* not in a report */
	APPLY_NOT_NAMED, /* not in a report */
	APPLY_DONE,
	APPLY_LESS,    /* done, without something: text says what */
	APPLY_DROPPED, /* never goes to the host: a device, a pipe, an owner */
	APPLY_LEFT,    /* only when named: it would run on the host, or lies in a skipped folder */
	APPLY_REFUSED,
	APPLY_N_RESULTS
};

struct apply_note {
	enum apply_result result;
	char *path, *text;     /* text NULL: nothing to say */
	enum change_kind kind; /* NONE: a path that names nothing */
	char *from;            /* RENAMED: its old path, else NULL */
	size_t folder_len;     /* LEFT as one of many: this much of path is the skipped folder */
	bool runs_on_host;     /* to be named itself */
	bool is_dependency;    /* a package of a node_modules with install scripts */
};

struct apply_report {
	struct apply_note *notes; /* in path order */
	size_t n_notes;
	size_t counts[APPLY_N_RESULTS]; /* listed changes; LEFT counts skipped folders' files too */
	size_t n_unmatched; /* paths that name nothing that changed: each has a REFUSED note */
};

/* Negative only where the work ended early; the report holds what was done all the same. */
int apply_changes(struct change_set *set, const struct changes *changes,
	const struct apply_options *options, struct apply_report *ret_report, struct err *err);
void apply_report_done(struct apply_report *report);

/* A path as a user gives it, below the root: absolute (inside, or on the host) or relative to cwd (absolute, where
 * that is in the root) or else to the root. -ENOENT where it lies outside. */
int apply_resolve_path(
	const struct changes *changes, const char *cwd, const char *path, char **ret_path);
#endif
