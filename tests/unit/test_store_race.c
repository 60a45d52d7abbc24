/* SPDX-License-Identifier: Apache-2.0 */
/* The store under many threads of two processes, which on PostgreSQL are two replicas, and under kill -9. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "store_place.h"
#include "util/clock.h"
#include "util/str.h"

#define PROCESSES 2
#define THREADS   25
#define ROUNDS    6   /* of kill -9 */
#define ROWS      400 /* a process, with cursors */
#define BATCH     5
#define SEQS      65536

/* What the processes have in common. */
static struct {
	pthread_barrier_t barrier;
	atomic_int n_won, n_lost, n_other, n_ended;
	atomic_int taken[1024];
	atomic_bool is_acked[SEQS];
} * shared;

struct worker {
	struct store *store;
	int process, thread;
	void (*work)(const struct worker *worker);
};

static void *on_thread(void *arg)
{
	const struct worker *worker = arg;

	(void)pthread_barrier_wait(&shared->barrier);
	worker->work(worker);
	return NULL;
}

static void run_process(int process, int n_threads, void (*work)(const struct worker *worker))
{
	pthread_t threads[THREADS];
	struct worker workers[THREADS];
	struct store *store = NULL;
	struct err err = {0};

	if (store_open(place.where, &store, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.msg);
		_exit(1);
	}
	for (int i = 0; i < n_threads; i++) {
		workers[i] = (struct worker){
			.store = store, .process = process, .thread = i, .work = work};
		if (pthread_create(&threads[i], NULL, on_thread, &workers[i]))
			_exit(1);
	}
	for (int i = 0; i < n_threads; i++)
		(void)pthread_join(threads[i], NULL);
	store_close(store);
	(void)atomic_fetch_add(&shared->n_ended, 1);
	_exit(0);
}

static void start(pid_t pids[PROCESSES], int n_threads, void (*work)(const struct worker *worker))
{
	pthread_barrierattr_t attr;

	memset(shared, 0, sizeof(*shared));
	(void)pthread_barrierattr_init(&attr);
	(void)pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	assert_int_equal(pthread_barrier_init(
				 &shared->barrier, &attr, (unsigned int)(PROCESSES * n_threads)),
		0);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			run_process(i, n_threads, work);
		}
	}
}

