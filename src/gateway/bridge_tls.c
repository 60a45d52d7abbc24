/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/bridge_tls.h"

#include <string.h>
#include <sys/socket.h>

#include "gateway/bridge_http.h"
#include "gateway/gateway_internal.h"
#include "gateway/h2_machine.h"
#include "gateway/mitm.h"
#include "gateway/plain_machine.h"
#include "gateway/tls_setup.h"
#include "gateway/verdict.h"
#include "util/mem.h"

static bool has_name(void *data, const char *name)
{
	struct bridge *bridge = data;
	struct gateway *gw = bridge->gw;
	const char *known;

	for (size_t i = 0;
		(known = names_find(gw->names, bridge->head.address, i, poller_now_ns(gw->poller)));
		i++)
		if (strcmp(known, name) == 0)
			return true;
	return false;
}

static void decide(struct bridge *bridge, const struct tls_hello *hello, struct mitm_decision *ret)
{
	struct mitm_flow flow = {.host = bridge->head.host,
		.has_name = has_name,
		.data = bridge,
		.has_address = bridge->head.has_dialled,
		.port = bridge->head.port};

	memcpy(flow.address, bridge->head.dialled, sizeof(flow.address));
	mitm_decide(bridge->gw->policy, &bridge->gw->config.network, &flow, hello, ret);
	if (ret->answer.verdict == POLICY_ASK && bridge->head.was_asked) {
		ret->answer.verdict = POLICY_ALLOW;
		ret->verdict = policy_tls(bridge->gw->policy, ret->host) == SPEC_TLS_PASSTHROUGH
		                       ? MITM_PASSTHROUGH
		                       : MITM_INTERCEPT;
	}
}

static bool refuse(struct bridge *bridge, const struct mitm_decision *decision)
{
	struct slice alert = mitm_alert();

	bridge->answer = decision->answer;
	verdict_tell(bridge->gw, &bridge->head, &bridge->answer, "tls");
	bridge->is_told = true;
	bridge->failed = true;
	str_puts(&bridge->error, "refused");
	/* Seven bytes fit into any socket that has sent nothing yet. */
	(void)send(bridge->side[MACHINE_CLIENT].io.fd, alert.p, alert.len, MSG_NOSIGNAL);
	bridge_close_server(bridge);
	bridge_begin_leaving(bridge);
	return false;
}

static bool pass_through(struct bridge *bridge, const struct mitm_decision *decision)
{
	bridge->tls = decision->is_unreadable ? "unreadable" : "passthrough";
	return bridge_pass(bridge);
}

static void open_inner(void *data, const char *alpn, struct machine *ret)
{
	struct bridge *bridge = data;
	struct http_setup setup = bridge_http_setup(bridge, true, true);

	if (strcmp(alpn, "h2") == 0)
		h2_machine_new(&setup, ret);
	else if (strcmp(alpn, "http/1.1") == 0)
		http_machine_new(&setup, ret);
	else
		plain_machine_new(&setup, !bridge->answer.only_http, ret);
}

static bool intercept(
	struct bridge *bridge, const struct mitm_decision *decision, const struct tls_hello *hello)
{
	struct gateway *gw = bridge->gw;
	struct mitm_config config = {.client = tls_setup_client(gw),
		.ca = tls_setup_ca(gw),
		.host = decision->host[0] ? decision->host : NULL,
		.address = bridge->head.has_dialled ? bridge->head.dialled : NULL,
		.port = bridge->head.port,
		.asked_for_name = hello->result == TLS_HELLO_NAME,
		.alpn = hello->alpn,
		.has_upstream = bridge->side[MACHINE_SERVER].io.fd >= 0,
		.open = open_inner,
		.data = bridge};
	struct mitm *mitm = config.client && config.ca ? mitm_new(&config) : NULL;

	if (!mitm) {
		bridge->failed = true;
		bridge_reset(bridge, "TLS could not be opened");
		return false;
	}
	bridge->tls = "intercepted";
	bridge->mitm = mitm;
	bridge->machine = (struct machine){.ops = &mitm_machine, .self = mitm};
	bridge->state = BRIDGE_MACHINE;
	return true;
}

bool bridge_tls_begin(struct bridge *bridge, const struct tls_hello *hello)
{
	struct mitm_decision decision;

	decide(bridge, hello, &decision);
	if (hello->result == TLS_HELLO_NAME)
		str_puts(&bridge->sni, hello->host.text);
	if (decision.host[0] &&
		(!bridge->head.host || strcmp(bridge->head.host, decision.host) != 0)) {
		free(bridge->head.host);
		bridge->head.host = mem_dup(decision.host);
	}
	if (decision.verdict == MITM_REFUSE)
		return refuse(bridge, &decision);
	if (decision.answer.shadow && !bridge->answer.shadow)
		verdict_tell(bridge->gw, &bridge->head, &decision.answer, "tls");
	if (decision.verdict == MITM_PASSTHROUGH || !tls_setup_can(bridge->gw))
		return pass_through(bridge, &decision);
	/* Of a refused name the reason stays the one it was refused for. */
	if (bridge->head.has_dialled)
		bridge->answer = decision.answer;
	return intercept(bridge, &decision, hello);
}
