/* SPDX-License-Identifier: Apache-2.0 */
#include "server/file_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/api.h"
#include "server/exec_link.h"
#include "server/indexer.h"
#include "server/launcher_ask.h"
#include "util/mem.h"
#include "util/utf8.h"

#define ANSWER_MAX   (16u << 20) /* more than any operation gives */
#define SENTENCE_MAX 480
#define BACKLOG      (1u << 20) /* of a download that waits for its client */
#define BYTES_TYPE   "application/octet-stream"

struct file_run {
	struct work work;
	struct call *call;
	struct file_ask *ask;
	struct exec_link *link; /* NULL: it is over */
	char exec[ID_SIZE];
	struct str answer, said; /* said: on its second output */
	bool is_started, has_begun;
	int exit; /* FILES_WIRE_FAILED and above: it did not come to an end */
	int failure;
	struct err err;
};

static const struct {
	unsigned status;
	const char *code;
} outcomes[FILES_WIRE_FAILED] = {
	[FILES_WIRE_INVALID] = {400, "invalid"},
	[FILES_WIRE_NOT_FOUND] = {404, "file_not_found"},
	[FILES_WIRE_EXISTS] = {409, "exists"},
	[FILES_WIRE_NOT_FILE] = {409, "not_a_file"},
	[FILES_WIRE_NOT_FOLDER] = {409, "not_a_folder"},
	[FILES_WIRE_FORBIDDEN] = {403, "forbidden_place"},
	[FILES_WIRE_DENIED] = {403, "denied"},
	[FILES_WIRE_NO_SPACE] = {507, "no_space"},
	[FILES_WIRE_TOO_LARGE] = {413, "too_large"},
	[FILES_WIRE_NO_MATCH] = {409, "no_match"},
	[FILES_WIRE_MANY_MATCHES] = {409, "many_matches"},
	[FILES_WIRE_TOO_SLOW] = {422, "too_slow"},
	[FILES_WIRE_CUT] = {409, "ended"},
};

void file_ask_free(struct file_ask *ask)
{
	if (!ask)
		return;
	scoped_close(&ask->fd);
	str_done(&ask->spec);
	str_done(&ask->head);
	str_done(&ask->own);
	free(ask);
}

static void run_free(struct file_run *run)
{
	file_ask_free(run->ask);
	str_done(&run->answer);
	str_done(&run->said);
	free(run);
}

/* ---- its end ---- */

/* The sentence, in characters: what it quotes may be any bytes. */
static int say(struct file_run *run, unsigned status, const char *code)
{
	struct str *said = &run->said;

	run->call->status = status;
	run->call->code = code;
	said->len = utf8_whole_len(said->p, said->len);
	for (size_t i = 0; said->len > 0 && !utf8_is_valid(said->p, said->len) && i < said->len;
		i++)
		if (said->p[i] & 0x80)
			said->p[i] = '?';
	return err_set(&run->err, -EIO, "%.*s", (int)said->len, said->len > 0 ? said->p : "");
}

static int fail_inside(struct file_run *run)
{
	str_reset(&run->said);
	str_puts(&run->said,
		"the operation did not come to an end: its process inside was stopped, or the "
		"sandbox lacks memory; try again");
	return say(run, 502, "operation_failed");
}

