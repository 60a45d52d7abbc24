/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of copies, sorted by time. Events come nearly sorted, so a new one moves few steps from the back. */
#include "view/reorder.h"

#include <stdlib.h>

#include "util/mem.h"

#define RING (REORDER_HELD * 2)

struct reorder {
	struct event *ring[RING];
	size_t first, n;
	struct event *given; /* what reorder_pop() last returned */
};

struct reorder *reorder_new(void)
{
	return new0(struct reorder);
}

void reorder_free(struct reorder *reorder)
{
	if (!reorder)
		return;
	for (size_t i = 0; i < reorder->n; i++)
		free(reorder->ring[(reorder->first + i) % RING]);
	free(reorder->given);
	free(reorder);
}

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

/* One block: the event, the items of its lists, the bytes of its texts. */
static struct event *copy(const struct event *ev)
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

static bool is_before(const struct event *a, const struct event *b)
{
	return a->guest_ns != b->guest_ns ? a->guest_ns < b->guest_ns : a->seq < b->seq;
}

void reorder_push(struct reorder *reorder, const struct event *ev)
{
	struct event *own = copy(ev);
	size_t i = reorder->n++;

	for (; i > 0; i--) {
		struct event *earlier = reorder->ring[(reorder->first + i - 1) % RING];

		if (!is_before(own, earlier))
			break;
		reorder->ring[(reorder->first + i) % RING] = earlier;
	}
	reorder->ring[(reorder->first + i) % RING] = own;
}

const struct event *reorder_pop(struct reorder *reorder, bool all)
{
	free(reorder->given);
	reorder->given = NULL;
	if (reorder->n == 0 || (!all && reorder->n <= REORDER_HELD))
		return NULL;
	reorder->given = reorder->ring[reorder->first];
	reorder->first = (reorder->first + 1) % RING;
	reorder->n--;
	return reorder->given;
}
