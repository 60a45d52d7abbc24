/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/apply_branch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host_git.h"
#include "manifest/beneath.h"
#include "manifest/git_store.h"
#include "manifest/merged.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define FROM "refs/heads/" GIT_STORE_BRANCH

struct branch {
	const struct cli *cli;
	const struct pending *pending;
	const struct changes *changes; /* of the mount that the repository lies in */
	const char *name;
	char *ref; /* "refs/heads/NAME" */
	bool force;
	struct str shown; /* the repository's folder on the host */
	struct git_source source;
	struct git_store store;
	int host_fd;           /* where the host's git runs */
	struct host_git host;  /* on the host's repository */
	struct host_git inner; /* on the store */
	struct str out, why;
	char old[GIT_TEXT_ID_SIZE]; /* what the branch was, "" where it is new */
	char *n_commits;
};

/* ---- which repository ---- */

static int open_source(struct branch *b, const struct changes *changes, const char *path,
	struct git_source *ret, struct err *err)
{
	scoped_str struct str shown = {0};
	int top, r;

	*ret = (struct git_source){.fd = -1};
	top = merged_open(changes->layer, err);
	if (top < 0)
		return top;
	path_resolve(slice_of(changes->root), slice_of(path), &shown);
	r = git_source_open(top, path, shown.p, ret, err);
	scoped_close(&top);
	if (r == -ENOENT)
		return r;
	b->changes = changes;
	str_reset(&b->shown);
	path_resolve(slice_of(changes->layer->lower), slice_of(path), &b->shown);
	return r;
}

/* Without a path: the one mount that is a repository. */
static int find_source(struct branch *b, struct err *err)
{
	size_t n = 0;
	int found = err_set(err, -ENOENT,
		"no folder that the sandbox had as a copy is a git "
		"repository: name the one in it that is");

	for (size_t i = 0; i < b->pending->list.n; i++) {
		const struct changes *changes = b->pending->list.roots[i];
		struct git_source source;
		struct err why;
		int r = changes->cow ? open_source(b, changes, ".", &source, &why) : -ENOENT;

		if (r == -ENOENT)
			continue;
		if (++n > 1) {
			git_source_done(&source);
			return err_set(err, -EINVAL,
				"the sandbox had several git repositories: "
				"name the folder of the one you mean");
		}
		b->source = source;
		found = r < 0 ? err_set(err, r, "%s", why.msg) : 0;
	}
	return found;
}

static int choose_source(struct branch *b, char **args, size_t n_args, struct err *err)
{
	struct pending_paths *paths = NULL;
	int r;

	if (n_args > 1)
		return err_set(err, -EINVAL,
			"--branch takes commits of one repository at a time: "
			"name one folder");
	if (n_args == 0)
		return find_source(b, err);
	r = pending_sort_paths(b->pending, args, n_args, false, &paths, err);
	for (size_t i = 0; r == 0 && i < b->pending->list.n; i++)
		if (paths[i].n > 0)
			r = open_source(
				b, b->pending->list.roots[i], paths[i].paths[0], &b->source, err);
	pending_paths_free(paths, b->pending->list.n);
	return r;
}

/* ---- the host's repository ---- */

