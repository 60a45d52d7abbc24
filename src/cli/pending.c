/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pending.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/apply_notes.h"
#include "cli/at_rest.h"
#include "cli/records.h"
#include "control/client.h"
#include "launcher/ledger.h"
#include "launcher/mend.h"
#include "manifest/apply_plan.h"
#include "manifest/apply_tidy.h"
#include "manifest/discard.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"

/* Somebody answers: the socket's name alone may stay a moment longer than the sandbox. */
static bool is_alive(const struct cli *cli, const char *id)
{
	scoped(client) struct client *client = NULL;

	return client_connect(cli->state_dir, id, &client, NULL) == 0;
}

/* Its record gets what it changed before any of that goes. */
static int mend_killed(const struct cli *cli, const char *id, struct err *err)
{
	scoped_mem char *folder = mem_printf("%s/sandboxes/%s", cli->state_dir, id);
	int r = access(folder, F_OK) < 0 ? 0 : mend_sandbox(cli->state_dir, cli->run_dir, id, err);

	return r < 0 ? r : 0;
}

int pending_lock(const char *dir, int *ret_fd, struct err *err)
{
	scoped_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "open '%s': %m", dir); /* -ENOENT: settled */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(
			err, -EBUSY, "an apply, discard or fork of it is at work: try again");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The root's own folders are gone with the sandbox: the record holds what they were. */
static void keep_what_is_there(struct pending *pending)
{
	struct changes_list *list = &pending->list;
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (list->roots[i]->cow || pending->stays)
			list->roots[n++] = list->roots[i];
		else
			changes_free(list->roots[i]);
	}
	list->n = n;
}

static int read_set(struct pending *pending, const char *dir, bool to_write, struct err *err)
{
	int r = to_write ? pending_lock(dir, &pending->lock_fd, err) : 0;

	if (r == 0)
		r = change_set_open(dir, &pending->set, err);
	if (r == -ENOENT)
		return 0; /* it was settled meanwhile */
	if (r == 0 && to_write)
		apply_tidy(pending->set);
	if (r == 0)
		r = changes_read_all(pending->set, &pending->list, err);
	if (r == 0)
		keep_what_is_there(pending);
	return r;
}

int pending_mend(const struct cli *cli, struct pending *pending, struct err *err)
{
	int r = mend_killed(cli, pending->id, err);

	pending->is_unmended = r == -ENOSPC;
	return r;
}

int pending_open(const struct cli *cli, const char *name, enum pending_use use, struct pending *ret,
	struct err *err)
{
	bool to_write = use != PENDING_SHOW;
	scoped(reader) struct reader *reader = NULL;
	scoped_mem char *dir = NULL;
	int r;

	*ret = (struct pending){.lock_fd = -1};
	r = records_resolve(cli, name, ret->id, err);
	if (r == 0)
		r = records_open(cli, ret->id, &reader, err); /* refuses another user's */
	if (r < 0)
		return r;
	if (to_write && geteuid() != 0)
		return err_set(err, -EPERM, "this writes to the host's folders: run it with sudo");
	dir = mem_printf("%s/changes/%s", cli->state_dir, ret->id);
	ret->is_live = is_alive(cli, ret->id);
	if (to_write && !ret->is_live)
		r = pending_mend(cli, ret, err);
	if (r < 0 && !(ret->is_unmended && use == PENDING_DISCARD))
		return r;
	ret->stays = ret->is_live || at_rest_is(cli, ret->id);
	if (geteuid() != 0 || access(dir, F_OK) < 0)
		return 0;
	return read_set(ret, dir, to_write, err);
}

void pending_done(struct pending *pending)
{
	changes_list_done(&pending->list);
	change_set_free(pending->set);
	pending->set = NULL;
	scoped_close(&pending->lock_fd);
	pending->lock_fd = -1;
}

static bool names_something(const struct changes *changes, const char *path)
{
	for (size_t i = 0; i < changes->n_items; i++)
		if (apply_plan_names(&changes->items[i], path))
			return true;
	return false;
}

