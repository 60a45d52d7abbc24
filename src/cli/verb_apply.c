/* SPDX-License-Identifier: Apache-2.0 */
/* cloche apply: takes what a sandbox changed in a cow mount over into the host's folder. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "cli/apply_branch.h"
#include "cli/apply_notes.h"
#include "cli/pending.h"
#include "cli/verb.h"

struct apply_verb_options {
	bool force;
	const char *branch;
};

static const struct option table[] = {
	{"force", 0, NULL,
		"also over what the host has changed meanwhile, and files of other users",
		OPTION_ON, offsetof(struct apply_verb_options, force)},
	{"branch", 0, "NAME", "the commits made inside, as a branch of your repository",
		OPTION_TEXT, offsetof(struct apply_verb_options, branch)},
	{NULL},
};
static const struct option_group groups[] = {{"Apply", table}, {NULL}};

struct totals {
	size_t counts[APPLY_N_RESULTS];
	bool is_partial;    /* not all could be read */
	bool is_named_left; /* of a path that was named, something waits for its own name */
	struct str text;    /* lines, or elements of a list */
};

static volatile sig_atomic_t is_stopped;

static void on_stop(int signal_number)
{
	is_stopped = signal_number;
}

/* The file at work is finished, and the journal and the report say how far it came. A second one ends us at once. */
static void catch_stop(void)
{
	struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART | SA_RESETHAND};

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGHUP, &action, NULL);
}

static int tell_before(const struct cli *cli, const struct changes *changes,
	const struct apply_options *options, struct err *err)
{
	scoped_str struct str out = {0};

	if (!options->force || cli->json || cli->jsonl)
		return 0;
	apply_notes_before(&out, changes, options);
	return cli_print(&out, err);
}

static int apply_root(const struct cli *cli, struct pending *pending, size_t i,
	const struct apply_options *options, struct totals *totals, struct err *err)
{
	const struct changes *changes;
	struct apply_report report;
	int r = pending_look_again(pending, i, err);

	changes = pending->list.roots[i];
	if (r == 0)
		r = tell_before(cli, changes, options, err);
	if (r < 0)
		return r;
	r = apply_changes(pending->set, changes, options, &report, err);
	for (size_t k = 0; k < APPLY_N_RESULTS; k++)
		totals->counts[k] += report.counts[k];
	totals->counts[APPLY_REFUSED] += report.n_unmatched;
	totals->is_partial |= pending_say_unread(changes);
	totals->is_named_left |= options->n_paths > 0 && report.counts[APPLY_LEFT] > 0;
	if (cli->json || cli->jsonl) {
		if (totals->text.len > 0)
			str_putc(&totals->text, cli->json ? ',' : '\n');
		apply_notes_json(&totals->text, changes->root, &report);
	} else {
		apply_notes_add(&totals->text, &report, cli);
	}
	apply_report_done(&report);
	return r;
}

static int apply_roots(const struct cli *cli, const struct apply_verb_options *o,
	struct pending *pending, const struct pending_paths *paths, struct totals *totals,
	struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < pending->list.n; i++) {
		const struct apply_options options = {.paths = (const char *const *)paths[i].paths,
			.n_paths = paths[i].n,
			.force = o->force,
			.is_live = pending->stays,
			.stop = &is_stopped};

		if (paths[i].is_meant)
			r = apply_root(cli, pending, i, &options, totals, err);
	}
	return r;
}

/* What was done is told even where the rest failed. */
static int print_totals(const struct cli *cli, struct totals *totals, struct err *err)
{
	scoped_str struct str out = {0};

	if (cli->json)
		str_putc(&out, '[');
	str_add(&out, totals->text.p, totals->text.len);
	if (cli->json)
		str_putc(&out, ']');
	if (cli->json || (cli->jsonl && out.len > 0))
		str_putc(&out, '\n');
	if (!cli->json && !cli->jsonl)
		apply_notes_total(&out, totals->counts);
	return cli_print(&out, err);
}

/* Of all that there was: what the sandbox changes later, or could not be read, would be left. */
static bool leaves_nothing(const struct pending *pending, const struct totals *totals)
{
	return !pending->stays && !totals->is_partial &&
	       totals->counts[APPLY_LEFT] + totals->counts[APPLY_REFUSED] == 0;
}

static int apply_pending(const struct cli *cli, const struct apply_verb_options *o,
	struct pending *pending, char **args, size_t n_args, struct err *err)
{
	struct totals totals = {0};
	struct pending_paths *paths = NULL;
	struct err ignored;
	size_t done;
	int r = pending->set ? pending_sort_paths(pending, args, n_args, false, &paths, err) : 0;

	if (r < 0)
		return r;
	catch_stop();
	if (pending->set)
		r = apply_roots(cli, o, pending, paths, &totals, err);
	pending_paths_free(paths, pending->list.n);
	done = totals.counts[APPLY_DONE] + totals.counts[APPLY_LESS];
	r = pending_enter_applied(
		cli, pending->id, done, n_args == 0 && leaves_nothing(pending, &totals), r, err);
	if (r == 0 && pending->set)
		r = pending_drop_settled(cli, pending, err);
	if (print_totals(cli, &totals, r < 0 ? &ignored : err) < 0 && r >= 0)
		r = -EIO;
	str_done(&totals.text);
	if (r < 0)
		return r;
	return totals.counts[APPLY_REFUSED] > 0 || totals.is_partial || totals.is_named_left
	               ? CLI_NO
	               : 0;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct apply_verb_options *o = options;
	struct pending pending;
	int r = pending_open(cli, args[0], PENDING_APPLY, &pending, err);

	if (r == 0 && o->branch)
		r = apply_branch(cli, &pending, o->branch, o->force, args + 1, n_args - 1, err);
	else if (r == 0)
		r = apply_pending(cli, options, &pending, args + 1, n_args - 1, err);
	pending_done(&pending);
	return r;
}

const struct verb verb_apply = {
	.name = "apply",
	.class = VERB_FILES,
	.usage = "ID [PATH...]",
	.help = "take what a sandbox changed over into your folder",
	.text = "Without PATH everything comes over but what the host would run by itself (hooks, "
		"CI\n"
		"files, settings of editors) and what lies in .git and node_modules: name that.\n"
		"Naming a node_modules takes all of it, and counts the install scripts.\n"
		"What the host changed meanwhile is refused, and the exit status is 1 then, as "
		"where\n"
		"not all could be read, or something at or below a PATH still waits for its own "
		"name.\n"
		"With --branch nothing of that: only commits, by a git fetch, from the one\n"
		"repository or from the folder named.",
	.groups = groups,
	.options_size = sizeof(struct apply_verb_options),
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
