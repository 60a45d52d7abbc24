/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that everything inside ends at. Made by a thread that is in the sandbox's network namespace. */
#ifndef NETCATCH_NETCATCH_SOCKETS_H
#define NETCATCH_NETCATCH_SOCKETS_H

#include "netcatch/netcatch_maps.h"
#include "util/err.h"

struct netcatch_sockets {
	int fds[NETCATCH_N_SOCKETS]; /* -1: not there (no IPv6), here and below */
	int raw4, raw6;
};

void netcatch_sockets_init(struct netcatch_sockets *sockets);
int netcatch_sockets_open(struct netcatch_sockets *sockets, struct err *err);
void netcatch_sockets_close(struct netcatch_sockets *sockets);

#endif
