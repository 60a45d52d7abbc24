/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a connection or datagram is, where no program in the kernel noted it: asked afterwards, so what is gone by then
 * is not found. sock_diag(7) gives the socket, its group and number; then who has it open is looked for in /proc. */
#ifndef NETCATCH_NETCATCH_DIAG_H
#define NETCATCH_NETCATCH_DIAG_H

#include <stdint.h>

#include "netcatch/netcatch_wire.h"

struct netcatch_diag {
	int sock;      /* made by a thread inside the network namespace; -1: none */
	int cgroup_fd; /* the sandbox's group; borrowed */
	uint32_t pid;  /* where the last one was found: the next is likely to be beside it */
	int fd;
};

int netcatch_diag_socket(void); /* of a thread inside */

/* All zero where it is not known; the group alone where only the process is not. Of a socket that several processes have
 * open it is one of them. */
void netcatch_diag_find(struct netcatch_diag *diag, const struct netcatch_key *key,
	struct netcatch_owner *ret_owner);

#endif
