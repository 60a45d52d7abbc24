/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor may do, by phase (capabilities(7)): most of root's power is given up before the sandbox
 * exists, the rest of what only making one takes when it does. Nothing comes back, not by exec either. */
#ifndef SUPERVISOR_RIGHTS_H
#define SUPERVISOR_RIGHTS_H

#include "util/err.h"

enum rights_phase {
	RIGHTS_CREATING,
	RIGHTS_RUNNING,         /* until the end: removing takes no more than this */
	RIGHTS_RUNNING_NETWORK, /* the same for a sandbox that has a gateway */
};

/* For this thread and those it starts from now on: threads that exist keep what they have. What the process
 * lacks already stays away (a container that gives root less). */
int rights_keep(enum rights_phase phase, struct err *err);

#endif
