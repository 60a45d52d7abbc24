/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/requests.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "proto/files_wire.h"
#include "supervisor/metering.h"
#include "supervisor/network.h"
#include "supervisor/network_proxy.h"
#include "supervisor/network_rules.h"
#include "supervisor/running.h"
#include "supervisor/visit.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define DETAIL_MAX (64 * 1024)

struct request {
	struct supervisor *sup;
	struct conn *conn;
	const json_t *body;
};

typedef int (*handler_fn)(struct request *req, struct err *err);

/* The one that is named, else the one that this client is attached to. */
static struct running *find_exec(const struct request *req)
{
	const char *id = json_string_value(json_object_get(req->body, "exec"));

	for (size_t i = 0; id && i < req->sup->n_execs; i++)
		if (strcmp(running_id(req->sup->execs[i]), id) == 0)
			return req->sup->execs[i];
	return id ? NULL : conn_tag(req->conn);
}

static int no_exec(struct err *err)
{
	return err_set(err, -ESRCH, "no such command runs in this sandbox (any more)");
}

/* One of ours: as root inside, with nothing of what commands are given. */
static int check_operation(struct spec_exec *spec, struct err *err)
{
	json_t *detail = NULL;

	if (files_wire_find(spec->operation) == FILES_WIRE_NONE)
		return err_set(err, -EINVAL, "there is no operation '%s'", spec->operation);
	if (spec->user || spec->env.n > 0 || spec->command || spec->terminal)
		return err_set(
			err, -EINVAL, "an operation has no user, variables, command or terminal");
	detail = spec->detail ? json_loads(spec->detail, JSON_REJECT_DUPLICATES, NULL) : NULL;
	free(spec->detail);
	spec->detail = json_is_object(detail) ? json_dumps(detail, JSON_COMPACT) : NULL;
	json_decref(detail);
	if (!spec->detail || strlen(spec->detail) > DETAIL_MAX)
		return err_set(err, -EINVAL,
			"the detail of an operation is a JSON object of at most %d bytes",
			DETAIL_MAX);
	return 0;
}

static int on_exec(struct request *req, struct err *err)
{
	scoped(spec_exec) struct spec_exec *spec = NULL;
	scoped_mem char *text = json_dumps(json_object_get(req->body, "spec"), JSON_COMPACT);
	int r;

	if (!text)
		return err_set(err, -EINVAL, "a request to execute without \"spec\"");
	r = spec_exec_read(slice_of(text), &spec, err);
	if (r < 0)
		return r;
	if (spec->operation)
		r = check_operation(spec, err);
	else
		spec_exec_inherit(spec, req->sup->spec);
	if (r < 0)
		return r;
	return running_start(req->sup, req->conn, &spec, err);
}

static int on_resize(struct request *req, struct err *err)
{
	struct running *running = find_exec(req);
	json_int_t rows = json_integer_value(json_object_get(req->body, "rows"));
	json_int_t columns = json_integer_value(json_object_get(req->body, "columns"));

	if (!running)
		return no_exec(err);
	if (rows < 1 || rows > 5000 || columns < 1 || columns > 5000)
		return err_set(err, -EINVAL, "a terminal has 1 to 5000 rows and columns");
	return running_resize(running, (unsigned short)rows, (unsigned short)columns);
}

static int on_signal(struct request *req, struct err *err)
{
	struct running *running = find_exec(req);
	json_int_t signal = json_integer_value(json_object_get(req->body, "signal"));

	if (!running)
		return no_exec(err);
	if (signal < 1 || signal > 64)
		return err_set(err, -EINVAL, "a signal is a number from 1 to 64");
	return running_signal(running, (int)signal);
}

/* Whether a command that runs takes input, from whichever client holds it. */
static int on_input(struct request *req, struct err *err)
{
	const struct running *running = find_exec(req);
	scoped_str struct str text = {0};

	if (!running || running_is_over(running))
		return no_exec(err);
	str_printf(&text, "{\"open\":%s}", running_takes_stdin(running) ? "true" : "false");
	conn_answer_ok(req->conn, str_slice(&text));
	return 0;
}

static int on_cut(struct request *req, struct err *err)
{
	struct running *running = find_exec(req);
	json_int_t stream = json_integer_value(json_object_get(req->body, "stream"));

	if (!running)
		return no_exec(err);
	if (stream != 1 && stream != 2)
		return err_set(err, -EINVAL, "a stream is 1 or 2");
	running_cut(running, (int)stream);
	return 0;
}

