/* SPDX-License-Identifier: Apache-2.0 */
/* Each sandbox has a reader of its log that stands behind what is indexed; whoever catches up holds its lock meanwhile, so
 * that rows go in in their order. A log that grows is noticed by inotify, on the loop, and read by a worker. */
#include "server/indexer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/event_json.h"
#include "record/lines.h"
#include "server/keep.h"
#include "server/preview_look.h"
#include "server/webhooks.h"
#include "server/workers.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"
#include "view/exec_log.h"

#define META_MAX  (4u << 20)
#define BATCH     256
#define AGAIN_MS  2000 /* after the store failed */
#define LOG       "log.jsonl"
#define WATCH_LOG (IN_MODIFY)
#define WATCH_ALL (IN_CREATE | IN_ATTRIB | IN_MOVED_TO)

struct entry { /* a sandbox whose log is followed */
	struct indexer *indexer;
	pthread_mutex_t lock;
	char id[ID_SIZE];
	int dirfd, watch;
	struct lines lines;
	struct event_line *line;
	struct exec_log *log;
	char state[16];
	char *account, *name, *place;
	struct store_label labels[STORE_LABELS_MAX];
	size_t n_labels;
	json_t *meta;
	int64_t created_ms, ended_ms;
	_Atomic int64_t held_until_ms; /* a question may wait until then */
	bool is_begun;                 /* the store was asked for it */
	bool is_known;                 /* the store has it, in whatever state */
	bool is_changed;               /* state is not in the store yet */
	bool is_forgotten;             /* by the store, for good */
	bool is_queued;   /* a worker will look; the lock of the indexer is for it, too */
	unsigned n_users; /* who was given it; the indexer's lock is for this and the next */
	bool is_dropped;  /* out of the maps: its last user frees it */
};

struct look {
	struct work work;
	struct look *next;
	struct indexer *indexer;
	char id[ID_SIZE];
};

struct indexer {
	struct server *server;
	int inotify, records_watch;
	struct event *io;
	pthread_mutex_t lock; /* of the two maps */
	struct map *by_id;
	struct map *by_watch;
	struct look *again; /* the loop's, as the next */
	struct event *again_timer;
};

/* What is gathered of a log before it goes into the store. */
struct batch {
	struct store_log_row rows[BATCH];
	struct store_event events[BATCH];
	struct store_metric metrics[BATCH];
	struct webhooks_event asks[BATCH]; /* told to webhooks alone */
	size_t n_rows, n_events, n_metrics, n_asks;
	char *texts[BATCH * 4];
	size_t n_texts;
};

static const char *keep(struct batch *batch, struct slice text)
{
	char *copy = mem_copy(text.p ? text.p : "", text.len);

	batch->texts[batch->n_texts++] = copy;
	return copy;
}

static void batch_reset(struct batch *batch)
{
	for (size_t i = 0; i < batch->n_texts; i++)
		free(batch->texts[i]);
	batch->n_rows = batch->n_events = batch->n_metrics = batch->n_asks = batch->n_texts = 0;
}

static bool is_full(const struct batch *batch)
{
	return batch->n_rows == BATCH || batch->n_events == BATCH || batch->n_metrics == BATCH ||
	       batch->n_asks == BATCH ||
	       batch->n_texts + 8 > sizeof(batch->texts) / sizeof(batch->texts[0]);
}

static void entry_free(struct entry *entry)
{
	if (!entry)
		return;
	lines_done(&entry->lines);
	event_line_free(entry->line);
	exec_log_free(entry->log);
	scoped_close(&entry->dirfd);
	json_decref(entry->meta);
	pthread_mutex_destroy(&entry->lock);
	free(entry);
}

/* ---- what a record says of itself ---- */

static void take_labels(struct entry *entry, const json_t *labels)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)labels, key,
		value) if (json_is_string(value) && entry->n_labels < STORE_LABELS_MAX)
		entry->labels[entry->n_labels++] =
		(struct store_label){key, json_string_value(value)};
}

