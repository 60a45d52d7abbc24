/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/emit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observer/claims.h"
#include "observer/decode.h"
#include "observer/resolve.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/str.h"

#define KNOWN_MAX   16384 /* paths that are known to exist */
#define REUSE_EMPTY 3     /* times that the ring was empty before a number is used again */
#define CLAIM_NS \
	(1 * CLOCK_NS_PER_S) /* so long after a look a call that ended before it may be told */

#define NOT_AS_SHOWN "a call's name or result is not what its file shows"

/* What is known of a path: the value of the map. A folder that was made under our eyes holds nothing that we
 * do not know. */
static char known_there, known_folder;

struct exec_name {
	char id[WIRE_ID_SIZE];
	bool internal;
	bool ended;
	bool blind; /* it was told that calls go unseen */
	uint64_t cgroup_id;
	uint64_t lost; /* told */
};

/* A number whose group has ended. Records of it may be under way until the ring was seen empty some times. */
struct freed_number {
	uint32_t number;
	uint64_t n_empty; /* when it was freed */
};

struct emit {
	struct emit_config config;
	struct decode *decode;
	struct resolve *resolve;
	struct exec_name *execs; /* by number; 0 is nobody's */
	uint32_t n_execs;
	struct freed_number *freed; /* oldest first, from first_freed on */
	size_t n_freed, first_freed;
	uint64_t n_empty;  /* times that the ring was seen empty */
	struct map *known; /* path to itself */
	struct claims *claims;
	struct mount_watch *watch;
	struct str names[DECODE_NAMES_MAX];
	uint64_t told;       /* of the slot's losses */
	uint64_t unreadable; /* records that made no sense: ours to count */
	int64_t at_ns;       /* guest_ns of the last record */
	struct observer_counts counts;
};

struct emit *emit_new(const struct emit_config *config)
{
	struct emit *e = new0(struct emit);

	e->config = *config;
	e->decode = decode_new(config->start_ns, config->id_base);
	e->resolve = resolve_new(config->root_fd);
	e->known = map_new();
	e->claims = claims_new();
	emit_set_exec(e, 0, "", false, 0);
	return e;
}

void emit_free(struct emit *e)
{
	if (!e)
		return;
	decode_free(e->decode);
	resolve_free(e->resolve);
	map_free(e->known);
	claims_free(e->claims);
	mount_places_free(e->config.places);
	for (size_t i = 0; i < DECODE_NAMES_MAX; i++)
		str_done(&e->names[i]);
	free(e->execs);
	free(e->freed);
	free(e);
}

void emit_set_exec(
	struct emit *e, uint32_t number, const char *exec_id, bool internal, uint64_t cgroup_id)
{
	while (e->n_execs <= number) {
		if ((e->n_execs & (e->n_execs - 1)) == 0)
			e->execs = mem_grow(
				e->execs, e->n_execs ? e->n_execs * 2 : 1, sizeof(*e->execs));
		e->execs[e->n_execs++] = (struct exec_name){.ended = true};
	}
	e->execs[number] = (struct exec_name){
		.internal = internal, .cgroup_id = cgroup_id, .ended = number == 0};
	snprintf(e->execs[number].id, WIRE_ID_SIZE, "%s", exec_id ? exec_id : "");
}

static void free_number(struct emit *e, uint32_t number)
{
	if (e->first_freed > e->n_freed / 2) {
		e->n_freed -= e->first_freed;
		memmove(e->freed, e->freed + e->first_freed, e->n_freed * sizeof(*e->freed));
		e->first_freed = 0;
	}
	e->freed = mem_grow(e->freed, e->n_freed + 1, sizeof(*e->freed));
	e->freed[e->n_freed++] = (struct freed_number){.number = number, .n_empty = e->n_empty};
}

/* The oldest freed one that no record can carry any more, else a new one: the table is as long as the execs
 * that live at once. */
static uint32_t take_number(struct emit *e)
{
	if (e->first_freed == e->n_freed ||
		e->n_empty - e->freed[e->first_freed].n_empty < REUSE_EMPTY)
		return e->n_execs;
	return e->freed[e->first_freed++].number;
}

