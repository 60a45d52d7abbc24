/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/bridge_http.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/bridge_body.h"
#include "gateway/gateway_internal.h"
#include "gateway/secrets.h"
#include "gateway/verdict.h"
#include "proto/url.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define METHOD_MAX 64

static int64_t now_ns(void *arg)
{
	return clock_mono_ns();
}

/* Whether a name is the flow's, or one that led to the same address. */
static bool led_here(struct bridge *bridge, const char *host)
{
	struct gateway *gw = bridge->gw;
	const char *name;

	if (bridge->head.host && strcmp(bridge->head.host, host) == 0)
		return true;
	for (size_t i = 0;
		(name = names_find(gw->names, bridge->head.address, i, poller_now_ns(gw->poller)));
		i++)
		if (strcmp(name, host) == 0)
			return true;
	return false;
}

static void copy_text(char *out, size_t size, struct slice text)
{
	size_t n = text.len < size - 1 ? text.len : size - 1;

	memcpy(out, text.p, n);
	out[n] = 0;
}

static void refuse(struct http_answer *ret, const struct policy_answer *answer)
{
	ret->refuse = true;
	snprintf(ret->rule, sizeof(ret->rule), "%s", answer->rule);
	snprintf(ret->reason, sizeof(ret->reason), "%s", answer->reason);
}

/* An address in place of a name says no more than the flow itself. */
static bool is_own_address(const struct flow_head *head, const char *host)
{
	struct url_host literal;

	return url_host_read(slice_of(host), &literal) == 0 && literal.kind != URL_NAME &&
	       memcmp(literal.address, head->address, sizeof(literal.address)) == 0;
}

/* A Host that did not lead here is a way around the rules for names, as soon as there are any. */
static bool names_agree(
	struct bridge *bridge, const struct http_request *request, struct policy_answer *ret)
{
	const struct flow_head *head = &bridge->head;

	if (!request->host || !head->host || led_here(bridge, request->host) ||
		is_own_address(head, request->host))
		return true;
	if (bridge->gw->config.network.net == SPEC_NET_OPEN && head->has_dialled)
		return true; /* judged by the rules like any name */
	ret->shadow = bridge->gw->config.network.shadow;
	ret->verdict = ret->shadow ? POLICY_ALLOW : POLICY_DENY;
	snprintf(ret->rule, sizeof(ret->rule), "default: names must agree");
	snprintf(ret->reason, sizeof(ret->reason),
		"the request asks for '%.100s' at an address that was given out for '%.100s': ask "
		"for the name you look up",
		request->host, head->host);
	return false;
}

/* The place a request is for. An address as a name is that address. */
static void fill_query(struct bridge *bridge, const struct http_request *request, char *method,
	struct url_host *literal, struct policy_query *ret)
{
	const struct flow_head *head = &bridge->head;
	const char *host = request->host ? request->host : head->host;

	*ret = (struct policy_query){.host = host,
		.has_address = head->has_dialled,
		.port = request->is_connect && request->port ? request->port : head->port,
		.protocol = "tcp",
		.method = method,
		.path = request->path};
	memcpy(ret->address, head->dialled, sizeof(ret->address));
	if (!host || url_host_read(slice_of(host), literal) < 0 || literal->kind == URL_NAME)
		return;
	ret->host = NULL;
	if (memcmp(literal->address, head->address, sizeof(literal->address)) == 0)
		ret->host = head->host;
	else
		memcpy(ret->address, literal->address, sizeof(ret->address));
}

/* Names that share an address may share a server. */
static uint64_t told_here(struct bridge *bridge)
{
	struct gateway *gw = bridge->gw;
	uint64_t mask = 0;
	const char *name;

	for (size_t i = 0; gw->secrets && (name = names_find(gw->names, bridge->head.address, i,
						   poller_now_ns(gw->poller)));
		i++)
		mask |= secrets_known(gw->secrets, name);
	return mask;
}

