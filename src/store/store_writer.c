/* SPDX-License-Identifier: Apache-2.0 */
/* Group commit. Callers queue what they want done and wait; one thread takes all that waits, runs it in one
 * transaction and commits once, while the next ones gather. Rows that callers one behind the other add to one table go
 * to the database together. Where one of a batch fails, the batch is rolled back and
 * each is run in a transaction of its own, so that nobody pays for another's failure and nobody is told of a success
 * that was rolled back. The queue holds no more than there are threads that call. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "store/store_internal.h"
#include "util/clock.h"
#include "util/mem.h"

#define PATIENT_MS      3000 /* as long as a database that restarts, or is locked, is waited for */
#define ROWS_PATIENT_MS 10000

#define BATCH_MAX       256
#define ROWS_MAX        2000 /* of a batch: other replicas wait for its numbers, at most 5 s */

struct job {
	db_work_fn work;
	void *arg;
	const struct store_rows *rows; /* to be added; else NULL, and the work is to be done */
	struct err *err;
	int64_t deadline_ns; /* of trying again */
	int r;
	sem_t is_done;
	struct job *next;
};

struct store_writer {
	const struct store_where *where;
	struct db *db; /* the thread's; NULL: to be opened */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t is_asked;
	struct job *first, **last;
	bool is_ending;
};

static int need_db(struct store_writer *w, struct err *err)
{
	if (w->db && w->db->is_lost) {
		db_close(w->db);
		w->db = NULL;
	}
	return w->db ? 0 : store_reach_open(w->where->reach, w->where, DB_WRITE, &w->db, err);
}

/* Jobs one behind the other that add to one table. */
struct span {
	struct job *first, *end; /* end is the one behind, or NULL */
	size_t n_rows;
	int64_t number; /* of the first row */
	const struct job *at;
	size_t at_row; /* first row of that job, in the span */
};

static struct span make_span(struct job *first)
{
	struct span span = {.first = first, .end = first->next, .n_rows = first->rows->n_rows};

	while (span.end && span.end->rows && span.end->rows->sql == first->rows->sql &&
		span.n_rows + span.end->rows->n_rows <= DB_MANY_MAX) {
		span.n_rows += span.end->rows->n_rows;
		span.end = span.end->next;
	}
	return span;
}

/* Rows are asked for in order, but for one that may be asked for again. */
static void fill_row(struct db_value *values, size_t row, void *arg)
{
	struct span *span = arg;
	const struct store_rows *rows;

	if (!span->at || row < span->at_row) {
		span->at = span->first;
		span->at_row = 0;
	}
	while (row - span->at_row >= span->at->rows->n_rows) {
		span->at_row += span->at->rows->n_rows;
		span->at = span->at->next;
	}
	rows = span->at->rows;
	if (rows->counter)
		*values++ = db_int(span->number + (int64_t)row);
	rows->fill(values, row - span->at_row, rows->arg);
}

/* Adds the rows of all its jobs, and tells each how many of its own were added. */
static int add_span(struct db *db, void *arg)
{
	struct span *span = arg;
	const struct store_rows *rows = span->first->rows;
	int changed[DB_MANY_MAX] = {0}, *at = changed;
	struct db_many many = {.n_values = rows->n_values + (rows->counter != NULL),
		.n_rows = span->n_rows,
		.fill = fill_row,
		.arg = span,
		.ret_changed = changed};
	int64_t n = 0;

	if (rows->counter)
		n = store_take_numbers(db, rows->counter, span->n_rows, &span->number);
	if (n == 0)
		n = db_run_many(db, rows->sql, &many);
	if (n < 0)
		return (int)n;
	for (struct job *job = span->first; job != span->end; job = job->next) {
		job->r = 0;
		for (size_t i = 0; i < job->rows->n_rows; i++)
			job->r += *at++;
	}
	return (int)n;
}

static int run_job(struct db *db, void *arg)
{
	struct job *job = arg;
	struct span span;

	if (!job->rows)
		return job->work(db, job->arg);
	span = (struct span){.first = job, .end = job->next, .n_rows = job->rows->n_rows};
	return add_span(db, &span);
}

static bool is_index(const struct job *job)
{
	return job->rows && job->rows->is_index;
}

static void run_alone(struct store_writer *w, struct job *job)
{
	do {
		job->r = need_db(w, job->err);
		if (job->r < 0)
			continue;
		w->db->is_light = is_index(job);
		job->r = db_transact(w->db, run_job, job, job->err);
	} while (store_may_retry(job->r, job->deadline_ns));
}

/* False: one of them spoilt it. */
static bool run_jobs(struct db *db, struct job *first)
{
	struct job *job = first;

	while (job) {
		int64_t before = db->n_changed;
		struct span span;

		db->err = job->err;
		if (job->rows) {
			span = make_span(job);
			if (add_span(db, &span) < 0)
				return false;
			job = span.end;
			continue;
		}
		job->r = job->work(db, job->arg);
		if (db->is_failed || (job->r < 0 && db->n_changed != before))
			return false;
		job = job->next;
	}
	return true;
}

/* A batch holds the numbers of several tables until it commits: where other processes do so, too, all take them in one
 * order, or two would wait for each other. */