static int read_meta(struct entry *entry)
{
	scoped_str struct str text = {0};
	const json_t *spec;
	int r = fdio_read_file(entry->dirfd, "meta.json", META_MAX, &text);

	if (r < 0)
		return r;
	entry->meta = json_loadb(text.p, text.len, 0, NULL);
	spec = json_object_get(entry->meta, "spec");
	entry->account = (char *)json_string_value(json_object_get(spec, "account"));
	entry->name = (char *)json_string_value(json_object_get(spec, "name"));
	take_labels(entry, json_object_get(spec, "labels"));
	if (clock_parse(json_string_value(json_object_get(entry->meta, "created_at")) ?: "",
		    &entry->created_ms) < 0 ||
		!entry->account)
		return -ENOENT; /* made by nobody of ours */
	return 0;
}

static int open_entry(struct indexer *indexer, const char *id, struct entry **ret)
{
	scoped_mem char *dir = mem_printf("%s/records/%s", indexer->server->state_dir, id);
	struct entry *entry = new0(struct entry);
	int r = 0;

	entry->indexer = indexer;
	entry->lines.fd = -1;
	entry->watch = -1;
	memccpy(entry->id, id, '\0', sizeof(entry->id) - 1);
	memccpy(entry->state, "creating", '\0', sizeof(entry->state));
	pthread_mutex_init(&entry->lock, NULL);
	entry->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (entry->dirfd < 0)
		r = -errno;
	if (r == 0)
		r = read_meta(entry);
	if (r == 0)
		r = lines_open(&entry->lines, entry->dirfd, LOG);
	if (r < 0) {
		entry_free(entry);
		return r;
	}
	entry->log = exec_log_new(&(struct view_filter){0});
	entry->is_changed = true;
	*ret = entry;
	return 0;
}

static int get_entry(struct indexer *indexer, const char *id, struct entry **ret)
{
	void **slot;
	int r = 0;

	if (!id_is_valid("sb", id))
		return -ENOENT;
	pthread_mutex_lock(&indexer->lock);
	slot = map_slot(indexer->by_id, slice_of(id));
	if (!*slot) {
		struct entry *entry;

		r = open_entry(indexer, id, &entry);
		if (r == 0) {
			scoped_mem char *log =
				mem_printf("%s/records/%s/" LOG, indexer->server->state_dir, id);
			unsigned long long watch;

			*slot = entry;
			entry->watch = inotify_add_watch(indexer->inotify, log, WATCH_LOG);
			watch = (unsigned long long)entry->watch;
			if (entry->watch >= 0)
				*map_slot(indexer->by_watch, map_int_key(&watch)) = entry;
		}
	}
	if (r < 0) {
		(void)map_remove(indexer->by_id, slice_of(id));
	} else {
		*ret = *slot;
		(*ret)->n_users++;
	}
	pthread_mutex_unlock(&indexer->lock);
	return r;
}

static void give_back(struct entry *entry)
{
	struct indexer *indexer = entry->indexer;

	pthread_mutex_lock(&indexer->lock);
	if (--entry->n_users == 0 && entry->is_dropped)
		entry_free(entry);
	pthread_mutex_unlock(&indexer->lock);
}

void indexer_drop(struct indexer *indexer, const char *id)
{
	struct entry *entry;

	pthread_mutex_lock(&indexer->lock);
	entry = map_remove(indexer->by_id, slice_of(id));
	if (entry) {
		unsigned long long watch = (unsigned long long)entry->watch;

		(void)map_remove(indexer->by_watch, map_int_key(&watch));
		(void)inotify_rm_watch(indexer->inotify, entry->watch); /* gone with its file */
		entry->is_dropped = true;
		if (entry->n_users == 0)
			entry_free(entry);
	}
	pthread_mutex_unlock(&indexer->lock);
}

/* ---- from events to rows ---- */

