/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share work which grows while it is done: a walk finds folders in folders. */
#ifndef MANIFEST_POOL_H
#define MANIFEST_POOL_H

#include <pthread.h>
#include <stddef.h>

#define POOL_THREADS_MAX 8

/* First in the caller's own struct. */
struct pool_job {
	struct pool_job *next;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct pool_job *jobs; /* the last one first: few folders are open at once */
	size_t n_open;         /* waiting or being done */
	size_t n_waiting;      /* threads without work */
	/* Does a job and lets it go; may push more. worker: of the thread that does it. */
	void (*run)(void *worker, struct pool_job *job);
};

#define POOL_INIT(run_) \
	{ \
		.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .run = (run_) \
	}

size_t pool_n_threads(void); /* as many as there are CPUs, up to the maximum */
void pool_push(struct pool *pool, struct pool_job *job);
/* Returns when no job is left. The caller is one of the n threads; where others cannot be had it does it alone. */
void pool_run(struct pool *pool, void *const *workers, size_t n);

#endif