static void finish(const pid_t pids[PROCESSES])
{
	int status;

	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

static void race(int n_threads, void (*work)(const struct worker *worker))
{
	pid_t pids[PROCESSES];

	start(pids, n_threads, work);
	finish(pids);
}

static void wait_for(atomic_int *n, int want)
{
	int64_t until = clock_mono_ns() + 20 * CLOCK_NS_PER_S;

	while (atomic_load(n) < want && clock_mono_ns() < until)
		(void)usleep(2000);
	assert_true(atomic_load(n) >= want);
}

static int on_key(const struct store_key *key, void *arg)
{
	return 0;
}

static void use_token(const struct worker *w)
{
	int r = store_token_use(w->store, "t1", "sb-a", 10, on_key, NULL, NULL);

	(void)atomic_fetch_add(r == 0         ? &shared->n_won
			       : r == -ENOENT ? &shared->n_lost
					      : &shared->n_other,
		1);
}

/* Made before a restart, so to say: by a store that is closed when it is used. */
static void test_one_wins_a_token(void **state)
{
	struct store *store = place_open();
	struct err err = {0};

	place_people(store);
	assert_good(store_token_add(store, &(struct store_token){"t1", "sb-a", "k-a", 1000}, &err));
	store_close(store);
	race(THREADS, use_token);
	assert_int_equal(shared->n_won, 1);
	assert_int_equal(shared->n_lost, PROCESSES * THREADS - 1);
}

static int on_request(const struct store_request *request, void *arg)
{
	return 0;
}

static void begin_request(const struct worker *w)
{
	struct store_request q = {.account = "a",
		.name = "n",
		.request_hash = "h",
		.started_ms = 10,
		.expires_ms = 100};
	int r = store_request_begin(w->store, &q, on_request, NULL, NULL);

	(void)atomic_fetch_add(r == STORE_ONCE_NEW    ? &shared->n_won
			       : r == STORE_ONCE_BUSY ? &shared->n_lost
						      : &shared->n_other,
		1);
}

static void test_one_begins_a_request(void **state)
{
	store_close(place_open());
	race(THREADS, begin_request);
	assert_int_equal(shared->n_won, 1);
	assert_int_equal(shared->n_lost, PROCESSES * THREADS - 1);
}

static int tell_key(void *arg, struct err *err)
{
	(void)atomic_fetch_add(&shared->n_other, 1);
	return 0;
}

static void add_first_key(const struct worker *w)
{
	char id[16];
	struct store_key key = {.id = id,
		.account = "empty",
		.hash = id,
		.prefix = "p",
		.name = "first",
		.role = "admin",
		.created_ms = 5};
	int r;

	(void)snprintf(id, sizeof(id), "k%d-%d", w->process, w->thread);
	r = store_key_add_first(w->store, &key, tell_key, NULL, NULL);
	(void)atomic_fetch_add(r == 1 ? &shared->n_won : &shared->n_lost, r >= 0);
}

static int count_key(const struct store_key *key, void *arg)
{
	*(int *)arg += 1;
	return 0;
}

/* And nobody but who keeps it tells it. */
static void test_one_makes_the_first_key(void **state)
{
	struct store *store = place_open();
	struct err err = {0};
	int n = 0;

	assert_good(store_account_add(store,
		&(struct store_account){.id = "empty", .name = "empty", .created_ms = 1}, &err));
	race(THREADS, add_first_key);
	assert_int_equal(shared->n_won, 1);
	assert_int_equal(shared->n_lost, PROCESSES * THREADS - 1);
	assert_int_equal(shared->n_other, 1);
	assert_good(store_key_list(store, "empty", NULL, 10, count_key, &n, &err));
	assert_int_equal(n, 1);
	store_close(store);
}

static void take_rate(const struct worker *w)
{
	int r;

	while ((r = store_rate_take(w->store, "k", 100, 7, 1000, NULL)) > 0)
		(void)atomic_fetch_add(&shared->n_won, r);
	(void)atomic_fetch_add(&shared->n_other, r < 0);
}

static void test_a_rate_is_shared(void **state)
{
	store_close(place_open());
	race(4, take_rate);
	assert_int_equal(shared->n_won, 1000);
	assert_int_equal(shared->n_other, 0);
}

static int on_claimed(const struct store_delivery *d, void *arg)
{
	(void)atomic_fetch_add(&shared->taken[strtol(d->id, NULL, 10)], 1);
	return 0;
}

static void claim(const struct worker *w)
{
	int r;

	while ((r = store_delivery_claim(
			w->store, CLAIM_OF(100, 1000, "", 3), on_claimed, NULL, NULL)) > 0)
		continue;
	(void)atomic_fetch_add(&shared->n_other, r < 0);
}

static void test_a_delivery_has_one_claimer(void **state)
{
	struct store *store = place_open();
	struct err err = {0};
	char id[8];

	for (int i = 0; i < 200; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		assert_good(store_delivery_add(store,
			&(struct store_delivery){.id = id,
				.account = "a",
				.webhook = "w",
				.due_ms = i / 9,
				.json = "{}"},
			1, &err));
	}
	store_close(store);
	race(4, claim);
	assert_int_equal(shared->n_other, 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(shared->taken[i], 1);
}

/* seq is unique; two thirds of the rows have one time. */
static int add_row(struct store *store, int seq)
{
	char exec[16];
	struct store_log_row row = {.sandbox = "sb-a",
		.seq = seq,
		.id = seq,
		.exec = exec,
		.source = "agent",
		.operation = "exec",
		.at_ms = 1000 + (seq % 3 == 0),
		.search = slice_of("make test"),
		.json = "{}"};

	(void)snprintf(exec, sizeof(exec), "ex%d", seq);
	return store_log_add(store, &row, 1, NULL);
}

static void add_many(const struct worker *w)
{
	for (int i = 0; i < ROWS / 8; i++)
		(void)atomic_fetch_add(
			add_row(w->store, (w->process * 8 + w->thread) * 1000 + i) == 1
				? &shared->n_won
				: &shared->n_other,
			1);
}

struct seen {
	int n, n_twice;
	int64_t last_n;
	bool is_seen[SEQS];
};

static int on_seen(const struct store_log_row *row, void *arg)
{
	struct seen *seen = arg;

	seen->n++;
	seen->n_twice += seen->is_seen[row->seq];
	seen->is_seen[row->seq] = true;
	seen->last_n = row->n;
	return 0;
}

/* Pages of seven, from before the first row was there until all writers have ended. */
static void read_along(struct store *store, struct store_query q, struct seen *seen)
{
	struct err err = {0};
	bool is_over = false;
	int n;

	for (;;) {
		q.cursor = seen->last_n;
		n = store_log_page(store, &q, on_seen, seen, &err);
		assert_good(n);
		if (n == 0 && is_over)
			return;
		if (n == 0)
			is_over = atomic_load(&shared->n_ended) == PROCESSES;
	}
}

static void test_cursors_beside_writers(void **state)
{
	static struct seen all, one, searched, down;
	struct store *store = place_open();
	pid_t pids[PROCESSES];
	int n_before;

	place_people(store);
	store_close(store);
	start(pids, 8, add_many);
	store = place_open();
	read_along(store, (struct store_query){.account = "a", .limit = 7}, &all);
	finish(pids);
	read_along(
		store, (struct store_query){.account = "a", .sandbox = "sb-a", .limit = 7}, &one);
	read_along(
		store, (struct store_query){.account = "a", .q = "e Test", .limit = 7}, &searched);
	assert_int_equal(shared->n_won, PROCESSES * ROWS);
	assert_int_equal(all.n, PROCESSES * ROWS);
	assert_int_equal(all.n_twice, 0);
	assert_int_equal(one.n, PROCESSES * ROWS);
	assert_int_equal(searched.n, PROCESSES * ROWS);
	assert_int_equal(one.n_twice + searched.n_twice, 0);
	/* Newest first: what is added behind the first page is in none of the others. */
	for (n_before = -1; down.n != n_before;) {
		n_before = down.n;
		(void)store_log_page(store,
			&(struct store_query){.account = "a",
				.limit = 7,
				.cursor = down.last_n,
				.is_newest_first = true},
			on_seen, &down, NULL);
		(void)add_row(store, 50000 + down.n);
	}
	assert_int_equal(down.n, PROCESSES * ROWS);
	assert_int_equal(down.n_twice, 0);
	store_close(store);
}

/* Five rows a call, for ever: a call that came back is marked. */
static void add_until_killed(const struct worker *w)
{
	struct store_log_row rows[BATCH];

	for (int first = (w->process * 4 + w->thread) * 8000;; first += BATCH) {
		for (int i = 0; i < BATCH; i++)
			rows[i] = (struct store_log_row){.sandbox = "sb-a",
				.seq = first + i,
				.id = first + i,
				.exec = "ex",
				.source = "agent",
				.operation = "exec",
				.at_ms = 1,
				.search = slice_of("make"),
				.json = "{}"};
		if (store_log_add(w->store, rows, BATCH, NULL) != BATCH)
			_exit(3);
		atomic_store(&shared->is_acked[first], true);
		(void)atomic_fetch_add(&shared->n_won, 1);
	}
}

static void assert_nothing_lost(const struct seen *seen)
{
	int n_acked = 0;

	assert_int_equal(seen->n_twice, 0);
	for (int first = 0; first + BATCH <= SEQS; first += BATCH) {
		int n = 0;

		for (int i = 0; i < BATCH; i++)
			n += seen->is_seen[first + i];
		assert_true(n == 0 || n == BATCH);
		if (shared->is_acked[first])
			assert_int_equal(n, BATCH);
		n_acked += shared->is_acked[first];
	}
	assert_true(n_acked > 0);
}

static void test_killed_writers(void **state)
{
	static struct seen seen;
	pid_t pids[PROCESSES];
	unsigned int random = 12345;
	struct store *store;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t until = clock_mono_ns() + 20 * CLOCK_NS_PER_S;
		int want = 1 + rand_r(&random) % 40;

		(void)place_clear(state);
		store = place_open();
		place_people(store);
		store_close(store);
		start(pids, 4, add_until_killed);
		while (atomic_load(&shared->n_won) < want && clock_mono_ns() < until)
			(void)usleep(500);
		for (int i = 0; i < PROCESSES; i++) {
			(void)usleep((useconds_t)(rand_r(&random) % 3000));
			(void)kill(pids[i], SIGKILL);
			(void)waitpid(pids[i], NULL, 0);
		}
		atomic_store(&shared->n_ended, PROCESSES);
		memset(&seen, 0, sizeof(seen));
		store = place_open();
		read_along(store, (struct store_query){.account = "a", .limit = 1000}, &seen);
		assert_nothing_lost(&seen);
		store_close(store);
	}
}

static void add_until_told(const struct worker *w)
{
	for (int i = 0; !atomic_load(&shared->n_ended) && i < 8000; i++) {
		int seq = (w->process * 4 + w->thread) * 8000 + i, r = add_row(w->store, seq);

		/* 0: it was there already, by a try that nobody could say of whether it came through. */
		if (r >= 0)
			atomic_store(&shared->is_acked[seq], true);
		(void)atomic_fetch_add(r >= 0 ? &shared->n_won : &shared->n_other, 1);
		if (r < 0)
			(void)usleep(10000);
	}
}

/* PostgreSQL is killed and started again under load: whoever called is served in the end, once. */
static void test_killed_server(void **state)
{
	static struct seen seen;
	struct store *store;
	pid_t pids[PROCESSES];
	struct err err = {0};
	int64_t away_ns;
	int before;

	place_only_postgres("there is no server");
	store = place_open();
	place_people(store);
	store_close(store); /* no threads where processes are made */
	start(pids, 4, add_until_told);
	store = place_open();
	assert_good(store_check(store, &err));
	wait_for(&shared->n_won, 50);
	away_ns = clock_mono_ns();
	place_stop_server(SIGQUIT); /* at once, without a word to clients */
	assert_int_equal(place_start_server(), 0);
	away_ns = clock_mono_ns() - away_ns;
	before = atomic_load(&shared->n_won);
	wait_for(&shared->n_won, before + 50);
	atomic_store(&shared->n_ended, PROCESSES);
	finish(pids);
	if (away_ns < 8 * CLOCK_NS_PER_S) /* for rows it is waited 10 s */
		assert_int_equal(shared->n_other, 0);
	atomic_store(&shared->n_ended, PROCESSES);
	/* This store's connections are of the old server. */
	read_along(store, (struct store_query){.account = "a", .limit = 1000}, &seen);
	assert_int_equal(seen.n_twice, 0);
	for (int i = 0; i < SEQS; i++)
		assert_int_equal(shared->is_acked[i] && !seen.is_seen[i], 0);
	store_close(store);
}

/* One that the database refuses must not take those with it that share its commit. */
static void add_good_or_bad(const struct worker *w)
{
	int r;

	for (int i = 0; i < 10; i++) {
		if (w->thread % 2) {
			r = store_sandbox_put(w->store,
				&(struct store_sandbox){.id = "x",
					.account = "none",
					.name = "",
					.state = "",
					.place = ""},
				NULL);
			(void)atomic_fetch_add(
				r == -EEXIST ? &shared->n_lost : &shared->n_other, 1);
		} else {
			r = add_row(w->store, (w->process * THREADS + w->thread) * 100 + i);
			(void)atomic_fetch_add(r == 1 ? &shared->n_won : &shared->n_other, 1);
		}
	}
}

static void test_bad_among_good(void **state)
{
	static struct seen seen;
	struct store *store = place_open();

	place_people(store);
	store_close(store);
	race(8, add_good_or_bad);
	assert_int_equal(shared->n_other, 0);
	assert_int_equal(shared->n_won, PROCESSES * 40);
	assert_int_equal(shared->n_lost, PROCESSES * 40);
	store = place_open();
	read_along(store, (struct store_query){.account = "a", .limit = 100}, &seen);
	assert_int_equal(seen.n, PROCESSES * 40);
	store_close(store);
}

/* Rows of several tables share a commit, in the order in which they are asked for. */
static void add_everything(const struct worker *w)
{
	for (int i = 0; i < 40; i++) {
		int seq = (w->process * 8 + w->thread) * 100 + i, which = (seq / 100 + i) % 3;
		struct store_event e = {
			.account = "a", .sandbox = "sb-a", .seq = seq, .kind = "k", .json = "{}"};
		int r = which == 0   ? add_row(w->store, seq)
		        : which == 1 ? store_audit_add(w->store, &e, 1, NULL)
		                     : store_lifecycle_add(w->store, &e, 1, NULL);

		(void)atomic_fetch_add(r == 1 ? &shared->n_won : &shared->n_other, 1);
	}
}

/* Two replicas never hold what the other one waits for: PostgreSQL needs a second to notice. */
static void test_no_deadlock(void **state)
{
	static const struct db_sql sql = {
		.text = "SELECT sum(deadlocks)::bigint FROM pg_stat_database"};
	struct store *store = place_open();
	int64_t n_deadlocks = 0;
	struct db *db;

	place_people(store);
	store_close(store);
	race(8, add_everything);
	assert_int_equal(shared->n_other, 0);
	assert_int_equal(shared->n_won, PROCESSES * 8 * 40);
	if (!place.is_postgres)
		return;
	assert_int_equal(db_postgres.open(place.where, DB_WRITE, &db, NULL), 0);
	assert_int_equal(db_run_values(db, &sql, NULL, 0, db_row_int, &n_deadlocks), 1);
	db_close(db);
	assert_int_equal(n_deadlocks, 0);
}

static void *touch_locked(void *store)
{
	struct err err = {0};
	int r = store_key_touch(store, "a", "k-a", 500, &err);

	(void)atomic_fetch_add(
		r == -EAGAIN && strstr(err.msg, "locked") ? &shared->n_lost : &shared->n_other, 1);
	return NULL;
}

/* By another program, for long: all who wait are told, and none waits for the others' waits, too. */
static void test_locked_file(void **state)
{
	int64_t begin = clock_mono_ns();
	pthread_t threads[8];
	struct store *store;
	struct err err = {0};
	struct db *db = NULL;

	place_only_sqlite("its locks are of rows");
	store = place_open();
	place_people(store);
	assert_good(db_sqlite.open(place.where + strlen("sqlite:"), DB_WRITE, &db, &err));
	assert_int_equal(db_begin(db, &err), 0);
	memset(shared, 0, sizeof(*shared));
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, touch_locked, store), 0);
	for (int i = 0; i < 8; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(shared->n_lost, 8);
	assert_true(clock_mono_ns() - begin < 12 * CLOCK_NS_PER_S);
	db_rollback(db);
	assert_good(store_key_touch(store, "a", "k-a", 600, &err));
	db_close(db);
	store_close(store);
}

