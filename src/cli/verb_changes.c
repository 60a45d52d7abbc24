/* SPDX-License-Identifier: Apache-2.0 */
/* cloche changes: what a sandbox changed, by content. What can still be applied is read from the change set; the
 * rest, and all of it for who is not root, from what the record kept at the end. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "cli/changes_join.h"
#include "cli/changes_text.h"
#include "cli/fold.h"
#include "cli/option.h"
#include "cli/pending.h"
#include "cli/records.h"
#include "cli/verb.h"
#include "cli/verb_options.h"
#include "manifest/changes_json.h"
#include "manifest/changes_rw.h"
#include "record/record.h"
#include "util/clock.h"
#include "util/fdio.h"

#define STORED_MAX (256 << 20)

static const struct option table[] = {
	{"exec", 0, "EX[,EX...]", "only what these execs touched (ids or their beginnings)",
		OPTION_TEXT, offsetof(struct changes_options, part.execs)},
	{"since", 0, "WHEN", "only what was touched from here on: as for the views", OPTION_TEXT,
		offsetof(struct changes_options, part.since)},
	{"until", 0, "WHEN", "up to here", OPTION_TEXT,
		offsetof(struct changes_options, part.until)},
	{"full", 0, NULL, "read every file of rw mounts, whatever its times say", OPTION_ON,
		offsetof(struct changes_options, full)},
	{"verbose", 'v', NULL, "also the commands, programs and execs that made each change",
		OPTION_ON, offsetof(struct changes_options, verbose)},
	{NULL},
};
static const struct option_group groups[] = {{"Options", table}, {NULL}};

/* Empty where the record has none (yet). */
static int read_stored(const struct cli *cli, const char *id, json_t **ret_list, struct err *err)
{
	scoped_str struct str path = {0}, text = {0};
	json_error_t why;
	int r;

	records_dir(cli, id, &path);
	str_puts(&path, "/" RECORD_CHANGES_NAME);
	r = fdio_read_file(AT_FDCWD, path.p, STORED_MAX, &text);
	if (r == -ENOENT) {
		*ret_list = json_array();
		return 0;
	}
	if (r < 0)
		return err_set(err, r, "read '%s': %m", path.p);
	*ret_list = json_loadb(text.p ? text.p : "", text.len, JSON_REJECT_DUPLICATES, &why);
	if (json_is_array(*ret_list))
		return 0;
	json_decref(*ret_list);
	*ret_list = NULL;
	return err_set(err, -EBADMSG, "'%s' is no list of changes", path.p);
}

static int read_live(struct pending *pending, json_t **ret_list, struct err *err)
{
	scoped_str struct str text = {0};
	json_error_t why;

	changes_json_write(&text, &pending->list);
	*ret_list = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	return *ret_list ? 0 : err_set(err, -EBADMSG, "list of changes: %s", why.text);
}

static bool has_root(const json_t *list, const json_t *root)
{
	const json_t *other;
	size_t i;

	json_array_foreach(list, i, other) if (json_equal(json_object_get(other, "root"),
						       json_object_get(root, "root"))) return true;
	return false;
}

/* Adds the roots that only the record knows of. is_settled: there is nothing left of the change set. */
static void add_stored(json_t *list, json_t *stored, bool is_settled)
{
	json_t *root;
	size_t i;

	json_array_foreach(stored, i, root)
	{
		if (has_root(list, root))
			continue;
		if (is_settled && json_is_true(json_object_get(root, "cow")))
			json_object_set_new(root, "pending", json_false());
		json_array_append(list, root);
	}
}

static enum rw_touch find_touch(void *data, struct slice path)
{
	static const enum rw_touch of[] = {
		[FILE_TOUCH_NONE] = RW_UNTOUCHED,
		[FILE_TOUCH_RIGHTS] = RW_TOUCHED,
		[FILE_TOUCH_CONTENT] = RW_WRITTEN,
		[FILE_TOUCH_UNKNOWN] = RW_UNKNOWN,
	};

	return of[file_touched_find(data, path)];
}

static bool next_touched(void *data, size_t *i, struct slice *ret_path)
{
	return file_touched_next(data, i, ret_path);
}

/* What was mounted rw, as it is now; once the run's end is in the record, that is what counts. */
static void read_rw(
	struct pending *pending, const struct changes_trace *trace, const struct changes_options *o)
{
	const struct rw_seen seen = {.touch = find_touch,
		.next = next_touched,
		.data = (void *)changes_trace_touched(trace)};
	struct changes_rw_options rw = {
		.full = o->full, .seen = changes_trace_has_files(trace) ? &seen : NULL};

