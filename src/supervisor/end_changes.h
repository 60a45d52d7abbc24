/* SPDX-License-Identifier: Apache-2.0 */
/* What the sandbox changed, as its record keeps it: compared by content when nothing runs any more and the box's
 * own layer is still there. */
#ifndef SUPERVISOR_END_CHANGES_H
#define SUPERVISOR_END_CHANGES_H

#include "manifest/changes_rw.h"
#include "supervisor/supervisor_internal.h"

/* Writes changes/end.json into the record. Where that cannot be done the record says so: the summary must not
 * claim that nothing changed. */
void end_changes_save(struct supervisor *sup);
/* The same for a record that is closed without its supervisor. -EEXIST: it has one, and keeps it. Settled: nothing waits to
 * be applied or discarded, so that nobody needs the change set. */
int end_changes_put(struct record *record, const char *changes_dir,
	const struct changes_rw_options *rw, bool *ret_is_settled, struct err *err);

/* Takes the change set away in one step: with the sandbox's folder, into which it is moved where that is there. */
void end_changes_drop(const char *state_dir, const char *id);

/* The same for one in which nothing waits, or which holds nothing at all. Not while an apply or discard has it: that
 * drops it itself. */
void end_changes_drop_settled(const char *state_dir, const char *id);

#endif
