/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/apply_plan.h"
#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/host_folder.h"
#include "manifest/journal.h"
#include "manifest/scan.h"
#include "manifest/upper.h"
#include "util/id.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

/* A rename on the host, as it was done: later paths are found by it. */
struct done_rename {
	char *from, *to;
};

struct apply {
	struct change_set *set;
	const struct changes *changes;
	const struct change_layer *layer;
	const struct apply_options *options;
	struct apply_item *items;
	struct host_folder *host;
	int upper_fd, lower_fd;
	struct map *new_folders; /* path to its place in the list, counted from 1 */
	struct map *removals;    /* likewise, of what was taken away */
	struct done_rename *renames;
	size_t n_renames;
};

typedef int apply_act(struct apply *a, size_t i);

static bool is_regular(const struct change *c)
{
	return S_ISREG(c->after.mode);
}

static bool is_folder(const struct change *c)
{
	return S_ISDIR(c->after.mode ? c->after.mode : c->before.mode);
}

/* The disk or this process is at its end: going on would only repeat it. */
static bool is_fatal(int r)
{
	switch (-r) {
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case EROFS:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return true;
	default:
		return false;
	}
}

static char *reason_text(int r)
{
	switch (-r) {
	case EEXIST:
		return mem_dup("something else is there on the host");
	case ENOTEMPTY:
		return mem_dup("the host's folder holds more than the sandbox saw");
	case ELOOP:
		return mem_dup("a link is in the way on the host");
	case EXDEV:
		return mem_dup("another file system is mounted there on the host");
	case ENOENT:
		return mem_dup("its folder is not there on the host");
	case ENOTDIR:
		return mem_dup("its folder is no folder on the host");
	case ESTALE:
		return mem_dup("its data was below and is gone");
	default:
		return mem_dup(strerror(-r));
	}
}

static void set_result(struct apply_item *item, enum apply_result result, char *text)
{
	if (text) {
		free(item->text);
		item->text = text;
	}
	item->result = result;
}

static void add_loss(struct str *lost, const char *what)
{
	str_puts(lost, lost->len > 0 ? "; " : "without ");
	str_puts(lost, what);
}

static void set_done(struct apply *a, size_t i, struct str *lost)
{
	struct apply_item *item = &a->items[i];
	bool less = lost && lost->len > 0;

	set_result(item, less ? APPLY_LESS : APPLY_DONE, less ? str_take(lost) : NULL);
}

/* Where a path of the folder as it was is on the host now. The caller frees it. */
static char *now_at(const struct apply *a, const char *path)
{
	char *at = mem_dup(path);

	for (size_t i = 0; i < a->n_renames; i++) {
		const struct done_rename *rn = &a->renames[i];
		char *next;

		if (!path_is_beneath(slice_of(at), slice_of(rn->from)))
			continue;
		next = mem_printf("%s%s", rn->to, at + strlen(rn->from));
		free(at);
		at = next;
	}
	return at;
}

static const char *base_of(const struct change *c)
{
	return c->from ? c->from : c->path;
}

