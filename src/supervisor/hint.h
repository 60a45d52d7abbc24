/* SPDX-License-Identifier: Apache-2.0 */
/* What a person can do about a refused system call. Pure: a table. */
#ifndef SUPERVISOR_HINT_H
#define SUPERVISOR_HINT_H

#include "event/event.h"

/* Kinds of refusal: each is said once a sandbox. */
enum hint_kind {
	HINT_INNER_SANDBOX,
	HINT_MOUNT,
	HINT_PROFILE,
	HINT_OLD_ABI,
	HINT_MOUNTED_FILE,
	HINT_N_KINDS
};

/* The kind of a sandbox.refused, or of a rename that failed, that deserves a hint, or -ENOENT. What programs probe for and do without
 * (ENOSYS) deserves none. */
int hint_find(const struct event *refused);
/* Makes the hint event of one kind about what was refused; borrows from it and from constants. */
void hint_make(enum hint_kind kind, const struct event *refused, struct event *ret_hint);

#endif
