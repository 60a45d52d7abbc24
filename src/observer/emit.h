/* SPDX-License-Identifier: Apache-2.0 */
/* From a record in the ring to events in the sink: names resolved, claims checked, losses told, the exec
 * named. Used while a box lives and for what a dead supervisor left. */
#ifndef OBSERVER_EMIT_H
#define OBSERVER_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/sink.h"
#include "observer/mount_places.h"
#include "observer/mount_watch.h"
#include "observer/observer.h"
#include "observer/wire.h"
#include "util/scoped.h"

struct emit;

struct emit_config {
	struct event_sink *sink; /* borrowed */
	int root_fd;             /* of the box; -1: gone. Borrowed */
	int64_t start_ns;
	uint32_t id_base;
	int groups_fd; /* the map, where losses are counted for each group. Borrowed */
	const struct wire_slot *slot; /* where they are counted over all. Borrowed */
	bool hides_files;             /* file.* is not told: only mount.* was asked for */
	struct mount_places *places;  /* or NULL: mount.* is not told. Taken over */
};

struct emit *emit_new(const struct emit_config *config);
void emit_free(struct emit *emit);
SCOPED_TYPE(emit)

/* Names an exec number; add gives one that is free, set is for numbers given by somebody else. */
uint32_t emit_add_exec(struct emit *emit, const char *exec_id, bool internal, uint64_t cgroup_id);
void emit_set_exec(
	struct emit *emit, uint32_t number, const char *exec_id, bool internal, uint64_t cgroup_id);
/* Tells what the group still lost; it is not asked again. */
void emit_end_group(struct emit *emit, uint64_t cgroup_id);
/* Nothing more will come: tells what is open still. */
void emit_end(struct emit *emit);

/* Emits a record's events. */
void emit_record(struct emit *emit, const void *record, size_t len);

/* From now on tells it what happens; borrowed, NULL: nobody. */
void emit_set_watch(struct emit *emit, struct mount_watch *watch);
/* Tells an event of somebody else's, as one of its own. */
void emit_event(struct emit *emit, struct event *ev);

/* Emits what was lost since the last time, where anything was. */
void emit_losses(struct emit *emit);
/* The ring was read to its end: tells losses, and that records of ended groups have all come. */
void emit_note_empty(struct emit *emit);

const struct observer_counts *emit_counts(const struct emit *emit);

#endif
