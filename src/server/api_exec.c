/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/wire.h"
#include "server/allowance.h"
#include "server/api.h"
#include "server/exec_run.h"
#include "server/exec_stdin.h"
#include "server/indexer.h"
#include "server/launcher_ask.h"
#include "spec/spec.h"
#include "util/mem.h"

#define TIMEOUT_MAX_MS (30LL * 24 * 3600 * 1000)
#define WORDS_MAX      65536
#define SPEC_MAX       (WIRE_MAX - 1024) /* of a request to the supervisor, with its frame */

static int read_argv(const struct call *call, struct spec_exec *exec, struct err *err)
{
	const json_t *argv = json_object_get(call->body, "argv");

	if (!argv || json_is_null(argv))
		return 0;
	if (!json_is_array(argv) || json_array_size(argv) == 0 || json_array_size(argv) > WORDS_MAX)
		return err_set(err, -EINVAL, "member 'argv': want a list of texts, not empty");
	for (size_t i = 0; i < json_array_size(argv); i++) {
		const json_t *word = json_array_get(argv, i);
		const char *text = json_string_value(word);

		if (!text || strlen(text) != json_string_length(word))
			return err_set(err, -EINVAL,
				"member 'argv': want texts without NUL, not %s at %zu",
				text ? "one with NUL" : "something else", i);
		spec_words_add(&exec->argv, text);
	}
	return 0;
}

static int read_env(const struct call *call, struct spec_exec *exec, struct err *err)
{
	json_t *env = json_object_get(call->body, "env"), *value;
	const char *key;

	if (env && !json_is_object(env) && !json_is_null(env))
		return err_set(err, -EINVAL, "member 'env': want an object of texts");
	json_object_foreach(env, key, value)
	{
		const char *text = json_string_value(value);
		scoped_mem char *pair = NULL;

		if (!text || strlen(text) != json_string_length(value) || !*key || strchr(key, '='))
			return err_set(err, -EINVAL,
				"member 'env': want names without '=' and texts without NUL");
		pair = mem_printf("%s=%s", key, text);
		spec_words_add(&exec->env, pair);
	}
	return 0;
}

static int copy_text(const struct call *call, const char *key, char **ret, struct err *err)
{
	const char *text;
	int r = call_text(call, key, &text, err);

	if (r == 0)
		*ret = mem_dup(text);
	return r;
}

static int read_spec(const struct call *call, struct spec_exec *exec, struct err *err)
{
	static const char *const names[] = {"command", "argv", "cwd", "env", "user", "timeout_ms",
		"stdin", "stdin_open", "detach", "kill_on_disconnect", "trace", NULL};
	int r = call_check_body(call, names, err);

	if (r == 0)
		r = copy_text(call, "command", &exec->command, err);
	if (r == 0)
		r = read_argv(call, exec, err);
	if (r == 0 && (exec->command != NULL) == (exec->argv.n > 0))
		r = err_set(err, -EINVAL,
			"want either 'command' (a text for the shell) or 'argv' (a list)");
	if (r == 0)
		r = copy_text(call, "cwd", &exec->cwd, err);
	if (r == 0)
		r = read_env(call, exec, err);
	if (r == 0)
		r = copy_text(call, "user", &exec->user, err);
	if (r == 0)
		r = call_int(call, "timeout_ms", 1, TIMEOUT_MAX_MS, 0, &exec->timeout_ms, err);
	if (r == 0)
		r = call_bool(call, "detach", &exec->detach, err);
	return r;
}

static int read_input(
	const struct call *call, struct exec_ask *ask, struct spec_exec *exec, struct err *err)
{
	const json_t *input = json_object_get(call->body, "stdin");

	if (input && !json_is_null(input) && !json_is_string(input))
		return err_set(err, -EINVAL, "member 'stdin': want a text");
	if (json_is_string(input))
		str_add(&ask->input, json_string_value(input), json_string_length(input));
	ask->has_input = exec->has_stdin = ask->input.len > 0 || ask->stays_open;
	return 0;
}

static int read_trace(
	struct call *call, struct exec_ask *ask, const struct spec_exec *exec, struct err *err)
{
	int r = exec_trace_read(call, &ask->trace, err);

	if (r == 0 && ask->trace.shapes && exec->detach)
		r = err_set(err, -EINVAL,
			"'trace' and 'detach' exclude each other: ask for the trace when it has "
			"ended, at .../trace/...?exec=");
	return r;
}

static int connect_for(struct call *call, const char *id, struct exec_ask *ask, struct err *err)
{
	int r = ask->fd = launcher_ask_connect(call->server, id, err);

	if (r >= 0 && ask->trace.shapes)
		r = exec_trace_begin(call, &ask->trace, ask->fd, err);
	return r;
}

