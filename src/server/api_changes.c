/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox changed, its manifest and its summary: what `cloche` prints of them, run by the launcher, since the
 * files are root's. Nothing here writes to a folder of the host: `apply` is for people at the host. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/api.h"
#include "server/indexer.h"
#include "server/launcher_ask.h"
#include "server/page.h"
#include "util/fdio.h"
#include "util/mem.h"

#define ANSWER_MAX (32u << 20) /* of what a verb prints: more is for the host's own shell */
#define ROOTS_MAX  8

/* What a verb prints goes through a file without a name in our own folder: it may be more than a pipe holds. */
static int run_verb(struct call *call, struct launcher_verb *verb, struct str *out, struct err *err)
{
	scoped_mem char *folder = mem_printf("%s/server", call->server->state_dir);
	scoped_fd int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_set(err, -errno, "make a file in '%s': %m", folder);
	verb->stdout_fd = fd;
	r = launcher_ask_verb(call, verb, NULL, err);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, -errno, "read what the verb printed: %m");
	r = fdio_read_all(fd, ANSWER_MAX, out);
	return r == -EFBIG ? err_set(err, r, "the answer is longer than %u MiB: ask for less",
				     ANSWER_MAX >> 20)
	                   : r;
}

static void trim(struct str *out)
{
	while (out->len > 0 && (out->p[out->len - 1] == '\n' || out->p[out->len - 1] == ' '))
		out->p[--out->len] = '\0';
}

/* A list that a verb printed, as all of a page. */
static void wrap(struct call *call, struct str *list)
{
	trim(list);
	str_puts(&call->out, "{\"items\":");
	str_add(&call->out, list->p, list->len);
	str_puts(&call->out, ",\"next_cursor\":null}");
}

int api_changes(struct call *call, struct err *err)
{
	static const char *const options[] = {"--json", NULL};
	scoped_str struct str list = {0};
	struct launcher_verb verb = {.verb = "changes", .options = options};
	int r = api_sandbox_id(call, &verb.sandbox, NULL, err);

	if (r == 0)
		r = run_verb(call, &verb, &list, err);
	if (r == 0)
		wrap(call, &list);
	return r < 0 ? r : 0;
}

/* As a patch, or what stands in it change by change. */
int api_diff(struct call *call, struct err *err)
{
	static const char *const names[] = {"path", NULL};
	bool is_json = call_accepts(call, "application/json");
	const char *options[] = {is_json ? "--json" : "--color=never", NULL},
		   *words[] = {call_query(call, "path"), NULL};
	scoped_str struct str list = {0};
	struct launcher_verb verb = {.verb = "diff", .options = options, .words = words};
	int r = api_sandbox_id(call, &verb.sandbox, NULL, err);

	if (r == 0)
		r = call_check_query(call, names, err);
	if (r == 0)
		r = run_verb(call, &verb, is_json ? &list : &call->out, err);
	if (r < 0)
		return r;
	if (is_json)
		wrap(call, &list);
	call->status = 200; /* nothing differs is an answer, too */
	call->type = is_json ? NULL : "text/x-diff; charset=utf-8";
	return 0;
}

static int read_roots(
	const struct call *call, const char *ret_roots[ROOTS_MAX + 1], struct err *err)
{
	const json_t *roots = json_object_get(call->body, "roots");

	if (roots && !json_is_array(roots) && !json_is_null(roots))
		return err_set(err, -EINVAL, "member 'roots': want a list of paths");
	if (json_array_size(roots) > ROOTS_MAX)
		return err_set(err, -EINVAL, "member 'roots': at most %d", ROOTS_MAX);
	for (size_t i = 0; i < json_array_size(roots); i++) {
		const char *root = json_string_value(json_array_get(roots, i));

		if (!root || root[0] != '/' ||
			strlen(root) != json_string_length(json_array_get(roots, i)))
			return err_set(err, -EINVAL, "member 'roots': want absolute paths");
		ret_roots[i] = root;
	}
	return 0;
}

