/* SPDX-License-Identifier: Apache-2.0 */
/* Of each path: joined to a feed -> begun, which is told, since what changed before is not -> over: joined again after a while, or, with
 * the sandbox, ended. What is gathered waits for its time (file_batch.h), then a worker adds it to the store, again and again until
 * that has it: under one id, made of the webhook, this watch and the delivery's number in it. */
#include "server/file_hook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/file_batch.h"
#include "server/file_feed.h"
#include "server/webhook_sender.h"
#include "server/workers.h"
#include "util/base64.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define AGAIN_MS     2000 /* after the store failed */
#define REJOIN_S     1    /* after a watch failed; twice as long each time, up to */
#define REJOIN_S_MAX 60

struct base { /* a path that is watched */
	struct file_hook *hook;
	struct file_feed_listener listener;
	struct str path;
	int64_t told; /* the number of the last entry taken */
	struct event *again;
	int wait_s;
	bool has_begun, has_ended, has_said_why;
};

struct file_hook {
	struct work work;
	struct server *server;
	char *account;
	struct webhook *webhook;
	void (*on_end)(void *arg);
	void *arg;
	char id[ID_SIZE]; /* of this watch */
	struct base bases[WEBHOOK_PATHS_MAX];
	size_t n_bases;
	struct file_batch batch;
	struct file_pace pace;
	int64_t n; /* deliveries made */
	struct event *due;
	/* the worker's, while is_sending */
	struct str body; /* not empty: it is to go into the store */
	char delivery[WEBHOOK_ID_SIZE];
	int r;
	struct err err;
	bool is_sending, is_freed;
};

static int64_t now_ms(void)
{
	return clock_mono_ns() / CLOCK_NS_PER_MS;
}

void file_hook_free(struct file_hook *hook)
{
	if (!hook)
		return;
	hook->is_freed = true;
	for (size_t i = 0; i < hook->n_bases; i++) {
		struct base *base = &hook->bases[i];

		file_feed_leave(&base->listener);
		if (base->again)
			event_free(take(&base->again));
		str_done(&base->path);
	}
	hook->n_bases = 0;
	if (hook->due)
		event_free(take(&hook->due));
	if (hook->is_sending)
		return;
	file_batch_done(&hook->batch);
	str_done(&hook->body);
	webhook_free(hook->webhook);
	free(hook->account);
	free(hook);
}

/* ---- into the store ---- */

static void run_send(struct work *work)
{
	struct file_hook *hook = (struct file_hook *)work;
	int64_t now = clock_wall_ms();
	const struct store_delivery row = {.id = hook->delivery,
		.account = hook->account,
		.webhook = hook->webhook->id,
		.due_ms = now,
		.created_ms = now,
		.json = hook->body.p};

	hook->r = store_delivery_add(hook->server->store, &row, 1, &hook->err);
}

static void schedule(struct file_hook *hook);

static void send_done(struct work *work)
{
	struct file_hook *hook = (struct file_hook *)work;

	hook->is_sending = false;
	if (hook->is_freed) {
		file_hook_free(hook);
		return;
	}
	if (hook->r < 0) {
		log_warn("changes of files wait for the store: %s", hook->err.msg);
	} else {
		str_reset(&hook->body);
		webhook_sender_wake(hook->server->sender);
	}
	schedule(hook);
}

static void make_delivery(struct file_hook *hook)
{
	scoped_mem char *subject = mem_printf("%s %s", hook->webhook->sandbox, hook->id);
	const struct file_batch_data data = {.sandbox = hook->webhook->sandbox,
		.watch = hook->id,
		.n = ++hook->n,
		.at_ms = clock_wall_ms()};

	file_batch_write(&hook->batch, &data, &hook->body);
	webhook_delivery_id(hook->webhook, subject, hook->n, hook->delivery);
	file_pace_note(&hook->pace, now_ms());
}

static void send_off(struct file_hook *hook)
{
	if (hook->body.len == 0)
		make_delivery(hook);
	hook->work = (struct work){.run = run_send, .done = send_done};
	hook->is_sending = true;
	workers_add(hook->server->workers, &hook->work);
}

static bool has_ended(const struct file_hook *hook)
{
	for (size_t i = 0; i < hook->n_bases; i++)
		if (!hook->bases[i].has_ended)
			return false;
	return true;
}

static void schedule(struct file_hook *hook)
{
	bool is_over = has_ended(hook), is_again = hook->body.len > 0;
	int64_t wait_ms;

	if (hook->is_sending)
		return;
	if (!is_again && !hook->batch.first_ms) {
		if (is_over)
			hook->on_end(hook->arg);
		return;
	}
	wait_ms = is_again  ? AGAIN_MS
	          : is_over ? 0
	                    : file_pace_due(&hook->pace, &hook->batch) - now_ms();
	if (wait_ms < 0)
		wait_ms = 0;
	event_add(hook->due,
		&(struct timeval){.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000});
}

static void on_due(evutil_socket_t fd, short what, void *ctx)
{
	struct file_hook *hook = ctx;

	if (!hook->is_sending)
		send_off(hook);
}

void file_hook_flush(struct file_hook *hook)
{
	if (!hook->is_sending && (hook->body.len > 0 || hook->batch.first_ms))
		send_off(hook);
}