static int on_kill(struct request *req, struct err *err)
{
	struct running *running = find_exec(req);
	int r = running ? running_kill(running) : no_exec(err);

	if (r == 0)
		conn_answer_ok(req->conn, slice_of(""));
	return r;
}

static void say(struct supervisor *sup, enum event_kind kind, const char *reason)
{
	struct event ev = {.kind = kind};

	event_set_text(&ev, reason, reason);
	recorder_emit_now(sup->recorder, &ev);
	recorder_flush(sup->recorder, sup->spec->durable);
}

static int on_pause(struct request *req, struct err *err)
{
	int r = sandbox_freeze(req->sup->sandbox, SANDBOX_FREEZE_USER, err);

	if (r < 0)
		return r;
	if (!req->sup->is_paused)
		say(req->sup, EVENT_SANDBOX_PAUSED, "asked to");
	req->sup->is_paused = true;
	metering_pause(req->sup);
	conn_answer_ok(req->conn, slice_of(""));
	return 0;
}

static int on_wake(struct request *req, struct err *err)
{
	int r = sandbox_thaw(req->sup->sandbox, SANDBOX_FREEZE_USER, err);

	if (r < 0)
		return r;
	if (req->sup->is_paused)
		say(req->sup, EVENT_SANDBOX_WOKEN, "asked to");
	req->sup->is_paused = false;
	metering_start(req->sup);
	conn_answer_ok(req->conn, slice_of(""));
	return 0;
}

/* Where the views of a control plane begin from now on: nothing of the record goes. */
static int on_clear(struct request *req, struct err *err)
{
	struct event ev = {.kind = EVENT_TRACE_CLEARED};

	event_set_text(&ev, actor, json_string_value(json_object_get(req->body, "actor")));
	recorder_emit_now(req->sup->recorder, &ev);
	recorder_flush(req->sup->recorder, req->sup->spec->durable);
	conn_answer_ok(req->conn, slice_of(""));
	return 0;
}

static int on_status(struct request *req, struct err *err)
{
	struct supervisor *sup = req->sup;
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);
	int64_t n_running = 0;

	for (size_t i = 0; i < sup->n_execs; i++)
		n_running += !running_is_over(sup->execs[i]);
	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", sup->id);
	jsonw_ktext(&j, "state", sup->is_paused ? "paused" : "running");
	jsonw_kint(&j, "execs", n_running);
	jsonw_kint(&j, "events", (int64_t)record_next_seq(sup->record) - 1);
	jsonw_kbool(&j, "traced", sup->tracing != NULL);
	jsonw_kint(&j, "trace", sup->spec->trace); /* what it was asked for */
	jsonw_kint(&j, "traced_since", (int64_t)recorder_traced_since(sup->recorder));
	jsonw_kbool(&j, "blind", recorder_is_blind(sup->recorder));
	jsonw_kint(&j, "init_pid", sandbox_init_pid(sup->sandbox));
	jsonw_kint(&j, "id_base", sandbox_id_base(sup->sandbox));
	jsonw_ktext(&j, "cwd", sandbox_default_cwd(sup->sandbox));
	jsonw_object_end(&j);
	conn_answer_ok(req->conn, str_slice(&text));
	return 0;
}

static int on_stop(struct request *req, struct err *err)
{
	const char *reason = json_string_value(json_object_get(req->body, "reason"));

	/* Answered when it is done, by the end of the supervisor: see supervisor.c. */
	conn_set_wants_end(req->conn);
	supervisor_end(req->sup, reason ? reason : "asked to");
	return 0;
}

static int on_suspend(struct request *req, struct err *err)
{
	if (req->sup->lifeline)
		return err_set(err, -EBUSY,
			"sandbox %s ends with the `cloche run` that waits for it: make one that "
			"stays with `cloche create`",
			req->sup->id);
	if (req->sup->end_reason)
		return err_set(err, -ESHUTDOWN, "sandbox %s ends already", req->sup->id);
	req->sup->is_suspending = true;
	return on_stop(req, err);
}

