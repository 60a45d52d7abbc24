/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 1035, 7766. */
#include "gateway/resolver.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/flow_head.h"
#include "gateway/gateway_internal.h"
#include "spec/spec_rule.h"
#include "util/clock.h"
#include "util/mem.h"

#define SERVERS_MAX 8
#define ASKS_MAX    512 /* at once */
#define TRIES_MAX   3
#define UDP_NS      (1500 * CLOCK_NS_PER_MS) /* three of them before a usual client gives up (5 s) */
#define TCP_NS      (3 * CLOCK_NS_PER_S)
#define DNS_PORT    53

struct server {
	struct sockaddr_storage to;
	socklen_t len;
};

struct resolver {
	struct gateway *gw;
	struct server servers[SERVERS_MAX];
	size_t n_servers, preferred; /* the one that answered last */
	struct resolver_ask *first;
	size_t n_asks;
};

struct resolver_ask {
	struct resolver *resolver;
	struct resolver_ask *next, **at;
	struct dns_query query;
	uint16_t id;
	struct poller_io io; /* fd -1: none */
	struct poller_timer timer;
	bool is_tcp;
	bool is_plain; /* without EDNS */
	unsigned tries;
	size_t server, sent;
	int last_error;
	struct str out, in;
	resolver_fn on_answer;
	void *ctx;
};

static void try_next(struct resolver_ask *ask);
static void on_ready(void *ctx);

/* "192.0.2.1:53", "[2001:db8::1]:53", or without a port. */
static int parse_server(const char *text, struct server *ret)
{
	const char *colon = strrchr(text, ':');
	const char *end = strchr(text, ']');
	bool has_port = colon && (end ? colon == end + 1 : strchr(text, ':') == colon);
	struct slice host = {.p = text, .len = has_port ? (size_t)(colon - text) : strlen(text)};
	unsigned port = DNS_PORT;
	uint8_t address[16];

	if (has_port && (sscanf(colon + 1, "%5u", &port) != 1 || port == 0 || port > UINT16_MAX))
		return -EINVAL;
	if (spec_rule_address(host, address) < 0)
		return -EINVAL;
	ret->len = flow_sockaddr(address, (uint16_t)port, &ret->to);
	return 0;
}

struct resolver *resolver_new(struct gateway *gw, const struct spec_words *addresses)
{
	struct resolver *resolver = new0(struct resolver);

	resolver->gw = gw;
	for (size_t i = 0; i < addresses->n && resolver->n_servers < SERVERS_MAX; i++)
		if (parse_server(addresses->items[i], &resolver->servers[resolver->n_servers]) == 0)
			resolver->n_servers++;
	return resolver;
}

static void close_socket(struct resolver_ask *ask)
{
	int fd = ask->io.fd;

	poller_timer_stop(ask->resolver->gw->poller, &ask->timer);
	if (fd < 0)
		return;
	poller_forget(ask->resolver->gw->poller, &ask->io);
	close(fd);
}

void resolver_cancel(struct resolver_ask *ask)
{
	if (!ask)
		return;
	close_socket(ask);
	*ask->at = ask->next;
	if (ask->next)
		ask->next->at = ask->at;
	ask->resolver->n_asks--;
	str_done(&ask->out);
	str_done(&ask->in);
	free(ask);
}

void resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return;
	while (resolver->first)
		resolver_cancel(resolver->first);
	free(resolver);
}

static void finish(struct resolver_ask *ask, int r, const struct dns_answer *answer)
{
	resolver_fn on_answer = ask->on_answer;
	void *ctx = ask->ctx;

	if (r == 0)
		ask->resolver->preferred = ask->server;
	close_socket(ask);
	on_answer(ctx, r, answer); /* which points into the ask, and must not cancel it */
	resolver_cancel(ask);
}

static void failed(struct resolver_ask *ask, int r)
{
	ask->last_error = r;
	close_socket(ask);
	try_next(ask);
}

static void on_late(void *ctx)
{
	struct resolver_ask *ask = ctx;

	failed(ask, ask->io.fd < 0 ? ask->last_error : -ETIMEDOUT);
}

static int open_socket(struct resolver_ask *ask)
{
	const struct server *server = &ask->resolver->servers[ask->server];
	int fd = socket(server->to.ss_family,
		(ask->is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&server->to, server->len) < 0 &&
		errno != EINPROGRESS) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static void send_out(struct resolver_ask *ask)
{
	while (ask->sent < ask->out.len) {
		ssize_t n = send(
			ask->io.fd, ask->out.p + ask->sent, ask->out.len - ask->sent, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == ENOTCONN || errno == EINPROGRESS))
			return;
		if (n < 0) {
			failed(ask, -errno);
			return;
		}
		ask->sent += (size_t)n;
	}
}

