/* SPDX-License-Identifier: Apache-2.0 */
/* The route table: what a request finds in it, what each role may do, and that docs/openapi.yaml says the same. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/api.h"
#include "server/route.h"

/* ---- what is found ---- */

static const struct {
	const char *method, *target;
	int result;
	const char *found; /* its path, or what Allow holds */
	const char *params;
} rows[] = {
	{"GET", "/health", 0, "/health", ""},
	{"HEAD", "/health", 0, "/health", ""},
	{"POST", "/health", -EOPNOTSUPP, "GET", ""},
	{"get", "/health", -EOPNOTSUPP, "GET", ""},
	{"GET", "/health/", -ENOENT, "", ""},
	{"GET", "//health", -ENOENT, "", ""},
	{"GET", "/HEALTH", -ENOENT, "", ""},
	{"GET", "/", -ENOENT, "", ""},
	{"GET", "", -ENOENT, "", ""},
	{"GET", "health", -ENOENT, "", ""},
	{"GET", "/v1", -ENOENT, "", ""},
	{"GET", "/v1/sandboxes", 0, "/v1/sandboxes", ""},
	{"PUT", "/v1/sandboxes", -EOPNOTSUPP, "POST, GET", ""},
	{"GET", "/v1/sandboxes/", -ENOENT, "", ""},
	{"GET", "/v1/sandboxes/sb_1", 0, "/v1/sandboxes/{id}", "sb_1"},
	{"HEAD", "/v1/sandboxes/sb_1/pause", -EOPNOTSUPP, "POST", ""},
	{"GET", "/v1/sandboxes/%2e%2e", 0, "/v1/sandboxes/{id}", "%2e%2e"},
	{"GET", "/v1/sandboxes/sb_1/", -ENOENT, "", ""},
	{"GET", "/v1/sandboxes//exec/x", -ENOENT, "", ""},
	{"GET", "/v1/sandboxes/a/exec/b", 0, "/v1/sandboxes/{id}/exec/{exec}", "a b"},
	{"POST", "/v1/sandboxes/a/exec/b/kill", 0, "/v1/sandboxes/{id}/exec/{exec}/kill", "a b"},
	{"POST", "/v1/sandboxes/a/exec/b/kill/c", -ENOENT, "", ""},
	{"POST", "/v1/sandboxes/a/exec//kill", -ENOENT, "", ""},
	{"POST", "/v1/sandboxes/{id}/exec", 0, "/v1/sandboxes/{id}/exec", "{id}"},
	{"POST", "/v1/sandboxes/a;b/exec", 0, "/v1/sandboxes/{id}/exec", "a;b"},
	{"POST", "/v1/sandboxes/a/exec;b", -ENOENT, "", ""},
	{"POST", "/v1/sandboxes/a/%65xec", -ENOENT, "", ""},
};

static void test_find(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct route *route = NULL;
		struct slice params[CALL_PARAMS_MAX] = {{0}};
		scoped_str struct str allow = {0}, found = {0};
		int r = route_find(
			slice_of(rows[i].method), slice_of(rows[i].target), &route, params, &allow);

		if (r != rows[i].result)
			fail_msg("%s %s: %d", rows[i].method, rows[i].target, r);
		if (r == -EOPNOTSUPP)
			assert_string_equal(allow.p, rows[i].found);
		if (r == 0)
			assert_string_equal(route->path, rows[i].found);
		for (size_t k = 0; k < CALL_PARAMS_MAX && params[k].p; k++) {
			str_puts(&found, k ? " " : "");
			str_add(&found, params[k].p, params[k].len);
		}
		assert_string_equal(found.p ? found.p : "", rows[i].params);
	}
}

static const struct {
	enum right right;
	const char
		*may; /* of "none auditor member admin operator" the first letters: n, u, m, a, o */
} rights[] = {
	{RIGHT_ANYONE, "numao"}, {RIGHT_READ, "umao"}, {RIGHT_WORK, "mao"}, {RIGHT_ADMIN, "ao"},
	{RIGHT_OPERATOR, "o"}, {0, ""}, /* a row that names none */
};

static void test_rights(void **state)
{
	static const struct {
		char letter;
		struct caller caller;
	} callers[] = {
		{'n', {.role = ROLE_NONE}},
		{'u', {.role = ROLE_AUDITOR}},
		{'m', {.role = ROLE_MEMBER}},
		{'a', {.role = ROLE_ADMIN}},
		{'o', {.role = ROLE_ADMIN, .is_operator = true}},
	};

	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		for (size_t k = 0; k < sizeof(callers) / sizeof(callers[0]); k++)
			assert_int_equal(route_allows(&(struct route){.right = rights[i].right},
						 &callers[k].caller),
				strchr(rights[i].may, callers[k].letter) != NULL);
}

/* ---- beside the document ---- */

