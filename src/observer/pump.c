/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/pump.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/ring.h"

#define SLOTS_WITH_RING 4           /* that may keep theirs when nobody uses them */
#define NEAR_BYTES      (64u << 10) /* what a reader takes from the ring at once; holds any record */
#define FAR_BYTES       (512u << 10) /* what the thread takes at once */
#define AGAIN_NS        200000       /* between looks while nothing wakes us */
#define STACK_BYTES     (64u << 10)

struct chunk {
	struct chunk *next;
	size_t len;
	char bytes[];
};

struct pump {
	struct pump_config config;
	int reader_fd, thread_fd; /* epoll */
	int stop_fd;
	int more_fd; /* looked at while armed only; -1: none */
	pthread_t thread;
	bool has_thread;
	int nice; /* of whoever made us: the thread's, too */

	pthread_mutex_t lock; /* of what follows */
	struct ring *ring;
	struct programs_swap swap;
	bool is_swapping;
	struct chunk *first, **last; /* what the thread took out, before anything in the ring */
	size_t queued;               /* bytes of these */
	uint64_t taken;              /* bytes that were taken out of rings, by either */
	uint64_t dropped;            /* when it was last looked at */
	bool is_held;

	/* The reader's own. */
	struct chunk *chunk; /* what it reads, if that came from the thread */
	char *near;          /* or from the ring */
	struct slice rest;   /* of either */
};

static struct wire_slot *slot_of(const struct pump *pump)
{
	return pump->config.programs->state;
}

/* ---- rings; under the lock ---- */

static int watch_ring(struct pump *pump, struct err *err)
{
	int fd = ring_fd(pump->ring);
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.fd = fd};

	slot_of(pump)->high = (uint32_t)(ring_size(pump->ring) / 4);
	if (epoll_ctl(pump->reader_fd, EPOLL_CTL_ADD, fd, &e) < 0 ||
		epoll_ctl(pump->thread_fd, EPOLL_CTL_ADD, fd, &e) < 0)
		return err_set(err, -errno, "wait for the ring: %m");
	return 0;
}

static int open_ring(struct pump *pump, struct err *err)
{
	struct programs *programs = pump->config.programs;
	int r = ring_new(pump->config.small, &pump->ring, err);

	if (r < 0)
		return r;
	programs_unpin_rings(programs, pump->config.id);
	r = programs_pin_ring(programs, pump->config.id, 0, ring_fd(pump->ring), err);
	if (r == 0)
		r = watch_ring(pump, err);
	return r < 0 ? r : programs_set_ring(programs, ring_fd(pump->ring), err);
}

static void start_swap(struct pump *pump)
{
	if (pump->is_swapping || ring_size(pump->ring) >= pump->config.big)
		return;
	pump->is_swapping = true;
	programs_start_swap(
		pump->config.programs, pump->config.id, 1, pump->config.big, &pump->swap);
}

/* The small ring is read to its end and nobody writes to it any more. Where the big one could not be had the
 * small one goes on, and counts what it loses. */
static bool end_swap(struct pump *pump)
{
	pump->is_swapping = false;
	if (!pump->swap.ring) {
		pump->config.big = ring_size(pump->ring);
		return false;
	}
	ring_free(pump->ring);
	pump->ring = take(&pump->swap.ring);
	(void)watch_ring(pump, NULL); /* polled all the same while there is work */
	return true;
}

/* 1, 0 at the end of all rings, or -EBUSY. */
static int next_span(struct pump *pump, size_t max, struct slice *ret_span)
{
	for (;;) {
		bool is_last = !pump->is_swapping || !programs_is_swapped(&pump->swap);
		int r = ring_span(pump->ring, max, ret_span);

		if (r > 0)
			pump->taken += ret_span->len;
		if (r != 0 || is_last || !end_swap(pump))
			return r;
	}
}

/* ---- pressure; under the lock ---- */

static void hold(struct pump *pump, bool on)
{
	if (pump->is_held == on)
		return;
	pump->is_held = on;
	if (pump->config.hold)
		pump->config.hold(pump->config.hold_ctx, on);
}

static void judge(struct pump *pump)
{
	struct wire_slot *slot = slot_of(pump);
	size_t waiting = ring_waiting(pump->ring), size = ring_size(pump->ring);
	uint64_t dropped = __atomic_load_n(&slot->dropped, __ATOMIC_ACQUIRE);
	bool is_low = waiting < size / 16;

	if (waiting > slot->high)
		start_swap(pump);
	if (is_low)
		__atomic_store_n(&slot->pressed, 0, __ATOMIC_RELEASE);
	if (pump->queued > pump->config.spare / 2 || dropped != pump->dropped ||
		(waiting > size / 2 && !pump->is_swapping))
		hold(pump, true);
	else if (is_low && pump->queued == 0)
		hold(pump, false);
	pump->dropped = dropped;
}

