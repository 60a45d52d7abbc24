/* SPDX-License-Identifier: Apache-2.0 */
/* Read your writes: rows whose exec was answered before they were added. A page waits for those that were expected
 * when it was asked for, not for later ones, so a busy sandbox cannot hold it up for ever. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "store/store_internal.h"
#include "util/map.h"
#include "util/mem.h"

#define EXPECTED_MAX 4096
#define WAIT_S       2
#define KEY_SIZE     (STORE_NAME_MAX + 32)

struct store_fresh {
	pthread_mutex_t lock;
	pthread_cond_t has_arrived;
	struct map *expected; /* "SANDBOX/SEQ" to a ticket, which is a number and no address */
	uintptr_t last_ticket;
};

struct store_fresh *store_fresh_new(void)
{
	struct store_fresh *fresh = new0(struct store_fresh);

	fresh->expected = map_new();
	(void)pthread_mutex_init(&fresh->lock, NULL);
	(void)pthread_cond_init(&fresh->has_arrived, NULL);
	return fresh;
}

void store_fresh_free(struct store_fresh *fresh)
{
	if (!fresh)
		return;
	map_free(fresh->expected);
	(void)pthread_cond_destroy(&fresh->has_arrived);
	(void)pthread_mutex_destroy(&fresh->lock);
	free(fresh);
}

static struct slice key_of(char text[KEY_SIZE], const char *sandbox, int64_t seq)
{
	int len = snprintf(text, KEY_SIZE, "%.*s/%lld", STORE_NAME_MAX, sandbox, (long long)seq);

	return (struct slice){.p = text, .len = (size_t)len};
}

int store_fresh_expect(struct store_fresh *fresh, const char *sandbox, int64_t seq)
{
	char text[KEY_SIZE];
	int r = -EAGAIN;

	(void)pthread_mutex_lock(&fresh->lock);
	if (map_len(fresh->expected) < EXPECTED_MAX) {
		*map_slot(fresh->expected, key_of(text, sandbox, seq)) =
			(void *)++fresh->last_ticket;
		r = 0;
	}
	(void)pthread_mutex_unlock(&fresh->lock);
	return r;
}

void store_fresh_arrived(struct store_fresh *fresh, const struct store_log_row *rows, size_t n)
{
	char text[KEY_SIZE];

	(void)pthread_mutex_lock(&fresh->lock);
	for (size_t i = 0; i < n && map_len(fresh->expected); i++)
		(void)map_remove(fresh->expected, key_of(text, rows[i].sandbox, rows[i].seq));
	(void)pthread_cond_broadcast(&fresh->has_arrived);
	(void)pthread_mutex_unlock(&fresh->lock);
}

void store_fresh_give_up(struct store_fresh *fresh, const char *sandbox, int64_t seq)
{
	store_fresh_arrived(fresh, &(struct store_log_row){.sandbox = sandbox, .seq = seq}, 1);
}

static bool is_one_missing(const struct store_fresh *fresh, const char *sandbox, uintptr_t ticket)
{
	size_t len = sandbox ? strlen(sandbox) : 0;
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(fresh->expected, &i, &key, &value);) {
		bool is_of_it = !sandbox || (slice_starts(key, sandbox) && key.p[len] == '/');

		if (is_of_it && (uintptr_t)value <= ticket)
			return true;
	}
	return false;
}

int store_fresh_wait(struct store_fresh *fresh, const char *sandbox)
{
	struct timespec until;
	uintptr_t ticket;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_S;
	(void)pthread_mutex_lock(&fresh->lock);
	ticket = fresh->last_ticket;
	while (r == 0 && is_one_missing(fresh, sandbox, ticket))
		r = pthread_cond_clockwait(
			&fresh->has_arrived, &fresh->lock, CLOCK_MONOTONIC, &until);
	(void)pthread_mutex_unlock(&fresh->lock);
	return -r;
}

int store_log_answered(struct store *store, const char *sandbox, int64_t seq)
{
	return store_fresh_expect(store->fresh, sandbox, seq);
}

void store_log_given_up(struct store *store, const char *sandbox, int64_t seq)
{
	store_fresh_give_up(store->fresh, sandbox, seq);
}
