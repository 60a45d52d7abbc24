/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox's way to the control plane, where its spec has one: each connection that its gateway asks for is made here, in
 * the sandbox's name, since the gateway, which reads foreign bytes, is to say nobody's. */
#ifndef SUPERVISOR_PLANE_WAY_H
#define SUPERVISOR_PLANE_WAY_H

#include "supervisor/supervisor_internal.h"

struct plane_way;

/* *ret_socket is the gateway's end, GATEWAY_FD_PLANE, and the caller's to close. */
int plane_way_open(
	struct supervisor *sup, struct plane_way **ret_way, int *ret_socket, struct err *err);
void plane_way_free(struct plane_way *way); /* connections that were made go on */

#endif
