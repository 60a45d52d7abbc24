/* SPDX-License-Identifier: Apache-2.0 */
/* How much an account may have at once: sandboxes that have not ended, by the store; commands under way, of each replica. */
#ifndef SERVER_ALLOWANCE_H
#define SERVER_ALLOWANCE_H

#include "server/call.h"

struct allowance *allowance_new(void);
void allowance_free(struct allowance *allowance);

enum allowance_of {
	ALLOWANCE_SANDBOXES, /* that are being made: once made, the store has them */
	ALLOWANCE_EXECS,
};

/* Counts one more: -EDQUOT with a sentence where the account may have no more. Else allowance_give() when it is over. From any
 * thread. */
int allowance_take(struct call *call, enum allowance_of what, struct err *err);
void allowance_give(struct allowance *allowance, enum allowance_of what, const char *account);

#endif