/* The server takes no more connections: said soon, and to those who come then at once; with one that is free all is well. */
static void test_no_connection_left(void **state)
{
	struct store *store;
	struct err err = {0};
	struct db *taken[80];
	size_t n = 0;
	int64_t begin;

	place_only_postgres("a file has no connections to run out of");
	store = place_open();
	while (n < 80 && db_postgres.open(place.where, DB_READ, &taken[n], &err) == 0)
		n++;
	assert_true(n > 40 && n < 80);
	assert_int_equal(store_check(store, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.msg, "the database cannot be reached: "));
	begin = clock_mono_ns();
	for (int i = 0; i < 5; i++)
		assert_int_equal(store_check(store, &err), -ECONNREFUSED);
	assert_true(clock_mono_ns() - begin < 2 * CLOCK_NS_PER_S);
	db_close(taken[--n]);
	for (begin = clock_mono_ns(); store_check(store, &err) < 0; (void)usleep(10000))
		assert_true(clock_mono_ns() - begin < 10 * CLOCK_NS_PER_S);
	while (n > 0)
		db_close(taken[--n]);
	store_close(store);
}

static void *add_later(void *arg)
{
	(void)usleep(100000);
	(void)add_row(arg, 77);
	return NULL;
}

static void test_read_your_writes(void **state)
{
	static struct seen seen;
	struct store *store = place_open();
	struct store_query q = {.account = "a", .sandbox = "sb-a", .limit = 10};
	struct err err = {0};
	pthread_t thread;

	place_people(store);
	assert_int_equal(store_log_answered(store, "sb-a", 77), 0);
	assert_int_equal(pthread_create(&thread, NULL, add_later, store), 0);
	assert_int_equal(store_log_page(store, &q, on_seen, &seen, &err), 1);
	(void)pthread_join(thread, NULL);
	/* One that never comes: said, not hidden; and only where it is asked for. */
	assert_int_equal(store_log_answered(store, "sb-a", 78), 0);
	assert_int_equal(store_log_page(store, &q, on_seen, &seen, &err), -ETIMEDOUT);
	assert_string_equal(
		err.msg, "the log is behind: rows of commands that have ended are still to come");
	q.account = "b";
	q.sandbox = "sb-b";
	assert_int_equal(store_log_page(store, &q, on_seen, &seen, &err), 0);
	store_log_given_up(store, "sb-a", 78);
	q.account = "a";
	q.sandbox = "sb-a";
	assert_int_equal(store_log_page(store, &q, on_seen, &seen, &err), 1);
	store_close(store);
}