/* The flow leads there, so whoever is named is the caller's mistake, or his attempt to be judged as another host. */
static bool refuse_other_host(
	struct bridge *bridge, const struct http_request *request, struct http_answer *ret)
{
	if (!bridge->head.is_plane || !request->host || policy_is_plane(request->host))
		return false;
	ret->refuse = true;
	snprintf(ret->rule, sizeof(ret->rule), "default: names must agree");
	snprintf(ret->reason, sizeof(ret->reason),
		"the request asks for '%.100s' at the control plane: ask for %s", request->host,
		SPEC_PLANE_HOST);
	return true;
}

static void judge(void *arg, const struct http_request *request, struct http_answer *ret_answer)
{
	struct bridge *bridge = arg;
	struct policy_answer answer = {.verdict = POLICY_ALLOW};
	char method[METHOD_MAX];
	struct policy_query query;
	struct url_host literal;

	ret_answer->told = told_here(bridge);
	copy_text(method, sizeof(method), request->method);
	fill_query(bridge, request, method, &literal, &query);
	if (bridge->side[MACHINE_SERVER].io.fd < 0 && !request->is_connect) {
		refuse(ret_answer, &bridge->answer); /* the name itself is refused */
		return;
	}
	if (refuse_other_host(bridge, request, ret_answer))
		return;
	if (names_agree(bridge, request, &answer))
		policy_check(bridge->gw->policy, &query, &answer);
	if (answer.verdict == POLICY_DENY ||
		(answer.verdict == POLICY_ASK && !bridge->head.was_asked)) {
		refuse(ret_answer, &answer);
		return;
	}
	/* Told once a flow, where it is the same rule. */
	if (answer.shadow &&
		!(bridge->answer.shadow && strcmp(bridge->answer.rule, answer.rule) == 0)) {
		struct event ev = flow_head_event(&bridge->head, EVENT_NET_REFUSED);

		event_set(&ev, method, request->method);
		event_set_text(&ev, url, request->url);
		event_set_text(&ev, rule, answer.rule);
		event_set_text(&ev, reason, answer.reason);
		event_set_text(&ev, stage, "http");
		event_set(&ev, shadow, true);
		channel_event(bridge->gw->channel, bridge->head.owner.cgroup, &ev);
	}
}

static void on_refused(void *arg, const struct http_refusal *refusal)
{
	struct bridge *bridge = arg;
	struct event ev = flow_head_event(&bridge->head, EVENT_NET_REFUSED);

	bridge->is_told = true;
	event_set_text(&ev, host, refusal->host);
	if (refusal->port)
		event_set(&ev, port, refusal->port);
	if (refusal->method.len)
		event_set(&ev, method, refusal->method);
	event_set_text(&ev, url, refusal->url);
	event_set_text(&ev, rule, refusal->rule);
	event_set_text(&ev, reason, refusal->reason);
	event_set_text(&ev, stage, "http");
	channel_event(bridge->gw->channel, bridge->head.owner.cgroup, &ev);
}

static bool is_same(const struct http1_field *a, const struct http1_field *b)
{
	return a->name.len == b->name.len && strncasecmp(a->name.p, b->name.p, a->name.len) == 0;
}

static bool came_before(const struct http1_field *fields, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (is_same(&fields[k], &fields[i]))
			return true;
	return false;
}

/* An object of texts: names in lower case, what came twice joined by a comma. They are 256 at most. */
static void write_fields(struct str *out, const struct http1_field *fields, size_t n)
{
	scoped_str struct str name = {0}, value = {0};
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	for (size_t i = 0; i < n; i++) {
		if (came_before(fields, i))
			continue;
		str_reset(&name);
		for (size_t k = 0; k < fields[i].name.len; k++)
			str_putc(&name, (char)tolower((unsigned char)fields[i].name.p[k]));
		str_reset(&value);
		str_add(&value, fields[i].value.p, fields[i].value.len);
		for (size_t k = i + 1; k < n; k++)
			if (is_same(&fields[k], &fields[i])) {
				str_putc(&value, ',');
				str_add(&value, fields[k].value.p, fields[k].value.len);
			}
		jsonw_free_key(&j, str_slice(&name));
		jsonw_slice(&j, str_slice(&value));
	}
	jsonw_object_end(&j);
}

static struct event_list list_of(struct slice *items, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		items[i] = slice_of(names[i]);
	return (struct event_list){.items = items, .n = n};
}

