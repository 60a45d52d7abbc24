/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/gateway.h"

#include <errno.h>
#include <fcntl.h>

#include "gateway/ask.h"
#include "gateway/bridge.h"
#include "gateway/ca.h"
#include "gateway/confine.h"
#include "gateway/dns_burst.h"
#include "gateway/dns_proxy.h"
#include "gateway/dns_stream.h"
#include "gateway/gateway_internal.h"
#include "gateway/intake.h"
#include "gateway/limits.h"
#include "gateway/own_address.h"
#include "gateway/owners.h"
#include "gateway/plane.h"
#include "gateway/proxy_wire.h"
#include "gateway/published.h"
#include "gateway/refused.h"
#include "gateway/resolver.h"
#include "gateway/secrets.h"
#include "gateway/tls_client.h"
#include "gateway/traffic.h"
#include "gateway/udp_flow.h"
#include "gateway/visitors.h"
#include "proto/gateway_wire.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/scoped.h"

#define FLUSH_NS   (80 * CLOCK_NS_PER_MS) /* less than the supervisor waits for a flush */
#define BURST_NS   (61 * CLOCK_NS_PER_S)
#define BODY_SPARE (32u << 20)

int64_t gateway_flow_number(struct gateway *gw)
{
	return ++gw->last_flow;
}

static int build_policy(struct gateway *gw, const struct spec_network *network, struct err *err)
{
	struct policy *policy = NULL;
	int r = policy_new(network, &policy, err);

	if (r < 0)
		return r;
	policy_free(gw->policy);
	gw->policy = policy;
	return 0;
}

static void set_rules(struct gateway *gw, struct slice json)
{
	struct spec_network network;

	spec_network_init(&network);
	if (config_network(&gw->config, json, &network, NULL) < 0 ||
		build_policy(gw, &network, NULL) < 0) {
		spec_network_done(
			&network); /* the supervisor has checked them: the old ones stay */
		return;
	}
	spec_network_done(&gw->config.network);
	gw->config.network = network;
	ask_all_forget(gw->asks);
	refused_clear(gw->refused);
	intake_check(gw->intake);
	bridge_all_check(gw->bridges);
	udp_flows_check(gw->udp);
}

static int use_proxy(struct gateway *gw, struct err *err)
{
	const char *url = gw->config.network.upstream_proxy;
	int r = url ? proxy_wire_url(url, &gw->proxy.host, &gw->proxy.port) : 0;

	if (!url)
		str_reset(&gw->proxy.host);
	return r < 0 ? err_set(err, r, "gateway: '%s' is no upstream proxy", url) : 0;
}

/* What is open, or is just being dialled, goes on by the one it began with. */
static void set_proxy(struct gateway *gw, struct slice json)
{
	/* The supervisor has checked it. Without one that can be read there is no way out. */
	if (config_set_proxy(&gw->config, json, NULL) < 0 || use_proxy(gw, NULL) < 0)
		poller_stop(gw->poller);
}

static void answer_flushes(struct gateway *gw)
{
	uint64_t id;

	poller_timer_stop(gw->poller, &gw->flush_timer);
	gw->flush_waits = false;
	traffic_tell(gw);
	for (size_t at = 0; at < gw->flushes.len; at += sizeof(id)) {
		memcpy(&id, gw->flushes.p + at, sizeof(id));
		channel_frame(
			gw->channel, &(struct gateway_frame){.type = GATEWAY_FLUSHED, .id = id});
	}
	str_reset(&gw->flushes);
}

static void on_flush_due(void *ctx)
{
	answer_flushes(ctx);
}

/* All that could be read when it was asked for is in events, but for names whose answers are under way: a program that
 * asks and ends has asked all the same. They are given a while, not for ever, since others may go on asking. */
static void on_flushed(void *ctx)
{
	struct gateway *gw = ctx;

	if (gw->n_questions == 0) {
		answer_flushes(gw);
	} else if (!gw->flush_waits) {
		gw->flush_waits = true;
		gw->flush_timer = (struct poller_timer){.on_time = on_flush_due, .ctx = gw};
		poller_timer_set(gw->poller, &gw->flush_timer, FLUSH_NS);
	}
}

void gateway_count_question(struct gateway *gw, bool is_over)
{
	gw->n_questions += is_over ? (size_t)-1 : 1;
	if (gw->n_questions == 0 && gw->flush_waits)
		poller_when_idle(gw->poller, on_flushed, gw);
}

static void on_frame(struct gateway *gw, const struct gateway_frame *frame)
{
	switch (frame->type) {
	case GATEWAY_FLUSH:
		str_add(&gw->flushes, &frame->id, sizeof(frame->id));
		poller_when_idle(gw->poller, on_flushed, gw);
		break;
	case GATEWAY_RULES:
		set_rules(gw, frame->rest);
		break;
	case GATEWAY_ANSWER:
		ask_all_answer(gw->asks, frame->id, frame->flag);
		break;
	case GATEWAY_COUNT:
		traffic_tell(gw);
		break;
	case GATEWAY_PROXY:
		set_proxy(gw, frame->rest);
		break;
	case GATEWAY_READY:
	case GATEWAY_EVENT:
	case GATEWAY_BLOB:
	case GATEWAY_BLOB_HEAD:
	case GATEWAY_BLOB_TAIL:
	case GATEWAY_FLUSHED:
	case GATEWAY_ASK:
	case GATEWAY_BYTES_OUT:
	case GATEWAY_BYTES_IN:
		poller_stop(gw->poller); /* not the supervisor's to send */
		break;
	}
}

static void on_control(void *ctx)
{
	struct gateway *gw = ctx;
	struct gateway_frame frame;
	int end = channel_read(gw->channel), r;

	while ((r = channel_next(gw->channel, &frame)) > 0)
		on_frame(gw, &frame);
	if (end < 0 || r < 0)
		poller_stop(gw->poller);
}

