/* SPDX-License-Identifier: Apache-2.0 */
#include "server/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/guard.h"
#include "server/http_status.h"
#include "server/once.h"
#include "server/prometheus.h"
#include "server/route.h"
#include "util/base64.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define JSON_TYPE    "application/json"
#define PROBLEM_TYPE "application/problem+json"
#define RETRY_S      "2" /* a database that restarts takes about as long */

/* Nothing that was said: neither parameters nor bodies, which may hold what is secret. */
static void log_request(const struct call *call)
{
	int64_t took_ns = call->begun_ns ? clock_mono_ns() - call->begun_ns : 0;
	const struct log_field fields[] = {
		{"method", call->method, 0},
		{"path", call->path ? call->path : "", 0},
		{"route", call->route ? call->route->path : "none", 0},
		{"status", NULL,
			call->status ? call->status : 200}, /* a stream has none of its own */
		{"ms", NULL, took_ns / CLOCK_NS_PER_MS},
		{"peer", call->peer, 0},
		{"account", call->caller.account, 0},
		{"actor", call->caller.actor, 0},
	};

	log_fields("request", fields, sizeof(fields) / sizeof(fields[0]));
}

void call_free(struct call *call)
{
	if (!call)
		return;
	guard_remove(call);
	prometheus_end(call->server->prometheus, call->begun_ns ? call->route : NULL, call->status,
		call->begun_ns ? clock_mono_ns() - call->begun_ns : 0);
	if (call->server->logs_requests)
		log_request(call);
	for (size_t i = 0; i < CALL_PARAMS_MAX; i++)
		free(call->params[i]);
	for (size_t i = 0; i < call->n_query; i++) {
		free(call->query[i].name);
		free(call->query[i].value);
	}
	free(call->path);
	free(call->once_name);
	json_decref(call->body);
	str_done(&call->out);
	str_done(&call->fields);
	free(call);
}

/* Where the database is, and who may not reach it, is for whoever runs the server. */
static const char *words_of(struct call *call, int r, const struct err *err)
{
	if (r != -ECONNREFUSED)
		return err->msg;
	complaint_warn(&call->server->away, "%s", err->msg);
	return "the database cannot be reached just now: try again in a moment";
}

static void fill_problem(struct call *call, int r, const struct err *err)
{
	const char *code, *words = words_of(call, r, err);
	unsigned status = http_status_of(r, &code);

	str_reset(&call->out);
	call->status = call->status >= 400 ? call->status : status;
	if (r == -EDQUOT || call->status == 503)
		http1_add_field(&call->fields, slice_of("Retry-After"),
			slice_of(r == -EDQUOT ? "1" : RETRY_S));
	call->type = PROBLEM_TYPE;
	http_status_problem(
		&call->out, call->status, call->code ? call->code : code, words, call->path);
}

static void fill(struct call *call, int r, const struct err *err)
{
	if (r < 0)
		fill_problem(call, r, err);
	if (!call->status)
		call->status = call->out.len > 0 ? 200 : 204;
}

void call_settle(struct call *call, int r, const struct err *err)
{
	fill(call, r, err);
	once_end(call);
}

void call_send(struct call *call)
{
	const char *type = call->type ? call->type : JSON_TYPE;

	if (call->fields.len > 0)
		exchange_add_fields(call->exchange, str_slice(&call->fields));
	exchange_reply(call->exchange, call->status, call->out.len > 0 || call->type ? type : NULL,
		str_slice(&call->out));
	call_free(call);
}

static void answer_run(struct work *work)
{
	once_end((struct call *)work);
}

static void answer_done(struct work *work)
{
	call_send((struct call *)work);
}

void call_answer(struct call *call, int r, const struct err *err)
{
	fill(call, r, err);
	call->work = (struct work){.run = answer_run, .done = answer_done};
	if (call->once_name)
		workers_add(call->server->workers, &call->work);
	else
		call_send(call);
}

const char *call_query(const struct call *call, const char *name)
{
	for (size_t i = 0; i < call->n_query; i++)
		if (strcmp(call->query[i].name, name) == 0)
			return call->query[i].value;
	return NULL;
}

