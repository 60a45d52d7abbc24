/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/snapshot_take.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "manifest/content.h"
#include "manifest/folder_walk.h"
#include "manifest/pool.h"
#include "util/clock.h"
#include "util/mem.h"

#define RACY_NS        (20 * CLOCK_NS_PER_MS) /* two ticks of the slowest clock of files, 100 a second */
#define COARSE_RACY_NS (2 * CLOCK_NS_PER_S) /* where the filesystem keeps whole seconds */
#define PART_MIN       256

/* What one thread found. Parents are told as (thread, number) until all is joined. */
struct part {
	const struct snapshot_source *source;
	int64_t started_ns;
	struct snapshot_record *records;
	uint64_t *parents;
	size_t n;
	struct str text;
	uint64_t *unlisted; /* folders that could not be read */
	size_t n_unlisted;
	uint32_t index;
	int failed;
};

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return clock_ns(t);
}

bool snapshot_is_racy(int64_t ctime_ns, int64_t seen_ns)
{
	int64_t tick = ctime_ns % CLOCK_NS_PER_S == 0 ? COARSE_RACY_NS : RACY_NS;

	return ctime_ns > seen_ns - tick;
}

static struct snapshot_record *add(struct part *part, uint64_t parent)
{
	if ((part->n & (part->n - 1)) == 0) {
		size_t n = part->n < PART_MIN ? PART_MIN : 2 * part->n;

		part->records = mem_grow(part->records, n, sizeof(*part->records));
		part->parents = mem_grow(part->parents, n, sizeof(*part->parents));
	}
	part->parents[part->n] = parent;
	part->records[part->n] = (struct snapshot_record){0};
	return &part->records[part->n++];
}

static uint32_t add_text(struct part *part, const char *text)
{
	uint32_t at = (uint32_t)part->text.len;

	str_add(&part->text, text, strlen(text) + 1);
	return at;
}

static void take_stamps(const struct statx *st, struct snapshot_record *r)
{
	r->dev = makedev(st->stx_dev_major, st->stx_dev_minor);
	r->ino = st->stx_ino;
	if (st->stx_mask & STATX_BTIME)
		r->btime_ns = folder_walk_ns(st->stx_btime.tv_sec, st->stx_btime.tv_nsec);
	r->size = (int64_t)st->stx_size;
	r->mtime_ns = folder_walk_ns(st->stx_mtime.tv_sec, st->stx_mtime.tv_nsec);
	r->ctime_ns = folder_walk_ns(st->stx_ctime.tv_sec, st->stx_ctime.tv_nsec);
	r->mode = st->stx_mode;
	r->uid = st->stx_uid;
	r->gid = st->stx_gid;
}

static bool is_same(const struct snapshot_record *a, const struct snapshot_record *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns && a->mode == b->mode;
}

/* What the earlier snapshot knows of the same file. */
static void take_hash(const struct snapshot_record *old, struct snapshot_record *r)
{
	if ((snapshot_state(old) & (SNAPSHOT_HASHED | SNAPSHOT_RACY)) != SNAPSHOT_HASHED ||
		!is_same(old, r))
		return;
	memcpy(r->sha256, old->sha256, sizeof(r->sha256));
	memcpy(r->attributes, old->attributes, sizeof(r->attributes));
	r->state |= SNAPSHOT_HASHED;
}

static void fill(struct part *part, const struct statx *st, const struct snapshot_record *old,
	struct snapshot_record *r)
{
	take_stamps(st, r);
	if (!S_ISREG(r->mode) && !S_ISDIR(r->mode))
		return;
	if (snapshot_is_racy(r->ctime_ns, part->started_ns))
		r->state = SNAPSHOT_RACY;
	else if (old && S_ISREG(r->mode))
		take_hash(old, r);
}

static bool visit(void *worker, const struct walk_folder *folder, struct walk_entry *entry)
{
	struct part *part = worker;
	const struct snapshot *old = part->source->old;
	struct snapshot_record *r;

	if (part->n >= SNAPSHOT_RECORDS_MAX || part->text.len > UINT32_MAX / 2 / POOL_THREADS_MAX) {
		part->failed = -EFBIG;
		return false;
	}
	entry->mark = (uint64_t)part->index << 32 | part->n;
	r = add(part, folder->mark);
	r->name = add_text(part, entry->name);
	fill(part, entry->st, entry->old == SNAPSHOT_NONE ? NULL : &old->records[entry->old], r);
	if (S_ISLNK(r->mode)) {
		scoped_mem char *target = NULL;

		if (content_read_link(folder->fd, entry->name, &target) == 0)
			r->target = add_text(part, target);
	}
	return true;
}

