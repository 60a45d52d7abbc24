/* SPDX-License-Identifier: Apache-2.0 */
/* Gives up, for good and for all threads, what the gateway does not need before it reads its first foreign byte. */
#ifndef GATEWAY_CONFINE_H
#define GATEWAY_CONFINE_H

#include <sys/types.h>

#include "util/err.h"

/* First thing: dies with its parent (which may have died already: -ESRCH), cannot be looked into. */
int confine_begin(struct err *err);

/* Another uid and gid with no rights left, no new ones, and the filter of system calls below. The threads that are
 * there stay under it as well. */
int confine_enter(uid_t uid, struct err *err);

#endif