static int take_quota(struct call *call, struct exec_ask *ask, struct err *err)
{
	int r = allowance_take(call, ALLOWANCE_EXECS, err);

	if (r < 0)
		return r;
	ask->allowance = call->server->allowance;
	snprintf(ask->account, sizeof(ask->account), "%s", call->caller.account);
	return 0;
}

int api_exec_start(struct call *call, struct err *err)
{
	scoped(spec_exec) struct spec_exec *exec = spec_exec_new();
	scoped(exec_ask) struct exec_ask *ask = new0(struct exec_ask);
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	ask->fd = -1;
	if (r == 0)
		r = read_spec(call, exec, err);
	if (r == 0)
		r = call_bool(call, "stdin_open", &ask->stays_open, err);
	if (r == 0)
		r = read_input(call, ask, exec, err);
	if (r == 0)
		r = call_bool(call, "kill_on_disconnect", &ask->kill_when_gone, err);
	if (r == 0)
		r = read_trace(call, ask, exec, err);
	if (r == 0)
		r = take_quota(call, ask, err);
	if (r == 0)
		r = connect_for(call, id, ask, err);
	if (r < 0)
		return r;
	exec->source = mem_dup("agent");
	exec->via = mem_dup("api");
	exec->actor = mem_dup(call->caller.actor);
	ask->is_detached = exec->detach;
	exec->detach &= !ask->has_input; /* else we stay with it, for its input */
	spec_exec_write(&ask->spec, exec);
	if (ask->spec.len > SPEC_MAX)
		return err_set(err, -E2BIG,
			"what is to be run is too long: %zu bytes as JSON, at most %u",
			ask->spec.len, SPEC_MAX);
	memcpy(ask->sandbox, id, ID_SIZE);
	ask->is_stream = call_accepts(call, "text/event-stream") && !ask->is_detached;
	call->state = take(&ask);
	call->then = exec_run;
	return 0;
}

/* ---- one that was begun ---- */

static int write_row(const struct store_log_row *row, void *arg)
{
	str_puts(arg, row->json);
	return 0;
}

int api_exec_row(
	struct call *call, const char *sandbox, const char *exec, struct str *out, struct err *err)
{
	/* Another worker may have indexed it already. */
	int r = indexer_catch_up(call->server->indexer, sandbox, exec, out, err);

	if (r == 0)
		r = store_log_get(call->server->store, call->caller.account, sandbox, exec,
			write_row, out, err);
	return r < 0 ? r : 0;
}

int api_exec_get(struct call *call, struct err *err)
{
	const char *id = NULL;
	int r = api_sandbox_anywhere(call, &id, NULL, err);

	if (r == 0)
		r = store_log_get(call->server->store, call->caller.account, id, call->params[1],
			write_row, &call->out, err);
	if (r == -ENOENT || (r >= 0 && call->out.len == 0))
		return err_set(
			err, -ENOENT, "no command '%s' has ended in this sandbox", call->params[1]);
	return r < 0 ? r : 0;
}

int api_exec_kill(struct call *call, struct err *err)
{
	struct launcher_question kill = {
		.request = "kill", .key = "exec", .value = call->params[1]};
	int r = api_sandbox_id(call, &kill.sandbox, NULL, err);

	return r < 0 ? r : launcher_ask_supervisor(call, &kill, NULL, err);
}

static int read_more(const struct call *call, struct exec_stdin_ask *ask, struct err *err)
{
	static const char *const names[] = {"data", "data_b64", "eof", NULL};
	int r = call_check_body(call, names, err), has_bytes = 0;

	if (r == 0)
		r = call_bool(call, "eof", &ask->is_end, err);
	if (r == 0)
		r = has_bytes = call_bytes(call, "data", &ask->bytes, err);
	if (r == 0 && !has_bytes && !ask->is_end)
		return err_set(err, -EINVAL, "want 'data' or 'data_b64', or 'eof': true, or both");
	return r < 0 ? r : 0;
}

int api_exec_stdin(struct call *call, struct err *err)
{
	scoped(exec_stdin_ask) struct exec_stdin_ask *ask = new0(struct exec_stdin_ask);
	const char *id = NULL, *exec = call->params[1];
	int r = api_sandbox_id(call, &id, NULL, err);

	if (r == 0 && !id_is_valid("ex", exec))
		r = err_set(err, -ENOENT, "there is no command '%s' in this sandbox", exec);
	if (r == 0)
		r = read_more(call, ask, err);
	if (r < 0)
		return r;
	memcpy(ask->sandbox, id, ID_SIZE);
	memcpy(ask->exec, exec, ID_SIZE);
	call->state = take(&ask);
	call->then = exec_stdin;
	return 0;
}
