/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with an Idempotency-Key, on a real database: done once, answered alike, and nobody else's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/http_internal.h"
#include "server/once.h"
#include "server/route.h"
#include "util/mem.h"

static char dir[40];

static int open_store(void **state)
{
	static struct server server;
	struct err err = {0};
	scoped_mem char *where = NULL;

	snprintf(dir, sizeof(dir), "/tmp/test-once-XXXXXX");
	assert_non_null(mkdtemp(dir));
	where = mem_printf("sqlite:%s/db", dir);
	if (store_open(where, &server.store, &err) < 0)
		fail_msg("%s", err.msg);
	for (const char *const *id = (const char *const[]){"a", "b", NULL}; *id; id++)
		assert_int_equal(store_account_add(server.store,
					 &(struct store_account){.id = *id, .name = *id}, &err),
			0);
	*state = &server;
	return 0;
}

static int close_store(void **state)
{
	struct server *server = *state;

	store_free(server->store);
	for (const char *const *end = (const char *const[]){"", "-wal", "-shm", "-lock", NULL};
		*end; end++) {
		scoped_mem char *path = mem_printf("%s/db%s", dir, *end);

		(void)unlink(path); /* some are not there */
	}
	return rmdir(dir);
}

/* A request as the loop hands it over. */
struct asked {
	struct call call;
	struct exchange exchange;
	struct route route;
};

static struct asked *ask(struct server *server, const char *account, const char *key,
	const char *path, const char *body)
{
	struct asked *asked = new0(struct asked);
	struct http1_fault fault;

	asked->route = (struct route){.method = "POST", .path = "/x", .is_creating = true};
	str_printf(&asked->exchange.head_bytes, "POST %s HTTP/1.1\r\nHost: h\r\n%s\r\n", path, key);
	assert_int_equal(http1_read_request(str_slice(&asked->exchange.head_bytes),
				 &asked->exchange.head, &fault),
		0);
	str_puts(&asked->exchange.body, body);
	asked->call = (struct call){.server = server,
		.exchange = &asked->exchange,
		.route = &asked->route,
		.path = mem_dup(path)};
	snprintf(asked->call.caller.account, sizeof(asked->call.caller.account), "%s", account);
	return asked;
}

static void forget(struct asked *asked)
{
	http1_head_done(&asked->exchange.head);
	str_done(&asked->exchange.head_bytes);
	str_done(&asked->exchange.body);
	str_done(&asked->call.out);
	free(asked->call.path);
	free(asked->call.once_name);
	free(asked);
}

static void end(struct asked *asked, unsigned status, const char *type, const char *answer)
{
	asked->call.status = status;
	asked->call.type = type;
	str_puts(&asked->call.out, answer);
	once_end(&asked->call);
	forget(asked);
}

#define KEY(name) "Idempotency-Key: " name "\r\n"

static int begin(struct asked *asked)
{
	struct err err;

	return once_begin(&asked->call, &err);
}

/* Begins and forgets: what became of it, and the answer where there is one. */
static int begin_only(struct asked *asked, unsigned *ret_status, char answer[32])
{
	int r = begin(asked);

	*ret_status = asked->call.status;
	snprintf(answer, 32, "%s", asked->call.out.p ? asked->call.out.p : "");
	asked->call.status = 200;
	if (r == 0)
		once_end(&asked->call);
	forget(asked);
	return r;
}

static void test_once(void **state)
{
	struct asked *first = ask(*state, "a", KEY("one"), "/x", "{}");
	unsigned status;
	char answer[32];

	assert_int_equal(begin(first), 0);
	assert_int_equal(
		begin_only(ask(*state, "a", KEY("one"), "/x", "{}"), &status, answer), -EBUSY);
	end(first, 201, NULL, "{\"id\":1}");
	assert_int_equal(begin_only(ask(*state, "a", KEY("one"), "/x", "{}"), &status, answer), 1);
	assert_int_equal(status, 201);
	assert_string_equal(answer, "{\"id\":1}");
	/* another body, another path */
	assert_int_equal(
		begin_only(ask(*state, "a", KEY("one"), "/x", "{} "), &status, answer), -EINVAL);
	assert_int_equal(status, 422);
	assert_int_equal(
		begin_only(ask(*state, "a", KEY("one"), "/y", "{}"), &status, answer), -EINVAL);
	assert_int_equal(status, 422);
	/* another account's is another one */
	assert_int_equal(begin_only(ask(*state, "b", KEY("one"), "/x", "{}"), &status, answer), 0);
}

/* What failed may be tried again, with the same key and also with another body. */
static void test_failures_are_not_kept(void **state)
{
	static const struct {
		unsigned status;
		const char *type;
	} failures[] = {{500, "application/problem+json"}, {429, NULL},
		{400, "application/problem+json"}, {503, NULL}};

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		struct asked *asked = ask(*state, "a", KEY("again"), "/x", i % 2 ? "{}" : "{ }");

		assert_int_equal(begin(asked), 0);
		end(asked, failures[i].status, failures[i].type, "{}");
	}
}

static void test_keys(void **state)
{
	static const struct {
		const char *fields;
		int result;
		bool is_kept;
	} rows[] = {
		{"", 0, false},
		{KEY("k"), 0, true},
		{KEY(""), -EINVAL, false},
		{KEY("a b"), -EINVAL, false},
		{KEY("\xc3\xa9"), -EINVAL, false},
		{KEY("x") KEY("x"), -EINVAL, false},
		{"IDEMPOTENCY-KEY: y\r\n" KEY("z"), -EINVAL, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct asked *asked = ask(*state, "a", rows[i].fields, "/x", "{}");

		assert_int_equal(begin(asked), rows[i].result);
		assert_int_equal(asked->call.once_name != NULL, rows[i].is_kept);
		asked->call.status = 200;
		if (rows[i].result == 0)
			once_end(&asked->call);
		forget(asked);
	}
}

static void test_other_routes_have_none(void **state)
{
	struct asked *asked = ask(*state, "a", KEY(""), "/x", "{}");

	asked->route.is_creating = false;
	assert_int_equal(begin(asked), 0);
	assert_null(asked->call.once_name);
	forget(asked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_failures_are_not_kept),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_other_routes_have_none),
	};

	return cmocka_run_group_tests(tests, open_store, close_store);
}
