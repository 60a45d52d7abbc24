/* SPDX-License-Identifier: Apache-2.0 */
#include "server/watch_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"
#include "view/exec_log.h"

#define BACKLOG     (256u << 10) /* that may wait for a client before no more is read for it */
#define TURN        512          /* events read for one client before the next one's turn */
#define HEARTBEAT_S 15
#define EVENT_TYPE  "text/event-stream"

struct watcher {
	struct watch_stream_hub *hub;
	struct folder *folder;
	struct watcher *next; /* of the same record */
	struct call *call;
	struct watch_stream_ask *ask;
	struct exec_log *log;
	struct event *again;
	int64_t n_rows;  /* read so far */
	bool is_idle;    /* all there is was read: again is the heartbeat */
	bool is_stalled; /* too much waits for the client */
	bool is_over;
};

struct folder { /* a record that somebody watches */
	struct watcher *first;
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
	if (!ask)
		return;
	reader_free(ask->reader);
	free(ask);
}

/* ---- folders ---- */

static struct folder *folder_get(struct watch_stream_hub *hub, const char *id)
{
	void **slot = map_slot(hub->by_id, slice_of(id));
	struct folder *folder = *slot;
	scoped_mem char *dir = NULL;
	unsigned long long key;

	if (folder)
		return folder;
	folder = *slot = new0(struct folder);
	memcpy(folder->id, id, ID_SIZE);
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

static void folder_drop(struct watch_stream_hub *hub, struct folder *folder)
{
	unsigned long long key = (unsigned long long)folder->watch;

	if (folder->watch >= 0) {
		(void)inotify_rm_watch(hub->inotify, folder->watch); /* gone with the folder */
		(void)map_remove(hub->by_watch, map_int_key(&key));
	}
	(void)map_remove(hub->by_id, slice_of(folder->id));
	free(folder);
}

static void leave_folder(struct watcher *w)
{
	struct watcher **at = &w->folder->first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (!w->folder->first)
		folder_drop(w->hub, w->folder);
}

/* ---- one watcher ---- */

static void watcher_end(struct watcher *w)
{
	leave_folder(w);
	event_free(w->again);
	exec_log_free(w->log);
	ask_free(w->ask);
	exchange_end(w->call->exchange, true);
	call_free(w->call);
	free(w);
}

static void add_event(struct str *out, const char *name, char kind, int64_t id, struct slice data)
{
	str_printf(out, "event: %s\nid: %c%lld\ndata: ", name, kind, (long long)id);
	str_add(out, data.p, data.len);
	str_puts(out, "\n\n");
}

/* Whether the client has it already. Behind a row means behind the event that ended its exec. */
static bool is_known(const struct watcher *w, const struct event *ev)
{
	return w->n_rows < w->ask->after_row || (int64_t)ev->seq <= w->ask->after_seq;
}

/* Every event is read, also those that the client has: rows are made of two. */
static void take_event(struct watcher *w, const struct event *ev, struct str *out)
{
	scoped_str struct str row = {0};
	bool is_row, was_known = is_known(w, ev), has_events = w->ask->has_events;

	is_row = exec_log_next_json(w->log, ev, &row);
	w->n_rows += is_row;
	if (was_known)
		return;
	if (has_events)
		add_event(out, "trace", 's', (int64_t)ev->seq, reader_line(w->ask->reader));
	if (is_row)
		add_event(out, "row", has_events ? 's' : 'r',
			has_events ? (int64_t)ev->seq : w->n_rows, str_slice(&row));
}

/* 1: there may be more at once. 0: no more for now. Negative: no more ever. */
static int read_some(struct watcher *w, struct str *out)
{
	const struct event *ev;
	int r = 1;

	for (int i = 0; i < TURN && r == 1; i++) {
		r = reader_next(w->ask->reader, &ev, NULL);
		if (r == 1)
			take_event(w, ev, out);
	}
	return r;
}

static void schedule(struct watcher *w, bool is_idle)
{
	const struct timeval in = {.tv_sec = is_idle ? HEARTBEAT_S : 0};

	w->is_idle = is_idle;
	event_add(w->again, &in);
}

static void feed(struct watcher *w)
{
	scoped_str struct str out = {0};
	struct exchange *exchange = w->call->exchange;
	int r;

	w->is_stalled = exchange_backlog(exchange) > BACKLOG;
	if (w->is_stalled)
		return;
	r = read_some(w, &out);
	if (r <= 0 && (r < 0 || reader_has_ended(w->ask->reader))) {
		str_puts(&out, r < 0 ? "event: error\ndata: {\"detail\":\"the record cannot be "
				       "read any further\"}\n\n"
				     : "event: end\ndata: {}\n\n");
		w->is_over = true;
	}
	exchange_write(exchange, str_slice(&out));
	schedule(w, r <= 0);
	if (w->is_over)
		watcher_end(w);
}

static void on_again(evutil_socket_t fd, short what, void *ctx)
{
	struct watcher *w = ctx;

	/* So that whoever has gone without a word is noticed, and nobody between takes the silence for an end. */
	if (w->is_idle && exchange_backlog(w->call->exchange) == 0)
		exchange_write(w->call->exchange, slice_of(": \n\n"));
	feed(w);
}

static void on_drained(void *arg)
{
	struct watcher *w = arg;

	if (w->is_stalled && !w->is_over)
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

	w->hub = hub;
	w->call = call;
	w->ask = take(&call->state);
	w->log = exec_log_new(&(struct view_filter){.noise = true});
	w->folder = folder_get(hub, w->ask->sandbox);
	w->next = w->folder->first;
	w->folder->first = w;
	w->again = evtimer_new(hub->server->base, on_again, w);
	call->then = NULL;
	exchange_begin(call->exchange, 200, EVENT_TYPE);
	exchange_on_gone(call->exchange, on_gone, w);
	exchange_on_drained(call->exchange, on_drained, w);
	schedule(w, false);
}

void watch_stream_run(struct call *call)
{
	if (slice_is(exchange_head(call->exchange)->method, "HEAD"))
		answer_head(call);
	else
		run(call);
}

/* ---- the hub ---- */

static void tell_folder(struct folder *folder)
{
	struct watcher *w = folder->first;

	while (w) {
		struct watcher *next = w->next;

		feed(w);
		w = next;
	}
}

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
