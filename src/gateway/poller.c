/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/poller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/mem.h"

#define BATCH       256
#define FDS_FIRST   256
#define IDLE_ROUNDS 256 /* enough for what is ready of all flows */

struct poller {
	int epoll_fd;
	bool is_stopped;
	int64_t now_ns;
	struct epoll_event batch[BATCH];
	int n_batch;
	struct poller_io **by_fd;
	size_t n_by_fd;
	struct poller_io *again;    /* whose turn went on to the next round */
	void (*on_idle)(void *ctx); /* NULL: nobody waits for that */
	void *idle_ctx;
	unsigned idle_rounds; /* that it has waited */
	struct poller_timer **heap;
	size_t n_timers, cap_timers;
};

struct poller *poller_new(void)
{
	struct poller *poller = new0(struct poller);

	poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (poller->epoll_fd < 0)
		abort();
	poller->now_ns = clock_mono_ns();
	return poller;
}

void poller_free(struct poller *poller)
{
	if (!poller)
		return;
	close(poller->epoll_fd);
	free(poller->heap);
	free(poller->by_fd);
	free(poller);
}

int64_t poller_now_ns(const struct poller *poller)
{
	return poller->now_ns;
}

void poller_stop(struct poller *poller)
{
	poller->is_stopped = true;
}

static void place(struct poller *poller, struct poller_io *io)
{
	size_t fd = (size_t)io->fd, n = poller->n_by_fd;

	if (fd >= n) {
		poller->n_by_fd = 2 * fd + FDS_FIRST;
		poller->by_fd =
			mem_grow(poller->by_fd, poller->n_by_fd, sizeof(struct poller_io *));
		memset(poller->by_fd + n, 0, (poller->n_by_fd - n) * sizeof(struct poller_io *));
	}
	poller->by_fd[fd] = io;
}

static int add(struct poller *poller, struct poller_io *io, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = io->fd};

	place(poller, io);
	if (epoll_ctl(poller->epoll_fd, EPOLL_CTL_ADD, io->fd, &ev) == 0)
		return 0;
	poller->by_fd[io->fd] = NULL;
	io->fd = -1;
	return -errno;
}