static int answer_json(struct file_run *run)
{
	struct call *call = run->call;
	json_t *root = json_loadb(run->answer.p ? run->answer.p : "", run->answer.len,
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	char *text;

	if (!json_is_object(root)) {
		json_decref(root);
		return fail_inside(run);
	}
	if (json_is_true(json_object_get(root, "created")))
		call->status = 201;
	json_object_set_new(root, "exec", json_string(run->exec));
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	str_puts(&call->out, text ? text : "");
	free(text);
	return 0;
}

static int make_answer(struct file_run *run)
{
	if (run->failure < 0)
		return run->failure;
	if (run->exit < 0 || run->exit >= FILES_WIRE_FAILED || run->answer.len > ANSWER_MAX)
		return fail_inside(run);
	if (run->exit != FILES_WIRE_OK)
		return outcomes[run->exit].code
		               ? say(run, outcomes[run->exit].status, outcomes[run->exit].code)
		               : fail_inside(run);
	return run->ask->is_download ? 0 : answer_json(run);
}

/* Whoever has the answer finds the row in the log. */
static void run_end(struct work *work)
{
	struct file_run *run = (struct file_run *)work;

	if (run->failure == -EPIPE)
		(void)launcher_ask_mend(run->call->server, run->ask->sandbox, NULL);
	if (run->is_started)
		(void)indexer_catch_up(run->call->server->indexer, run->ask->sandbox, NULL, NULL,
			NULL); /* else it comes a little later */
	run->failure = make_answer(run);
	call_settle(run->call, run->failure, &run->err);
}

static void begin(struct file_run *run)
{
	struct exchange *exchange = run->call->exchange;
	scoped_str struct str fields = {0};

	run->has_begun = true;
	http1_add_field(&fields, slice_of("Content-Disposition"), slice_of("attachment"));
	http1_add_field(&fields, slice_of("Cloche-Exec"), slice_of(run->exec));
	exchange_add_fields(exchange, str_slice(&fields));
	exchange_begin(exchange, 200, BYTES_TYPE);
}

static void end_done(struct work *work)
{
	struct file_run *run = (struct file_run *)work;
	struct call *call = run->call;

	if (run->ask->is_download && run->failure == 0 && !run->has_begun)
		begin(run); /* an empty file */
	if (run->has_begun) {
		exchange_end(call->exchange, run->failure == 0);
		call_free(call);
	} else {
		call_send(call);
	}
	run_free(run);
}

static void end(struct file_run *run)
{
	exec_link_free(run->link);
	run->link = NULL;
	run->work = (struct work){.run = run_end, .done = end_done};
	workers_add(run->call->server->workers, &run->work);
}

/* ---- from the supervisor and the client ---- */

static void on_started(void *ctx, const char *exec)
{
	struct file_run *run = ctx;

	memccpy(run->exec, exec, '\0', sizeof(run->exec) - 1);
	run->is_started = true;
}

static void on_output(void *ctx, int stream, struct slice bytes)
{
	struct file_run *run = ctx;

	if (stream == 1) {
		size_t room = SENTENCE_MAX - run->said.len;

		str_add(&run->said, bytes.p, bytes.len < room ? bytes.len : room);
	} else if (!run->ask->is_download) {
		if (run->answer.len <= ANSWER_MAX)
			str_add(&run->answer, bytes.p, bytes.len);
	} else {
		if (!run->has_begun)
			begin(run);
		exchange_write(run->call->exchange, bytes);
		if (exchange_backlog(run->call->exchange) > BACKLOG)
			exec_link_hold(run->link, true);
	}
}

static void on_end(void *ctx, int r, const struct err *err, const json_t *row)
{
	struct file_run *run = ctx;
	const json_t *code = json_object_get(row, "exit_code");

	if (err)
		run->err = *err;
	run->failure = r;
	run->exit = code ? (int)json_integer_value(code) : FILES_WIRE_FAILED;
	if (json_object_get(row, "result") || json_is_true(json_object_get(row, "timed_out")) ||
		json_is_true(json_object_get(row, "interrupted")))
		run->exit = FILES_WIRE_FAILED;
	if (r == -EBUSY)
		run->call->code = "paused";
	end(run);
}

static void on_drained(void *arg)
{
	struct file_run *run = arg;

	if (run->link)
		exec_link_hold(run->link, false);
}

/* A download ends with its client; everything else is done all the same. */
static void on_gone(void *arg)
{
	struct file_run *run = arg;

	if (!run->link)
		return;
	exec_link_hold(run->link, false);
	if (run->ask->is_download && run->is_started)
		exec_link_send(run->link, "cut", "{\"stream\":1}");
}

void file_run(struct call *call)
{
	struct file_run *run = new0(struct file_run);
	struct exec_link_handler handler = {
		.on_started = on_started, .on_output = on_output, .on_end = on_end, .ctx = run};
	struct exec_link_ask ask = {.has_input = true};

	run->call = call;
	run->ask = take(&call->state);
	call->then = NULL;
	ask.fd = take_fd(&run->ask->fd);
	ask.spec = str_slice(&run->ask->spec);
	ask.input[0] = str_slice(&run->ask->head);
	ask.input[1] =
		run->ask->has_body ? exchange_body(call->exchange) : str_slice(&run->ask->own);
	exchange_on_gone(call->exchange, on_gone, run);
	exchange_on_drained(call->exchange, on_drained, run);
	run->link = exec_link_new(call->server->base, &ask, &handler);
}
