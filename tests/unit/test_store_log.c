/* SPDX-License-Identifier: Apache-2.0 */
/* The exec log: what is added, paged, searched, and forgotten with its record. */
#include <sys/syscall.h>

#include "store_place.h"

static int n_syncs;

/* Instead of libc's: SQLite is linked into this program. */
int fdatasync(int fd)
{
	__atomic_add_fetch(&n_syncs, 1, __ATOMIC_SEQ_CST);
	return (int)syscall(SYS_fdatasync, fd);
}

static int on_log(const struct store_log_row *r, void *arg)
{
	str_printf(arg, "%s/%lld %s\n", r->sandbox, (long long)r->seq, r->json);
	return 0;
}

static int on_any_metric(const struct store_metric *metric, void *arg)
{
	return 0;
}

static int on_any_object(const struct store_object *object, void *arg)
{
	return 0;
}

static int on_any_sandbox(const struct store_sandbox *sandbox, void *arg)
{
	return 0;
}

static const struct store_log_row rows[] = {
	{.sandbox = "sb-a",
		.seq = 3,
		.id = 1,
		.exec = "ex1",
		.source = "agent",
		.operation = "exec",
		.has_exit_code = true,
		.exit_code = 4,
		.at_ms = 1000,
		.duration_ms = 5,
		.search = {"git PUSH origin \"main\"", sizeof("git PUSH origin \"main\"") - 1},
		.json = "{\"id\":1}"},
	{.sandbox = "sb-a",
		.seq = 7,
		.id = 2,
		.exec = "ex2",
		.source = "agent",
		.operation = "exec",
		.output_truncated = true,
		.at_ms = 2000,
		.search = {"rm -rf 100%_done\\now", sizeof("rm -rf 100%_done\\now") - 1},
		.json = "{\"id\":2}"},
	{.sandbox = "sb-b",
		.seq = 7,
		.id = 1,
		.exec = "ex3",
		.source = "agent",
		.operation = "view",
		.at_ms = 1500,
		.search = {"/etc/\xc3\xa9t\xc3\xa9", sizeof("/etc/\xc3\xa9t\xc3\xa9") - 1},
		.json = "{\"id\":1}"},
	{.sandbox = "sb-gone",
		.seq = 1,
		.id = 1,
		.exec = "ex4",
		.source = "agent",
		.operation = "ls",
		.at_ms = 1,
		.search = {"", sizeof("") - 1},
		.json = "{}"},
	{.sandbox = "sb-a",
		.seq = 9,
		.id = 3,
		.exec = "ex5",
		.source = "human_takeover",
		.operation = "exec",
		.at_ms = 3000,
		.search = {"bad \xff byte", sizeof("bad \xff byte") - 1},
		.json = "{\"id\":3}"},
};

static void test_log(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_query q = {.account = "a", .sandbox = "sb-a", .limit = 2};

	place_people(store);
	assert_int_equal(
		store_log_add(store, rows, 5, &err), 4); /* not that of an unknown sandbox */
	assert_int_equal(store_log_add(store, rows, 5, &err), 0);
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 2);
	assert_told(&out, "sb-a/3 {\"id\":1}\nsb-a/7 {\"id\":2}\n");
	q.is_newest_first = true;
	q.sandbox = NULL;
	q.limit = 1000;
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 3);
	assert_told(&out, "sb-a/9 {\"id\":3}\nsb-a/7 {\"id\":2}\nsb-a/3 {\"id\":1}\n");
	q.from_ms = 2000;
	q.to_ms = 3000;
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 1);
	assert_told(&out, "sb-a/7 {\"id\":2}\n");
	q = (struct store_query){.account = "a", .sandbox = "sb-a", .limit = 2, .offset = 1};
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 2);
	assert_told(&out, "sb-a/7 {\"id\":2}\nsb-a/9 {\"id\":3}\n");
	q.q = "push"; /* of what is found */
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 0);
	q.offset = STORE_OFFSET_MAX + 1;
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), -EINVAL);
	q = (struct store_query){.account = "a", .sandbox = "sb-b", .limit = 10};
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 0);
	q.limit = 1001;
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), -EINVAL);
	assert_int_equal(store_log_get(store, "a", "sb-a", "ex2", on_log, &out, &err), 0);
	assert_told(&out, "sb-a/7 {\"id\":2}\n");
	assert_int_equal(store_log_get(store, "b", "sb-a", "ex2", on_log, &out, &err), -ENOENT);
}

