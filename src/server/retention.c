/* SPDX-License-Identifier: Apache-2.0 */
#include "server/retention.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/indexer.h"
#include "server/keep.h"
#include "server/launcher_ask.h"
#include "server/lost_records.h"
#include "server/preview_look.h"
#include "server/workers.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define EVERY_S        300
#define PAGE           1000
#define TOMBSTONE_DAYS 400LL /* as long as the ledger is of use */
#define AGED_OUT       "aged out"

struct retention {
	struct work work; /* one at a time */
	struct server *server;
	struct event *timer;
	bool has_swept; /* of what was removed while no server was there */
	atomic_bool is_ending;
};

/* ---- records ---- */

struct old {
	char id[ID_SIZE], account[64];
	int64_t ended_ms;
};

struct old_list {
	struct old items[PAGE];
	size_t n;
};

static int take_old(const struct store_sandbox *sandbox, void *arg)
{
	struct old_list *list = arg;
	struct old *old = &list->items[list->n++];

	snprintf(old->id, sizeof(old->id), "%s", sandbox->id);
	snprintf(old->account, sizeof(old->account), "%s", sandbox->account);
	old->ended_ms = sandbox->ended_ms;
	return 0;
}

static bool is_there(const struct server *server, const char *id)
{
	scoped_mem char *path = mem_printf("%s/records/%s", server->state_dir, id);

	return access(path, F_OK) == 0;
}

/* By the verb that a person would use, so that the ledger says what became of it. 0 also where it is gone already: another
 * replica was first, or this one was killed behind it. */
static int remove_record(struct call *as, const char *id, bool is_aged, struct err *err)
{
	const char *const options[] = {
		"--record", "--changes", is_aged ? "--aged-out" : NULL, NULL};
	int r = launcher_ask_verb(as,
		&(struct launcher_verb){
			.verb = "rm", .sandbox = id, .options = options, .stdout_fd = -1},
		NULL, err);

	if (!is_there(as->server, id))
		return 0;
	return r < 0 ? r : err_set(err, -EIO, "it could not be removed");
}

int retention_forget(struct call *as, const char *id, const char *reason, struct err *err)
{
	int r = remove_record(as, id, strcmp(reason, AGED_OUT) == 0, err);

	if (r < 0)
		return r;
	indexer_drop(as->server->indexer, id);
	return lost_records_forget(as, id, reason, err);
}

static int forget(struct server *server, const struct old *old, struct err *err)
{
	struct call as = {.server = server, .caller = {.actor = "retention"}};

	memcpy(as.caller.account, old->account, sizeof(as.caller.account));
	return retention_forget(&as, old->id, AGED_OUT, err);
}

static void forget_all(struct retention *retention, const struct old_list *list)
{
	struct err err = {0};

	for (size_t i = 0; i < list->n && !atomic_load(&retention->is_ending); i++)
		if (forget(retention->server, &list->items[i], &err) < 0)
			log_warn("the record of %s, which is too old, stays for now: %s",
				list->items[i].id, err.msg);
}

/* Page by page: one that cannot be removed keeps none behind it. */
static void forget_records(struct retention *retention, int64_t now_ms)
{
	struct server *server = retention->server;
	struct old_list *list = new0(struct old_list);
	struct store_ended_query query = {.place = server->host,
		.before_ms = now_ms - keep_ms(server->config, KEEP_RECORDS),
		.limit = PAGE};
	struct err err = {0};
	char last[ID_SIZE];
	int r;

	do {
		list->n = 0;
		r = store_sandbox_ended(server->store, &query, take_old, list, &err);
		if (r < 0)
			log_warn("records that are too old stay for now: %s", err.msg);
		forget_all(retention, list);
		if (list->n > 0) {
			memcpy(last, list->items[list->n - 1].id, ID_SIZE);
			query.after_id = last;
			query.after_ms = list->items[list->n - 1].ended_ms;
		}
	} while (r == PAGE && !atomic_load(&retention->is_ending));
	free(list);
}

/* ---- the store's own ---- */

static void expire(struct retention *retention, int64_t now_ms)
{
	const json_t *config = retention->server->config;
	const struct store_expiry expiry = {.now_ms = now_ms,
		.audit_before_ms = now_ms - keep_ms(config, KEEP_AUDIT),
		.metrics_before_ms = now_ms - keep_ms(config, KEEP_METRICS),
		.deliveries_before_ms = now_ms - keep_ms(config, KEEP_DELIVERIES),
		.tombstones_before_ms = now_ms - TOMBSTONE_DAYS * 24 * 3600 * 1000};
	struct err err = {0};
	int64_t n;

	do
		n = store_expire(retention->server->store, &expiry, &err);
	while (n > 0 && !atomic_load(&retention->is_ending));
	if (n < 0)
		log_warn("rows that are too old stay for now: %s", err.msg);
}

static void sweep(struct retention *retention)
{
	struct lost_counts counts = {0};
	struct err err = {0};
	int r = retention->has_swept ? 0 : lost_records_sweep(retention->server, &counts, &err);

	if (r < 0)
		log_warn("rows of records that were removed stay for now: %s", err.msg);
	retention->has_swept = r == 0;
}

static void run(struct work *work)
{
	struct retention *retention = (struct retention *)work;
	int64_t now_ms = clock_wall_ms();

	preview_look_tidy(retention->server);
	sweep(retention);
	forget_records(retention, now_ms);
	expire(retention, now_ms);
}

static void done(struct work *work)
{
	struct retention *retention = (struct retention *)work;
	const struct timeval wait = {.tv_sec = EVERY_S};

	if (!atomic_load(&retention->is_ending))
		evtimer_add(retention->timer, &wait);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct retention *retention = ctx;

	retention->work = (struct work){.run = run, .done = done};
	workers_add(retention->server->slow, &retention->work);
}

struct retention *retention_new(struct server *server)
{
	struct retention *retention = new0(struct retention);
	const struct timeval now = {0};

	retention->server = server;
	retention->timer = evtimer_new(server->base, on_timer, retention);
	evtimer_add(retention->timer, &now);
	return retention;
}

void retention_stop(struct retention *retention)
{
	if (!retention)
		return;
	atomic_store(&retention->is_ending, true);
	(void)evtimer_del(retention->timer);
}

void retention_free(struct retention *retention)
{
	if (!retention)
		return;
	event_free(retention->timer);
	free(retention);
}
