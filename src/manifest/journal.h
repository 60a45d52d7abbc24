/* SPDX-License-Identifier: Apache-2.0 */
/* What was applied to the host or discarded of a change set, so that neither happens twice.
 *
 * A line is written and synced before the act where the act alone could not be told afterwards (renames), after
 * it otherwise. A path that was dealt with in one state is dealt with until the sandbox changes it again. */
#ifndef MANIFEST_JOURNAL_H
#define MANIFEST_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "manifest/renames.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"

struct journal;

/* Reads <dir>/journal.jsonl; one that is not there is empty. Lines torn by a power cut are passed over. */
int journal_open(const char *dir, struct journal **ret_journal, struct err *err);
/* Gives another change set the acts of this one, as a whole or not at all; none are none. */
int journal_copy(const char *from_dir, const char *to_dir, struct err *err);
void journal_free(struct journal *journal);
SCOPED_TYPE(journal)

enum journal_act {
	JOURNAL_APPLIED,
	JOURNAL_DISCARDED,
	JOURNAL_SEEN, /* what the host's file held while nobody there had touched it */
	JOURNAL_MADE, /* a folder, by an apply, which gives it its mode later */
};

struct journal_entry {
	enum journal_act act;
	bool removed; /* the act took the path away; kept apart from what was put there */
	char state[DIGEST_HEX_SIZE];  /* of the change; "" for SEEN, MADE */
	char sha256[DIGEST_HEX_SIZE]; /* of the host's file from then on; "" where it is no file */
};

/* The last act on a path of mount n, NULL where there was none. */
const struct journal_entry *journal_find(
	const struct journal *journal, int n, struct slice path, bool removed);
/* Whether a folder there may be one that an apply made and was cut off before it gave it its mode. */
bool journal_is_made(const struct journal *journal, int n, struct slice path);
/* What the host's file is known to hold, by whatever act; NULL where that is not known. */
const char *journal_find_content(const struct journal *journal, int n, struct slice path);
/* The renames of a mount: renames.h. */
char *journal_now(const struct journal *journal, int n, const char *path);
char *journal_before(const struct journal *journal, int n, const char *path);
const char *journal_next_parked(const struct journal *journal, int n, size_t *i);
const struct rename *journal_last_rename(const struct journal *journal, int n);
/* The last one was not done, whether or not its line could be written; told before the next line. */
void journal_drop_rename(struct journal *journal, int n);
/* An apply was at work on the mount: what changed on the host since may be by it. */
bool journal_has_begun(const struct journal *journal, int n);
/* Whether a folder of the host is as an apply left it, which gave it its time of change. */
bool journal_is_touched(const struct journal *journal, int n, const struct stat *folder);
/* What an apply that did not come to its end may have left of its temporary files: from *i = 0 on, until false. */
bool journal_next_temporary(
	const struct journal *journal, int n, size_t *i, struct slice *ret_path);
bool journal_is_temporary(const struct journal *journal, int n, struct slice path);

/* Each adds a line; sync it before the act it stands for, or before telling the user that it is done. */
int journal_add(
	struct journal *journal, int n, struct slice path, const struct journal_entry *entry);
/* Known from then on, also where it fails. */
int journal_add_rename(struct journal *journal, int n, const struct rename *rename);
int journal_add_begun(struct journal *journal, int n); /* nothing where it is known already */
int journal_add_temporary(struct journal *journal, int n, const char *path);
int journal_add_touched(struct journal *journal, int n, const struct stat *folder);
int journal_add_tidy(struct journal *journal, int n); /* none is left */
int journal_sync(struct journal *journal);
/* The error of the last line that could not be written or synced: its disk is not the host folder's. 0: none. */
int journal_failure(const struct journal *journal);

#endif
