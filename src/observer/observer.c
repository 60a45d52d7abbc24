/* SPDX-License-Identifier: Apache-2.0 */
/* How it works: the kernel half writes into the slot's ring without waking anybody. While there is work,
 * the owner's loop drains every OBSERVER_POLL_MS; when it has been quiet, observer_arm() sets a word that
 * makes the next record wake us. A ring that fills wakes us too.
 *
 * A box begins with a small ring. The first time that one fills to its mark it is replaced: the big one is
 * put into the slot at once, and the small one is read on until no program can still write to it. Losses
 * are counted in the kernel, and told where they happened: each record carries the count so far. */
#include "observer/observer.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observer/emit.h"
#include "observer/programs.h"
#include "observer/ring.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"

#define SLOTS_WITH_RING 4 /* that may keep theirs when nobody uses them */
#define RING_SMALL      (256u << 10)
#define RING_BIG        (4u << 20)
#define RING_MIN        4096u
#define RELEASE_EVERY   64   /* records read before their room is given back */
#define STATUS_MAX      8192 /* of /proc/PID/status */
#define BUSY_US         20   /* a record that is being written: looked at again after this */

struct observer {
	struct programs programs;
	struct ring *ring;
	struct programs_swap swap; /* of the small ring for the big one */
	bool is_swapping;
	size_t small, big;
	bool pressed;
	uint64_t dropped; /* when it was last looked at */
	int epoll_fd;
	char *id;
	unsigned sources;
	struct emit *emit;
	uint32_t namespaces[2];
	size_t n_namespaces;
	struct cgroup_list {
		uint64_t *ids;
		size_t n;
	} cgroups;
};

int observer_probe(struct err *err)
{
	return programs_probe(err);
}

/* ---- opening ---- */

/* The sizes of the small ring and the big one, within what the user allows. */
static void set_sizes(struct observer *o, size_t buffer_bytes)
{
	const char *text = getenv("CLOCHE_RING_BYTES"); /* for tests of loss */
	size_t want = text ? strtoul(text, NULL, 10) : buffer_bytes;

	o->big = RING_BIG;
	while (want > 0 && o->big > want && o->big > RING_MIN)
		o->big /= 2;
	o->small = o->big < RING_SMALL ? o->big : RING_SMALL;
}

static uint32_t namespace_of(pid_t pid, const char *name)
{
	char path[64];
	struct stat st, own;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	if (stat(path, &st) < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (stat(path, &own) < 0 || own.st_ino == st.st_ino)
		return 0; /* the host's: everybody is in there */
	return (uint32_t)st.st_ino;
}

/* The host's number for uid 0 inside. */
static uint32_t base_of(pid_t pid)
{
	scoped_str struct str text = {0};
	unsigned inside, outside;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	if (fdio_read_file(-1, path, STATUS_MAX, &text) < 0 || !text.p)
		return 0;
	if (sscanf(text.p, "%u %u", &inside, &outside) != 2 || inside != 0)
		return 0;
	return outside;
}

static int watch_ring(struct observer *o, struct err *err)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};

	o->programs.state->high = (uint32_t)(ring_size(o->ring) / 4);
	if (epoll_ctl(o->epoll_fd, EPOLL_CTL_ADD, ring_fd(o->ring), &e) < 0)
		return err_set(err, -errno, "wait for the ring: %m");
	return 0;
}

static int open_ring(struct observer *o, struct err *err)
{
	int r = ring_new(o->small, &o->ring, err);

	if (r < 0)
		return r;
	programs_unpin_rings(&o->programs, o->id);
	r = programs_pin_ring(&o->programs, o->id, 0, ring_fd(o->ring), err);
	if (r == 0)
		r = watch_ring(o, err);
	return r < 0 ? r : programs_set_ring(&o->programs, ring_fd(o->ring), err);
}

static int add_namespaces(struct observer *o, pid_t init_pid, struct err *err)
{
	struct wire_slot *slot = o->programs.state;
	uint32_t number = (uint32_t)o->programs.slot;

	if (init_pid <= 0)
		return 0;
	slot->id_base = base_of(init_pid);
	slot->pid_ns = namespace_of(init_pid, "pid");
	slot->mnt_ns = namespace_of(init_pid, "mnt");
	if (slot->pid_ns)
		o->namespaces[o->n_namespaces++] = slot->pid_ns;
	if (slot->mnt_ns)
		o->namespaces[o->n_namespaces++] = slot->mnt_ns;
	for (size_t i = 0; i < o->n_namespaces; i++) {
		int r = bpf_map_update_elem(
			o->programs.namespaces_fd, &o->namespaces[i], &number, BPF_ANY);

		if (r < 0)
			return err_set(
				err, r, "tell the kernel half about the box's namespaces: %m");
	}
	return 0;
}

