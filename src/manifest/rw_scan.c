/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/rw_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "manifest/pool.h"
#include "manifest/rw_internal.h"
#include "util/mem.h"
#include "util/path.h"

#define ITEMS_MAX   1000000      /* changes that one thread lists */
#define HASH_BUDGET (16LL << 30) /* bytes that one thread hashes */
#define ROUNDS_MAX  64           /* folders made anew, in folders made anew */

static struct rw_identity identity_of(const struct statx *st)
{
	struct rw_identity identity = {
		.dev = makedev(st->stx_dev_major, st->stx_dev_minor), .ino = st->stx_ino};

	if (st->stx_mask & STATX_BTIME)
		identity.btime_ns = folder_walk_ns(st->stx_btime.tv_sec, st->stx_btime.tv_nsec);
	return identity;
}

static struct slice key_of(const struct rw_identity *identity)
{
	return (struct slice){.p = (const char *)identity, .len = sizeof(*identity)};
}

static bool is_folder(const struct snapshot_record *r, const struct rw_identity *identity)
{
	return S_ISDIR(r->mode) && r->dev == identity->dev && r->ino == identity->ino &&
	       r->btime_ns == identity->btime_ns;
}

/* ---- folders ---- */

static struct map *map_folders(const struct snapshot *before)
{
	struct map *folders = map_new();

	for (uint32_t i = 1; i < before->head->n_records; i++) {
		const struct snapshot_record *r = &before->records[i];
		struct rw_identity identity = {r->dev, r->ino, r->btime_ns};

		/* Without a time of birth a number says nothing: it is soon used again. */
		if (S_ISDIR(r->mode) && r->btime_ns != 0)
			*map_slot(folders, key_of(&identity)) = (void *)((uintptr_t)i + 1);
	}
	return folders;
}

/* Where a folder was before, or SNAPSHOT_NONE. Notes that it is at path now. */
static uint32_t find_moved(
	struct rw_scan *scan, const struct rw_identity *identity, const char *path)
{
	uint32_t record = SNAPSHOT_NONE;
	unsigned long long number;
	uintptr_t found;
	void **slot;

	pthread_mutex_lock(&scan->lock);
	if (!scan->folders)
		scan->folders = map_folders(scan->query->before);
	found = (uintptr_t)map_find(scan->folders, key_of(identity));
	if (found) {
		number = found - 1;
		slot = map_slot(scan->moved, map_int_key(&number));
		free(*slot);
		*slot = mem_dup(path);
		record = (uint32_t)number;
	}
	pthread_mutex_unlock(&scan->lock);
	return record;
}

static void walk_later(struct rw_scan *scan, char *path, const struct walk_folder *folder,
	const struct walk_entry *e)
{
	struct rw_later later = {.path = path,
		.old = e->old,
		.mark = folder->mark & RW_MARK_MOVED,
		.now = {.mode = e->st->stx_mode, .uid = e->st->stx_uid, .gid = e->st->stx_gid}};

	pthread_mutex_lock(&scan->lock);
	scan->later = mem_grow(scan->later, scan->n_later + 1, sizeof(*scan->later));
	scan->later[scan->n_later++] = later;
	pthread_mutex_unlock(&scan->lock);
}

static uint64_t mark_of(const struct rw_scan *scan, uint32_t old, uint64_t mark)
{
	if (old == SNAPSHOT_NONE)
		return 0;
	if (snapshot_state(&scan->query->before->records[old]) & SNAPSHOT_UNLISTED)
		return mark | RW_MARK_UNLISTED;
	return mark;
}

static void compare_folder(struct rw_worker *w, const struct walk_folder *folder,
	const struct walk_entry *entry, enum change_kind kind, char *path)
{
	const struct snapshot *before = w->scan->query->before;
	struct change *c = changes_add(w->side.out, kind, path);
	scoped_str struct str was = {0};

	rw_file_read(w, folder, entry, false, c);
	if (kind == CHANGE_ADDED)
		return;
	rw_side_of(before, &before->records[entry->old], &c->before);
	if ((kind == CHANGE_RENAMED || (folder->mark & RW_MARK_MOVED)) &&
		snapshot_path(before, entry->old, &was))
		c->from = str_take(&was);
	if (!rw_file_differs(c) && kind == CHANGE_MODE)
		c->kind = CHANGE_NONE;
}

