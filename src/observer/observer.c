/* SPDX-License-Identifier: Apache-2.0 */
/* How it works: the kernel half writes into the slot's ring without waking anybody. While there is work,
 * the owner's loop drains every OBSERVER_POLL_MS; when it has been quiet, observer_arm() sets a word that
 * makes the next record wake us. A ring that fills wakes us too, and the pump beside us (observer/pump.h).
 * Losses are counted in the kernel, and told where they happened: each record carries the count so far. */
#include "observer/observer.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observer/emit.h"
#include "observer/mount_watch.h"
#include "observer/programs.h"
#include "observer/pump.h"
#include "observer/resolve.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/kmap.h"
#include "util/mem.h"
#include "util/scoped.h"

#define RING_SMALL (256u << 10)
#define RING_BIG   (4u << 20)
#define RING_MIN   4096u
#define STATUS_MAX 8192 /* of /proc/PID/status */
#define BUSY_US    20   /* a record that is being written: looked at again after this */
#define EXIT_BATCH 1000 /* records between looks for an exit's place: others may write on and on */
#define WITNESS_MS 2000 /* in which what the witness of mounts told by then is read */

struct observer {
	struct programs programs;
	struct pump *pump;
	char *id;
	unsigned sources;
	struct emit *emit;
	struct mount_watch *watch; /* or NULL */
	uint32_t namespaces[2];
	size_t n_namespaces;
	struct cgroup_list {
		uint64_t *ids;
		size_t n;
	} cgroups;
};

int observer_probe(struct err *err)
{
	scoped_fd int ring = -1;
	int r = programs_probe(err);

	if (r < 0)
		return r;
	ring = kmap_ring_new(RING_MIN); /* that nobody uses: whether one may be made */
	return ring < 0 ? err_set(err, ring, "tracing needs the right to make rings (CAP_BPF): %m")
	                : 0;
}

/* ---- opening ---- */

/* The sizes of the small ring and the big one and of what waits beside, within what the user allows. */
static void set_sizes(size_t buffer_bytes, struct pump_config *pump)
{
	const char *text = getenv("CLOCHE_RING_BYTES"); /* for tests of loss */
	size_t want = text ? strtoul(text, NULL, 10) : buffer_bytes;

	pump->big = RING_BIG;
	while (want > 0 && pump->big > want && pump->big > RING_MIN)
		pump->big /= 2;
	pump->small = pump->big < RING_SMALL ? pump->big : RING_SMALL;
	pump->spare = want > pump->big ? want - pump->big : 0;
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

static int open_pump(struct observer *o, const struct observer_config *config, struct err *err)
{
	struct pump_config pump = {.programs = &o->programs,
		.id = o->id,
		.hold = config->hold,
		.hold_ctx = config->hold_ctx};

	set_sizes(config->buffer_bytes, &pump);
	return pump_new(&pump, &o->pump, err);
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

/* A mount lies where its name leads: folders of that may be links. */
static struct mount_places *real_places(const struct observer_config *config)
{
	struct mount_place *real = new0_n(struct mount_place, config->n_mounts + 1);
	struct str *texts = new0_n(struct str, config->n_mounts + 1);
	scoped(resolve) struct resolve *resolve = resolve_new(config->root_fd);
	struct mount_places *places;

	for (size_t i = 0; i < config->n_mounts; i++) {
		const struct decode_name name = {
			.text = slice_of(config->mounts[i].guest), .follow = true};

		(void)resolve_name(resolve, &name, &texts[i]);
		real[i] = config->mounts[i];
		real[i].guest = texts[i].p;
	}
	places = mount_places_new(real, config->n_mounts);
	for (size_t i = 0; i < config->n_mounts; i++)
		str_done(&texts[i]);
	free(texts);
	free(real);
	return places;
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
		.hides_files = !(config->sources & OBSERVER_FILES),
	};

	if (config->sources & OBSERVER_MOUNTS)
		c.places = real_places(config);
	o->emit = emit_new(&c);
}

static void emit_watched(void *ctx, struct event *ev)
{
	struct observer *o = ctx;

	emit_event(o->emit, ev);
}

static int open_watch(struct observer *o, const struct observer_config *config,
	struct witness **witness, struct err *err)
{
	struct mount_watch_config c = {
		.look_fd = o->programs.look_fd,
		.opens_fd = o->programs.opens_fd,
		.start_ns = config->start_ns,
		.emit = emit_watched,
		.ctx = o,
	};

	if (!*witness || !(config->sources & OBSERVER_MOUNTS))
		return 0;
	c.witness = take(witness);
	o->watch = mount_watch_new(&c);
	emit_set_watch(o->emit, o->watch);
	return pump_add_fd(o->pump, mount_watch_fd(o->watch), err);
}

int observer_open(
	const struct observer_config *config, struct observer **ret_observer, struct err *err)
{
	scoped(witness) struct witness *witness = config->witness;
	scoped(observer) struct observer *o = new0(struct observer);
	int r;

	o->id = mem_dup(config->id);
	o->sources = config->sources;
	r = programs_open(config->pin_dir, &o->programs, err);
	if (r < 0)
		return r;
	snprintf(o->programs.state->id, sizeof(o->programs.state->id), "%s", config->id);
	o->programs.state->start_ns = config->start_ns;
	r = add_namespaces(o, config->init_pid, err);
	if (r == 0)
		r = open_pump(o, config, err);
	if (r < 0)
		return r;
	open_emit(o, config);
	r = open_watch(o, config, &witness, err);
	if (r < 0)
		return r;
	*ret_observer = take(&o);
	return 0;
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
	}
	pump_free(o->pump);
	if (o->watch && emit_counts(o->emit)->dropped > 0)
		(void)programs_clear_opens(/* also those whose record was lost */
			&o->programs, (uint32_t)o->programs.slot);
	mount_watch_free(o->watch);
	programs_close(&o->programs);
	emit_free(o->emit);
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
	if (sources & OBSERVER_MOUNTS)
		flags |= WIRE_GROUP_MOUNTS;
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
	return pump_fd(o->pump);
}