static int on_columns(const struct store_log_row *r, void *arg)
{
	str_printf(arg, "%lld %s %s %s %s %d %lld %d %lld %lld;", (long long)r->id, r->account,
		r->exec, r->source, r->operation, r->has_exit_code, (long long)r->exit_code,
		r->output_truncated, (long long)r->at_ms, (long long)r->duration_ms);
	return 0;
}

static void test_log_columns(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_query q = {.account = "a", .limit = 2};

	place_people(store);
	assert_int_equal(store_log_add(store, rows, 2, &err), 2);
	assert_int_equal(store_log_page(store, &q, on_columns, &out, &err), 2);
	assert_told(&out, "1 a ex1 agent exec 1 4 0 1000 5;2 a ex2 agent exec 0 0 1 2000 0;");
}

/* What a search finds must not depend on the database. */
static void test_log_search(void **state)
{
	static const struct {
		const char *q;
		int n;
	} cases[] = {
		{"push", 1},
		{"PUSH", 1},
		{"Git Push", 1},
		{"t p", 1},
		{"sh ori", 1},
		{"pushorigin", 0},
		{"\"main\"", 1},
		{"\"", 1},
		{"main\" OR \"rf", 0},
		{"push OR rf", 0},
		{"pu*", 0},
		{"%", 1},
		{"100%", 1},
		{"100_", 0},
		{"%_d", 1},
		{"e\\n", 1},
		{"\\", 1},
		{"-rf", 1},
		{" -r", 1},
		{"%_d", 1},
		{"\"\"\"", 0},
		{"---", 0},
		{"abc---", 0},
		{"-", 1},
		{"rm", 1},
		{"r", 2},
		{" ", 3},
		{"bad \xef\xbf\xbd", 1},
		{"bad \xff", 1},
		{"zzz", 0},
		{"'; DROP TABLE log; --", 0},
		{"search:rm", 0},
		{"\xc3\xa9t\xc3\xa9", 0},
		{NULL, 3},
		{"", 3},
	};
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};

	place_people(store);
	assert_int_equal(store_log_add(store, rows, 5, &err), 4);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) * 4; i++) {
		struct store_query q = {.account = "a",
			.q = cases[i / 4].q,
			.limit = 10,
			.sandbox = i % 2 ? "sb-a" : NULL,
			.is_newest_first = i % 4 / 2};
		int n = store_log_page(store, &q, on_log, &out, &err);

		if (n != cases[i / 4].n)
			fail_msg("'%s' found %d, not %d", q.q, n, cases[i / 4].n);
	}
	str_done(&out);
	assert_int_equal(store_log_page(store,
				 &(struct store_query){
					 .account = "b", .q = "\xc3\xa9t\xc3\xa9", .limit = 10},
				 on_log, &out, &err),
		1);
	assert_told(&out, "sb-b/7 {\"id\":1}\n");
	/* The index forgets what the log forgets. */
	assert_good(store_sandbox_forget(store, "a", "sb-a", "removed", 5, &err));
	assert_int_equal(store_log_page(store,
				 &(struct store_query){.account = "a", .q = "push", .limit = 10},
				 on_log, &out, &err),
		0);
}

static void test_forget(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_sandbox again = {
		.id = "sb-a", .account = "a", .name = "x", .state = "ended", .place = ""};
	struct store_object o = {
		.account = "a", .kind = "rules", .sandbox = "sb-a", .name = "r", .json = "{}"};
	struct store_query q = {.account = "a", .sandbox = "sb-a", .limit = 10};

	place_people(store);
	assert_int_equal(store_log_add(store, rows, 5, &err), 4);
	assert_int_equal(
		store_metric_add(store, &(struct store_metric){"sb-a", "{}", 1}, 1, &err), 1);
	assert_int_equal(store_object_put(store, &o, &err), 0);
	assert_int_equal(store_sandbox_forget(store, "b", "sb-a", "aged out", 5, &err), -ENOENT);
	assert_int_equal(store_sandbox_forget(store, "a", "sb-a", "aged out", 5, &err), 0);
	assert_int_equal(store_sandbox_forget(store, "a", "sb-a", "aged out", 5, &err), -ENOENT);
	/* All of it is gone and stays so, whatever is indexed again. */
	assert_int_equal(store_sandbox_put(store, &again, &err), 0);
	assert_int_equal(store_log_add(store, rows, 2, &err), 0);
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 0);
	assert_int_equal(store_metric_page(store, SAMPLES_OF(0, 0), on_any_metric, &out, &err), 0);
	assert_int_equal(store_object_get(store, &o, on_any_object, &out, &err), -ENOENT);
	assert_int_equal(
		store_sandbox_get(store, "a", "sb-a", on_any_sandbox, &out, &err), -ENOENT);
	assert_int_equal(store_log_get(store, "b", "sb-b", "ex3", on_log, &out, &err), 0);
	str_done(&out);
	/* Until the tombstone itself is old. */
	assert_int_equal(
		store_expire(store, &(struct store_expiry){.tombstones_before_ms = 6}, &err), 1);
	assert_int_equal(store_sandbox_put(store, &again, &err), 1);
}

