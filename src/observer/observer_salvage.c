/* SPDX-License-Identifier: Apache-2.0 */
/* What a dead supervisor left in its pinned ring. Its slot still names the sandbox, and the map of groups
 * still names the execs. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "observer/emit.h"
#include "observer/observer.h"
#include "observer/programs.h"
#include "util/ring.h"

#define SPAN_MAX (1u << 20)

static bool find_slot(
	const struct programs *p, const char *id, uint32_t *ret_number, struct wire_slot *ret_slot)
{
	for (uint32_t i = 0; i < WIRE_SLOTS_MAX; i++)
		if (bpf_map_lookup_elem(p->slots_fd, &i, ret_slot) == 0 &&
			strcmp(ret_slot->id, id) == 0) {
			*ret_number = i;
			return true;
		}
	return false;
}

static void name_execs(const struct programs *p, uint32_t slot, struct emit *emit)
{
	uint64_t key, next;
	bool more = bpf_map_get_next_key(p->groups_fd, NULL, &next) == 0;

	while (more) {
		struct wire_group group;

		key = next;
		if (bpf_map_lookup_elem(p->groups_fd, &key, &group) == 0 && group.slot == slot)
			emit_set_exec(
				emit, group.exec, group.id, group.flags & WIRE_GROUP_INTERNAL, key);
		more = bpf_map_get_next_key(p->groups_fd, &key, &next) == 0;
	}
}

static void drain_ring(const struct programs *p, const char *id, int n, struct emit *emit)
{
	scoped(ring) struct ring *ring = NULL;
	int fd = programs_get_ring(p, id, n);
	struct slice span, record;

	if (fd < 0)
		return;
	if (ring_open(fd, &ring, NULL) < 0) {
		scoped_close(&fd);
		return;
	}
	while (ring_span(ring, SPAN_MAX, &span) > 0)
		while (ring_record(&span, &record))
			emit_record(emit, record.p, record.len);
	ring_release(ring);
}

static void tell_open(const struct programs *p, uint32_t slot, struct emit *emit)
{
	struct event ev = {.kind = EVENT_TRACE_BLIND};

	if (programs_clear_opens(p, slot) == 0)
		return;
	event_set_text(&ev, reason,
		"files on mounts were not closed, or not told to be: what was read and written "
		"through "
		"them is not known");
	event_set_text(&ev, source_lost, "mounts");
	emit_event(emit, &ev);
}

static void drain_rings(const struct programs *p, const char *id, struct event_sink *sink)
{
	struct wire_slot slot = {0};
	uint32_t number = 0;
	bool found = find_slot(p, id, &number, &slot);
	struct emit_config config = {
		.sink = sink,
		.root_fd = -1,
		.start_ns = slot.start_ns,
		.id_base = slot.id_base,
		.groups_fd = p->groups_fd,
		.slot = &slot,
	};
	scoped(emit) struct emit *emit = emit_new(&config);

	if (found)
		name_execs(p, number, emit);
	for (int n = 0; n < PROGRAMS_RINGS_MAX; n++)
		drain_ring(p, id, n, emit);
	emit_end(emit);
	if (found) {
		tell_open(p, number, emit);
		programs_free_slot(p, number);
	}
}

int observer_salvage(const char *pin_dir, const char *id, struct event_sink *sink, struct err *err)
{
	struct programs programs;
	int r = programs_look(pin_dir, &programs, err);

	if (r == 0) {
		drain_rings(&programs, id, sink);
		programs_unpin_rings(&programs, id);
	}
	programs_close(&programs);
	return r == -ENOENT ? 0 : r;
}
