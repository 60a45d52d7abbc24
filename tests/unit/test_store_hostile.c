/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from a sandbox or from somebody else's account: bytes of any kind, batches with a bad row, another account's
 * name or none. */
#include "store/db_escape.h"
#include "store_place.h"

static void assert_kept(struct slice raw, const char *kept)
{
	struct str out = {0}, back = {0};

	db_escape_add(&out, raw);
	assert_true(slice_is(str_slice(&out), kept));
	assert_int_equal(db_escape_is_needed(raw), !slice_is(raw, kept));
	db_escape_undo(&back, str_slice(&out));
	assert_true(slice_eq(str_slice(&back), raw));
	str_done(&out);
	str_done(&back);
}

static void test_escaping(void **state)
{
	static const struct {
		struct slice raw;
		const char *kept;
	} cases[] = {
		{{"", 0}, ""},
		{{"a\xc3\xa9\xf0\x9f\xa7\xaa", 7}, "a\xc3\xa9\xf0\x9f\xa7\xaa"},
		{{"a\0b", 3}, "a\xf4\x8f\xb8\x80"
			      "b"},
		{{"\xff", 1}, "\xf4\x8f\xbb\xbf"},
		{{"\xc3", 1}, "\xf4\x8f\xbb\x83"},
		{{"\xed\xa0\x80", 3}, "\xf4\x8f\xbb\xad\xf4\x8f\xba\xa0\xf4\x8f\xba\x80"},
		/* The characters that we use, and their neighbours. */
		{{"\xf4\x8f\xb8\x80", 4},
			"\xf4\x8f\xbb\xb4\xf4\x8f\xba\x8f\xf4\x8f\xba\xb8\xf4\x8f\xba\x80"},
		{{"\xf4\x8f\xbb\xbf", 4},
			"\xf4\x8f\xbb\xb4\xf4\x8f\xba\x8f\xf4\x8f\xba\xbb\xf4\x8f\xba\xbf"},
		{{"\xf4\x8f\xb7\xbf", 4}, "\xf4\x8f\xb7\xbf"},
		{{"\xf4\x8f\xbc\x80", 4}, "\xf4\x8f\xbc\x80"},
		{{"\xf4\x8f\xb8", 3}, "\xf4\x8f\xbb\xb4\xf4\x8f\xba\x8f\xf4\x8f\xba\xb8"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_kept(cases[i].raw, cases[i].kept);
}

/* Every byte, alone and doubled, and what looks like our own mark. */
static size_t make_bytes(char *bytes)
{
	static const char marks[] = "\xf4\x8f\xb8\x80 \xf4\x8f\xbb\xbf \xf4\x8f";
	size_t n = 0;

	for (int i = 0; i < 256; i++)
		bytes[n++] = (char)i;
	for (int i = 0; i < 512; i++)
		bytes[n++] = (char)(i / 2);
	memcpy(bytes + n, marks, sizeof(marks) - 1);
	return n + sizeof(marks) - 1;
}

static struct db *open_db(void)
{
	const struct db_driver *driver = place.is_postgres ? &db_postgres : &db_sqlite;
	struct db *db = NULL;
	struct err err = {0};

	assert_good(driver->open(place.is_postgres ? place.where : place.where + strlen("sqlite:"),
		DB_WRITE, &db, &err));
	return db;
}

static int on_two_texts(const struct db_value *row, void *arg)
{
	const struct slice *want = arg;

	assert_true(slice_eq(row[0].text, *want));
	assert_true(slice_is(row[1].text, "plain"));
	assert_true(slice_eq(row[2].text, *want));
	assert_int_equal(row[2].text.p[row[2].text.len], 0);
	return 0;
}

/* A row's texts, NUL among them, come back the same, and are found by what they are. */
static void test_any_bytes(void **state)
{
	static const struct db_sql add = {
		.text = "INSERT INTO idempotency (account, name, request, started_ms, expires_ms,"
			" status, answer) VALUES ('x', $1, $2, 1, 1, 1, $1)"};
	static const struct db_sql find = {
		.text = "SELECT name, request, answer FROM idempotency WHERE name = $1"};
	char bytes[1024];
	struct slice all = {bytes, make_bytes(bytes)};
	struct db_value value = {.is_text = true, .text = all};
	struct err err = {0};
	struct db *db = open_db();

	assert_good(db_begin(db, &err));
	assert_int_equal(db_run(db, &add, NULL, NULL, value, db_text("plain")), 1);
	assert_int_equal(db_run(db, &find, on_two_texts, &all, value), 1);
	value.text.len--;
	assert_int_equal(db_run(db, &find, on_two_texts, &all, value), 0);
	db_rollback(db);
	db_close(db);
}

static int on_row(const struct store_log_row *row, void *arg)
{
	str_printf(arg, "%s|%s|%s\n", row->exec, row->operation, row->json);
	return 0;
}

static int on_sandbox(const struct store_sandbox *sandbox, void *arg)
{
	str_puts(arg, sandbox->name);
	return 0;
}

static void test_hostile_rows(void **state)
{
	static const char name[] = "\x01\xff\xc3( \xed\xa0\x80 \xf4\x8f\xb8\x80";
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_label label = {"k\xff", name};
	struct store_sandbox sb = {.id = "sb-h",
		.account = "a",
		.name = name,
		.state = "running",
		.place = name,
		.labels = &label,
		.n_labels = 1};
	struct store_log_row row = {.sandbox = "sb-h",
		.seq = 1,
		.exec = name,
		.source = "agent",
		.operation = name,
		.search = {"rm \0\xff"
			   "dir\nX",
			10},
		.json = name};
	struct store_query q = {.account = "a", .sandbox = "sb-h", .limit = 9};

	place_people(store);
	assert_int_equal(store_sandbox_put(store, &sb, &err), 1);
	assert_int_equal(store_log_add(store, &row, 1, &err), 1);
	assert_int_equal(store_sandbox_get(store, "a", "sb-h", on_sandbox, &out, &err), 0);
	assert_told(&out, name);
	assert_int_equal(store_sandbox_list(store,
				 &(struct store_sandbox_query){.account = "a",
					 .limit = 9,
					 .label_name = "k\xff",
					 .label_value = name},
				 on_sandbox, &out, &err),
		1);
	assert_told(&out, name);
	assert_int_equal(store_log_page(store, &q, on_row, &out, &err), 1);
	assert_non_null(strstr(out.p, name));
	assert_int_equal(out.len, 3 * strlen(name) + 3);
	str_done(&out);
	assert_int_equal(store_log_get(store, "a", "sb-h", name, on_row, &out, &err), 0);
	/* NUL and line ends are blanks to who searches, other bytes are U+FFFD. */
	q.q = "m  \xef\xbf\xbd"
	      "dir x";
	assert_int_equal(store_log_page(store, &q, on_row, &out, &err), 1);
	q.q = "dirx";
	assert_int_equal(store_log_page(store, &q, on_row, &out, &err), 0);
	str_done(&out);
}

static int on_object(const struct store_object *object, void *arg)
{
	str_puts(arg, object->json);
	return 0;
}

/* Texts that cannot be kept are refused by both, in the same words; others come back as they were. */
static void test_texts(void **state)
{
	struct store *store = *state;
	struct str out = {0}, big = {0};
	struct err err = {0};
	char longer[STORE_NAME_MAX + 2];
	struct store_object o = {.account = "a", .kind = "rules", .name = "n", .changed_ms = 1};

	place_people(store);
	for (int i = 0; i <= STORE_JSON_MAX; i++)
		str_putc(&big, '\xff'); /* four bytes each where they are kept */
	o.json = big.p;
	assert_int_equal(store_object_put(store, &o, &err), -EINVAL);
	assert_string_equal(
		err.msg, "a text of 1048577 bytes is longer than the database keeps (1048576)");
	big.p[STORE_JSON_MAX] = 0;
	assert_int_equal(store_object_put(store, &o, &err), 0);
	assert_int_equal(store_object_get(store, &o, on_object, &out, &err), 0);
	assert_told(&out, big.p);
	memset(longer, 'n', sizeof(longer));
	longer[STORE_NAME_MAX + 1] = 0;
	o.name = longer;
	assert_int_equal(store_object_put(store, &o, &err), -EINVAL);
	longer[STORE_NAME_MAX] = 0;
	o.json = "'\"\\\t\n\x01 \xf0\x9f\xa7\xaa $1 ?1 %s";
	assert_int_equal(store_object_put(store, &o, &err), 0);
	assert_int_equal(store_object_get(store, &o, on_object, &out, &err), 0);
	assert_told(&out, o.json);
	str_done(&big);
}

/* A batch is added whole or not at all, and what spoilt it spoils nothing that comes after. */
static void test_bad_row_in_batch(void **state)
{
	struct store *store = *state;
	struct store_log_row rows[40];
	struct str big = {0}, out = {0};
	struct err err = {0};
	struct store_query q = {.account = "a", .limit = 100};

	place_people(store);
	for (int i = 0; i <= STORE_JSON_MAX; i++)
		str_putc(&big, 'x');
	for (int i = 0; i < 40; i++)
		rows[i] = (struct store_log_row){.sandbox = "sb-a",
			.seq = i,
			.exec = "e",
			.source = "agent",
			.operation = "exec",
			.json = i == 25 ? big.p : "{}"};
	assert_int_equal(store_log_add(store, rows, 40, &err), -EINVAL);
	assert_int_equal(store_log_page(store, &q, on_row, &out, &err), 0);
	rows[25].json = "{}";
	assert_int_equal(store_log_add(store, rows, 40, &err), 40);
	assert_int_equal(store_log_page(store, &q, on_row, &out, &err), 40);
	rows[3].seq = 100;
	assert_int_equal(store_log_add(store, rows, 40, &err), 1);
	str_done(&big);
	str_done(&out);
}

static void fill_names(struct db_value *values, size_t row, void *arg)
{
	values[0] = db_int((int64_t)row);
	values[1] = db_text(row == *(size_t *)arg ? "no role" : "admin");
}

/* One that the server itself refuses, in the midst of what was sent already. */
static void test_refused_row_in_batch(void **state)
{
	static const struct db_sql add = {
		.text = "INSERT INTO api_key (id, account, hash, prefix, name, role, rate_limit,"
			" created_ms, used_ms, revoked_ms)"
			" VALUES (CAST($1 AS TEXT), 'a', CAST($1 AS TEXT), '', '', $2, 1, 1, 1, "
			"1)"};
	static const struct db_sql count = {.text = "SELECT count(*) FROM api_key"};
	size_t bad = 500;
	int changed[1000];
	struct db_many many = {.n_values = 2,
		.n_rows = 1000,
		.fill = fill_names,
		.arg = &bad,
		.ret_changed = changed};
	struct err err = {0};
	struct db *db = open_db();
	int64_t n = 0;

	place_people(*state);
	assert_good(db_begin(db, &err));
	assert_int_equal(db_run_many(db, &add, &many), -EEXIST);
	assert_true(db->is_failed);
	assert_false(db->is_lost);
	db_rollback(db);
	bad = 1000;
	assert_good(db_begin(db, &err));
	assert_int_equal(db_run_many(db, &add, &many), 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(changed[i], 1);
	assert_good(db_commit(db));
	assert_good(db_begin(db, &err));
	assert_int_equal(db_run_values(db, &count, NULL, 0, db_row_int, &n), 1);
	assert_int_equal(n, 1002);
	db_rollback(db);
	db_close(db);
}

static int told;

static int on_key(const struct store_key *key, void *arg)
{
	told++;
	return 0;
}

static int on_told_sandbox(const struct store_sandbox *sandbox, void *arg)
{
	told++;
	return 0;
}

static int on_told_row(const struct store_log_row *row, void *arg)
{
	told++;
	return 0;
}

static int on_event(const struct store_event *event, void *arg)
{
	told++;
	return 0;
}

static int on_told_object(const struct store_object *object, void *arg)
{
	told++;
	return 0;
}

static int on_delivery(const struct store_delivery *delivery, void *arg)
{
	told++;
	return 0;
}

static int on_request(const struct store_request *request, void *arg)
{
	told++;
	return 0;
}

static int on_metric(const struct store_metric *metric, void *arg)
{
	told++;
	return 0;
}

#define SANDBOX_QUERY \
	&(struct store_sandbox_query) \
	{ \
		.account = account, .limit = 9 \
	}
#define QUERY(of) \
	&(struct store_query) \
	{ \
		.account = account, .sandbox = (of), .limit = 9 \
	}
#define SEARCH \
	&(struct store_query) \
	{ \
		.account = account, .q = "make", .limit = 9 \
	}
#define OBJECT(of) \
	&(struct store_object) \
	{ \
		.account = account, .kind = "secret", .name = "n", .sandbox = (of), .json = "{}" \
	}
#define OBJECTS \
	&(struct store_object) \
	{ \
		.account = account, .kind = "secret" \
	}
#define DELIVERIES \
	&(struct store_delivery) \
	{ \
		.account = account, .webhook = "w" \
	}
#define REQUEST \
	&(struct store_request) \
	{ \
		.account = account, .name = "n", .started_ms = 1, .expires_ms = 9, .status = 1 \
	}
#define METRICS \
	&(struct store_metric_query) \
	{ \
		.account = account, .sandbox = "sb-a", .limit = 9 \
	}
#define KEY \
	&(struct store_key) \
	{ \
		.account = account, .id = "k-new", .hash = "h-new", .role = "admin" \
	}
#define SANDBOX \
	&(struct store_sandbox) \
	{ \
		.account = account, .id = "sb-a" \
	}

/* Every call that takes an account, asked for what is a's. Returns what the call does. */
#define CALL(name, expression) \
	static int64_t call_##name(struct store *s, const char *account, struct err *err) \
	{ \
		return expression; \
	}
CALL(key_add, store_key_add(s, KEY, err))
CALL(key_list, store_key_list(s, account, "k-", 1, on_key, NULL, err))
CALL(key_get, store_key_get(s, account, "k-a", on_key, NULL, err))
CALL(key_touch, store_key_touch(s, account, "k-a", 99, err))
CALL(key_revoke, store_key_revoke(s, account, "k-a", 99, err))
CALL(sandbox_put, store_sandbox_put(s, SANDBOX, err))
CALL(sandbox_get, store_sandbox_get(s, account, "sb-a", on_told_sandbox, NULL, err))
CALL(sandbox_list, store_sandbox_list(s, SANDBOX_QUERY, on_told_sandbox, NULL, err))
CALL(sandbox_count, store_sandbox_count(s, account, "running", err))
CALL(sandbox_forget, store_sandbox_forget(s, account, "sb-a", "r", 1, err))
CALL(log_page, store_log_page(s, QUERY(NULL), on_told_row, NULL, err))
CALL(log_page_of, store_log_page(s, QUERY("sb-a"), on_told_row, NULL, err))
CALL(log_search, store_log_page(s, SEARCH, on_told_row, NULL, err))
CALL(log_get, store_log_get(s, account, "sb-a", "e", on_told_row, NULL, err))
CALL(lifecycle_page, store_lifecycle_page(s, QUERY("sb-a"), on_event, NULL, err))
CALL(audit_page, store_audit_page(s, QUERY(NULL), on_event, NULL, err))
CALL(object_put, store_object_put(s, OBJECT("sb-a"), err))
CALL(object_get, store_object_get(s, OBJECT(NULL), on_told_object, NULL, err))
CALL(object_list, store_object_list(s, OBJECTS, 9, on_told_object, NULL, err))
CALL(object_list_all, store_object_list_all(s, OBJECTS, 9, on_told_object, NULL, err))
CALL(object_change, store_object_change(s, OBJECT(NULL), err))
CALL(object_remove, store_object_remove(s, OBJECT(NULL), err))
CALL(delivery_again, store_delivery_again(s, DELIVERIES, err))
CALL(delivery_page, store_delivery_page(s, DELIVERIES, 9, on_delivery, NULL, err))
CALL(request_finish, store_request_finish(s, REQUEST, err))
CALL(request_drop, store_request_drop(s, REQUEST, err))
CALL(request_begin, store_request_begin(s, REQUEST, on_request, NULL, err))
CALL(metric_page, store_metric_page(s, METRICS, on_metric, NULL, err))

static const struct {
	int64_t (*call)(struct store *s, const char *account, struct err *err);
	int64_t of_other; /* what b, who has nothing but a key and a sandbox, gets */
	int n_told;       /* what b is told: its own key and sandbox, in lists */
} account_calls[] = {
	{call_key_list, 1, 1}, {call_key_get, -ENOENT, 0}, {call_key_touch, 0, 0},
	{call_key_revoke, -ENOENT, 0}, {call_sandbox_put, -EEXIST, 0},
	{call_sandbox_get, -ENOENT, 0}, {call_sandbox_list, 1, 1}, {call_sandbox_count, 1, 0},
	{call_sandbox_forget, -ENOENT, 0}, {call_log_page, 0, 0}, {call_log_page_of, 0, 0},
	{call_log_search, 0, 0}, {call_log_get, -ENOENT, 0}, {call_lifecycle_page, 0, 0},
	{call_audit_page, 0, 0}, {call_object_put, -ENOENT, 0}, {call_object_get, -ENOENT, 0},
	{call_object_list, 0, 0}, {call_object_list_all, 0, 0}, {call_object_change, -ENOENT, 0},
	{call_object_remove, -ENOENT, 0}, {call_delivery_again, -ENOENT, 0},
	{call_delivery_page, 0, 0}, {call_request_finish, -ESTALE, 0},
	{call_request_drop, -ESTALE, 0}, {call_request_begin, STORE_ONCE_NEW, 0},
	{call_metric_page, 0, 0}, {call_key_add, 0, 0}, /* a key of b's own */
};

/* All that a has, one of each. */
static void add_things(struct store *store)
{
	const char *account = "a";
	struct err err = {0};
	struct store_log_row row = {.sandbox = "sb-a",
		.seq = 1,
		.exec = "e",
		.source = "agent",
		.operation = "exec",
		.search = {"make", 4},
		.json = "{}"};
	struct store_event life = {.sandbox = "sb-a", .seq = 1, .kind = "k", .json = "{}"};
	struct store_event audit = {.account = "a", .seq = 1, .kind = "k", .json = "{}"};
	struct store_delivery d = {.id = "d", .account = "a", .webhook = "w", .json = "{}"};

	place_people(store);
	assert_int_equal(store_log_add(store, &row, 1, &err), 1);
	assert_int_equal(store_lifecycle_add(store, &life, 1, &err), 1);
	assert_int_equal(store_audit_add(store, &audit, 1, &err), 1);
	assert_int_equal(store_object_put(store, OBJECT(NULL), &err), 0);
	assert_int_equal(store_delivery_add(store, &d, 1, &err), 1);
	d.attempt = 1;
	d.state = "sent";
	assert_int_equal(
		store_delivery_claim(store, CLAIM_OF(1, 1, "", 1), on_delivery, NULL, &err), 1);
	assert_int_equal(store_delivery_finish(store, &d, &err), 0);
	assert_int_equal(
		store_metric_add(store, &(struct store_metric){"sb-a", "{}", 1}, 1, &err), 1);
	assert_int_equal(
		store_request_begin(store, REQUEST, on_request, NULL, &err), STORE_ONCE_NEW);
}

static void test_accounts_apart(void **state)
{
	static const char *const nobodies[] = {NULL, ""};
	struct store *store = *state;
	struct err err = {0};

	add_things(store);
	for (size_t i = 0; i < sizeof(account_calls) / sizeof(account_calls[0]); i++) {
		for (size_t j = 0; j < 2; j++) {
			assert_int_equal(account_calls[i].call(store, nobodies[j], &err), -EINVAL);
			assert_string_equal(err.msg, "no account is named");
		}
		told = 0;
		if (account_calls[i].call(store, "b", &err) != account_calls[i].of_other)
			fail_msg("call %zu: not %lld", i, (long long)account_calls[i].of_other);
		assert_int_equal(told, account_calls[i].n_told);
	}
	/* It is all there still. */
	told = 0;
	assert_int_equal(call_log_search(store, "a", &err), 1);
	assert_int_equal(call_log_get(store, "a", &err), 0);
	assert_int_equal(call_lifecycle_page(store, "a", &err), 1);
	assert_int_equal(call_audit_page(store, "a", &err), 1);
	assert_int_equal(call_object_get(store, "a", &err), 0);
	assert_int_equal(call_delivery_page(store, "a", &err), 1);
	assert_int_equal(call_metric_page(store, "a", &err), 1);
	assert_int_equal(told, 7);
	assert_int_equal(call_request_drop(store, "a", &err), 0);
}

static void test_nameless(void **state)
{
	struct store *store = *state;
	struct err err = {0};

	assert_int_equal(
		store_account_add(store, &(struct store_account){.id = "", .name = "x"}, &err),
		-EINVAL);
	assert_int_equal(
		store_account_add(store, &(struct store_account){.id = "x", .name = ""}, &err),
		-EINVAL);
	assert_int_equal(
		store_sandbox_put(store, &(struct store_sandbox){.account = "a", .id = ""}, &err),
		-EINVAL);
	assert_string_equal(err.msg, "a sandbox has an id");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_setup, place_teardown)

int hostile_run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escaping),
		TEST(test_any_bytes),
		TEST(test_hostile_rows),
		TEST(test_texts),
		TEST(test_bad_row_in_batch),
		TEST(test_refused_row_in_batch),
		TEST(test_accounts_apart),
		TEST(test_nameless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
