/* SPDX-License-Identifier: Apache-2.0 */
/* cloche manifest: every file below a folder with its hash, and what differs from an earlier list. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/changes_text.h"
#include "cli/elsewhere.h"
#include "cli/records.h"
#include "cli/sandbox_root.h"
#include "cli/verb.h"
#include "cli/verb_options.h"
#include "manifest/compare.h"
#include "manifest/manifest_words.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"

#define CHECK_MAX (2LL << 30) /* bytes of a list to compare with */

/* One call: what was asked for, and where its roots lie. */
struct job {
	const struct cli *cli;
	const struct manifest_options *o;
	struct sandbox_root sandbox; /* fd -1: folders of the host */
	struct manifest_list check;
	struct str out;
	size_t n_differences;
	bool has_more; /* of the list that --json prints */
};

/* ---- a root ---- */

static int open_host(const char *path, struct err *err)
{
	scoped_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "open '%s': %m", path);
	if (sandbox_root_is_kernels(fd))
		return err_set(err, -EXDEV,
			"'%s' is made by the kernel: there are no files to list", path);
	return take_fd(&fd);
}

/* What the control plane says of one: it knows where commands start. */
static int read_elsewhere(struct job *job, const char *path, bool all, struct tree *ret_tree,
	struct str *ret_root, struct err *err)
{
	bool is_start = strcmp(path, ".") == 0;
	scoped_mem char *found = NULL;
	int r;

	if (!is_start && path[0] != '/')
		return err_set(err, -EINVAL, "'%s': want an absolute path, with a server", path);
	r = job->cli->elsewhere->tree(
		job->cli, job->sandbox.id, is_start ? NULL : path, all, ret_tree, &found, err);
	if (r == 0 && found)
		str_puts(ret_root, found);
	return r;
}

static int read_root(
	struct job *job, const char *root, bool all, struct tree *ret_tree, struct err *err)
{
	bool is_inside = job->sandbox.fd >= 0;
	scoped_fd int fd =
		is_inside ? sandbox_root_folder(&job->sandbox, root, err) : open_host(root, err);
	struct tree_config config = {.root_fd = fd, .all = all};
	int r;

	if (fd < 0)
		return fd;
	if (is_inside) {
		config.id_base = job->sandbox.id_base;
		config.id_count = SANDBOX_ROOT_IDS;
	}
	r = tree_read(&config, ret_tree, err);
	return r < 0 ? err_wrap(err, r, "%s", root) : 0;
}

/* ---- the list ---- */

static void add_row(struct str *out, const struct tree_entry *entry)
{
	const char *problem = manifest_problem_word(entry->problem);
	char owner[MANIFEST_OWNER_SIZE], mode[8] = "-";

	manifest_owner_text(entry->uid, entry->gid, owner);
	if (!S_ISLNK(entry->mode))
		(void)snprintf(mode, sizeof(mode), "%04o", entry->mode & 07777U);
	str_printf(out, "%-9s  %4s  %-7s", manifest_type_word(entry->mode), mode, owner);
	if (S_ISREG(entry->mode))
		str_printf(out, "  %10lld  %-64s", (long long)entry->size, entry->sha256);
	str_puts(out, "  ");
	log_add_escaped(out, slice_of(entry->path));
	if (entry->target) {
		str_puts(out, " -> ");
		log_add_escaped(out, slice_of(entry->target));
	}
	if (problem)
		str_printf(out, "  (%s)", problem);
	str_putc(out, '\n');
}

static void add_table(struct str *out, const char *root, const struct tree *tree)
{
	log_add_escaped(out, slice_of(root));
	str_printf(out, ": %zu entries, %lld bytes read", tree->n, (long long)tree->bytes);
	if (tree->vanished)
		str_printf(out, ", %zu gone meanwhile", tree->vanished);
	str_putc(out, '\n');
	for (size_t i = 0; i < tree->n; i++)
		add_row(out, &tree->items[i]);
}

