/* SPDX-License-Identifier: Apache-2.0 */
/* Held SYNs as they arrive where rules catch and not programs: messages of linux/netfilter/nfnetlink_log.h. Pure. */
#ifndef GATEWAY_COPIES_H
#define GATEWAY_COPIES_H

#include <stdbool.h>

#include "netcatch/netcatch_wire.h"
#include "util/slice.h"

/* The next SYN of what was read from the socket, as a record of the kernel half would tell it, but without an owner; takes
 * it off messages. False where there is none any more; what is no SYN is passed over. */
bool copies_next(struct slice *messages, struct netcatch_record *ret_record);

#endif
