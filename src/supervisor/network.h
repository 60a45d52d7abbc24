/* SPDX-License-Identifier: Apache-2.0 */
/* One sandbox's network: catches what leaves it (src/netcatch), and starts the gateway that everything then goes through when
 * something does for the first time: a command without a network pays for no process. When the gateway dies its
 * connections are reset, nothing gets out, and the next use starts another one. */
#ifndef SUPERVISOR_NETWORK_H
#define SUPERVISOR_NETWORK_H

#include <jansson.h>

#include "supervisor/supervisor_internal.h"

/* In this order: before sandbox_create(); its on_place (ctx: the supervisor) where sup->network is there, which it is when
 * the spec asks for one. The thread keeps the rights it takes while it lives, some ms, whatever rights_keep() does. */
void network_prepare(struct supervisor *sup);
void network_on_place(void *ctx, int netns_fd, int cgroup_fd);
/* Before anything runs inside, again and again: what was begun on a thread is finished here, at the first time. Where the
 * host cannot give what the spec asks for the sandbox has loopback alone, and its record says so. */
void network_open(struct supervisor *sup);

void network_add_exec(struct supervisor *sup, uint64_t cgroup_id, const char *exec_id);
void network_end_exec(struct supervisor *sup, uint64_t cgroup_id); /* nothing runs in it any more */
/* Everything that has happened on the network up to now is in the record when this returns true. Waits 100 ms at most. */
bool network_settle(struct supervisor *sup);
/* The gateway is to say what passed it: heard of by metering_count_network(). Does not wait. */
void network_ask_count(struct supervisor *sup);
/* The rules of the spec have changed. */
void network_rules_changed(struct supervisor *sup);
/* Likewise the upstream proxy; text: network_proxy.h. */
void network_proxy_changed(struct supervisor *sup, struct slice text);
void network_answer(
	struct supervisor *sup, uint64_t ask_id, bool is_allowed); /* to the gateway's question */
/* A client's answer, and what waits for one: network_asks.h. */
int network_on_answer(
	struct supervisor *sup, const json_t *body, bool may_private, struct err *err);
void network_write_asks(struct supervisor *sup, struct str *out);

void network_stop(struct supervisor *sup); /* what is left to tell, then ends the gateway */
void network_free(struct supervisor *sup);

#endif
