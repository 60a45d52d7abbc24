/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a BPF ring buffer: kernel documentation, bpf/ringbuf.rst. One reader. */
#ifndef UTIL_RING_H
#define UTIL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"

struct ring;

/* A new one; bytes is a power of two and a whole number of pages. */
int ring_new(size_t bytes, struct ring **ret_ring, struct err *err);
/* One that exists, by its map's descriptor, which it takes over on success. */
int ring_open(int fd, struct ring **ret_ring, struct err *err);
void ring_free(struct ring *ring);
SCOPED_TYPE(ring)

int ring_fd(const struct ring *ring); /* of the map; can be polled; borrowed */
size_t ring_size(const struct ring *ring);
size_t ring_waiting(const struct ring *ring); /* bytes */

/* The next records as they lie in the ring, whole ones, max bytes of them at most but one at least; for
 * ring_record(). Good until ring_release(). 1, or 0 where there is none; -EBUSY where the next is being
 * written. */
int ring_span(struct ring *ring, size_t max, struct slice *ret_span);
/* Takes the next record off a span, or off a copy of one; false at its end. */
bool ring_record(struct slice *span, struct slice *ret_record);
/* Gives the room of all records read so far back to the kernel. */
void ring_release(struct ring *ring);

#endif
