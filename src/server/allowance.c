/* SPDX-License-Identifier: Apache-2.0 */
#include "server/allowance.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"

struct allowance {
	pthread_mutex_t lock;
	struct map *counts[2]; /* [allowance_of], account to an int64_t */
};

struct allowance *allowance_new(void)
{
	struct allowance *allowance = new0(struct allowance);

	pthread_mutex_init(&allowance->lock, NULL);
	allowance->counts[ALLOWANCE_SANDBOXES] = map_new();
	allowance->counts[ALLOWANCE_EXECS] = map_new();
	return allowance;
}

static void free_counts(struct map *counts)
{
	struct slice account;
	size_t i = 0;
	void *n;

	while (map_next(counts, &i, &account, &n))
		free(n);
	map_free(counts);
}

void allowance_free(struct allowance *allowance)
{
	if (!allowance)
		return;
	free_counts(allowance->counts[ALLOWANCE_SANDBOXES]);
	free_counts(allowance->counts[ALLOWANCE_EXECS]);
	pthread_mutex_destroy(&allowance->lock);
	free(allowance);
}

static int take_account(const struct store_account *account, void *arg)
{
	struct store_account *limits = arg;

	limits->max_sandboxes = account->max_sandboxes;
	limits->max_execs = account->max_execs;
	return 0;
}

static int read_limits(struct call *call, struct store_account *ret, struct err *err)
{
	*ret = (struct store_account){0};
	return store_account_get(call->server->store, call->caller.account, take_account, ret, err);
}

/* Those that have not ended. */
static int64_t count_sandboxes(struct call *call, struct err *err)
{
	static const char *const alive[] = {"creating", "running", "paused", "suspended"};
	int64_t n = 0;

	for (size_t i = 0; i < sizeof(alive) / sizeof(alive[0]); i++) {
		int64_t more = store_sandbox_count(
			call->server->store, call->caller.account, alive[i], err);

		if (more < 0)
			return more;
		n += more;
	}
	return n;
}

/* Takes one where there are fewer than max. */
static bool take_one(
	struct allowance *allowance, enum allowance_of what, const char *account, int64_t max)
{
	bool has_room;
	void **slot;

	pthread_mutex_lock(&allowance->lock);
	slot = map_slot(allowance->counts[what], slice_of(account));
	if (!*slot)
		*slot = new0(int64_t);
	has_room = *(int64_t *)*slot < max;
	*(int64_t *)*slot += has_room;
	pthread_mutex_unlock(&allowance->lock);
	return has_room;
}

int allowance_take(struct call *call, enum allowance_of what, struct err *err)
{
	struct store_account limits;
	int64_t n = 0, max;
	int r = read_limits(call, &limits, err);

	if (r < 0)
		return r;
	max = what == ALLOWANCE_EXECS ? limits.max_execs : limits.max_sandboxes;
	if (max > 0 && what == ALLOWANCE_SANDBOXES)
		n = count_sandboxes(call, err);
	if (n < 0)
		return (int)n;
	if (take_one(
		    call->server->allowance, what, call->caller.account, max ? max - n : INT64_MAX))
		return 0;
	return err_set(err, -EDQUOT,
		what == ALLOWANCE_EXECS
			? "this account has its %lld commands under way: try again when "
			  "one has ended"
			: "this account has its %lld sandboxes: remove one first",
		(long long)max);
}

void allowance_give(struct allowance *allowance, enum allowance_of what, const char *account)
{
	int64_t *n;

	pthread_mutex_lock(&allowance->lock);
	n = map_find(allowance->counts[what], slice_of(account));
	if (n)
		*n -= 1;
	pthread_mutex_unlock(&allowance->lock);
}
