/* SPDX-License-Identifier: Apache-2.0 */
#include "record/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record_journal.h"
#include "util/scoped.h"

#define READ_STEP 262144

int lines_open(struct lines *lines, int dirfd, const char *name)
{
	scoped_fd int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	*lines = (struct lines){.fd = -1};
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	lines->fd = take_fd(&fd);
	return 0;
}

void lines_done(struct lines *lines)
{
	scoped_close(&lines->fd);
	str_done(&lines->buf);
	*lines = (struct lines){.fd = -1};
}

/* Moves what is left to the front and reads on: bytes read, 0 at the end. */
static ssize_t fill(struct lines *lines)
{
	struct str *buf = &lines->buf;
	ssize_t n;

	if (lines->at > 0)
		memmove(buf->p, buf->p + lines->at, buf->len - lines->at);
	buf->len -= lines->at;
	lines->offset += lines->at;
	lines->at = 0;
	str_reserve(buf, READ_STEP);
	do {
		n = pread(
			lines->fd, buf->p + buf->len, READ_STEP, (off_t)(lines->offset + buf->len));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf->len += (size_t)n;
	return n;
}

static struct slice give(struct lines *lines, size_t len, size_t used)
{
	struct slice line = {.p = lines->buf.p + lines->at, .len = len};

	lines->at += used;
	return line;
}

/* A line that is already in the buffer, whole or too long. False: read on. */
static bool find_line(struct lines *lines, size_t searched, struct slice *ret_line)
{
	size_t len = lines->buf.len - lines->at;
	const char *start = len ? lines->buf.p + lines->at : "";
	const char *end = len > searched ? memchr(start + searched, '\n', len - searched) : NULL;

	if (end && (size_t)(end - start) < RECORD_JOURNAL_LINE_MAX) {
		*ret_line = give(lines, (size_t)(end - start), (size_t)(end - start) + 1);
		return true;
	}
	if (!end && len < RECORD_JOURNAL_LINE_MAX)
		return false;
	*ret_line = give(lines, RECORD_JOURNAL_LINE_MAX, RECORD_JOURNAL_LINE_MAX);
	lines->is_skipping = lines->is_long = true;
	return true;
}

/* Passes over the rest of a line that was too long: 1 done, 0 its end is not there. */
static int skip_rest(struct lines *lines)
{
	for (;;) {
		size_t len = lines->buf.len - lines->at;
		const char *start = lines->buf.p + lines->at;
		const char *end = len ? memchr(start, '\n', len) : NULL;
		ssize_t n;

		if (end) {
			lines->at += (size_t)(end - start) + 1;
			lines->is_skipping = false;
			return 1;
		}
		lines->at = lines->buf.len;
		n = fill(lines);
		if (n <= 0)
			return (int)n;
	}
}

int lines_next(struct lines *lines, struct slice *ret_line)
{
	size_t searched = 0;

	if (lines->fd < 0)
		return 0;
	if (lines->is_skipping) {
		int r = skip_rest(lines);

		if (r <= 0)
			return r;
	}
	lines->is_long = false;
	while (!find_line(lines, searched, ret_line)) {
		ssize_t n;

		searched = lines->buf.len - lines->at;
		n = fill(lines);
		if (n <= 0)
			return (int)n;
	}
	lines->number++;
	return 1;
}

void lines_seek(struct lines *lines, uint64_t offset)
{
	lines->buf.len = lines->at = 0;
	lines->is_long = false;
	lines->is_skipping = offset > 0; /* the byte before it may end a line */
	lines->offset = offset > 0 ? offset - 1 : 0;
}

uint64_t lines_next_offset(const struct lines *lines)
{
	return lines->offset + lines->at;
}

struct slice lines_rest(const struct lines *lines)
{
	size_t len = lines->buf.len - lines->at;

	return (struct slice){.p = len ? lines->buf.p + lines->at : "", .len = len};
}
