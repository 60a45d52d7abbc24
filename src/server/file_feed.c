/* SPDX-License-Identifier: Apache-2.0 */
/* starting -> live -> ended or failed; what is kept is bounded (file_ring.h), and nothing here waits for a listener. */
#include "server/file_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/file_ring.h"
#include "server/file_source.h"
#include "util/map.h"
#include "util/mem.h"

#define KEEP_S       30 /* without a listener */
#define FEEDS_MAX    128
#define FEEDS_OF_ONE 8  /* account's clients */
#define HOOKS_OF_ONE 32 /* account's webhooks */

struct file_feed {
	struct file_feed_hub *hub;
	struct file_feed *prev, *next; /* in the hub's list, newest first */
	struct file_feed_listener *first;
	size_t n_listeners;
	struct file_source *source; /* NULL: it is over */
	char id[ID_SIZE];
	char *account, *key; /* key NULL: not to be found any more */
	bool is_hook, has_begun;
	enum file_feed_state state;
	int failure;
	struct err err;
	struct event *timer; /* of being kept */
	struct file_ring ring;
	int64_t n_unwatched;
};

struct file_feed_hub {
	struct server *server;
	struct map *by_key;
	struct file_feed *first;
};

/* ---- a feed's life ---- */

static void unlist(struct file_feed *feed)
{
	if (feed->key)
		(void)map_remove(feed->hub->by_key, slice_of(feed->key));
	free(take(&feed->key));
}

static void feed_free(struct file_feed *feed)
{
	struct file_feed_hub *hub = feed->hub;

	unlist(feed);
	file_source_free(feed->source);
	if (feed->prev)
		feed->prev->next = feed->next;
	else
		hub->first = feed->next;
	if (feed->next)
		feed->next->prev = feed->prev;
	file_ring_done(&feed->ring);
	event_free(feed->timer);
	free(feed->account);
	free(feed);
}

/* Nobody is there: what has begun is kept for clients that come again. */
static void rest(struct file_feed *feed)
{
	const struct timeval in = {.tv_sec = KEEP_S};

	if (feed->n_listeners > 0)
		return;
	if (!feed->has_begun || !feed->key || feed->is_hook)
		feed_free(feed);
	else
		event_add(feed->timer, &in);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	feed_free(ctx);
}

/* Listeners may leave within: until all were told the feed stays. */
static void tell(struct file_feed *feed)
{
	struct file_feed_listener *listener = feed->first;

	feed->n_listeners++;
	while (listener) {
		struct file_feed_listener *next = listener->next;

		listener->on_change(listener->arg);
		listener = next;
	}
	feed->n_listeners--;
	rest(feed);
}

/* ---- what comes ---- */

static void on_began(void *arg)
{
	struct file_feed *feed = arg;

	feed->has_begun = true;
	feed->state = FILE_FEED_LIVE;
}

static void on_change(void *arg, const struct slice *json)
{
	static const char gap[] = "{\"reason\":\"the path of a change was too long\"}";
	struct file_feed *feed = arg;

	feed->n_unwatched += json && file_source_line_is(*json, "unwatched");
	file_ring_add(&feed->ring, json ? *json : slice_of(gap), !json);
}

static void on_read(void *arg)
{
	struct file_feed *feed = arg;

	if (feed->n_listeners > 0)
		tell(feed);
}

static void on_over(void *arg, int r, const struct err *err)
{
	struct file_feed *feed = arg;

	feed->state = r < 0 ? FILE_FEED_FAILED : FILE_FEED_ENDED;
	feed->failure = r;
	if (err)
		feed->err = *err; /* it may be the source's own */
	file_source_free(take(&feed->source));
	if (!feed->has_begun)
		unlist(feed);
	tell(feed);
}

/* ---- who listens ---- */

static char *key_of(const struct file_feed_ask *ask)
{
	scoped_str struct str key = {0};

	str_printf(&key, "%s %d ", ask->sandbox, ask->is_hook);
	str_add(&key, ask->path.p, ask->path.len);
	return str_take(&key);
}

/* The oldest that is kept for nobody, of an account or (NULL) of any. Clients' and webhooks' are counted apart. */
static bool make_room(struct file_feed_hub *hub, bool is_hook, const char *account)
{
	struct file_feed *oldest = NULL;

	for (struct file_feed *feed = hub->first; feed; feed = feed->next)
		if (feed->n_listeners == 0 && feed->is_hook == is_hook &&
			(!account || strcmp(feed->account, account) == 0))
			oldest = feed;
	if (oldest)
		feed_free(oldest);
	return oldest != NULL;
}

/* account NULL: of all. */
static size_t count(const struct file_feed_hub *hub, bool is_hook, const char *account)
{
	size_t n = 0;

	for (const struct file_feed *feed = hub->first; feed; feed = feed->next)
		n += feed->is_hook == is_hook && (!account || strcmp(feed->account, account) == 0);
	return n;
}

