/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread inside a sandbox's network namespace, and what has to be arranged there: rtnetlink(7). */
#ifndef NETCATCH_NETCATCH_NETNS_H
#define NETCATCH_NETCATCH_NETNS_H

#include "util/err.h"

int netcatch_netns_enter(int netns_fd, int *ret_own_fd, struct err *err);
void netcatch_netns_leave(
	int own_fd); /* back to where it was, or the process ends: there is no other place for it */

/* Inside: the loopback interface is up and has addresses, and there are routes that make every address of the world
 * local to it. A host without IPv6 gets along without. May be done again. */
int netcatch_netns_configure(struct err *err);

#endif