int api_manifest(struct call *call, struct err *err)
{
	static const char *const members[] = {"roots", "all", NULL};
	const char *roots[ROOTS_MAX + 1] = {NULL}, *options[] = {"--jsonl", NULL, NULL};
	bool is_all = false;
	struct launcher_verb verb = {.verb = "manifest", .options = options, .words = roots};
	char state[16] = "";
	int r = api_sandbox_id(call, &verb.sandbox, state, err);

	if (r == 0)
		r = call_check_body(call, members, err);
	if (r == 0)
		r = read_roots(call, roots, err);
	if (r == 0)
		r = call_bool(call, "all", &is_all, err);
	if (is_all)
		options[1] = "--all";
	if (r == 0 && strcmp(state, "running") != 0 && strcmp(state, "paused") != 0)
		r = err_set(
			err, -ENOTCONN, "sandbox %s does not run: it is %s", verb.sandbox, state);
	if (r == 0)
		r = run_verb(call, &verb, &call->out, err);
	call->type = "application/jsonl";
	return r < 0 ? r : 0;
}

static int read_paths(
	const struct call *call, const char *ret_paths[ROOTS_MAX + 1], struct err *err)
{
	const json_t *paths = json_object_get(call->body, "paths");

	if (paths && !json_is_array(paths) && !json_is_null(paths))
		return err_set(err, -EINVAL, "member 'paths': want a list of paths");
	if (json_array_size(paths) > ROOTS_MAX)
		return err_set(err, -EINVAL, "member 'paths': at most %d", ROOTS_MAX);
	for (size_t i = 0; i < json_array_size(paths); i++) {
		ret_paths[i] = json_string_value(json_array_get(paths, i));
		if (!ret_paths[i] ||
			strlen(ret_paths[i]) != json_string_length(json_array_get(paths, i)))
			return err_set(err, -EINVAL, "member 'paths': want texts without NUL");
	}
	return 0;
}

int api_discard(struct call *call, struct err *err)
{
	static const char *const members[] = {"paths", NULL};
	bool is_text = call_accepts(call, "text/plain");
	const char *paths[ROOTS_MAX + 1] = {NULL}, *options[] = {is_text ? NULL : "--json", NULL};
	struct launcher_verb verb = {.verb = "discard", .options = options, .words = paths};
	int r = api_sandbox_id(call, &verb.sandbox, NULL, err);

	if (r == 0)
		r = call_check_body(call, members, err);
	if (r == 0)
		r = read_paths(call, paths, err);
	if (r == 0)
		r = launcher_ask_audit(
			call, "changes.discarded", verb.sandbox, verb.sandbox, NULL, err);
	if (r == 0)
		r = run_verb(call, &verb, &call->out, err);
	if (!is_text)
		trim(&call->out);
	call->type = is_text ? "text/plain; charset=utf-8" : NULL;
	return r < 0 ? r : 0;
}

int api_report(struct call *call, struct err *err)
{
	static const char *const names[] = {"color", NULL};
	bool is_markdown = call_accepts(call, "text/markdown"),
	     is_text = call_accepts(call, "text/plain"), has_color = false;
	const char *options[] = {is_markdown ? "--markdown"
				 : !is_text  ? "--json"
					     : "--color=never",
		NULL};
	struct launcher_verb verb = {.verb = "show", .options = options};
	int r = api_sandbox_id(call, &verb.sandbox, NULL, err);

	if (r == 0)
		r = call_check_query(call, names, err);
	if (r == 0)
		r = call_query_bool(call, "color", &has_color, err);
	if (is_text && !is_markdown && has_color)
		options[0] = "--color=always";
	if (r == 0)
		r = run_verb(call, &verb, &call->out, err);
	if (!is_text)
		trim(&call->out);
	call->type = is_markdown ? "text/markdown; charset=utf-8"
	             : is_text   ? "text/plain; charset=utf-8"
	                         : NULL;
	return r < 0 ? r : 0;
}
