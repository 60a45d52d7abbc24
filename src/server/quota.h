/* SPDX-License-Identifier: Apache-2.0 */
/* How much an account may have at once: sandboxes that have not ended, by the store; commands under way, of each replica. */
#ifndef SERVER_QUOTA_H
#define SERVER_QUOTA_H

#include "server/call.h"

struct quota *quota_new(void);
void quota_free(struct quota *quota);

enum quota_of {
	QUOTA_SANDBOXES, /* that are being made: once made, the store has them */
	QUOTA_EXECS,
};

/* Counts one more: -EDQUOT with a sentence where the account may have no more. Else quota_give() when it is over. From any
 * thread. */
int quota_take(struct call *call, enum quota_of what, struct err *err);
void quota_give(struct quota *quota, enum quota_of what, const char *account);

#endif
