/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/owners.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "gateway/gateway_internal.h"
#include "proto/gateway_wire.h"
#include "util/clock.h"
#include "util/kmap.h"
#include "util/map.h"
#include "util/mem.h"

#define KEEP_NS     (60 * CLOCK_NS_PER_S)
#define SWEEP_NS    (30 * CLOCK_NS_PER_S)
#define KEYS_MAX    (NETCATCH_OWNERS_MAX / 2) /* beyond, one is deleted when it was read */
#define PATIENCE_US 200000

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
	const struct timeval patience = {.tv_usec = PATIENCE_US};
	struct owners *owners = new0(struct owners);

	(void)setsockopt(GATEWAY_FD_FINDER, SOL_SOCKET, SO_RCVTIMEO, &patience,
		sizeof(patience)); /* fails for no socket of that kind */
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

/* An answer that comes too late is that of another key when the next is waited for. */
static void ask(const struct netcatch_key *key, struct netcatch_owner *ret_owner)
{
	struct netcatch_found found;

	memset(ret_owner, 0, sizeof(*ret_owner));
	if (send(GATEWAY_FD_FINDER, key, sizeof(*key), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
	while (recv(GATEWAY_FD_FINDER, &found, sizeof(found), 0) == sizeof(found))
		if (memcmp(&found.key, key, sizeof(*key)) == 0) {
			*ret_owner = found.owner;
			return;
		}
}

void owners_add(struct owners *owners, const struct netcatch_key *key, struct netcatch_owner *owner)
{
	struct netcatch_owner found;

	if (owner->pid)
		return;
	ask(key, &found);
	if (!found.cgroup)
		found.cgroup = owner->cgroup;
	*owner = found;
}

void owners_find(
	struct owners *owners, const struct netcatch_key *key, struct netcatch_owner *ret_owner)
{
	if (owners->gw->by_rules || kmap_find(GATEWAY_FD_OWNERS, key, ret_owner) < 0) {
		ask(key, ret_owner);
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
