/* SPDX-License-Identifier: Apache-2.0 */
/* A state goes in behind its rows: one that has ended says that all of them are there. */
#include "server/index_record.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/event_json.h"
#include "record/lines.h"
#include "server/index_batch.h"
#include "server/indexer.h"
#include "server/keep.h"
#include "server/preview_look.h"
#include "server/webhooks.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/mem.h"
#include "view/exec_log.h"

#define META_MAX (4u << 20)
#define LOG      "log.jsonl"
#define ENDED    "ended"

struct index_record {
	struct server *server;
	char id[ID_SIZE];
	struct lines lines;
	struct event_line *line;
	struct exec_log *log;
	struct index_batch *batch; /* what the store has not taken yet; NULL: nothing */
	char state[16];
	const char *account, *name; /* in meta */
	struct store_label labels[STORE_LABELS_MAX];
	size_t n_labels;
	json_t *meta;
	int64_t created_ms, ended_ms;
	int64_t seq,
		weeded; /* of the last event read; up to which the store's rows were looked at */
	bool is_rebuild;
	bool is_begun;                 /* the store was asked for it */
	bool is_known;                 /* the store has it, in whatever state */
	bool is_changed;               /* its state is not in the store yet */
	bool is_forgotten;             /* by the store, for good */
	_Atomic int64_t held_until_ms; /* a question may wait until then */
	struct index_counts counts;
};

void index_record_free(struct index_record *record)
{
	if (!record)
		return;
	lines_done(&record->lines);
	event_line_free(record->line);
	exec_log_free(record->log);
	index_batch_free(record->batch);
	json_decref(record->meta);
	free(record);
}

/* ---- what a record says of itself ---- */

static void take_labels(struct index_record *record, const json_t *labels)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)labels, key,
		value) if (json_is_string(value) && record->n_labels < STORE_LABELS_MAX)
		record->labels[record->n_labels++] =
		(struct store_label){key, json_string_value(value)};
}

static int read_meta(struct index_record *record, int dirfd)
{
	scoped_str struct str text = {0};
	const json_t *spec;
	const char *created;
	int r = fdio_read_file(dirfd, "meta.json", META_MAX, &text);

	if (r < 0)
		return r;
	record->meta = json_loadb(text.p, text.len, 0, NULL);
	spec = json_object_get(record->meta, "spec");
	record->account = json_string_value(json_object_get(spec, "account"));
	record->name = json_string_value(json_object_get(spec, "name"));
	take_labels(record, json_object_get(spec, "labels"));
	created = json_string_value(json_object_get(record->meta, "created_at"));
	if (!record->account || clock_parse(created ? created : "", &record->created_ms) < 0)
		return -ENOENT; /* made by nobody of ours */
	return 0;
}

int index_record_open(struct server *server, const char *id, bool is_rebuild,
	struct index_record **ret_record, struct err *err)
{
	scoped_mem char *dir = mem_printf("%s/records/%s", server->state_dir, id);
	scoped(index_record) struct index_record *record = new0(struct index_record);
	scoped_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = dirfd < 0 ? -errno : 0;

	record->server = server;
	record->lines.fd = -1;
	record->is_rebuild = is_rebuild;
	record->is_changed = true;
	memccpy(record->id, id, '\0', sizeof(record->id) - 1);
	memccpy(record->state, "creating", '\0', sizeof(record->state));
	if (r == 0)
		r = read_meta(record, dirfd);
	if (r == 0)
		r = lines_open(&record->lines, dirfd, LOG);
	if (r < 0)
		return err_set(err, r, "read the record of %s: %m", id);
	record->log = exec_log_new(&(struct view_filter){0});
	*ret_record = take(&record);
	return 0;
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
	{EVENT_SANDBOX_STOPPED, ENDED},
	{EVENT_SANDBOX_REMOVED, ENDED},
	{EVENT_SANDBOX_ERROR, NULL},
};

static void take_life(struct index_record *record, const struct index_batch_of *of,
	const struct event *ev, struct slice line)
{
	const char *state;
	size_t i = 0;

	while (i < sizeof(lives) / sizeof(lives[0]) && lives[i].kind != ev->kind)
		i++;
	if (i == sizeof(lives) / sizeof(lives[0]))
		return;
	index_batch_add_event(record->batch, of, ev, line);
	state = lives[i].state;
	if (!state)
		return;
	memccpy(record->state, state, '\0', sizeof(record->state));
	record->ended_ms = strcmp(state, ENDED) == 0 ? ev->wall_ms : 0;
	record->is_changed = true;
}

static int64_t oldest_sample(const struct index_record *record)
{
	return clock_wall_ms() - keep_ms(record->server->config, KEEP_METRICS);
}

