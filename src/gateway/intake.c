/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/intake.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/copies.h"
#include "gateway/gateway_internal.h"
#include "gateway/held.h"
#include "gateway/limits.h"
#include "gateway/owners.h"
#include "gateway/verdict.h"
#include "proto/gateway_wire.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/ring.h"

#define HELD_MAX     16384 /* further ones are refused */
#define DIALS_MAX    512
#define PATIENCE_NS  (3 * CLOCK_NS_PER_S) /* for a dial while others wait */
#define ACCEPTS_TURN 64
#define COPIES_TURN  64
#define FAILURES     128
#define FAILURE_NS   (2 * CLOCK_NS_PER_S)
#define SPAN_BYTES   (64u << 10)

struct queue {
	struct held *first, **end;
	size_t n;
};

struct failure {
	struct netcatch_key key;
	uint32_t sequence;
	int error;
	int64_t at_ns;
};

struct intake {
	struct gateway *gw;
	struct failure failures[FAILURES]; /* the last ones, the oldest is written over */
	size_t next_failure;
	struct ring *ring; /* NULL where rules catch */
	struct poller_io ring_io, listener_io;
	struct map *held; /* struct netcatch_key to struct held */
	struct queue waiting, dialling;
	bool is_starting; /* in start_waiting() */
};

static struct slice key_of(const struct netcatch_key *key)
{
	return (struct slice){.p = (const char *)key, .len = sizeof(*key)};
}

static void queue_add(struct queue *queue, struct held *held)
{
	held->next = NULL;
	held->at = queue->end;
	*queue->end = held;
	queue->end = &held->next;
	queue->n++;
}

static void queue_remove(struct queue *queue, struct held *held)
{
	*held->at = held->next;
	if (held->next)
		held->next->at = held->at;
	else
		queue->end = held->at;
	held->at = NULL;
	queue->n--;
}

void intake_remember(struct intake *intake, struct held *held)
{
	*map_slot(intake->held, key_of(&held->key)) = held;
}

/* Those that waited for a place. Each takes one, or leaves the queue. */
static void start_waiting(struct intake *intake)
{
	if (intake->is_starting)
		return;
	intake->is_starting = true;
	while (intake->waiting.first && intake->dialling.n < DIALS_MAX)
		held_dial(intake->waiting.first);
	intake->is_starting = false;
}

void intake_unqueue(struct intake *intake, struct held *held)
{
	if (!held->at)
		return;
	if (held->state == HELD_WAITING) {
		queue_remove(&intake->waiting, held);
		return;
	}
	queue_remove(&intake->dialling, held);
	start_waiting(intake);
}

void intake_forget(struct intake *intake, struct held *held)
{
	(void)map_remove(intake->held, key_of(&held->key));
	intake_unqueue(intake, held);
}

bool intake_may_dial(struct intake *intake, struct held *held)
{
	struct held *oldest = intake->dialling.first;
	int64_t now_ns = poller_now_ns(intake->gw->poller);

	if (held->at && held->state != HELD_WAITING)
		return true; /* it has its place */
	if (intake->dialling.n >= DIALS_MAX && now_ns - oldest->dialled_ns > PATIENCE_NS) {
		intake->is_starting = true; /* the place is for this one */
		held_give_up(oldest);
		intake->is_starting = false;
	}
	if (intake->dialling.n >= DIALS_MAX) {
		if (!held->at) {
			held->state = HELD_WAITING;
			queue_add(&intake->waiting, held);
		}
		return false;
	}
	if (held->at)
		queue_remove(&intake->waiting, held);
	held->state = HELD_DIALLING;
	held->dialled_ns = now_ns;
	queue_add(&intake->dialling, held);
	return true;
}

void intake_remember_failure(struct intake *intake, const struct held *held, int positive_errno)
{
	intake->failures[intake->next_failure++ % FAILURES] = (struct failure){.key = held->key,
		.sequence = syn_sequence(held->packet),
		.error = positive_errno,
		.at_ns = poller_now_ns(intake->gw->poller)};
}

/* The client's kernel repeats a SYN at fixed times, and one may cross the answer to the one before. */
static const struct failure *find_failure(
	const struct intake *intake, const struct netcatch_record *record)
{
	uint32_t sequence = syn_sequence(record->packet);
	int64_t since_ns = poller_now_ns(intake->gw->poller) - FAILURE_NS;

	for (size_t i = 0; i < FAILURES; i++) {
		const struct failure *failure = &intake->failures[i];

		if (failure->error && failure->sequence == sequence && failure->at_ns > since_ns &&
			memcmp(&failure->key, &record->key, sizeof(record->key)) == 0)
			return failure;
	}
	return NULL;
}

static void start(struct intake *intake, struct netcatch_record *record)
{
	struct gateway *gw = intake->gw;

	owners_add(gw->owners, &record->key, &record->owner);
	if (map_len(intake->held) < HELD_MAX)
		held_start(gw, record);
	else
		held_turn_away(gw, record, limits_no_room(gw->limits));
}

static void on_syn(struct intake *intake, struct netcatch_record *record)
{
	const struct failure *failure;
	struct held *held;

	if (record->len > sizeof(record->packet) || syn_check(record->packet, record->len) < 0)
		return;
	held = map_find(intake->held, key_of(&record->key));
	failure = held ? NULL : find_failure(intake, record);
	if (held)
		held_repeat(held, record);
	else if (failure)
		held_answer(intake->gw, record, failure->error);
	else
		start(intake, record);
}