static void open_emit(struct observer *o, const struct observer_config *config)
{
	struct emit_config c = {
		.sink = config->sink,
		.root_fd = config->root_fd,
		.start_ns = config->start_ns,
		.id_base = o->programs.state->id_base,
		.groups_fd = o->programs.groups_fd,
		.slot = o->programs.state,
	};

	o->emit = emit_new(&c);
}

int observer_open(
	const struct observer_config *config, struct observer **ret_observer, struct err *err)
{
	scoped(observer) struct observer *o = new0(struct observer);
	int r;

	o->id = mem_dup(config->id);
	o->sources = config->sources;
	set_sizes(o, config->buffer_bytes);
	o->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = programs_open(config->pin_dir, &o->programs, err);
	if (r < 0)
		return r;
	snprintf(o->programs.state->id, sizeof(o->programs.state->id), "%s", config->id);
	o->programs.state->start_ns = config->start_ns;
	r = add_namespaces(o, config->init_pid, err);
	if (r == 0)
		r = open_ring(o, err);
	if (r < 0)
		return r;
	open_emit(o, config);
	*ret_observer = take(&o);
	return 0;
}

/* The thread that swaps rings holds a pointer into us; it takes some ms at most. */
static void wait_for_swap(struct observer *o)
{
	while (o->is_swapping && !programs_is_swapped(&o->swap))
		usleep(1000);
	if (o->is_swapping)
		scoped_close(&o->swap.fd);
}

/* Taking a ring out of its slot waits some ms until no program can hold it, and a process cannot end before that:
 * longer than all the rest of a short run's end. A small ring in one of the first slots stays there instead, written
 * to by nobody, for the slot's next user to replace. */
static bool may_leave_ring(const struct observer *o)
{
	return ring_size(o->ring) <= RING_SMALL && o->programs.slot < SLOTS_WITH_RING;
}

void observer_free(struct observer *o)
{
	if (!o)
		return;
	if (o->programs.state) {
		for (size_t i = 0; i < o->cgroups.n; i++)
			(void)bpf_map_delete_elem(o->programs.groups_fd, &o->cgroups.ids[i]);
		for (size_t i = 0; i < o->n_namespaces; i++)
			(void)bpf_map_delete_elem(o->programs.namespaces_fd, &o->namespaces[i]);
		wait_for_swap(o);
		if (!may_leave_ring(o))
			(void)programs_set_ring(&o->programs, -1, NULL);
		programs_unpin_rings(&o->programs, o->id);
	}
	programs_close(&o->programs);
	emit_free(o->emit);
	ring_free(o->ring);
	scoped_close(&o->epoll_fd);
	free(o->cgroups.ids);
	free(o->id);
	free(o);
}

/* ---- groups ---- */

static uint32_t group_flags(unsigned sources, bool internal)
{
	uint32_t flags = internal ? WIRE_GROUP_INTERNAL : 0;

	if (sources & OBSERVER_PROCESSES)
		flags |= WIRE_GROUP_PROCESSES;
	if (sources & OBSERVER_FILES)
		flags |= WIRE_GROUP_FILES;
	if (sources & OBSERVER_OUTPUTS)
		flags |= WIRE_GROUP_OUTPUTS;
	return flags;
}

int observer_add_cgroup(
	struct observer *o, uint64_t cgroup_id, const char *exec_id, bool internal, struct err *err)
{
	struct wire_group group = {
		.slot = (uint32_t)o->programs.slot,
		.exec = emit_add_exec(o->emit, exec_id, internal, cgroup_id),
		.flags = group_flags(o->sources, internal),
	};
	int r;

	snprintf(group.id, sizeof(group.id), "%s", exec_id ? exec_id : "");
	r = bpf_map_update_elem(o->programs.groups_fd, &cgroup_id, &group, BPF_ANY);
	if (r < 0)
		return err_set(err, r, "tell the kernel half about a cgroup: %m");
	o->cgroups.ids = mem_grow(o->cgroups.ids, o->cgroups.n + 1, sizeof(uint64_t));
	o->cgroups.ids[o->cgroups.n++] = cgroup_id;
	return 0;
}

void observer_remove_cgroup(struct observer *o, uint64_t cgroup_id)
{
	emit_end_group(o->emit, cgroup_id);
	(void)bpf_map_delete_elem(o->programs.groups_fd, &cgroup_id);
	for (size_t i = 0; i < o->cgroups.n; i++)
		if (o->cgroups.ids[i] == cgroup_id)
			o->cgroups.ids[i--] = o->cgroups.ids[--o->cgroups.n];
}

