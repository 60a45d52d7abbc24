/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of everything that happens in one sandbox: numbers it and keeps it in the record, and puts
 * advice behind the first refusal of a kind.
 * A record that can no longer be written (disk full) calls on_broken once: recording is what we are for,
 * so the sandbox ends with it. */
#ifndef SUPERVISOR_RECORDER_H
#define SUPERVISOR_RECORDER_H

#include "event/sink.h"
#include "record/record.h"

struct recorder;

struct recorder_config {
	struct record *record;       /* borrowed */
	int64_t start_ns;            /* guest_ns 0 on CLOCK_MONOTONIC */
	void (*on_event)(void *ctx); /* one more is kept: to be signed some time */
	void (*on_file)(void *ctx, const struct event *ev); /* NULL, or: one about files is kept */
	void (*on_broken)(void *ctx, int error);
	void *ctx;
};

struct recorder *recorder_new(const struct recorder_config *config);
void recorder_free(struct recorder *recorder);
SCOPED_TYPE(recorder)

struct event_sink *recorder_sink(struct recorder *recorder);
void recorder_set_start(struct recorder *recorder, int64_t start_ns);
/* Fills guest_ns with now where the producer has no time of its own, and emits. */
void recorder_emit_now(struct recorder *recorder, struct event *ev);
/* Hosts that were refused to an exec so far; good until the next event. And forgets them. */
struct event_list recorder_hosts_refused(const struct recorder *recorder, const char *exec_id);
void recorder_forget_hosts(struct recorder *recorder, const char *exec_id);
void recorder_flush(struct recorder *recorder, bool sync);
/* Before the closing lines: how many events found no room, as a loss. */
void recorder_say_lost(struct recorder *recorder);
/* What is seen: the number of the last trace.started (0: none), and whether something is out of sight whatever runs, by a
 * trace.blind that names no exec. */
uint64_t recorder_traced_since(const struct recorder *recorder);
bool recorder_is_blind(const struct recorder *recorder);
bool recorder_is_broken(const struct recorder *recorder);

#endif
