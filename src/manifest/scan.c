/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/journal.h"
#include "manifest/manifest_internal.h"
#include "util/mem.h"

#define DEPTH_MAX   300          /* folders within folders; each holds two descriptors */
#define ITEMS_MAX   1000000      /* changes below one root */
#define NAMES_MAX   (64 << 20)   /* bytes of names in one folder */
#define HASH_BUDGET (16LL << 30) /* bytes hashed for one root */

/* A folder of the upper being visited. */
struct frame {
	int ufd, lfd;     /* it, and the one below that belongs to it or -1 */
	const char *path; /* "" at the top */
	const char *base; /* path of the one below, NULL without */
	bool merged;      /* the one below shows through */
	bool xwhiteouts;
	int depth;
};

/* One name in it. */
struct entry {
	const char *name;
	char *path, *base; /* base: the same name below, NULL where there is none */
	struct upper_entry up;
	struct stat low; /* where base is set */
};

static void visit(struct scan *scan, const struct frame *f, const char *below);

char *scan_join(const char *folder, const char *name)
{
	if (folder[0] == '\0' || strcmp(folder, ".") == 0)
		return mem_dup(name);
	return mem_printf("%s/%s", folder, name);
}

size_t scan_skipped_len(const char *path)
{
	static const char *const names[] = {".git", "node_modules"};

	for (const char *at = path; *at;) {
		size_t len = strcspn(at, "/");

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (len == strlen(names[i]) && memcmp(at, names[i], len) == 0)
				return (size_t)(at - path) + len;
		at += len + (at[len] == '/');
	}
	return 0;
}

struct change *scan_add(struct scan *scan, enum change_kind kind, char *path)
{
	return changes_add(scan->out, kind, path);
}

void scan_note_unread(struct scan *scan, const char *path, int r)
{
	if (!scan->out->unread)
		scan->out->unread = mem_printf("%s: %s", path, strerror(-r));
}