static int resolve_own(const struct changes *changes, const char *arg, char **ret_path)
{
	size_t len = strlen(changes->root);
	scoped_str struct str at = {0};

	path_resolve(slice_of("/"), slice_of(arg), &at);
	if (arg[0] != '/' || !path_is_beneath(str_slice(&at), slice_of(changes->root)))
		return -ENOENT;
	*ret_path = mem_dup(at.p[len] == '/' ? at.p + len + 1 : ".");
	return 0;
}

static int resolve(
	const struct changes *changes, const char *cwd, const char *arg, bool own, char **ret_path)
{
	if (changes->cow)
		return apply_resolve_path(changes, cwd, arg, ret_path);
	return own && !changes->rw && !changes->counted ? resolve_own(changes, arg, ret_path)
	                                                : -ENOENT;
}

/* The mount that a path lies in: where several might, the first in which it names a change. */
static int place_path(const struct pending *pending, const char *cwd, const char *arg, bool own,
	struct pending_paths *paths)
{
	size_t best = SIZE_MAX;
	scoped_mem char *best_path = NULL;

	for (size_t i = 0; i < pending->list.n; i++) {
		const struct changes *changes = pending->list.roots[i];
		char *path;

		if (resolve(changes, cwd, arg, own, &path) < 0)
			continue;
		if (best != SIZE_MAX && !names_something(changes, path)) {
			free(path);
			continue;
		}
		if (best != SIZE_MAX && names_something(pending->list.roots[best], best_path)) {
			free(path);
			break;
		}
		free(best_path);
		best_path = path;
		best = i;
	}
	if (best == SIZE_MAX)
		return -ENOENT;
	paths[best].paths = mem_grow(paths[best].paths, paths[best].n + 1, sizeof(char *));
	paths[best].paths[paths[best].n++] = take(&best_path);
	return 0;
}

int pending_sort_paths(const struct pending *pending, char **args, size_t n_args, bool own,
	struct pending_paths **ret_paths, struct err *err)
{
	struct pending_paths *paths = new0_n(struct pending_paths, pending->list.n + 1);
	scoped_mem char *cwd = getcwd(NULL, 0);

	for (size_t i = 0; i < n_args; i++) {
		if (place_path(pending, cwd ? cwd : "/", args[i], own, paths) == 0)
			continue;
		pending_paths_free(paths, pending->list.n);
		return err_set(err, -ENOENT,
			own && !pending->stays
				? "'%s' lies in no folder that the sandbox had as a copy (its own "
				  "root "
				  "is gone: `cloche changes` tells of it)"
				: "'%s' lies in no folder that the sandbox had as a copy",
			args[i]);
	}
	for (size_t i = 0; i < pending->list.n; i++)
		paths[i].is_meant = paths[i].n > 0 || (n_args == 0 && pending->list.roots[i]->cow);
	*ret_paths = paths;
	return 0;
}

void pending_paths_free(struct pending_paths *paths, size_t n_roots)
{
	for (size_t i = 0; paths && i < n_roots; i++) {
		for (size_t k = 0; k < paths[i].n; k++)
			free(paths[i].paths[k]);
		free(paths[i].paths);
	}
	free(paths);
}

int pending_enter_act(
	const struct cli *cli, const char *id, const char *act, const char *detail, struct err *err)
{
	struct ledger_line line = {.act = act,
		.sandbox = id,
		.actor = cli->actor,
		.detail = detail,
		.owner = cli->uid};

	return ledger_append(cli->state_dir, &line, err);
}

static int enter_number(const struct cli *cli, const char *id, const char *act, size_t n_files,
	const char *more, struct err *err)
{
	scoped_mem char *detail =
		mem_printf("%zu change%s%s", n_files, n_files == 1 ? "" : "s", more);

	return pending_enter_act(cli, id, act, detail, err);
}

