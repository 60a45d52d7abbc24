/* SPDX-License-Identifier: Apache-2.0 */
/* A watcher reads the record for itself until it has come to the end of what there is. Then it joins the feed of that
 * record, which reads and encodes what comes once for all that are there; the first to arrive leaves its own cursor to it. One
 * whose client does not keep up leaves the feed again and goes on by itself, from where it was.
 *
 * With many in a feed, what comes is gathered for some milliseconds: a write for each of them costs more than all else. */
#include "server/watch_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"

#define BACKLOG     (256u << 10) /* that may wait for a client before no more is read for it */
#define TURN        512          /* events read for one client before the next one's turn */
#define HEARTBEAT_S 15
#define MANY        64 /* in one feed: */
#define GATHER_MS   25
#define EVENT_TYPE  "text/event-stream"

struct watcher {
	struct folder *folder;
	struct watcher *prev, *next; /* in its folder's list, or its feed's */
	struct call *call;
	struct watch_stream_ask *ask;
	struct event *again; /* to read on; where there is nothing to read, the heartbeat */
	bool is_live;        /* in the feed: without a cursor */
	bool is_idle, is_stalled;
};

struct feed { /* of rows, or of all events */
	struct folder *folder;
	struct watch_cursor *cursor; /* NULL: nobody is there yet */
	struct watcher *first;
	size_t n;
	struct event *tick;
	bool is_due;
};

struct folder { /* a record that somebody watches */
	struct watch_stream_hub *hub;
	struct watcher *first; /* those that read by themselves */
	struct feed feeds[2];  /* [has_events] */
	size_t n;              /* watchers, in all lists */
	int watch;
	char id[ID_SIZE];
};

struct watch_stream_hub {
	struct server *server;
	int inotify;
	struct event *io;
	struct map *by_watch, *by_id;
};

static void ask_free(struct watch_stream_ask *ask)
{
	watch_cursor_free(ask->cursor);
	free(ask);
}

/* ---- folders ---- */

static void on_tick(evutil_socket_t fd, short what, void *ctx);

static struct folder *folder_get(struct watch_stream_hub *hub, const char *id)
{
	void **slot = map_slot(hub->by_id, slice_of(id));
	struct folder *folder = *slot;
	scoped_mem char *dir = NULL;
	unsigned long long key;

