/* SPDX-License-Identifier: Apache-2.0 */
/* How the database finds what it is asked for. Each statement that the tests before this one had prepared is noted on its way
 * (meson wraps the two calls), and its plan is read: no list may need more than its index, whatever else the table holds. */
#include "store_place.h"

#include <stdbool.h>

#include "util/mem.h"

#define STATEMENTS_MAX 400
#define VALUES_MAX     16
#define INT_OID        20
#define ROWS           3000

static struct statement {
	struct db_sql sql; /* with EXPLAIN before it */
	size_t n_values;
	unsigned types[VALUES_MAX];
} statements[STATEMENTS_MAX];
static size_t n_statements;
static bool is_over; /* what is prepared from here on is our own */

static void note(const char *how, const char *text, size_t n_values, const unsigned *types)
{
	struct statement *s = &statements[n_statements];
	char *explain;

	if (is_over || n_statements == STATEMENTS_MAX || n_values > VALUES_MAX ||
		strstr(text, "'main'.")) /* of the full text index itself */
		return;
	explain = mem_printf("%s%s", how, text);
	for (size_t i = 0; i < n_statements; i++)
		if (strcmp(statements[i].sql.text, explain) == 0) {
			free(explain);
			return;
		}
	*s = (struct statement){.sql = {.text = explain}, .n_values = n_values};
	for (size_t i = 0; types && i < n_values; i++)
		s->types[i] = types[i];
	n_statements++;
}

int __real_sqlite3_prepare_v3(
	void *db, const char *text, int len, unsigned flags, void **stmt, const char **tail);
int __wrap_sqlite3_prepare_v3(
	void *db, const char *text, int len, unsigned flags, void **stmt, const char **tail);
int __wrap_sqlite3_prepare_v3(
	void *db, const char *text, int len, unsigned flags, void **stmt, const char **tail)
{
	note("EXPLAIN QUERY PLAN ", text, 0, NULL);
	return __real_sqlite3_prepare_v3(db, text, len, flags, stmt, tail);
}

/* Weak: a build without PostgreSQL has none. */
__attribute__((weak)) void *__real_PQprepare(
	void *conn, const char *name, const char *text, int n, const unsigned *types);
void *__wrap_PQprepare(
	void *conn, const char *name, const char *text, int n, const unsigned *types);
void *__wrap_PQprepare(void *conn, const char *name, const char *text, int n, const unsigned *types)
{
	note("EXPLAIN (COSTS OFF) ", text, (size_t)n, types);
	return __real_PQprepare(conn, name, text, n, types);
}

static int add_sqlite(const struct db_value *row, void *arg)
{
	str_printf(arg, "%s\n", row[3].text.p);
	return 0;
}

static int add_postgres(const struct db_value *row, void *arg)
{
	str_printf(arg, "%s\n", row[0].text.p);
	return 0;
}

static void read_plan(struct db *db, struct statement *s, struct str *plan)
{
	struct db_value values[VALUES_MAX];
	struct err err = {0};

	db->err = &err;
	for (size_t i = 0; i < s->n_values; i++) {
		scoped_mem char *is_empty = mem_printf("$%zu = ''", i + 1);

		values[i] = s->types[i] == INT_OID          ? db_int(5)
		            : strstr(s->sql.text, is_empty) ? db_text("")
		                                            : db_text("a");
	}
	if (db_run_values(db, &s->sql, values, s->n_values,
		    place.is_postgres ? add_postgres : add_sqlite, plan) < 0)
		fail_msg("%s: %s", s->sql.text, err.msg);
}

