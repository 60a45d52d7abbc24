/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/refused.h"

#include <stdlib.h>
#include <string.h>

#include "netcatch/netcatch_wire.h"
#include "util/kmap.h"
#include "util/map.h"
#include "util/mem.h"

#define TARGETS_MAX 16384 /* more are refused one by one */

/* All targets of one address. */
struct target {
	struct netcatch_target key;
	struct target *next;
};

struct refused {
	int map_fd;
	struct map *by_address;
	size_t n;
};

static struct slice key_of(const uint8_t address[16])
{
	return (struct slice){.p = (const char *)address, .len = 16};
}

struct refused *refused_new(int map_fd)
{
	struct refused *refused = new0(struct refused);

	refused->map_fd = map_fd;
	refused->by_address = map_new();
	return refused;
}

static void forget(struct refused *refused, struct target *target)
{
	while (target) {
		struct target *next = target->next;

		(void)kmap_remove(refused->map_fd, &target->key); /* gone: as well */
		free(target);
		refused->n--;
		target = next;
	}
}

void refused_clear(struct refused *refused)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(refused->by_address, &i, &key, &value);)
		forget(refused, value);
	map_free(refused->by_address);
	refused->by_address = map_new();
}

void refused_free(struct refused *refused)
{
	if (!refused)
		return;
	refused_clear(refused);
	map_free(refused->by_address);
	free(refused);
}

void refused_add(
	struct refused *refused, const uint8_t address[16], uint16_t port, uint16_t protocol)
{
	struct netcatch_target key = {.dport = port, .protocol = protocol};
	struct target *target;
	uint32_t yes = 1;
	void **slot;

	if (refused->n >= TARGETS_MAX)
		return;
	memcpy(key.dst, address, sizeof(key.dst));
	slot = map_slot(refused->by_address, key_of(address));
	for (target = *slot; target; target = target->next)
		if (memcmp(&target->key, &key, sizeof(key)) == 0)
			return;
	if (kmap_set(refused->map_fd, &key, &yes) < 0)
		return; /* full: refused one by one */
	target = new0(struct target);
	target->key = key;
	target->next = *slot;
	*slot = target;
	refused->n++;
}

void refused_forget(struct refused *refused, const uint8_t address[16])
{
	forget(refused, map_remove(refused->by_address, key_of(address)));
}
