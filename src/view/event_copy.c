/* SPDX-License-Identifier: Apache-2.0 */
#include "view/event_copy.h"

#include "util/mem.h"

/* The next field that ev has, from *f on; false behind the last. */
static bool next_field(const struct event *ev, size_t *f)
{
	for (size_t w = *f / 64; w < EVENT_HAS_WORDS; w++) {
		uint64_t bits = ev->has[w] & (w == *f / 64 ? ~0ULL << (*f % 64) : ~0ULL);

		if (!bits)
			continue;
		*f = w * 64 + (size_t)__builtin_ctzll(bits);
		return true;
	}
	return false;
}

struct needs {
	size_t bytes, items;
};

static struct needs count(const struct event *ev)
{
	struct needs needs = {.bytes = ev->exec.len + ev->sandbox.len};

	for (size_t f = 0; next_field(ev, &f); f++) {
		const void *at = (const char *)ev + event_field_table[f].offset;
		enum event_type type = event_field_table[f].type;
		const struct event_list *list = at;

		if (type == EVENT_TYPE_text || type == EVENT_TYPE_raw)
			needs.bytes += ((const struct slice *)at)->len;
		if (type != EVENT_TYPE_list)
			continue;
		needs.items += list->n;
		for (size_t i = 0; i < list->n; i++)
			needs.bytes += list->items[i].len;
	}
	return needs;
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

/* The event, the items of its lists, the bytes of its texts. */
struct event *event_copy(const struct event *ev)
{
	struct needs needs = count(ev);
	struct event *own =
		mem_grow(NULL, sizeof(*own) + needs.items * sizeof(struct slice) + needs.bytes, 1);
	struct slice *items = (struct slice *)(own + 1);
	char *at = (char *)(items + needs.items);

	*own = *ev;
	move_text(&own->exec, &at);
	move_text(&own->sandbox, &at);
	for (size_t f = 0; next_field(ev, &f); f++) {
		void *field = (char *)own + event_field_table[f].offset;
		enum event_type type = event_field_table[f].type;

		if (type == EVENT_TYPE_text || type == EVENT_TYPE_raw)
			move_text(field, &at);
		else if (type == EVENT_TYPE_list)
			move_list(field, &items, &at);
	}
	return own;
}
