/* SPDX-License-Identifier: Apache-2.0 */
#include "server/dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth.h"
#include "server/guard.h"
#include "server/http_status.h"
#include "server/once.h"
#include "server/origin.h"
#include "server/prometheus.h"
#include "server/route.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/utf8.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int dispatch_decode(struct slice text, bool is_query, char **ret)
{
	scoped_mem char *out = mem_zero(1, text.len + 1);
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.p[i];

		if (c == '%') {
			int high = i + 2 < text.len ? hex(text.p[i + 1]) : -1;
			int low = i + 2 < text.len ? hex(text.p[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && is_query) {
			c = ' ';
		}
		if (c == '\0')
			return -EINVAL;
		out[n++] = c;
	}
	if (!utf8_is_valid(out, n))
		return -EINVAL;
	*ret = take(&out);
	return 0;
}

static int read_query(struct call *call, struct slice query)
{
	while (query.len > 0) {
		const char *amp = memchr(query.p, '&', query.len);
		struct slice pair = {
			.p = query.p, .len = amp ? (size_t)(amp - query.p) : query.len};
		const char *is = memchr(pair.p, '=', pair.len);
		struct slice name = {.p = pair.p, .len = is ? (size_t)(is - pair.p) : pair.len};
		struct slice value = {
			.p = is ? is + 1 : "", .len = is ? pair.len - name.len - 1 : 0};
		size_t n = call->n_query;

		query.p += pair.len + (amp != NULL);
		query.len -= pair.len + (amp != NULL);
		if (pair.len == 0)
			continue;
		if (n == CALL_QUERY_MAX)
			return -E2BIG;
		call->n_query++;
		if (dispatch_decode(name, true, &call->query[n].name) < 0 ||
			dispatch_decode(value, true, &call->query[n].value) < 0)
			return -EINVAL;
		if (call_query(call, call->query[n].name) != call->query[n].value)
			return -EEXIST;
	}
	return 0;
}

static struct call *call_new(struct server *server, struct exchange *exchange)
{
	struct slice method = exchange_head(exchange)->method;
	struct call *call = new0(struct call);

	call->server = server;
	call->exchange = exchange;
	(void)snprintf(call->method, sizeof(call->method), "%.*s", (int)method.len, method.p);
	(void)snprintf(call->peer, sizeof(call->peer), "%s", exchange_peer(exchange)->address);
	return call;
}

/* An answer that needs no worker. */
static void refuse(struct call *call, unsigned status, const char *code, const char *detail)
{
	call->status = status;
	call->type = "application/problem+json";
	http_status_problem(&call->out, status, code, detail, call->path);
	call_send(call);
}

static bool wants_object(const struct call *call)
{
	return call->route->has_body && !call->route->is_upload;
}

static int read_body(struct call *call, struct err *err)
{
	struct slice body = exchange_body(call->exchange);
	json_error_t why;

	if (!wants_object(call)) {
		if (body.len > 0 && !call->route->is_upload)
			return err_set(err, -EINVAL, "this request has no body");
		return 0;
	}
	if (body.len == 0) {
		call->body = json_object();
		return 0;
	}
	call->body = json_loadb(body.p, body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	if (!call->body)
		return err_set(err, -EINVAL, "the body is no JSON: %s (line %d, column %d)",
			why.text, why.line, why.column);
	return json_is_object(call->body) ? 0
	                                  : err_set(err, -EINVAL, "the body must be a JSON object");
}

static int check_query(const struct call *call, struct err *err)
{
	static const char *const none[] = {NULL};

	return call->route->has_query ? 0 : call_check_query(call, none, err);
}

/* What a sandbox may reach, and what is asked about it, is not its own to say. */
static int check_own(struct call *call, struct err *err)
{
	const char *own = call->caller.sandbox;

	if (!call->route->is_from_outside || !*own || strcmp(call->params[0], own) != 0)
		return 0;
	return err_set(err, -EPERM,
		"this call comes from %s, and a sandbox does not change what holds it", own);
}

static int check_right(struct call *call, struct err *err)
{
	if (route_allows(call->route, &call->caller))
		return check_own(call, err);
	return err_set(err, -EPERM, "a key with the role %s may not do this",
		role_name(call->caller.role));
}

/* Not the key's fault, and whoever has none is not told where the database is. */
static int cannot_tell(struct call *call, int r, struct err *err)
{
	complaint_warn(&call->server->away, "keys cannot be checked: %s", err->msg);
	return err_set(err, r, "keys cannot be checked just now: try again in a moment");
}

static int authenticate(struct call *call, struct err *err)
{
	int r = call->route->right == RIGHT_ANYONE ? 0 : auth_check(call, err);

	if (r == -EIO || r == -EUCLEAN || http_status_is_passing(r))
		return cannot_tell(call, r, err);
	if (r == -EACCES) {
		call->status = 401;
		call->code = "unauthorized";
		http1_add_field(&call->fields, slice_of("WWW-Authenticate"), slice_of("Bearer"));
	}
	if (r == -EDQUOT)
		call->code = "rate_limited";
	return r;
}

/* What can be said before the body is there. */
static int admit(struct call *call, struct err *err)
{
	int r = authenticate(call, err);

	if (r == 0)
		r = check_right(call, err);
	return r < 0 ? r : check_query(call, err);
}

static int handle(struct call *call, struct err *err)
{
	int r = call->is_admitted ? 0 : admit(call, err);

	if (r == 0)
		r = read_body(call, err);
	if (r == 0)
		r = once_begin(call, err);
	if (r == 1)
		return 0;
	return r < 0 ? r : call->route->handler(call, err);
}

static void run_call(struct work *work)
{
	struct call *call = (struct call *)work;
	struct err err = {0};
	int r = handle(call, &err);

	if (r < 0)
		call->then = NULL;
	if (!call->then)
		call_settle(call, r, &err);
}

static void call_done(struct work *work)
{
	struct call *call = (struct call *)work;

	if (!call->then) {
		call_send(call);
		return;
	}
	guard_add(call);
	call->then(call);
}

static void start(
	struct call *call, void (*run)(struct work *work), void (*done)(struct work *work))
{
	call->work = (struct work){.run = run, .done = done};
	workers_add(call->route->is_slow ? call->server->slow : call->server->workers, &call->work);
}

/* ---- those that are asked first ---- */

static void run_admit(struct work *work)
{
	struct call *call = (struct call *)work;
	struct err err = {0};
	int r = admit(call, &err);

	call->is_admitted = r == 0;
	if (r < 0)
		call_settle(call, r, &err);
}

static void on_body(void *arg, bool is_there)
{
	struct call *call = arg;

	if (is_there) {
		start(call, run_call, call_done);
		return;
	}
	exchange_end(call->exchange, false);
	call_free(call);
}

static void admit_done(struct work *work)
{
	struct call *call = (struct call *)work;

	if (!call->is_admitted) {
		call_send(call);
		return;
	}
	guard_add(call);
	exchange_read_body(call->exchange, on_body, call);
}

/* ---- from the connection ---- */

static int fill(struct call *call, struct slice params[CALL_PARAMS_MAX], struct slice query)
{
	for (size_t i = 0; i < CALL_PARAMS_MAX && params[i].p; i++)
		if (dispatch_decode(params[i], false, &call->params[i]) < 0)
			return -EINVAL;
	return read_query(call, query);
}

static void on_request(void *ctx, struct exchange *exchange)
{
	struct call *call = call_new(ctx, exchange);
	struct slice target = exchange_head(exchange)->target, path = target, query = {0};
	struct slice params[CALL_PARAMS_MAX] = {{0}};
	const char *mark = memchr(target.p, '?', target.len);
	scoped_str struct str allow = {0};
	int r;

	if (mark) {
		path.len = (size_t)(mark - target.p);
		query = (struct slice){.p = mark + 1, .len = target.len - path.len - 1};
	}
	if (path.len == 0 || path.p[0] != '/' || dispatch_decode(path, false, &call->path) < 0) {
		refuse(call, 400, "invalid", "the path cannot be read");
		return;
	}
	r = route_find(exchange_head(exchange)->method, path, &call->route, params, &allow);
	if (r == -EOPNOTSUPP) {
		http1_add_field(&call->fields, slice_of("Allow"), str_slice(&allow));
		refuse(call, 405, "method_not_allowed", "this path has other methods: see Allow");
		return;
	}
	if (r < 0) {
		refuse(call, 404, "not_found", "there is nothing at this path");
		return;
	}
	r = fill(call, params, query);
	if (r < 0) {
		refuse(call, 400, "invalid",
			r == -EEXIST  ? "a parameter came twice"
			: r == -E2BIG ? "there are too many parameters"
				      : "the path or its parameters cannot be read");
		return;
	}
	call->begun_ns = clock_mono_ns();
	prometheus_begin(call->server->prometheus, call->route);
	if (call->route->is_upload)
		start(call, run_admit, admit_done);
	else
		start(call, run_call, call_done);
}

/* The target as it came, without its parameters: nothing of it was read. */
static void log_refused(const struct http1_head *head, const struct http_peer *peer,
	const struct http_refusal *refusal)
{
	scoped_mem char *method = mem_copy(head->method.p, head->method.len);
	scoped_mem char *path = mem_copy(head->target.p, head->target.len);
	const struct log_field fields[] = {
		{"method", method, 0},
		{"path", path, 0},
		{"route", "none", 0},
		{"status", NULL, refusal->status},
		{"peer", peer->address, 0},
		{"code", refusal->code, 0},
	};

	path[strcspn(path, "?")] = '\0';
	log_fields("request", fields, sizeof(fields) / sizeof(fields[0]));
}

/* By the head, before the body comes. */
static void plan(void *ctx, const struct http1_head *head, const struct http_peer *peer,
	struct http_plan *ret)
{
	struct server *server = ctx;
	struct slice path = head->target, params[CALL_PARAMS_MAX] = {{0}};
	const char *mark = memchr(path.p, '?', path.len);
	const struct route *route = NULL;
	scoped_str struct str allow = {0};

	ret->body_max = HTTP_BODY_MAX;
	origin_check(server->origin, head, peer, ret);
	if (ret->refusal.status) {
		prometheus_end(server->prometheus, NULL, ret->refusal.status, 0);
		if (server->logs_requests)
			log_refused(head, peer, &ret->refusal);
		return;
	}
	if (mark)
		path.len = (size_t)(mark - path.p);
	if (route_find(head->method, path, &route, params, &allow) == 0 && route->is_upload) {
		ret->body_max = HTTP_UPLOAD_MAX;
		ret->asks_first = true;
	}
}

struct http_handler dispatch_handler(struct server *server)
{
	return (struct http_handler){.plan = plan, .on_request = on_request, .ctx = server};
}
