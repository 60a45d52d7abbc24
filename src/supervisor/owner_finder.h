/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the gateway whose a connection or datagram is that no program in the kernel noted: it may not look into the
 * sandbox's processes itself. A thread of its own, since the gateway waits for the answer, and what the supervisor does
 * meanwhile may be waiting for the gateway. */
#ifndef SUPERVISOR_OWNER_FINDER_H
#define SUPERVISOR_OWNER_FINDER_H

#include "netcatch/netcatch.h"
#include "util/err.h"
#include "util/scoped.h"

struct owner_finder;

/* *ret_socket is the gateway's end, GATEWAY_FD_FINDER, and the caller's to close. netcatch outlives it. */
int owner_finder_start(const struct netcatch *netcatch, struct owner_finder **ret_finder,
	int *ret_socket, struct err *err);
void owner_finder_free(struct owner_finder *finder);

#endif