/* ---- from the feeds ---- */

static bool has_path(const struct webhook_paths *paths, const json_t *change, const char *key,
	const char *key_b64)
{
	const char *text = json_string_value(json_object_get(change, key));
	const char *b64 = json_string_value(json_object_get(change, key_b64));
	scoped_str struct str bytes = {0};

	if (!b64)
		return text && webhook_paths_have(paths, slice_of(text));
	return base64_decode(slice_of(b64), &bytes) == 0 &&
	       webhook_paths_have(paths, str_slice(&bytes));
}

/* What is not watched, or was lost, is of all paths. */
static bool wants(const struct file_hook *hook, struct slice json)
{
	const struct webhook_paths *paths = &hook->webhook->paths;
	json_t *change = json_loadb(json.p, json.len, JSON_ALLOW_NUL, NULL);
	const char *kind = json_string_value(json_object_get(change, "change"));
	bool is_notice = kind && (strcmp(kind, "overflow") == 0 || strcmp(kind, "unwatched") == 0);
	bool is_wanted = is_notice || has_path(paths, change, "path", "path_b64") ||
	                 has_path(paths, change, "from", "from_b64");

	json_decref(change);
	return is_wanted;
}

static void take_entry(struct base *base, int64_t now)
{
	struct file_batch *batch = &base->hook->batch;
	struct file_feed_entry entry = file_feed_get(base->listener.feed, ++base->told);

	if (entry.is_gap)
		file_batch_add_gap(batch, "the path of a change was too long", 1, now);
	else if (wants(base->hook, entry.json))
		file_batch_add(batch, entry.json, now);
}

static void take_entries(struct base *base)
{
	const struct file_feed *feed = base->listener.feed;
	int64_t now = now_ms(), first = file_feed_first(feed);

	if (!base->has_begun) {
		base->has_begun = true;
		base->has_said_why = false;
		base->wait_s = 0;
		file_batch_add_gap(&base->hook->batch,
			"the watch began: what changed before is not told", 0, now);
	}
	if (base->told + 1 < first) {
		file_batch_add_gap(&base->hook->batch, "more changed than could be kept",
			first - 1 - base->told, now);
		base->told = first - 1;
	}
	while (base->told < file_feed_last(feed))
		take_entry(base, now);
}

/* It is said once why a path is not watched, until it is. */
static void join_later(struct base *base, const char *why)
{
	struct timeval in;

	if (!base->has_said_why)
		file_batch_add_gap(&base->hook->batch, why, 0, now_ms());
	base->has_said_why = true;
	base->has_begun = false;
	base->wait_s = base->wait_s ? base->wait_s * 2 : REJOIN_S;
	if (base->wait_s > REJOIN_S_MAX)
		base->wait_s = REJOIN_S_MAX;
	in = (struct timeval){.tv_sec = base->wait_s};
	event_add(base->again, &in);
}

static void on_over(struct base *base)
{
	struct err err;
	int r = file_feed_failure(base->listener.feed, &err);

	file_feed_leave(&base->listener);
	if (r == 0 || r == -ECONNREFUSED)
		base->has_ended = true;
	else
		join_later(base, err.msg);
}

static void on_change(void *arg)
{
	struct base *base = arg;
	const struct file_feed *feed = base->listener.feed;
	bool is_over = file_feed_state(feed) >= FILE_FEED_ENDED;

	if (file_feed_has_begun(feed))
		take_entries(base);
	if (is_over)
		on_over(base);
	schedule(base->hook);
}

static void join(struct base *base)
{
	struct file_hook *hook = base->hook;
	const struct file_feed_ask ask = {.account = hook->account,
		.sandbox = hook->webhook->sandbox,
		.path = str_slice(&base->path),
		.is_hook = true};
	struct err err;

	base->listener = (struct file_feed_listener){.on_change = on_change, .arg = base};
	base->told = 0;
	if (file_feed_join(hook->server->file_feeds, &ask, &base->listener, &err) < 0) {
		join_later(base, err.msg);
		return;
	}
	if (file_feed_has_begun(base->listener.feed)) {
		base->told = file_feed_last(base->listener.feed); /* of another webhook before */
		take_entries(base);
	}
}

static void on_again(evutil_socket_t fd, short what, void *ctx)
{
	struct base *base = ctx;

	join(base);
	schedule(base->hook);
}

struct file_hook *file_hook_new(struct server *server, const struct file_hook_ask *ask)
{
	struct file_hook *hook = new0(struct file_hook);
	struct str paths[WEBHOOK_PATHS_MAX];

	hook->server = server;
	hook->account = mem_dup(ask->account);
	hook->webhook = ask->webhook;
	hook->on_end = ask->on_end;
	hook->arg = ask->arg;
	id_new("fw", hook->id);
	hook->due = evtimer_new(server->base, on_due, hook);
	hook->n_bases = webhook_paths_bases(&hook->webhook->paths, paths);
	for (size_t i = 0; i < hook->n_bases; i++) {
		struct base *base = &hook->bases[i];

		base->hook = hook;
		base->path = paths[i];
		base->again = evtimer_new(server->base, on_again, base);
		join(base);
	}
	schedule(hook);
	return hook;
}
