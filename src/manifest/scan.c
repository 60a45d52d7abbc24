/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/journal.h"
#include "manifest/lower.h"
#include "manifest/manifest_internal.h"
#include "util/clock.h"
#include "util/folder_id.h"
#include "util/mem.h"

#define DEPTH_MAX   300          /* folders within folders; each holds two descriptors */
#define ITEMS_MAX   1000000      /* changes below one root */
#define NAMES_MAX   (64 << 20)   /* bytes of names in one folder */
#define HASH_BUDGET (16LL << 30) /* bytes hashed for one root */

static void visit(struct scan *scan, const struct scan_frame *f, const char *below);

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

void scan_note_unseen(struct scan *scan, const char *path, int r)
{
	scan->out->is_partial = true;
	scan_note_unread(scan, path, r);
}

bool scan_is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
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

/* It was put there, or something was made in it, since the sandbox was made; by whom only an apply can say. */
static bool is_younger(const struct scan *scan, int lfd)
{
	struct stat st;

	return fstat(lfd, &st) < 0 ||
	       (changes_is_since(scan->set, clock_ns(st.st_ctim)) &&
		       !journal_is_touched(scan->set->journal, scan->layer->n, &st));
}

/* Where folders have no handles, one that was renamed is known by what it lay in. */
static bool lies_in_younger(const struct scan *scan, const char *base)
{
	if (!change_layer_lacks_handles(scan->layer))
		return false;
	for (const char *slash = strchr(base, '/'); slash; slash = strchr(slash + 1, '/')) {
		scoped_mem char *around = mem_copy(base, (size_t)(slash - base));
		scoped_fd int fd = beneath_open(scan->lower_fd, around, O_RDONLY | O_DIRECTORY);

		if (fd < 0 || is_younger(scan, fd))
			return true;
	}
	return false;
}

/* The lowest of the sandbox's own folders was copied up from what lies below, those over it from one another; one that was
 * made is over nothing that was there then. */
static bool is_another(const struct stack_folder *over, const unsigned char *handle, size_t len)
{
	struct upper_entry lowest;
	bool is_same;

	if (upper_read_dir(over->parts[over->n - 1].fd, &lowest) < 0)
		return true;
	is_same = len == lowest.origin_len && memcmp(handle, lowest.origin, len) == 0;
	upper_done(&lowest);
	return !is_same;
}

/* A rename of a folder leaves the times of what is in it as they were. What was merged is known by its handle, wherever it lies
 * now; what was hidden, was not there, or has no handle, by what it lies in and the folder's own time. */
bool scan_is_unseen(
	const struct scan *scan, int lfd, const struct stack_folder *merged, bool is_around_unseen)
{
	unsigned char handle[UPPER_ORIGIN_MAX];
	size_t len = 0;

	if (scan->layer->n < 0)
		return false; /* an image, or our own view of the host: nobody else changes it */
	if (merged && !scan->layer->is_copied)
		len = upper_handle(lfd, "", handle);
	return len > 0 ? is_another(merged, handle, len)
	               : is_around_unseen || is_younger(scan, lfd);
}

static void visit_folder(
	struct scan *scan, const struct scan_frame *f, struct scan_entry *e, const char *below)
{
	bool merged;
	size_t place = scan->out->n_items;
	scoped_mem char *base = scan_folder_place(scan, f, e, below[0] != '\0', &merged);
	scoped_fd int lfd = base ? beneath_open(scan->lower_fd, base, O_RDONLY | O_DIRECTORY) : -1;
	struct scan_frame child = {.up = &e->at.folder,
		.lfd = lfd,
		.path = e->path,
		.base = lfd < 0 ? NULL : base,
		.merged = merged && lfd >= 0,
		.is_unseen = lfd < 0 ? f->is_unseen
	                             : scan_is_unseen(scan, lfd, merged ? &e->at.folder : NULL,
					       f->is_unseen || lies_in_younger(scan, base)),
		.depth = f->depth + 1};

	if (child.is_unseen && place < scan->out->n_items) /* what it says of the folder itself */
		scan->out->items[place].flags |= CHANGE_UNSEEN;
	if (child.depth > DEPTH_MAX)
		scan_note_unseen(scan, e->path, -ENAMETOOLONG);
	else if (base && lfd < 0 && !scan_is_gone(lfd))
		scan_note_unseen(scan, e->path, lfd);
	else
		visit(scan, &child, below);
}

static void visit_entry(
	struct scan *scan, const struct scan_frame *f, struct scan_entry *e, const char *below)
{
	int r = stack_read(&scan->stack, f->up, e->name, &e->at);
	bool is_gone = r == -ENOENT, is_folder = r == 0 && S_ISDIR(e->at.up.st.st_mode);