static int drain_some(struct observer *o, size_t max_records, bool *ret_is_empty)
{
	struct slice record;
	bool was_between = pump_is_between(o->pump);
	size_t n = 0;
	int r = 0;

	pump_begin(o->pump);
	for (; (max_records == 0 || n < max_records) && (r = pump_next(o->pump, &record)) > 0; n++)
		emit_record(o->emit, record.p, record.len);
	*ret_is_empty = r == 0 && !was_between && !pump_is_between(o->pump);
	if (*ret_is_empty)
		emit_note_empty(o->emit);
	return r == -EBUSY && n == 0 ? -EBUSY : (int)n;
}

/* What the witness of mounts tells is read before the ring, and joined with what the ring told. */
int observer_drain(struct observer *o, size_t max_records)
{
	size_t n = 0;
	bool is_more;

	do {
		bool is_empty;
		int some;

		is_more = o->watch && mount_watch_read(o->watch);
		some = drain_some(o, max_records, &is_empty);
		n += some > 0 ? (size_t)some : 0;
		if (o->watch)
			mount_watch_join(o->watch, is_empty);
	} while (is_more && (max_records == 0 || n < max_records));
	return (int)n;
}

void observer_end(struct observer *o)
{
	if (o->watch)
		mount_watch_end(o->watch);
	emit_end(o->emit);
}

bool observer_arm(struct observer *o)
{
	return pump_arm(o->pump);
}

int observer_wait_ms(const struct observer *o)
{
	return o->watch ? mount_watch_wait_ms(o->watch) : -1;
}

bool observer_is_held(const struct observer *o)
{
	return pump_is_held(o->pump);
}

/* Whoever knows that the process has ended knows that its record is written: what must be read is what waits
 * now. */
static int drain_to_mark(struct observer *o, int deadline_ms)
{
	int64_t came_ns = clock_mono_ns();
	struct pump_mark mark = pump_mark(o->pump);

	for (;;) {
		bool is_empty;
		int n = drain_some(o, EXIT_BATCH, &is_empty);

		if (pump_has_passed(o->pump, &mark)) {
			emit_losses(o->emit); /* what came no more */
			return 0;
		}
		if (n > 0)
			came_ns = clock_mono_ns(); /* each is one less before the mark */
		else if (clock_mono_ns() - came_ns >= deadline_ms * CLOCK_NS_PER_MS)
			return -ETIMEDOUT;
		else
			usleep(BUSY_US);
	}
}

/* A process that has ended has closed its files, so that the witness has told it, too. Others may open files faster
 * than they are read here: whoever waits for this gets his turn again all the same. */
int observer_drain_exit(struct observer *o, int deadline_ms)
{
	int64_t until_ns = clock_mono_ns() + WITNESS_MS * CLOCK_NS_PER_MS;
	bool is_more;
	int r;

	do {
		is_more = o->watch && mount_watch_read(o->watch);
		r = drain_to_mark(o, deadline_ms);
		if (o->watch)
			mount_watch_join(o->watch, false); /* others may write on and on */
		if (r == 0 && is_more && clock_mono_ns() > until_ns)
			r = -ETIMEDOUT;
	} while (r == 0 && is_more);
	return r;
}

void observer_get_counts(const struct observer *o, struct observer_counts *ret_counts)
{
	*ret_counts = *emit_counts(o->emit);
}
