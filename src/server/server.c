/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "server/allowance.h"
#include "server/audit_index.h"
#include "server/auth.h"
#include "server/dispatch.h"
#include "server/file_feed.h"
#include "server/file_hooks.h"
#include "server/guard.h"
#include "server/indexer.h"
#include "server/keep.h"
#include "server/launcher_told.h"
#include "server/limiter.h"
#include "server/listener.h"
#include "server/once_later.h"
#include "server/origin.h"
#include "server/previews.h"
#include "server/prometheus.h"
#include "server/retention.h"
#include "server/secret_box.h"
#include "server/walls.h"
#include "server/watch_stream.h"
#include "server/webhook_sender.h"
#include "server/webhooks.h"
#include "server/workers.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"

#define THREADS      8
#define THREADS_SLOW 32
#define SOCKETS_MAX  10
#define BODIES_MAX   (256u << 20) /* bytes of requests under way, see http_conn.h */

struct parts { /* what a server is made of beside what all see */
	struct server server;
	struct http_conns *conns;
	struct http_bodies bodies;
	struct listener *listeners[SOCKETS_MAX];
	size_t n_listeners;
	struct listener_tls *tls;
	struct launcher_told *told;
	struct event *on_end;
};

static const char *text_of(const json_t *settings, const char *key)
{
	return json_string_value(json_object_get(settings, key));
}

static void on_end(evutil_socket_t signal, short what, void *ctx)
{
	struct parts *parts = ctx;

	event_base_loopbreak(parts->server.base);
}

static const char *place_of(const json_t *settings)
{
	const char *place = text_of(settings, "database");

	return place ? place : "";
}

int server_prepare(struct server *server, const json_t *settings, int office, struct err *err)
{
	int r;

	server->state_dir = text_of(settings, "state_dir");
	server->host = text_of(settings, "host");
	server->config = json_object_get(settings, "config");
	server->office = office;
	if (!server->state_dir || !server->host)
		return err_set(err, -EINVAL, "the settings name no state");
	r = walls_begin(server->state_dir, place_of(settings), err);
	if (r == 0)
		r = keep_check(server->config, err);
	if (r == 0)
		r = store_open(place_of(settings), &server->store, err);
	if (r == -EACCES)
		return err_wrap(err, r, "let the user without rights through the folders above");
	return r;
}

static int make_tls(struct parts *parts, const json_t *settings, struct err *err)
{
	const char *cert = text_of(settings, "tls_cert"), *key = text_of(settings, "tls_key");
	bool was_started = json_is_true(json_object_get(settings, "was_started"));

	if (!cert && !key)
		return 0;
	if (!cert || !key)
		return err_set(err, -EINVAL, "--tls-cert and --tls-key belong together");
	return listener_tls_new(cert, key, was_started, &parts->tls, err);
}

static void open_listeners(struct parts *parts, const json_t *settings, int from)
{
	const json_t *sockets = json_object_get(settings, "sockets");
	struct http_handler handler = dispatch_handler(&parts->server);

	parts->bodies.max = BODIES_MAX;
	handler.bodies = &parts->bodies;
	parts->conns = http_conn_new(parts->server.base, &handler);
	for (size_t i = 0; i < json_array_size(sockets) && i < SOCKETS_MAX; i++) {
		enum listener_kind kind;

		if (listener_find_kind(json_string_value(json_array_get(sockets, i)), &kind) < 0)
			continue;
		parts->listeners[parts->n_listeners++] =
			listener_new(parts->server.base, http_conn_add, parts->conns, from + (int)i,
				kind, kind == LISTENER_TCP ? parts->tls : NULL);
	}
}

static int open_previews(struct parts *parts, const json_t *settings, int from, struct err *err)
{
	const json_t *sockets = json_object_get(settings, "sockets");

	for (size_t i = 0; i < json_array_size(sockets); i++) {
		const char *kind = json_string_value(json_array_get(sockets, i));

		if (kind && strcmp(kind, "previews") == 0)
			return previews_new(&parts->server, from + (int)i, parts->tls,
				&parts->server.previews, err);
	}
	return 0;
}

