/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/http_turn.h"

#include <errno.h>

#include "gateway/http_problem.h"

void http_turn_init(struct http_turn *turn, const struct http_setup *setup, const char *protocol)
{
	*turn = (struct http_turn){.setup = setup,
		.protocol = protocol,
		.scheme = slice_of(setup->tls ? "https" : "http"),
		.started_ns = setup->hooks->now_ns(setup->arg)};
}

void http_turn_done(struct http_turn *turn)
{
	http_copy_done(&turn->sent);
	http_copy_done(&turn->got);
	secrets_stream_done(&turn->out);
	secrets_stream_done(&turn->back);
	str_done(&turn->authority);
	str_done(&turn->host);
	str_done(&turn->path);
	str_done(&turn->url);
}

static void set_text(struct str *out, struct slice text)
{
	str_reset(out);
	str_add(out, text.p, text.len);
}

/* Lower case, without the final dot. */
static void set_host(struct http_turn *turn, struct slice host)
{
	set_text(&turn->host, host);
	for (size_t i = 0; i < turn->host.len; i++)
		if (turn->host.p[i] >= 'A' && turn->host.p[i] <= 'Z')
			turn->host.p[i] = (char)(turn->host.p[i] | 32);
	if (turn->host.len > 1 && turn->host.p[turn->host.len - 1] == '.')
		turn->host.p[--turn->host.len] = '\0';
	turn->has_host = true;
}

static void set_url(struct http_turn *turn)
{
	const struct http_setup *s = turn->setup;

	set_text(&turn->url, turn->scheme);
	str_puts(&turn->url, "://");
	if (turn->authority.len) {
		str_puts(&turn->url, turn->authority.p);
	} else {
		str_puts(&turn->url, s->name ? s->name : s->address);
		if (s->port != (s->tls ? 443 : 80))
			str_printf(&turn->url, ":%u", s->port);
	}
	if (turn->path.len && *turn->path.p != '/')
		str_putc(&turn->url, '/');
	str_puts(&turn->url, turn->path.p);
}

static int bad_address(struct http1_fault *fault)
{
	*fault = (struct http1_fault){.status = 400, .why = "the request names no good host"};
	return -EBADMSG;
}

/* "/path", and for absolute targets what an origin is asked for. */
static void set_path(struct http_turn *turn, struct slice path)
{
	set_text(&turn->path, path);
	if (path.len && (*path.p == '/' || slice_is(path, "*")))
		return;
	if (!path.len && slice_is(turn->method, "OPTIONS")) {
		set_text(&turn->path, slice_of("*"));
		return;
	}
	set_text(&turn->path, slice_of("/"));
	str_add(&turn->path, path.p, path.len);
}

int http_turn_address(struct http_turn *turn, struct slice authority, struct slice target,
	struct http1_fault *ret_fault)
{
	struct slice path = target, host;

	turn->is_connect = slice_is(turn->method, "CONNECT");
	if (turn->is_connect) {
		authority = target;
		path = (struct slice){0};
	} else if (*target.p != '/' && !slice_is(target, "*") &&
		   http1_split_absolute(target, &turn->scheme, &authority, &path) < 0) {
		return bad_address(ret_fault);
	}
	if (authority.p) {
		if (http1_split_host(authority, &host, &turn->port) < 0)
			return bad_address(ret_fault);
		set_host(turn, host);
	}
	set_text(&turn->authority, authority);
	if (turn->is_connect)
		set_text(&turn->path, path);
	else
		set_path(turn, path);
	set_url(turn);
	return 0;
}

static void tell_refusal(struct http_turn *turn)
{
	const struct http_setup *s = turn->setup;
	struct http_refusal refusal = {.method = turn->method,
		.host = turn->has_host ? turn->host.p : NULL,
		.url = turn->url.p,
		.port = turn->port,
		.status = turn->answer.status,
		.rule = turn->answer.rule,
		.reason = turn->answer.reason};

	turn->refused = turn->reported = true;
	s->hooks->on_refused(s->arg, &refusal);
}

static void put_text(char *to, size_t size, const char *text)
{
	size_t n = strlen(text);

	if (n >= size)
		n = size - 1;
	memcpy(to, text, n);
	to[n] = '\0';
}

static void set_answer(
	struct http_turn *turn, unsigned status, const char *rule, const char *reason)
{
	struct http_answer *a = &turn->answer;