	if (folder)
		return folder;
	folder = *slot = new0(struct folder);
	folder->hub = hub;
	memcpy(folder->id, id, ID_SIZE);
	for (int i = 0; i < 2; i++) {
		folder->feeds[i].folder = folder;
		folder->feeds[i].tick = evtimer_new(hub->server->base, on_tick, &folder->feeds[i]);
	}
	dir = mem_printf("%s/records/%s", hub->server->state_dir, id);
	folder->watch = inotify_add_watch(hub->inotify, dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
	key = (unsigned long long)folder->watch;
	if (folder->watch >= 0)
		*map_slot(hub->by_watch, map_int_key(&key)) = folder;
	else
		log_warn("%s cannot be watched, its watchers are told every %d s: %m", id,
			HEARTBEAT_S);
	return folder;
}

static void folder_drop(struct folder *folder)
{
	struct watch_stream_hub *hub = folder->hub;
	unsigned long long key = (unsigned long long)folder->watch;

	if (folder->watch >= 0) {
		(void)inotify_rm_watch(hub->inotify, folder->watch); /* gone with the folder */
		(void)map_remove(hub->by_watch, map_int_key(&key));
	}
	(void)map_remove(hub->by_id, slice_of(folder->id));
	for (int i = 0; i < 2; i++) {
		watch_cursor_free(folder->feeds[i].cursor);
		event_free(folder->feeds[i].tick);
	}
	free(folder);
}

/* ---- lists ---- */

static struct feed *feed_of(const struct watcher *w)
{
	return &w->folder->feeds[w->ask->has_events];
}

static void link_in(struct watcher *w, struct watcher **first)
{
	w->prev = NULL;
	w->next = *first;
	if (w->next)
		w->next->prev = w;
	*first = w;
}

static void link_out(struct watcher *w)
{
	struct watcher **first = w->is_live ? &feed_of(w)->first : &w->folder->first;

	if (w->prev)
		w->prev->next = w->next;
	else
		*first = w->next;
	if (w->next)
		w->next->prev = w->prev;
}

static void join_feed(struct watcher *w)
{
	link_out(w);
	w->is_live = true;
	feed_of(w)->n++;
	link_in(w, &feed_of(w)->first);
}

static void leave_feed(struct watcher *w)
{
	link_out(w);
	feed_of(w)->n--;
	w->is_live = false;
	link_in(w, &w->folder->first);
}

/* ---- one watcher ---- */

static void watcher_end(struct watcher *w)
{
	struct folder *folder = w->folder;

	if (w->is_live)
		feed_of(w)->n--;
	link_out(w);
	event_free(w->again);
	ask_free(w->ask);
	exchange_end(w->call->exchange, true);
	call_free(w->call);
	free(w);
	if (--folder->n == 0)
		folder_drop(folder);
}

static void schedule(struct watcher *w, bool is_idle)
{
	const struct timeval in = {.tv_sec = is_idle ? HEARTBEAT_S : 0};

	w->is_idle = is_idle;
	event_add(w->again, &in);
}

static void say_last(struct str *out, int r)
{
	str_puts(out, r < 0 ? "event: error\ndata: {\"detail\":\"the record cannot be read any "
			      "further\"}\n\n"
			    : "event: end\ndata: {}\n\n");
}

/* Whether the feed stands where this one does; where there is none, it begins there. */
static bool meets_feed(struct watcher *w)
{
	struct feed *feed = feed_of(w);

	if (!watch_cursor_is_behind(w->ask->cursor, &w->ask->from))
		return false; /* what it is to be told lies ahead of all there is */
	if (feed->n == 0) {
		watch_cursor_free(feed->cursor);
		feed->cursor = take(&w->ask->cursor);
		return true;
	}
	if (watch_cursor_seq(feed->cursor) != watch_cursor_seq(w->ask->cursor))
		return false;
	watch_cursor_free(take(&w->ask->cursor));
	return true;
}

/* For one that reads by itself. */
static void read_on(struct watcher *w)
{
	scoped_str struct str out = {0};
	struct exchange *exchange = w->call->exchange;
	bool is_over;
	int r;

	w->is_stalled = exchange_backlog(exchange) > BACKLOG;
	if (w->is_stalled)
		return;
	r = watch_cursor_read(w->ask->cursor, &w->ask->from, TURN, &out);
	is_over = r < 0 || (r == 0 && (!w->ask->follows || watch_cursor_has_ended(w->ask->cursor)));
	if (is_over)
		say_last(&out, r);
	exchange_write(exchange, str_slice(&out));
	if (is_over) {
		watcher_end(w);
		return;
	}
	if (r == 0 && meets_feed(w))
		join_feed(w);
	schedule(w, r == 0);
}

/* Back to reading by itself: behind what the feed has told it. */
static void fall_back(struct watcher *w)
{
	struct server *server = w->folder->hub->server;
	scoped_mem char *dir = mem_printf("%s/records/%s", server->state_dir, w->folder->id);

	w->ask->from = (struct watch_from){.seq = watch_cursor_seq(feed_of(w)->cursor)};
	leave_feed(w);
	if (watch_cursor_open(dir, w->ask->has_events, &w->ask->cursor, NULL) < 0) {
		watcher_end(w);
		return;
	}
	w->is_stalled = true; /* until its client has taken what waits */
}

static void on_again(evutil_socket_t fd, short what, void *ctx)
{
	struct watcher *w = ctx;

	/* So that whoever has gone without a word is noticed, and nobody between takes the silence for an end. */
	if (w->is_idle && exchange_backlog(w->call->exchange) == 0)
		exchange_write(w->call->exchange, slice_of(": \n\n"));
	if (w->is_live)
		schedule(w, true);
	else
		read_on(w);
}

static void on_drained(void *arg)
{
	struct watcher *w = arg;

	if (w->is_stalled)
		schedule(w, false);
}

static void on_gone(void *arg)
{
	watcher_end(arg);
}

static void answer_head(struct call *call)
{
	ask_free(call->state);
	exchange_begin(call->exchange, 200, EVENT_TYPE);
	exchange_end(call->exchange, true);
	call_free(call);
}

static void run(struct call *call)
{
	struct watcher *w = new0(struct watcher);
	struct watch_stream_hub *hub = call->server->watches;

	w->call = call;
	w->ask = take(&call->state);
	w->folder = folder_get(hub, w->ask->sandbox);
	w->folder->n++;
	link_in(w, &w->folder->first);
	w->again = evtimer_new(hub->server->base, on_again, w);
	call->then = NULL;
	exchange_begin(call->exchange, 200, EVENT_TYPE);
	exchange_on_gone(call->exchange, on_gone, w);
	exchange_on_drained(call->exchange, on_drained, w);
	schedule(w, false);
}

void watch_stream_run(struct call *call)
{
	bool has_left = !exchange_has_client(call->exchange); /* and nobody will say so again */

	if (has_left || slice_is(exchange_head(call->exchange)->method, "HEAD"))
		answer_head(call);
	else
		run(call);
}

/* ---- feeds ---- */

/* Ends all of them; with the last one the folder goes. */
static void end_all(struct feed *feed)
{
	struct watcher *w = feed->first;

	while (w) {
		struct watcher *next = w->next;

		watcher_end(w);
		w = next;
	}
}

static void tell_all(struct feed *feed, struct slice bytes)
{
	struct watcher *w = feed->first;

	while (w) {
		struct watcher *next = w->next;

		exchange_write(w->call->exchange, bytes);
		if (exchange_backlog(w->call->exchange) > BACKLOG)
			fall_back(w);
		w = next;
	}
}

static void feed_read(struct feed *feed)
{
	static const struct watch_from all = {0};
	scoped_str struct str out = {0};
	bool is_over;
	int r;

	if (feed->n == 0)
		return;
	r = watch_cursor_read(feed->cursor, &all, TURN, &out);
	is_over = r < 0 || (r == 0 && watch_cursor_has_ended(feed->cursor));
	if (is_over)
		say_last(&out, r);
	feed->folder->n++; /* stays until we are through */
	if (out.len > 0)
		tell_all(feed, str_slice(&out));
	if (is_over)
		end_all(feed);
	if (r == 1)
		event_add(feed->tick, &(struct timeval){0});
	if (--feed->folder->n == 0)
		folder_drop(feed->folder);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx)
{
	struct feed *feed = ctx;

	feed->is_due = false;
	feed_read(feed);
}

static void tell_feed(struct feed *feed)
{
	const struct timeval in = {.tv_usec = feed->n > MANY ? GATHER_MS * 1000 : 0};

	if (feed->n == 0 || feed->is_due)
		return;
	feed->is_due = true;
	event_add(feed->tick, &in);
}

static void tell_folder(struct folder *folder)
{
	struct watcher *w = folder->first;

	tell_feed(&folder->feeds[0]);
	tell_feed(&folder->feeds[1]);
	for (; w; w = w->next)
		if (w->is_idle)
			schedule(w, false);
}

/* ---- the hub ---- */

static void on_inotify(evutil_socket_t fd, short what, void *ctx)
{
	char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct watch_stream_hub *hub = ctx;
	ssize_t n = read(fd, buf, sizeof(buf));
	int last = -1;

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *ev = (const struct inotify_event *)(buf + at);
		unsigned long long key = (unsigned long long)ev->wd;
		struct folder *folder =
			ev->wd == last ? NULL : map_find(hub->by_watch, map_int_key(&key));

		last = ev->wd;
		if (folder)
			tell_folder(folder);
		at += (ssize_t)(sizeof(*ev) + ev->len);
	}
}

int watch_stream_hub_new(struct server *server, struct watch_stream_hub **ret_hub, struct err *err)
{
	scoped(watch_stream_hub) struct watch_stream_hub *hub = new0(struct watch_stream_hub);

	hub->server = server;
	hub->by_watch = map_new();
	hub->by_id = map_new();
	hub->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (hub->inotify < 0)
		return err_set(err, -errno, "make an inotify: %m");
	hub->io = event_new(server->base, hub->inotify, EV_READ | EV_PERSIST, on_inotify, hub);
	event_add(hub->io, NULL);
	*ret_hub = take(&hub);
	return 0;
}

/* Once no client is left: each took its watcher with it. */
void watch_stream_hub_free(struct watch_stream_hub *hub)
{
	if (!hub)
		return;
	if (hub->io)
		event_free(hub->io);
	scoped_close(&hub->inotify);
	map_free(hub->by_watch);
	map_free(hub->by_id);
	free(hub);
}
