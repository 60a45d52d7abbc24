/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

#include "store/store_internal.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/utf8.h"

#define READERS    8
#define CHANGERS   4
#define START_MS   10000 /* as long as another program that starts at the same moment is waited for */
#define PATIENT_MS 3000 /* a database that restarts, by those for whom somebody waits */

static int parse_place(const char *place, struct store *store, struct err *err)
{
	if (strncmp(place, "sqlite:", 7) == 0 && place[7]) {
		store->driver = &db_sqlite;
		store->place = mem_dup(place + 7);
		return 0;
	}
	if (strncmp(place, "postgres://", 11) == 0 || strncmp(place, "postgresql://", 13) == 0) {
		store->driver = &db_postgres;
		store->place = mem_dup(place);
		return 0;
	}
	return err_set(err, -EINVAL,
		"database '%.20s...': want sqlite:PATH or postgres://USER@HOST/NAME", place);
}

/* Another program that starts at the same moment may be in the way: SQLite does not wait for one that just turns the
 * file into one with a WAL. */
static int prepare_database(const struct store *store, struct err *err)
{
	int64_t deadline_ns = clock_mono_ns() + START_MS * CLOCK_NS_PER_MS;
	struct db *db;
	int r;

	do {
		r = store->driver->open(store->place, DB_WRITE, &db, err);
		if (r < 0)
			continue;
		r = store_migrate(db, store_migrations, store_n_migrations, err);
		db_close(db);
	} while (r == -EAGAIN && store_may_retry(r, deadline_ns));
	return r;
}

int store_open(const char *place, struct store **ret_store, struct err *err)
{
	scoped(store) struct store *store = new0(struct store);
	int r = parse_place(place, store, err);

	if (r == 0)
		r = prepare_database(store, err);
	if (r < 0)
		return r;
	store->fresh = store_fresh_new();
	store->reach = store_reach_new();
	store->where = (struct store_where){store->driver, store->place, store->reach};
	store->readers = store_pool_new(&store->where, DB_READ, READERS);
	if (store->driver->is_shared)
		store->changers = store_pool_new(&store->where, DB_WRITE, CHANGERS);
	r = store_writer_new(&store->where, &store->writer, err);
	if (r < 0)
		return r;
	*ret_store = take(&store);
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store_listener_free(store->listener);
	store_writer_free(store->writer);
	store_pool_free(store->changers);
	store_pool_free(store->readers);
	store_fresh_free(store->fresh);
	store_reach_free(store->reach);
	free(store->place);
	free(store);
}

void store_free(struct store *store)
{
	store_close(store);
}

static int on_pool(
	struct store *store, struct store_pool *pool, db_work_fn work, void *arg, struct err *err)
{
	int64_t deadline_ns = store_reach_deadline(store->reach, PATIENT_MS);
	bool is_final;
	struct db *db;
	int r;

	do {
		is_final = false;
		r = store_pool_take(pool, &db, err);
		if (r < 0)
			continue;
		r = db_transact(db, work, arg, err);
		is_final = db->is_commit_unsure || db->n_told > 0;
		store_pool_give(pool, db);
	} while (!is_final && store_may_retry(r, deadline_ns));
	if (r >= 0)
		store_reach_there(store->reach);
	return store_reach_told(r, err);
}

int store_read(struct store *store, db_work_fn work, void *arg, struct err *err)
{
	return on_pool(store, store->readers, work, arg, err);
}

int store_append(struct store *store, const struct store_rows *rows, struct err *err)
{
	return store_reach_told(store_writer_add(store->writer, rows, err), err);
}

int store_change(struct store *store, db_work_fn work, void *arg, struct err *err)
{
	if (!store->changers)
		return store_reach_told(store_writer_do(store->writer, work, arg, err), err);
	return on_pool(store, store->changers, work, arg, err);
}

static int check_work(struct db *db, void *arg)
{
	static const struct db_sql sql = {.text = "SELECT count(*) FROM migration"};
	int64_t n = 0;

	return (int)db_run_values(db, &sql, NULL, 0, db_row_int, &n);
}

int store_check(struct store *store, struct err *err)
{
	int r = store_read(store, check_work, NULL, err);

	return r < 0 ? r : 0;
}

int store_take_numbers(struct db *db, const char *counter, size_t n, int64_t *ret_first)
{
	static const struct db_sql sql = {
		.text = "UPDATE counter SET last = last + $2 WHERE name = $1 RETURNING last"};
	int64_t last = 0,
		r = db_run(db, &sql, db_row_int, &last, db_text(counter), db_int((int64_t)n));

	if (r < 0)
		return (int)r;
	*ret_first = last - (int64_t)n + 1;
	return 0;
}

int store_check_limit(int limit, int max, struct err *err)
{
	if (limit < 1 || limit > max)
		return err_set(err, -EINVAL, "limit %d: want 1 to %d", limit, max);
	return 0;
}

int store_check_account(const char *account, struct err *err)
{
	if (!account || !*account)
		return err_set(err, -EINVAL, "no account is named");
	return STORE_CHECK_NAMES(err, account);
}

int store_check_names(struct err *err, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && strlen(names[i]) > STORE_NAME_MAX)
			return err_set(err, -EINVAL, "'%.20s...' is longer than %d bytes", names[i],
				STORE_NAME_MAX);
	return 0;
}