static int open_host(struct branch *b, struct err *err)
{
	const struct change_layer *l = b->changes->layer;
	const char *folder = b->source.folder, *name = ".";
	scoped_fd int top = open(l->lower, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	scoped_fd int git_fd = top < 0 ? -errno : beneath_open(top, folder, O_RDONLY | O_DIRECTORY);

	if (git_fd < 0)
		return err_set(err, git_fd, "'%s' is no git repository on the host%s", b->shown.p,
			git_fd == -ENOENT ? ": run `git init` there first"
					  : ", or not a plain one: %m");
	if (strcmp(folder, ".git") == 0 || slice_ends(slice_of(folder), "/.git"))
		b->host_fd = beneath_open_parent(top, folder, &name);
	else
		b->host_fd = take_fd(&git_fd);
	if (b->host_fd < 0)
		return err_set(err, b->host_fd, "open '%s': %m", b->shown.p);
	b->host = (struct host_git){.cli = b->cli,
		.dir_fd = b->host_fd,
		.dir = name,
		.uid = l->owner_uid,
		.gid = l->owner_gid};
	return 0;
}

/* Negative with a sentence where git itself could not be run. */
static int git(
	struct branch *b, const struct host_git *where, const char *const *args, struct err *err)
{
	int r = host_git_run(where, args, &b->out, &b->why);

	if (r == -ENOENT)
		return err_set(err, r, "git: not found: install it (Debian: git)");
	return r < 0 ? err_set(err, r, "run git %s: %m", args[0]) : r;
}
#define GIT(b, where, err, ...) git(b, where, (const char *const[]){__VA_ARGS__, NULL}, err)

/* What git said of why it would not. */
static int fail(const struct branch *b, const char *what, struct err *err)
{
	return err_set(err, -EIO, "%s: %s", what, b->why.len ? b->why.p : "git gave no reason");
}

static int check_format(struct branch *b, struct err *err)
{
	bool is_256 = strlen(b->source.id) == GIT_TEXT_ID_SIZE - 1;
	int r = GIT(b, &b->host, err, "rev-parse", "--show-object-format");

	if (r < 0)
		return r;
	if (r > 0)
		return fail(b, "look at the host's repository", err);
	if (strcmp(b->out.p ? b->out.p : "", is_256 ? "sha256" : "sha1") != 0)
		return err_set(err, -EOPNOTSUPP,
			"the sandbox's repository names its objects by %s, the host's does not: "
			"its commits do not fit",
			is_256 ? "SHA-256" : "SHA-1");
	return 0;
}

static int make_store(struct branch *b, struct err *err)
{
	const struct change_layer *l = b->changes->layer;
	scoped_fd int git_fd = beneath_open(b->host_fd, b->host.dir, O_RDONLY | O_DIRECTORY);
	int r = git_store_make(
		git_fd, b->pending->id, l->owner_uid, l->owner_gid, &b->source, &b->store, err);

	b->inner = b->host;
	b->inner.dir_fd = b->store.fd;
	b->inner.dir = ".";
	for (size_t i = 0; r == 0 && i < b->store.n_packs; i++) {
		r = GIT(b, &b->inner, err, "index-pack", b->store.packs[i]);
		if (r > 0)
			r = fail(b, "a pack of the sandbox's repository is broken", err);
	}
	return r;
}

/* ---- whether there is anything to bring, and whether it may come ---- */

static int check_commit(struct branch *b, struct err *err)
{
	int r = GIT(b, &b->inner, err, "cat-file", "-t", b->source.id);

	if (r < 0)
		return r;
	if (r > 0 || strcmp(b->out.p ? b->out.p : "", "commit") != 0)
		return err_set(err, -ENODATA,
			"the sandbox's HEAD names %s, which is no commit in its repository (%s)",
			b->source.id,
			b->why.len > 0   ? b->why.p
			: b->out.len > 0 ? b->out.p
					 : "not there");
	return 0;
}

/* CLI_NO with a note where the host has it already. */
static int check_new(struct branch *b, struct str *note, struct err *err)
{
	int r = GIT(b, &b->host, err, "cat-file", "-e", b->source.id);

	if (r != 0)
		return r < 0 ? r : 0;
	r = GIT(b, &b->host, err, "for-each-ref", "--count=1", "--format=%(refname)", "--contains",
		b->source.id);
	if (r != 0 || b->out.len == 0)
		return r < 0 ? r : 0;
	str_printf(note, "no new commits: %.12s, where the sandbox's HEAD is, is in the host's ",
		b->source.id);
	log_add_escaped(note, str_slice(&b->out));
	return CLI_NO;
}

/* A branch that is another name for one: git looks whether that name is checked out, not what it leads to. */
static int check_alias(struct branch *b, struct str *refused, struct err *err)
{
	int r = GIT(b, &b->host, err, "symbolic-ref", "--quiet", b->ref);

	if (r != 0)
		return r < 0 ? r : 0;
	str_puts(refused, "on the host that is another name for ");
	log_add_escaped(refused, str_slice(&b->out));
	str_puts(refused, ": choose another name");
	return CLI_NO;
}

static int check_place(struct branch *b, struct str *refused, struct err *err)
{
	int r = check_alias(b, refused, err);

	if (r != 0)
		return r;
	r = GIT(b, &b->host, err, "rev-parse", "--verify", "--quiet", b->ref);
	if (r != 0)
		return r < 0 ? r : 0;
	if (!git_text_is_id(str_slice(&b->out)))
		return fail(b, "look at the host's branch", err);
	memcpy(b->old, b->out.p, b->out.len + 1);
	r = b->force ? 0
	             : GIT(b, &b->inner, err, "merge-base", "--is-ancestor", b->old, b->source.id);
	if (r <= 0)
		return r;
	str_printf(refused,
		"the host has a branch of that name at %.12s, with what the sandbox "
		"does not have: choose another name, or --force",
		b->old);
	return CLI_NO;
}

/* ---- bringing it over ---- */

static int fetch(struct branch *b, struct str *refused, struct err *err)
{
	scoped_mem char *objects = NULL, *spec = NULL;
	int r = GIT(b, &b->host, err, "rev-parse", "--git-path", "objects");

	if (r != 0)
		return r < 0 ? r : fail(b, "look at the host's repository", err);
	objects = mem_printf("%s%s/%s", b->out.p[0] == '/' ? "" : "./", b->out.p, b->store.name);
	spec = mem_printf("%s%s:%s", b->force ? "+" : "", FROM, b->ref);
	r = GIT(b, &b->host, err, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
		"--no-write-fetch-head", "--no-auto-maintenance", objects, spec);
	if (r <= 0)
		return r;
	if (b->why.len > 0 && strcasestr(b->why.p, "refusing to fetch into")) {
		str_puts(refused, "that branch is checked out on the host: choose another name");
		return CLI_NO;
	}
	return fail(b, "git fetch from the sandbox's commits", err);
}

static int count_commits(struct branch *b, struct err *err)
{
	scoped_mem char *exclude = mem_printf("--exclude=%s", b->ref);
	int r = GIT(b, &b->host, err, "rev-list", "--count", b->source.id, "--not", exclude,
		"--all", b->old[0] ? b->old : NULL);

	if (r == 0)
		b->n_commits = str_take(&b->out);
	return r < 0 ? r : 0;
}

/* ---- what is said ---- */

static void add_text(const struct branch *b, struct str *out)
{
	const char *s = b->n_commits && strcmp(b->n_commits, "1") == 0 ? "" : "s";

	str_printf(out, "branch   %s at %.12s: %s commit%s", b->name, b->source.id,
		b->n_commits ? b->n_commits : "some", s);
	if (b->old[0])
		str_printf(out, "%s %.12s", b->force ? ", was" : " more than", b->old);
	str_puts(out, "\nlook at them with `git log ");
	str_printf(out, "%s` in '", b->name);
	log_add_escaped(out, str_slice(&b->shown));
	str_printf(out, "'; their files are still pending one by one (`cloche changes %s`)\n",
		b->pending->id);
}

static void add_json(
	const struct branch *b, const char *result, const struct str *why, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "root", b->changes->root);
	jsonw_ktext(&j, "branch", b->name);
	jsonw_ktext(&j, "result", result);
	jsonw_ktext(&j, "commit", b->source.id);
	jsonw_ktext(&j, "before", b->old[0] ? b->old : NULL);
	if (b->n_commits)
		jsonw_kint(&j, "commits", strtol(b->n_commits, NULL, 10));
	if (why->len > 0)
		jsonw_kslice(&j, "note", str_slice(why));
	jsonw_object_end(&j);
	str_putc(out, '\n');
}

