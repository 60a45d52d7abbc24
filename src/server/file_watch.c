/* SPDX-License-Identifier: Apache-2.0 */
/* waiting for the feed to begin -> streaming -> over, once all that is kept was told */
#include "server/file_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/jsonw.h"
#include "util/mem.h"

#define BACKLOG     (128u << 10) /* that may wait for a client before no more is written for it */
#define HEARTBEAT_S 15
#define EVENT_TYPE  "text/event-stream"

struct watcher {
	struct file_feed_listener listener;
	struct call *call;
	struct file_watch_ask *ask;
	struct event *heartbeat; /* NULL: it waits for the feed to begin */
	int64_t told;            /* the number of the last entry */
	bool is_first;           /* came before the feed had begun */
};

void file_watch_ask_free(struct file_watch_ask *ask)
{
	if (!ask)
		return;
	str_done(&ask->path);
	free(ask);
}

int file_watch_read_id(struct slice text, struct file_feed_at *ret, struct err *err)
{
	scoped_mem char *copy = mem_copy(text.p, text.len);
	char *dot = strchr(copy, '.'), *end;
	long long n;

	if (dot)
		*dot = '\0';
	errno = 0;
	n = dot ? strtoll(dot + 1, &end, 10) : 0;
	if (strlen(copy) + (dot ? 1 + strlen(dot + 1) : 0) != text.len || !dot ||
		!id_is_valid("fw", copy) || dot[1] < '0' || dot[1] > '9' || *end || errno)
		return err_set(err, -EINVAL, "Last-Event-ID: want an id of this stream");
	memcpy(ret->id, copy, ID_SIZE);
	ret->n = n;
	return 0;
}

/* ---- what is written ---- */

static void add_event(
	struct watcher *w, struct str *out, const char *name, int64_t n, struct slice data)
{
	str_printf(out, "event: %s\nid: %s.%lld\ndata: ", name, file_feed_id(w->listener.feed),
		(long long)n);
	str_add(out, data.p, data.len);
	str_puts(out, "\n\n");
	w->told = n;
}

static void add_begin(struct watcher *w, struct str *out, int64_t n)
{
	scoped_str struct str data = {0};
	struct jsonw j = jsonw_to(&data);

	jsonw_object(&j);
	jsonw_kslice(&j, "path", str_slice(&w->ask->path));
	jsonw_kint(&j, "unwatched", file_feed_unwatched(w->listener.feed));
	jsonw_object_end(&j);
	add_event(w, out, "begin", n, str_slice(&data));
}

/* left_out: how many changes; -1: that is not known. */
static void add_gap(
	struct watcher *w, struct str *out, int64_t n, const char *reason, int64_t left_out)
{
	scoped_str struct str data = {0};
	struct jsonw j = jsonw_to(&data);

	jsonw_object(&j);
	jsonw_ktext(&j, "reason", reason);
	if (left_out >= 0)
		jsonw_kint(&j, "left_out", left_out);
	jsonw_object_end(&j);
	add_event(w, out, "gap", n, str_slice(&data));
}

/* The next of what waits. */
static void add_next(struct watcher *w, struct str *out)
{
	const struct file_feed *feed = w->listener.feed;
	int64_t first = file_feed_first(feed);
	struct file_feed_entry entry;

	if (w->told + 1 < first) {
		add_gap(w, out, first - 1, "the client did not take them in time",
			first - 1 - w->told);
		return;
	}
	entry = file_feed_get(feed, w->told + 1);
	add_event(w, out, entry.is_gap ? "gap" : "change", w->told + 1, entry.json);
}

/* Where it begins: at what it has already, if that is known. */
static void add_start(struct watcher *w, struct str *out)
{
	const struct file_feed *feed = w->listener.feed;
	const struct file_feed_at *at = &w->ask->at;
	int64_t last = file_feed_last(feed), n = w->is_first ? 0 : last;

	if (!w->ask->has_at)
		add_begin(w, out, n);
	else if (strcmp(at->id, file_feed_id(feed)) == 0 && at->n <= last)
		w->told = at->n;
	else
		add_gap(w, out, n, "what changed since then is not known", -1);
}

/* ---- one watcher ---- */

static void watcher_free(struct watcher *w)
{
	file_feed_leave(&w->listener);
	if (w->heartbeat)
		event_free(w->heartbeat);
	file_watch_ask_free(w->ask);
	free(w);
}

static void end(struct watcher *w, bool is_whole)
{
	struct call *call = w->call;

	watcher_free(w);
	exchange_end(call->exchange, is_whole);
	call_free(call);
}