static const char *const right_words[] = {[RIGHT_ANYONE] = "anyone",
	[RIGHT_READ] = "read",
	[RIGHT_WORK] = "work",
	[RIGHT_ADMIN] = "admin",
	[RIGHT_OPERATOR] = "operator"};

/* Makes the document: what GET /openapi.json answers. */
static int load(void **state)
{
	struct call call = {0};
	struct err err;

	assert_int_equal(api_openapi(&call, &err), 0);
	*state = json_loadb(call.out.p, call.out.len, JSON_REJECT_DUPLICATES, NULL);
	str_done(&call.out);
	return *state ? 0 : -1;
}

static int unload(void **state)
{
	json_decref(*state);
	return 0;
}

static json_t *operation_of(json_t *document, const struct route *route)
{
	json_t *item = json_object_get(json_object_get(document, "paths"), route->path);
	char method[8] = "";

	for (size_t i = 0; route->method[i] && i < sizeof(method) - 1; i++)
		method[i] = (char)(route->method[i] | 0x20);
	return json_object_get(item, method);
}

/* Behind a $ref of the form "#/components/KIND/NAME". */
static json_t *resolve(json_t *document, json_t *node)
{
	const char *ref = json_string_value(json_object_get(node, "$ref"));
	char kind[32], name[64];

	if (!ref)
		return node;
	assert_int_equal(sscanf(ref, "#/components/%31[^/]/%63s", kind, name), 2);
	return json_object_get(
		json_object_get(json_object_get(document, "components"), kind), name);
}

static bool has_parameter(json_t *document, json_t *operation, const char *in, const char *name)
{
	json_t *list = json_object_get(operation, "parameters"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		json_t *at = resolve(document, one);

		if (strcmp(json_string_value(json_object_get(at, "in")), in) == 0 &&
			(!name ||
				strcmp(json_string_value(json_object_get(at, "name")), name) == 0))
			return true;
	}
	return false;
}

static void differ(const struct route *route, const char *what, const char *table, const char *said)
{
	print_error("%s %s: %s: src/server/route.c says %s, docs/openapi.yaml says %s\n",
		route->method, route->path, what, table, said);
}

static unsigned hold(const struct route *route, const char *what, bool in_table, bool in_document)
{
	if (in_table != in_document)
		differ(route, what, in_table ? "yes" : "no", in_document ? "yes" : "no");
	return in_table != in_document;
}

/* How many differences there are; each is told. */
static unsigned compare(json_t *document, const struct route *route)
{
	json_t *operation = operation_of(document, route);
	const char *right = json_string_value(json_object_get(operation, "x-cloche-right"));
	unsigned n = 0;

	if (!operation) {
		print_error("%s %s is in src/server/route.c, but not in docs/openapi.yaml: "
			    "write its entry there\n",
			route->method, route->path);
		return 1;
	}
	if (!right || strcmp(right, right_words[route->right]) != 0) {
		differ(route, "x-cloche-right", right_words[route->right],
			right ? right : "nothing");
		n++;
	}
	n += hold(route, "Idempotency-Key", route->is_creating,
		has_parameter(document, operation, "header", "Idempotency-Key"));
	n += hold(route, "a body", route->has_body || route->is_upload,
		json_object_get(operation, "requestBody") != NULL);
	n += hold(route, "parameters in the query", route->has_query,
		has_parameter(document, operation, "query", NULL));
	return n;
}

static void test_each_route_is_documented(void **state)
{
	unsigned n = 0;

	for (size_t i = 0; i < route_n; i++)
		n += compare(*state, &route_table[i]);
	assert_int_equal(n, 0);
}

static bool is_in_table(const char *path, const char *method)
{
	for (size_t i = 0; i < route_n; i++)
		if (strcmp(route_table[i].path, path) == 0 &&
			strcasecmp(route_table[i].method, method) == 0)
			return true;
	return false;
}

static void test_each_documented_route_is_there(void **state)
{
	const char *path, *method;
	json_t *item, *operation;
	unsigned n = 0;

	json_object_foreach(json_object_get(*state, "paths"), path, item)
	{
		json_object_foreach(item, method, operation)
		{
			if (strcmp(method, "parameters") == 0 || is_in_table(path, method))
				continue;
			print_error("%s %s is in docs/openapi.yaml, but not in "
				    "src/server/route.c\n",
				method, path);
			n++;
		}
	}
	assert_int_equal(n, 0);
}

/* A row of its own for each method and path: the first one would hide the second. */
static void test_no_route_hides_another(void **state)
{
	for (size_t i = 0; i < route_n; i++) {
		const struct route *route = NULL;
		struct slice params[CALL_PARAMS_MAX];
		scoped_str struct str allow = {0};

		assert_int_equal(route_find(slice_of(route_table[i].method),
					 slice_of(route_table[i].path), &route, params, &allow),
			0);
		assert_ptr_equal(route, &route_table[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_each_route_is_documented),
		cmocka_unit_test(test_each_documented_route_is_there),
		cmocka_unit_test(test_no_route_hides_another),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