/* ---- draining ---- */

int observer_fd(const struct observer *o)
{
	return o->epoll_fd;
}

static void start_swap(struct observer *o)
{
	if (o->is_swapping || ring_size(o->ring) >= o->big)
		return;
	o->is_swapping = true;
	programs_start_swap(&o->programs, o->id, 1, o->big, &o->swap);
}

/* The small ring is read to its end and nobody writes to it any more. Where the big one could not be had the
 * small one goes on, and counts what it loses. */
static int end_swap(struct observer *o)
{
	scoped(ring) struct ring *next = NULL;

	o->is_swapping = false;
	if (o->swap.fd < 0 || ring_open(o->swap.fd, &next, NULL) < 0) {
		o->big = ring_size(o->ring);
		return -ENOMEM;
	}
	ring_free(o->ring);
	o->ring = take(&next);
	(void)watch_ring(o, NULL); /* polled all the same while there is work */
	return 0;
}

/* 1, 0 at the end of all rings, or -EBUSY. */
static int next_record(struct observer *o, const void **ret_record, size_t *ret_len)
{
	for (;;) {
		bool last = !o->is_swapping || !programs_is_swapped(&o->swap);
		int r = ring_next(o->ring, ret_record, ret_len);

		if (r != 0 || last || end_swap(o) < 0)
			return r;
	}
}

/* At the beginning of a drain: what was found then stands until the next one, so that whoever drains can act
 * on it. */
static void note_pressure(struct observer *o)
{
	size_t waiting = ring_waiting(o->ring), size = ring_size(o->ring);
	struct wire_slot *slot = o->programs.state;
	uint64_t dropped = __atomic_load_n(&slot->dropped, __ATOMIC_ACQUIRE);

	if (waiting > slot->high)
		start_swap(o);
	if (waiting < size / 16) {
		o->pressed = false;
		__atomic_store_n(&slot->pressed, 0, __ATOMIC_RELEASE);
	}
	if ((waiting > size / 2 && !o->is_swapping) || dropped != o->dropped)
		o->pressed = true;
	o->dropped = dropped;
}

static int drain_some(struct observer *o, size_t max_events)
{
	struct epoll_event events[PROGRAMS_RINGS_MAX];
	size_t n = 0, read = 0;
	const void *record;
	size_t len;
	int r = 0;

	(void)epoll_wait(o->epoll_fd, events, PROGRAMS_RINGS_MAX, 0); /* takes the wake back */
	note_pressure(o);
	while ((max_events == 0 || n < max_events) && (r = next_record(o, &record, &len)) > 0) {
		n += emit_record(o->emit, record, len);
		if (++read % RELEASE_EVERY == 0)
			ring_release(o->ring);
	}
	ring_release(o->ring);
	if (r == 0)
		emit_note_empty(o->emit);
	return r == -EBUSY && n == 0 ? -EBUSY : (int)n;
}

int observer_drain(struct observer *o, size_t max_events)
{
	int n = drain_some(o, max_events);

	return n < 0 ? 0 : n;
}

void observer_end(struct observer *o)
{
	emit_end(o->emit);
}

bool observer_arm(struct observer *o)
{
	struct wire_slot *slot = o->programs.state;

	__atomic_store_n(&slot->armed, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!o->is_swapping && ring_waiting(o->ring) == 0)
		return false;
	__atomic_store_n(&slot->armed, 0, __ATOMIC_SEQ_CST);
	return true;
}

bool observer_is_pressed(const struct observer *o)
{
	return o->pressed;
}

/* Whoever knows that the process has ended knows that its record is written: what must be read is what is
 * in the ring now. Where the swap ends meanwhile, the mark lies in the ring that comes after. */
int observer_drain_exit(struct observer *o, pid_t host_pid, int deadline_ms)
{
	int64_t end = clock_mono_ns() + deadline_ms * CLOCK_NS_PER_MS;
	const struct ring *ring = o->ring;
	unsigned long mark = ring_mark(ring);
	bool swapping = o->is_swapping;

	for (;;) {
		int n = drain_some(o, 0);

		if (swapping && !o->is_swapping) {
			swapping =
				false; /* it may be in either: the small one is read, now the big one */
			if (ring != o->ring)
				mark = ring_mark(o->ring);
			ring = o->ring;
		}
		if (!swapping && (ring != o->ring || ring_has_passed(ring, mark)))
			return 0;
		if (clock_mono_ns() >= end)
			return -ETIMEDOUT;
		if (n <= 0)
			usleep(BUSY_US);
	}
}

void observer_get_counts(const struct observer *o, struct observer_counts *ret_counts)
{
	*ret_counts = *emit_counts(o->emit);
}