uint32_t emit_add_exec(struct emit *e, const char *exec_id, bool internal, uint64_t cgroup_id)
{
	uint32_t number = take_number(e);

	emit_set_exec(e, number, exec_id, internal, cgroup_id);
	return number;
}

const struct observer_counts *emit_counts(const struct emit *e)
{
	return &e->counts;
}

/* ---- losses ---- */

static void send(struct emit *e, struct event *ev, uint32_t exec)
{
	const struct exec_name *name = &e->execs[exec < e->n_execs ? exec : 0];

	if (name->id[0])
		ev->exec = slice_of(name->id);
	ev->internal = name->internal;
	e->counts.events++;
	sink_emit(e->config.sink, ev);
}

void emit_set_watch(struct emit *e, struct mount_watch *watch)
{
	e->watch = watch;
}

void emit_event(struct emit *e, struct event *ev)
{
	e->counts.events++;
	e->counts.blind += ev->kind == EVENT_TRACE_BLIND;
	sink_emit(e->config.sink, ev);
}

static void tell_loss(struct emit *e, uint32_t exec, uint64_t count)
{
	struct event ev = {.kind = EVENT_TRACE_DROPPED, .guest_ns = e->at_ns};

	event_set(&ev, count, (int64_t)count);
	e->counts.dropped += count;
	send(e, &ev, exec);
}

static uint64_t group_loss(struct emit *e, uint32_t exec)
{
	struct exec_name *name = &e->execs[exec];
	struct wire_group group;
	uint64_t lost;

	if (name->ended || bpf_map_lookup_elem(e->config.groups_fd, &name->cgroup_id, &group) < 0)
		return 0;
	lost = group.dropped - name->lost;
	name->lost = group.dropped;
	return lost;
}

/* Losses of groups first, each with its exec; then those of nobody, and what could not be read. */
void emit_losses(struct emit *e)
{
	uint64_t all = __atomic_load_n(&e->config.slot->dropped, __ATOMIC_ACQUIRE),
		 lost = e->unreadable;

	if (all == e->told && lost == 0)
		return;
	e->unreadable = 0;
	for (uint32_t i = 1; i < e->n_execs && e->told < all; i++) {
		uint64_t n = group_loss(e, i);

		if (n > 0)
			tell_loss(e, i, n);
		e->told += n;
	}
	if (e->told < all) {
		lost += all - e->told;
		e->told = all;
	}
	if (lost > 0)
		tell_loss(e, 0, lost);
}

void emit_note_empty(struct emit *e)
{
	emit_losses(e);
	e->n_empty++;
}

static void tell_blind(struct emit *e, const struct event *of, uint32_t exec, const char *reason)
{
	struct event ev = {.kind = EVENT_TRACE_BLIND,
		.guest_ns = of->guest_ns,
		.pid = of->pid,
		.task = of->task};

	event_set_text(&ev, reason, reason);
	e->counts.blind++;
	send(e, &ev, exec);
}

/* Tells the claims that nothing has borne out: those looked at before that time, or of that exec. */
static void tell_claims(struct emit *e, int64_t before_ns, uint32_t exec)
{
	struct claim claim;

	while (claims_pop(e->claims, before_ns, exec, &claim)) {
		const struct event of = {
			.guest_ns = claim.guest_ns, .pid = claim.pid, .task = claim.task};

		tell_blind(e, &of, claim.exec, NOT_AS_SHOWN);
	}
}

void emit_end_group(struct emit *e, uint64_t cgroup_id)
{
	emit_losses(e);
	for (uint32_t i = 1; i < e->n_execs; i++) {
		if (e->execs[i].cgroup_id != cgroup_id)
			continue;
		tell_claims(e, 0, i);
		if (!e->execs[i].ended)
			free_number(e, i);
		e->execs[i].ended = true;
	}
}

