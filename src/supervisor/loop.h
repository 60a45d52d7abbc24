/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's one loop: libevent behind names of ours, since its `struct event` and ours cannot meet. */
#ifndef SUPERVISOR_LOOP_H
#define SUPERVISOR_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "util/scoped.h"

struct loop;
struct loop *loop_new(void);
void loop_free(struct loop *loop);
SCOPED_TYPE(loop)
void loop_run(struct loop *loop); /* until loop_stop() */
void loop_stop(struct loop *loop);

/* A descriptor that is looked at; level-triggered. Freeing one inside its own callback is fine. */
struct loop_io;
#define LOOP_READ  1u
#define LOOP_WRITE 2u
typedef void (*loop_io_fn)(void *ctx, unsigned what);
struct loop_io *loop_io_new(
	struct loop *loop, int fd, unsigned what, loop_io_fn on_ready, void *ctx);
void loop_io_set(struct loop_io *io, unsigned what); /* 0: not looked at for now */
void loop_io_free(struct loop_io *io);

struct loop_timer;
typedef void (*loop_timer_fn)(void *ctx);
struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn on_time, void *ctx);
void loop_timer_set(struct loop_timer *timer, int64_t ms); /* once, from now; again: moves it */
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer);

#endif
