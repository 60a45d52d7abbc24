/* SPDX-License-Identifier: Apache-2.0 */
#include "server/exec_stdin.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "server/api.h"
#include "server/exec_run.h"
#include "server/launcher_ask.h"
#include "util/jsonw.h"
#include "util/mem.h"

void exec_stdin_ask_free(struct exec_stdin_ask *ask)
{
	if (!ask)
		return;
	str_done(&ask->bytes);
	free(ask);
}

static void write_answer(struct call *call, const struct exec_stdin_ask *ask, size_t waiting)
{
	struct jsonw j = jsonw_to(&call->out);

	jsonw_object(&j);
	jsonw_ktext(&j, "exec", ask->exec);
	jsonw_kint(&j, "bytes", (int64_t)ask->bytes.len);
	jsonw_kint(&j, "waiting_bytes", (int64_t)waiting);
	jsonw_kbool(&j, "eof", ask->is_end);
	jsonw_object_end(&j);
}

/* ---- of one that is not held here ---- */

static int ask_supervisor(
	struct call *call, const struct exec_stdin_ask *ask, bool *ret_is_open, struct err *err)
{
	struct launcher_question input = {
		.sandbox = ask->sandbox, .request = "input", .key = "exec", .value = ask->exec};
	json_t *answer = NULL;
	int r = launcher_ask_supervisor(call, &input, &answer, err);

	*ret_is_open = json_is_true(json_object_get(answer, "open"));
	json_decref(answer);
	return r;
}

/* Never 0. */
static int say_why(struct call *call, const struct exec_stdin_ask *ask, struct err *err)
{
	scoped_str struct str row = {0};
	struct err none;
	bool is_open;
	int r = ask_supervisor(call, ask, &is_open, err);

	if (r == 0 && is_open) {
		call->code = "stdin_held_elsewhere";
		return err_set(err, -EBADFD,
			"another process of the control plane began this command and holds its "
			"input: send it there");
	}
	if (r == 0) {
		call->code = "stdin_not_open";
		return err_set(err, -EBADFD,
			"this command's input is not open: it was begun without \"stdin_open\", or "
			"the process that held it has ended");
	}
	if (api_exec_row(call, ask->sandbox, ask->exec, &row, &none) == 0 && row.len > 0)
		return err_set(err, -EPIPE, "this command has ended");
	if (r == -ESRCH || r == -ENOTCONN)
		return err_set(err, -ENOENT, "there is no command '%s' in this sandbox", ask->exec);
	return r;
}

static void elsewhere_run(struct work *work)
{
	struct call *call = (struct call *)work;
	struct exec_stdin_ask *ask = take(&call->state);
	struct err err = {0};

	call_settle(call, say_why(call, ask, &err), &err);
	exec_stdin_ask_free(ask);
}

static void elsewhere_done(struct work *work)
{
	call_send((struct call *)work);
}

void exec_stdin(struct call *call)
{
	struct exec_stdin_ask *ask = call->state;
	struct exec_run *run = exec_run_find(call->server, ask->sandbox, ask->exec);
	struct err err = {0};
	size_t waiting;
	int r;

	call->then = NULL;
	if (!run) {
		call->work = (struct work){.run = elsewhere_run, .done = elsewhere_done};
		workers_add(call->server->workers, &call->work);
		return;
	}
	r = exec_run_feed(run, str_slice(&ask->bytes), ask->is_end, &waiting, &call->code, &err);
	if (r == 0)
		write_answer(call, ask, waiting);
	exec_stdin_ask_free(take(&call->state));
	call_answer(call, r, &err);
}