	changes_rw_read_all(pending->set, &rw, &pending->list);
}

static int collect(const struct cli *cli, struct pending *pending, const struct changes_options *o,
	const struct changes_trace *trace, json_t **ret_list, struct err *err)
{
	json_t *stored = NULL, *list = NULL;
	int r = read_stored(cli, pending->id, &stored, err);

	if (r == 0 && pending->set && (pending->is_live || json_array_size(stored) == 0))
		read_rw(pending, trace, o);
	if (r == 0)
		r = read_live(pending, &list, err);
	if (r == 0)
		add_stored(list, stored, geteuid() == 0 && !pending->set);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
		changes_join(trace, json_array_get(list, i));
	json_decref(stored);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	*ret_list = list;
	return 0;
}

static void add_text(const struct cli *cli, const json_t *list, bool verbose, struct str *out)
{
	struct view_style style = cli_style(cli);
	const json_t *root;
	size_t i;

	json_array_foreach(list, i, root) changes_text_add(out, &style, root, verbose);
}

int verb_changes_print(const struct cli *cli, const json_t *list, bool verbose, struct err *err)
{
	scoped_str struct str out = {0};
	char *json = json_dumps(list, JSON_COMPACT);
	int r = 0;

	if (!json)
		return err_set(err, -ENOMEM, "list of changes: %m");
	if (cli->jsonl)
		r = fold_add_lines(&out, slice_of(json), NULL, err);
	else if (cli->json)
		str_printf(&out, "%s\n", json);
	else
		add_text(cli, list, verbose, &out);
	free(json);
	return r < 0 ? r : cli_print(&out, err);
}

static int read_trace(const struct cli *cli, const char *id, const struct changes_options *o,
	struct changes_trace **ret_trace, struct err *err)
{
	struct changes_part part = o->part;
	int r;

	part.no_who = !cli->json && !cli->jsonl && !o->verbose && !part.execs && !part.since &&
	              !part.until;
	r = changes_trace_read(cli, id, &part, ret_trace, err);

	if (r < 0)
		return r;
	if (changes_trace_is_part(*ret_trace) && !changes_trace_has_files(*ret_trace))
		return err_set(err, -ENODATA,
			"files were not watched in sandbox %s: which part of the run changed what "
			"is not known",
			id);
	return 0;
}

/* Even a sandbox that changed nothing has a list that says so. */
static int not_known(const char *id, struct err *err)
{
	if (geteuid() != 0)
		return err_set(err, -EPERM,
			"what changed is known at the end of a run: until then, ask with sudo");
	return err_set(err, -ENODATA,
		"what sandbox %s changed is not in its record: it never ran, or its record says "
		"why",
		id);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct changes_options *o = options;
	scoped(changes_trace) struct changes_trace *trace = NULL;
	struct pending pending;
	json_t *list = NULL;
	int r = pending_open(cli, args[0], PENDING_SHOW, &pending, err);

	(void)n_args;
	if (r == 0)
		r = read_trace(cli, pending.id, o, &trace, err);
	if (r == 0)
		r = collect(cli, &pending, o, trace, &list, err);
	if (r == 0 && json_array_size(list) == 0)
		r = not_known(pending.id, err);
	if (r == 0)
		r = verb_changes_print(cli, list, o->verbose, err);
	json_decref(list);
	pending_done(&pending);
	return r;
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	const struct changes_options *o = options;
	const char *const bounds[] = {o->part.since, o->part.until};

	(void)args;
	(void)n_args;
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		struct view_bound bound;
		int r = bounds[i] ? view_filter_parse_bound(
					    bounds[i], 0, clock_wall_ms(), &bound, err)
		                  : 0;

		if (r < 0)
			return err_wrap(err, r, "option '--%s'", i ? "until" : "since");
	}
	return 0;
}

const struct verb verb_changes = {
	.name = "changes",
	.class = VERB_FILES,
	.usage = "ID",
	.help = "the files that a sandbox changed, by content",
	.text = "A added, D removed, M changed, R renamed, m mode or owner only. .git and "
		"node_modules\n"
		"are counted, not listed. `cloche apply` takes the changes of cow mounts over; "
		"those "
		"of\n"
		"rw mounts are in the host's folders already.",
	.groups = groups,
	.options_size = sizeof(struct changes_options),
	.min_args = 1,
	.max_args = 1,
	.check = check,
	.run = run,
};