static int on_net_rules(struct request *req, struct err *err)
{
	scoped_str struct str text = {0};
	int r = 0;

	if (conn_is_narrow(req->conn) && network_rules_is_change(req->body))
		r = err_set(err, -EPERM, "rules are not changed over this connection");
	if (r == 0)
		r = network_rules_request(req->sup, req->body, &text, err);
	if (r == 0)
		conn_answer_ok(req->conn, str_slice(&text));
	return r;
}

static int on_net_proxy(struct request *req, struct err *err)
{
	int r = conn_is_narrow(req->conn)
	                ? err_set(err, -EPERM, "no proxy is changed over this connection")
	                : network_proxy_request(req->sup, req->body, err);

	if (r == 0)
		conn_answer_ok(req->conn, slice_of(""));
	return r;
}

/* From the launcher of a control plane, before it hands the connection over: what comes behind is not its own word. */
static int on_narrow(struct request *req, struct err *err)
{
	const json_t *accounts = json_object_get(req->body, "private");
	const char *own = req->sup->spec->account;
	bool may_private = false;

	for (size_t i = 0; own && i < json_array_size(accounts); i++)
		may_private |=
			strcmp(json_string_value(json_array_get(accounts, i)) ?: "", own) == 0;
	conn_narrow(req->conn, may_private);
	req->sup->has_plane = true;
	return 0;
}

static int on_answer(struct request *req, struct err *err)
{
	return network_on_answer(req->sup, req->body, conn_may_private(req->conn), err);
}

/* As "answer", by somebody who wants to know what came of it. */
static int on_decide(struct request *req, struct err *err)
{
	int r = on_answer(req, err);

	if (r == 0)
		conn_answer_ok(req->conn, slice_of(""));
	return r;
}

static int on_asks(struct request *req, struct err *err)
{
	scoped_str struct str text = {0};

	network_write_asks(req->sup, &text);
	conn_answer_ok(req->conn, str_slice(&text));
	return 0;
}

static int on_visit(struct request *req, struct err *err)
{
	return visit_request(req->sup, req->conn, req->body, err);
}

/* The sandbox outlives whoever started it. */
static int on_keep(struct request *req, struct err *err)
{
	req->sup->lifeline = NULL;
	conn_answer_ok(req->conn, slice_of(""));
	return 0;
}

static const struct {
	const char *name;
	handler_fn handler;
	bool is_message; /* no answer where it went well */
} kinds[] = {
	{"exec", on_exec, false},
	{"resize", on_resize, true},
	{"signal", on_signal, true},
	{"cut", on_cut, true},
	{"kill", on_kill, false},
	{"input", on_input, false},
	{"pause", on_pause, false},
	{"wake", on_wake, false},
	{"status", on_status, false},
	{"clear", on_clear, false},
	{"stop", on_stop, false},
	{"suspend", on_suspend, false},
	{"keep", on_keep, false},
	{"net-rules", on_net_rules, false},
	{"net-proxy", on_net_proxy, false},
	{"answer", on_answer, true},
	{"asks", on_asks, false},
	{"decide", on_decide, false},
	{"narrow", on_narrow, true},
	{"visit", on_visit, false},
};

static int dispatch(struct request *req, struct err *err)
{
	const char *name = json_string_value(json_object_get(req->body, "request"));

	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int r;

		if (strcmp(kinds[i].name, name) != 0)
			continue;
		r = kinds[i].handler(req, err);
		return r < 0 && kinds[i].is_message ? 0 : r;
	}
	return err_set(err, -EOPNOTSUPP, "this supervisor knows no request '%s'", name ? name : "");
}

static void on_json(struct supervisor *sup, struct conn *conn, struct slice text)
{
	json_t *body = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	struct request req = {.sup = sup, .conn = conn, .body = body};
	struct err err = {0};
	int r;

	if (!json_is_object(body))
		r = err_set(&err, -EBADMSG, "a request is a JSON object");
	else if (sup->end_reason)
		r = err_set(
			&err, -ESHUTDOWN, "sandbox %s is ending (%s)", sup->id, sup->end_reason);
	else
		r = dispatch(&req, &err);
	if (r < 0)
		conn_answer_error(conn, r, &err);
	json_decref(body);
}

void requests_on_frame(struct supervisor *sup, struct conn *conn, const struct wire_frame *frame)
{
	struct running *running = conn_tag(conn);

	if (frame->type == WIRE_JSON)
		on_json(sup, conn, frame->payload);
	else if (frame->type == WIRE_STDIN && running)
		running_stdin(running, frame->payload);
}