static void on_exchange(void *arg, const struct http_exchange *done)
{
	struct bridge *bridge = arg;
	struct event ev = flow_head_event(&bridge->head, EVENT_NET_HTTP);
	scoped_str struct str fields = {0}, response_fields = {0};
	struct bridge_body body, response;
	struct slice *names = new0_n(struct slice, done->n_secrets + done->n_stand_ins + 1);

	bridge_body_send(bridge->gw->channel, &done->body, &body);
	bridge_body_send(bridge->gw->channel, &done->response_body, &response);
	event_set_text(&ev, protocol, done->protocol);
	event_set_text(&ev, host, done->host);
	event_set(&ev, method, done->method);
	event_set_text(&ev, url, done->url);
	write_fields(&fields, done->fields, done->n_fields);
	event_set(&ev, headers, str_slice(&fields));
	if (done->has_length)
		event_set(&ev, body_bytes, (event_int)done->length);
	if (done->body.seen)
		event_set(&ev, request_bytes, (event_int)done->body.seen);
	bridge_body_tell(&body, &ev);
	if (done->status) {
		write_fields(&response_fields, done->response_fields, done->n_response_fields);
		event_set(&ev, response_headers, str_slice(&response_fields));
		event_set(&ev, status, done->status);
		event_set(&ev, response_bytes, (event_int)done->response_body.seen);
		bridge_body_tell_response(&response, &ev);
	}
	event_set(&ev, duration_ns, done->duration_ns);
	event_set_text(&ev, upgrade, done->upgrade);
	if (done->n_secrets)
		event_set(&ev, secrets, list_of(names, done->secrets, done->n_secrets));
	if (done->n_stand_ins)
		event_set(&ev, stand_ins,
			list_of(names + done->n_secrets, done->stand_ins, done->n_stand_ins));
	event_set_text(&ev, error, done->error);
	channel_event(bridge->gw->channel, bridge->head.owner.cgroup, &ev);
	bridge_body_done(&body);
	bridge_body_done(&response);
	free(names);
}

static void on_message(void *arg, const struct http_message *message)
{
	struct bridge *bridge = arg;
	struct event ev = flow_head_event(&bridge->head, EVENT_NET_WS);
	struct bridge_body body;

	bridge_body_send(bridge->gw->channel, &message->body, &body);
	event_set_text(&ev, direction, message->from == MACHINE_CLIENT ? "out" : "in");
	event_set(&ev, opcode, message->opcode);
	if (message->compressed)
		event_set(&ev, compressed, true);
	event_set(&ev, bytes, (event_int)message->body.seen);
	event_set_text(&ev, url, message->url);
	bridge_body_tell(&body, &ev);
	event_set_text(&ev, error, message->error);
	channel_event(bridge->gw->channel, bridge->head.owner.cgroup, &ev);
	bridge_body_done(&body);
}

static void on_misuse(void *arg, const struct http_misuse *misuse)
{
	struct bridge *bridge = arg;
	struct event ev = flow_head_event(&bridge->head, EVENT_SECRET_MISUSE);

	event_set_text(&ev, name, misuse->name);
	event_set_text(&ev, host, misuse->host);
	if (misuse->port)
		event_set(&ev, port, misuse->port);
	event_set_text(&ev, where, misuse->where);
	channel_event(bridge->gw->channel, bridge->head.owner.cgroup, &ev);
}

static const struct http_hooks hooks = {.now_ns = now_ns,
	.judge = judge,
	.on_refused = on_refused,
	.on_exchange = on_exchange,
	.on_message = on_message,
	.on_misuse = on_misuse};

struct http_setup bridge_http_setup(struct bridge *bridge, bool is_tls, bool verified)
{
	struct gateway *gw = bridge->gw;

	return (struct http_setup){.tls = is_tls,
		.verified = verified || bridge->head.is_plane, /* the supervisor made it */
		.keeps_no_body = bridge->head.is_plane,
		.name = bridge->head.host,
		.address = bridge->head.address_text,
		.port = bridge->head.port,
		.record_responses = gw->config.network.record_responses,
		.body_limit = (size_t)gw->config.network.body_limit,
		.spare = &gw->body_spare,
		.secrets = gw->secrets,
		.hooks = &hooks,
		.arg = bridge};
}
