/* SPDX-License-Identifier: Apache-2.0 */
#include "record/journal_seek.h"

#include <errno.h>
#include <sys/stat.h>

#include "record/control_line.h"

#define NEAR 16384U /* to a place that is looked for: what lies between is read */

/* The first event that begins at or behind offset, before end: its number and place. 0: there is none. */
static int number_at(
	struct lines *lines, uint64_t offset, uint64_t end, uint64_t *ret_seq, uint64_t *ret_offset)
{
	struct slice line;
	int r;

	lines_seek(lines, offset);
	while ((r = lines_next(lines, &line)) == 1) {
		uint64_t begin = lines_next_offset(lines) - line.len - 1;

		if (begin >= end)
			return 0;
		if (lines->is_long || control_line_seq(line, ret_seq) < 0)
			continue;
		*ret_offset = begin;
		return 1;
	}
	return r;
}

int journal_seek(struct lines *lines, uint64_t seq)
{
	uint64_t low = 0, high, found, at;
	struct stat st;
	int r = 0;

	if (lines->fd < 0)
		return 0;
	if (fstat(lines->fd, &st) < 0)
		return -errno;
	high = (uint64_t)st.st_size;
	while (r >= 0 && high - low > NEAR) {
		uint64_t middle = low + (high - low) / 2;

		r = number_at(lines, middle, high, &found, &at);
		if (r == 1 && found < seq)
			low = at;
		else
			high = middle;
	}
	lines_seek(lines, low);
	return r < 0 ? r : 0;
}

int journal_seek_first(struct lines *lines, uint64_t *ret_seq)
{
	uint64_t at;

	return number_at(lines, 0, UINT64_MAX, ret_seq, &at);
}