int pending_enter_ledger(
	const struct cli *cli, const char *id, const char *act, size_t n_files, struct err *err)
{
	return enter_number(cli, id, act, n_files, "", err);
}

int pending_enter_applied(
	const struct cli *cli, const char *id, size_t n_files, bool is_all, int r, struct err *err)
{
	struct err ignored;
	int entered;

	if (n_files == 0)
		return r;
	entered = enter_number(cli, id, "apply", n_files, r == 0 && is_all ? PENDING_NONE_LEFT : "",
		r < 0 ? &ignored : err);
	return r < 0 ? r : entered;
}

static bool is_in_same_folder(const struct changes *a, const struct changes *b)
{
	struct slice one = slice_of(a->layer->lower), other = slice_of(b->layer->lower);

	return path_is_beneath(one, other) || path_is_beneath(other, one);
}

int pending_look_again(struct pending *pending, size_t i, struct err *err)
{
	struct changes **roots = pending->list.roots, *now;
	const struct changes_query query = {.layer = roots[i]->layer, .below = ""};
	size_t k = 0;
	int r;

	if (!roots[i]->cow)
		return 0; /* to be refused */
	while (k < i && !(roots[k]->cow && is_in_same_folder(roots[k], roots[i])))
		k++;
	if (k == i)
		return 0;
	r = changes_read(pending->set, &query, &now, err);
	if (r < 0)
		return r;
	changes_free(roots[i]);
	roots[i] = now;
	return 0;
}

int pending_drop_settled(const struct cli *cli, struct pending *pending, struct err *err)
{
	scoped_mem char *trash = mem_printf("%s/trash", cli->state_dir);
	int r = pending->stays ? 0 : discard_empty_set(pending->set, trash, err);

	return r < 0 ? r : 0;
}

bool pending_say_unread(const struct changes *changes)
{
	if (changes->unread)
		log_warn("of %s not all could be read, and what could not is not here: %.300s",
			changes->root, changes->unread);
	return changes->unread != NULL;
}

/* On stderr: stdout is the command's own. */
static void tell_applied(
	const struct cli *cli, struct str *text, const size_t counts[APPLY_N_RESULTS])
{
	size_t n = 0;

	for (size_t i = 0; i < APPLY_N_RESULTS; i++)
		n += counts[i];
	if (n > 0 && !cli->quiet)
		apply_notes_total(text, counts);
	if (text->len > 0)
		(void)fdio_write_all(STDERR_FILENO, text->p, text->len);
}

int pending_apply_all(const struct cli *cli, const char *id, struct err *err)
{
	const struct apply_options options = {0};
	struct pending pending;
	scoped_str struct str text = {0};
	size_t counts[APPLY_N_RESULTS] = {0};
	bool is_partial = false;
	int r = pending_open(cli, id, PENDING_APPLY, &pending, err);

	for (size_t i = 0; r == 0 && i < pending.list.n; i++) {
		struct apply_report report;

		if (!pending.list.roots[i]->cow)
			continue;
		r = pending_look_again(&pending, i, err);
		if (r < 0)
			break;
		r = apply_changes(pending.set, pending.list.roots[i], &options, &report, err);
		for (size_t k = 0; k < APPLY_N_RESULTS; k++)
			counts[k] += report.counts[k];
		is_partial |= pending_say_unread(pending.list.roots[i]);
		apply_notes_add(&text, &report, cli);
		apply_report_done(&report);
	}
	is_partial |= counts[APPLY_REFUSED] > 0;
	r = pending_enter_applied(cli, pending.id, counts[APPLY_DONE] + counts[APPLY_LESS],
		!is_partial && counts[APPLY_LEFT] == 0 && !pending.stays, r, err);
	if (r == 0 && pending.set)
		r = pending_drop_settled(cli, &pending, err);
	tell_applied(cli, &text, counts);
	pending_done(&pending);
	return r < 0 ? r : is_partial;
}
