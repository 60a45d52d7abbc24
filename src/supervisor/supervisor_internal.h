/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: one sandbox as a whole. Only the supervisor's thread touches it. */
#ifndef SUPERVISOR_SUPERVISOR_INTERNAL_H
#define SUPERVISOR_SUPERVISOR_INTERNAL_H

#include "proto/gateway_wire.h"
#include "record/record.h"
#include "sandbox/sandbox.h"
#include "spec/spec.h"
#include "supervisor/conn.h"
#include "supervisor/loop.h"
#include "supervisor/recorder.h"

#define SUPERVISOR_MAX_EXECS 4096 /* running at once in one sandbox */
#define SUPERVISOR_MAX_CONNS 1024

struct running;
struct tracing;
struct sealer;
struct trash_sweep;
struct network;
struct metering;
struct rw_before;
struct rest;
struct witness;

struct supervisor {
	const char *id, *state_dir, *run_dir;
	char *dir;         /* <state>/sandboxes/<id> */
	char *record_dir;  /* <state>/records/<id> */
	char *changes_dir; /* <state>/changes/<id> */
	bool is_settled;   /* nothing in it waits to be applied or discarded */
	struct spec *spec;
	struct loop *loop;
	struct sandbox *sandbox;
	struct record *record;
	struct recorder *recorder;
	struct tracing *tracing; /* NULL: not asked for, or not to be had */
	struct witness *witness; /* of its mounts, until tracing takes it over; NULL: none */
	char *witness_fault;     /* why mounts go unwatched, or NULL */
	struct network *network; /* NULL: loopback alone */
	struct rw_before *rw;    /* NULL: nothing is mounted rw */
	char *first_network;     /* as it was asked for, once it was changed (network_rules.c) */
	struct sealer *sealer;
	struct metering *metering;
	struct trash_sweep *sweep;
	struct conn **conns;
	size_t n_conns;
	struct conn *lifeline;  /* who started it: its end is the sandbox's, until it says "keep" */
	struct running **execs; /* also those that left processes behind */
	size_t n_execs, sweep_at;
	int listener;
	int published[GATEWAY_PUBLISHED_MAX]; /* listeners of published ports (publish.c) */
	size_t n_published;
	int visits[2];  /* to the gateway (visit.c); -1: there is none */
	int secrets_fd; /* for the gateway, never read here; -1: none */
	int proxy_fd;   /* likewise, once the upstream proxy was changed (network_proxy.c) */
	struct loop_io *listener_io, *init_io;
	int64_t next_row;
	char *end_reason;    /* not NULL: it is ending */
	struct rest *before; /* not NULL: it was suspended and goes on */
	bool is_paused;
	bool has_plane; /* a control plane looks after it: somebody answers, though nobody is attached */
	bool is_suspending; /* its end is not for good */
	bool is_resting;    /* its files stay: resting.h */
	int64_t rested_ns;  /* guest_ns since when */
	int end_status;     /* 0, or why it could not end as it was asked to */
	struct err end_err;
};

/* Ends the loop; the reason stands in sandbox.stopped. The first one counts. */
void supervisor_end(struct supervisor *sup, const char *reason);

#endif
