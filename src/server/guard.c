/* SPDX-License-Identifier: Apache-2.0 */
#include "server/guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/http_conn.h"
#include "server/route.h"
#include "util/map.h"
#include "util/mem.h"

#define EVERY_S 3

struct guard {
	struct work work; /* one look at a time */
	struct server *server;
	struct event *timer;
	struct call *first;
	struct map *
		keys; /* of the look that is under way: id to struct standing; NULL: there is none */
	bool is_due;  /* another one behind it */
	pthread_mutex_t lock;
	struct workers *workers; /* NULL: not yet, or no more; with the lock */
};

struct standing { /* of a key */
	char account[64], id[32];
	enum role role; /* ROLE_NONE: it was revoked */
	bool is_known;
};

struct told { /* heard of on another thread */
	struct work work;
	struct guard *guard;
};

static const struct http_refusal is_over = {
	401, "unauthorized", "the key that asked for this was revoked, or may do less now"};

/* ---- looking ---- */

static int take_role(const struct store_key *key, void *arg)
{
	struct standing *s = arg;

	s->role = role_find(key->role);
	return 0;
}

/* Where the store does not answer, nobody's right is known to have ended. */
static void run_look(struct work *work)
{
	struct guard *guard = (struct guard *)work;
	struct slice id;
	size_t i = 0;
	void *value;

	while (map_next(guard->keys, &i, &id, &value)) {
		struct standing *s = value;
		int r = store_key_get(
			guard->server->store, s->account, s->id, take_role, s, &(struct err){0});

		s->is_known = r >= 0 || r == -ENOENT;
	}
}

static bool may_still(const struct call *call, const struct standing *s)
{
	struct caller caller = call->caller;

	caller.role = s->role;
	caller.is_operator = call->caller.is_operator && s->role == ROLE_ADMIN;
	return s->role != ROLE_NONE && route_allows(call->route, &caller);
}

static void forget(struct map *keys)
{
	struct slice id;
	size_t i = 0;
	void *value;

	while (map_next(keys, &i, &id, &value))
		free(value);
	map_free(keys);
}

static void look(struct guard *guard);

static void look_done(struct work *work)
{
	struct guard *guard = (struct guard *)work;
	struct map *keys = take(&guard->keys);
	struct call *call = guard->first;

	while (call) {
		struct call *next = call->guard_next;
		const struct standing *s = map_find(keys, slice_of(call->caller.key));

		if (s && s->is_known && !may_still(call, s)) {
			guard_remove(call);
			exchange_dismiss(call->exchange, &is_over);
		}
		call = next;
	}
	forget(keys);
	if (guard->is_due)
		look(guard);
}

static void add_key(struct map *keys, const struct call *call)
{
	void **slot = map_slot(keys, slice_of(call->caller.key));
	struct standing *s = *slot;

	if (s)
		return;
	s = *slot = new0(struct standing);
	memcpy(s->account, call->caller.account, sizeof(s->account));
	memcpy(s->id, call->caller.key, sizeof(s->id));
}

static void look(struct guard *guard)
{
	guard->is_due = guard->keys != NULL;
	if (guard->is_due || !guard->first || !guard->timer)
		return;
	guard->keys = map_new();
	for (struct call *call = guard->first; call; call = call->guard_next)
		add_key(guard->keys, call);
	guard->work = (struct work){.run = run_look, .done = look_done};
	workers_add(guard->server->workers, &guard->work);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	look(ctx);
}

/* ---- hearing ---- */

static void told_done(struct work *work)
{
	struct told *told = (struct told *)work;

	look(told->guard);
	free(told);
}

/* On any thread. */
static void on_revoked(const char *key, void *arg)
{
	struct guard *guard = arg;
	struct told *told = new0(struct told);

	*told = (struct told){.work.done = told_done, .guard = guard};
	pthread_mutex_lock(&guard->lock);
	if (guard->workers)
		workers_post(guard->workers, &told->work);
	else
		free(told);
	pthread_mutex_unlock(&guard->lock);
}

/* ---- the guard ---- */

int guard_new(struct server *server, struct guard **ret_guard, struct err *err)
{
	scoped(guard) struct guard *guard = new0(struct guard);
	int r;

	guard->server = server;
	pthread_mutex_init(&guard->lock, NULL);
	r = store_on_revoked(server->store, on_revoked, guard, err);
	if (r == 0)
		*ret_guard = take(&guard);
	return r;
}

void guard_start(struct guard *guard)
{
	const struct timeval every = {.tv_sec = EVERY_S};

	guard->timer = event_new(guard->server->base, -1, EV_PERSIST, on_timer, guard);
	event_add(guard->timer, &every);
	pthread_mutex_lock(&guard->lock);
	guard->workers = guard->server->workers;
	pthread_mutex_unlock(&guard->lock);
}

void guard_stop(struct guard *guard)
{
	if (!guard)
		return;
	pthread_mutex_lock(&guard->lock);
	guard->workers = NULL;
	pthread_mutex_unlock(&guard->lock);
	if (guard->timer)
		event_free(take(&guard->timer));
}

void guard_free(struct guard *guard)
{
	if (!guard)
		return;
	pthread_mutex_destroy(&guard->lock);
	free(guard);
}

void guard_add(struct call *call)
{
	struct guard *guard = call->server->guard;

	if (!call->caller.key[0] || call->is_guarded)
		return;
	call->is_guarded = true;
	call->guard_prev = NULL;
	call->guard_next = guard->first;
	if (guard->first)
		guard->first->guard_prev = call;
	guard->first = call;
}

void guard_remove(struct call *call)
{
	if (!call->is_guarded)
		return;
	call->is_guarded = false;
	if (call->guard_prev)
		call->guard_prev->guard_next = call->guard_next;
	else
		call->server->guard->first = call->guard_next;
	if (call->guard_next)
		call->guard_next->guard_prev = call->guard_prev;
}
