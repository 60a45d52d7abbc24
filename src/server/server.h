/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane's half that faces the network, as a whole. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>

#include "server/complaint.h"
#include "store/store.h"
#include "util/err.h"
#include "util/scoped.h"

struct workers;
struct indexer;
struct limiter;
struct allowance;
struct watch_stream_hub;
struct file_feed_hub;
struct file_hooks;
struct secret_box;
struct webhooks;
struct prometheus;
struct retention;
struct audit_mender;
struct once_later;
struct map;
struct webhook_sender;
struct origin;
struct guard;
struct previews;

struct server {
	struct event_base *base;
	struct workers *workers; /* for what is short */
	struct workers *slow;    /* for what may take minutes: images, manifests */
	struct store *store;
	struct indexer *indexer;
	struct limiter *limiter;
	struct allowance *allowance;
	struct map *execs; /* exec_run.c's, by id: under way, and held by this process */
	struct watch_stream_hub *watches;
	struct file_feed_hub *file_feeds;
	struct file_hooks *file_hooks;
	struct secret_box *secrets;
	struct webhooks *webhooks;
	struct prometheus *prometheus;
	struct retention *retention;
	struct audit_mender *audit_mender;
	struct once_later *once_later;
	struct webhook_sender *sender;
	struct origin *origin;
	struct guard *guard;
	struct previews *previews; /* NULL: this server shows none */
	const char *state_dir;
	const char *host;      /* whose records these are: the fingerprint of the host's key */
	const json_t *config;  /* of --config */
	int office;            /* to the launcher: control/launcher_client.h */
	struct complaint away; /* the store, or its database */
	bool logs_requests;
};

/* What the settings say, and the store, open. */
int server_prepare(struct server *server, const json_t *settings, int office, struct err *err);

/* Serves until it is asked to end by SIGTERM. settings: what the launcher tells (launcher/serve_process.c); sockets are at
 * sockets_from and behind. */
int server_run(const json_t *settings, int office, int sockets_from, struct err *err);

#endif