static int read_names(int dirfd, struct str *names)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		r = -errno;
		scoped_close(&fd);
		return r;
	}
	while (names->len < NAMES_MAX && (errno = 0, e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			str_add(names, e->d_name, strlen(e->d_name) + 1);
	if (errno)
		r = -errno;
	else if (names->len >= NAMES_MAX)
		r = -E2BIG;
	closedir(dir);
	return r;
}

int scan_each_name(int dirfd, int (*on_name)(void *data, const char *name), void *data)
{
	scoped_str struct str names = {0};
	int r = read_names(dirfd, &names);

	for (size_t i = 0; r >= 0 && i < names.len; i += strlen(names.p + i) + 1)
		r = on_name(data, names.p + i);
	return r;
}

static void hide_below(struct scan *scan, const struct entry *e, const char *below, unsigned flags)
{
	scan->hidden = mem_grow(scan->hidden, scan->n_hidden + 1, sizeof(*scan->hidden));
	scan->hidden[scan->n_hidden++] = (struct scan_hidden){
		.path = below[0] ? scan_join(e->path, below) : mem_dup(e->path),
		.base = below[0] ? scan_join(e->base, below) : mem_dup(e->base),
		.flags = flags};
}

/* Where a path below is after the renames that were applied: the path asked for where it came to path, or where
 * nothing is at its old place any more. */
static char *find_applied(struct scan *scan, const char *at, const char *path)
{
	const struct journal *journal = scan->set->journal;
	scoped_mem char *moved = NULL;
	const struct journal_entry *done;
	struct stat st;

	if (!journal_moved(journal, scan->layer->n, slice_of(at), &moved) ||
		beneath_stat(scan->lower_fd, moved, &st) < 0)
		return NULL;
	if (beneath_stat(scan->lower_fd, at, &st) < 0)
		return take(&moved);
	/* Something is at the old place again, or was swapped there. */
	done = journal_find(journal, scan->layer->n, slice_of(path), false);
	if (strcmp(moved, path) == 0 && done && done->act == JOURNAL_APPLIED)
		return take(&moved);
	return NULL;
}

/* Where below a redirect of the entry at path leads: NULL where it leads to nothing that is there. */
static char *follow_redirect(
	struct scan *scan, const struct frame *f, const char *redirect, const char *path)
{
	scoped_mem char *at = NULL;
	char *applied;
	struct stat st;

	if (redirect[0] == '/')
		at = mem_dup(redirect + 1);
	else if (f->base && f->merged)
		at = scan_join(f->base, redirect);
	if (!at || !at[0])
		return NULL;
	applied = find_applied(scan, at, path);
	if (applied)
		return applied;
	return beneath_stat(scan->lower_fd, at, &st) == 0 ? take(&at) : NULL;
}

static void keep_origin(
	struct scan *scan, const struct upper_entry *up, const char *data, size_t item)
{
	struct scan_origin *o;
	const char *name;
	scoped_fd int dirfd = -1;

	scan->origins = mem_grow(scan->origins, scan->n_origins + 1, sizeof(*scan->origins));
	o = &scan->origins[scan->n_origins];
	*o = (struct scan_origin){.item = item, .len = up->origin_len};
	memcpy(o->handle, up->origin, up->origin_len);
	if (data) {
		dirfd = beneath_open_parent(scan->lower_fd, data, &name);
		o->len = dirfd < 0 ? 0 : upper_handle(dirfd, name, o->handle);
	}
	if (o->len > 0)
		scan->n_origins++;
}

/* The file below that holds the data of a file without any. NULL where it is gone. */
static char *find_data(struct scan *scan, const struct frame *f, const struct entry *e)
{
	if (e->up.redirect)
		return follow_redirect(scan, f, e->up.redirect, e->path);
	return f->merged ? mem_dup(e->base) : NULL;
}

static void read_after(struct scan *scan, const struct frame *f, const struct entry *e, bool hash,
	struct change *c)
{
	bool whole = !e->up.metacopy;

	scan_side_read(scan, f->ufd, e->name, &e->up.st, hash && whole, e->path, &c->after);
	if (whole)
		return;
	c->data = find_data(scan, f, e);
	if (c->data) {
		scan_side_read_data(scan, c->data, e->path, hash, &c->after);
		return;
	}
	c->flags |= CHANGE_LOST;
	c->after.sha256[0] = '\0';
}

static bool is_same_content(const struct change *c, const struct entry *e)
{
	const struct change_side *a = &c->before, *b = &c->after;

	if ((a->mode ^ b->mode) & S_IFMT)
		return false;
	if (S_ISLNK(a->mode))
		return a->target && b->target && strcmp(a->target, b->target) == 0;
	if (!S_ISREG(a->mode))
		return true;
	if (c->data && e->base && strcmp(c->data, e->base) == 0)
		return true;
	return a->size == b->size && a->sha256[0] && strcmp(a->sha256, b->sha256) == 0;
}

/* What differs beside the content: flags, and whether anything does. */
static bool differs_beside(struct scan *scan, struct change *c)
{
	const struct change_side *a = &c->before, *b = &c->after;

	c->flags |= scan_side_compare_owner(scan, a, b);
	if (strcmp(a->attributes, b->attributes) != 0)
		c->flags |= CHANGE_ATTRIBUTES;
	if (!S_ISLNK(b->mode) && ((a->mode ^ b->mode) & 07777))
		return true;
	return c->flags & (CHANGE_OWNER | CHANGE_ATTRIBUTES);
}

/* A name that is no folder on either side. */
static void compare_files(struct scan *scan, const struct frame *f, const struct entry *e)
{
	struct change *c = scan_add(scan, CHANGE_CHANGED, mem_dup(e->path));

	if (strcmp(e->base, e->path) != 0)
		c->from = mem_dup(e->base);
	scan_side_read(scan, f->lfd, e->name, &e->low, true, e->path, &c->before);
	read_after(scan, f, e, true, c);
	if (!is_same_content(c, e)) {
		(void)differs_beside(scan, c); /* only its flags are of use */
		return;
	}
	c->kind = differs_beside(scan, c) ? CHANGE_MODE : CHANGE_NONE;
}

static void visit_file(struct scan *scan, const struct frame *f, const struct entry *e)
{
	struct change *c;

	if (e->base && !S_ISDIR(e->low.st_mode)) {
		compare_files(scan, f, e);
		return;
	}
	if (e->base)
		hide_below(scan, e, "", CHANGE_REPLACED);
	c = scan_add(scan, CHANGE_ADDED, mem_dup(e->path));
	read_after(scan, f, e, scan_skipped_len(e->path) == 0, c);
	keep_origin(scan, &e->up, c->data, scan->out->n_items - 1);
}

static void note_folder(
	struct scan *scan, const struct entry *e, enum change_kind kind, const char *from)
{
	struct change *c = scan_add(scan, kind, mem_dup(e->path));

	if (from)
		c->from = mem_dup(from);
	if (kind != CHANGE_ADDED)
		scan_side_read(scan, -1, e->name, &e->low, false, e->path, &c->before);
	scan_side_read(scan, -1, e->name, &e->up.st, false, e->path, &c->after);
	if (kind == CHANGE_ADDED)
		return;
	if (!differs_beside(scan, c) && kind == CHANGE_MODE)
		c->kind = CHANGE_NONE;
}

/* A folder that a redirect brought here; NULL where none did, or where it is at its own place (again). */
static char *find_moved(
	struct scan *scan, const struct frame *f, const struct entry *e, struct stat *ret_st)
{
	scoped_mem char *moved = NULL;

	if (e->up.redirect)
		moved = follow_redirect(scan, f, e->up.redirect, e->path);
	if (!moved || beneath_stat(scan->lower_fd, moved, ret_st) < 0 || !S_ISDIR(ret_st->st_mode))
		return NULL;
	return take(&moved);
}

/* A folder from elsewhere below: what it hides here is gone, what it holds is compared with its old place. */
static void place_moved(
	struct scan *scan, struct entry *e, const char *moved, const struct stat *st, bool outside)
{
	bool hid_folder = e->base && S_ISDIR(e->low.st_mode);

	void **place = map_slot(scan->moved, slice_of(moved));

	free(*place);
	*place = mem_dup(e->path);
	if (outside || scan->only_moves)
		return;
	if (e->base)
		hide_below(scan, e, "", CHANGE_REPLACED | (hid_folder ? CHANGE_QUIET : 0));
	e->low = *st;
	note_folder(scan, e, CHANGE_RENAMED, moved);
}

/* The folder below was renamed away, and this is a new one under its old name. */
static bool is_elsewhere(const struct scan *scan, const struct entry *e)
{
	const char *now = map_find(scan->moved, slice_of(e->base));

	return now && strcmp(now, e->path) != 0;
}

/* Notes how a folder came to be at its path. Returns the path below that belongs to it, or NULL. */
static char *place_folder(
	struct scan *scan, const struct frame *f, struct entry *e, bool outside, bool *ret_merged)
{
	struct stat st;
	scoped_mem char *moved = find_moved(scan, f, e, &st);

	*ret_merged = true;
	if (moved && (!e->base || strcmp(moved, e->base) != 0)) {
		place_moved(scan, e, moved, &st, outside);
		return take(&moved);
	}
	*ret_merged = moved || (f->merged && !e->up.opaque && !e->up.redirect);
	if (scan->only_moves)
		return e->base && S_ISDIR(e->low.st_mode) ? mem_dup(e->base) : NULL;
	if (e->base && S_ISDIR(e->low.st_mode) && !is_elsewhere(scan, e)) {
		if (!outside)
			note_folder(scan, e, CHANGE_MODE,
				strcmp(e->base, e->path) != 0 ? e->base : NULL);
		return mem_dup(e->base);
	}
	if (e->base && !outside)
		hide_below(scan, e, "", CHANGE_REPLACED);
	if (!outside)
		note_folder(scan, e, CHANGE_ADDED, NULL);
	*ret_merged = false;
	return NULL;
}

static void visit_folder(
	struct scan *scan, const struct frame *f, struct entry *e, const char *below)
{
	bool merged;
	scoped_mem char *base = place_folder(scan, f, e, below[0] != '\0', &merged);
	scoped_fd int ufd =
		openat(f->ufd, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	scoped_fd int lfd = base ? beneath_open(scan->lower_fd, base, O_RDONLY | O_DIRECTORY) : -1;
	struct frame child = {.ufd = ufd,
		.lfd = lfd,
		.path = e->path,
		.base = lfd < 0 ? NULL : base,
		.merged = merged && lfd >= 0,
		.xwhiteouts = e->up.has_xwhiteouts,
		.depth = f->depth + 1};

	if (ufd < 0)
		scan_note_unread(scan, e->path, -errno);
	else if (child.depth > DEPTH_MAX)
		scan_note_unread(scan, e->path, -ENAMETOOLONG);
	else
		visit(scan, &child, below);
}

static void visit_entry(
	struct scan *scan, const struct frame *f, struct entry *e, const char *below)
{
	int r = upper_read(f->ufd, e->name, f->xwhiteouts, &e->up);
	bool is_gone = r == -ENOENT, is_folder = r == 0 && S_ISDIR(e->up.st.st_mode);

	if (r < 0 && !is_gone) {
		scan_note_unread(scan, e->path, r);
		return;
	}
	if (is_gone && f->merged)
		return;
	if (is_gone || e->up.whiteout || (below[0] && !is_folder)) {
		if (e->base && !scan->only_moves)
			hide_below(scan, e, below, 0);
		return;
	}
	if (is_folder)
		visit_folder(scan, f, e, below);
	else if (!scan->only_moves)
		visit_file(scan, f, e);
}

static void visit_name(
	struct scan *scan, const struct frame *f, const char *name, const char *below)
{
	struct entry e = {.name = name, .path = scan_join(f->path, name)};

	if (f->lfd >= 0 && fstatat(f->lfd, name, &e.low, AT_SYMLINK_NOFOLLOW) == 0)
		e.base = scan_join(f->base, name);
	visit_entry(scan, f, &e, below);
	upper_done(&e.up);
	free(e.path);
	free(e.base);
}

struct visit {
	struct scan *scan;
	const struct frame *f;
};

static bool is_folder_name(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int on_upper_name(void *data, const char *name)
{
	struct visit *v = data;

	if (v->scan->out->n_items >= ITEMS_MAX)
		return -E2BIG;
	if (v->scan->only_moves && !is_folder_name(v->f->ufd, name))
		return 0;
	visit_name(v->scan, v->f, name, "");
	return 0;
}

/* Below an opaque folder, what the upper does not name is hidden. */
static int on_lower_name(void *data, const char *name)
{
	struct visit *v = data;
	struct stat st;

	if (fstatat(v->f->ufd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		visit_name(v->scan, v->f, name, "");
	return 0;
}

static void visit(struct scan *scan, const struct frame *f, const char *below)
{
	struct visit v = {.scan = scan, .f = f};
	int r;

	if (below[0]) {
		const char *slash = strchr(below, '/');
		scoped_mem char *name =
			slash ? mem_copy(below, (size_t)(slash - below)) : mem_dup(below);

		visit_name(scan, f, name, slash ? slash + 1 : "");
		return;
	}
	r = scan_each_name(f->ufd, on_upper_name, &v);
	if (r >= 0 && f->lfd >= 0 && !f->merged && !scan->only_moves)
		r = scan_each_name(f->lfd, on_lower_name, &v);
	if (r < 0)
		scan_note_unread(scan, f->path, r);
}

int scan_open_lower(const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	scoped_fd int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	scoped_fd int tree = -1;

	if (fd < 0)
		return -errno;
	tree = (int)syscall(
		SYS_open_tree, fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	fd = (scoped_close(&fd), -1);
	if (tree < 0)
		return -errno;
	fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : take_fd(&fd);
}

static void scan_done(struct scan *scan)
{
	struct slice key;
	void *path;

	for (size_t i = 0; i < scan->n_hidden; i++) {
		free(scan->hidden[i].path);
		free(scan->hidden[i].base);
	}
	free(scan->hidden);
	free(scan->origins);
	for (size_t i = 0; map_next(scan->moved, &i, &key, &path);)
		free(path);
	map_free(scan->moved);
	scoped_close(&scan->upper_fd);
	scoped_close(&scan->lower_fd);
}

static int run(struct scan *scan, const char *below, struct err *err)
{
	const struct change_layer *l = scan->layer;
	struct upper_entry top;
	struct frame f;
	int r;

	scan->upper_fd = open(l->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (scan->upper_fd < 0)
		return err_set(err, -errno, "read '%s': %m", l->upper);
	scan->lower_fd = scan_open_lower(l->lower);
	if (scan->lower_fd < 0)
		return err_set(err, scan->lower_fd, "read '%s': %m", l->lower);
	r = upper_read_dir(scan->upper_fd, &top);
	if (r < 0)
		return err_set(err, r, "read '%s': %m", l->upper);
	f = (struct frame){.ufd = scan->upper_fd,
		.lfd = scan->lower_fd,
		.path = "",
		.base = "",
		.merged = !top.opaque,
		.xwhiteouts = top.has_xwhiteouts};
	upper_done(&top);
	/* Whether a folder is a new one or what it was depends on where the old one went. */
	scan->only_moves = true;
	visit(scan, &f, below);
	scan->only_moves = false;
	visit(scan, &f, below);
	scan_hidden_list(scan);
	return 0;
}

int scan_layer(const struct change_set *set, const struct changes_query *query,
	struct changes *changes, struct err *err)
{
	struct scan scan = {.set = set,
		.layer = query->layer,
		.out = changes,
		.count_only = query->count_only,
		.upper_fd = -1,
		.lower_fd = -1,
		.budget = HASH_BUDGET,
		.moved = map_new()};
	int r = run(&scan, query->below, err);

	scan_done(&scan);
	return r;
}