	if (r < 0 && !is_gone) {
		scan_note_unseen(scan, e->path, r);
		return;
	}
	if (is_gone && f->merged)
		return;
	if (is_gone || e->at.up.whiteout || (below[0] && !is_folder)) {
		if (e->base && !scan->only_moves)
			scan_entry_hide(scan, e, below, f->is_unseen ? CHANGE_UNSEEN : 0);
		return;
	}
	if (is_folder)
		visit_folder(scan, f, e, below);
	else if (!scan->only_moves)
		scan_entry_file(scan, f, e);
}

static int look_below(const struct scan_frame *f, struct scan_entry *e)
{
	if (fstatat(f->lfd, e->name, &e->low, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	e->base = scan_join(f->base, e->name);
	return 0;
}

static void visit_name(
	struct scan *scan, const struct scan_frame *f, const char *name, const char *below)
{
	struct scan_entry e = {.name = name, .path = scan_join(f->path, name)};
	int r = f->lfd < 0 ? -ENOENT : look_below(f, &e);

	if (r == 0 || scan_is_gone(r))
		visit_entry(scan, f, &e, below);
	else
		scan_note_unseen(scan, e.path, r); /* so it is unknown what became of it */
	stack_entry_done(&e.at);
	free(e.path);
	free(e.base);
}

struct visit {
	struct scan *scan;
	const struct scan_frame *f;
};

static bool may_be_folder(const struct stack_folder *up, const char *name)
{
	struct stat st;

	for (size_t i = 0; i < up->n; i++) {
		if (fstatat(up->parts[i].fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return S_ISDIR(st.st_mode);
		if (!scan_is_gone(-errno))
			return true; /* so it is looked at, which tells */
	}
	return false;
}

static int on_upper_name(void *data, const char *name)
{
	struct visit *v = data;

	if (v->scan->out->n_items >= ITEMS_MAX)
		return -E2BIG;
	if (v->scan->only_moves && !may_be_folder(v->f->up, name))
		return 0;
	visit_name(v->scan, v->f, name, "");
	return 0;
}

/* Below an opaque folder, what the upper does not name is hidden. */
static int on_lower_name(void *data, const char *name)
{
	struct visit *v = data;

	if (!stack_has(v->f->up, name))
		visit_name(v->scan, v->f, name, "");
	return 0;
}

static void visit(struct scan *scan, const struct scan_frame *f, const char *below)
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
	r = stack_each_name(f->up, on_upper_name, &v);
	if (r >= 0 && f->lfd >= 0 && !f->merged && !scan->only_moves)
		r = scan_each_name(f->lfd, on_lower_name, &v);
	if (r < 0)
		scan_note_unseen(scan, f->path, r);
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
	stack_done(&scan->stack);
	scoped_close(&scan->lower_fd);
}

static bool top_is_another(const struct scan *scan)
{
	char now[FOLDER_ID_SIZE];

	if (scan->layer->n >= 0 && change_layer_lacks_handles(scan->layer))
		return is_younger(scan, scan->lower_fd);
	folder_id_of(scan->lower_fd, now);
	return folder_id_differs(scan->layer->folder_id, now);
}

static int run(struct scan *scan, const char *below, struct err *err)
{
	const struct change_layer *l = scan->layer;
	struct stack_folder top = {0};
	struct scan_frame f;
	int r = stack_open(l, &scan->stack);

	if (r < 0)
		return err_set(err, r, "read '%s': %m", l->upper);
	scan->lower_fd = lower_open_layer(l);
	if (scan->lower_fd < 0)
		return err_set(err, scan->lower_fd, "read what lies below '%s': %m", l->guest);
	r = stack_top(&scan->stack, &top);
	if (r < 0) {
		stack_folder_done(&top);
		return err_set(err, r, "read '%s': %m", l->upper);
	}
	f = (struct scan_frame){.up = &top,
		.lfd = scan->lower_fd,
		.path = "",
		.base = "",
		.merged = !top.opaque,
		.is_unseen = top_is_another(scan)};
	/* Whether a folder is a new one or what it was depends on where the old one went. */
	scan->only_moves = true;
	visit(scan, &f, below);
	scan->only_moves = false;
	visit(scan, &f, below);
	scan_hidden_list(scan);
	stack_folder_done(&top);
	return 0;
}

int scan_layer(const struct change_set *set, const struct changes_query *query,
	struct changes *changes, struct err *err)
{
	struct scan scan = {.set = set,
		.layer = query->layer,
		.out = changes,
		.count_only = query->count_only,
		.lower_fd = -1,
		.budget = HASH_BUDGET,
		.moved = map_new()};
	int r = run(&scan, query->below, err);

	scan_done(&scan);
	return r;
}