static void say_last(struct watcher *w)
{
	scoped_str struct str out = {0};
	struct jsonw j = jsonw_to(&out);
	struct err err;

	if (file_feed_state(w->listener.feed) == FILE_FEED_ENDED) {
		str_puts(&out, "event: end\ndata: {}\n\n");
	} else {
		(void)file_feed_failure(w->listener.feed, &err);
		str_puts(&out, "event: error\ndata: ");
		jsonw_object(&j);
		jsonw_ktext(&j, "detail", err.msg);
		jsonw_object_end(&j);
		str_puts(&out, "\n\n");
	}
	exchange_write(w->call->exchange, str_slice(&out));
	end(w, true);
}

/* As much as the client takes. */
static void write_on(struct watcher *w)
{
	struct exchange *exchange = w->call->exchange;
	const struct file_feed *feed = w->listener.feed;
	scoped_str struct str out = {0};

	while (w->told < file_feed_last(feed) && exchange_backlog(exchange) + out.len <= BACKLOG)
		add_next(w, &out);
	if (out.len > 0)
		exchange_write(exchange, str_slice(&out));
	if (w->told == file_feed_last(feed) && file_feed_state(feed) >= FILE_FEED_ENDED)
		say_last(w);
}

static void on_heartbeat(evutil_socket_t fd, short what, void *ctx)
{
	const struct timeval in = {.tv_sec = HEARTBEAT_S};
	struct watcher *w = ctx;

	if (exchange_backlog(w->call->exchange) == 0)
		exchange_write(w->call->exchange, slice_of(": \n\n"));
	event_add(w->heartbeat, &in);
}

static void on_drained(void *arg)
{
	write_on(arg);
}

static void on_gone(void *arg)
{
	end(arg, false);
}

static void begin(struct watcher *w)
{
	const struct timeval in = {.tv_sec = HEARTBEAT_S};
	scoped_str struct str out = {0};

	w->heartbeat = evtimer_new(w->call->server->base, on_heartbeat, w);
	event_add(w->heartbeat, &in);
	exchange_begin(w->call->exchange, 200, EVENT_TYPE);
	exchange_on_drained(w->call->exchange, on_drained, w);
	add_start(w, &out);
	if (out.len > 0)
		exchange_write(w->call->exchange, str_slice(&out));
	write_on(w);
}

/* ---- those whose feed did not begin ---- */

static const struct {
	int error;
	unsigned status;
	const char *code;
} failures[] = {
	{ENOENT, 404, "file_not_found"},
	{EXDEV, 403, "forbidden_place"},
	{EACCES, 403, "denied"},
};

static void refuse(struct call *call, int r, const struct err *err)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].error == -r) {
			call->status = failures[i].status;
			call->code = failures[i].code;
		}
	call_settle(call, r, err);
	call_send(call);
}

static void give_up(struct watcher *w)
{
	struct call *call = w->call;
	struct err err;
	int r = file_feed_failure(w->listener.feed, &err);

	if (r == 0)
		r = err_set(&err, -ENOTCONN, "the sandbox has ended");
	watcher_free(w);
	exchange_on_gone(call->exchange, NULL, NULL);
	refuse(call, r, &err);
}

static void on_change(void *arg)
{
	struct watcher *w = arg;

	if (w->heartbeat)
		write_on(w);
	else if (file_feed_has_begun(w->listener.feed))
		begin(w);
	else if (file_feed_state(w->listener.feed) >= FILE_FEED_ENDED)
		give_up(w);
}

static void answer_head(struct call *call)
{
	exchange_begin(call->exchange, 200, EVENT_TYPE);
	exchange_end(call->exchange, true);
	call_free(call);
}

static void run(struct call *call, struct file_watch_ask *ask)
{
	struct watcher *w = new0(struct watcher);
	const struct file_feed_ask feed = {.account = call->caller.account,
		.sandbox = ask->sandbox,
		.path = str_slice(&ask->path),
		.at = ask->has_at ? &ask->at : NULL};
	struct err err;
	int r;

	w->call = call;
	w->ask = ask;
	w->listener = (struct file_feed_listener){.on_change = on_change, .arg = w};
	call->then = NULL;
	r = file_feed_join(call->server->file_feeds, &feed, &w->listener, &err);
	if (r < 0) {
		watcher_free(w);
		refuse(call, r, &err);
		return;
	}
	exchange_on_gone(call->exchange, on_gone, w);
	w->is_first = !file_feed_has_begun(w->listener.feed);
	if (!w->is_first)
		begin(w);
}

void file_watch_run(struct call *call)
{
	scoped(file_watch_ask) struct file_watch_ask *ask = take(&call->state);

	bool has_left = !exchange_has_client(call->exchange); /* and nobody will say so again */

	if (has_left || slice_is(exchange_head(call->exchange)->method, "HEAD"))
		answer_head(call);
	else
		run(call, take(&ask));
}
