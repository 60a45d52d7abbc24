/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/refused_hosts.h"

#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"

struct host_list {
	struct slice items[REFUSED_HOSTS_MAX]; /* owned */
	size_t n;
};

struct refused_hosts {
	struct map *execs; /* to struct host_list */
};

struct refused_hosts *refused_hosts_new(void)
{
	struct refused_hosts *hosts = new0(struct refused_hosts);

	hosts->execs = map_new();
	return hosts;
}

static void free_list(struct host_list *list)
{
	for (size_t i = 0; list && i < list->n; i++)
		free((char *)list->items[i].p);
	free(list);
}

void refused_hosts_free(struct refused_hosts *hosts)
{
	struct slice exec;
	void *list;

	if (!hosts)
		return;
	for (size_t i = 0; map_next(hosts->execs, &i, &exec, &list);)
		free_list(list);
	map_free(hosts->execs);
	free(hosts);
}

void refused_hosts_add(struct refused_hosts *hosts, const struct event *ev)
{
	struct slice host = ev->host.len ? ev->host : ev->name.len ? ev->name : ev->address;
	struct host_list *list;
	void **slot;

	if (ev->kind != EVENT_NET_REFUSED || ev->shadow || ev->exec.len == 0 || host.len == 0)
		return;
	slot = map_slot(hosts->execs, ev->exec);
	list = *slot ? *slot : (*slot = new0(struct host_list));
	for (size_t i = 0; i < list->n; i++)
		if (slice_eq(list->items[i], host))
			return;
	if (list->n < REFUSED_HOSTS_MAX)
		list->items[list->n++] =
			(struct slice){.p = mem_copy(host.p, host.len), .len = host.len};
}

struct event_list refused_hosts_of(const struct refused_hosts *hosts, struct slice exec)
{
	const struct host_list *list = map_find(hosts->execs, exec);

	return list ? (struct event_list){.items = list->items, .n = list->n}
	            : (struct event_list){0};
}

void refused_hosts_forget(struct refused_hosts *hosts, struct slice exec)
{
	if (map_find(hosts->execs, exec))
		free_list(map_remove(hosts->execs, exec));
}
