/* SPDX-License-Identifier: Apache-2.0 */
/* cloche diff: what a sandbox changed in text, as a patch. The lines are found by diff(1), which the caller runs. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/caller_tool.h"
#include "cli/pending.h"
#include "cli/verb.h"
#include "cli/verb_options.h"
#include "manifest/patch.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/scoped.h"

#define HUNKS_MAX   (4 * PATCH_TEXT_MAX)
#define DIFF_FAILED 2 /* its exit status; 1: they differ */

struct job {
	const struct cli *cli;
	struct pending pending;
	struct pending_paths *paths;
	struct str out;
	size_t n; /* changes that are in it */
};

/* ---- lines ---- */

/* Anyone may open it again by its number: the tool runs as the caller. */
static int memory_file(struct slice text)
{
	scoped_fd int fd = memfd_create("diff", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fdio_write_all(fd, text.p, text.len);

	return r < 0 ? r : take_fd(&fd);
}

/* diff's first two lines name its files. */
static void drop_names(struct str *hunks)
{
	char *at = hunks->p;

	for (int i = 0; at && i < 2; i++) {
		at = strchr(at, '\n');
		at += at != NULL;
	}
	if (!at)
		return;
	hunks->len -= (size_t)(at - hunks->p);
	memmove(hunks->p, at, hunks->len + 1);
}

static int compare(void *ctx, struct slice before, struct slice after, struct str *hunks)
{
	static const char *const argv[] = {
		"diff", "-a", "-U3", "--label=a", "--label=b", "/dev/fd/3", "/dev/fd/4", NULL};
	const struct job *job = ctx;
	scoped_fd int a = memory_file(before), b = memory_file(after);
	struct caller_tool tool = {
		.argv = argv, .fds = (int[]){a, b}, .n_fds = 2, .max = HUNKS_MAX};
	int r = a < 0 ? a : b < 0 ? b : caller_tool_run(job->cli, &tool, hunks);

	if (r >= DIFF_FAILED)
		return -EIO;
	if (r > 0)
		drop_names(hunks);
	return r < 0 ? r : 0;
}

/* ---- changes ---- */

static bool is_asked_for(const struct pending_paths *paths, const struct change *c)
{
	const char *path = changes_shown_path(c);

	for (size_t i = 0; i < paths->n; i++) {
		size_t len = strlen(paths->paths[i]);

		if (len == 0 || strcmp(paths->paths[i], ".") == 0 ||
			(strncmp(path, paths->paths[i], len) == 0 &&
				(path[len] == '/' || path[len] == '\0')))
			return true;
	}
	return paths->n == 0;
}

/* One line for each change, or as one text. */
static void add(struct job *job, const struct changes *changes, const struct change *c,
	const struct str *text)
{
	struct jsonw j = jsonw_to(&job->out);

	if (text->len == 0)
		return;
	job->n++;
	if (!job->cli->json && !job->cli->jsonl) {
		str_add(&job->out, text->p, text->len);
		return;
	}
	if (job->cli->json)
		str_putc(&job->out, job->n == 1 ? '[' : ',');
	jsonw_object(&j);
	jsonw_ktext(&j, "root", changes->root);
	jsonw_ktext(&j, "path", changes_shown_path(c));
	jsonw_kslice(&j, "patch", str_slice(text));
	jsonw_object_end(&j);
	if (!job->cli->json)
		str_putc(&job->out, '\n');
}

static int take_changes(struct job *job, struct patch *patch, const struct changes *changes,
	size_t root, struct err *err)
{
	for (size_t i = 0; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];
		scoped_str struct str text = {0};
		int r = is_asked_for(&job->paths[root], c) ? patch_add(patch, c, &text) : 0;

		if (r == -ENOENT)
			return err_set(err, r, "diff: not found: install it (Debian: diffutils)");
		if (r < 0)
			return err_set(err, r, "compare '%s': %m", changes_shown_path(c));
		add(job, changes, c, &text);
	}
	return 0;
}

/* Several roots are told apart by a line that git and patch pass over. */
static void name_root(struct job *job, const struct changes *changes)
{
	if (job->cli->json || job->cli->jsonl || job->pending.list.n < 2)
		return;
	str_puts(&job->out, "# below ");
	log_add_escaped(&job->out, slice_of(changes->root));
	str_putc(&job->out, '\n');
}

/* What apply would take: the folders that are copy on write; of others, what is named. */
static int take_root(struct job *job, size_t i, struct err *err)
{
	const struct changes *changes = job->pending.list.roots[i];
	const struct patch_config config = {.changes = changes, .compare = compare, .ctx = job};
	scoped(patch) struct patch *patch = NULL;
	size_t len = job->out.len, n = job->n;
	int r;

	if (!job->paths[i].is_meant)
		return 0;
	(void)pending_say_unread(changes);
	r = patch_open(&config, &patch, err);
	if (r < 0)
		return r;
	name_root(job, changes);
	r = take_changes(job, patch, changes, i, err);
	if (job->n == n)
		job->out.len = len; /* nothing below it */
	return r;
}

static int take_all(struct job *job, char **args, size_t n_args, struct err *err)
{
	int r = pending_sort_paths(&job->pending, args, n_args, true, &job->paths, err);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < job->pending.list.n; i++)
		r = take_root(job, i, err);
	pending_paths_free(job->paths, job->pending.list.n);
	if (r == 0 && job->cli->json)
		str_puts(&job->out, job->n ? "]\n" : "[]\n");
	if (r == 0 && job->n == 0 && n_args > 0 && !job->cli->quiet)
		log_warn("nothing that is pending lies there: `cloche changes %s` lists what does",
			job->pending.id);
	return r < 0 ? r : cli_print(&job->out, err);
}

static int take_none(struct job *job, struct err *err)
{
	if (job->cli->json)
		str_puts(&job->out, "[]\n");
	if (!job->cli->quiet)
		log_warn("nothing of it is pending, and its own root is gone: what changed is told "
			 "by `cloche changes %s`",
			job->pending.id);
	return cli_print(&job->out, err);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct diff_options *o = options;
	struct job job = {.cli = cli};
	int r = cli_need_root(err);

	if (r == 0)
		r = pending_open(cli, args[0], PENDING_SHOW, &job.pending, err);
	else
		return r;
	if (r == 0)
		r = job.pending.set ? take_all(&job, args + 1, n_args - 1, err)
		                    : take_none(&job, err);
	pending_done(&job.pending);
	str_done(&job.out);
	return r < 0 ? r : o->exit_code && job.n > 0 ? CLI_NO : 0;
}

static const struct option table[] = {
	{"exit-code", 0, NULL, "exit with 1 where anything differs", OPTION_ON,
		offsetof(struct diff_options, exit_code)},
	{NULL},
};
static const struct option_group groups[] = {{"Diff", table}, {NULL}};

const struct verb verb_diff = {
	.name = "diff",
	.class = VERB_FILES,
	.usage = "ID [PATH...]",
	.help = "what a sandbox changed in your folder, as a patch",
	.text = "A patch as git makes them, for `git apply` or `patch -p1` in that folder. Files "
		"that are no "
		"text\nor too large stand in it by size and hash: git refuses those, and takes the "
		"rest with\n--exclude=PATH. /etc and /usr/local where they are named.",
	.groups = groups,
	.options_size = sizeof(struct diff_options),
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
