/* SPDX-License-Identifier: Apache-2.0 */
/* A connection whose handshake is held: its SYN has come, and is sent on into the sandbox only when it is known how it
 * goes. So connect() inside succeeds, fails, or waits as it would towards the real destination.
 *
 *   ASKED      a person was asked
 *   WAITING    for its turn to dial
 *   RESOLVING  the name behind a synthetic address is looked up
 *   DIALLING   upstream
 *   SETTLED    the SYN was let through; its accept is waited for
 *
 * A SYN that the client's kernel repeats only replaces the one that is kept. */
#ifndef GATEWAY_HELD_H
#define GATEWAY_HELD_H

#include "gateway/dial.h"
#include "gateway/flow_head.h"
#include "gateway/syn.h"
#include "gateway/verdict.h"

struct gateway;
struct intake;

enum held_state {
	HELD_NEW,
	HELD_ASKED,
	HELD_WAITING,
	HELD_RESOLVING,
	HELD_DIALLING,
	HELD_SETTLED,
};

struct held {
	struct gateway *gw;
	struct netcatch_key key;
	struct flow_head head;
	struct policy_answer answer;
	enum held_state state;
	bool has_address, counts; /* counts: in gw->n_flows */
	uint8_t address[16];      /* to dial */
	uint16_t port;
	uint8_t packet[SYN_MAX];
	size_t packet_len;
	int64_t since_ns, dialled_ns; /* the SYN came; its turn to dial came */
	struct dial dial; /* SETTLED: done; or never started, for a refused name, answered by us */
	struct lookup *lookup;
	struct ask *ask;
	struct poller_timer timer;
	struct held *next, **at; /* WAITING or DIALLING: in that queue */
};

/* Decides about a new SYN and begins. The intake knows it by its key until held_free(). */
void held_start(struct gateway *gw, const struct netcatch_record *record);
/* The same SYN once more. */
void held_repeat(struct held *held, const struct netcatch_record *record);
/* One that failed lately, repeated before its answer came: the same answer, and no event. */
void held_answer(struct gateway *gw, const struct netcatch_record *record, int positive_errno);
/* A new one that finds no room among those that are held: it is told, and refused. */
void held_turn_away(struct gateway *gw, const struct netcatch_record *record, const char *why);
/* It was accepted, and there is no descriptor for it. */
void held_lose(struct held *held, const char *why);
/* It was accepted: the open flow takes over from here. */
void held_accept(struct held *held, int client_fd);
/* The rules have changed. */
void held_check(struct held *held);
void held_free(struct held *held); /* whatever it is at */
void held_stop(struct held *held); /* the gateway stops: it is told how far it came, and gone */

/* For the queues of the intake. */
void held_dial(struct held *held);
void held_give_up(struct held *held); /* a dial that takes too long while others wait */

#endif
