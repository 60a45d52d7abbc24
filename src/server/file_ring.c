/* SPDX-License-Identifier: Apache-2.0 */
#include "server/file_ring.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"
#include "util/scoped.h"

void file_ring_init(struct file_ring *ring)
{
	*ring = (struct file_ring){.first = 1};
}

static void drop_oldest(struct file_ring *ring)
{
	struct file_ring_entry *entry = &ring->entries[ring->first % FILE_RING_MAX];

	ring->bytes -= entry->len;
	free(take(&entry->p));
	ring->first++;
}

void file_ring_done(struct file_ring *ring)
{
	while (ring->first <= ring->last)
		drop_oldest(ring);
}

static bool is_full(const struct file_ring *ring, size_t more)
{
	return ring->last - ring->first + 1 == FILE_RING_MAX ||
	       ring->bytes + more > FILE_RING_BYTES;
}

void file_ring_add(struct file_ring *ring, struct slice text, bool is_gap)
{
	while (ring->first <= ring->last && is_full(ring, text.len))
		drop_oldest(ring);
	ring->last++;
	ring->entries[ring->last % FILE_RING_MAX] = (struct file_ring_entry){
		.p = mem_copy(text.p, text.len), .len = text.len, .is_gap = is_gap};
	ring->bytes += text.len;
}

const struct file_ring_entry *file_ring_get(const struct file_ring *ring, int64_t n)
{
	return &ring->entries[n % FILE_RING_MAX];
}

bool file_lines_next(struct file_lines *lines, struct slice *bytes)
{
	const char *end = bytes->len > 0 ? memchr(bytes->p, '\n', bytes->len) : NULL;
	size_t n = end ? (size_t)(end - bytes->p) : bytes->len;

	if (lines->line.len + n > FILE_LINE_MAX) {
		lines->is_too_long = true;
		str_reset(&lines->line);
	}
	if (!lines->is_too_long)
		str_add(&lines->line, bytes->p, n);
	n += end != NULL;
	*bytes = (struct slice){.p = bytes->p + n, .len = bytes->len - n};
	return end != NULL;
}

void file_lines_reset(struct file_lines *lines)
{
	lines->is_too_long = false;
	str_reset(&lines->line);
}
