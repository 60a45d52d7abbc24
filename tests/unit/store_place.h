/* SPDX-License-Identifier: Apache-2.0 */
/* A database for a test: a file, or a PostgreSQL server of its own on a Unix socket in a temporary folder. Which one
 * is the program's argument, so each test runs on both. */
#ifndef TESTS_STORE_PLACE_H
#define TESTS_STORE_PLACE_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/db.h"
#include "store/store.h"

#define CLAIM_OF(now, lease, no, n) \
	&(struct store_claim) \
	{ \
		.now_ms = (now), .lease_ms = (lease), .but = (no), .limit = (n) \
	}
#define SAMPLES_OF(after, to) \
	&(struct store_metric_query) \
	{ \
		.account = "a", .sandbox = "sb-a", .after_ms = (after), .to_ms = (to), .limit = 10 \
	}
#include "util/clock.h"
#include "util/str.h"

/* What was told to a row function that adds to a str, since the last time. */
#define assert_told(out, text) \
	do { \
		assert_string_equal((out)->p ? (out)->p : "", text); \
		str_done(out); \
	} while (0)

struct place {
	bool is_postgres;
	char dir[64];
	char where[160]; /* what store_open() takes */
	pid_t server;
};
extern struct place place;

/* What fails says why. */
#define assert_good(call) \
	do { \
		struct err *e_ = &err; \
		int64_t r_ = (call); \
		if (r_ < 0) \
			fail_msg("%s: %lld %s", #call, (long long)r_, e_->msg); \
	} while (0)

/* To be called first, with the argument "sqlite" or "postgres". Ends the program where it cannot be. However the program
 * ends, the server ends and the folder goes. */
void place_begin(int argc, char **argv);
void place_end(void);

/* Skips the test on the other database, and says why. */
void place_only_sqlite(const char *why);
void place_only_postgres(const char *why);

int place_start_server(void);
void place_stop_server(int signal);

/* Nothing in it, not even tables. */
void place_empty(void);
/* A setup: as empty as that, but for tables, which take PostgreSQL half a second to make. */
int place_clear(void **state);
struct store *place_open(void);
/* Setup and teardown of a test: *state is a store on an empty database. */
int place_setup(void **state);
int place_teardown(void **state);
/* Two accounts "a" and "b", each with a key "k-a" (hash "h-a", admin) and a sandbox "sb-a". */
void place_people(struct store *store);

/* The parts; how many tests failed. */
int contract_run(void);
int log_run(void);
int hostile_run(void);
int opening_run(void);
int racing_run(void);
int plans_run(void); /* the last: it looks at what the others asked for */

#endif
