/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at what a flow begins with, without taking it: the machine that is chosen finds all of it in the socket. */
#include "gateway/bridge_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "gateway/bridge_http.h"
#include "gateway/bridge_tls.h"
#include "gateway/gateway_internal.h"
#include "gateway/h2_machine.h"
#include "gateway/http_machine.h"
#include "util/clock.h"

/* A hello of tls_hello.h's greatest length would fit with its records' heads. */
#define LOOK_NS    (5 * CLOCK_NS_PER_S) /* for the rest of what has begun */
#define TLS_RECORD 0x16                 /* a handshake */

static bool has_upstream(const struct bridge *bridge)
{
	return bridge->side[MACHINE_SERVER].io.fd >= 0;
}

static void stop_timer(struct bridge *bridge)
{
	poller_timer_stop(bridge->gw->poller, &bridge->timer);
}

void bridge_refuse_opaque(struct bridge *bridge)
{
	bridge->answer.verdict = POLICY_DENY;
	snprintf(bridge->answer.rule, sizeof(bridge->answer.rule),
		"default: no bytes beside rules for requests");
	snprintf(bridge->answer.reason, sizeof(bridge->answer.reason),
		"Only HTTP requests that can be read are let through there, and this is none.");
	bridge->failed = true;
	bridge_reset(bridge, "no HTTP");
}

bool bridge_pass(struct bridge *bridge)
{
	stop_timer(bridge);
	if (has_upstream(bridge) && !bridge->answer.only_http) {
		bridge->state = BRIDGE_RELAYING;
		return true;
	}
	if (has_upstream(bridge)) {
		bridge_refuse_opaque(bridge);
	} else {
		bridge->failed = true;
		bridge_reset(bridge, "refused"); /* which cannot be told in words */
	}
	return false;
}

static bool begin_http(struct bridge *bridge, enum http_kind kind)
{
	struct http_setup setup = bridge_http_setup(bridge, false, false);

	stop_timer(bridge);
	if (kind == HTTP_KIND_HTTP2)
		h2_machine_new(&setup, &bridge->machine);
	else
		http_machine_new(&setup, &bridge->machine);
	bridge->state = BRIDGE_MACHINE;
	return true;
}

static void on_late(void *ctx)
{
	struct bridge *bridge = ctx;

	bridge->is_late = true;
	if (bridge_look(bridge))
		bridge_go_on(bridge);
}

/* More is to come. False: it is not waited for any longer, and what began as HTTP or TLS is taken for that; passed
 * on as it is, it could be completed behind our back. */
static bool may_wait(struct bridge *bridge)
{
	if (bridge->is_late || bridge->side[MACHINE_CLIENT].io.ready & POLLER_END)
		return false;
	if (!bridge->timer.place) {
		bridge->timer = (struct poller_timer){.on_time = on_late, .ctx = bridge};
		poller_timer_set(bridge->gw->poller, &bridge->timer, LOOK_NS);
	}
	return true;
}

static bool look_at_tls(struct bridge *bridge, struct slice first)
{
	struct tls_hello hello = {0};
	bool goes_on = false;

	if (tls_hello_feed(&hello, first) != TLS_HELLO_MORE || first.len >= GATEWAY_CHUNK ||
		!may_wait(bridge)) {
		tls_hello_give_up(&hello);
		stop_timer(bridge);
		goes_on = hello.result == TLS_HELLO_NOT_TLS ? bridge_pass(bridge)
		                                            : bridge_tls_begin(bridge, &hello);
	}
	tls_hello_done(&hello);
	return goes_on;
}

/* What has ended is no request, and cannot become one. */
static bool look_at_part(struct bridge *bridge)
{
	if (bridge->side[MACHINE_CLIENT].io.ready & POLLER_END)
		return bridge_pass(bridge);
	return !may_wait(bridge) && begin_http(bridge, HTTP_KIND_HTTP1);
}

static bool look_at(struct bridge *bridge, struct slice first)
{
	enum http_kind kind;

	if ((unsigned char)*first.p == TLS_RECORD && !bridge->head.is_plane)
		return look_at_tls(bridge, first);
	kind = http_sniff(first);
	switch (kind) {
	case HTTP_KIND_MORE:
		return look_at_part(bridge);
	case HTTP_KIND_HTTP1:
	case HTTP_KIND_HTTP2:
		return begin_http(bridge, kind);
	case HTTP_KIND_OTHER:
		break;
	}
	return bridge_pass(bridge);
}

/* A server of HTTP/2 may greet before its client does. Who else speaks first speaks no HTTP. */
static bool server_greets(struct bridge *bridge)
{
	char first[HTTP_GREETING];
	ssize_t n = recv(
		bridge->side[MACHINE_SERVER].io.fd, first, sizeof(first), MSG_PEEK | MSG_DONTWAIT);

	return n > 0 && http_is_greeting((struct slice){.p = first, .len = (size_t)n});
}

bool bridge_look(struct bridge *bridge)
{
	struct gateway *gw = bridge->gw;
	struct poller_io *client = &bridge->side[MACHINE_CLIENT].io;
	ssize_t n = -1;

	errno = EAGAIN;
	if (client->ready & POLLER_READ)
		n = recv(client->fd, gw->chunk, sizeof(gw->chunk), MSG_PEEK);
	if (n > 0)
		return look_at(bridge, (struct slice){.p = gw->chunk, .len = (size_t)n});
	if (n == 0)
		return has_upstream(bridge) ? bridge_pass(bridge) : (bridge_end(bridge), false);
	if (errno != EAGAIN) {
		bridge_reset(bridge, event_errno_name(errno));
		return false;
	}
	client->ready &= ~POLLER_READ;
	if (has_upstream(bridge) && bridge->side[MACHINE_SERVER].io.ready & POLLER_READ &&
		!server_greets(bridge))
		return bridge_pass(bridge);
	return false;
}