static void take_event(struct index_record *record, struct slice line, struct index_wanted *wanted)
{
	const struct index_batch_of of = {record->account, record->id};
	scoped_str struct str json = {0};
	const struct event *ev;

	if (event_json_read(line, &record->line, NULL) < 0)
		return; /* a hash line, or a later version's event */
	ev = event_json_get(record->line);
	record->seq = (int64_t)ev->seq;
	if (exec_log_next_json(record->log, ev, &json)) {
		index_batch_add_row(record->batch, &of, ev, str_slice(&json));
		if (wanted->exec && slice_is(ev->exec, wanted->exec)) {
			str_add(wanted->row, json.p, json.len);
			wanted->is_found = true;
		}
	}
	take_life(record, &of, ev, line);
	if (ev->kind == EVENT_NET_HELD || ev->kind == EVENT_NET_ASKED)
		index_batch_add_ask(record->batch, &of, ev, line);
	if (ev->kind == EVENT_NET_HELD)
		record->held_until_ms = ev->wall_ms + INDEXER_HELD_MS;
	if (ev->kind == EVENT_SANDBOX_STATS && ev->wall_ms > oldest_sample(record))
		index_batch_add_metric(record->batch, &of, ev, line);
}

/* ---- into the store ---- */

static int take_known(const struct store_sandbox *sandbox, void *arg)
{
	struct index_record *record = arg;

	record->is_known = true;
	if (record->is_rebuild || strcmp(sandbox->state, ENDED) != 0 ||
		strcmp(sandbox->place, record->server->host) != 0)
		return 0;
	memccpy(record->state, sandbox->state, '\0', sizeof(record->state));
	record->ended_ms = sandbox->ended_ms;
	record->is_changed = false;
	return 0;
}

/* One that has ended, and is in the store as such, was read to its end: nothing but what comes yet is new. So a start costs
 * what is alive, and not all there ever was. */
