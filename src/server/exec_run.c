/* SPDX-License-Identifier: Apache-2.0 */
/* asked -> started -> ended (its row is read by a worker) -> answered. One that is detached is answered when it has
 * started; where it takes input it goes on to its end without a call.
 *
 * Output goes on only as fast as the client of a stream takes it, as through a pipe; nobody reads what waits for no
 * stream. */
#include "server/exec_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/allowance.h"
#include "server/api.h"
#include "server/exec_link.h"
#include "server/launcher_ask.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/utf8.h"

#define BACKLOG    (1u << 20) /* of output that waits for a client */
#define EVENT_TYPE "text/event-stream"

struct exec_run {
	struct work work;
	struct server *server;
	struct call *call; /* NULL: it has been answered */
	struct exec_ask *ask;
	struct exec_link *link; /* NULL: it is over */
	char exec[ID_SIZE];
	struct str held[2]; /* the begin of a character whose end has not come yet */
	bool is_started;
	int failure; /* negative: it did not come to an end that we know */
	struct err err;
};

void exec_ask_free(struct exec_ask *ask)
{
	if (!ask)
		return;
	if (ask->allowance)
		allowance_give(ask->allowance, ALLOWANCE_EXECS, ask->account);
	scoped_close(&ask->fd);
	str_done(&ask->spec);
	str_done(&ask->input);
	free(ask);
}

static void run_free(struct exec_run *run)
{
	exec_ask_free(run->ask);
	str_done(&run->held[0]);
	str_done(&run->held[1]);
	free(run);
}

/* ---- to the client ---- */

static void add_event(struct str *out, const char *name, struct slice data)
{
	str_printf(out, "event: %s\ndata: ", name);
	str_add(out, data.p, data.len);
	str_puts(out, "\n\n");
}

static void write_event(struct exec_run *run, const char *name, struct slice data)
{
	scoped_str struct str out = {0};

	add_event(&out, name, data);
	exchange_write(run->call->exchange, str_slice(&out));
}

static void write_text(struct exec_run *run, const char *name, struct slice text)
{
	scoped_str struct str json = {0};
	struct jsonw j = jsonw_to(&json);

	if (text.len == 0)
		return;
	jsonw_object(&j);
	jsonw_kslice(&j, "data", text);
	jsonw_object_end(&j);
	write_event(run, name, str_slice(&json));
}

static void on_output(void *ctx, int stream, struct slice bytes)
{
	struct exec_run *run = ctx;
	static const char *const names[] = {"stdout", "stderr"};
	struct str *held = &run->held[stream];
	size_t n;

	if (!run->ask->is_stream)
		return;
	str_add(held, bytes.p, bytes.len);
	n = utf8_whole_len(held->p, held->len);
	write_text(run, names[stream], (struct slice){.p = held->p, .len = n});
	memmove(held->p, held->p + n, held->len - n);
	held->len -= n;
	if (exchange_backlog(run->call->exchange) > BACKLOG)
		exec_link_hold(run->link, true);
}

static void on_drained(void *arg)
{
	struct exec_run *run = arg;

	if (run->link)
		exec_link_hold(run->link, false);
}

/* A client may leave before the command has begun, and is told of once: so both moments look. */
static void kill_for_nobody(struct exec_run *run)
{
	if (run->ask->kill_when_gone && run->is_started &&
		!exchange_has_client(run->call->exchange))
		exec_link_send(run->link, "kill", "");
}

static void on_gone(void *arg)
{
	struct exec_run *run = arg;

	if (!run->link)
		return;
	exec_link_hold(run->link, false); /* it may have been waiting for this client */
	kill_for_nobody(run);
}

/* ---- its end ---- */

static void run_end(struct work *work)
{
	struct exec_run *run = (struct exec_run *)work;
	int r = run->failure;

	if (r == -EPIPE)
		(void)launcher_ask_mend(run->server, run->ask->sandbox, NULL);
	if (!run->call)
		return;
	/* The row was written before we heard of the end. */
	if (r == 0 || (r == -EPIPE && run->is_started))
		r = api_exec_row(
			run->call, run->ask->sandbox, run->exec, &run->call->out, &run->err);
	if (r == 0 && run->ask->trace.shapes)
		exec_trace_add(run->server, &run->ask->trace, run->ask->sandbox, run->exec,
			&run->call->out);
	call_settle(run->call, r, &run->err);
	run->failure = r;
}

static void end_stream(struct exec_run *run)
{
	struct call *call = run->call;

	write_text(run, "stdout", str_slice(&run->held[0]));
	write_text(run, "stderr", str_slice(&run->held[1]));
	write_event(run, run->failure < 0 ? "error" : "exit", str_slice(&call->out));
	exchange_end(call->exchange, true);
	call_free(call);
}

