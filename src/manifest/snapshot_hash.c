/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes of a snapshot. A file counts only where its stamps are the snapshot's before and after it was read, so that
 * a hash is of what was there then, whoever writes meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/folder_walk.h"
#include "manifest/pool.h"
#include "manifest/snapshot_take.h"
#include "util/mem.h"

#define STEP        512          /* records of one job */
#define LARGE       (64 << 20)   /* bytes of a file that is left out unless all is asked for */
#define BUDGET      (8LL << 30)  /* bytes read for one snapshot, and */
#define BUDGET_FULL (1LL << 50)  /* where all is asked for */
#define RACY_MAX    4000         /* files that are waited for, and */
#define RACY_BYTES  (64LL << 20) /* bytes of them */
#define OPEN_FLAGS  (O_RDONLY | O_NONBLOCK | O_NOCTTY)

struct hashing {
	struct pool pool;
	struct snapshot *snapshot;
	int root_fd;
	enum snapshot_reach reach;
	const bool *stop;
};

struct hasher {
	struct hashing *all;
	int64_t budget;
	size_t n_left; /* files that may still be read */
	uint32_t folder;
	int folder_fd; /* of it; -1: not opened */
};

struct job {
	struct pool_job head;
	uint32_t from, to;
};

static bool is_stamped(const struct snapshot_record *r, const struct stat *st)
{
	return st->st_dev == r->dev && st->st_ino == r->ino && st->st_size == r->size &&
	       folder_walk_ns(st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec) == r->mtime_ns &&
	       folder_walk_ns(st->st_ctim.tv_sec, (uint32_t)st->st_ctim.tv_nsec) == r->ctime_ns;
}

/* Packages are only counted, and git's objects never change. */
static bool is_only_counted(const char *path)
{
	scoped_mem char *whole = mem_printf("/%s/", path);

	return strstr(whole, "/node_modules/") || strstr(whole, "/.git/objects/");
}

static bool enter(struct hasher *h, uint32_t folder)
{
	scoped_str struct str path = {0};

	if (h->folder == folder)
		return h->folder_fd >= 0;
	scoped_close(&h->folder_fd);
	h->folder_fd = -1;
	h->folder = folder;
	if (!snapshot_path(h->all->snapshot, folder, &path))
		return false;
	/* Not opened: what lies in it is only counted. */
	if (h->all->reach != SNAPSHOT_REACH_FULL && is_only_counted(path.p))
		return false;
	h->folder_fd = beneath_open_folder(h->all->root_fd, folder == 0 ? "" : path.p);
	return h->folder_fd >= 0;
}

static int open_file(struct hasher *h, const struct snapshot_record *r)
{
	const char *name = h->all->snapshot->text + r->name;
	int fd;

	if (r->parent == SNAPSHOT_NONE)
		return fcntl(h->all->root_fd, F_DUPFD_CLOEXEC, 0);
	if (!enter(h, r->parent))
		return -EISDIR; /* not to be opened, or not there */
	fd = beneath_open(h->folder_fd, name, OPEN_FLAGS | O_NOATIME);
	return fd == -EPERM ? beneath_open(h->folder_fd, name, OPEN_FLAGS) : fd;
}

static void add_state(struct hasher *h, uint32_t i, uint32_t bits)
{
	struct snapshot *s = h->all->snapshot;
	uint32_t state = snapshot_state(&s->records[i]);

	if ((state | bits) != state)
		snapshot_set_state(s, i, state | bits);
}