static void start_try(struct resolver_ask *ask, bool is_tcp)
{
	struct poller *poller = ask->resolver->gw->poller;
	uint8_t prefix[2] = {0, 0};
	int fd, r;

	ask->is_tcp = is_tcp;
	ask->sent = 0;
	str_reset(&ask->in);
	str_reset(&ask->out);
	if (getrandom(&ask->id, sizeof(ask->id), 0) != (ssize_t)sizeof(ask->id))
		abort();
	if (is_tcp)
		str_add(&ask->out, prefix, sizeof(prefix));
	dns_query_write(&ask->out, &ask->query, ask->id, !ask->is_plain);
	if (is_tcp) {
		ask->out.p[0] = (char)((ask->out.len - 2) >> 8);
		ask->out.p[1] = (char)(ask->out.len - 2);
	}
	fd = open_socket(ask);
	r = fd < 0 ? fd : poller_add(poller, &ask->io, fd, on_ready, ask);
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		ask->io.fd = -1;
		ask->last_error = r;
		poller_timer_set(poller, &ask->timer, 0); /* not now: whoever asks has no ask yet */
		return;
	}
	poller_timer_set(poller, &ask->timer, is_tcp ? TCP_NS : UDP_NS);
}

static void try_next(struct resolver_ask *ask)
{
	if (ask->tries++ >= TRIES_MAX) {
		finish(ask, ask->last_error, NULL);
		return;
	}
	if (ask->tries > 1)
		ask->server = (ask->server + 1) % ask->resolver->n_servers;
	ask->is_plain = false;
	start_try(ask, false);
}

/* Whether an answer says less of the name than of the server: it gets a simpler question, or the next one is asked. */
static bool is_asked_again(struct resolver_ask *ask, const struct dns_answer *answer)
{
	bool is_unknown = answer->rcode == DNS_FORMERR || answer->rcode == DNS_NOTIMP;

	if (is_unknown && !ask->is_plain) {
		ask->is_plain = true;
		close_socket(ask);
		start_try(ask, ask->is_tcp);
		return true;
	}
	if (!is_unknown && answer->rcode != DNS_SERVFAIL && answer->rcode != DNS_REFUSED)
		return false;
	if (ask->tries >= ask->resolver->n_servers || ask->tries >= TRIES_MAX)
		return false;
	close_socket(ask);
	try_next(ask);
	return true;
}

static void on_message(struct resolver_ask *ask, struct slice message)
{
	static struct dns_answer answer; /* too large for the stack; one at a time */
	int r = dns_answer_read(message, &ask->query, ask->id, &answer);

	if (r < 0) {
		if (ask->is_tcp)
			failed(ask, -EBADMSG);
		return; /* over UDP anybody may have sent it: the right one may come yet */
	}
	if (answer.truncated && !ask->is_tcp) {
		close_socket(ask);
		start_try(ask, true);
		return;
	}
	if (!is_asked_again(ask, &answer))
		finish(ask, 0, &answer);
}

static void read_datagram(struct resolver_ask *ask)
{
	char *chunk = ask->resolver->gw->chunk;
	ssize_t n = recv(ask->io.fd, chunk, GATEWAY_CHUNK, 0);

	if (n < 0) {
		if (errno != EAGAIN)
			failed(ask, -errno);
		return;
	}
	str_reset(&ask->in);
	str_add(&ask->in, chunk, (size_t)n);
	poller_again(ask->resolver->gw->poller, &ask->io); /* there may be another behind it */
	on_message(ask, str_slice(&ask->in));
}

static void read_stream(struct resolver_ask *ask)
{
	size_t want = 0;
	ssize_t n;

	do {
		str_reserve(&ask->in, 2 + DNS_MESSAGE_MAX);
		n = recv(ask->io.fd, ask->in.p + ask->in.len, 2 + DNS_MESSAGE_MAX - ask->in.len, 0);
		if (n > 0)
			ask->in.len += (size_t)n;
		if (ask->in.len >= 2)
			want = 2 + ((size_t)(uint8_t)ask->in.p[0] << 8 | (uint8_t)ask->in.p[1]);
	} while (n > 0 && (want == 0 || ask->in.len < want));
	if (want && ask->in.len >= want)
		on_message(ask, (struct slice){.p = ask->in.p + 2, .len = want - 2});
	else if (n == 0 || errno != EAGAIN)
		failed(ask, n == 0 ? -ECONNRESET : -errno);
}

static void on_ready(void *ctx)
{
	struct resolver_ask *ask = ctx;

	if (ask->sent < ask->out.len) {
		send_out(ask);
		return;
	}
	if (ask->is_tcp)
		read_stream(ask);
	else
		read_datagram(ask);
}

struct resolver_ask *resolver_ask(
	struct resolver *resolver, const struct dns_query *query, resolver_fn on_answer, void *ctx)
{
	struct resolver_ask *ask = new0(struct resolver_ask);

	*ask = (struct resolver_ask){.resolver = resolver,
		.query = *query,
		.io = {.fd = -1},
		.timer = {.on_time = on_late, .ctx = ask},
		.server = resolver->preferred,
		.last_error = resolver->n_servers ? -EBUSY : -ENOENT,
		.on_answer = on_answer,
		.ctx = ctx};
	ask->next = resolver->first;
	ask->at = &resolver->first;
	if (ask->next)
		ask->next->at = &ask->next;
	resolver->first = ask;
	resolver->n_asks++;
	if (resolver->n_servers == 0 || resolver->n_asks > ASKS_MAX) {
		ask->tries = TRIES_MAX;
		poller_timer_set(resolver->gw->poller, &ask->timer, 0);
	} else {
		ask->tries = 1;
		start_try(ask, false);
	}
	return ask;
}
