/* SPDX-License-Identifier: Apache-2.0 */
/* One open flow; for the files bridge*.c. */
#ifndef GATEWAY_BRIDGE_INTERNAL_H
#define GATEWAY_BRIDGE_INTERNAL_H

#include "gateway/bridge.h"
#include "gateway/flow_head.h"
#include "gateway/machine.h"
#include "gateway/policy.h"
#include "gateway/poller.h"
#include "gateway/relay.h"
#include "util/str.h"

enum bridge_state {
	BRIDGE_LOOKING,  /* at the first bytes */
	BRIDGE_RELAYING, /* bytes as they are */
	BRIDGE_MACHINE,
	BRIDGE_LEAVING, /* the program was told all; what it still sends is thrown away */
};

struct mitm;

struct bridge_side {
	struct poller_io io; /* fd -1: none, or closed */
	struct relay relay;  /* from this side; also what it sent that a machine did not take yet */
	bool eof;            /* for a machine: its end was told */
	bool is_shut;        /* we told it that nothing more comes */
};

struct bridge {
	struct gateway *gw;
	struct bridges *all;
	struct bridge *next, **at;
	struct flow_head head;
	struct policy_answer answer; /* what let it through, or what refuses it */
	enum bridge_state state;
	struct bridge_side side[MACHINE_SIDES];
	struct machine machine;
	struct poller_timer timer;
	int64_t since_ns;
	uint64_t bytes_out, bytes_in; /* as a machine took and gave them, on the program's side */
	size_t thrown;                /* of what came while leaving */
	const char *tls; /* "intercepted", "passthrough", "unreadable"; NULL: none was seen */
	struct str sni, error;
	struct mitm *mitm;    /* the machine, where TLS is opened */
	bool failed, is_told; /* is_told: that it was refused */
	bool client_ended;    /* the program sends nothing more */
	bool is_late;         /* its first bytes were waited for long enough */
};

struct bridges {
	struct gateway *gw;
	struct relay_pool pool;
	struct bridge *first;
};

/* Ends the flow in good order, or with a reset of both sides. It is gone then. */
void bridge_end(struct bridge *bridge);
void bridge_reset(struct bridge *bridge, const char *why);
/* A reset since one of the sockets failed. */
void bridge_fail(struct bridge *bridge, enum machine_side side, int positive_errno);

/* Handles what is there now, by the state; may end the flow. */
void bridge_go_on(struct bridge *bridge);
void bridge_close_server(struct bridge *bridge);

/* Bytes that are no HTTP, where only that is let through: refused, told and reset. */
void bridge_refuse_opaque(struct bridge *bridge);

/* bridge_look.c: looks at the first bytes and sets the state; may end the flow. True: go on in the new state. */
bool bridge_look(struct bridge *bridge);
/* Passes the bytes on as they are, if that is allowed. Returns as bridge_look(). */
bool bridge_pass(struct bridge *bridge);
/* bridge_drive.c: everything that can be done now with a machine, or with leaving; may end the flow. */
void bridge_drive(struct bridge *bridge);
void bridge_leave(struct bridge *bridge);
/* All that the program is told is sent; what it still says is thrown away for a while. */
void bridge_begin_leaving(struct bridge *bridge);

#endif