/* Part of a statement, and what its plan is to name. */
static const struct {
	const char *text, *index;
} wanted[] = {
	{"FROM log l WHERE l.account || '' =", "log_sandbox_n"},
	{"FROM log l WHERE l.account =", "log_account_n"},
	{"FROM audit WHERE account =", "audit_account_n"},
	{"FROM lifecycle WHERE account =", "lifecycle_sandbox_n"},
	{"FROM sandbox WHERE account = ?1 AND state", "sandbox_state"},
	{"FROM sandbox WHERE place =", "sandbox_place"},
	{"UPDATE delivery SET attempt", "delivery_due"},
	{"FROM sandbox WHERE ended_ms = 0", "sandbox_ended"},
	{"FROM delivery GROUP BY state", "delivery_state"},
	{"FROM delivery WHERE account =", "delivery_webhook"},
	{"FROM metric WHERE sandbox =", "metric"},
};
static bool is_met[sizeof(wanted) / sizeof(wanted[0])];

static void check_wanted(const struct statement *s, const struct str *plan)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (!strstr(s->sql.text, wanted[i].text))
			continue;
		is_met[i] = true;
		if (!strstr(plan->p, wanted[i].index))
			fail_msg("%s\ngoes without %s:\n%s", s->sql.text, wanted[i].index, plan->p);
	}
}

/* Tables that grow with what is done, and what statements call them. */
static void check_scans(const struct statement *s, const struct str *plan)
{
	static const char *const big[] = {"log", "l", "audit", "a", "delivery", "lifecycle",
		"metric", "sandbox", "s", "t", "tombstone", "idempotency"};

	for (size_t i = 0; i < sizeof(big) / sizeof(big[0]); i++) {
		scoped_mem char *scan = mem_printf("SCAN %s\n", big[i]);

		if (strstr(plan->p, scan))
			fail_msg("%s\nreads all there is:\n%s", s->sql.text, plan->p);
	}
	/* Of objects an account has a hundred. */
	if (strstr(plan->p, "USE TEMP B-TREE FOR ORDER BY") && !strstr(s->sql.text, "FROM object"))
		fail_msg("%s\nis sorted:\n%s", s->sql.text, plan->p);
}

static int on_count(const char *state, int64_t n, void *arg)
{
	return 0;
}

static void fill(struct store *store)
{
	static struct store_log_row rows[1000];
	struct err err = {0};

	place_people(store);
	for (int n = 0; n < ROWS; n += 1000) {
		for (int i = 0; i < 1000; i++)
			rows[i] = (struct store_log_row){.sandbox = "sb-a",
				.seq = n + i + 1,
				.exec = "ex",
				.source = "agent",
				.operation = "exec",
				.json = "{}"};
		assert_int_equal(store_log_add(store, rows, 1000, &err), 1000);
	}
	assert_good(store_sandbox_states(store, on_count, NULL, &err));
	assert_good(store_delivery_states(store, on_count, NULL, &err));
}

static void test_plans(void **state)
{
	const struct db_driver *driver = place.is_postgres ? &db_postgres : &db_sqlite;
	const char *at = place.is_postgres ? place.where : place.where + strlen("sqlite:");
	struct store *store = place_open();
	struct err err = {0};
	struct db *db;

	fill(store);
	assert_true(n_statements > 60 && n_statements < STATEMENTS_MAX);
	is_over = true;
	assert_good(driver->open(at, DB_READ, &db, &err));
	for (size_t i = 0; i < n_statements; i++) {
		scoped_str struct str plan = {0};

		if (strstr(statements[i].sql.text, "FROM migration") ||
			strstr(statements[i].sql.text, "pg_") ||
			strstr(statements[i].sql.text, " note ") ||
			strstr(statements[i].sql.text, "SELECT name, request, answer"))
			continue; /* asked for by migrations, or by tests alone */
		read_plan(db, &statements[i], &plan);
		if (!plan.p)
			continue; /* nothing is looked for */
		if (!place.is_postgres)
			check_scans(&statements[i], &plan);
		check_wanted(&statements[i], &plan);
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!is_met[i] && !strchr(wanted[i].text, '?'))
			fail_msg("no statement has '%s'", wanted[i].text);
	db_close(db);
	store_close(store);
	for (size_t i = 0; i < n_statements; i++)
		free((char *)statements[i].sql.text);
}

#define TEST(fn) cmocka_unit_test_setup(fn, place_clear)

int plans_run(void)
{
	const struct CMUnitTest tests[] = {TEST(test_plans)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
