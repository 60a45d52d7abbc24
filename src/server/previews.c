/* SPDX-License-Identifier: Apache-2.0 */
/* What the store says of a preview that somebody looks at is asked once a second, for all who do together, so that requests
 * need not wait for it; and whoever may see one no more is cut off then, on this replica as on others. */
#include "server/previews.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/listener.h"
#include "server/preview_internal.h"
#include "util/clock.h"
#include "util/mem.h"

#define THREADS   8
#define LOOK_MS   1000 /* from look to look */
#define FRESH_MS  1900 /* what was seen is good as long: a look that is late delays nobody */
#define UNUSED_MS 5000 /* after which nobody is asked for it any more */

struct preview_known {
	char id[ID_SIZE], key[ID_SIZE];
	struct preview_sight sight;
	int64_t read_ms, used_ms;
};

struct look {
	struct work work;
	struct previews *previews;
	struct preview_known *items; /* copies: those of the map are the loop's */
	int *results;
	size_t n;
};

static int64_t now_ms(void)
{
	return clock_mono_ns() / CLOCK_NS_PER_MS;
}

/* ---- what is known ---- */

static struct slice name_of(const char *id, const char *key, char text[2 * ID_SIZE])
{
	(void)snprintf(text, 2 * ID_SIZE, "%s %s", id, key); /* fits */
	return slice_of(text);
}

const struct preview_sight *previews_known(
	struct previews *previews, const char *id, const char *key)
{
	char text[2 * ID_SIZE];
	struct preview_known *known = map_find(previews->known, name_of(id, key, text));

	if (!known || now_ms() - known->read_ms > FRESH_MS)
		return NULL;
	known->used_ms = now_ms();
	return &known->sight;
}

static void arm(struct previews *previews)
{
	const struct timeval in = {.tv_usec = LOOK_MS % 1000 * 1000, .tv_sec = LOOK_MS / 1000};

	if (!evtimer_pending(previews->timer, NULL))
		evtimer_add(previews->timer, &in);
}

/* What is not there is not kept: names that somebody makes up would fill it. Keys are out of passes, which nobody makes up. */
void previews_learn(struct previews *previews, const char *id, const char *key,
	const struct preview_sight *sight)
{
	char text[2 * ID_SIZE];
	struct preview_known *known;
	void **slot;

	if (!sight->is_there || (*key && !sight->key_stands && !sight->preview.is_public))
		return;
	slot = map_slot(previews->known, name_of(id, key, text));
	known = *slot ? *slot : (*slot = new0(struct preview_known));
	(void)snprintf(known->id, sizeof(known->id), "%s", id);
	(void)snprintf(known->key, sizeof(known->key), "%s", key);
	known->sight = *sight;
	known->read_ms = known->used_ms = now_ms();
	arm(previews);
}

/* ---- looking again ---- */

static void mark_used(struct previews *previews)
{
	int64_t now = now_ms();

	for (const struct preview_conn *conn = previews->first; conn; conn = conn->next) {
		char text[2 * ID_SIZE];
		struct preview_known *known =
			map_find(previews->known, name_of(conn->preview.id, conn->key, text));

		if (known)
			known->used_ms = now;
	}
}

static void forget_unused(struct previews *previews)
{
	int64_t now = now_ms();
	struct slice name;
	void *item;

	for (size_t i = 0; map_next(previews->known, &i, &name, &item);) {
		const struct preview_known *known = item;

		if (now - known->used_ms <= UNUSED_MS)
			continue;
		(void)map_remove(previews->known, name);
		free(item);
	}
}

static struct look *look_new(struct previews *previews)
{
	struct look *look = new0(struct look);
	size_t n = map_len(previews->known);
	struct slice name;
	void *item;

	look->previews = previews;
	look->items = new0_n(struct preview_known, n);
	look->results = new0_n(int, n);
	for (size_t i = 0; map_next(previews->known, &i, &name, &item);)
		look->items[look->n++] = *(struct preview_known *)item;
	return look;
}

static void run_look(struct work *work)
{
	struct look *look = (struct look *)work;
	struct server *server = look->previews->server;

	for (size_t i = 0; i < look->n; i++) {
		struct preview_known *item = &look->items[i];

		item->read_ms = now_ms();
		look->results[i] = preview_look(server, item->id, item->key, &item->sight, NULL);
	}
}

static void apply(struct previews *previews, const struct preview_known *seen)
{
	int64_t now_s = clock_wall_ms() / 1000;
	struct preview_conn *next;
	char text[2 * ID_SIZE];
	struct preview_known *known = map_find(previews->known, name_of(seen->id, seen->key, text));

	if (known) {
		known->sight = seen->sight;
		known->read_ms = seen->read_ms;
	}
	for (struct preview_conn *conn = previews->first; conn; conn = next) {
		next = conn->next;
		if (strcmp(conn->preview.id, seen->id) == 0 && strcmp(conn->key, seen->key) == 0 &&
			!preview_door_still(conn, &seen->sight, now_s))
			preview_conn_drop(conn);
	}
}