static atomic_int n_heard, n_forget;

static void on_revoked(const char *key, void *arg)
{
	if (!key)
		(void)atomic_fetch_add(&n_forget, 1);
	else if (strcmp(key, arg) == 0)
		(void)atomic_fetch_add(&n_heard, 1);
}

static void test_revoking_is_heard(void **state)
{
	static char a[] = "k-a", b[] = "k-b";
	struct store *one = place_open(), *other;
	struct err err = {0};

	place_people(one);
	n_heard = n_forget = 0;
	if (!place.is_postgres) { /* its own process alone */
		assert_good(store_on_revoked(one, on_revoked, a, &err));
		assert_good(store_key_revoke(one, "a", "k-a", 5, &err));
		assert_int_equal(n_heard, 1);
		store_close(one);
		return;
	}
	other = place_open();
	assert_good(store_on_revoked(other, on_revoked, a, &err));
	wait_for(&n_forget, 1); /* listening from here on */
	assert_good(store_key_revoke(one, "a", "k-a", 5, &err));
	wait_for(&n_heard, 1);
	store_close(other);

	n_heard = n_forget = 0;
	other = place_open();
	assert_good(store_on_revoked(other, on_revoked, b, &err));
	wait_for(&n_forget, 1);
	place_stop_server(SIGINT);
	assert_int_equal(place_start_server(), 0);
	wait_for(&n_forget, 2); /* may have missed one */
	assert_good(store_key_revoke(one, "b", "k-b", 5, &err));
	wait_for(&n_heard, 1);
	store_close(other);
	store_close(one);
}

#define TEST(fn) cmocka_unit_test_setup(fn, place_clear)

int racing_run(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_wins_a_token),
		TEST(test_one_begins_a_request),
		TEST(test_one_makes_the_first_key),
		TEST(test_a_rate_is_shared),
		TEST(test_a_delivery_has_one_claimer),
		TEST(test_cursors_beside_writers),
		TEST(test_killed_writers),
		TEST(test_killed_server),
		TEST(test_bad_among_good),
		TEST(test_no_deadlock),
		TEST(test_locked_file),
		TEST(test_no_connection_left),
		TEST(test_read_your_writes),
		TEST(test_revoking_is_heard),
	};

	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