/* Opens the file that holds the data of a change. */
static int open_data(const struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	scoped_mem char *at = NULL;
	int fd;

	if (a->items[i].data_fd >= 0)
		return dup(a->items[i].data_fd);
	at = c->data ? now_at(a, c->data) : NULL;
	fd = beneath_open(c->data ? a->lower_fd : a->upper_fd, at ? at : c->path,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	return fd == -ENOENT && c->data ? -ESTALE : fd;
}

static int make_folder(struct apply *a, size_t i);

/* Makes the new folders that a path lies in. */
static int make_parents(struct apply *a, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct slice parent = {.p = path, .len = (size_t)(slash - path)};
		uintptr_t place = (uintptr_t)map_find(a->new_folders, parent);
		int r;

		if (place == 0 || a->items[place - 1].result == APPLY_DONE)
			continue;
		r = make_folder(a, place - 1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A folder may take a file's place where that file went away in the sandbox too. */
static bool may_replace(const struct apply *a, const char *path)
{
	uintptr_t place = (uintptr_t)map_find(a->removals, slice_of(path));

	return place != 0 && a->items[place - 1].result != APPLY_REFUSED;
}

static int make_folder(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	bool replace = may_replace(a, c->path);
	uintptr_t place = (uintptr_t)map_find(a->removals, slice_of(c->path));
	int r = host_folder_make(a->host, c->path, replace);

	if (r < 0)
		return r;
	if (replace && !S_ISDIR(a->changes->items[place - 1].before.mode))
		set_done(a, place - 1, NULL);
	set_done(a, i, NULL);
	return 0;
}

static void list_losses(const struct change *c, int attributes_fd, struct str *lost)
{
	scoped_str struct str names = {0};

	if (c->after.mode & 06000)
		add_loss(lost, "its set-id bits");
	if (c->flags & CHANGE_OWNER)
		add_loss(lost, "its owner");
	if (content_rights_attributes(attributes_fd, &names) == 0 && names.len > 0)
		add_loss(lost, names.p);
}

/* Writes a regular file with everything that may come over. */
static int write_file(struct apply *a, size_t i, bool replace, struct str *lost)
{
	const struct change *c = &a->changes->items[i];
	scoped_fd int data = open_data(a, i);
	scoped_fd int own = beneath_open(a->upper_fd, c->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	struct host_folder_source source = {.data = data, .attributes = own, .mode = c->after.mode};
	struct stat st;

	if (data < 0 || own < 0)
		return data < 0 ? data : own;
	if (fstat(data, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADF;
	list_losses(c, own, lost);
	return host_folder_put_file(a->host, c->path, &source, replace);
}

/* Whether a link's text leads out of the folder: said, not judged. */
static bool leads_out(const struct apply *a, const struct change *c)
{
	scoped_str struct str at = {0}, to = {0};
	const char *slash = strrchr(c->path, '/');
	struct slice parent = {.p = c->path, .len = slash ? (size_t)(slash - c->path) : 0};

	path_resolve(slice_of(a->changes->root), parent, &at);
	path_resolve(str_slice(&at), slice_of(c->after.target), &to);
	return !path_is_beneath(str_slice(&to), slice_of(a->changes->root));
}

static int write_link(struct apply *a, size_t i, bool replace)
{
	const struct change *c = &a->changes->items[i];
	int r;

	if (!c->after.target)
		return -EBADF;
	r = host_folder_put_link(a->host, c->path, c->after.target, replace);
	if (r == 0 && leads_out(a, c))
		set_result(
			&a->items[i], APPLY_DONE, mem_dup("a link that leads out of the folder"));
	return r;
}

/* Only mode, owner or attributes differ from what the host has at path. */
static int write_rights(struct apply *a, size_t i, struct str *lost)
{
	const struct change *c = &a->changes->items[i];

	/* A file with other names on the host gets one of its own, as it did in the sandbox. */
	if (is_regular(c) && ((c->flags & CHANGE_ATTRIBUTES) || c->before.has_other_names))
		return write_file(a, i, true, lost);
	if (c->flags & CHANGE_OWNER)
		add_loss(lost, "its owner");
	if ((c->after.mode & 06000) && !is_folder(c))
		add_loss(lost, "its set-id bits");
	if (S_ISLNK(c->after.mode) || !((c->before.mode ^ c->after.mode) & 01777))
		return 0;
	return host_folder_set_mode(a->host, c->path, c->after.mode);
}

static int put_item(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	bool replace = c->kind == CHANGE_CHANGED;
	scoped_str struct str lost = {0};
	int r = make_parents(a, c->path);

	if (r == 0 && c->kind == CHANGE_MODE)
		r = write_rights(a, i, &lost);
	else if (r == 0 && S_ISLNK(c->after.mode))
		r = write_link(a, i, replace);
	else if (r == 0)
		r = write_file(a, i, replace, &lost);
	if (r == 0 && a->items[i].result == APPLY_WAITING)
		set_done(a, i, &lost);
	return r;
}

static int remove_item(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	scoped_mem char *at = now_at(a, base_of(c));
	int r = host_folder_remove(a->host, at, S_ISDIR(c->before.mode));

	if (r == 0)
		set_done(a, i, NULL);
	return r;
}

/* Folders that still hold what is to be renamed out of them get a second turn. */
static int remove_early(struct apply *a, size_t i)
{
	int r = remove_item(a, i);

	return r == -ENOTEMPTY ? 0 : r;
}

static int rename_on_host(struct apply *a, const char *from, const char *to)
{
	int r = journal_add_rename(a->set->journal, a->layer->n, slice_of(from), slice_of(to));

	if (r == 0)
		r = journal_sync(a->set->journal);
	if (r == 0)
		r = host_folder_rename(a->host, from, to);
	if (r < 0)
		return r;
	a->renames = mem_grow(a->renames, a->n_renames + 1, sizeof(*a->renames));
	a->renames[a->n_renames++] = (struct done_rename){.from = mem_dup(from), .to = mem_dup(to)};
	return 0;
}

/* What was removed where something renamed goes now. */
static int clear_place(struct apply *a, const char *path)
{
	uintptr_t place = (uintptr_t)map_find(a->removals, slice_of(path));

	if (place == 0 || a->items[place - 1].result != APPLY_WAITING)
		return 0;
	return remove_item(a, place - 1);
}

static bool has_new_content(const struct change *c)
{
	return is_regular(c) &&
	       !(c->before.sha256[0] && strcmp(c->before.sha256, c->after.sha256) == 0);
}

static int rename_item(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	scoped_mem char *at = now_at(a, c->from);
	scoped_str struct str lost = {0};
	int r = make_parents(a, c->path);

	if (r == 0)
		r = clear_place(a, c->path);
	if (r == 0)
		r = rename_on_host(a, at, c->path);
	if (r == 0 && has_new_content(c))
		r = write_file(a, i, true, &lost);
	else if (r == 0 && !is_folder(c))
		r = write_rights(a, i, &lost);
	if (r == 0)
		set_done(a, i, &lost);
	return r;
}

static bool is_below(const char *path, const char *folder)
{
	return strcmp(path, folder) != 0 && path_is_beneath(slice_of(path), slice_of(folder));
}

/* Whether a rename has to wait for another: *ret_blocker is then where that one's folder is now, in the way, or
 * NULL where it only has to come first. The caller frees it. */
static bool is_blocked(struct apply *a, size_t i, char **ret_blocker)
{
	const char *path = a->changes->items[i].path;
	bool waits = false;

	for (size_t k = 0; k < a->changes->n_items; k++) {
		const struct change *c = &a->changes->items[k];
		scoped_mem char *at = NULL;

		if (c->kind != CHANGE_RENAMED || a->items[k].result != APPLY_WAITING)
			continue;
		at = now_at(a, c->from);
		/* Below its place, in its place, or in the folder whose place it takes. */
		if (is_below(path, at) || is_below(at, path) || (k != i && strcmp(path, at) == 0)) {
			*ret_blocker = take(&at);
			return true;
		}
		waits |= k != i && is_below(path, c->path);
	}
	return waits;
}

/* Breaks a ring of renames: what stands in the way waits at the top, under a name of its own. */
static int park(struct apply *a, const char *path)
{
	char id[ID_SIZE];
	scoped_mem char *aside = NULL;

	id_new("tm", id);
	aside = mem_printf(".cloche-%s", id);
	return rename_on_host(a, path, aside);
}

/* One failure: said of the item where it is its own, else the end of the work. */
static int settle(struct apply *a, size_t i, int r)
{
	if (r >= 0)
		return 0;
	set_result(&a->items[i], APPLY_REFUSED, reason_text(r));
	return is_fatal(r) ? r : 0;
}

static bool wants_rename(const struct apply *a, size_t i)
{
	return a->changes->items[i].kind == CHANGE_RENAMED && a->items[i].result == APPLY_WAITING;
}

static int rename_round(struct apply *a, size_t *ret_done, size_t *ret_blocked, char **ret_blocker)
{
	*ret_done = *ret_blocked = 0;
	for (size_t i = 0; i < a->changes->n_items; i++) {
		char *blocker = NULL;
		int r;

		if (!wants_rename(a, i))
			continue;
		if (is_blocked(a, i, &blocker)) {
			if (!*ret_blocker)
				*ret_blocker = take(&blocker);
			free(blocker);
			*ret_blocked = i + 1;
			continue;
		}
		r = settle(a, i, rename_item(a, i));
		if (r < 0)
			return r;
		++*ret_done;
	}
	return 0;
}

static int rename_all(struct apply *a)
{
	for (;;) {
		scoped_mem char *blocker = NULL;
		size_t n_done, blocked;
		int r = rename_round(a, &n_done, &blocked, &blocker);

		if (r < 0 || blocked == 0)
			return r;
		if (n_done > 0)
			continue;
		r = settle(a, blocked - 1, blocker ? park(a, blocker) : -EEXIST);
		if (r < 0)
			return r;
	}
}

static bool is_file_at_its_place(const struct change *c)
{
	return (c->kind == CHANGE_CHANGED || c->kind == CHANGE_MODE) && !is_folder(c) && !c->from;
}

static bool is_removed_file(const struct change *c)
{
	return c->kind == CHANGE_REMOVED && !is_folder(c) && !(c->flags & CHANGE_REPLACED);
}

static bool is_removed_folder(const struct change *c)
{
	return c->kind == CHANGE_REMOVED && is_folder(c);
}

static bool is_new_folder(const struct change *c)
{
	return c->kind == CHANGE_ADDED && is_folder(c);
}

/* A file whose place a new folder should have taken. */
static bool is_replaced_file(const struct change *c)
{
	return c->kind == CHANGE_REMOVED && !is_folder(c);
}

static bool is_other_file(const struct change *c)
{
	return !is_folder(c) && c->kind != CHANGE_RENAMED && c->kind != CHANGE_REMOVED;
}

static bool is_folder_mode(const struct change *c)
{
	return is_folder(c) && c->kind == CHANGE_MODE;
}

static int run_step(
	struct apply *a, bool (*wants)(const struct change *), apply_act *act, bool backwards)
{
	size_t n = a->changes->n_items;

	for (size_t k = 0; k < n; k++) {
		size_t i = backwards ? n - 1 - k : k;
		int r;

		if (a->items[i].result != APPLY_WAITING || !wants(&a->changes->items[i]))
			continue;
		r = settle(a, i, act(a, i));
		if (r < 0)
			return r;
	}
	return 0;
}

/* New and renamed folders get their mode last: it may forbid writing into them. */
static int set_folder_modes(struct apply *a)
{
	for (size_t k = a->changes->n_items; k > 0; k--) {
		const struct change *c = &a->changes->items[k - 1];
		enum apply_result result = a->items[k - 1].result;
		int r;

		if ((result != APPLY_DONE && result != APPLY_LESS) || !S_ISDIR(c->after.mode) ||
			(c->kind != CHANGE_ADDED && c->kind != CHANGE_RENAMED))
			continue;
		r = settle(a, k - 1, host_folder_set_mode(a->host, c->path, c->after.mode));
		if (r < 0)
			return r;
	}
	return 0;
}

static int run_steps(struct apply *a)
{
	int r = run_step(a, is_file_at_its_place, put_item, false);

	if (r == 0)
		r = run_step(a, is_removed_file, remove_item, false);
	if (r == 0)
		r = run_step(a, is_removed_folder, remove_early, true);
	if (r == 0)
		r = rename_all(a);
	if (r == 0)
		r = run_step(a, is_removed_folder, remove_item, true);
	if (r == 0)
		r = run_step(a, is_new_folder, make_folder, false);
	if (r == 0)
		r = run_step(a, is_replaced_file, remove_item, false);
	if (r == 0)
		r = run_step(a, is_other_file, put_item, false);
	if (r == 0)
		r = run_step(a, is_folder_mode, put_item, true);
	if (r == 0)
		r = set_folder_modes(a);
	return r;
}

static void index_folders(struct apply *a)
{
	a->new_folders = map_new();
	a->removals = map_new();
	for (size_t i = 0; i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];

		if (is_new_folder(c))
			*map_slot(a->new_folders, slice_of(c->path)) = (void *)(uintptr_t)(i + 1);
		else if (c->kind == CHANGE_REMOVED)
			*map_slot(a->removals, slice_of(c->path)) = (void *)(uintptr_t)(i + 1);
	}
}

/* Files whose data lies below at a place that this work may change get it for themselves first, taken over or not. */
static int make_whole(struct apply *a, size_t i)
{
	const struct change *c = &a->changes->items[i];
	scoped_fd int data = beneath_open(a->lower_fd, c->data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	scoped_fd int own = beneath_open(a->upper_fd, c->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
	int r;

	if (data < 0 || own < 0)
		return data < 0 ? data : own;
	r = upper_make_whole(own, data);
	if (r == 0)
		a->items[i].data_fd = take_fd(&own);
	return r;
}

static int make_all_whole(struct apply *a)
{
	for (size_t i = 0; i < a->changes->n_items; i++) {
		int r;

		if (a->options->is_live || !changes_is_far(&a->changes->items[i]))
			continue;
		/* Without it the next steps could take away the only copy there is. */
		r = make_whole(a, i);
		if (r < 0)
			return r;
	}
	return 0;
}

static int journal_done(struct apply *a)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];
		enum apply_result result = a->items[i].result;
		struct journal_entry entry = {
			.act = JOURNAL_APPLIED, .removed = c->kind == CHANGE_REMOVED};

		if (result != APPLY_DONE && result != APPLY_LESS && result != APPLY_DROPPED)
			continue;
		if (result == APPLY_DROPPED)
			entry.act = JOURNAL_DISCARDED;
		else
			memcpy(entry.sha256, c->after.sha256, sizeof(entry.sha256));
		memcpy(entry.state, c->state, sizeof(entry.state));
		r = journal_add(a->set->journal, a->layer->n, slice_of(c->path), &entry);
	}
	return r < 0 ? r : journal_sync(a->set->journal);
}

static void add_note(
	struct apply_report *report, enum apply_result result, const char *path, char *text)
{
	report->notes = mem_grow(report->notes, report->n_notes + 1, sizeof(*report->notes));
	report->notes[report->n_notes++] =
		(struct apply_note){.result = result, .path = mem_dup(path), .text = text};
}

static void report_paths(const struct apply *a, struct apply_report *report)
{
	for (size_t p = 0; p < a->options->n_paths; p++) {
		const char *path = a->options->paths[p];
		size_t i = 0;

		while (i < a->changes->n_items && !apply_plan_names(&a->changes->items[i], path))
			i++;
		if (i < a->changes->n_items)
			continue;
		add_note(report, APPLY_REFUSED, path, mem_dup("nothing to take over there"));
		report->n_unmatched++;
	}
}

/* Quiet folders are only mentioned where they failed. */
static void report_items(const struct apply *a, struct apply_report *report)
{
	for (size_t i = 0; i < a->changes->n_items; i++) {
		const struct change *c = &a->changes->items[i];
		struct apply_item *item = &a->items[i];

		if (item->result == APPLY_WAITING)
			set_result(item, APPLY_REFUSED, mem_dup("not reached"));
		if (item->result == APPLY_NOT_NAMED)
			continue;
		if ((c->flags & CHANGE_QUIET) && item->result != APPLY_REFUSED)
			continue;
		report->counts[item->result]++;
		add_note(report, item->result, changes_shown_path(c), take(&item->text));
	}
}

static int apply_open(struct apply *a, struct err *err)
{
	int r = host_folder_open(
		a->layer->lower, a->layer->owner_uid, a->layer->owner_gid, &a->host, err);

	if (r < 0)
		return r;
	a->upper_fd = open(a->layer->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a->upper_fd < 0)
		return err_set(err, -errno, "open '%s': %m", a->layer->upper);
	a->lower_fd = scan_open_lower(a->layer->lower);
	if (a->lower_fd < 0)
		return err_set(err, a->lower_fd, "open '%s': %m", a->layer->lower);
	return 0;
}

static void apply_done(struct apply *a)
{
	apply_plan_free(a->items, a->changes->n_items);
	host_folder_free(a->host);
	scoped_close(&a->upper_fd);
	scoped_close(&a->lower_fd);
	map_free(a->new_folders);
	map_free(a->removals);
	for (size_t i = 0; i < a->n_renames; i++) {
		free(a->renames[i].from);
		free(a->renames[i].to);
	}
	free(a->renames);
}

static int apply_run(struct apply *a, struct apply_report *report, struct err *err)
{
	int r, kept;

	index_folders(a);
	r = make_all_whole(a);
	if (r == 0)
		r = run_steps(a);
	if (host_folder_sync(a->host) < 0 && r == 0)
		r = -EIO;
	kept = journal_done(a);
	report_paths(a, report);
	report_items(a, report);
	if (r < 0)
		return err_set(err, r, "write to '%s': %m", a->layer->lower);
	if (kept < 0)
		return err_set(err, kept, "write '%s/journal.jsonl': %m", a->set->dir);
	return 0;
}

int apply_changes(struct change_set *set, const struct changes *changes,
	const struct apply_options *options, struct apply_report *ret_report, struct err *err)
{
	struct apply a = {.set = set,
		.changes = changes,
		.layer = changes->layer,
		.options = options,
		.upper_fd = -1,
		.lower_fd = -1};
	int r;

	*ret_report = (struct apply_report){0};
	if (!changes->cow)
		return err_set(err, -EINVAL, "'%s' is the sandbox's own: nothing to apply it to",
			changes->root);
	a.items = apply_plan_new(changes, options, a.layer);
	r = apply_open(&a, err);
	if (r == 0)
		r = apply_run(&a, ret_report, err);
	apply_done(&a);
	return r;
}

void apply_report_done(struct apply_report *report)
{
	for (size_t i = 0; i < report->n_notes; i++) {
		free(report->notes[i].path);
		free(report->notes[i].text);
	}
	free(report->notes);
	*report = (struct apply_report){0};
}

int apply_resolve_path(
	const struct changes *changes, const char *cwd, const char *path, char **ret_path)
{
	const char *const tops[] = {changes->root, changes->layer->lower};
	scoped_str struct str at = {0};

	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		size_t len = strlen(tops[i]);
		struct slice top = slice_of(tops[i]);

		path_resolve(path_is_beneath(slice_of(cwd), top) ? slice_of(cwd) : top,
			slice_of(path), &at);
		if (!path_is_beneath(str_slice(&at), top))
			continue;
		*ret_path = mem_dup(at.p[len] == '/' ? at.p + len + 1 : ".");
		return 0;
	}
	return -ENOENT;
}
