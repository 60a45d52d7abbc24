/* SPDX-License-Identifier: Apache-2.0 */
/* Brings a database to this program's version: numbered steps forward, each with a line in the table "migration" in
 * the same transaction, so that one that is cut off was never begun. Replicas that start at once take turns: SQLite's
 * writers do so anyway, PostgreSQL's by an advisory lock. */
#include "schema.h"
#include "store/store_internal.h"
#include "util/clock.h"
#include "util/digest.h"

#define LOCK_NUMBER "7410743800" /* of no meaning but that nobody else takes it */

const size_t store_n_migrations = sizeof(store_migrations) / sizeof(store_migrations[0]);

struct plan {
	const struct migration *list;
	size_t n;
};

static void digest_of_migration(const struct migration *m, char hex[DIGEST_HEX_SIZE])
{
	struct digest digest;

	digest_init(&digest);
	digest_add(&digest, m->common, strlen(m->common));
	digest_add(&digest, m->sqlite, strlen(m->sqlite));
	digest_add(&digest, m->postgres, strlen(m->postgres));
	digest_value_hex(&digest, hex);
}

static int take_turn(struct db *db)
{
	static const char lock[] = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;"
				   "SELECT pg_advisory_xact_lock(" LOCK_NUMBER ")";

	return db->driver->is_shared ? db->driver->script(db, lock) : 0;
}

struct applied {
	const struct plan *plan;
	int64_t version;
	bool is_other; /* made by other files of the same number */
};

static int on_applied(const struct db_value *row, void *arg)
{
	struct applied *applied = arg;
	char hex[DIGEST_HEX_SIZE];

	applied->version = row[0].i;
	for (size_t i = 0; i < applied->plan->n; i++) {
		if (applied->plan->list[i].version != row[0].i)
			continue;
		digest_of_migration(&applied->plan->list[i], hex);
		applied->is_other |= !slice_is(row[1].text, hex);
	}
	return 0;
}

/* The version that the database has, 0 where it is empty. */
static int find_version(struct db *db, const struct plan *plan, int64_t *ret_version)
{
	static const struct db_sql sql = {
		.text = "SELECT version, digest FROM migration ORDER BY version"};
	struct applied applied = {.plan = plan};
	int newest = plan->list[plan->n - 1].version;
	int r = db->driver->script(db,
		"CREATE TABLE IF NOT EXISTS migration (version BIGINT PRIMARY KEY,"
		"name TEXT NOT NULL, digest TEXT NOT NULL, applied_ms BIGINT NOT NULL)");

	if (r == 0)
		r = (int)db_run_values(db, &sql, NULL, 0, on_applied, &applied);
	if (r < 0)
		return r;
	if (applied.version > newest)
		return err_set(db->err, -EPROTONOSUPPORT,
			"the database is of version %lld and this cloche knows none after %d: use "
			"a newer cloche",
			(long long)applied.version, newest);
	if (applied.is_other)
		return err_set(db->err, -EUCLEAN,
			"the database was made by another line of cloche: its tables are not those "
			"of this one");
	*ret_version = applied.version;
	return 0;
}

static int apply(struct db *db, const struct migration *m)
{
	static const struct db_sql sql = {.text = "INSERT INTO migration (version, name, digest, "
						  "applied_ms) VALUES ($1, $2, $3, $4)"};
	const char *own = db->driver->is_shared ? m->postgres : m->sqlite;
	char hex[DIGEST_HEX_SIZE];
	int r = db->driver->script(db, m->common);

	if (r == 0 && *own)
		r = db->driver->script(db, own);
	if (r < 0)
		return err_wrap(
			db->err, r, "bring the database to version %d (%s)", m->version, m->name);
	digest_of_migration(m, hex);
	return (int)db_run(db, &sql, NULL, NULL, db_int(m->version), db_text(m->name), db_text(hex),
		db_int(clock_wall_ms()));
}

/* One step; 1 where there may be more, 0 at the end. */
static int step(struct db *db, void *arg)
{
	const struct plan *plan = arg;
	int64_t version = 0;
	int r = take_turn(db);

	if (r == 0)
		r = find_version(db, plan, &version);
	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->n; i++)
		if (plan->list[i].version > version)
			return apply(db, &plan->list[i]);
	return 0;
}

int store_migrate(struct db *db, const struct migration *list, size_t n, struct err *err)
{
	struct plan plan = {.list = list, .n = n};
	int r;

	do
		r = db_transact(db, step, &plan, err);
	while (r > 0);
	return r;
}
