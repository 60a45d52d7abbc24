/* SPDX-License-Identifier: Apache-2.0 */
/* cloche watch-files: what changes below a folder of a living sandbox, as it changes.
 *
 * Names and files are read as the user that the sandbox's root is outside, with no right of root's but to read: so what the
 * kernel gives each user for watching is the sandbox's own, and no sandbox takes it from others. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/reader_rights.h"
#include "cli/sandbox_root.h"
#include "cli/verb.h"
#include "cli/verb_options.h"
#include "cli/watch_files_text.h"
#include "manifest/watch_line.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"

#define AGAIN_MS 200 /* between two looks for a folder that is gone */

struct job {
	const struct cli *cli;
	const struct watch_files_options *o;
	struct sandbox_root sandbox;
	struct str path;   /* as asked for, absolute */
	struct str folder; /* it, or the one that holds it */
	struct watch_line line;
	struct watch *watch; /* NULL: what was asked for is not there */
	struct str out;
};

/* ---- lines ---- */

static void on_change(void *arg, const struct watch_change *change)
{
	struct job *job = arg;
	struct view_style style = cli_style(job->cli);
	scoped_str struct str json = {0};

	watch_line_write(&job->line, change, &json);
	if (job->cli->json || job->cli->jsonl || job->o->bounds)
		str_add(&job->out, json.p, json.len);
	else
		watch_files_text_add(&job->out, &style, str_slice(&json));
	str_putc(&job->out, '\n');
}

/* Of the stream itself. r: what it failed with. */
static void add_bound(struct job *job, const char *change, int r, const char *reason)
{
	struct jsonw j = jsonw_to(&job->out);
	char at[CLOCK_TEXT_LEN];

	if (!job->o->bounds)
		return;
	clock_format(clock_wall_ms(), at);
	jsonw_object(&j);
	jsonw_ktext(&j, "at", at);
	jsonw_ktext(&j, "change", change);
	if (r < 0)
		jsonw_ktext(&j, "error", strerrorname_np(-r));
	else
		jsonw_kslice(&j, "path", str_slice(&job->path));
	if (reason)
		jsonw_ktext(&j, "reason", reason);
	jsonw_object_end(&j);
	str_putc(&job->out, '\n');
}

static int flush(struct job *job, struct err *err)
{
	int r = job->out.len > 0 ? cli_print(&job->out, err) : 0;

	str_reset(&job->out);
	return r;
}

/* ---- what is watched ---- */

/* A folder, or what lies at a name in one. The folder's descriptor. */
static int open_target(struct job *job, const char **ret_only, struct err *err)
{
	const char *slash = strrchr(job->path.p, '/');
	int fd = sandbox_root_folder(&job->sandbox, job->path.p, err), r;

	*ret_only = NULL;
	str_reset(&job->folder);
	if (fd != -ENOTDIR) {
		str_puts(&job->folder, job->path.p);
		return fd;
	}
	r = sandbox_root_check_file(&job->sandbox, job->path.p, err);
	if (r < 0)
		return r;
	str_add(&job->folder, job->path.p, slash > job->path.p ? (size_t)(slash - job->path.p) : 1);
	*ret_only = slash + 1;
	return sandbox_root_folder(&job->sandbox, job->folder.p, err);
}

static int start(struct job *job, bool is_again, struct err *err)
{
	struct watch_config config = {.tell_all = is_again,
		.entries_max = (size_t)job->o->files,
		.tell = on_change,
		.arg = job};
	scoped_fd int fd = open_target(job, &config.only, err);
	int r;

	if (fd < 0)
		return fd;
	config.root_fd = fd;
	job->line = (struct watch_line){.base = job->folder.p,
		.id_base = job->sandbox.id_base,
		.id_count = SANDBOX_ROOT_IDS};
	r = watch_open(&config, &job->watch, err);
	return r < 0 ? err_wrap(err, r, "'%s' of sandbox %s", job->path.p, job->sandbox.id) : 0;
}

/* What is not there may come: an error of looking for it says no more than that. */
static int look_again(struct job *job, struct err *err)
{
	struct err why = {0};
	int r = start(job, true, &why);

	if (r == -ENOSPC || r == -EMFILE) {
		*err = why;
		return r;
	}
	return 0;
}