int call_field(const struct call *call, const char *name, struct slice *ret, struct err *err)
{
	const struct http1_head *head = exchange_head(call->exchange);
	size_t n = 0;

	for (size_t i = 0; i < head->n_fields; i++)
		n += http1_is(head->fields[i].name, name);
	if (n > 1)
		return err_set(err, -EINVAL, "the field '%s' came twice", name);
	*ret = http1_find(head, name);
	return 0;
}

bool call_accepts(const struct call *call, const char *type)
{
	struct slice accept = http1_find(exchange_head(call->exchange), "Accept"), one;

	while (accept.p && http1_next_element(&accept, &one))
		if (slice_starts(one, type))
			return true;
	return false;
}

int call_query_bool(const struct call *call, const char *name, bool *ret, struct err *err)
{
	const char *text = call_query(call, name);

	if (text && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return err_set(err, -EINVAL, "parameter '%s': want true or false", name);
	if (text)
		*ret = strcmp(text, "true") == 0;
	return 0;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

int call_check_query(const struct call *call, const char *const *names, struct err *err)
{
	for (size_t i = 0; i < call->n_query; i++)
		if (!is_one_of(call->query[i].name, names))
			return err_set(err, -EINVAL, "there is no parameter '%s' here",
				call->query[i].name);
	return 0;
}

/* strtoll() would take white space and a plus sign, too. */
static bool is_number(const char *text)
{
	return (*text >= '0' && *text <= '9') || *text == '-';
}

int call_query_int(const struct call *call, const char *name, int64_t min, int64_t max,
	int64_t otherwise, int64_t *ret, struct err *err)
{
	const char *text = call_query(call, name);
	char *end;
	long long v;

	*ret = otherwise;
	if (!text)
		return 0;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (!is_number(text) || end == text || *end || errno || v < min || v > max)
		return err_set(err, -EINVAL, "parameter '%s': want a number from %lld to %lld",
			name, (long long)min, (long long)max);
	*ret = v;
	return 0;
}

int call_check_body(const struct call *call, const char *const *names, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(call->body, key, value) if (!is_one_of(key, names)) return err_set(
		err, -EINVAL, "there is no member '%s' here", key);
	return 0;
}

int call_text(const struct call *call, const char *key, const char **ret, struct err *err)
{
	const json_t *v = json_object_get(call->body, key);

	*ret = json_string_value(v);
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return err_set(err, -EINVAL, "member '%s': want a text", key);
	if (strlen(*ret) != json_string_length(v))
		return err_set(err, -EINVAL, "member '%s': a text without NUL, please", key);
	return 0;
}

int call_int(const struct call *call, const char *key, int64_t min, int64_t max, int64_t otherwise,
	int64_t *ret, struct err *err)
{
	const json_t *v = json_object_get(call->body, key);

	*ret = otherwise;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return err_set(err, -EINVAL, "member '%s': want a whole number from %lld to %lld",
			key, (long long)min, (long long)max);
	*ret = json_integer_value(v);
	return 0;
}

int call_bool(const struct call *call, const char *key, bool *ret, struct err *err)
{
	const json_t *v = json_object_get(call->body, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_boolean(v))
		return err_set(err, -EINVAL, "member '%s': want true or false", key);
	*ret = json_is_true(v);
	return 0;
}

int call_decode(
	const char *key, struct slice text, struct slice b64, struct str *out, struct err *err)
{
	if (text.p && b64.p)
		return err_set(err, -EINVAL, "'%s' and '%s_b64' exclude each other", key, key);
	if (b64.p && base64_decode(b64, out) < 0)
		return err_set(err, -EINVAL, "'%s_b64': want base64", key);
	if (text.p)
		str_add(out, text.p, text.len);
	return text.p || b64.p;
}

static int take_text(const struct call *call, const char *key, struct slice *ret, struct err *err)
{
	const json_t *v = json_object_get(call->body, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return err_set(err, -EINVAL, "member '%s': want a text", key);
	*ret = (struct slice){.p = json_string_value(v), .len = json_string_length(v)};
	return 0;
}

int call_bytes(const struct call *call, const char *key, struct str *out, struct err *err)
{
	scoped_mem char *key_b64 = mem_printf("%s_b64", key);
	struct slice text = {0}, b64 = {0};
	int r = take_text(call, key, &text, err);

	if (r == 0)
		r = take_text(call, key_b64, &b64, err);
	return r < 0 ? r : call_decode(key, text, b64, out, err);
}
