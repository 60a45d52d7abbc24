/* SPDX-License-Identifier: Apache-2.0 */
/* asked -> started -> ended (its row is read by a worker) -> answered.
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
#include "server/indexer.h"
#include "server/launcher_ask.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/utf8.h"

#define BACKLOG    (1u << 20) /* of output that waits for a client */
#define EVENT_TYPE "text/event-stream"

struct exec_run {
	struct work work;
	struct call *call;
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

static void on_gone(void *arg)
{
	struct exec_run *run = arg;

	if (!run->link)
		return;
	exec_link_hold(run->link, false); /* it may have been waiting for this client */
	if (run->ask->kill_when_gone && run->is_started)
		exec_link_send(run->link, "kill", "");
}

/* ---- its end ---- */

static int copy_row(const struct store_log_row *row, void *arg)
{
	str_puts(arg, row->json);
	return 0;
}

/* The row was written before we heard of the end; another worker may have indexed it already. */
static int find_row(struct exec_run *run, struct err *err)
{
	struct call *call = run->call;
	int r = indexer_catch_up(
		call->server->indexer, run->ask->sandbox, run->exec, &call->out, err);

	if (r == 0)
		r = store_log_get(call->server->store, call->caller.account, run->ask->sandbox,
			run->exec, copy_row, &call->out, err);
	return r < 0 ? r : 0;
}

static void run_end(struct work *work)
{
	struct exec_run *run = (struct exec_run *)work;
	int r = run->failure;

	if (r == -EPIPE)
		(void)launcher_ask_mend(run->call->server, run->ask->sandbox, NULL);
	if (!run->ask->is_detached && (r == 0 || (r == -EPIPE && run->is_started)))
		r = find_row(run, &run->err);
	if (run->ask->is_detached && r == 0) {
		struct jsonw j = jsonw_to(&run->call->out);

		run->call->status = 202;
		jsonw_object(&j);
		jsonw_ktext(&j, "exec", run->exec);
		jsonw_object_end(&j);
	}
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

	if (run->ask->is_stream && run->is_started)
		end_stream(run);
	else
		call_send(run->call);
	run_free(run);
}

static void end(struct exec_run *run, int r)
{
	run->failure = r;
	exec_link_free(run->link);
	run->link = NULL;
	run->work = (struct work){.run = run_end, .done = end_done};
	workers_add(run->call->server->workers, &run->work);
}

/* ---- from the supervisor ---- */

static void on_started(void *ctx, const char *exec)
{
	struct exec_run *run = ctx;

	memccpy(run->exec, exec, '\0', sizeof(run->exec) - 1);
	run->is_started = true;
	if (run->ask->is_detached) {
		end(run, 0);
		return;
	}
	if (run->ask->is_stream) {
		scoped_mem char *start = mem_printf("{\"exec\":\"%s\"}", run->exec);

		exchange_begin(run->call->exchange, 200, EVENT_TYPE);
		write_event(run, "start", slice_of(start));
	}
}

static void on_end(void *ctx, int r, const struct err *err, const json_t *row)
{
	struct exec_run *run = ctx;

	if (err)
		run->err = *err;
	if (r == -EBUSY && !run->is_started)
		run->call->code = "paused"; /* nothing else is busy with a connection of its own */
	end(run, r);
}

void exec_run(struct call *call)
{
	struct exec_run *run = new0(struct exec_run);
	struct exec_link_handler handler = {
		.on_started = on_started, .on_output = on_output, .on_end = on_end, .ctx = run};

	run->call = call;
	run->ask = take(&call->state);
	call->then = NULL;
	exchange_on_gone(call->exchange, on_gone, run);
	exchange_on_drained(call->exchange, on_drained, run);
	run->link = exec_link_new(call->server->base,
		&(struct exec_link_ask){.fd = take_fd(&run->ask->fd),
			.spec = str_slice(&run->ask->spec),
			.input = {str_slice(&run->ask->input)},
			.has_input = run->ask->input.len > 0},
		&handler);
}