static void end_done(struct work *work)
{
	struct exec_run *run = (struct exec_run *)work;

	if (run->call && run->ask->is_stream && run->is_started)
		end_stream(run);
	else if (run->call)
		call_send(run->call);
	run_free(run);
}

static void let_go(struct exec_run *run)
{
	(void)map_remove(run->server->execs, slice_of(run->exec)); /* not there yet, maybe */
	exec_link_free(run->link);
	run->link = NULL;
}

static void end(struct exec_run *run, int r)
{
	run->failure = r;
	let_go(run);
	run->work = (struct work){.run = run_end, .done = end_done};
	workers_add(run->ask->trace.shapes ? run->server->slow : run->server->workers, &run->work);
}

/* ---- from the supervisor ---- */

static void answer_detached(struct exec_run *run)
{
	struct call *call = take(&run->call);
	struct jsonw j = jsonw_to(&call->out);

	exchange_on_gone(call->exchange, NULL, NULL);
	exchange_on_drained(call->exchange, NULL, NULL);
	call->status = 202;
	jsonw_object(&j);
	jsonw_ktext(&j, "exec", run->exec);
	jsonw_object_end(&j);
	call_answer(call, 0, NULL);
}

static void on_started(void *ctx, const char *exec)
{
	struct exec_run *run = ctx;

	memccpy(run->exec, exec, '\0', sizeof(run->exec) - 1);
	run->is_started = true;
	*map_slot(run->server->execs, slice_of(run->exec)) = run;
	if (run->ask->is_detached)
		answer_detached(run);
	if (run->ask->is_detached && !run->ask->has_input) {
		let_go(run);
		run_free(run);
		return;
	}
	if (run->ask->is_stream) {
		scoped_mem char *start = mem_printf("{\"exec\":\"%s\"}", run->exec);

		exchange_begin(run->call->exchange, 200, EVENT_TYPE);
		write_event(run, "start", slice_of(start));
	}
	if (run->call)
		kill_for_nobody(run);
}

static void on_end(void *ctx, int r, const struct err *err, const json_t *row)
{
	struct exec_run *run = ctx;

	if (err)
		run->err = *err;
	if (r == -EBUSY && run->call && !run->is_started)
		run->call->code = "paused"; /* nothing else is busy with a connection of its own */
	end(run, r);
}

void exec_run(struct call *call)
{
	struct exec_run *run = new0(struct exec_run);
	struct exec_link_handler handler = {
		.on_started = on_started, .on_output = on_output, .on_end = on_end, .ctx = run};

	run->call = call;
	run->server = call->server;
	run->ask = take(&call->state);
	call->then = NULL;
	exchange_on_gone(call->exchange, on_gone, run);
	exchange_on_drained(call->exchange, on_drained, run);
	run->link = exec_link_new(call->server->base,
		&(struct exec_link_ask){.fd = take_fd(&run->ask->fd),
			.spec = str_slice(&run->ask->spec),
			.input = {str_slice(&run->ask->input)},
			.has_input = run->ask->has_input,
			.stays_open = run->ask->stays_open},
		&handler);
}

/* ---- input that comes by another request ---- */

struct exec_run *exec_run_find(struct server *server, const char *sandbox, const char *exec)
{
	struct exec_run *run = map_find(server->execs, slice_of(exec));

	return run && strcmp(run->ask->sandbox, sandbox) == 0 ? run : NULL;
}

int exec_run_feed(struct exec_run *run, struct slice bytes, bool is_end, size_t *ret_waiting,
	const char **ret_code, struct err *err)
{
	size_t waiting = exec_link_untaken(run->link);

	if (!run->ask->stays_open) {
		*ret_code = "stdin_not_open";
		return err_set(err, -EBADFD,
			"this command's input is not open: begin it with \"stdin_open\": true");
	}
	if (exec_link_is_input_over(run->link)) {
		*ret_code = "stdin_closed";
		return err_set(err, -EBADFD,
			"this command's input has ended: it was closed, or the command reads no "
			"more of it");
	}
	if (waiting + bytes.len > EXEC_RUN_INPUT_MAX) {
		*ret_code = "stdin_full";
		return err_set(err, -EDQUOT,
			"%zu bytes wait for this command to read them, and at most %u may: send "
			"this again when it has",
			waiting, EXEC_RUN_INPUT_MAX);
	}
	exec_link_feed(run->link, bytes, is_end);
	*ret_waiting = exec_link_untaken(run->link);
	return 0;
}
