/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/loop.h"

#include <event2/event.h>

#include "util/mem.h"

struct loop {
	struct event_base *base;
};

struct loop_io {
	struct event *readable, *writable;
	unsigned what;
	loop_io_fn on_ready;
	void *ctx;
};

struct loop_timer {
	struct event *timeout;
	loop_timer_fn on_time;
	void *ctx;
};

struct loop *loop_new(void)
{
	struct loop *loop = new0(struct loop);
	struct event_config *config = event_config_new();

	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_PRECISE_TIMER);
	loop->base = event_base_new_with_config(config);
	event_config_free(config);
	if (!loop->base)
		abort();
	return loop;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	event_base_free(loop->base);
	free(loop);
}

void loop_run(struct loop *loop)
{
	event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

void loop_stop(struct loop *loop)
{
	event_base_loopbreak(loop->base);
}

static void on_fd(evutil_socket_t fd, short what, void *arg)
{
	struct loop_io *io = arg;

	io->on_ready(io->ctx, what & EV_WRITE ? LOOP_WRITE : LOOP_READ);
}

struct loop_io *loop_io_new(
	struct loop *loop, int fd, unsigned what, loop_io_fn on_ready, void *ctx)
{
	struct loop_io *io = new0(struct loop_io);

	io->on_ready = on_ready;
	io->ctx = ctx;
	io->readable = event_new(loop->base, fd, EV_READ | EV_PERSIST, on_fd, io);
	io->writable = event_new(loop->base, fd, EV_WRITE | EV_PERSIST, on_fd, io);
	if (!io->readable || !io->writable)
		abort();
	loop_io_set(io, what);
	return io;
}

static void toggle(struct event *ev, bool on)
{
	if (on)
		event_add(ev, NULL);
	else
		event_del(ev);
}

void loop_io_set(struct loop_io *io, unsigned what)
{
	unsigned changed = io->what ^ what;

	if (changed & LOOP_READ)
		toggle(io->readable, what & LOOP_READ);
	if (changed & LOOP_WRITE)
		toggle(io->writable, what & LOOP_WRITE);
	io->what = what;
}

void loop_io_free(struct loop_io *io)
{
	if (!io)
		return;
	event_free(io->readable);
	event_free(io->writable);
	free(io);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *timer = arg;

	timer->on_time(timer->ctx);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn on_time, void *ctx)
{
	struct loop_timer *timer = new0(struct loop_timer);

	timer->on_time = on_time;
	timer->ctx = ctx;
	timer->timeout = evtimer_new(loop->base, on_timeout, timer);
	if (!timer->timeout)
		abort();
	return timer;
}

void loop_timer_set(struct loop_timer *timer, int64_t ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	evtimer_add(timer->timeout, &tv);
}

void loop_timer_stop(struct loop_timer *timer)
{
	evtimer_del(timer->timeout);
}

void loop_timer_free(struct loop_timer *timer)
{
	if (!timer)
		return;
	event_free(timer->timeout);
	free(timer);
}
