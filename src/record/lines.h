/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a file that nobody need trust, one at a time, bounded in length; the file may still grow. */
#ifndef RECORD_LINES_H
#define RECORD_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "util/str.h"

struct lines {
	int fd; /* owned; -1: none */
	struct str buf;
	size_t at;       /* the next line's place in buf */
	uint64_t offset; /* of buf's start in the file */
	uint64_t number; /* of the line last given, from 1 */
	bool is_long; /* that line is longer than RECORD_JOURNAL_LINE_MAX: only its head was given */
	bool is_skipping; /* the rest of such a line is still to be passed over */
};

/* Opens a regular file beneath dirfd, following nothing: 0 or a negative errno (-EINVAL: no regular file). */
int lines_open(struct lines *lines, int dirfd, const char *name);
void lines_done(struct lines *lines);

/* 1: a line, without its end, good until the next call; 0: no whole line is there (any more, or yet);
 * negative: cannot be read. */
int lines_next(struct lines *lines, struct slice *ret_line);
/* Where the next line begins. */
uint64_t lines_next_offset(const struct lines *lines);
/* The next line is the first one that begins at this offset or behind it. Numbers go on as if those between were none. */
void lines_seek(struct lines *lines, uint64_t offset);
/* After 0: the bytes behind the last line end, as far as they are read. */
struct slice lines_rest(const struct lines *lines);

#endif