static bool take_counters(struct db *db)
{
	static const struct db_sql sql = {.text = "SELECT 1 FROM counter ORDER BY name",
		.postgres =
			"SELECT 1 FROM counter WHERE name <> 'sandbox' ORDER BY name FOR UPDATE"};

	return !db->driver->is_shared || db_run_values(db, &sql, NULL, 0, NULL, NULL) > 0;
}

static bool are_index(const struct job *job)
{
	while (job && is_index(job))
		job = job->next;
	return !job;
}

static bool run_together(struct store_writer *w, struct job *first)
{
	if (need_db(w, NULL) < 0)
		return false;
	w->db->is_light = are_index(first);
	if (db_begin(w->db, NULL) < 0)
		return false;
	if (!take_counters(w->db) || !run_jobs(w->db, first)) {
		db_rollback(w->db);
		return false;
	}
	w->db->err = NULL;
	return db_commit(w->db) == 0;
}

/* What keeps the next one from its turn, too. A lock of SQLite's is one on all of it. */
static bool is_for_all(const struct store_writer *w, int r)
{
	return r == -ECONNREFUSED || (r == -EAGAIN && !w->where->driver->is_shared);
}

/* Where the server cannot be reached, or the file is locked, who has waited long enough is told so by the try of the one
 * before: it takes seconds to find out. */
static void run_one_by_one(struct store_writer *w, struct job *first)
{
	const struct job *before = NULL;

	for (struct job *job = first; job; before = job, job = job->next) {
		if (before && is_for_all(w, before->r) && clock_mono_ns() > job->deadline_ns) {
			job->r = before->r;
			if (job->err && before->err)
				*job->err = *before->err;
		} else {
			run_alone(w, job);
		}
	}
}

static void run_batch(struct store_writer *w, struct job *first)
{
	struct job *next;

	if (!first->next || !run_together(w, first))
		run_one_by_one(w, first);
	for (struct job *job = first; job; job = next) {
		next = job->next; /* the job is its caller's again */
		(void)sem_post(&job->is_done);
	}
}

static size_t rows_of(const struct job *job)
{
	return job->rows ? job->rows->n_rows : 1;
}

/* The last one of those that make a batch. */
static struct job *last_of_batch(struct job *first)
{
	struct job *job = first;
	size_t n_rows = rows_of(first);

	for (int n = 1; job->next && n < BATCH_MAX; n++) {
		n_rows += rows_of(job->next);
		if (n_rows > ROWS_MAX)
			break;
		job = job->next;
	}
	return job;
}

/* What waits, cut off behind BATCH_MAX and ROWS_MAX; NULL at the end. */
static struct job *next_batch(struct store_writer *w)
{
	struct job *first, *job;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->first && !w->is_ending)
		(void)pthread_cond_wait(&w->is_asked, &w->lock);
	first = w->first;
	if (first) {
		job = last_of_batch(first);
		w->first = job->next;
		job->next = NULL;
	}
	if (!w->first)
		w->last = &w->first;
	(void)pthread_mutex_unlock(&w->lock);
	return first;
}

static void *serve(void *arg)
{
	struct store_writer *w = arg;
	struct job *batch;

	while ((batch = next_batch(w)))
		run_batch(w, batch);
	db_close(w->db);
	return NULL;
}

int store_writer_new(const struct store_where *where, struct store_writer **ret, struct err *err)
{
	struct store_writer *w = new0(struct store_writer);
	int r;

	w->where = where;
	w->last = &w->first;
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->is_asked, NULL);
	r = -pthread_create(&w->thread, NULL, serve, w);
	w->has_thread = r == 0;
	if (r < 0) {
		store_writer_free(w);
		return err_set(err, r, "start the thread that writes to the database: %m");
	}
	*ret = w;
	return 0;
}

void store_writer_free(struct store_writer *w)
{
	if (!w)
		return;
	(void)pthread_mutex_lock(&w->lock);
	w->is_ending = true;
	(void)pthread_cond_signal(&w->is_asked);
	(void)pthread_mutex_unlock(&w->lock);
	if (w->has_thread)
		(void)pthread_join(w->thread, NULL);
	(void)pthread_cond_destroy(&w->is_asked);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Rows that are added are the server's own, and can wait; for what is changed somebody waits. */
static int wait_for(struct store_writer *w, struct job *job)
{
	job->deadline_ns =
		store_reach_deadline(w->where->reach, job->rows ? ROWS_PATIENT_MS : PATIENT_MS);
	(void)sem_init(&job->is_done, 0, 0);
	(void)pthread_mutex_lock(&w->lock);
	*w->last = job;
	w->last = &job->next;
	(void)pthread_cond_signal(&w->is_asked);
	(void)pthread_mutex_unlock(&w->lock);
	while (sem_wait(&job->is_done) < 0) /* a signal */
		continue;
	(void)sem_destroy(&job->is_done);
	return job->r;
}

int store_writer_do(struct store_writer *w, db_work_fn work, void *arg, struct err *err)
{
	struct job job = {.work = work, .arg = arg, .err = err};

	return wait_for(w, &job);
}

int store_writer_add(struct store_writer *w, const struct store_rows *rows, struct err *err)
{
	struct job job = {.rows = rows, .err = err};

	return wait_for(w, &job);
}
