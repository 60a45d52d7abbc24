/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a store and reads it; prints one line of JSON. usage: store_load PLACE ROWS */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/store.h"
#include "util/clock.h"

#define THREADS    16
#define SINGLES_MS 3000
#define BATCH      200
#define READS      200

static struct store *store;
static atomic_int next_seq;
static atomic_int n_singles;
static int64_t singles_end_ns;

static void die(const char *what, const struct err *err)
{
	(void)fprintf(stderr, "store_load: %s: %s\n", what, err->msg);
	exit(1);
}

struct text {
	char exec[24], search[160], json[1200];
};

static struct store_log_row make_row(struct text *text)
{
	int seq = atomic_fetch_add(&next_seq, 1);

	(void)snprintf(text->exec, sizeof(text->exec), "ex_%016d", seq);
	(void)snprintf(text->search, sizeof(text->search),
		"python3 -m pytest tests/unit/test_module_%d.py -k case%d --maxfail=%d %s",
		seq % 997, seq % 89, seq % 7, seq % 100000 == 5 ? "needle" : "straw");
	(void)snprintf(text->json, sizeof(text->json),
		"{\"id\":%d,\"exec\":\"%s\",\"command\":\"%s\",\"stdout\":\"%0800d\"}", seq,
		text->exec, text->search, seq);
	return (struct store_log_row){.sandbox = seq % 2 ? "sb-1" : "sb-2",
		.seq = seq,
		.id = seq,
		.exec = text->exec,
		.source = "agent",
		.operation = "exec",
		.has_exit_code = true,
		.at_ms = 1000000 + seq,
		.duration_ms = 5,
		.search = slice_of(text->search),
		.json = text->json};
}

static void *add_singles(void *arg)
{
	struct text text;
	struct err err = {0};

	while (clock_mono_ns() < singles_end_ns) {
		struct store_log_row row = make_row(&text);

		if (store_log_add(store, &row, 1, &err) != 1)
			die("add", &err);
		(void)atomic_fetch_add(&n_singles, 1);
	}
	return NULL;
}

/* Rows a second that many threads add one by one, each waiting until its own is on disk. */
static double measure_singles(void)
{
	pthread_t threads[THREADS];
	int64_t begin = clock_mono_ns();

	singles_end_ns = begin + SINGLES_MS * CLOCK_NS_PER_MS;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, add_singles, NULL))
			exit(1);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	return n_singles * 1e9 / (double)(clock_mono_ns() - begin);
}

/* Rows a second as the indexer adds them, in batches, until there are so many. */
static double measure_batches(int n_rows)
{
	static struct text texts[BATCH];
	struct store_log_row rows[BATCH];
	struct err err = {0};
	int64_t begin = clock_mono_ns();
	int n = 0;

	while (atomic_load(&next_seq) < n_rows) {
		for (int i = 0; i < BATCH; i++)
			rows[i] = make_row(&texts[i]);
		if (store_log_add(store, rows, BATCH, &err) != BATCH)
			die("add", &err);
		n += BATCH;
	}
	return n * 1e9 / (double)(clock_mono_ns() - begin);
}

static int on_row(const struct store_log_row *row, void *arg)
{
	*(int64_t *)arg = row->n;
	return 0;
}

/* Milliseconds for a page of 100 rows, one behind the other from cursor on. */
static double measure_pages(struct store_query q, int n_reads, int *ret_n_rows)
{
	struct err err = {0};
	int64_t begin = clock_mono_ns();

	*ret_n_rows = 0;
	q.limit = 100;
	for (int i = 0; i < n_reads; i++) {
		int n = store_log_page(store, &q, on_row, &q.cursor, &err);

		if (n < 0)
			die("page", &err);
		*ret_n_rows += n;
	}
	return (double)(clock_mono_ns() - begin) / 1e6 / n_reads;
}

static void add_people(void)
{
	struct err err = {0};
	struct store_sandbox sandbox = {
		.account = "a", .name = "", .state = "running", .place = ""};

	if (store_account_add(store, &(struct store_account){.id = "a", .name = "a"}, &err) < 0)
		die("account", &err);
	sandbox.id = "sb-1";
	if (store_sandbox_put(store, &sandbox, &err) < 0)
		die("sandbox", &err);
	sandbox.id = "sb-2";
	if (store_sandbox_put(store, &sandbox, &err) < 0)
		die("sandbox", &err);
}

int main(int argc, char **argv)
{
	struct err err = {0};
	int n_rows = argc == 3 ? (int)strtol(argv[2], NULL, 10) : 0, n, n_found, n_common;
	double singles, batches, first, middle, needle, common;

	if (n_rows <= 0) {
		(void)fprintf(stderr, "usage: store_load PLACE ROWS\n");
		return 2;
	}
	if (store_open(argv[1], &store, &err) < 0)
		die("open", &err);
	add_people();
	singles = measure_singles();
	batches = measure_batches(n_rows);
	first = measure_pages(
		(struct store_query){.account = "a", .is_newest_first = true}, READS, &n);
	middle = measure_pages(
		(struct store_query){.account = "a", .sandbox = "sb-1", .cursor = n_rows / 2},
		READS, &n);
	needle = measure_pages(
		(struct store_query){.account = "a", .q = "py -k case5 --maxfail=5 NEEDLE"}, 1,
		&n_found);
	common = measure_pages(
		(struct store_query){.account = "a", .q = "pytest", .is_newest_first = true}, 20,
		&n_common);
	(void)printf("{\"rows\":%d,\"singles_per_s\":%.0f,\"batched_per_s\":%.0f,\"page_newest_"
		     "ms\":%.2f,"
		     "\"page_sandbox_ms\":%.2f,\"page_read_rows\":%d,\"search_rare_ms\":%.1f,"
		     "\"search_rare_rows\":%d,"
		     "\"search_common_ms\":%.2f,\"search_common_rows\":%d}\n",
		n_rows, singles, batches, first, middle, n, needle, n_found, common, n_common);
	store_close(store);
	return 0;
}