/* A connect() or sendto() that the kernel half refused by its list. */
static void on_refused(struct intake *intake, const struct netcatch_record *record)
{
	struct gateway *gw = intake->gw;
	bool is_tcp = record->key.protocol == IPPROTO_TCP;
	const char *protocol = is_tcp ? "tcp" : "udp";
	struct flow_head head;
	struct verdict verdict;
	struct event ev;

	verdict_find(gw, record->key.dst, record->key.dport, protocol, &verdict);
	flow_head_init(
		&head, protocol, record->key.dst, record->key.dport, verdict.host, &record->owner);
	head.flow = gateway_flow_number(gw);
	verdict_tell(gw, &head, &verdict.answer, "connect");
	ev = flow_head_event(&head, EVENT_NET_CONNECT);
	event_set(&ev, result, EACCES);
	channel_event(gw->channel, record->owner.cgroup, &ev);
	flow_head_done(&head);
}

static void on_listen(struct intake *intake, const struct netcatch_record *record)
{
	struct flow_head head;
	struct event ev;

	flow_head_init(&head, "tcp", record->key.src, record->key.sport, NULL, &record->owner);
	ev = flow_head_event(&head, EVENT_NET_LISTEN);
	channel_event(intake->gw->channel, record->owner.cgroup, &ev);
	flow_head_done(&head);
}

static void on_record(struct intake *intake, struct slice bytes)
{
	struct netcatch_record record;

	if (bytes.len < sizeof(record))
		return;
	memcpy(&record, bytes.p, sizeof(record));
	switch ((enum netcatch_kind)record.kind) {
	case NETCATCH_SYN:
		on_syn(intake, &record);
		break;
	case NETCATCH_REFUSED:
		on_refused(intake, &record);
		break;
	case NETCATCH_LISTEN:
		on_listen(intake, &record);
		break;
	}
}

static bool read_ring(struct intake *intake)
{
	struct slice span, record;

	if (ring_span(intake->ring, SPAN_BYTES, &span) <= 0)
		return false;
	while (ring_record(&span, &record))
		on_record(intake, record);
	ring_release(intake->ring);
	return true;
}

static void on_ring(void *ctx)
{
	(void)read_ring(ctx); /* once a turn; it is still readable where there is more */
}

static void on_copies(void *ctx)
{
	struct intake *intake = ctx;
	char *chunk = intake->gw->chunk;
	struct netcatch_record record;

	for (int i = 0; i < COPIES_TURN; i++) {
		ssize_t n = recv(GATEWAY_FD_COPIES, chunk, GATEWAY_CHUNK, MSG_DONTWAIT);
		struct slice messages = {.p = chunk, .len = n > 0 ? (size_t)n : 0};

		if (n < 0 && errno != ENOBUFS)
			break; /* nothing more; some that found no room will be sent again */
		while (copies_next(&messages, &record))
			on_syn(intake, &record);
	}
}

/* NULL: one that was given up, or the listener dialled by its own address. */
static struct held *find_accepted(
	struct intake *intake, int fd, const struct sockaddr_storage *peer)
{
	struct netcatch_key key = {.protocol = IPPROTO_TCP};
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct held *held;

	if (getsockname(fd, (struct sockaddr *)&own, &len) < 0)
		return NULL;
	flow_from_sockaddr(&own, key.dst, &key.dport);
	flow_from_sockaddr(peer, key.src, &key.sport);
	held = map_find(intake->held, key_of(&key));
	return held && held->state == HELD_SETTLED ? held : NULL;
}

static bool accept_one(struct intake *intake)
{
	struct limits *limits = intake->gw->limits;
	struct sockaddr_storage peer;
	bool is_full;
	int fd = limits_accept(limits, GATEWAY_FD_TCP, &peer, &is_full);
	struct held *held;

	if (fd < 0)
		return fd == -ECONNABORTED;
	held = find_accepted(intake, fd, &peer);
	if (held && !is_full) {
		held_accept(held, fd);
		return true;
	}
	flow_close(fd, true);
	if (is_full)
		limits_closed(limits);
	if (held)
		held_lose(held, limits_no_room(limits));
	return true;
}

static void on_listener(void *ctx)
{
	for (int i = 0; i < ACCEPTS_TURN && accept_one(ctx); i++)
		;
}

void intake_check(struct intake *intake)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(intake->held, &i, &key, &value);)
		held_check(value);
}

static int open_records(struct intake *intake, struct err *err)
{
	struct poller *poller = intake->gw->poller;
	int r;

	if (intake->gw->by_rules)
		return poller_add_level(
			poller, &intake->ring_io, GATEWAY_FD_COPIES, on_copies, intake);
	r = ring_open(GATEWAY_FD_RING, &intake->ring, err);
	if (r < 0)
		return r;
	return poller_add_level(poller, &intake->ring_io, GATEWAY_FD_RING, on_ring, intake);
}

int intake_open(struct gateway *gw, struct intake **ret_intake, struct err *err)
{
	struct intake *intake = new0(struct intake);
	int r;

	intake->gw = gw;
	intake->held = map_new();
	intake->waiting.end = &intake->waiting.first;
	intake->dialling.end = &intake->dialling.first;
	intake->ring_io.fd = intake->listener_io.fd = -1;
	r = open_records(intake, err);
	if (r == 0)
		r = poller_add_level(
			gw->poller, &intake->listener_io, GATEWAY_FD_TCP, on_listener, intake);
	if (r < 0) {
		intake_free(intake);
		return r;
	}
	*ret_intake = intake;
	return 0;
}

void intake_free(struct intake *intake)
{
	struct slice key;
	void *value;

	if (!intake)
		return;
	intake->is_starting = true; /* nobody's turn any more */
	for (size_t i = 0; map_next(intake->held, &i, &key, &value);)
		held_stop(value);
	poller_remove(intake->gw->poller, &intake->ring_io);
	poller_remove(intake->gw->poller, &intake->listener_io);
	ring_free(intake->ring);
	map_free(intake->held);
	free(intake);
}