static void look_again(struct previews *previews);

static void look_done(struct work *work)
{
	struct look *look = (struct look *)work;
	struct previews *previews = look->previews;

	for (size_t i = 0; i < look->n; i++)
		if (look->results[i] == 0)
			apply(previews, &look->items[i]);
	free(look->items);
	free(look->results);
	free(look);
	previews->is_looking = false;
	if (previews->looks_again)
		look_again(previews);
	else if (map_len(previews->known) > 0)
		arm(previews);
}

static void look_again(struct previews *previews)
{
	struct look *look;

	previews->looks_again = previews->is_looking;
	if (previews->is_looking || previews->is_ending)
		return;
	mark_used(previews);
	forget_unused(previews);
	if (map_len(previews->known) == 0)
		return;
	previews->is_looking = true;
	look = look_new(previews);
	look->work = (struct work){.run = run_look, .done = look_done};
	workers_add(previews->workers, &look->work);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	look_again(ctx);
}

struct change {
	struct work work;
	struct previews *previews;
};

static void on_change(struct work *work)
{
	struct change *change = (struct change *)work;
	struct slice name;
	void *item;

	for (size_t i = 0; map_next(change->previews->known, &i, &name, &item);)
		((struct preview_known *)item)->read_ms = 0;
	look_again(change->previews);
	free(change);
}

void previews_changed(struct previews *previews)
{
	struct change *change;

	if (!previews)
		return;
	change = new0(struct change);
	change->work.done = on_change;
	change->previews = previews;
	workers_post(previews->workers, &change->work);
}

/* ---- as a whole ---- */

static bool is_port(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) > 0 &&
	       json_integer_value(value) <= UINT16_MAX;
}

static int check_setting(const char *key, const json_t *value, struct err *err)
{
	if (strcmp(key, "domain") == 0)
		return json_is_string(value) && preview_is_domain(json_string_value(value))
		               ? 0
		               : err_set(err, -EINVAL,
					 "--config: \"previews\": 'domain' is a name in small "
					 "letters with a dot in it, such as preview.example.org");
	if (strcmp(key, "port") == 0)
		return is_port(value) ? 0
		                      : err_set(err, -EINVAL,
						"--config: \"previews\": 'port' is a number from 1 "
						"to 65535");
	if (strcmp(key, "tls") == 0)
		return json_is_boolean(value) ? 0
		                              : err_set(err, -EINVAL,
							"--config: \"previews\": 'tls' is true or "
							"false");
	return err_set(err, -EINVAL, "--config: \"previews\" has no '%s'", key);
}

int previews_check(const json_t *config, struct err *err)
{
	json_t *own = json_object_get(config, "previews"), *value;
	const char *key;
	int r = own && !json_is_object(own)
	                ? err_set(err, -EINVAL, "--config: \"previews\" is an object")
	                : 0;

	json_object_foreach(own, key, value)
	{
		if (r == 0)
			r = check_setting(key, value, err);
	}
	return r;
}

static uint16_t port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = {.v6 = {0}};
	socklen_t len = sizeof(at);

	(void)getsockname(fd, &at.any, &len); /* it listens, so it has one */
	return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

int previews_new(struct server *server, int fd, const struct listener_tls *tls,
	struct previews **ret_previews, struct err *err)
{
	struct previews *previews = new0(struct previews);
	const json_t *own = json_object_get(server->config, "previews");
	const char *domain = json_string_value(json_object_get(own, "domain"));
	const json_t *port = json_object_get(own, "port");
	int r;

	previews->server = server;
	previews->domain = mem_dup(domain ? domain : PREVIEW_DOMAIN);
	previews->place = (struct preview_place){.domain = previews->domain,
		.port = port ? (uint16_t)json_integer_value(port) : port_of(fd),
		.is_tls = tls || json_is_true(json_object_get(own, "tls"))};
	previews->known = map_new();
	previews->timer = evtimer_new(server->base, on_timer, previews);
	r = workers_new(server->base, THREADS, &previews->workers, err);
	if (r < 0) {
		previews_free(previews);
		return r;
	}
	previews->listener =
		listener_new(server->base, preview_conn_add, previews, fd, LISTENER_TCP, tls);
	*ret_previews = previews;
	return 0;
}

void previews_stop(struct previews *previews)
{
	if (!previews || !previews->workers)
		return;
	previews->is_ending = true;
	listener_free(take(&previews->listener));
	while (previews->first)
		preview_conn_drop(previews->first);
	workers_free(take(&previews->workers));
}

void previews_free(struct previews *previews)
{
	struct slice name;
	void *item;

	if (!previews)
		return;
	previews_stop(previews);
	for (size_t i = 0; map_next(previews->known, &i, &name, &item);)
		free(item);
	map_free(previews->known);
	event_free(previews->timer);
	free(previews->domain);
	free(previews);
}

const struct preview_place *previews_place(const struct previews *previews)
{
	return previews ? &previews->place : NULL;
}