static bool is_as_it_was(const struct snapshot_record *r, const struct statx *st)
{
	return r->mode == st->stx_mode && r->uid == st->stx_uid && r->gid == st->stx_gid;
}

static bool visit_folder(
	struct rw_worker *w, const struct walk_folder *folder, struct walk_entry *entry)
{
	struct rw_scan *scan = w->scan;
	const struct snapshot_record *records = scan->query->before->records;
	struct rw_identity identity = identity_of(entry->st);
	uint32_t here = entry->old, moved;
	char *path;

	if (here != SNAPSHOT_NONE && is_folder(&records[here], &identity)) {
		scan->met[here] = 1;
		entry->mark = mark_of(scan, here, folder->mark & RW_MARK_MOVED);
		if (!is_as_it_was(&records[here], entry->st))
			compare_folder(w, folder, entry, CHANGE_MODE,
				scan_join(folder->path, entry->name));
		return true;
	}
	path = scan_join(folder->path, entry->name);
	moved = find_moved(scan, &identity, path);
	if (moved != SNAPSHOT_NONE) {
		scan->met[moved] = 1;
		entry->old = moved;
		entry->mark = mark_of(scan, moved, RW_MARK_MOVED);
		compare_folder(w, folder, entry, CHANGE_RENAMED, path);
		return true;
	}
	if (here != SNAPSHOT_NONE && S_ISDIR(records[here].mode)) {
		walk_later(scan, path, folder, entry);
		return false;
	}
	entry->old = SNAPSHOT_NONE;
	compare_folder(w, folder, entry, CHANGE_ADDED, path);
	return true;
}

/* ---- the rest ---- */

static void add_new(
	struct rw_worker *w, const struct walk_folder *folder, const struct walk_entry *entry)
{
	struct change *c =
		changes_add(w->side.out, CHANGE_ADDED, scan_join(folder->path, entry->name));

	rw_file_read(w, folder, entry, scan_skipped_len(c->path) == 0, c);
	w->news = w->n_news & (w->n_news - 1)
	                  ? w->news
	                  : mem_grow(w->news, w->n_news ? 2 * w->n_news : 1, sizeof(*w->news));
	w->news[w->n_news++] = (struct rw_new){
		.item = w->side.out->n_items - 1, .identity = identity_of(entry->st)};
}

/* Whether its stamps say all about it. */
static bool is_settled(const struct rw_worker *w, const struct walk_folder *folder,
	const struct walk_entry *entry, const struct snapshot_record *r)
{
	const struct rw_query *q = w->scan->query;
	scoped_mem char *path = NULL;

	if (!rw_is_as_it_was(r, entry->st))
		return false;
	if (!S_ISREG(r->mode))
		return true;
	if (q->full || (snapshot_state(r) & SNAPSHOT_RACY) ||
		(w->scan->doubt && w->scan->doubt[entry->old]))
		return false;
	if (!(folder->mark & RW_MARK_MOVED))
		return true;
	path = scan_join(folder->path, entry->name);
	return rw_touch_of(w->scan, path) != RW_WRITTEN;
}

static void visit_file(
	struct rw_worker *w, const struct walk_folder *folder, struct walk_entry *entry)
{
	const struct snapshot_record *r =
		entry->old == SNAPSHOT_NONE ? NULL : &w->scan->query->before->records[entry->old];

	if (!r || S_ISDIR(r->mode)) {
		if (!(folder->mark & RW_MARK_UNLISTED))
			add_new(w, folder, entry);
		return;
	}
	w->scan->met[entry->old] = 1;
	if (!is_settled(w, folder, entry, r))
		rw_file_compare(w, folder, entry);
}

