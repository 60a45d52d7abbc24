/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/owners.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/gateway_internal.h"
#include "proto/gateway_wire.h"
#include "util/clock.h"
#include "util/kmap.h"
#include "util/map.h"
#include "util/mem.h"

#define KEEP_NS  (60 * CLOCK_NS_PER_S)
#define SWEEP_NS (30 * CLOCK_NS_PER_S)
#define KEYS_MAX 20000 /* beyond, one is deleted when it was read */

struct owners {
	struct gateway *gw;
	struct map *used; /* key to when it was asked for last, in ns */
	struct poller_timer timer;
};

static struct slice key_of(const struct netcatch_key *key)
{
	return (struct slice){.p = (const char *)key, .len = sizeof(*key)};
}

static void sweep(void *ctx)
{
	struct owners *owners = ctx;
	int64_t old = poller_now_ns(owners->gw->poller) - KEEP_NS;
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(owners->used, &i, &key, &value);)
		if ((int64_t)(intptr_t)value < old) {
			(void)kmap_remove(GATEWAY_FD_OWNERS, key.p); /* gone: as well */
			map_remove(owners->used, key);
		}
	if (map_len(owners->used) > 0)
		poller_timer_set(owners->gw->poller, &owners->timer, SWEEP_NS);
}

struct owners *owners_new(struct gateway *gw)
{
	struct owners *owners = new0(struct owners);

	owners->gw = gw;
	owners->used = map_new();
	owners->timer = (struct poller_timer){.on_time = sweep, .ctx = owners};
	return owners;
}

void owners_free(struct owners *owners)
{
	if (!owners)
		return;
	poller_timer_stop(owners->gw->poller, &owners->timer);
	map_free(owners->used);
	free(owners);
}

void owners_find(
	struct owners *owners, const struct netcatch_key *key, struct netcatch_owner *ret_owner)
{
	if (kmap_find(GATEWAY_FD_OWNERS, key, ret_owner) < 0) {
		memset(ret_owner, 0, sizeof(*ret_owner));
		return;
	}
	if (map_len(owners->used) >= KEYS_MAX) {
		(void)kmap_remove(GATEWAY_FD_OWNERS, key);
		return;
	}
	*map_slot(owners->used, key_of(key)) = (void *)(intptr_t)poller_now_ns(owners->gw->poller);
	if (!owners->timer.place)
		poller_timer_set(owners->gw->poller, &owners->timer, SWEEP_NS);
}
