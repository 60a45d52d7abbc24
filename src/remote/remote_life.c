/* SPDX-License-Identifier: Apache-2.0 */
/* inspect, pause, wake, suspend, resume, fork, stop. */
#include "remote/remote_life.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/create_options.h"
#include "cli/records.h"
#include "cli/spec_asked.h"
#include "cli/verb_options.h"
#include "remote/remote_verbs.h"
#include "remote/request.h"
#include "util/mem.h"

#define TRIES 30 /* of a request that may be sent again, one a second */

int remote_life_ask(
	const struct cli *cli, const struct remote_life_ask *ask, json_t **ret, struct err *err)
{
	scoped_mem char *path = mem_printf("/v1/sandboxes%s%s%s%s", ask->id ? "/" : "",
		ask->id ? ask->id : "", ask->act ? "/" : "", ask->act ? ask->act : "");
	scoped_mem char *body = ask->body ? json_dumps(ask->body, JSON_COMPACT) : NULL;
	char once[REQUEST_ONCE_SIZE];
	bool was_lost = false;
	int r, n_tries = ask->once ? TRIES : 1;

	request_new_once(once);
	do {
		if (was_lost)
			(void)sleep(1); /* the first of them may still be at work */
		r = request_json(link_of(cli),
			&(struct ask){.method = ask->method,
				.path = path,
				.body = slice_of(body),
				.once = ask->once ? once : NULL},
			ret, err);
		was_lost = was_lost || r == -ECONNRESET;
	} while (was_lost && (r == -ECONNRESET || r == -EBUSY) && --n_tries > 0);
	return r;
}

int remote_life_print_id(const struct cli *cli, const json_t *made, struct err *err)
{
	const char *id = json_string_value(json_object_get(made, "id"));
	scoped_str struct str out = {0};

	if (!id || !id_is_valid("sb", id))
		return err_set(err, -EIO, "the answer names no sandbox: is it a control plane?");
	str_printf(&out, "%s\n", id);
	return cli_print(&out, err);
}

static int ask_all(
	const struct cli *cli, const char *act, char **args, size_t n_args, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_args; i++) {
		char id[ID_SIZE];

		r = records_resolve(cli, args[i], id, err);
		if (r == 0)
			r = remote_life_ask(cli,
				&(struct remote_life_ask){.method = "POST", .id = id, .act = act},
				NULL, err);
	}
	return r;
}

int remote_pause(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return ask_all(cli, "pause", args, n_args, err);
}

int remote_wake(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return ask_all(cli, "wake", args, n_args, err);
}

int remote_suspend(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return ask_all(cli, "suspend", args, n_args, err);
}

int remote_stop(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return ask_all(cli, "stop", args, n_args, err);
}

#define AS_BEFORE "the server goes on with what the sandbox was made with; leave the options out"

/* None of its options was given: the struct is as init() leaves it. */
static bool is_untouched(const struct verb *verb, const void *options)
{
	scoped_mem void *usual = mem_zero(1, verb->options_size);
	bool is_same;

	verb->init(usual);
	is_same = memcmp(usual, options, verb->options_size) == 0;
	verb->done(usual);
	return is_same;
}

int remote_resume(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	if (!is_untouched(&verb_resume, options))
		return remote_verbs_refuse(&verb_resume, "not with a server", AS_BEFORE);
	return ask_all(cli, "resume", args, n_args, err);
}

static bool has_options(const struct create_options *o)
{
	json_t *asked = spec_asked(o->spec);
	bool has = json_object_size(asked) > 0 || o->agent || o->image.pull || o->hidden ||
	           o->within || o->secret_files.n > 0;

	json_decref(asked);
	return has;
}

int remote_fork(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	char id[ID_SIZE];
	json_t *made = NULL;
	int r;

	if (has_options(options))
		return remote_verbs_refuse(&verb_fork, "not with a server", AS_BEFORE);
	r = records_resolve(cli, args[0], id, err);
	if (r == 0)
		r = remote_life_ask(cli,
			&(struct remote_life_ask){
				.method = "POST", .id = id, .act = "fork", .once = true},
			&made, err);
	if (r == 0)
		r = remote_life_print_id(cli, made, err);
	json_decref(made);
	return r;
}

/* What the server tells of it. */
int remote_inspect(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	scoped_str struct str out = {0};
	scoped_mem char *text = NULL;
	char id[ID_SIZE];
	json_t *found = NULL;
	int r = records_resolve(cli, args[0], id, err);

	if (r == 0)
		r = remote_life_ask(
			cli, &(struct remote_life_ask){.method = "GET", .id = id}, &found, err);
	if (r < 0)
		return r;
	text = json_dumps(found, cli->jsonl ? JSON_COMPACT : JSON_INDENT(2));
	json_decref(found);
	str_printf(&out, "%s\n", text ? text : "null");
	return cli_print(&out, err);
}