static const struct {
	enum event_kind kind;
	const char *state; /* NULL: it does not change */
} lives[] = {
	{EVENT_SANDBOX_CREATED, "creating"},
	{EVENT_SANDBOX_STARTED, "running"},
	{EVENT_SANDBOX_PAUSED, "paused"},
	{EVENT_SANDBOX_WOKEN, "running"},
	{EVENT_SANDBOX_SUSPENDED, "suspended"},
	{EVENT_SANDBOX_RESUMED, "running"},
	{EVENT_SANDBOX_STOPPED, "ended"},
	{EVENT_SANDBOX_REMOVED, "ended"},
	{EVENT_SANDBOX_ERROR, NULL},
};

static void add_search(struct str *out, const struct event *ev)
{
	for (size_t i = 0; i < ev->argv.n; i++) {
		str_puts(out, i ? " " : "");
		str_add(out, ev->argv.items[i].p, ev->argv.items[i].len);
	}
	str_add(out, ev->command.p, ev->command.len);
	str_puts(out, "\n");
	str_add(out, ev->detail.p, ev->detail.len);
	if (out->len > STORE_SEARCH_MAX)
		out->len = STORE_SEARCH_MAX;
}

static void add_row(
	struct entry *entry, struct batch *batch, const struct event *ev, const struct str *json)
{
	scoped_str struct str search = {0};
	struct store_log_row *row = &batch->rows[batch->n_rows++];
	int64_t at_ms = ev->wall_ms;
	scoped_mem char *started =
		mem_copy(ev->started_at.p ? ev->started_at.p : "", ev->started_at.len);

	add_search(&search, ev);
	(void)clock_parse(started, &at_ms); /* else the time of its end */
	*row = (struct store_log_row){.sandbox = entry->id,
		.exec = keep(batch, ev->exec),
		.source = keep(batch, ev->source),
		.operation = keep(batch, ev->operation),
		.seq = (int64_t)ev->seq,
		.id = ev->id,
		.has_exit_code = event_has(ev, exit_code),
		.exit_code = ev->exit_code,
		.output_truncated = ev->output_truncated,
		.at_ms = at_ms,
		.duration_ms = ev->duration_ms,
		.search = {.p = keep(batch, str_slice(&search)), .len = search.len},
		.json = keep(batch, str_slice(json))};
}

static void add_life(struct entry *entry, struct batch *batch, const struct event *ev,
	struct slice line, const char *state)
{
	batch->events[batch->n_events++] = (struct store_event){.account = entry->account,
		.sandbox = entry->id,
		.seq = (int64_t)ev->seq,
		.at_ms = ev->wall_ms,
		.kind = event_kind_name(ev->kind),
		.json = keep(batch, line)};
	if (!state)
		return;
	memccpy(entry->state, state, '\0', sizeof(entry->state));
	entry->ended_ms = strcmp(state, "ended") == 0 ? ev->wall_ms : 0;
	entry->is_changed = true;
}

/* A question, or what became of it. */
static void add_ask(
	struct entry *entry, struct batch *batch, const struct event *ev, struct slice line)
{
	batch->asks[batch->n_asks++] = (struct webhooks_event){.kind = event_kind_name(ev->kind),
		.sandbox = entry->id,
		.json = keep(batch, line),
		.seq = (int64_t)ev->seq,
		.at_ms = ev->wall_ms};
	if (ev->kind == EVENT_NET_HELD)
		entry->held_until_ms = ev->wall_ms + INDEXER_HELD_MS;
}

struct wanted {
	const char *exec;
	struct str *row; /* gets it */
	bool is_found;
};

static int64_t oldest_metric(const struct entry *entry)
{
	return clock_wall_ms() - keep_ms(entry->indexer->server->config, KEEP_METRICS);
}

static void take_event(
	struct entry *entry, struct batch *batch, struct slice line, struct wanted *wanted)
{
	scoped_str struct str json = {0};
	const struct event *ev;

