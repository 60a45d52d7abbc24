/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between the two sides of a connection: bytes in, bytes out, no sockets and no clock.
 *
 * bridge_drive.c has the sockets and moves bytes for it:
 *   - it gives what a side sent to take(), as long as that takes something; what was not taken stays in the
 *     socket, which is the back-pressure: a machine that buffers much for a slow side takes nothing from the
 *     other. It asks again after every sent() and after every take() from the other side.
 *   - it writes what peek() shows and tells with sent() how much went out.
 *   - after each of these it looks at error() and wants_end().
 * A machine may make bytes for either side at any of these calls (an answer of its own, a 403). It never
 * calls back into that. Everything happens on one thread. */
#ifndef GATEWAY_MACHINE_H
#define GATEWAY_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "util/slice.h"

enum machine_side {
	MACHINE_CLIENT, /* the program inside */
	MACHINE_SERVER, /* upstream */
};
#define MACHINE_SIDES 2

static inline enum machine_side machine_other(enum machine_side side)
{
	return side == MACHINE_CLIENT ? MACHINE_SERVER : MACHINE_CLIENT;
}

struct machine_ops {
	/* How many of these bytes it took, at most len; 0: not now. Never called after end() of that side. */
	size_t (*take)(void *m, enum machine_side from, const void *p, size_t len);
	void (*end)(void *m, enum machine_side from); /* end of file from that side; once */
	/* What is to be sent there; borrowed until the next call. Empty: nothing now. */
	struct slice (*peek)(void *m, enum machine_side to);
	void (*sent)(void *m, enum machine_side to, size_t n); /* of what peek() showed */
	/* Nothing more will come for that side: it is shut down once peek() is empty. */
	bool (*wants_end)(void *m, enum machine_side to);
	size_t (*holds)(const void *m); /* bytes of memory, about */
	int (*error)(void *m);          /* a negative errno: both sides are reset; 0: none */
	/* Other rules are in force. must_read: only what can be read as HTTP may pass. -EACCES: what is under way may
	 * not go on, which was told where it is a request: both sides are reset; 0: it may. */
	int (*check)(void *m, bool must_read);
	void (*free)(void *m); /* NULL is fine */
};

struct machine {
	const struct machine_ops *ops; /* NULL: there is none */
	void *self;
};

#endif
