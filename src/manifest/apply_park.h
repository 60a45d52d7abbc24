/* SPDX-License-Identifier: Apache-2.0 */
/* Renames on the host that the journal knows of, and what they left parked. */
#ifndef MANIFEST_APPLY_PARK_H
#define MANIFEST_APPLY_PARK_H

#include "manifest/host_folder.h"
#include "manifest/journal.h"

/* Written down, then done. is_parked: to is a parking place. */
int apply_journal_rename(struct journal *journal, int n, struct host_folder *host, const char *from,
	const char *to, bool is_parked);

/* Puts back what an apply parked and could not bring to its place, where its own is free. What is not stays known to the
 * journal, and the next apply takes it from there. */
void apply_park_back(struct journal *journal, int n, struct host_folder *host);

#endif