static bool visit(void *worker, const struct walk_folder *folder, struct walk_entry *entry)
{
	struct rw_worker *w = worker;

	if (w->side.out->n_items >= ITEMS_MAX) {
		scan_note_unread(&w->side, folder->path, -E2BIG);
		return false;
	}
	if (S_ISDIR(entry->st->stx_mode))
		return visit_folder(w, folder, entry);
	visit_file(w, folder, entry);
	return false;
}

static void add_unlisted(struct rw_scan *scan, uint32_t old)
{
	pthread_mutex_lock(&scan->lock);
	scan->unlisted = mem_grow(scan->unlisted, scan->n_unlisted + 1, sizeof(*scan->unlisted));
	scan->unlisted[scan->n_unlisted++] = old;
	pthread_mutex_unlock(&scan->lock);
}

/* It is there, whatever it holds. */
static void fail_entry(struct rw_worker *w, const struct walk_folder *folder,
	const struct walk_entry *entry, int r)
{
	scoped_mem char *path = scan_join(folder->path, entry->name);

	if (r != -EXDEV)
		scan_note_unread(&w->side, path, r);
	if (entry->old == SNAPSHOT_NONE)
		return;
	w->scan->met[entry->old] = 1;
	add_unlisted(w->scan, entry->old);
}

static void fail(
	void *worker, const struct walk_folder *folder, const struct walk_entry *entry, int r)
{
	struct rw_worker *w = worker;

	if (entry) {
		fail_entry(w, folder, entry, r);
		return;
	}
	scan_note_unread(&w->side, folder->path[0] ? folder->path : ".", r);
	if (folder->old != SNAPSHOT_NONE)
		add_unlisted(w->scan, folder->old);
}

/* A write through a mapping leaves no stamp on some filesystems, and one that was under way leaves it late. */
static void doubt_touched(struct rw_scan *scan)
{
	const struct rw_query *q = scan->query;
	struct slice guest = slice_of(q->layer->guest), path;

	for (size_t i = 0; q->seen && q->seen->next(q->seen->data, &i, &path);) {
		uint32_t record;

		if (!path_is_beneath(path, guest))
			continue;
		record = snapshot_find_path(q->before,
			(struct slice){.p = path.p + guest.len, .len = path.len - guest.len});
		if (record == SNAPSHOT_NONE)
			continue;
		if (!scan->doubt)
			scan->doubt = mem_zero(q->before->head->n_records, 1);
		scan->doubt[record] = 1;
	}
}

/* ---- all of it ---- */

