/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's one loop: epoll, edge-triggered for relayed sockets.
 *
 * Not libevent, as the supervisor's: back-pressure turns the interest in a socket on and off at every full
 * buffer, which edges make free of system calls, and a bulk flow has to hand on its turn. Objects lie in what
 * owns them; removing one, also in its own callback, is fine at any time. */
#ifndef GATEWAY_POLLER_H
#define GATEWAY_POLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/scoped.h"

struct poller;
struct poller *poller_new(void);
void poller_free(struct poller *poller);
SCOPED_TYPE(poller)
/* Until poller_stop(). on_turn is called after each round of callbacks, before waiting. */
void poller_run(struct poller *poller, void (*on_turn)(void *ctx), void *ctx);
void poller_stop(struct poller *poller);
/* Calls on_idle once, in the first round that finds nothing left to do: all that could be read when this was called has
 * been handled by then. Also where it never comes to that, after some rounds. One at a time. */
void poller_when_idle(struct poller *poller, void (*on_idle)(void *ctx), void *ctx);
int64_t poller_now_ns(const struct poller *poller); /* CLOCK_MONOTONIC at the start of this round */

#define POLLER_READ   1u
#define POLLER_WRITE  2u
#define POLLER_ERROR  4u  /* both ends are done with it, or it has an error */
#define POLLER_URGENT 16u /* it has sent urgent data, at which a read stops short */
#define POLLER_END    8u  /* the peer sends nothing more; what it sent may still wait */

struct poller_io {
	int fd;         /* -1: not added */
	unsigned ready; /* edges since; whoever meets EAGAIN clears the bit */
	void (*on_ready)(void *ctx);
	void *ctx;
	struct poller_io *next, **at; /* in the queue of poller_again() */
};
/* Both directions, edges; or, with poller_add_level, reading, as long as there is something. Does not take over
 * fd. A negative errno where the kernel has no room. */
int poller_add(struct poller *poller, struct poller_io *io, int fd, void (*on_ready)(void *ctx),
	void *ctx);
int poller_add_level(struct poller *poller, struct poller_io *io, int fd,
	void (*on_ready)(void *ctx), void *ctx);
void poller_remove(struct poller *poller, struct poller_io *io);
/* The same where fd is closed next, by which the kernel forgets it as well. */
void poller_forget(struct poller *poller, struct poller_io *io);
/* The descriptor, and what is ready, have another owner from now on; the kernel is not asked, so no edge comes for what
 * is ready already. Of one that is not added, to is none either. */
void poller_move(struct poller *poller, struct poller_io *from, struct poller_io *to,
	void (*on_ready)(void *ctx), void *ctx);
/* Calls on_ready once more in the next round: for what stopped before EAGAIN. */
void poller_again(struct poller *poller, struct poller_io *io);

/* Once, from now; setting it again moves it. Zero-initialise, set fn and ctx. */
struct poller_timer {
	int64_t at_ns;
	size_t place; /* in the heap, from 1; 0: not set */
	void (*on_time)(void *ctx);
	void *ctx;
};
void poller_timer_set(struct poller *poller, struct poller_timer *timer, int64_t ns);
void poller_timer_stop(struct poller *poller, struct poller_timer *timer);

#endif