static int work(struct job *job, struct err *err)
{
	int r;

	if (!job->watch)
		return look_again(job, err);
	r = watch_work(job->watch);
	if (r < 0)
		return err_set(err, r, "watch '%s': %m", job->path.p);
	if (r == 1) {
		watch_free(job->watch);
		job->watch = NULL;
	}
	return 0;
}

/* ---- until the sandbox ends, or nobody reads any more ---- */

static bool wait_for_more(struct job *job)
{
	struct pollfd p[] = {
		{.fd = job->sandbox.pidfd, .events = POLLIN},
		{.fd = STDOUT_FILENO}, /* told when its reader has gone */
		{.fd = job->watch ? watch_fd(job->watch) : -1, .events = POLLIN},
	};

	(void)poll(p, 3, job->watch ? -1 : AGAIN_MS);
	return !(p[0].revents & POLLIN) && !(p[1].revents & (POLLERR | POLLHUP));
}

static int follow(struct job *job, struct err *err)
{
	int r;

	do {
		r = work(job, err);
		r = r < 0 ? r : flush(job, err);
	} while (r == 0 && wait_for_more(job));
	if (r < 0 || !sandbox_root_has_ended(&job->sandbox))
		return r;
	if (job->watch)
		watch_finish(job->watch);
	add_bound(job, "ended", 0, NULL);
	r = flush(job, err);
	if (r == 0 && !job->cli->quiet)
		log_warn("sandbox %s has ended, or was suspended", job->sandbox.id);
	return r;
}

/* With --wait what is not there yet is looked for, as what has gone is. */
static int start_first(struct job *job, struct err *err)
{
	int r = start(job, false, err);

	return job->o->wait && (r == -ENOENT || r == -ENOTDIR) ? 0 : r;
}

static int watch_path(struct job *job, const char *path, struct err *err)
{
	int r = 0;

	path_resolve(str_slice(&job->sandbox.cwd), slice_of(path), &job->path);
	if (job->sandbox.id_base)
		r = reader_rights_keep(job->sandbox.id_base, err);
	if (r == 0)
		r = start_first(job, err);
	if (r < 0)
		return r;
	add_bound(job, "began", 0, NULL);
	if (!job->cli->quiet)
		log_warn("watching %s of sandbox %s; Ctrl-C ends it", job->path.p, job->sandbox.id);
	return follow(job, err);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct job job = {.cli = cli, .o = options};
	int r = sandbox_root_open(cli, args[0], &job.sandbox, err);
	bool is_open = r == 0;

	(void)n_args;
	if (r == 0) {
		r = watch_path(&job, args[1], err);
		watch_free(job.watch);
		sandbox_root_done(&job.sandbox);
	}
	if (r < 0) {
		struct err ignored; /* whoever reads nothing any more need not know */

		add_bound(&job, "failed", is_open ? r : -ESRCH, err->msg);
		(void)flush(&job, &ignored);
	}
	str_done(&job.path);
	str_done(&job.folder);
	str_done(&job.out);
	return r;
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	const struct watch_files_options *o = options;

	(void)args;
	(void)n_args;
	return o->files > WATCH_ENTRIES_MAX
	               ? err_set(err, -EINVAL, "'--files': at most %d", WATCH_ENTRIES_MAX)
	               : 0;
}

static const struct option table[] = {
	{"wait", 0, NULL, "PATH need not be there yet", OPTION_ON,
		offsetof(struct watch_files_options, wait)},
	{"bounds", 0, NULL,
		"for programs: a line of JSON when it has begun, and when it ends or fails",
		OPTION_ON, offsetof(struct watch_files_options, bounds)},
	{"files", 0, "N", "of how many files and folders it knows at most (1000000)", OPTION_COUNT,
		offsetof(struct watch_files_options, files)},
	{NULL},
};

static const struct option_group groups[] = {{"Options", table}, {NULL}};

const struct verb verb_watch_files = {
	.name = "watch-files",
	.class = VERB_FILES,
	.usage = "ID PATH",
	.help = "what changes below a folder of a living sandbox, as it changes",
	.text = "A line for each settled change, also while the sandbox is paused, until it ends. "
		"docs/watch-files.md says what settled means. A relative PATH is below the folder "
		"in which commands start.",
	.groups = groups,
	.options_size = sizeof(struct watch_files_options),
	.min_args = 2,
	.max_args = 2,
	.check = check,
	.run = run,
};