static int tell(const struct branch *b, const char *result, const struct str *why, struct err *err)
{
	scoped_str struct str out = {0};

	if (b->cli->json || b->cli->jsonl)
		add_json(b, result, why, &out);
	else if (strcmp(result, "refused") == 0)
		str_printf(&out, "refused  %s  (%s)\n", b->name, why->p);
	else if (strcmp(result, "applied") == 0)
		add_text(b, &out);
	else
		str_printf(&out, "%s\n", why->p);
	return cli_print(&out, err);
}

static int enter_ledger(const struct branch *b, struct err *err)
{
	scoped_mem char *detail = mem_printf("branch %s at %s", b->name, b->source.id);

	return pending_enter_act(b->cli, b->pending->id, "apply", detail, err);
}

static int bring(struct branch *b, struct err *err)
{
	scoped_str struct str note = {0};
	int r = make_store(b, err);

	if (r == 0)
		r = check_commit(b, err);
	if (r == 0)
		r = check_new(b, &note, err);
	if (r == CLI_NO)
		return tell(b, "nothing", &note, err);
	if (r == 0)
		r = check_place(b, &note, err);
	if (r == 0)
		r = fetch(b, &note, err);
	if (r == CLI_NO) {
		r = tell(b, "refused", &note, err);
		return r < 0 ? r : CLI_NO;
	}
	if (r == 0)
		r = count_commits(b, err);
	if (r == 0)
		r = enter_ledger(b, err);
	return r < 0 ? r : tell(b, "applied", &note, err);
}

static void done(struct branch *b)
{
	git_store_done(&b->store);
	git_source_done(&b->source);
	scoped_close(&b->host_fd);
	str_done(&b->shown);
	str_done(&b->out);
	str_done(&b->why);
	free(b->n_commits);
	free(b->ref);
}

int apply_branch(const struct cli *cli, struct pending *pending, const char *name, bool force,
	char **args, size_t n_args, struct err *err)
{
	struct branch b = {.cli = cli,
		.pending = pending,
		.name = name,
		.force = force,
		.ref = mem_printf("refs/heads/%s", name),
		.source = {.fd = -1},
		.store = {.objects_fd = -1, .fd = -1},
		.host_fd = -1};
	int r = 0;

	if (!git_text_is_ref_name(slice_of(b.ref)) || strcmp(name, "HEAD") == 0)
		r = err_set(err, -EINVAL, "'%s' is no name for a branch", name);
	else if (!pending->set)
		r = err_set(err, -ENOENT, "nothing of '%s' is kept any more: its commits are gone",
			pending->id);
	if (r == 0)
		r = choose_source(&b, args, n_args, err);
	if (r == 0 && !b.changes)
		r = -ENOENT; /* none was chosen: said already */
	if (r == 0)
		r = open_host(&b, err);
	if (r == 0)
		r = check_format(&b, err);
	if (r == 0)
		r = bring(&b, err);
	done(&b);
	return r;
}