/* Once when it begins and once when it is over, with how many there were. */
static void tell_bursts_until(struct gateway *gw, int64_t now_ns)
{
	struct dns_burst_report report;
	scoped_str struct str reason = {0};
	struct event ev = {.kind = EVENT_HINT};

	while (dns_burst_next(gw->bursts, now_ns, &report)) {
		str_reset(&reason);
		str_printf(&reason,
			"%llu names below %s that look like data were asked for within a "
			"minute; %llu of them were refused",
			(unsigned long long)report.asked, report.domain,
			(unsigned long long)report.refused);
		event_set(&ev, reason, str_slice(&reason));
		event_set(&ev, count, (event_int)report.asked);
		event_set_text(&ev, advice, "look at what asked for them: names carry data out");
		channel_event(gw->channel, 0, &ev);
		poller_timer_set(gw->poller, &gw->burst_timer, BURST_NS);
	}
}

static void tell_bursts(void *ctx)
{
	struct gateway *gw = ctx;

	tell_bursts_until(gw, poller_now_ns(gw->poller));
}

static void on_turn(void *ctx)
{
	struct gateway *gw = ctx;

	tell_bursts(gw);
	limits_turn(gw->limits);
	if (channel_push(gw->channel) < 0)
		poller_stop(gw->poller);
}

static int start(struct gateway *gw, struct err *err)
{
	int r = build_policy(gw, &gw->config.network, err);

	if (r == 0)
		r = use_proxy(gw, err);
	if (r == 0 && gw->config.network.n_secrets > 0)
		r = secrets_new(gw->config.network.secrets, gw->config.network.n_secrets,
			&gw->secrets, err);
	if (r < 0)
		return r;
	gw->body_spare = BODY_SPARE;
	gw->channel = channel_new(GATEWAY_FD_CONTROL, gw->config.sandbox, gw->config.start_ns);
	gw->names = names_new();
	gw->refused = refused_new(gw->by_rules ? -1 : GATEWAY_FD_REFUSED);
	gw->resolver = resolver_new(gw, &gw->config.resolvers);
	gw->bridges = bridge_all_new(gw);
	gw->asks = ask_all_new(gw);
	gw->owners = owners_new(gw);
	gw->bursts = dns_burst_new();
	gw->dns_streams = dns_streams_new(gw);
	gw->burst_timer = (struct poller_timer){.on_time = tell_bursts, .ctx = gw};
	r = intake_open(gw, &gw->intake, err);
	if (r == 0)
		r = dns_proxy_open(gw, &gw->dns, err);
	if (r == 0)
		r = udp_flows_open(gw, &gw->udp, err);
	if (r == 0 && gw->config.network.control_plane)
		r = plane_open(gw, &gw->plane, err);
	if (r == 0)
		r = published_open(gw, &gw->published, err);
	if (r == 0)
		r = visitors_open(gw, &gw->visitors, err);
	if (r == 0)
		r = poller_add_level(
			gw->poller, &gw->control_io, GATEWAY_FD_CONTROL, on_control, gw);
	return r < 0 ? err_wrap(err, r, "gateway: start") : 0;
}

static void stop(struct gateway *gw)
{
	visitors_free(gw->visitors);
	published_free(gw->published);
	udp_flows_free(gw->udp);
	dns_proxy_free(gw->dns);
	dns_streams_free(gw->dns_streams);
	intake_free(gw->intake);
	bridge_all_free(gw->bridges);
	plane_free(gw->plane);
	ask_all_free(gw->asks);
	resolver_free(gw->resolver);
	owners_free(gw->owners);
	if (gw->bursts)
		tell_bursts_until(gw, INT64_MAX);
	dns_burst_free(gw->bursts);
	limits_free(gw->limits);
	if (gw->channel)
		(void)channel_push(gw->channel); /* the supervisor may be gone */
	refused_free(gw->refused);
	names_free(gw->names);
	channel_free(gw->channel);
	tls_client_free(gw->tls_client);
	ca_free(gw->ca);
	secrets_free(gw->secrets);
	policy_free(gw->policy);
	scoped_close(&gw->route_fd);
	poller_free(gw->poller);
	inside_free(gw->inside);
	str_done(&gw->proxy.host);
	str_done(&gw->flushes);
	config_done(&gw->config);
	free(gw);
}

/* What has to be done with rights, or from outside. */
static int prepare(struct gateway *gw, struct err *err)
{
	int r = confine_begin(err);

	if (r == 0)
		r = config_read(
			&gw->config, GATEWAY_FD_CONFIG, GATEWAY_FD_SECRETS, GATEWAY_FD_PROXY, err);
	if (r < 0)
		return r;
	gw->by_rules = fcntl(GATEWAY_FD_COPIES, F_GETFD) >= 0; /* before anything else is opened */
	gw->poller = poller_new();
	r = gw->route_fd = own_address_open();
	if (r < 0)
		return err_set(err, r, "gateway: open a socket for routes: %m");
	r = limits_open(gw, &gw->limits, err);
	if (r == 0)
		r = inside_open(GATEWAY_FD_NETNS, &gw->inside, err);
	return r < 0 ? r : confine_enter(gw->config.uid, err);
}

int gateway_main(struct err *err)
{
	struct gateway *gw = new0(struct gateway);
	int r;

	gw->route_fd = -1;
	r = prepare(gw, err);
	if (r == 0)
		r = start(gw, err);
	if (r == 0) {
		channel_frame(gw->channel, &(struct gateway_frame){.type = GATEWAY_READY});
		poller_run(gw->poller, on_turn, gw);
	}
	stop(gw);
	return r;
}
