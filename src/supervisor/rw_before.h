/* SPDX-License-Identifier: Apache-2.0 */
/* What the folders and files mounted rw are before the first command, and what the sandbox is seen to do to them: by
 * which the end tells what changed, and whose doing it was.
 *
 * A thread beside the sandbox's making looks at all of it by stamps and writes that down in the change set
 * (manifest/snapshot_take.h); the first command waits for it, for a second at most, and a moment more for files to be
 * read. Then it goes on reading them for their hashes, at the lowest priority, as long as the sandbox runs. --full: everything is read before the first
 * command. The thread touches nothing of the supervisor's but what stands in rw_before.c. */
#ifndef SUPERVISOR_RW_BEFORE_H
#define SUPERVISOR_RW_BEFORE_H

#include "manifest/changes_rw.h"
#include "supervisor/supervisor_internal.h"

void rw_before_start(struct supervisor *sup); /* sets sup->rw where anything is mounted rw */
void rw_before_wait(struct supervisor *sup);
void rw_before_note(struct rw_before *rw, const struct event *ev);
void rw_before_stop(struct supervisor *sup);
/* For the comparison at the end; NULL: nobody watched. */
const struct rw_seen *rw_before_seen(const struct supervisor *sup);
/* Once the list is saved: the snapshots go where the next sandbox finds the hashes. */
void rw_before_keep(struct supervisor *sup);
void rw_before_free(struct rw_before *rw);

#endif
