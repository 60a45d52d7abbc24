/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that everything inside ends at. Made by a thread that is in the sandbox's network namespace. */
#ifndef NETCATCH_NETCATCH_SOCKETS_H
#define NETCATCH_NETCATCH_SOCKETS_H

#include <stdbool.h>

#include "netcatch/netcatch_maps.h"
#include "util/err.h"

struct netcatch_sockets {
	int fds[NETCATCH_N_SOCKETS]; /* -1: not there (no IPv6), here and below */
	int raw4, raw6;
	int copies; /* where rules catch: SYNs arrive here */
};

void netcatch_sockets_init(struct netcatch_sockets *sockets);
/* for_rules: as netcatch_rules.h takes them, else for programs. */
int netcatch_sockets_open(struct netcatch_sockets *sockets, bool for_rules, struct err *err);
void netcatch_sockets_close(struct netcatch_sockets *sockets);

#endif