/* ---- the thread ---- */

static void enqueue(struct pump *pump, struct slice span)
{
	struct chunk *chunk = mem_grow(NULL, 1, sizeof(*chunk) + span.len);

	chunk->next = NULL;
	chunk->len = span.len;
	memcpy(chunk->bytes, span.p, span.len);
	*pump->last = chunk;
	pump->last = &chunk->next;
	pump->queued += span.len;
}

static void move_all(struct pump *pump)
{
	struct slice span;

	while (pump->queued + FAR_BYTES <= pump->config.spare &&
		next_span(pump, FAR_BYTES, &span) > 0) {
		enqueue(pump, span);
		ring_release(pump->ring);
	}
}

/* Empties the ring, as far as there is room. True: look again soon, because nothing will wake us. That is so
 * until the ring is low, since programs wake us once until then: the reader may take us below the mark and
 * stay away then. It is also so while rings are being swapped: programs wake whoever waits for the next one,
 * and that is nobody yet. */
static bool move_some(struct pump *pump)
{
	struct wire_slot *slot = slot_of(pump);

	if (pump->is_swapping || ring_waiting(pump->ring) > slot->high) {
		start_swap(pump);
		move_all(pump);
	} /* else the reader was woken, too, and this is its work */
	judge(pump);
	return pump->is_swapping || __atomic_load_n(&slot->pressed, __ATOMIC_ACQUIRE);
}

static void *run_thread(void *arg)
{
	static const struct timespec soon = {.tv_nsec = AGAIN_NS};
	struct pump *pump = arg;
	bool again = false;

	(void)setpriority(PRIO_PROCESS, 0, pump->nice); /* refused: as any other */
	for (;;) {
		struct epoll_event e;
		int n = epoll_pwait2(pump->thread_fd, &e, 1, again ? &soon : NULL, NULL);

		if ((n < 0 && errno != EINTR) || (n > 0 && e.data.fd == pump->stop_fd))
			return NULL;
		pthread_mutex_lock(&pump->lock);
		again = move_some(pump);
		pthread_mutex_unlock(&pump->lock);
	}
}