	if (event_json_read(line, &entry->line, NULL) < 0)
		return; /* a hash line, or a later version's event */
	ev = event_json_get(entry->line);
	if (exec_log_next_json(entry->log, ev, &json)) {
		add_row(entry, batch, ev, &json);
		if (wanted->exec && slice_is(ev->exec, wanted->exec)) {
			str_add(wanted->row, json.p, json.len);
			wanted->is_found = true;
		}
	}
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		if (lives[i].kind == ev->kind)
			add_life(entry, batch, ev, line, lives[i].state);
	if (ev->kind == EVENT_NET_HELD || ev->kind == EVENT_NET_ASKED)
		add_ask(entry, batch, ev, line);
	if (ev->kind == EVENT_SANDBOX_STATS && ev->wall_ms > oldest_metric(entry))
		batch->metrics[batch->n_metrics++] = (struct store_metric){
			.sandbox = entry->id, .json = keep(batch, line), .at_ms = ev->wall_ms};
}

static int take_known(const struct store_sandbox *sandbox, void *arg)
{
	struct entry *entry = arg;

	entry->is_known = true;
	if (strcmp(sandbox->state, "ended") != 0)
		return 0;
	memccpy(entry->state, sandbox->state, '\0', sizeof(entry->state));
	entry->ended_ms = sandbox->ended_ms;
	entry->is_changed = false;
	return 0;
}

/* One that has ended, and is in the store as such, was read to its end: nothing but what comes yet is new. So a start costs
 * what is alive, and not all there ever was. */