static void add_list(struct job *job, const char *root, const struct tree *tree)
{
	char now[CLOCK_TEXT_LEN];
	struct manifest_head head = {.root = root,
		.sandbox = job->sandbox.id[0] ? job->sandbox.id : NULL,
		.made_at = now,
		.all = job->o->all};

	clock_format(clock_wall_ms(), now);
	if (job->cli->json || job->cli->jsonl)
		manifest_lines_write(&job->out, &head, tree);
	else
		add_table(&job->out, root, tree);
}

/* ---- what differs ---- */

/* The one of this root, else the only one there is. */
static struct manifest *find_earlier(struct job *job, const char *root)
{
	for (size_t i = 0; i < job->check.n; i++)
		if (job->check.items[i].root && strcmp(job->check.items[i].root, root) == 0)
			return &job->check.items[i];
	return job->check.n == 1 ? &job->check.items[0] : NULL;
}

/* Else "unchanged" would say too much. */
static void add_not_looked_at(struct str *out, const struct tree *tree)
{
	static const char *const names[] = {".git", "node_modules"};
	bool is_there[] = {false, false};

	for (size_t i = 0; i < tree->n; i++) {
		struct slice path = slice_of(tree->items[i].path);

		if (tree->items[i].problem == TREE_SKIPPED)
			is_there[slice_ends(path, names[1])] = true;
	}
	if (!is_there[0] && !is_there[1])
		return;
	str_printf(out, "  (%s%s%s not looked at: make the list with --all)\n",
		is_there[0] ? names[0] : "", is_there[0] && is_there[1] ? " and " : "",
		is_there[1] ? names[1] : "");
}

static int add_differences(struct job *job, const char *root, struct manifest *earlier,
	const struct tree *tree, struct err *err)
{
	struct view_style style = cli_style(job->cli);
	scoped_str struct str text = {0};
	json_error_t why;
	json_t *object;

	if (earlier->has_sums_only)
		manifest_take_below(earlier, root);
	job->n_differences += compare_write(&text, root, earlier, tree);
	if (job->cli->json || job->cli->jsonl) {
		str_printf(&job->out, "%s%s%s",
			job->cli->jsonl ? ""
			: job->has_more ? ","
					: "[",
			text.p, job->cli->jsonl ? "\n" : "");
		job->has_more = true;
		return 0;
	}
	object = json_loadb(text.p, text.len, 0, &why);
	if (!object)
		return err_set(err, -EBADMSG, "list of differences: %s", why.text);
	changes_text_add(&job->out, &style, object, false);
	add_not_looked_at(&job->out, tree);
	json_decref(object);
	return 0;
}

static int read_check(struct job *job, struct err *err)
{
	scoped_str struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, job->o->check, CHECK_MAX, &text);

	if (r < 0)
		return err_set(err, r, "read '%s': %m", job->o->check);
	r = manifest_lines_read(str_slice(&text), &job->check, err);
	return r < 0 ? err_wrap(err, r, "'%s'", job->o->check) : 0;
}

/* ---- all roots ---- */

/* A list says where its root lies whoever reads it, so an absolute path: below where a command starts, or where the
 * caller is. */
static int name_root(const struct job *job, const char *path, struct str *ret_root, struct err *err)
{
	scoped_mem char *real = NULL;

	if (job->cli->elsewhere)
		return 0;
	if (job->sandbox.fd >= 0 && path[0] != '/') {
		path_resolve(str_slice(&job->sandbox.cwd), slice_of(path), ret_root);
		return 0;
	}
	if (path[0] != '/') {
		real = realpath(path, NULL);
		if (!real)
			return err_set(err, -errno, "open '%s': %m", path);
	}
	str_puts(ret_root, real ? real : path);
	return 0;
}

/* What a manifest left out is left out again: else it would be told as added, or what it has as removed. */
static bool is_all(const struct job *job, const struct manifest *earlier)
{
	return earlier ? earlier->all || (earlier->has_sums_only && job->o->all) : job->o->all;
}