void emit_end(struct emit *e)
{
	emit_losses(e);
	tell_claims(e, INT64_MAX, 0);
}

/* ---- names ---- */

static struct slice name_of(const struct event *ev, enum event_field field)
{
	return *(const struct slice *)((const char *)ev + event_field_table[field].offset);
}

static void set_name(struct event *ev, enum event_field field, struct slice value)
{
	*(struct slice *)((char *)ev + event_field_table[field].offset) = value;
	event_mark_field(ev, field);
}

static void resolve_names(struct emit *e, struct decoded *one)
{
	for (size_t i = 0; i < one->n_names; i++) {
		if (!resolve_name(e->resolve, &one->names[i], &e->names[i]))
			event_set(&one->ev, path_unresolved, true);
		set_name(&one->ev, one->names[i].field, str_slice(&e->names[i]));
	}
}

/* The folder cache and the paths known to exist follow what happened. */
static void know(struct emit *e, struct slice path, char *what)
{
	void **slot;

	if (map_find(e->known, path) == &known_folder)
		return;
	if (map_len(e->known) >= KNOWN_MAX) {
		map_free(e->known);
		e->known = map_new();
	}
	slot = map_slot(e->known, path);
	*slot = what;
}

static void note_rename(struct emit *e, struct event *ev)
{
	resolve_links_changed(e->resolve);
	if (event_has(ev, exchange))
		return;
	if (map_remove(e->known, ev->to))
		event_set(ev, replaced, true);
	(void)map_remove(e->known, ev->from);
	claims_settle(e->claims, ev->from);
	know(e, ev->to, &known_there);
}

static void note(struct emit *e, struct event *ev)
{
	if (event_has(ev, result) || event_has(ev, path_unresolved))
		return;
	if (ev->kind == EVENT_FILE_OPEN && !event_has(ev, path_state) &&
		!event_has(ev, directory)) {
		know(e, ev->path, &known_there);
	} else if (ev->kind == EVENT_DIR_CREATE) {
		know(e, ev->path, &known_folder);
	} else if (ev->kind == EVENT_FILE_RENAME) {
		note_rename(e, ev);
	} else if (ev->kind == EVENT_FILE_LINK) {
		resolve_links_changed(e->resolve);
		know(e, ev->path, &known_there);
	} else if (ev->kind == EVENT_FILE_DELETE) {
		resolve_name_removed(e->resolve);
		(void)map_remove(e->known, ev->path);
		claims_settle(e->claims, ev->path);
	}
}

/* Not known, though its folder is known from its making. */
static bool never_was(const struct emit *e, struct slice path)
{
	struct slice folder = path;

	while (folder.len > 0 && folder.p[folder.len - 1] != '/')
		folder.len--;
	if (folder.len > 1)
		folder.len--;
	return map_find(e->known, folder) == &known_folder && !map_find(e->known, path);
}

/* ---- claims ---- */

/* A name that is gone when we look may have been removed since: that is told next, or the claim is. */
static bool may_be_removed(
	struct emit *e, const struct decoded *one, struct slice path, uint32_t exec)
{
	const struct claim claim = {.exec = exec,
		.guest_ns = one->ev.guest_ns,
		.pid = one->ev.pid,
		.task = one->ev.task,
		.looked_ns = clock_mono_ns() - e->config.start_ns};

	return !one->made_up && claims_open(e->claims, path, &claim);
}

/* What the caller's memory and the result say may be untrue: another thread changed the text, or the
 * program's own call filter made the result up. False where the file itself says so. */
static bool holds(struct emit *e, const struct decoded *one, uint32_t exec)
{
	const struct event *ev = &one->ev;
	int64_t at = ev->guest_ns + e->config.start_ns;
	struct slice path;

	if (event_has(ev, result) || one->n_names == 0)
		return true;
	path = name_of(ev, one->names[0].field);
	switch (one->claim) {
	case DECODE_CLAIM_GONE:
	case DECODE_CLAIM_MOVED:
		return !never_was(e, path) &&
		       resolve_look(e->resolve, path, at, one->made_up) != RESOLVE_OLDER;
	case DECODE_CLAIM_EXISTS:
		path = name_of(ev, one->names[one->n_names - 1].field);
		return resolve_look(e->resolve, path, at, false) != RESOLVE_ABSENT ||
		       may_be_removed(e, one, path, exec);
	case DECODE_CLAIM_NONE:
		break;
	}
	return true;
}

