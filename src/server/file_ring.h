/* SPDX-License-Identifier: Apache-2.0 */
/* The newest of a row of numbered texts, as many as there is room for; and lines out of bytes as they come. Pure. */
#ifndef SERVER_FILE_RING_H
#define SERVER_FILE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define FILE_RING_MAX   2048
#define FILE_RING_BYTES (256u << 10)
#define FILE_LINE_MAX   (64u << 10)

struct file_ring {
	struct file_ring_entry {
		char *p;
		size_t len;
		bool is_gap;
	} entries[FILE_RING_MAX]; /* number n at n % FILE_RING_MAX */
	size_t bytes;
	int64_t first, last; /* numbers from 1 on; first behind last: it is empty */
};

void file_ring_init(struct file_ring *ring);
void file_ring_done(struct file_ring *ring);
/* Its number is last then; the oldest make room. */
void file_ring_add(struct file_ring *ring, struct slice text, bool is_gap);
/* n: from first to last. */
const struct file_ring_entry *file_ring_get(const struct file_ring *ring, int64_t n);

struct file_lines {
	struct str line;
	bool is_too_long; /* over FILE_LINE_MAX: the rest of it is passed over */
};
/* Takes bytes up to the end of a line. True: there is one in lines->line (empty where it is too long), until the next call, and
 * *bytes is what is behind it. */
bool file_lines_next(struct file_lines *lines, struct slice *bytes);
/* That line was taken. */
void file_lines_reset(struct file_lines *lines);

#endif
