/* SPDX-License-Identifier: Apache-2.0 */
/* One name of an upper that is no folder: compared with what is below. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/journal.h"
#include "manifest/manifest_internal.h"
#include "util/mem.h"

void scan_entry_hide(
	struct scan *scan, const struct scan_entry *e, const char *below, unsigned flags)
{
	scan->hidden = mem_grow(scan->hidden, scan->n_hidden + 1, sizeof(*scan->hidden));
	scan->hidden[scan->n_hidden++] = (struct scan_hidden){
		.path = below[0] ? scan_join(e->path, below) : mem_dup(e->path),
		.base = below[0] ? scan_join(e->base, below) : mem_dup(e->base),
		.flags = flags};
}

/* 1: it is there. 0: it is not, or the host has put something else in its place. */
static int is_below(const struct scan *scan, const char *path, mode_t type)
{
	struct stat st;
	int r = beneath_stat(scan->lower_fd, path, &st);

	if (r < 0)
		return scan_is_gone(r) ? 0 : r;
	return (st.st_mode & S_IFMT) == type;
}

/* The path of before that a redirect means: where its name is relative, beside what the folder was. */
static char *find_before(const struct scan *scan, const struct scan_frame *f, const char *redirect)
{
	scoped_mem char *folder = NULL;

	if (redirect[0] == '/')
		return redirect[1] ? mem_dup(redirect + 1) : NULL;
	if (!f->base || !f->merged)
		return NULL;
	folder = journal_before(scan->set->journal, scan->layer->n, f->base);
	return scan_join(folder, redirect);
}

int scan_entry_follow(struct scan *scan, const struct scan_frame *f, const char *redirect,
	mode_t type, char **ret)
{
	scoped_mem char *before = find_before(scan, f, redirect), *now = NULL;
	int r;

	*ret = NULL;
	if (!before)
		return 0;
	now = journal_now(scan->set->journal, scan->layer->n, before);
	r = is_below(scan, now, type);
	if (r > 0)
		*ret = take(&now);
	if (r != 0)
		return r < 0 ? r : 0;
	r = is_below(scan, before, type); /* the host took it back */
	if (r > 0)
		*ret = take(&before);
	return r < 0 ? r : 0;
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

/* A copy that the host made of what was there, such as of the whole folder. */
static bool holds_what_was_seen(
	const struct scan *scan, int dirfd, const char *name, const char *path)
{
	const struct journal *journal = scan->set->journal;
	const char *seen = journal_find_content(journal, scan->layer->n, slice_of(path));
	int64_t budget = CONTENT_HASH_MAX;
	char sha256[DIGEST_HEX_SIZE];
	struct stat st;
	scoped_fd int fd = -1;

	if (!seen || journal_find(journal, scan->layer->n, slice_of(path), false))
		return false; /* nobody knows, or an apply put it there */
	fd = content_open(dirfd, name, &st);
	return fd >= 0 && content_hash(fd, &budget, sha256) == 0 && strcmp(seen, sha256) == 0;
}

/* The host, or an apply, may have put another file there. */
static bool is_origin(const struct scan *scan, const struct upper_entry *up, const char *path,
	bool *ret_is_unsure)
{
	unsigned char handle[UPPER_ORIGIN_MAX];
	const char *name;
	scoped_fd int dirfd = beneath_open_parent(scan->lower_fd, path, &name);
	size_t len = dirfd < 0 || scan->layer->is_copied ? 0 : upper_handle(dirfd, name, handle);

	*ret_is_unsure = len == 0 || up->origin_len == 0;
	if (*ret_is_unsure || (len == up->origin_len && memcmp(handle, up->origin, len) == 0))
		return true;
	return holds_what_was_seen(scan, dirfd, name, path);
}

/* Finds the file below that holds the data of a file without any; c->data stays NULL where it is gone. */
static int find_data(
	struct scan *scan, const struct scan_frame *f, const struct scan_entry *e, struct change *c)
{
	int r;

	if (e->at.up.redirect) {
		r = scan_entry_follow(scan, f, e->at.up.redirect, S_IFREG, &c->data);
		/* At its own place it is compared with itself. */
		if (c->data && strcmp(c->data, e->path) != 0 &&
			!is_origin(scan, &e->at.up, c->data, &c->is_data_unsure))
			free(take(&c->data));
		return r;
	}
	c->data = f->merged && e->base && S_ISREG(e->low.st_mode) ? mem_dup(e->base) : NULL;
	return 0;
}

/* Where apply and diff find it again. */
static void keep_place(struct change *c, const struct scan_entry *e)
{
	c->own_layer = e->at.layer;
	if (e->at.layer > 0)
		c->own = mem_dup(e->at.path);
	c->stored_layer = e->at.stored_layer;
	c->stored = e->at.stored ? mem_dup(e->at.stored) : NULL;
}

static void read_after(struct scan *scan, const struct scan_frame *f, const struct scan_entry *e,
	bool hash, struct change *c)
{
	bool whole = !e->at.up.metacopy;
	struct scan_data data;
	int r;

	scan_side_read(scan,
		&(struct scan_file){
			e->at.dirfd, e->name, e->path, &e->at.up.st, e->at.layer, whole},
		hash && whole, &c->after);
	keep_place(c, e);
	if (whole)
		return;
	r = e->at.stored ? 0 : find_data(scan, f, e, c);
	data.root_fd = e->at.stored ? scan->stack.fds[e->at.stored_layer] : scan->lower_fd;
	data.path = e->at.stored ? e->at.stored : c->data;
	if (data.path) {
		scan_side_read_data(scan, &data, e->path, hash, &c->after, &c->data_ctime_ns);
		return;
	}
	if (r < 0)
		scan_note_unseen(scan, e->path, r);
	c->flags |= CHANGE_LOST;
	c->after.sha256[0] = '\0';
}

static bool is_same_content(const struct change *c, const struct scan_entry *e)
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

bool scan_entry_differs(struct scan *scan, struct change *c)
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
static void compare_files(struct scan *scan, const struct scan_frame *f, const struct scan_entry *e)
{
	struct change *c = scan_add(scan, CHANGE_CHANGED, mem_dup(e->path));

	if (f->is_unseen)
		c->flags |= CHANGE_UNSEEN;
	if (strcmp(e->base, e->path) != 0)
		c->from = mem_dup(e->base);
	scan_side_read(
		scan, &(struct scan_file){f->lfd, e->name, e->path, &e->low}, true, &c->before);
	read_after(scan, f, e, true, c);
	if (!is_same_content(c, e)) {
		(void)scan_entry_differs(scan, c); /* only its flags are of use */
		if (!c->data)
			keep_origin(scan, &e->at.up, NULL, scan->out->n_items - 1);
		return;
	}
	c->kind = scan_entry_differs(scan, c) ? CHANGE_MODE : CHANGE_NONE;
}

void scan_entry_file(struct scan *scan, const struct scan_frame *f, const struct scan_entry *e)
{
	struct change *c;

	if (e->base && !S_ISDIR(e->low.st_mode)) {
		compare_files(scan, f, e);
		return;
	}
	if (e->base)
		scan_entry_hide(scan, e, "", CHANGE_REPLACED | (f->is_unseen ? CHANGE_UNSEEN : 0));
	c = scan_add(scan, CHANGE_ADDED, mem_dup(e->path));
	if (f->is_unseen)
		c->flags |= CHANGE_UNSEEN;
	read_after(scan, f, e, scan_skipped_len(e->path) == 0, c);
	keep_origin(scan, &e->at.up, c->data, scan->out->n_items - 1);
}