static int take_root(struct job *job, const char *path, struct err *err)
{
	scoped_str struct str root = {0};
	struct tree tree = {0};
	struct manifest *earlier = NULL;
	int r = name_root(job, path, &root, err);
	const char *at = root.p ? root.p : path;
	bool all;

	if (r == 0 && job->o->check)
		earlier = find_earlier(job, at);
	if (r == 0 && job->o->check && !earlier)
		r = err_set(err, -ENOENT, "'%s' holds no manifest of %s", job->o->check, at);
	all = is_all(job, earlier);
	if (r == 0)
		r = job->cli->elsewhere ? read_elsewhere(job, path, all, &tree, &root, err)
		                        : read_root(job, at, all, &tree, err);
	at = root.p ? root.p : path;
	if (r == 0 && earlier)
		r = add_differences(job, at, earlier, &tree, err);
	else if (r == 0)
		add_list(job, at, &tree);
	tree_done(&tree);
	return r;
}

/* Those that were named; else those that the earlier list has; else where commands start. */
static int take_roots(struct job *job, char **roots, size_t n, struct err *err)
{
	size_t n_listed = n == 0 && job->check.n > 0 && job->check.items[0].root ? job->check.n : 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = take_root(job, roots[i], err);
	for (size_t i = 0; r == 0 && i < n_listed; i++)
		if (job->check.items[i].root)
			r = take_root(job, job->check.items[i].root, err);
	if (n + n_listed == 0)
		r = take_root(job, ".", err);
	return r;
}

static int run_job(struct job *job, char **roots, size_t n, struct err *err)
{
	int r = job->o->check ? read_check(job, err) : 0;

	if (r == 0)
		r = take_roots(job, roots, n, err);
	if (r == 0 && job->o->check && job->cli->json && !job->cli->jsonl)
		str_puts(&job->out, "]\n");
	if (r == 0)
		r = cli_print(&job->out, err);
	return r < 0 ? r : job->n_differences > 0 ? CLI_NO : 0;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct manifest_options *o = options;
	struct job job = {.cli = cli, .o = o, .sandbox = {.fd = -1, .pidfd = -1}};
	int r = 0;

	if (cli->elsewhere)
		r = records_resolve(cli, args[0], job.sandbox.id, err);
	else if (!o->host)
		r = sandbox_root_open(cli, args[0], &job.sandbox, err);
	if (r == 0)
		r = run_job(&job, args + !o->host, n_args - !o->host, err);
	sandbox_root_done(&job.sandbox);
	manifest_list_done(&job.check);
	str_done(&job.out);
	return r;
}

static const struct option table[] = {
	{"check", 0, "FILE",
		"compare with an earlier list: what manifest --json or sha256sum printed; "
		"exit status 1 where anything differs",
		OPTION_TEXT, offsetof(struct manifest_options, check)},
	{"host", 0, NULL, "DIR is a folder of this host, no sandbox", OPTION_ON,
		offsetof(struct manifest_options, host)},
	{"all", 0, NULL, "also what lies below .git and node_modules", OPTION_ON,
		offsetof(struct manifest_options, all)},
	{NULL},
};

static const struct option_group groups[] = {{"Options", table}, {NULL}};

const struct verb verb_manifest = {
	.name = "manifest",
	.class = VERB_FILES,
	.usage = "[--check FILE] ID [ROOT...] | [--check FILE] --host DIR...",
	.help = "every file below a folder with its hash",
	.text = "Without a ROOT, the folder in which commands start; a relative one is below that. "
		"Links, pipes, sockets and devices are listed, never opened; other filesystems are "
		"not entered. --check reads what --json prints:\n"
		"  cloche manifest --json --host . >before\n"
		"  cloche manifest --check before --host .",
	.groups = groups,
	.options_size = sizeof(struct manifest_options),
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