static int begin(struct index_record *record, struct err *err)
{
	struct stat st;
	int r;

	if (record->is_begun)
		return 0;
	r = store_sandbox_get(
		record->server->store, record->account, record->id, take_known, record, err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (strcmp(record->state, ENDED) == 0 && fstat(record->lines.fd, &st) == 0)
		record->lines.offset = (uint64_t)st.st_size;
	record->is_begun = true;
	return 0;
}

/* The database was lost, and with it who there was: whoever has a record is there again, by its id alone. */
static int make_account(struct index_record *record, struct err *err)
{
	struct store_account account = {
		.id = record->account, .name = record->account, .created_ms = clock_wall_ms()};
	scoped_mem char *other = mem_printf("%s (of records)", record->account);
	int r = store_account_add(record->server->store, &account, err);

	account.name = other; /* the id may be another one's name */
	return r == -EEXIST ? store_account_add(record->server->store, &account, err) : r;
}

static int ignore_account(const struct store_account *account, void *arg)
{
	return 0;
}

static bool is_account(struct index_record *record)
{
	return store_account_get(record->server->store, record->account, ignore_account, NULL,
		       NULL) != -ENOENT;
}

static int put_sandbox(struct index_record *record, const char *state, struct err *err)
{
	const struct store_sandbox row = {.id = record->id,
		.account = record->account,
		.name = record->name,
		.state = state,
		.place = record->server->host,
		.labels = record->labels,
		.n_labels = record->n_labels,
		.created_ms = record->created_ms,
		.ended_ms = strcmp(state, ENDED) == 0 ? record->ended_ms : 0};
	int r = store_sandbox_put(record->server->store, &row, err);

	if (r == -EEXIST && !is_account(record)) {
		r = make_account(record, err);
		if (r == 0)
			r = store_sandbox_put(record->server->store, &row, err);
	}
	if (r < 0)
		return r;
	record->is_forgotten = r == 0;
	record->is_known = true;
	return 0;
}

static int feed_webhooks(struct index_record *record, struct err *err)
{
	struct webhooks_event events[INDEX_BATCH_HEARD_MAX];
	size_t n = index_batch_heard(record->batch, events);
	int r = n == 0 ? 0
	               : webhooks_feed(record->server->webhooks, record->account, events, n, err);

	return r < 0 ? r : 0;
}

/* What the store has of the events up to this one, and the record has not, or otherwise. */
static int weed(struct index_record *record, int64_t last, struct err *err)
{
	const struct index_batch *batch = record->batch;
	struct store *store = record->server->store;
	int r, n;

	if (!record->is_rebuild)
		return 0;
	r = n = store_log_weed(
		store, record->id, record->weeded, last, batch->rows, batch->n_rows, err);
	if (r >= 0)
		r = store_lifecycle_weed(store, record->id, record->weeded, last, batch->events,
			batch->n_events, err);
	if (r < 0)
		return r;
	record->counts.wrong += n + r;
	record->weeded = last;
	return 0;
}

static int count(int r, int64_t *n)
{
	*n += r > 0 ? r : 0;
	return r < 0 ? r : 0;
}

static int put_rows(struct index_record *record, struct err *err)
{
	const struct index_batch *batch = record->batch;
	struct store *store = record->server->store;
	struct index_counts *counts = &record->counts;
	int r = record->is_known ? 0 : put_sandbox(record, "creating", err);

	if (r < 0 || record->is_forgotten)
		return r;
	r = weed(record, record->seq, err);
	if (r == 0 && batch->n_rows)
		r = count(store_log_add(store, batch->rows, batch->n_rows, err), &counts->rows);
	if (r == 0 && batch->n_events)
		r = count(store_lifecycle_add(store, batch->events, batch->n_events, err),
			&counts->events);
	if (r == 0 && batch->n_metrics)
		r = count(store_metric_add(store, batch->metrics, batch->n_metrics, err),
			&counts->samples);
	return r < 0 ? r : feed_webhooks(record, err);
}

/* It stays where it is until all of it was taken. */
static int put_batch(struct index_record *record, struct err *err)
{
	int r = index_batch_is_empty(record->batch) ? 0 : put_rows(record, err);

	if (r == 0)
		index_batch_reset(record->batch);
	return r;
}

static int put_state(struct index_record *record, struct err *err)
{
	int r;

	if (!record->is_changed || record->is_forgotten)
		return 0;
	r = put_sandbox(record, record->state, err);
	if (r < 0)
		return r;
	record->is_changed = false;
	if (strcmp(record->state, ENDED) == 0)
		preview_look_sandbox_ended(record->server, record->account, record->id);
	return 0;
}

/* ---- reading ---- */

static int read_on(struct index_record *record, struct index_wanted *wanted, struct err *err)
{
	struct slice line;
	int n = 0, r = 0;

	while (r == 0 && (n = lines_next(&record->lines, &line)) == 1) {
		take_event(record, line, wanted);
		if (index_batch_is_full(record->batch))
			r = put_batch(record, err);
	}
	if (r == 0 && n < 0)
		r = err_set(err, n, "read the log of %s: %m", record->id);
	return r < 0 ? r : put_batch(record, err);
}

static bool has_writer(const struct index_record *record)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(record->lines.fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* Behind the last event there is nothing, where it has ended and nobody wrote while it was read. */
static int weed_rest(struct index_record *record, bool was_written, struct err *err)
{
	bool is_all = !was_written && strcmp(record->state, ENDED) == 0;

	return record->is_forgotten ? 0 : weed(record, is_all ? INT64_MAX : record->seq, err);
}

/* One that waits for the store already. */
static void find_waiting(const struct index_record *record, struct index_wanted *wanted)
{
	const struct store_log_row *row =
		wanted->exec ? index_batch_find(record->batch, wanted->exec) : NULL;

	if (!row)
		return;
	str_puts(wanted->row, row->json);
	wanted->is_found = true;
}

/* Pages wait for a row that was answered with, until the store has it. */
static void expect(const struct index_record *record, const struct index_wanted *wanted)
{
	const struct store_log_row *row =
		wanted->is_found ? index_batch_find(record->batch, wanted->exec) : NULL;

	if (row)
		(void)store_log_answered(record->server->store, record->id, row->seq);
}

int index_record_read(struct index_record *record, struct index_wanted *wanted, struct err *err)
{
	bool was_written = has_writer(record);
	int r;

	if (!record->batch)
		record->batch = index_batch_new();
	find_waiting(record, wanted);
	r = begin(record, err);
	if (r == 0)
		r = put_batch(record, err);
	if (r == 0)
		r = read_on(record, wanted, err);
	if (r == 0)
		r = weed_rest(record, was_written, err);
	if (r == 0)
		r = put_state(record, err);
	expect(record, wanted);
	if (r == 0) {
		index_batch_free(record->batch);
		record->batch = NULL;
	}
	return r;
}

enum index_record_end index_record_end(const struct index_record *record)
{
	bool has_ended = strcmp(record->state, ENDED) == 0 || record->is_forgotten;

	if (!has_ended || record->batch || record->is_changed)
		return INDEX_RECORD_OPEN;
	return has_writer(record) ? INDEX_RECORD_ENDING : INDEX_RECORD_OVER;
}

bool index_record_is_held(const struct index_record *record, const char *account, int64_t now_ms)
{
	return record->held_until_ms > now_ms && strcmp(record->account, account) == 0;
}

struct index_counts index_record_counts(const struct index_record *record)
{
	return record->counts;
}
