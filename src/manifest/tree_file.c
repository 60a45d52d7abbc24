/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/tree_internal.h"
#include "util/mem.h"
#include "util/scoped.h"

#define TRIES 2 /* a file that changes while it is read is read once more */
#define HOLES_MAX \
	(2LL << 30) /* that are read as the zeros they stand for: one call makes a file of any size */
#define BLOCK 512

/* Bytes read, or -errno. */
static int64_t hash(struct tree_worker *worker, int fd, int64_t size, struct tree_entry *entry)
{
	struct digest digest;
	int64_t done = 0;

	if (!worker->buffer)
		worker->buffer = mem_zero(1, TREE_BUFFER);
	digest_init(&digest);
	for (;;) {
		ssize_t n = pread(fd, worker->buffer, TREE_BUFFER, done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		digest_add(&digest, worker->buffer, (size_t)n);
		done += n;
		/* A small file's end need not be asked for: its size tells, and is looked at again. */
		if (n == 0 || (done == size && size < TREE_BUFFER))
			break;
	}
	digest_value_hex(&digest, entry->sha256);
	return done;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool is_of_holes(const struct stat *st)
{
	return st->st_size - (int64_t)st->st_blocks * BLOCK > HOLES_MAX;
}

/* With the hash of what it held for one moment; without, where no such moment was met. */
static int read_content(
	struct tree_worker *worker, int fd, struct stat *st, struct tree_entry *entry)
{
	for (int i = 0; i < TRIES; i++) {
		struct stat after;
		int64_t done = hash(worker, fd, st->st_size, entry);

		if (done < 0)
			return (int)done;
		worker->found.bytes += done;
		if (fstat(fd, &after) < 0)
			return -errno;
		if (done == st->st_size && is_same(st, &after))
			return 0;
		*st = after;
	}
	entry->sha256[0] = '\0';
	entry->problem = TREE_CHANGED;
	return 0;
}

int tree_read_file(
	struct tree_worker *worker, int folder_fd, const char *name, struct tree_entry *entry)
{
	struct stat st;
	/* O_NONBLOCK: should it be a pipe by now, nobody waits for the other end. */
	scoped_fd int fd = beneath_open(folder_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADF;
	if (is_of_holes(&st)) {
		entry->problem = TREE_HOLES;
		r = 0;
	} else {
		r = read_content(worker, fd, &st, entry);
	}
	tree_take_stat(worker->work->config, &st, entry);
	return r < 0 ? r : content_attributes(fd, entry->attributes);
}
