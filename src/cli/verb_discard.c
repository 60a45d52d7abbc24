/* SPDX-License-Identifier: Apache-2.0 */
/* cloche discard: throws away what a sandbox changed in its cow mounts. */
#include <errno.h>
#include <string.h>

#include "cli/pending.h"
#include "cli/verb.h"
#include "manifest/apply_tidy.h"
#include "manifest/discard.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"

static void add_folder(struct str *out, const struct change *in, size_t n)
{
	if (n == 0)
		return;
	str_puts(out, "discarded ");
	log_add_escaped(out, (struct slice){.p = in->path, .len = in->skipped_len});
	str_printf(out, "/  %zu file%s\n", n, n == 1 ? "" : "s");
}

static bool is_same_folder(const struct change *a, const struct change *b)
{
	return a && a->skipped_len == b->skipped_len &&
	       memcmp(a->path, b->path, a->skipped_len) == 0;
}

/* One line for all of a .git or node_modules, whose changes come one after the other. */
static void add_folders(
	const struct changes *changes, const struct apply_options *options, struct str *out)
{
	const struct change *in = NULL;
	size_t n = 0;

	for (size_t i = 0; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];

		if (!(c->flags & CHANGE_SKIPPED) || !discard_means(c, options))
			continue;
		if (!is_same_folder(in, c)) {
			add_folder(out, in, n);
			n = 0;
		}
		in = c;
		n += !(c->flags & CHANGE_QUIET);
	}
	add_folder(out, in, n);
}

static void add_names(
	const struct changes *changes, const struct apply_options *options, struct str *out)
{
	for (size_t i = 0; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];

		if (!changes_is_listed(c) || !discard_means(c, options))
			continue;
		str_puts(out, "discarded ");
		log_add_escaped(out, slice_of(changes_shown_path(c)));
		str_putc(out, '\n');
	}
	add_folders(changes, options, out);
}

static int discard_roots(struct pending *pending, const struct pending_paths *paths,
	struct str *out, size_t *ret_n, struct err *err)
{
	int r = 0;

	*ret_n = 0;
	for (size_t i = 0; r == 0 && i < pending->list.n; i++) {
		const struct changes *changes = pending->list.roots[i];
		const struct apply_options options = {.paths = (const char *const *)paths[i].paths,
			.n_paths = paths[i].n,
			.is_live = pending->stays};
		size_t n = 0;

		if (!paths[i].is_meant)
			continue;
		add_names(changes, &options, out);
		r = discard_changes(pending->set, changes, &options, &n, err);
		*ret_n += n;
	}
	return r;
}

static size_t list_all(const struct pending *pending, struct str *out)
{
	static const struct apply_options all;
	size_t n = 0;

	for (size_t i = 0; i < pending->list.n; i++) {
		if (!pending->list.roots[i]->cow)
			continue;
		add_names(pending->list.roots[i], &all, out);
		n += discard_count(pending->list.roots[i]);
	}
	return n;
}

/* What it changed is not in its record then: a full disk had no room for that either. */
static void mend_now(const struct cli *cli, struct pending *pending)
{
	struct err err = {0};

	log_warn("the disk was full when sandbox %s ended: what is thrown away here is not in its "
		 "record",
		pending->id);
	if (pending_mend(cli, pending, &err) < 0)
		log_warn("%s; `cloche gc` tries again", err.msg);
}

/* Entered first: a set that is gone tells nobody any more what it was. On a full disk it goes first, to make room. */
static int discard_whole(const struct cli *cli, struct pending *pending, struct str *out,
	size_t *ret_n, struct err *err)
{
	scoped_mem char *trash = mem_printf("%s/trash", cli->state_dir);
	int r, entered;

	*ret_n = list_all(pending, out);
	entered = pending_enter_ledger(cli, pending->id, "discard", *ret_n, err);
	if (entered < 0 && entered != -ENOSPC && entered != -EDQUOT)
		return entered;
	r = discard_set(pending->set, trash, err);
	if (r == 0 && entered < 0)
		r = pending_enter_ledger(cli, pending->id, "discard", *ret_n, err);
	if (r == 0 && pending->is_unmended)
		mend_now(cli, pending);
	return r;
}

static int discard_named(const struct cli *cli, struct pending *pending, char **args, size_t n_args,
	struct str *out, size_t *ret_n, struct err *err)
{
	struct pending_paths *paths = NULL;
	int r = pending_sort_paths(pending, args, n_args, false, &paths, err);

	if (r < 0)
		return r;
	r = discard_roots(pending, paths, out, ret_n, err);
	pending_paths_free(paths, pending->list.n);
	return r < 0 ? r : pending_enter_ledger(cli, pending->id, "discard", *ret_n, err);
}

/* Only the change set knows where it belongs. */
static int refuse_parked(const struct pending *pending, struct err *err)
{
	const char *parked = apply_tidy_parked(pending->set);

	if (!parked)
		return 0;
	return err_set(err, -EBUSY,
		"an apply that was cut off left '%s' in your folder: `cloche apply` ends it, or "
		"move it to its place by hand",
		parked);
}

/* What goes as a whole needs no line about each. */
static int refuse_part(const struct pending *pending, struct err *err)
{
	if (!pending->is_unmended)
		return 0;
	return err_set(err, -ENOSPC,
		"the disk is full, too full to write down which part of sandbox %s is thrown away: "
		"make room, or discard all of it",
		pending->id);
}

static int discard_pending(const struct cli *cli, struct pending *pending, char **args,
	size_t n_args, struct str *out, struct err *err)
{
	size_t n = 0;
	int r = refuse_parked(pending, err);

	if (r == 0 && (n_args > 0 || pending->stays))
		r = refuse_part(pending, err);
	if (r < 0)
		return r;
	r = n_args == 0 && !pending->stays
	            ? discard_whole(cli, pending, out, &n, err)
	            : discard_named(cli, pending, args, n_args, out, &n, err);

	if (cli->json || cli->jsonl) {
		str_reset(out);
		str_printf(out, "{\"discarded\":%zu}\n", n);
	} else if (r == 0) {
		str_printf(out, "%zu thrown away\n", n);
	}
	return r;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct pending pending;
	scoped_str struct str out = {0};
	int r = pending_open(cli, args[0], PENDING_DISCARD, &pending, err);

	(void)options;
	if (r == 0 && !pending.set)
		str_puts(&out,
			cli->json || cli->jsonl ? "{\"discarded\":0}\n" : "nothing to discard\n");
	else if (r == 0)
		r = discard_pending(cli, &pending, args + 1, n_args - 1, &out, err);
	pending_done(&pending);
	return r < 0 ? r : cli_print(&out, err);
}

const struct verb verb_discard = {
	.name = "discard",
	.class = VERB_FILES,
	.usage = "ID [PATH...]",
	.help = "throw away what a sandbox changed and you did not take over",
	.text = "Your folder stays as it is. The record of what was done stays too.",
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