static int check_room(struct file_feed_hub *hub, const struct file_feed_ask *ask, struct err *err)
{
	size_t max = ask->is_hook ? HOOKS_OF_ONE : FEEDS_OF_ONE;

	if (count(hub, ask->is_hook, ask->account) >= max &&
		!make_room(hub, ask->is_hook, ask->account))
		return err_set(err, -EDQUOT,
			"an account watches at most %zu paths at once: end another stream", max);
	if (count(hub, ask->is_hook, NULL) >= FEEDS_MAX && !make_room(hub, ask->is_hook, NULL))
		return err_set(err, -EAGAIN,
			"the server watches as many paths as it may: try again later");
	return 0;
}

static struct file_feed *feed_new(struct file_feed_hub *hub, const struct file_feed_ask *ask)
{
	struct file_feed *feed = new0(struct file_feed);
	const struct file_source_ask source = {
		.sandbox = ask->sandbox, .path = ask->path, .is_patient = ask->is_hook};
	const struct file_source_handler handler = {.on_began = on_began,
		.on_change = on_change,
		.on_read = on_read,
		.on_over = on_over,
		.arg = feed};

	feed->hub = hub;
	id_new("fw", feed->id);
	feed->account = mem_dup(ask->account);
	feed->key = key_of(ask);
	feed->is_hook = ask->is_hook;
	file_ring_init(&feed->ring);
	feed->timer = evtimer_new(hub->server->base, on_timer, feed);
	feed->next = hub->first;
	if (feed->next)
		feed->next->prev = feed;
	hub->first = feed;
	*map_slot(hub->by_key, slice_of(feed->key)) = feed;
	feed->source = file_source_new(hub->server, &source, &handler);
	return feed;
}

/* One that is over is good only for who has not heard all of it. */
static bool is_of_use(const struct file_feed *feed, const struct file_feed_at *at)
{
	if (feed->state == FILE_FEED_STARTING || feed->state == FILE_FEED_LIVE)
		return true;
	return at && strcmp(at->id, feed->id) == 0 && at->n < feed->ring.last;
}

int file_feed_join(struct file_feed_hub *hub, const struct file_feed_ask *ask,
	struct file_feed_listener *listener, struct err *err)
{
	scoped_mem char *key = key_of(ask);
	struct file_feed *feed = map_find(hub->by_key, slice_of(key));
	int r;

	if (feed && !is_of_use(feed, ask->at)) {
		unlist(feed);
		rest(feed);
		feed = NULL;
	}
	if (!feed) {
		r = check_room(hub, ask, err);
		if (r < 0)
			return r;
		feed = feed_new(hub, ask);
	}
	(void)evtimer_del(feed->timer);
	listener->feed = feed;
	listener->prev = NULL;
	listener->next = feed->first;
	if (listener->next)
		listener->next->prev = listener;
	feed->first = listener;
	feed->n_listeners++;
	return 0;
}

void file_feed_leave(struct file_feed_listener *listener)
{
	struct file_feed *feed = take(&listener->feed);

	if (!feed)
		return;
	if (listener->prev)
		listener->prev->next = listener->next;
	else
		feed->first = listener->next;
	if (listener->next)
		listener->next->prev = listener->prev;
	feed->n_listeners--;
	rest(feed);
}

enum file_feed_state file_feed_state(const struct file_feed *feed)
{
	return feed->state;
}

int file_feed_failure(const struct file_feed *feed, struct err *err)
{
	*err = feed->err;
	return feed->failure;
}

const char *file_feed_id(const struct file_feed *feed)
{
	return feed->id;
}

bool file_feed_has_begun(const struct file_feed *feed)
{
	return feed->has_begun;
}

int64_t file_feed_first(const struct file_feed *feed)
{
	return feed->ring.first;
}

int64_t file_feed_last(const struct file_feed *feed)
{
	return feed->ring.last;
}

struct file_feed_entry file_feed_get(const struct file_feed *feed, int64_t n)
{
	const struct file_ring_entry *entry = file_ring_get(&feed->ring, n);

	return (struct file_feed_entry){
		.json = {.p = entry->p, .len = entry->len}, .is_gap = entry->is_gap};
}

int64_t file_feed_unwatched(const struct file_feed *feed)
{
	return feed->n_unwatched;
}

struct file_feed_hub *file_feed_hub_new(struct server *server)
{
	struct file_feed_hub *hub = new0(struct file_feed_hub);

	hub->server = server;
	hub->by_key = map_new();
	return hub;
}

void file_feed_hub_free(struct file_feed_hub *hub)
{
	if (!hub)
		return;
	while (hub->first)
		feed_free(hub->first);
	map_free(hub->by_key);
	free(hub);
}
