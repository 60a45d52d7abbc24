/* SPDX-License-Identifier: Apache-2.0 */
/* What changed in the folders that a sandbox had rw: rw_scan.h, for all of a change set. */
#ifndef MANIFEST_CHANGES_RW_H
#define MANIFEST_CHANGES_RW_H

#include "manifest/changes.h"
#include "manifest/rw_scan.h"

struct changes_rw_options {
	bool full;                  /* hash all, whatever the stamps say */
	const struct rw_seen *seen; /* NULL: nobody watched */
};

/* Adds a root for each rw mount whose snapshot is there; where it cannot be compared, with a sentence in unread.
 * Needs root. */
void changes_rw_read_all(const struct change_set *set, const struct changes_rw_options *options,
	struct changes_list *list);

/* The folder or file that was mounted, to be read; without what the host has mounted below it. */
int changes_rw_open(const char *host);

#endif