/* Calls that go unseen are told once for each exec: there may be thousands a second. */
static bool was_told(struct emit *e, uint32_t exec)
{
	struct exec_name *name = &e->execs[exec < e->n_execs ? exec : 0];
	bool was = name->blind;

	name->blind = true;
	if (!was)
		e->counts.blind++;
	return was;
}

static struct mount_watch_who who_of(const struct emit *e, uint32_t exec)
{
	const struct exec_name *name = &e->execs[exec < e->n_execs ? exec : 0];

	return (struct mount_watch_who){.exec = slice_of(name->id), .internal = name->internal};
}

static bool is_file_kind(enum event_kind kind)
{
	return kind >= EVENT_FILE_OPEN && kind <= EVENT_DIR_CREATE;
}

/* The program's own file is opened by the kernel. */
static void tell_exec_open(struct emit *e, const struct event *of, uint32_t exec)
{
	struct event ev = {.kind = EVENT_MOUNT_OPEN,
		.guest_ns = of->guest_ns,
		.pid = of->pid,
		.task = of->task};

	if (!mount_places_has(e->config.places, of->path))
		return;
	event_set(&ev, path, of->path);
	event_set_text(&ev, access, "exec");
	send(e, &ev, exec);
}

/* What was told of a file, told of its mount. */
static void tell_mount(struct emit *e, const struct decode_head *head, struct event *ev)
{
	const struct mount_watch_who who = who_of(e, head->exec);

	if (!e->config.places)
		return;
	if (e->watch)
		mount_watch_event(e->watch, head, &who, ev);
	if (ev->kind == EVENT_PROCESS_EXEC && !event_has(ev, result))
		tell_exec_open(e, ev, head->exec);
	else if (mount_places_turn(e->config.places, ev))
		send(e, ev, head->exec);
}

static void emit_one(struct emit *e, struct decoded *one, const struct decode_head *head)
{
	uint32_t exec = head->exec;

	resolve_names(e, one);
	if (one->unstable && !event_has(&one->ev, result)) {
		tell_blind(e, &one->ev, exec, "a name was changed while a call used it");
		return;
	}
	if (one->unstable)
		event_set_text(&one->ev, path_state, "unstable");
	if (one->doubtful && !holds(e, one, exec)) {
		tell_blind(e, &one->ev, exec, NOT_AS_SHOWN);
		return;
	}
	note(e, &one->ev);
	if (one->ev.kind == EVENT_TRACE_BLIND && was_told(e, exec))
		return;
	if (!e->config.hides_files || !is_file_kind(one->ev.kind))
		send(e, &one->ev, exec);
	if (one->ev.kind == EVENT_PROCESS_EXEC && event_has(&one->ev, entered))
		tell_blind(e, &one->ev, exec,
			"a program entered from outside: its files are not watched");
	tell_mount(e, head, &one->ev);
}

void emit_record(struct emit *e, const void *record, size_t len)
{
	struct decode_head head = {0};
	int n = decode_record(e->decode, record, len, &head);

	if (n < 0) {
		e->unreadable++;
		return;
	}
	if (n > 0)
		e->at_ns = decode_get(e->decode, 0)->ev.guest_ns;
	if ((int32_t)(head.lost - (uint32_t)e->told) > 0)
		emit_losses(e);
	tell_claims(e, e->at_ns - CLAIM_NS, 0);
	if (e->watch) {
		const struct mount_watch_who who = who_of(e, head.exec);

		mount_watch_record(e->watch, &head, &who);
	}
	for (int i = 0; i < n; i++)
		emit_one(e, decode_get(e->decode, (size_t)i), &head);
}
