/* SPDX-License-Identifier: Apache-2.0 */
#include "server/once_later.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "server/http_status.h"
#include "server/workers.h"
#include "util/mem.h"

#define EVERY_S   2
#define ENDS_MAX  1000
#define BYTES_MAX (64u << 20) /* of their answers */

struct end {
	struct end *next;
	struct store_request request; /* its texts are ours */
	bool is_drop;
};

struct once_later {
	struct work work; /* one at a time */
	struct server *server;
	struct event *timer;
	bool is_running;
	atomic_bool is_ending;
	pthread_mutex_t lock; /* of what follows */
	struct end *first, **last;
	size_t n, n_bytes;
};

static void end_free(struct end *end)
{
	free((char *)end->request.account);
	free((char *)end->request.name);
	free((char *)end->request.request_hash);
	free((char *)end->request.answer);
	free(end);
}

static size_t bytes_of(const struct end *end)
{
	return end->request.answer ? strlen(end->request.answer) : 0;
}

/* False: it is as full as it gets. */
static bool put(struct once_later *later, struct end *end)
{
	bool has_room;

	pthread_mutex_lock(&later->lock);
	has_room = later->n < ENDS_MAX && later->n_bytes + bytes_of(end) <= BYTES_MAX;
	if (has_room) {
		end->next = NULL;
		*later->last = end;
		later->last = &end->next;
		later->n++;
		later->n_bytes += bytes_of(end);
	}
	pthread_mutex_unlock(&later->lock);
	return has_room;
}

static struct end *take_all(struct once_later *later)
{
	struct end *first;

	pthread_mutex_lock(&later->lock);
	first = later->first;
	later->first = NULL;
	later->last = &later->first;
	later->n = later->n_bytes = 0;
	pthread_mutex_unlock(&later->lock);
	return first;
}

bool once_later_add(struct once_later *later, const struct store_request *request, bool is_drop)
{
	struct end *end = new0(struct end);

	end->request = *request;
	end->request.account = mem_dup(request->account);
	end->request.name = mem_dup(request->name);
	end->request.request_hash = mem_dup(request->request_hash);
	end->request.answer = is_drop ? NULL : mem_dup(request->answer);
	end->is_drop = is_drop;
	if (put(later, end))
		return true;
	end_free(end);
	return false;
}

static bool is_done(struct once_later *later, const struct end *end)
{
	struct store *store = later->server->store;
	struct err err;
	int r = end->is_drop ? store_request_drop(store, &end->request, &err)
	                     : store_request_finish(store, &end->request, &err);

	return r >= 0 || !http_status_is_passing(r); /* -ESTALE: it was done, and nobody heard */
}

/* Behind the first that fails there is no use in trying. */
static void run(struct work *work)
{
	struct once_later *later = (struct once_later *)work;
	struct end *end = take_all(later), *next;
	bool is_away = false;

	for (; end; end = next) {
		next = end->next;
		is_away = is_away || atomic_load(&later->is_ending) || !is_done(later, end);
		if (!is_away || !put(later, end))
			end_free(end);
	}
}

static void done(struct work *work)
{
	((struct once_later *)work)->is_running = false;
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct once_later *later = ctx;
	bool is_wanted;

	pthread_mutex_lock(&later->lock);
	is_wanted = later->n > 0;
	pthread_mutex_unlock(&later->lock);
	if (!is_wanted || later->is_running)
		return;
	later->is_running = true;
	later->work = (struct work){.run = run, .done = done};
	workers_add(later->server->slow, &later->work);
}

struct once_later *once_later_new(struct server *server)
{
	struct once_later *later = new0(struct once_later);
	const struct timeval every = {.tv_sec = EVERY_S};

	later->server = server;
	later->last = &later->first;
	pthread_mutex_init(&later->lock, NULL);
	later->timer = event_new(server->base, -1, EV_TIMEOUT | EV_PERSIST, on_timer, later);
	event_add(later->timer, &every);
	return later;
}

void once_later_stop(struct once_later *later)
{
	if (!later)
		return;
	atomic_store(&later->is_ending, true);
	(void)event_del(later->timer);
}

void once_later_free(struct once_later *later)
{
	struct end *end, *next;

	if (!later)
		return;
	for (end = take_all(later); end; end = next) {
		next = end->next;
		end_free(end);
	}
	event_free(later->timer);
	pthread_mutex_destroy(&later->lock);
	free(later);
}
