/* SPDX-License-Identifier: Apache-2.0 */
#include "view/timeline_net.h"

#include "view/network_place.h"

const char *timeline_net_verb(const struct event *ev)
{
	switch ((int)ev->kind) {
	case EVENT_NET_CONNECT:
		return event_has(ev, result) && ev->result ? "failed" : "connect";
	case EVENT_NET_LISTEN:
		return "listen";
	case EVENT_NET_ACCEPT:
		return "accept";
	case EVENT_NET_DNS:
		return ev->refused ? "refused" : NULL;
	case EVENT_NET_REFUSED:
		return ev->shadow ? "would be refused" : "refused";
	case EVENT_SECRET_MISUSE:
		return "misused";
	case EVENT_NET_RULES:
	case EVENT_NET_PROXY:
	case EVENT_NET_ASKED:
	case EVENT_NET_GATEWAY:
		return event_kind_name(ev->kind);
	default:
		return NULL;
	}
}

static void add_text(struct str *out, const char *before, struct slice text)
{
	if (text.len == 0)
		return;
	str_puts(out, before);
	str_add(out, text.p, text.len);
}

static void add_rules(struct str *out, const struct event *ev)
{
	for (size_t i = 0; i < ev->rules.n; i++)
		add_text(out, i ? ", " : "", ev->rules.items[i]);
	if (ev->rules.n == 0)
		str_puts(out, "none");
	add_text(out, " by ", ev->actor);
}

void timeline_net_what(const struct event *ev, struct str *out)
{
	if (ev->kind == EVENT_NET_RULES) {
		add_rules(out, ev);
		return;
	}
	if (ev->kind == EVENT_NET_PROXY) {
		add_text(out, "", ev->url.len ? ev->url : slice_of("none"));
		add_text(out, " by ", ev->actor);
		return;
	}
	if (ev->kind == EVENT_NET_GATEWAY) {
		add_text(out, "", ev->what);
		add_text(out, ": ", ev->reason);
		return;
	}
	if (ev->kind == EVENT_SECRET_MISUSE) {
		add_text(out, "secret ", ev->name);
		str_puts(out, " on its way to ");
	}
	if (ev->kind == EVENT_NET_ASKED)
		add_text(out, "", ev->answer);
	if (ev->kind == EVENT_NET_ASKED)
		str_putc(out, ' ');
	network_place_add(out, network_place_host(ev), ev->port);
	if (ev->kind == EVENT_NET_REFUSED)
		network_place_add_request(out, ev);
	if (ev->kind == EVENT_NET_ASKED)
		add_text(out, " by ", ev->actor);
	if (ev->kind == EVENT_NET_ACCEPT)
		add_text(out, " from ", ev->from);
	if (ev->kind == EVENT_NET_CONNECT && event_has(ev, result) && ev->result)
		str_printf(out, " (%s)", event_errno_name(ev->result));
}

struct timeline_net timeline_net_of(struct intern *intern, const struct event *ev)
{
	struct timeline_net net = {.port = ev->port};

	net.host = intern_text(intern, ev->kind == EVENT_NET_DNS ? ev->name : ev->host);
	net.address = intern_text(intern, ev->address);
	net.protocol = intern_text(intern, ev->protocol);
	net.rule = intern_text(intern, ev->rule);
	net.reason = intern_text(intern, ev->reason);
	if (ev->kind == EVENT_SECRET_MISUSE)
		net.name = intern_text(intern, ev->name);
	net.answer = intern_text(intern, ev->answer);
	net.actor = intern_text(intern, ev->actor);
	return net;
}

static void write_text(struct jsonw *j, const char *key, struct slice text)
{
	if (text.len)
		jsonw_kslice(j, key, text);
	else
		jsonw_knull(j, key);
}

void timeline_net_json(struct jsonw *j, const struct timeline_net *net)
{
	write_text(j, "host", net->host);
	write_text(j, "address", net->address);
	if (net->port)
		jsonw_kint(j, "port", net->port);
	else
		jsonw_knull(j, "port");
	write_text(j, "protocol", net->protocol);
	if (net->name.len)
		jsonw_kslice(j, "secret", net->name);
	if (net->answer.len) {
		jsonw_kslice(j, "answer", net->answer);
		write_text(j, "actor", net->actor);
	}
	if (net->rule.len)
		jsonw_kslice(j, "rule", net->rule);
	if (net->reason.len)
		jsonw_kslice(j, "reason", net->reason);
}
