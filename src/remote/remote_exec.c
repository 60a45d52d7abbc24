/* SPDX-License-Identifier: Apache-2.0 */
/* exec: a command in a sandbox of the server's. */
#include "remote/remote_exec.h"

#include <errno.h>
#include <string.h>

#include "cli/records.h"
#include "remote/exec_follow.h"
#include "remote/remote_life.h"
#include "remote/remote_verbs.h"
#include "util/mem.h"

int remote_exec_check(const struct verb *verb, const struct exec_options *o)
{
	if (o->terminal == EXEC_TERMINAL_YES)
		return remote_verbs_refuse(verb, "-t not with a server",
			"commands have no terminal over HTTP; on its host, `cloche exec -t` gives "
			"one");
	if (o->exec->detach && o->exec->has_stdin)
		return remote_verbs_refuse(verb, "-i with --detach not with a server",
			"nobody would be there to pass stdin on");
	if (o->exec->source && strcmp(o->exec->source, "agent") != 0)
		return remote_verbs_refuse(verb, "--source not with a server",
			"what comes over HTTP is an agent's; leave it out");
	return 0;
}

static json_t *text(const char *value, struct err *err)
{
	json_t *json = json_string(value);

	if (!json)
		(void)err_set(err, -EINVAL,
			"'%s' is not UTF-8, and only that goes over HTTP: put it into a file of "
			"the sandbox",
			value);
	return json;
}

static int add_argv(json_t *body, const struct spec_words *argv, struct err *err)
{
	json_t *list = json_array();

	if (argv->n > 0)
		json_object_set_new(body, "argv", list);
	else
		json_decref(list);
	for (size_t i = 0; i < argv->n; i++)
		if (json_array_append_new(list, text(argv->items[i], err)) < 0)
			return -EINVAL;
	return 0;
}

static int add_env(json_t *body, const struct spec_words *env, struct err *err)
{
	json_t *object = json_object();

	json_object_set_new(body, "env", object);
	for (size_t i = 0; i < env->n; i++) {
		const char *eq = strchr(env->items[i], '=');
		scoped_mem char *name = mem_copy(env->items[i], (size_t)(eq - env->items[i]));

		if (json_object_set_new(object, name, text(eq + 1, err)) < 0)
			return err->msg[0] ? -EINVAL
			                   : err_set(err, -EINVAL, "'%s' is not UTF-8", name);
	}
	return 0;
}

static int add_text(json_t *body, const char *key, const char *value, struct err *err)
{
	return !value || json_object_set_new(body, key, text(value, err)) == 0 ? 0 : -EINVAL;
}

static int make_body(const struct spec_exec *exec, json_t *body, struct err *err)
{
	int r = add_text(body, "command", exec->command, err);

	if (r == 0)
		r = add_argv(body, &exec->argv, err);
	if (r == 0)
		r = add_text(body, "cwd", exec->cwd, err);
	if (r == 0)
		r = add_text(body, "user", exec->user, err);
	if (r == 0)
		r = add_env(body, &exec->env, err);
	if (r == 0 && exec->timeout_ms)
		json_object_set_new(body, "timeout_ms", json_integer(exec->timeout_ms));
	if (exec->detach)
		json_object_set_new(body, "detach", json_true());
	return r;
}

static int detach(const struct cli *cli, const char *sandbox, const json_t *body,
	struct exec_outcome *outcome, struct err *err)
{
	json_t *started = NULL;
	const char *id;
	int r = remote_life_ask(cli,
		&(struct remote_life_ask){
			.method = "POST", .id = sandbox, .act = "exec", .body = body, .once = true},
		&started, err);

	id = json_string_value(json_object_get(started, "exec"));
	if (r == 0 && id && id_is_valid("ex", id))
		memcpy(outcome->exec_id, id, ID_SIZE);
	else if (r == 0)
		r = err_set(err, -EIO, "the answer names no exec: is it a control plane?");
	json_decref(started);
	return r;
}

int remote_exec_run(const struct cli *cli, const char *sandbox, const struct spec_exec *exec,
	struct exec_outcome *ret_outcome, struct err *err)
{
	json_t *body = json_object();
	int r = make_body(exec, body, err);

	if (r == 0 && exec->detach)
		r = detach(cli, sandbox, body, ret_outcome, err);
	else if (r == 0)
		r = exec_follow(cli, sandbox, body, exec->has_stdin, ret_outcome, err);
	json_decref(body);
	if (r == 0 && !exec->detach)
		exec_outcome_explain(exec, ret_outcome);
	return r;
}

int remote_exec(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct exec_options *o = options;
	scoped_str struct str line = {0};
	struct exec_outcome outcome = {0};
	char id[ID_SIZE];
	int r = remote_exec_check(&verb_exec, o);

	if (r == 0)
		r = records_resolve(cli, args[0], id, err);
	if (r != 0)
		return r;
	exec_options_add_words(o, args + 1, n_args - 1);
	r = remote_exec_run(cli, id, o->exec, &outcome, err);
	if (r < 0 || !o->exec->detach)
		return r < 0 ? r : outcome.exit_status;
	str_printf(&line, "%s\n", outcome.exec_id);
	return cli_print(&line, err);
}