static int begin(struct entry *entry, struct err *err)
{
	struct stat st;
	int r;

	if (entry->is_begun)
		return 0;
	r = store_sandbox_get(
		entry->indexer->server->store, entry->account, entry->id, take_known, entry, err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (strcmp(entry->state, "ended") == 0 && fstat(entry->lines.fd, &st) == 0)
		entry->lines.offset = (uint64_t)st.st_size;
	entry->is_begun = true;
	return 0;
}

static int put_sandbox(struct entry *entry, const char *state, struct err *err)
{
	const struct store_sandbox row = {.id = entry->id,
		.account = entry->account,
		.name = entry->name,
		.state = state,
		.place = "records",
		.labels = entry->labels,
		.n_labels = entry->n_labels,
		.created_ms = entry->created_ms,
		.ended_ms = entry->ended_ms};
	int r = entry->is_changed ? store_sandbox_put(entry->indexer->server->store, &row, err) : 0;

	if (r < 0)
		return r;
	if (entry->is_changed && strcmp(state, "ended") == 0)
		preview_look_sandbox_ended(entry->indexer->server, entry->account, entry->id);
	entry->is_forgotten |= entry->is_changed && r == 0;
	entry->is_changed = entry->is_changed && strcmp(state, entry->state) != 0;
	entry->is_known = true;
	return 0;
}

/* What webhooks may want to hear of it. */
static int feed_webhooks(struct entry *entry, const struct batch *batch, struct err *err)
{
	struct webhooks_event events[3 * BATCH];
	size_t n = 0;
	int r;

	for (size_t i = 0; i < batch->n_events; i++)
		events[n++] = (struct webhooks_event){.kind = batch->events[i].kind,
			.sandbox = entry->id,
			.json = batch->events[i].json,
			.seq = batch->events[i].seq,
			.at_ms = batch->events[i].at_ms};
	for (size_t i = 0; i < batch->n_rows; i++)
		events[n++] = (struct webhooks_event){.kind = event_kind_name(EVENT_EXEC_END),
			.sandbox = entry->id,
			.json = batch->rows[i].json,
			.seq = batch->rows[i].seq,
			.at_ms = batch->rows[i].at_ms + batch->rows[i].duration_ms};
	for (size_t i = 0; i < batch->n_asks; i++)
		events[n++] = batch->asks[i];
	if (n == 0 || entry->is_forgotten)
		return 0;
	r = webhooks_feed(entry->indexer->server->webhooks, entry->account, events, n, err);
	return r < 0 ? r : 0;
}

static int put_batch(struct entry *entry, struct batch *batch, struct err *err)
{
	struct store *store = entry->indexer->server->store;
	int r = entry->is_known ? 0 : put_sandbox(entry, "creating", err);

	if (r == 0 && batch->n_rows)
		r = store_log_add(store, batch->rows, batch->n_rows, err);
	if (r >= 0 && batch->n_events)
		r = store_lifecycle_add(store, batch->events, batch->n_events, err);
	if (r >= 0 && batch->n_metrics)
		r = store_metric_add(store, batch->metrics, batch->n_metrics, err);
	if (r >= 0)
		r = feed_webhooks(entry, batch, err);
	if (r >= 0) /* behind its rows: an end says that all of them are there */
		r = put_sandbox(entry, entry->state, err);
	batch_reset(batch);
	return r < 0 ? r : 0;
}

static int read_log(struct entry *entry, struct wanted *wanted, struct err *err)
{
	struct batch *batch = new0(struct batch);
	struct slice line;
	int n = 0, r = begin(entry, err);

	while (r == 0 && (n = lines_next(&entry->lines, &line)) == 1) {
		take_event(entry, batch, line, wanted);
		if (is_full(batch))
			r = put_batch(entry, batch, err);
	}
	if (r == 0 && n < 0)
		r = err_set(err, n, "read the log of %s: %m", entry->id);
	if (r == 0)
		r = put_batch(entry, batch, err);
	batch_reset(batch);
	free(batch);
	return r;
}

static void look_later(struct indexer *indexer, const char *id);

int indexer_catch_up(struct indexer *indexer, const char *sandbox, const char *exec,
	struct str *row, struct err *err)
{
	struct wanted wanted = {.exec = exec, .row = row};
	struct entry *entry;
	int r = get_entry(indexer, sandbox, &entry);

	if (r < 0)
		return err_set(err, -ENOENT, "there is no sandbox %s", sandbox);
	pthread_mutex_lock(&entry->lock);
	r = read_log(entry, &wanted, err);
	pthread_mutex_unlock(&entry->lock);
	if (r < 0) { /* what it had read is not in the store: once more from the start */
		indexer_drop(indexer, sandbox);
		look_later(indexer, sandbox);
	}
	give_back(entry);
	return r < 0 ? r : wanted.is_found;
}

size_t indexer_holding(
	struct indexer *indexer, const char *account, char (*ret_ids)[ID_SIZE], size_t max)
{
	int64_t now = clock_wall_ms();
	struct slice key;
	size_t n = 0;
	void *value;

	pthread_mutex_lock(&indexer->lock);
	for (size_t i = 0; n < max && map_next(indexer->by_id, &i, &key, &value);) {
		const struct entry *entry = value;

		if (entry && entry->held_until_ms > now && strcmp(entry->account, account) == 0)
			memcpy(ret_ids[n++], entry->id, ID_SIZE);
	}
	pthread_mutex_unlock(&indexer->lock);
	return n;
}

/* ---- what happens by itself ---- */

/* From here on what is written asks for another look: this one may be past it already. */
static void mark_looked_at(struct look *look)
{
	struct entry *entry;

	pthread_mutex_lock(&look->indexer->lock);
	entry = map_find(look->indexer->by_id, slice_of(look->id));
	if (entry)
		entry->is_queued = false;
	pthread_mutex_unlock(&look->indexer->lock);
}

static void run_look(struct work *work)
{
	struct look *look = (struct look *)work;
	struct err err = {0};
	int r;

	mark_looked_at(look);
	r = indexer_catch_up(look->indexer, look->id, NULL, NULL, &err);
	if (r < 0 && r != -ENOENT)
		log_warn("%s is not indexed: %s", look->id, err.msg);
}

static void look_done(struct work *work)
{
	free(work);
}

static struct look *look_new(struct indexer *indexer, const char *id)
{
	struct look *look = new0(struct look);

	look->work = (struct work){.run = run_look, .done = look_done};
	look->indexer = indexer;
	memccpy(look->id, id, '\0', sizeof(look->id) - 1);
	return look;
}

static void look_at(struct indexer *indexer, const char *id)
{
	workers_add(indexer->server->workers, &look_new(indexer, id)->work);
}

static void on_again(evutil_socket_t fd, short what, void *ctx)
{
	struct indexer *indexer = ctx;
	struct look *look;

	while ((look = indexer->again)) {
		indexer->again = look->next;
		look->work = (struct work){.run = run_look, .done = look_done};
		workers_add(indexer->server->workers, &look->work);
	}
}

static void wait_to_look(struct work *work)
{
	struct look *look = (struct look *)work;
	struct indexer *indexer = look->indexer;
	const struct timeval wait = {.tv_sec = AGAIN_MS / 1000};

	look->next = indexer->again;
	indexer->again = look;
	if (!evtimer_pending(indexer->again_timer, NULL))
		evtimer_add(indexer->again_timer, &wait);
}

static void look_later(struct indexer *indexer, const char *id)
{
	struct look *look = look_new(indexer, id);

	look->work.done = wait_to_look;
	workers_post(indexer->server->workers, &look->work);
}

static void on_change(struct indexer *indexer, const struct inotify_event *ev)
{
	unsigned long long watch = (unsigned long long)ev->wd;
	char id[ID_SIZE] = "";

	if (ev->wd == indexer->records_watch) {
		if (ev->len > 0 && id_is_valid("sb", ev->name))
			look_at(indexer, ev->name);
		return;
	}
	pthread_mutex_lock(&indexer->lock);
	{
		struct entry *entry = map_find(indexer->by_watch, map_int_key(&watch));

		if (entry && !entry->is_queued) {
			entry->is_queued = true;
			memcpy(id, entry->id, sizeof(id));
		}
	}
	pthread_mutex_unlock(&indexer->lock);
	if (id[0])
		look_at(indexer, id);
}

static void on_inotify(evutil_socket_t fd, short what, void *ctx)
{
	char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(fd, buf, sizeof(buf));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *ev = (const struct inotify_event *)(buf + at);

		on_change(ctx, ev);
		at += (ssize_t)(sizeof(*ev) + ev->len);
	}
}

