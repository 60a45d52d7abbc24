/* SPDX-License-Identifier: Apache-2.0 */
/* Connections, each used by one thread at a time. Whoever finds none free waits, at most WAIT_S. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "store/store_internal.h"
#include "util/mem.h"

#define WAIT_S 10

struct store_pool {
	const struct store_where *where;
	enum db_use use;
	pthread_mutex_t lock;
	pthread_cond_t is_given;
	struct db **idle;
	int n_idle, n_out, max;
};

struct store_pool *store_pool_new(const struct store_where *where, enum db_use use, int max)
{
	struct store_pool *pool = new0(struct store_pool);

	*pool = (struct store_pool){.where = where, .use = use, .max = max};
	pool->idle = new0_n(struct db *, (size_t)max);
	(void)pthread_mutex_init(&pool->lock, NULL);
	(void)pthread_cond_init(&pool->is_given, NULL);
	return pool;
}

void store_pool_free(struct store_pool *pool)
{
	if (!pool)
		return;
	for (int i = 0; i < pool->n_idle; i++)
		db_close(pool->idle[i]);
	(void)pthread_cond_destroy(&pool->is_given);
	(void)pthread_mutex_destroy(&pool->lock);
	free(pool->idle);
	free(pool);
}

/* Takes a place in the pool, and the connection that waits there, if one does. */
static int take_place(struct store_pool *pool, struct db **ret_db)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_S;
	(void)pthread_mutex_lock(&pool->lock);
	while (pool->n_out == pool->max && r == 0)
		r = pthread_cond_clockwait(&pool->is_given, &pool->lock, CLOCK_MONOTONIC, &until);
	if (pool->n_out < pool->max) {
		r = 0;
		pool->n_out++;
		*ret_db = pool->n_idle ? pool->idle[--pool->n_idle] : NULL;
	}
	(void)pthread_mutex_unlock(&pool->lock);
	return -r;
}

/* A NULL gives the place back alone. */
static void give_place(struct store_pool *pool, struct db *db)
{
	(void)pthread_mutex_lock(&pool->lock);
	pool->n_out--;
	if (db)
		pool->idle[pool->n_idle++] = db;
	(void)pthread_cond_signal(&pool->is_given);
	(void)pthread_mutex_unlock(&pool->lock);
}

int store_pool_take(struct store_pool *pool, struct db **ret_db, struct err *err)
{
	struct db *db = NULL;
	int r = take_place(pool, &db);

	if (r < 0)
		return err_set(err, -EBUSY,
			"all %d connections to the database are busy: try again", pool->max);
	if (!db) {
		r = store_reach_open(pool->where->reach, pool->where, pool->use, &db, err);
		if (r < 0) {
			give_place(pool, NULL);
			return r;
		}
	}
	*ret_db = db;
	return 0;
}

void store_pool_give(struct store_pool *pool, struct db *db)
{
	db->err = NULL;
	if (db->is_lost) {
		db_close(db);
		db = NULL;
	}
	give_place(pool, db);
}
