/* SPDX-License-Identifier: Apache-2.0 */
#include "view/intern.h"

#include <stdint.h>
#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "util/str.h"

struct list {
	struct event_list list;
	struct slice items[];
};

struct intern {
	struct map *texts; /* to char *: the bytes */
	struct map *lists; /* to struct list; the key is each item's length and bytes */
	struct str key;
};

struct intern *intern_new(void)
{
	struct intern *intern = new0(struct intern);

	intern->texts = map_new();
	intern->lists = map_new();
	return intern;
}

static void free_values(struct map *map)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(map, &i, &key, &value);)
		free(value);
	map_free(map);
}

void intern_free(struct intern *intern)
{
	if (!intern)
		return;
	free_values(intern->texts);
	free_values(intern->lists);
	str_done(&intern->key);
	free(intern);
}

struct slice intern_text(struct intern *intern, struct slice text)
{
	void **slot;

	if (text.len == 0)
		return (struct slice){0};
	slot = map_slot(intern->texts, text);
	if (!*slot)
		*slot = mem_copy(text.p, text.len);
	return (struct slice){.p = *slot, .len = text.len};
}

static struct list *copy_list(const struct event_list *from, size_t bytes)
{
	struct list *own = mem_zero(sizeof(*own) + from->n * sizeof(struct slice) + bytes, 1);
	char *at = (char *)(own->items + from->n);

	own->list = (struct event_list){.items = own->items, .n = from->n};
	for (size_t i = 0; i < from->n; i++) {
		own->items[i] = (struct slice){.p = at, .len = from->items[i].len};
		if (from->items[i].len)
			memcpy(at, from->items[i].p, from->items[i].len);
		at += from->items[i].len;
	}
	return own;
}

const struct event_list *intern_list(struct intern *intern, const struct event_list *list)
{
	size_t bytes = 0;
	void **slot;

	str_reset(&intern->key);
	for (size_t i = 0; i < list->n; i++) {
		uint64_t len = list->items[i].len;

		str_add(&intern->key, &len, sizeof(len));
		str_add(&intern->key, list->items[i].p, len);
		bytes += len;
	}
	slot = map_slot(intern->lists, str_slice(&intern->key));
	if (!*slot)
		*slot = copy_list(list, bytes);
	return &((struct list *)*slot)->list;
}