/* The root itself: a file that was mounted alone, or the folder's own rights. */
static int compare_root(struct rw_worker *w)
{
	const struct rw_query *q = w->scan->query;
	const struct snapshot_record *r = &q->before->records[0];
	struct walk_folder none = {.path = "", .fd = q->root_fd};
	struct statx st;
	struct walk_entry entry = {.name = ".", .st = &st};

	if (statx(q->root_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
		return -errno;
	w->scan->met[0] = 1;
	if ((r->mode ^ st.stx_mode) & S_IFMT)
		return -ENOTDIR;
	if (S_ISDIR(r->mode)) {
		if (!is_as_it_was(r, &st))
			compare_folder(w, &none, &entry, CHANGE_MODE, mem_dup("."));
		return 1;
	}
	if (!is_settled(w, &none, &entry, r))
		rw_file_compare(w, &none, &entry);
	return 0;
}

static void walk_one_later(const struct folder_walk *walk, struct rw_scan *scan,
	struct changes *out, struct rw_later *l)
{
	const struct snapshot *before = scan->query->before;
	unsigned long long number = l->old;
	bool is_new = map_find(scan->moved, map_int_key(&number)) != NULL;
	struct walk_folder start = {.path = l->path, .old = is_new ? SNAPSHOT_NONE : l->old};
	struct change *c = changes_add(out, is_new ? CHANGE_ADDED : CHANGE_MODE, mem_dup(l->path));

	c->after = l->now;
	if (!is_new) {
		scan->met[l->old] = 1;
		start.mark = mark_of(scan, l->old, l->mark);
		rw_side_of(before, &before->records[l->old], &c->before);
		if (!rw_file_differs(c))
			c->kind = CHANGE_NONE;
	}
	folder_walk_run(walk, &start);
}

/* Too deep in folders made anew: nothing is said of what is in it. */
static void give_up(struct rw_scan *scan, struct rw_worker *first, const struct rw_later *l)
{
	scan_note_unread(&first->side, l->path, -ELOOP);
	scan->met[l->old] = 1;
	add_unlisted(scan, l->old);
}

/* Folders that stand where others stood: what those held is compared with, unless they are elsewhere now. */
static void walk_rest(const struct folder_walk *walk, struct rw_scan *scan, struct rw_worker *first)
{
	for (int round = 0; scan->n_later > 0 && round < ROUNDS_MAX; round++) {
		struct rw_later *later = take(&scan->later);
		size_t n = scan->n_later;

		scan->n_later = 0;
		for (size_t i = 0; i < n; i++) {
			walk_one_later(walk, scan, first->side.out, &later[i]);
			free(later[i].path);
		}
		free(later);
	}
	for (size_t i = 0; i < scan->n_later; i++) {
		give_up(scan, first, &scan->later[i]);
		free(scan->later[i].path);
	}
}

/* Takes what one thread found; what it says of items moves with them. */
static void join(struct rw_scan *scan, struct rw_worker *w, struct rw_new **news, size_t *n_news)
{
	struct changes *out = scan->out, *part = w->side.out;
	size_t base = out->n_items;

	for (size_t i = 0; i < part->n_items; i++)
		*changes_add(out, CHANGE_NONE, NULL) = part->items[i];
	if (w->n_news > 0)
		*news = mem_grow(*news, *n_news + w->n_news, sizeof(**news));
	for (size_t i = 0; i < w->n_news; i++) {
		w->news[i].item += base;
		(*news)[(*n_news)++] = w->news[i];
	}
	if (!out->unread)
		out->unread = take(&part->unread);
	part->n_items = 0; /* they are the other list's now */
	free(w->news);
	changes_free(part);
}

static void scan_done(struct rw_scan *scan)
{
	struct slice key;
	void *path;

	for (size_t i = 0; map_next(scan->moved, &i, &key, &path);)
		free(path);
	map_free(scan->moved);
	map_free(scan->folders);
	free(scan->met);
	free(scan->doubt);
	free(scan->later);
	free(scan->unlisted);
	pthread_mutex_destroy(&scan->lock);
}

int rw_scan(const struct rw_query *query, struct changes *changes, struct err *err)
{
	struct rw_scan scan = {.query = query,
		.out = changes,
		.met = mem_zero(query->before->head->n_records, 1),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.moved = map_new()};
	struct rw_worker workers[POOL_THREADS_MAX];
	void *of[POOL_THREADS_MAX];
	struct folder_walk walk = {.root_fd = query->root_fd,
		.old = query->before,
		.list_all = query->full,
		.visit = visit,
		.fail = fail,
		.workers = of,
		.n_workers = pool_n_threads()};
	scoped_mem struct rw_new *news = NULL;
	size_t n_news = 0;
	int r;

	for (size_t i = 0; i == 0 || i < walk.n_workers; i++) {
		workers[i] = (struct rw_worker){.scan = &scan,
			.side = {.out = new0(struct changes), .budget = HASH_BUDGET}};
		of[i] = &workers[i];
	}
	doubt_touched(&scan);
	r = compare_root(&workers[0]);
	if (r > 0) {
		folder_walk_run(&walk,
			&(struct walk_folder){.path = "", .old = 0, .mark = mark_of(&scan, 0, 0)});
		walk_rest(&walk, &scan, &workers[0]);
	}
	for (size_t i = 0; i < walk.n_workers; i++)
		join(&scan, &workers[i], &news, &n_news);
	if (r >= 0)
		rw_gone_list(&scan, news, n_news);
	scan_done(&scan);
	return r < 0 ? err_set(err, r, "look at it: %m") : 0;
}
