/* SPDX-License-Identifier: Apache-2.0 */
/* Passes bytes from one non-blocking socket to another as they are: by read and write first, since most flows are
 * short, by splice through a pipe once a megabyte went one way. Holds at most one chunk, or one pipe, a direction. */
#ifndef GATEWAY_RELAY_H
#define GATEWAY_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What all relays of a process share: the place to read into, and how much there may be of the rest. */
struct relay_pool {
	char *chunk;
	size_t chunk_len;
	size_t held;    /* bytes that wait in memory */
	unsigned pipes; /* open */
};

/* One direction. */
struct relay {
	uint64_t bytes;   /* passed on */
	char *rest;       /* what the other side did not take yet; NULL: nothing */
	size_t at, left;  /* of rest; or left: bytes in the pipe */
	int pipe[2];      /* pipe[0] 0: none */
	bool no_pipe;     /* none could be had */
	bool eof;         /* the source ended */
	bool is_shut;     /* and the other side was told */
	bool sink_failed; /* where it has failed: it was not the source */
};

enum relay_result {
	RELAY_WAIT_SOURCE, /* the source has nothing: EAGAIN, or its end was passed on */
	RELAY_WAIT_SINK,   /* the sink takes no more */
	RELAY_AGAIN,       /* there is more; others have their turn first */
};
/* Moves what there is, a few chunks at most. A negative errno where either socket has failed. */
int relay_pump(struct relay *relay, struct relay_pool *pool, int source, int sink);
void relay_done(struct relay *relay, struct relay_pool *pool);

#endif