/* What lies there is not known, and nothing will be said of it. */
static void fail(
	void *worker, const struct walk_folder *folder, const struct walk_entry *entry, int r)
{
	struct part *part = worker;

	if (entry && r == -EXDEV)
		return; /* as with all that other filesystems hold */
	part->unlisted = mem_grow(part->unlisted, part->n_unlisted + 1, sizeof(*part->unlisted));
	part->unlisted[part->n_unlisted++] = folder->mark;
}

/* ---- joined ---- */

/* Where each thread's records come to stand. */
struct joined {
	size_t bases[POOL_THREADS_MAX], n;
	struct snapshot_record *records;
	struct str text;
};

static uint32_t number_of(const struct joined *all, uint64_t mark)
{
	return (uint32_t)(all->bases[mark >> 32] + (uint32_t)mark);
}

static void join_part(struct joined *all, const struct part *part)
{
	struct snapshot_record *records = all->records + all->bases[part->index];
	uint32_t text = (uint32_t)all->text.len;

	if (part->n > 0)
		memcpy(records, part->records, part->n * sizeof(*records));
	for (size_t i = 0; i < part->n; i++) {
		uint64_t parent = part->parents[i];

		records[i].parent = parent == UINT64_MAX ? SNAPSHOT_NONE : number_of(all, parent);
		records[i].name += text;
		records[i].target += records[i].target ? text : 0;
	}
	str_add(&all->text, part->text.p, part->text.len);
}

static int write_joined(struct part *parts, size_t n_parts, const struct snapshot_head *times,
	int dirfd, const char *name)
{
	struct joined all = {0};
	int r = -EFBIG;

	for (size_t i = 0; i < n_parts; i++) {
		all.bases[i] = all.n;
		all.n += parts[i].n;
	}
	if (all.n > SNAPSHOT_RECORDS_MAX)
		return r;
	all.records = mem_grow(NULL, all.n, sizeof(*all.records));
	for (size_t i = 0; i < n_parts && all.text.len < UINT32_MAX / 2; i++)
		join_part(&all, &parts[i]);
	for (size_t i = 0; i < n_parts; i++)
		for (size_t k = 0; k < parts[i].n_unlisted; k++)
			all.records[number_of(&all, parts[i].unlisted[k])].state |=
				SNAPSHOT_UNLISTED;
	if (all.text.len < UINT32_MAX / 2)
		r = snapshot_write(dirfd, name, times, all.records, all.n, &all.text);
	free(all.records);
	str_done(&all.text);
	return r;
}

/* The root itself: its text is the NUL that texts begin with. */
static int add_root(struct part *part)
{
	const struct snapshot *old = part->source->old;
	struct statx st;
	struct snapshot_record *r;

	if (statx(part->source->root_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) <
		0)
		return -errno;
	r = add(part, UINT64_MAX);
	r->name = add_text(part, "");
	fill(part, &st, old ? &old->records[0] : NULL, r);
	return 0;
}

static int take_all(const struct snapshot_source *source, struct part *parts, size_t n)
{
	void *workers[POOL_THREADS_MAX];
	const struct folder_walk walk = {.root_fd = source->root_fd,
		.old = source->old,
		.stop = source->stop,
		.visit = visit,
		.fail = fail,
		.workers = workers,
		.n_workers = n};

	const struct walk_folder root = {.path = "", .old = source->old ? 0 : SNAPSHOT_NONE};

	for (size_t i = 0; i == 0 || i < n; i++) {
		parts[i].source = source;
		parts[i].index = (uint32_t)i;
		workers[i] = &parts[i];
		str_putc(&parts[i].text, '\0'); /* so that 0 is no place of a target */
	}
	parts[0].text.len = 0;
	if (add_root(&parts[0]) < 0)
		return -errno;
	if (S_ISDIR(parts[0].records[0].mode))
		folder_walk_run(&walk, &root);
	for (size_t i = 0; i < n; i++)
		if (parts[i].failed < 0)
			return parts[i].failed;
	return source->stop && __atomic_load_n(source->stop, __ATOMIC_RELAXED) ? -ECANCELED : 0;
}

int snapshot_take(
	const struct snapshot_source *source, int dirfd, const char *name, struct err *err)
{
	struct snapshot_head times = {.started_ns = now_ns()};
	struct part parts[POOL_THREADS_MAX] = {0};
	size_t n = pool_n_threads();
	int r;

	for (size_t i = 0; i < n; i++)
		parts[i].started_ns = times.started_ns;
	r = take_all(source, parts, n);
	times.ended_ns = now_ns();
	if (r == 0)
		r = write_joined(parts, n, &times, dirfd, name);
	for (size_t i = 0; i < n; i++) {
		free(parts[i].records);
		free(parts[i].parents);
		free(parts[i].unlisted);
		str_done(&parts[i].text);
	}
	return r < 0 ? err_set(err, r, "write down what is there: %m") : 0;
}
