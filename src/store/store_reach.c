/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the database server can be reached, as all connections find it. A short absence, such as a restart, is waited for by
 * whoever asks; of a long one those who come then are told at once, and one of them tries now and then. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/store_internal.h"
#include "util/clock.h"
#include "util/mem.h"

#define REST_MS    50  /* between two tries of one caller */
#define PROBE_MS   500 /* between two tries of all, once nobody waits any more */
#define PATIENT_MS 10000

struct store_reach {
	_Atomic int64_t away_ns;  /* since when; 0: it is there */
	_Atomic int64_t tried_ns; /* the last time that it was not */
};

struct store_reach *store_reach_new(void)
{
	return new0(struct store_reach);
}

void store_reach_free(struct store_reach *reach)
{
	free(reach);
}

void store_reach_there(struct store_reach *reach)
{
	if (atomic_load(&reach->away_ns))
		atomic_store(&reach->away_ns, 0);
}

static void not_there(struct store_reach *reach)
{
	int64_t there = 0, now = clock_mono_ns();

	(void)atomic_compare_exchange_strong(&reach->away_ns, &there, now);
	atomic_store(&reach->tried_ns, now);
}

/* Somebody else tried just now: a connection that nobody answers takes seconds to find out. */
static bool is_known_away(struct store_reach *reach)
{
	int64_t away = atomic_load(&reach->away_ns), now = clock_mono_ns();

	return away && now > away + PATIENT_MS * CLOCK_NS_PER_MS &&
	       now < atomic_load(&reach->tried_ns) + PROBE_MS * CLOCK_NS_PER_MS;
}

int store_reach_open(struct store_reach *reach, const struct store_where *where, enum db_use use,
	struct db **ret_db, struct err *err)
{
	int r;

	if (is_known_away(reach))
		return err_set(err, -ECONNREFUSED,
			"the database cannot be reached: is the server up, and --database right?");
	r = where->driver->open(where->place, use, ret_db, err);
	if (r == -ECONNREFUSED)
		not_there(reach);
	else if (r == 0)
		store_reach_there(reach);
	return r;
}

/* Who comes when it is away already has as much time as is left of what the first one had: at least one try. */
int64_t store_reach_deadline(struct store_reach *reach, int patience_ms)
{
	int64_t away = atomic_load(&reach->away_ns);

	return (away ? away : clock_mono_ns()) + patience_ms * CLOCK_NS_PER_MS;
}

bool store_may_retry(int r, int64_t deadline_ns)
{
	bool is_passing = r == -EAGAIN || r == -ECONNRESET || r == -ECONNREFUSED;

	if (!is_passing || clock_mono_ns() > deadline_ns)
		return false;
	(void)usleep(REST_MS * 1000);
	return true;
}

int store_reach_told(int r, struct err *err)
{
	return r == -EACCES ? err_wrap(err, -EIO, "the database refuses it") : r;
}
