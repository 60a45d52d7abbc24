/* SPDX-License-Identifier: Apache-2.0 */
/* The heads of requests and answers on their way through a preview, written anew of what proto/http1 read. Pure.
 *
 * The server inside sees a browser at http://localhost:PORT: that is what servers for development take without being told
 * of other names (their checks of Host, and of Origin against it, are the same). So Host, Origin and Referer name that on the
 * way in, and Location is turned back on the way out. Of who has come to see it the server inside learns the address and nothing
 * that would let it in somewhere: not the pass, and no key of this control plane. */
#ifndef SERVER_PREVIEW_HEAD_H
#define SERVER_PREVIEW_HEAD_H

#include "proto/http1.h"

struct preview_way {
	uint16_t port;       /* inside */
	struct slice host;   /* as the browser names this preview, with its port */
	struct slice client; /* its address, without a port */
	bool is_tls;
};

/* A request for WebSocket. Upgrades to anything else are not passed on: what came behind them would be read by nobody. */
bool preview_head_is_upgrade(const struct http1_head *request);
void preview_head_add_request(
	const struct http1_head *request, const struct preview_way *way, struct str *out);

/* How the body of an answer is written, and whether the connection ends behind it. */
struct preview_answer {
	enum http1_framing framing;
	bool is_last;
};
/* is_last: the connection ends in any case. An informational answer has no body and ends nothing. */
struct preview_answer preview_head_add_answer(const struct http1_head *answer,
	const struct http1_head *request, const struct preview_way *way, bool is_last,
	struct str *out);

#endif
