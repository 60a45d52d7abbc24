/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/tree.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/tree_internal.h"
#include "util/mem.h"
#include "util/scoped.h"

#define THREADS_MAX 8
#define ITEMS_MIN   64

/* ---- lists ---- */

struct tree_entry *tree_add(struct tree *tree, char *path)
{
	struct tree_entry *entry;

	if ((tree->n & (tree->n - 1)) == 0)
		tree->items = mem_grow(tree->items, tree->n < ITEMS_MIN ? ITEMS_MIN : 2 * tree->n,
			sizeof(*tree->items));
	entry = &tree->items[tree->n++];
	*entry = (struct tree_entry){.path = path};
	return entry;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

void tree_sort(struct tree *tree)
{
	if (tree->n > 1)
		qsort(tree->items, tree->n, sizeof(*tree->items), by_path);
}

void tree_done(struct tree *tree)
{
	for (size_t i = 0; i < tree->n; i++) {
		free(tree->items[i].path);
		free(tree->items[i].target);
	}
	free(tree->items);
	*tree = (struct tree){0};
}

/* Takes what one thread found. */
static void join(struct tree *all, struct tree *part)
{
	if (part->n > 0) {
		all->items = mem_grow(all->items, all->n + part->n, sizeof(*all->items));
		memcpy(&all->items[all->n], part->items, part->n * sizeof(*all->items));
	}
	all->n += part->n;
	all->bytes += part->bytes;
	all->vanished += part->vanished;
	free(part->items);
	*part = (struct tree){0};
}

/* ---- the work that waits ---- */

void tree_work_push(struct tree_work *work, struct tree_job *job)
{
	pthread_mutex_lock(&work->lock);
	job->next = work->jobs;
	work->jobs = job;
	work->n_open++;
	pthread_cond_signal(&work->more);
	pthread_mutex_unlock(&work->lock);
}

/* NULL when nothing is left and nobody is at work who could find more. */
static struct tree_job *pop(struct tree_work *work)
{
	struct tree_job *job;

	pthread_mutex_lock(&work->lock);
	while (!work->jobs && work->n_open > 0)
		pthread_cond_wait(&work->more, &work->lock);
	job = work->jobs;
	if (job)
		work->jobs = job->next;
	pthread_mutex_unlock(&work->lock);
	return job;
}

static void finish(struct tree_work *work, size_t n_found)
{
	pthread_mutex_lock(&work->lock);
	work->n_found += n_found;
	if (--work->n_open == 0)
		pthread_cond_broadcast(&work->more);
	pthread_mutex_unlock(&work->lock);
}

static bool is_full(struct tree_work *work)
{
	bool full;

	pthread_mutex_lock(&work->lock);
	full = work->n_found > TREE_ENTRIES_MAX;
	pthread_mutex_unlock(&work->lock);
	return full;
}

static void *run(void *arg)
{
	struct tree_worker *worker = arg;
	struct tree_job *job;

	while ((job = pop(worker->work))) {
		size_t before = worker->found.n;

		if (!is_full(worker->work)) /* else only emptied */
			tree_walk(worker, job);
		finish(worker->work, worker->found.n - before);
		tree_job_free(job);
	}
	return NULL;
}

static size_t n_threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (size_t)n;
}

/* The caller is one of the threads; where others cannot be had it does it alone. */
static void run_all(struct tree_worker *workers, size_t n)
{
	size_t started = 1;

	while (started < n &&
		pthread_create(&workers[started].thread, NULL, run, &workers[started]) == 0)
		started++;
	run(&workers[0]);
	for (size_t i = 1; i < started; i++)
		pthread_join(workers[i].thread, NULL);
}

int tree_read(const struct tree_config *config, struct tree *ret_tree, struct err *err)
{
	struct tree_work work = {.config = config,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.more = PTHREAD_COND_INITIALIZER};
	size_t n = n_threads();
	scoped_mem struct tree_worker *workers = new0_n(struct tree_worker, n);
	struct tree tree = {0};

	tree_work_push(&work, tree_job_new(mem_dup("")));
	for (size_t i = 0; i < n; i++)
		workers[i].work = &work;
	run_all(workers, n);
	for (size_t i = 0; i < n; i++)
		join(&tree, &workers[i].found);
	for (size_t i = 0; i < n; i++)
		free(workers[i].buffer);
	if (tree.n > TREE_ENTRIES_MAX) {
		tree_done(&tree);
		return err_set(err, -EFBIG, "more than %d files and folders", TREE_ENTRIES_MAX);
	}
	tree_sort(&tree);
	*ret_tree = tree;
	return 0;
}
