/* SPDX-License-Identifier: Apache-2.0 */
/* changes, diff, discard, manifest: what a sandbox changed, as the server tells it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fold.h"
#include "cli/records.h"
#include "cli/verb_options.h"
#include "remote/remote_life.h"
#include "remote/remote_verbs.h"
#include "remote/request.h"
#include "remote/safe_text.h"
#include "util/log.h"
#include "util/mem.h"

/* ---- changes ---- */

int remote_changes(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct changes_options *o = options;
	json_t *answer = NULL;
	char id[ID_SIZE];
	int r;

	if (o->part.execs || o->part.since || o->part.until || o->full)
		return remote_verbs_refuse(&verb_changes, "a part, or --full, not with a server",
			"it tells what the whole run changed; `cloche files --exec EX` tells what "
			"a "
			"command touched");
	r = records_resolve(cli, args[0], id, err);
	if (r == 0)
		r = remote_life_ask(cli,
			&(struct remote_life_ask){.method = "GET", .id = id, .act = "changes"},
			&answer, err);
	if (r == 0)
		r = verb_changes_print(cli, json_object_get(answer, "items"), o->verbose, err);
	json_decref(answer);
	return r;
}

/* ---- diff ---- */

/* A patch, or with JSON an object for each change; all of it where path is NULL. */
struct patches {
	const struct cli *cli;
	const char *id;
	bool is_json;
	struct str text;
	json_t *list;
};

static int ask_patch(struct patches *p, const char *path, struct err *err)
{
	scoped_str struct str url = {0}, text = {0};
	json_t *page = NULL;
	int r;

	str_printf(&url, "/v1/sandboxes/%s/diff", p->id);
	if (path) {
		str_puts(&url, "?path=");
		address_add_part(&url, path);
	}
	if (p->is_json) {
		r = request_json(link_of(p->cli), &(struct ask){.path = url.p}, &page, err);
		if (r == 0)
			json_array_extend(p->list, json_object_get(page, "items"));
		json_decref(page);
		return r;
	}
	r = request_text(
		link_of(p->cli), &(struct ask){.path = url.p, .accept = "text/x-diff"}, &text, err);
	str_add(&p->text, text.p ? text.p : "", text.len);
	return r;
}

/* A patch goes out byte by byte, as on a host: it is for programs. */
static int print_patches(struct patches *p, struct err *err)
{
	scoped_mem char *json = NULL;

	if (p->is_json) {
		json = json_dumps(p->list, JSON_COMPACT);
		if (p->cli->jsonl)
			(void)fold_add_lines(&p->text, slice_of(json), NULL, err);
		else
			str_printf(&p->text, "%s\n", json);
	}
	return cli_print(&p->text, err);
}

int remote_diff(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct diff_options *o = options;
	char id[ID_SIZE];
	struct patches p = {
		.cli = cli, .id = id, .is_json = cli->json || cli->jsonl, .list = json_array()};
	bool has_any;
	int r = records_resolve(cli, args[0], id, err);

	if (r == 0 && n_args == 1)
		r = ask_patch(&p, NULL, err);
	for (size_t i = 1; r == 0 && i < n_args; i++)
		r = ask_patch(&p, args[i], err);
	has_any = p.text.len > 0 || json_array_size(p.list) > 0;
	if (r == 0)
		r = print_patches(&p, err);
	str_done(&p.text);
	json_decref(p.list);
	return r < 0 ? r : o->exit_code && has_any ? CLI_NO : 0;
}

/* ---- discard ---- */

static int print_discarded(const struct cli *cli, const struct str *text, struct err *err)
{
	scoped_str struct str out = {0};

	safe_text_add(&out, (struct slice){text->p ? text->p : "", text->len}, false);
	if (cli->json || cli->jsonl)
		str_putc(&out, '\n');
	return cli_print(&out, err);
}

int remote_discard(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	bool is_json = cli->json || cli->jsonl;
	scoped_str struct str text = {0};
	scoped_mem char *path = NULL, *body = NULL;
	json_t *asked = json_object(), *paths = json_array();
	char id[ID_SIZE];
	int r = records_resolve(cli, args[0], id, err);

	for (size_t i = 1; i < n_args; i++)
		json_array_append_new(paths, json_string(args[i]));
	if (n_args > 1)
		json_object_set(asked, "paths", paths);
	if (r == 0 && json_array_size(paths) != n_args - 1)
		r = err_set(err, -EINVAL,
			"a path that is not UTF-8 cannot go over HTTP: name its folder");
	body = json_dumps(asked, JSON_COMPACT);
	json_decref(paths);
	json_decref(asked);
	if (r < 0)
		return r;
	path = mem_printf("/v1/sandboxes/%s/discard", id);
	r = request_text(link_of(cli),
		&(struct ask){.method = "POST",
			.path = path,
			.accept = is_json ? "application/json" : "text/plain",
			.body = slice_of(body)},
		&text, err);
	return r < 0 ? r : print_discarded(cli, &text, err);
}

/* ---- manifest ---- */

int remote_manifest(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct manifest_options *o = options;

	if (o->host)
		return remote_verbs_refuse(&verb_manifest, "--host not with a server",
			"it is about a folder of this host: leave --server out (and unset "
			"CLOCHE_SERVER)");
	return verb_manifest.run(cli, options, args, n_args, err);
}