static void start_thread(struct pump *pump)
{
	pthread_attr_t attr;
	sigset_t all, before;

	pump->nice = getpriority(PRIO_PROCESS, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the loop */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pump->has_thread = pthread_create(&pump->thread, &attr, run_thread, pump) == 0;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_thread(struct pump *pump)
{
	uint64_t one = 1;

	if (!pump->has_thread)
		return;
	(void)!write(pump->stop_fd, &one, sizeof(one)); /* an eventfd at 0 takes it */
	pthread_join(pump->thread, NULL);
}

/* ---- the reader ---- */

static struct chunk *dequeue(struct pump *pump)
{
	struct chunk *chunk = pump->first;

	pump->first = chunk->next;
	if (!pump->first)
		pump->last = &pump->first;
	pump->queued -= chunk->len;
	return chunk;
}

static int take_near(struct pump *pump)
{
	struct slice span;
	int r = next_span(pump, NEAR_BYTES, &span);

	if (r <= 0)
		return r;
	memcpy(pump->near, span.p, span.len);
	ring_release(pump->ring);
	pump->rest = (struct slice){.p = pump->near, .len = span.len};
	return 1;
}

static int take_more(struct pump *pump)
{
	int r = 1;

	free(take(&pump->chunk));
	pthread_mutex_lock(&pump->lock);
	if (pump->first) {
		pump->chunk = dequeue(pump);
		pump->rest = (struct slice){.p = pump->chunk->bytes, .len = pump->chunk->len};
	} else {
		r = take_near(pump);
	}
	pthread_mutex_unlock(&pump->lock);
	return r;
}

int pump_next(struct pump *pump, struct slice *ret_record)
{
	while (!ring_record(&pump->rest, ret_record)) {
		int r = take_more(pump);

		if (r <= 0)
			return r;
	}
	return 1;
}

bool pump_is_between(struct pump *pump)
{
	bool is_between;

	pthread_mutex_lock(&pump->lock);
	is_between = pump->is_swapping;
	pthread_mutex_unlock(&pump->lock);
	return is_between;
}

int pump_fd(const struct pump *pump)
{
	return pump->reader_fd;
}

void pump_begin(struct pump *pump)
{
	struct epoll_event e;

	while (epoll_wait(pump->reader_fd, &e, 1, 0) > 0)
		; /* takes the wakes back */
	pthread_mutex_lock(&pump->lock);
	judge(pump);
	pthread_mutex_unlock(&pump->lock);
}

int pump_add_fd(struct pump *pump, int fd, struct err *err)
{
	struct epoll_event e = {.data.fd = fd};

	if (epoll_ctl(pump->reader_fd, EPOLL_CTL_ADD, fd, &e) < 0)
		return err_set(err, -errno, "wait for the witness of mounts: %m");
	pump->more_fd = fd;
	return 0;
}

bool pump_arm(struct pump *pump)
{
	struct epoll_event more = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = pump->more_fd};
	struct wire_slot *slot = slot_of(pump);
	bool is_quiet;

	__atomic_store_n(&slot->armed, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	pthread_mutex_lock(&pump->lock);
	is_quiet = !pump->is_swapping && pump->queued == 0 && ring_waiting(pump->ring) == 0;
	pthread_mutex_unlock(&pump->lock);
	if (!is_quiet)
		__atomic_store_n(&slot->armed, 0, __ATOMIC_SEQ_CST);
	else if (pump->more_fd >= 0)
		(void)epoll_ctl(pump->reader_fd, EPOLL_CTL_MOD, pump->more_fd, &more);
	return !is_quiet;
}

bool pump_is_held(struct pump *pump)
{
	bool is_held;

	pthread_mutex_lock(&pump->lock);
	is_held = pump->is_held;
	pthread_mutex_unlock(&pump->lock);
	return is_held;
}

static struct pump_mark mark_here(const struct pump *pump)
{
	return (struct pump_mark){
		.is_swapping = pump->is_swapping, .at = pump->taken + ring_waiting(pump->ring)};
}

struct pump_mark pump_mark(struct pump *pump)
{
	struct pump_mark mark;

	pthread_mutex_lock(&pump->lock);
	mark = mark_here(pump);
	pthread_mutex_unlock(&pump->lock);
	return mark;
}

bool pump_has_passed(struct pump *pump, struct pump_mark *mark)
{
	bool is_passed;

	pthread_mutex_lock(&pump->lock);
	if (mark->is_swapping && !pump->is_swapping)
		*mark = mark_here(pump); /* it may have been in either */
	is_passed = !mark->is_swapping && pump->taken - pump->queued - pump->rest.len >= mark->at;
	pthread_mutex_unlock(&pump->lock);
	return is_passed;
}

/* ---- making and ending ---- */

static int open_fds(struct pump *pump, struct err *err)
{
	struct epoll_event e = {.events = EPOLLIN};

	pump->reader_fd = epoll_create1(EPOLL_CLOEXEC);
	pump->thread_fd = epoll_create1(EPOLL_CLOEXEC);
	pump->stop_fd = eventfd(0, EFD_CLOEXEC);
	e.data.fd = pump->stop_fd;
	if (pump->reader_fd < 0 || pump->stop_fd < 0 ||
		epoll_ctl(pump->thread_fd, EPOLL_CTL_ADD, pump->stop_fd, &e) < 0)
		return err_set(err, -errno, "make what waits for the ring: %m");
	return 0;
}

int pump_new(const struct pump_config *config, struct pump **ret_pump, struct err *err)
{
	scoped(pump) struct pump *pump = new0(struct pump);
	int r;

	pump->config = *config;
	pump->more_fd = -1;
	pump->last = &pump->first;
	pthread_mutex_init(&pump->lock, NULL);
	r = open_fds(pump, err);
	if (r == 0)
		r = open_ring(pump, err);
	if (r < 0)
		return r;
	pump->near = mem_grow(NULL, NEAR_BYTES, 1);
	if (config->spare > 0)
		start_thread(pump); /* none to be had: the reader reads, and losses are counted */
	*ret_pump = take(&pump);
	return 0;
}

/* The thread that swaps rings holds a pointer into us; it takes some ms at most. */
static void wait_for_swap(struct pump *pump)
{
	while (pump->is_swapping && !programs_is_swapped(&pump->swap))
		usleep(1000);
	ring_free(take(&pump->swap.ring));
}

/* Taking a ring out of its slot waits some ms until no program can hold it, and a process cannot end before that:
 * longer than all the rest of a short run's end. A small ring in one of the first slots stays there instead, written
 * to by nobody, for the slot's next user to replace. */
static bool may_leave_ring(const struct pump *pump)
{
	return pump->ring && ring_size(pump->ring) <= pump->config.small &&
	       pump->config.programs->slot < SLOTS_WITH_RING;
}

void pump_free(struct pump *pump)
{
	if (!pump)
		return;
	stop_thread(pump);
	wait_for_swap(pump);
	if (!may_leave_ring(pump))
		(void)programs_set_ring(pump->config.programs, -1, NULL);
	programs_unpin_rings(pump->config.programs, pump->config.id);
	while (pump->first)
		free(dequeue(pump));
	free(pump->chunk);
	free(pump->near);
	ring_free(pump->ring);
	scoped_close(&pump->reader_fd);
	scoped_close(&pump->thread_fd);
	scoped_close(&pump->stop_fd);
	pthread_mutex_destroy(&pump->lock);
	free(pump);
}