/* All there are; by those threads that keep nobody waiting. */
static int look_at_all(struct indexer *indexer, const char *dir, struct err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		return err_set(err, -errno, "open '%s': %m", dir);
	while ((e = readdir(d)))
		if (id_is_valid("sb", e->d_name))
			workers_add(indexer->server->slow, &look_new(indexer, e->d_name)->work);
	closedir(d);
	return 0;
}

int indexer_new(struct server *server, struct indexer **ret_indexer, struct err *err)
{
	scoped(indexer) struct indexer *indexer = new0(struct indexer);
	scoped_mem char *dir = mem_printf("%s/records", server->state_dir);
	int r;

	indexer->server = server;
	pthread_mutex_init(&indexer->lock, NULL);
	indexer->by_id = map_new();
	indexer->by_watch = map_new();
	indexer->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (indexer->inotify < 0)
		return err_set(err, -errno, "make an inotify: %m");
	indexer->records_watch = inotify_add_watch(indexer->inotify, dir, WATCH_ALL | IN_ONLYDIR);
	if (indexer->records_watch < 0)
		return err_set(err, -errno, "watch '%s': %m", dir);
	indexer->io = event_new(
		server->base, indexer->inotify, EV_READ | EV_PERSIST, on_inotify, indexer);
	event_add(indexer->io, NULL);
	indexer->again_timer = evtimer_new(server->base, on_again, indexer);
	r = look_at_all(indexer, dir, err);
	if (r < 0)
		return r;
	*ret_indexer = take(&indexer);
	return 0;
}

void indexer_free(struct indexer *indexer)
{
	size_t i = 0;
	struct slice id;
	void *entry;

	if (!indexer)
		return;
	if (indexer->io)
		event_free(indexer->io);
	if (indexer->again_timer)
		event_free(indexer->again_timer);
	while (indexer->again) {
		struct look *look = indexer->again;

		indexer->again = look->next;
		free(look);
	}
	scoped_close(&indexer->inotify);
	while (map_next(indexer->by_id, &i, &id, &entry))
		entry_free(entry);
	map_free(indexer->by_id);
	map_free(indexer->by_watch);
	pthread_mutex_destroy(&indexer->lock);
	free(indexer);
}