static void read_one(struct hasher *h, uint32_t i, int fd)
{
	const struct snapshot_record *r = &h->all->snapshot->records[i];
	unsigned char sha256[DIGEST_LEN], attributes[DIGEST_LEN] = {0};
	char hex[DIGEST_HEX_SIZE], attributes_hex[DIGEST_HEX_SIZE];
	struct stat st;

	if (fstat(fd, &st) < 0 || !is_stamped(r, &st)) {
		add_state(h, i, SNAPSHOT_MISSED);
		return;
	}
	if (content_hash(fd, &h->budget, hex) < 0 || content_attributes(fd, attributes_hex) < 0 ||
		digest_from_hex(hex, sha256) < 0) {
		add_state(h, i, SNAPSHOT_LEFT);
		return;
	}
	if (attributes_hex[0])
		(void)digest_from_hex(attributes_hex, attributes); /* our own text */
	if (fstat(fd, &st) < 0 || !is_stamped(r, &st))
		add_state(h, i, SNAPSHOT_MISSED);
	else
		snapshot_set_hash(h->all->snapshot, i, sha256, attributes);
}

static bool is_wanted(const struct hasher *h, const struct snapshot_record *r)
{
	uint32_t state = snapshot_state(r);

	if (!S_ISREG(r->mode) || (state & (SNAPSHOT_HASHED | SNAPSHOT_MISSED)))
		return false;
	return h->all->reach != SNAPSHOT_REACH_RACY || (state & SNAPSHOT_RACY);
}

static void take_one(struct hasher *h, uint32_t i)
{
	const struct snapshot_record *r = &h->all->snapshot->records[i];
	scoped_fd int fd = -1;

	if (!is_wanted(h, r) || h->n_left == 0)
		return;
	h->n_left--;
	if ((h->all->reach != SNAPSHOT_REACH_FULL && r->size > LARGE) || r->size > h->budget) {
		add_state(h, i, SNAPSHOT_LEFT);
		return;
	}
	fd = open_file(h, r);
	if (fd >= 0)
		read_one(h, i, fd);
	else if (fd != -EISDIR)
		add_state(h, i, SNAPSHOT_MISSED);
}

static void run(void *worker, struct pool_job *head)
{
	struct hasher *h = worker;
	struct job *job = (struct job *)head;
	const bool *stop = h->all->stop;

	for (uint32_t i = job->from; i < job->to; i++) {
		if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED))
			break;
		take_one(h, i);
	}
	free(job);
}

static void push_all(struct hashing *all)
{
	uint32_t n = all->snapshot->head->n_records;

	for (uint32_t i = 0; i < n; i += STEP) {
		struct job *job = new0(struct job);

		job->from = i;
		job->to = n - i < STEP ? n : i + STEP;
		pool_push(&all->pool, &job->head);
	}
}

void snapshot_hash(
	struct snapshot *snapshot, int root_fd, enum snapshot_reach reach, const bool *stop)
{
	bool is_full = reach == SNAPSHOT_REACH_FULL, is_racy = reach == SNAPSHOT_REACH_RACY;
	struct hashing all = {.pool = POOL_INIT(run),
		.snapshot = snapshot,
		.root_fd = root_fd,
		.reach = reach,
		.stop = stop};
	size_t n = is_full ? pool_n_threads() : 1;
	struct hasher hashers[POOL_THREADS_MAX];
	void *workers[POOL_THREADS_MAX];

	for (size_t i = 0; i < n; i++) {
		hashers[i] = (struct hasher){.all = &all,
			.budget = is_racy   ? RACY_BYTES
		                  : is_full ? BUDGET_FULL
		                            : BUDGET,
			.n_left = is_racy ? RACY_MAX : SIZE_MAX,
			.folder = SNAPSHOT_NONE,
			.folder_fd = -1};
		workers[i] = &hashers[i];
	}
	push_all(&all);
	pool_run(&all.pool, workers, n);
	for (size_t i = 0; i < n; i++)
		scoped_close(&hashers[i].folder_fd);
}

void snapshot_doubt_racy(struct snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->head->n_records; i++) {
		uint32_t state = snapshot_state(&snapshot->records[i]);

		if (state & SNAPSHOT_RACY)
			snapshot_set_state(
				snapshot, i, (state & ~SNAPSHOT_HASHED) | SNAPSHOT_MISSED);
	}
}