/* What the store has of a sandbox, against what there is to be: rows of one seq that say something else go, and those of
 * others, up to where there is something to hold them against. */
static void test_weed(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_log_row there[] = {rows[0], rows[1], rows[1], rows[1]};
	struct store_event life[] = {
		{.sandbox = "sb-a", .seq = 1, .at_ms = 10, .kind = "k", .json = "{1}"},
		{.sandbox = "sb-a", .seq = 2, .at_ms = 20, .kind = "k", .json = "{2}"}};
	struct store_query q = {.account = "a", .sandbox = "sb-a", .limit = 10};

	place_people(store);
	there[1].seq = 5;
	there[2].seq = 9;
	there[3].seq = 4;
	assert_int_equal(store_log_add(store, there, 4, &err), 4); /* 3, 5, 9 and 4 */
	assert_int_equal(store_log_weed(store, "sb-a", 0, 3, rows, 1, &err), 0);
	assert_int_equal(store_log_weed(store, "sb-a", 3, 7, rows + 1, 1, &err), 2); /* 4, 5 */
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 2);
	assert_told(&out, "sb-a/3 {\"id\":1}\nsb-a/9 {\"id\":2}\n");
	assert_int_equal(store_log_weed(store, "sb-a", 7, INT64_MAX, NULL, 0, &err), 1);
	for (int i = 0; i < 7; i++) { /* each column */
		there[0] = rows[0];
		there[0].exit_code += i == 0;
		there[0].has_exit_code = i != 1;
		there[0].at_ms += i == 2;
		there[0].output_truncated = i == 3;
		there[0].json = i == 4 ? "{}" : rows[0].json;
		there[0].search.len -= i == 5;
		there[0].id += i == 6;
		assert_int_equal(store_log_weed(store, "sb-a", 0, 3, there, 1, &err), 1);
		assert_int_equal(store_log_add(store, rows, 1, &err), 1);
	}
	/* An index of the search knows the row that is there again. */
	q.q = "push";
	assert_int_equal(store_log_page(store, &q, on_log, &out, &err), 1);
	assert_told(&out, "sb-a/3 {\"id\":1}\n");

	assert_int_equal(store_lifecycle_add(store, life, 2, &err), 2);
	assert_int_equal(store_lifecycle_weed(store, "sb-a", 0, INT64_MAX, life, 2, &err), 0);
	life[1].at_ms = 21;
	assert_int_equal(store_lifecycle_weed(store, "sb-a", 0, INT64_MAX, life, 2, &err), 1);
	assert_int_equal(store_lifecycle_weed(store, "sb-a", 0, INT64_MAX, NULL, 0, &err), 1);
	assert_int_equal(store_log_weed(store, "sb-b", 0, INT64_MAX, NULL, 0, &err), 0);
}

static int syncs_since(int before)
{
	return __atomic_load_n(&n_syncs, __ATOMIC_SEQ_CST) - before;
}

/* What records hold waits for no disk; what only the database holds does, and takes along what came before. */
static void test_log_is_light(void **state)
{
	struct store *store = *state;
	struct store_event lifecycle = {
		.account = "a", .sandbox = "sb-a", .seq = 1, .at_ms = 1, .kind = "k", .json = "{}"};
	struct err err;
	int before;

	place_only_sqlite("every commit of its server is on disk");
	place_people(store);
	assert_good(store_log_add(store, rows, 1, &err)); /* the file's first pages are made */
	before = syncs_since(0);
	assert_int_equal(store_log_add(store, rows + 1, 1, &err), 1);
	assert_int_equal(store_lifecycle_add(store, &lifecycle, 1, &err), 1);
	assert_int_equal(
		store_metric_add(store, &(struct store_metric){"sb-a", "{}", 1}, 1, &err), 1);
	assert_int_equal(syncs_since(before), 0);
	assert_int_equal(store_audit_add(store, &lifecycle, 1, &err), 1);
	assert_int_equal(syncs_since(before), 1);
	assert_int_equal(store_log_add(store, rows + 2, 1, &err), 1);
	assert_int_equal(syncs_since(before), 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_setup, place_teardown)

int log_run(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_log),
		TEST(test_log_is_light),
		TEST(test_log_columns),
		TEST(test_log_search),
		TEST(test_forget),
		TEST(test_weed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
