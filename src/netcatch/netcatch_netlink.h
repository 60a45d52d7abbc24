/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the kernel by netlink(7), several in one message, and what came of them. */
#ifndef NETCATCH_NETCATCH_NETLINK_H
#define NETCATCH_NETCATCH_NETLINK_H

#include <stddef.h>
#include <stdint.h>

#define NETCATCH_NETLINK_MAX 16384 /* more is a broken invariant */

struct netcatch_netlink {
	_Alignas(uint64_t) char bytes[NETCATCH_NETLINK_MAX];
	size_t len, at; /* at: where the last request begins */
};

void netcatch_netlink_init(struct netcatch_netlink *requests);

/* Begins a request; returns its head of that many bytes, all 0. What follows is put into it. */
void *netcatch_netlink_start(
	struct netcatch_netlink *requests, uint16_t type, uint16_t flags, size_t head_len);
void netcatch_netlink_put(
	struct netcatch_netlink *requests, uint16_t type, const void *data, size_t len);
/* What is put until then stands within that attribute. */
size_t netcatch_netlink_open(struct netcatch_netlink *requests, uint16_t type);
void netcatch_netlink_close(struct netcatch_netlink *requests, size_t opened);

/* Sends them and reads all answers, which the kernel has given when it returns: 0, the errno of the first that failed, or
 * -EPROTO where there was none at all. */
int netcatch_netlink_ask(int sock, const struct netcatch_netlink *requests);

#endif