int poller_add(
	struct poller *poller, struct poller_io *io, int fd, void (*on_ready)(void *ctx), void *ctx)
{
	*io = (struct poller_io){.fd = fd, .on_ready = on_ready, .ctx = ctx};
	return add(poller, io, EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

int poller_add_level(
	struct poller *poller, struct poller_io *io, int fd, void (*on_ready)(void *ctx), void *ctx)
{
	*io = (struct poller_io){.fd = fd, .on_ready = on_ready, .ctx = ctx};
	return add(poller, io, EPOLLIN);
}

static void unqueue(struct poller_io *io)
{
	if (!io->at)
		return;
	*io->at = io->next;
	if (io->next)
		io->next->at = io->at;
	io->next = NULL;
	io->at = NULL;
}

static void queue(struct poller_io **list, struct poller_io *io)
{
	io->next = *list;
	io->at = list;
	if (io->next)
		io->next->at = &io->next;
	*list = io;
}

void poller_remove(struct poller *poller, struct poller_io *io)
{
	if (io->fd >= 0)
		(void)epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL); /* it is there */
	poller_forget(poller, io);
}

void poller_forget(struct poller *poller, struct poller_io *io)
{
	if (io->fd < 0)
		return;
	for (int i = 0; i < poller->n_batch; i++)
		if (poller->batch[i].data.fd == io->fd)
			poller->batch[i].data.fd = -1; /* the number may soon be another's */
	if (poller->by_fd[io->fd] == io)
		poller->by_fd[io->fd] = NULL;
	unqueue(io);
	io->fd = -1;
}

void poller_move(struct poller *poller, struct poller_io *from, struct poller_io *to,
	void (*on_ready)(void *ctx), void *ctx)
{
	*to = (struct poller_io){
		.fd = from->fd, .ready = from->ready, .on_ready = on_ready, .ctx = ctx};
	if (from->fd < 0)
		return;
	unqueue(from);
	from->fd = -1;
	place(poller, to);
}

void poller_again(struct poller *poller, struct poller_io *io)
{
	if (!io->at)
		queue(&poller->again, io);
}

/* The heap: the earliest first; places count from 1. */
static void put(struct poller *poller, size_t place, struct poller_timer *timer)
{
	poller->heap[place - 1] = timer;
	timer->place = place;
}

static void sift(struct poller *poller, struct poller_timer *timer, size_t place)
{
	struct poller_timer **heap = poller->heap;

	for (; place > 1 && timer->at_ns < heap[place / 2 - 1]->at_ns; place /= 2)
		put(poller, place, heap[place / 2 - 1]);
	for (;;) {
		size_t child = place * 2;

		if (child < poller->n_timers && heap[child]->at_ns < heap[child - 1]->at_ns)
			child++;
		if (child > poller->n_timers || heap[child - 1]->at_ns >= timer->at_ns)
			break;
		put(poller, place, heap[child - 1]);
		place = child;
	}
	put(poller, place, timer);
}

void poller_timer_set(struct poller *poller, struct poller_timer *timer, int64_t ns)
{
	timer->at_ns = poller->now_ns + ns;
	if (!timer->place) {
		if (poller->n_timers == poller->cap_timers) {
			poller->cap_timers = poller->cap_timers ? poller->cap_timers * 2 : 64;
			poller->heap = mem_grow(
				poller->heap, poller->cap_timers, sizeof(struct poller_timer *));
		}
		timer->place = ++poller->n_timers;
	}
	sift(poller, timer, timer->place);
}

void poller_timer_stop(struct poller *poller, struct poller_timer *timer)
{
	size_t place = timer->place;
	struct poller_timer *last;

	if (!place)
		return;
	timer->place = 0;
	last = poller->heap[--poller->n_timers];
	if (last != timer)
		sift(poller, last, place);
}

static int wait_ms(const struct poller *poller)
{
	int64_t ns;

	if (poller->again || poller->on_idle)
		return 0;
	if (poller->n_timers == 0)
		return -1;
	ns = poller->heap[0]->at_ns - clock_mono_ns();
	if (ns <= 0)
		return 0;
	return ns > 3600 * CLOCK_NS_PER_S ? 3600 * 1000
	                                  : (int)((ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
}

static void run_timers(struct poller *poller)
{
	while (poller->n_timers > 0 && poller->heap[0]->at_ns <= poller->now_ns) {
		struct poller_timer *timer = poller->heap[0];

		poller_timer_stop(poller, timer);
		timer->on_time(timer->ctx);
	}
}

static void run_again(struct poller *poller)
{
	struct poller_io *round = poller->again;

	poller->again = NULL;
	if (round)
		round->at = &round; /* one that is removed meanwhile leaves this list */
	while (round) {
		struct poller_io *io = round;

		unqueue(io);
		io->on_ready(io->ctx);
	}
}

static unsigned edges(uint32_t events)
{
	return (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR) ? POLLER_READ : 0) |
	       (events & (EPOLLOUT | EPOLLHUP | EPOLLERR) ? POLLER_WRITE : 0) |
	       (events & (EPOLLHUP | EPOLLERR) ? POLLER_ERROR : 0) |
	       (events & (EPOLLHUP | EPOLLRDHUP) ? POLLER_END : 0) |
	       (events & EPOLLPRI ? POLLER_URGENT : 0);
}

static void run_batch(struct poller *poller)
{
	for (int i = 0; i < poller->n_batch; i++) {
		int fd = poller->batch[i].data.fd;
		struct poller_io *io = fd < 0 ? NULL : poller->by_fd[fd];

		if (!io)
			continue;
		io->ready |= edges(poller->batch[i].events);
		io->on_ready(io->ctx);
	}
	poller->n_batch = 0;
}

void poller_when_idle(struct poller *poller, void (*on_idle)(void *ctx), void *ctx)
{
	poller->on_idle = on_idle;
	poller->idle_ctx = ctx;
	poller->idle_rounds = 0;
}

static void tell_idle(struct poller *poller, bool is_idle)
{
	void (*on_idle)(void *ctx) = poller->on_idle;

	if (!on_idle || (!is_idle && ++poller->idle_rounds < IDLE_ROUNDS))
		return;
	poller->on_idle = NULL;
	on_idle(poller->idle_ctx);
}

void poller_run(struct poller *poller, void (*on_turn)(void *ctx), void *ctx)
{
	while (!poller->is_stopped) {
		bool is_idle = !poller->again;
		int n;

		on_turn(ctx);
		n = epoll_wait(poller->epoll_fd, poller->batch, BATCH, wait_ms(poller));
		if (n < 0 && errno != EINTR)
			abort();
		poller->n_batch = n < 0 ? 0 : n;
		poller->now_ns = clock_mono_ns();
		run_again(poller);
		run_batch(poller);
		run_timers(poller);
		tell_idle(poller, is_idle && n == 0 && !poller->again);
	}
}
