/* SPDX-License-Identifier: Apache-2.0 */
/* What was told of a name that was gone when we looked: true, if it is soon told that the name was removed or
 * moved; else nobody knows. Pure: a bounded list. */
#ifndef OBSERVER_CLAIMS_H
#define OBSERVER_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "util/scoped.h"
#include "util/slice.h"

#define CLAIMS_MAX 1024 /* open at once */

struct claim {
	char *path;
	uint32_t exec;
	int64_t guest_ns, pid, task; /* of the event that made it */
	int64_t looked_ns;           /* when the name was gone, on the clock of guest_ns */
};

struct claims;

struct claims *claims_new(void);
void claims_free(struct claims *claims);
SCOPED_TYPE(claims)

/* Opens a claim about path; copies. False: there is no room. */
bool claims_open(struct claims *claims, struct slice path, const struct claim *claim);
/* path was removed or moved away: claims about it and what lies below were true. */
void claims_settle(struct claims *claims, struct slice path);
/* Takes out a claim that was looked at before that time, or any of that exec (0: of none). False: there is none.
 * Its path is not set. */
bool claims_pop(struct claims *claims, int64_t before_ns, uint32_t exec, struct claim *ret_claim);

#endif