static int start(struct parts *parts, const json_t *settings, int office, int from, struct err *err)
{
	struct server *server = &parts->server;
	int r = server_prepare(server, settings, office, err);

	if (r == 0)
		r = origin_new(server->config, &server->origin, err);
	if (r == 0)
		r = previews_check(server->config, err);
	if (r == 0)
		r = auth_first_start(server->store, err);
	if (r == 0)
		r = guard_new(server, &server->guard, err);
	if (r == 0)
		r = secret_box_open(server->state_dir, &server->secrets, err);
	if (r == 0)
		r = make_tls(parts, settings, err);
	if (r == 0)
		r = workers_new(server->base, THREADS, &server->workers, err);
	if (r == 0)
		r = workers_new(server->base, THREADS_SLOW, &server->slow, err);
	if (r < 0)
		return r;
	guard_start(server->guard);
	server->limiter = limiter_new(server->store);
	server->allowance = allowance_new();
	server->execs = map_new();
	server->prometheus = prometheus_new();
	server->webhooks = webhooks_new(server);
	r = webhook_sender_new(server, &server->sender, err);
	if (r == 0)
		r = indexer_new(server, &server->indexer, err);
	if (r == 0)
		r = watch_stream_hub_new(server, &server->watches, err);
	if (r == 0)
		r = open_previews(parts, settings, from, err);
	if (r < 0)
		return r;
	server->file_feeds = file_feed_hub_new(server);
	r = file_hooks_new(server, &server->file_hooks, err);
	if (r < 0)
		return r;
	server->retention = retention_new(server);
	server->audit_mender = audit_mender_new(server);
	server->once_later = once_later_new(server);
	open_listeners(parts, settings, from);
	parts->on_end = evsignal_new(server->base, SIGTERM, on_end, parts);
	event_add(parts->on_end, NULL);
	r = walls_close(place_of(settings), err);
	return r < 0 ? r : launcher_told_new(server, parts->tls, &parts->told, err);
}

/* Connections first: what is at work then is answered to nobody. */
static void stop(struct parts *parts)
{
	struct server *server = &parts->server;

	for (size_t i = 0; i < parts->n_listeners; i++)
		listener_free(parts->listeners[i]);
	http_conn_free(parts->conns);
	launcher_told_free(parts->told);
	retention_stop(server->retention);
	audit_mender_stop(server->audit_mender);
	once_later_stop(server->once_later);
	guard_stop(server->guard);
	file_hooks_stop(server->file_hooks);
	workers_free(server->slow);
	workers_free(server->workers);
	previews_free(server->previews);
	watch_stream_hub_free(server->watches);
	file_hooks_free(server->file_hooks);
	file_feed_hub_free(server->file_feeds);
	indexer_free(server->indexer);
	webhook_sender_free(server->sender);
	webhooks_free(server->webhooks);
	retention_free(server->retention);
	audit_mender_free(server->audit_mender);
	once_later_free(server->once_later);
	prometheus_free(server->prometheus);
	limiter_free(server->limiter);
	allowance_free(server->allowance);
	map_free(server->execs);
	store_free(server->store);
	guard_free(server->guard);
	secret_box_free(server->secrets);
	origin_free(server->origin);
	listener_tls_free(parts->tls);
	if (parts->on_end)
		event_free(parts->on_end);
	event_base_free(server->base);
}

int server_run(const json_t *settings, int office, int sockets_from, struct err *err)
{
	struct parts parts = {0};
	const char *form = text_of(settings, "log");
	int r;

	signal(SIGPIPE, SIG_IGN);
	log_set_json(form && strcmp(form, "json") == 0);
	parts.server.logs_requests = json_is_true(json_object_get(settings, "log_requests"));
	parts.server.base = event_base_new();
	if (!parts.server.base)
		return err_set(err, -ENOMEM, "start the loop");
	r = start(&parts, settings, office, sockets_from, err);
	if (r == 0)
		event_base_dispatch(parts.server.base);
	stop(&parts);
	return r;
}
