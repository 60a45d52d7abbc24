/* SPDX-License-Identifier: Apache-2.0 */
#include "view/refused_tries.h"

#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"

struct refused_tries {
	struct map *flows; /* by number */
};

struct refused_tries *refused_tries_new(void)
{
	struct refused_tries *tries = new0(struct refused_tries);

	tries->flows = map_new();
	return tries;
}

void refused_tries_free(struct refused_tries *tries)
{
	if (!tries)
		return;
	map_free(tries->flows);
	free(tries);
}

bool refused_tries_ends(struct refused_tries *tries, const struct event *ev)
{
	unsigned long long number = (unsigned long long)ev->flow;
	struct slice key = map_int_key(&number);

	if (!event_has(ev, flow))
		return false;
	/* Later stages refuse what was connected before. */
	if (ev->kind == EVENT_NET_REFUSED && slice_is(ev->stage, "connect") && !ev->shadow)
		*map_slot(tries->flows, key) = tries;
	if (ev->kind != EVENT_NET_CONNECT)
		return false;
	return map_remove(tries->flows, key) && event_has(ev, result) && ev->result;
}
