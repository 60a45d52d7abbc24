/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/pool.h"

#include <stdbool.h>
#include <unistd.h>

struct member {
	pthread_t thread;
	struct pool *pool;
	void *worker;
};

size_t pool_n_threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > POOL_THREADS_MAX ? POOL_THREADS_MAX : (size_t)n;
}

void pool_push(struct pool *pool, struct pool_job *job)
{
	bool wake;

	pthread_mutex_lock(&pool->lock);
	job->next = pool->jobs;
	pool->jobs = job;
	pool->n_open++;
	wake = pool->n_waiting > 0;
	pthread_mutex_unlock(&pool->lock);
	if (wake)
		pthread_cond_signal(&pool->more);
}

/* The next job, once the one before (if any) is done. NULL when nothing is left and nobody is at work who could find
 * more. */
static struct pool_job *next(struct pool *pool, bool has_done)
{
	struct pool_job *job;

	pthread_mutex_lock(&pool->lock);
	if (has_done && --pool->n_open == 0)
		pthread_cond_broadcast(&pool->more);
	pool->n_waiting++;
	while (!pool->jobs && pool->n_open > 0)
		pthread_cond_wait(&pool->more, &pool->lock);
	pool->n_waiting--;
	job = pool->jobs;
	if (job)
		pool->jobs = job->next;
	pthread_mutex_unlock(&pool->lock);
	return job;
}

static void *work(void *arg)
{
	struct member *member = arg;
	struct pool_job *job = NULL;

	while ((job = next(member->pool, job != NULL)))
		member->pool->run(member->worker, job);
	return NULL;
}

void pool_run(struct pool *pool, void *const *workers, size_t n)
{
	struct member members[POOL_THREADS_MAX];
	size_t started = 1;

	members[0] = (struct member){.pool = pool, .worker = workers[0]};
	for (; started < n && started < POOL_THREADS_MAX; started++) {
		members[started] = (struct member){.pool = pool, .worker = workers[started]};
		if (pthread_create(&members[started].thread, NULL, work, &members[started]) != 0)
			break;
	}
	work(&members[0]);
	for (size_t i = 1; i < started; i++)
		pthread_join(members[i].thread, NULL);
}