	a->status = status;
	put_text(a->rule, sizeof(a->rule), rule);
	put_text(a->reason, sizeof(a->reason), reason);
}

void http_turn_refuse(struct http_turn *turn, unsigned status, const char *rule, const char *reason)
{
	set_answer(turn, status, rule, reason);
	tell_refusal(turn);
}

void http_turn_fail(struct http_turn *turn, unsigned status, const char *why)
{
	turn->error = why;
	http_turn_report(turn);
	set_answer(turn, status, "", why);
	turn->refused = true;
}

static void ask(const struct http_turn *turn, struct http_answer *ret)
{
	const struct http_setup *s = turn->setup;
	struct http_request request = {.method = turn->method,
		.scheme = turn->scheme,
		.host = turn->has_host ? turn->host.p : NULL,
		.port = turn->port,
		.path = turn->path.p,
		.url = turn->url.p,
		.is_connect = turn->is_connect,
		.fields = turn->fields,
		.n_fields = turn->n_fields};

	*ret = (struct http_answer){0};
	s->hooks->judge(s->arg, &request, ret);
}

bool http_turn_judge(struct http_turn *turn)
{
	const struct http_setup *s = turn->setup;
	bool is_model = http_is_model_api(turn->has_host ? turn->host.p : NULL);

	ask(turn, &turn->answer);
	if (turn->answer.refuse) {
		if (!turn->answer.status)
			turn->answer.status = 403;
		tell_refusal(turn);
		return false;
	}
	if (http_turn_bind(turn) < 0)
		return false;
	http_copy_init(&turn->sent, s, false, is_model);
	http_copy_init(&turn->got, s, true, is_model);
	return true;
}

bool http_turn_judge_again(struct http_turn *turn)
{
	struct http_answer answer;

	if (turn->refused)
		return true;
	ask(turn, &answer);
	if (!answer.refuse)
		return true;
	turn->error = "the rules in force now refuse it";
	http_turn_report(turn);
	http_turn_refuse(turn, answer.status ? answer.status : 403, answer.rule, answer.reason);
	return false;
}

void http_turn_problem(const struct http_turn *turn, struct str *out)
{
	http_problem_write(out, &(struct http_problem){.status = turn->answer.status,
					.host = turn->has_host ? turn->host.p : NULL,
					.rule = turn->answer.rule,
					.reason = turn->answer.reason});
}

size_t http_turn_holds(const struct http_turn *turn)
{
	return turn->sent.bytes.cap + turn->got.bytes.cap + turn->out.held.cap +
	       turn->back.held.cap + turn->url.cap + turn->path.cap;
}

static size_t put_names(const struct http_turn *turn, uint64_t mask, const char **names)
{
	size_t n = 0;

	for (unsigned i = 0; mask && i < SECRETS_MAX; i++)
		if (mask >> i & 1)
			names[n++] = secrets_name(turn->setup->secrets, i);
	return n;
}

void http_turn_report(struct http_turn *turn)
{
	const struct http_setup *s = turn->setup;
	const char *names[SECRETS_MAX], *stand_ins[SECRETS_MAX];
	struct http_exchange x = {.protocol = turn->protocol,
		.method = turn->method,
		.url = turn->url.p,
		.host = turn->has_host ? turn->host.p : NULL,
		.port = turn->port,
		.fields = turn->fields,
		.n_fields = turn->n_fields,
		.has_length = turn->has_length,
		.length = turn->length,
		.status = turn->status,
		.response_fields = turn->response_fields,
		.n_response_fields = turn->n_response_fields,
		.response_has_length = turn->response_has_length,
		.response_length = turn->response_length,
		.started_ns = turn->started_ns,
		.duration_ns = s->hooks->now_ns(s->arg) - turn->started_ns,
		.upgrade = turn->upgrade,
		.error = turn->error};

	if (turn->reported)
		return;
	turn->reported = true;
	x.secrets = names;
	x.n_secrets = put_names(turn, turn->used, names);
	x.stand_ins = stand_ins;
	x.n_stand_ins = put_names(turn, turn->passed, stand_ins);
	http_copy_view(&turn->sent, &x.body);
	http_copy_view(&turn->got, &x.response_body);
	s->hooks->on_exchange(s->arg, &x);
}
