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

/* Takes the change set away at once: with the sandbox's folder, into which it is moved. */
void end_changes_drop(const char *state_dir, const char *id);

#endif
