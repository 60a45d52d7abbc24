/* SPDX-License-Identifier: Apache-2.0 */
#include "server/limiter.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"

#define SHARES    8     /* a share is the limit divided by this, */
#define SHARE_MAX 50    /* but no more: what a killed one had is lost */
#define TOUCH_MS  60000 /* "used" is as exact as that */

struct bucket {
	int64_t second, left, touched_ms;
};

struct limiter {
	struct store *store;
	pthread_mutex_t lock;
	struct map *buckets; /* id of the key to its bucket */
};

struct limiter *limiter_new(struct store *store)
{
	struct limiter *limiter = new0(struct limiter);

	limiter->store = store;
	limiter->buckets = map_new();
	pthread_mutex_init(&limiter->lock, NULL);
	return limiter;
}

void limiter_free(struct limiter *limiter)
{
	size_t i = 0;
	struct slice key;
	void *bucket;

	if (!limiter)
		return;
	while (map_next(limiter->buckets, &i, &key, &bucket))
		free(bucket);
	map_free(limiter->buckets);
	pthread_mutex_destroy(&limiter->lock);
	free(limiter);
}

/* With the lock. */
static struct bucket *bucket_of(struct limiter *limiter, const char *key)
{
	void **slot = map_slot(limiter->buckets, slice_of(key));

	if (!*slot)
		*slot = new0(struct bucket);
	return *slot;
}

static bool take_local(struct limiter *limiter, const char *key, int64_t now_ms, bool *ret_touch)
{
	struct bucket *bucket;
	bool has_one;

	pthread_mutex_lock(&limiter->lock);
	bucket = bucket_of(limiter, key);
	has_one = bucket->second == now_ms / 1000 && bucket->left > 0;
	bucket->left -= has_one;
	*ret_touch = now_ms - bucket->touched_ms > TOUCH_MS;
	if (*ret_touch)
		bucket->touched_ms = now_ms;
	pthread_mutex_unlock(&limiter->lock);
	return has_one;
}

static void keep_share(struct limiter *limiter, const char *key, int64_t second, int64_t n)
{
	struct bucket *bucket;

	pthread_mutex_lock(&limiter->lock);
	bucket = bucket_of(limiter, key);
	if (bucket->second != second)
		bucket->left = 0;
	bucket->second = second;
	bucket->left += n;
	pthread_mutex_unlock(&limiter->lock);
}

int limiter_take(
	struct limiter *limiter, const struct caller *caller, int64_t limit, struct err *err)
{
	int64_t now_ms = clock_wall_ms(), most = limit ? limit : LIMITER_DEFAULT;
	int64_t share = most / SHARES > SHARE_MAX ? SHARE_MAX : most / SHARES;
	int want = share > 0 ? (int)share : 1, got;
	bool touch, has_one = take_local(limiter, caller->key, now_ms, &touch);

	got = has_one ? 1
	              : store_rate_take(
				limiter->store, caller->key, now_ms / 1000, want, (int)most, err);
	if (touch && got > 0)
		(void)store_key_touch(limiter->store, caller->account, caller->key, now_ms,
			NULL); /* for people's eyes only */
	if (has_one)
		return 0;
	if (got == 0)
		return err_set(err, -EDQUOT,
			"this key has had its %lld requests of this second: try again in the next "
			"one",
			(long long)most);
	if (got > 0)
		keep_share(limiter, caller->key, now_ms / 1000, got - 1);
	return got < 0 ? got : 0;
}
