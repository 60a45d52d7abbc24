/* SPDX-License-Identifier: Apache-2.0 */
#include "view/event_copy.h"

#include "util/mem.h"

static size_t bytes_of(const struct event *ev)
{
	size_t n = sizeof(*ev) + ev->exec.len + ev->sandbox.len;

	for (int f = 0; f < EVENT_N_FIELDS; f++) {
		const void *at = (const char *)ev + event_field_table[f].offset;
		enum event_type type = event_field_table[f].type;

		if (!event_has_field(ev, (enum event_field)f))
			continue;
		if (type == EVENT_TYPE_text || type == EVENT_TYPE_raw)
			n += ((const struct slice *)at)->len;
		if (type != EVENT_TYPE_list)
			continue;
		for (size_t i = 0; i < ((const struct event_list *)at)->n; i++)
			n += sizeof(struct slice) + ((const struct event_list *)at)->items[i].len;
	}
	return n;
}

static void move_text(struct slice *text, char **at)
{
	if (text->len)
		memcpy(*at, text->p, text->len);
	text->p = *at;
	*at += text->len;
}

static void move_list(struct event_list *list, struct slice **items, char **at)
{
	struct slice *own = *items;

	for (size_t i = 0; i < list->n; i++) {
		own[i] = list->items[i];
		move_text(&own[i], at);
	}
	*items += list->n;
	list->items = own;
}

static size_t n_items(const struct event *ev)
{
	size_t n = 0;

	for (int f = 0; f < EVENT_N_FIELDS; f++)
		if (event_field_table[f].type == EVENT_TYPE_list &&
			event_has_field(ev, (enum event_field)f))
			n += ((const struct event_list *)(const void
					      *)((const char *)ev + event_field_table[f].offset))
			             ->n;
	return n;
}

/* The event, the items of its lists, the bytes of its texts. */
struct event *event_copy(const struct event *ev)
{
	struct event *own = mem_grow(NULL, bytes_of(ev), 1);
	struct slice *items = (struct slice *)(own + 1);
	char *at = (char *)(items + n_items(ev));

	*own = *ev;
	move_text(&own->exec, &at);
	move_text(&own->sandbox, &at);
	for (int f = 0; f < EVENT_N_FIELDS; f++) {
		void *field = (char *)own + event_field_table[f].offset;
		enum event_type type = event_field_table[f].type;

		if (!event_has_field(ev, (enum event_field)f))
			continue;
		if (type == EVENT_TYPE_text || type == EVENT_TYPE_raw)
			move_text(field, &at);
		else if (type == EVENT_TYPE_list)
			move_list(field, &items, &at);
	}
	return own;
}
