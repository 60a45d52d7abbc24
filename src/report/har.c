/* SPDX-License-Identifier: Apache-2.0 */
#include "report/har.h"

#include <jansson.h>
#include <stdlib.h>

#include "report/har_parts.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/mem.h"

struct entry {
	int64_t start_ms;
	size_t order;
	struct str json;     /* without its last brace */
	struct str messages; /* with commas between */
};

struct har {
	network_body_fn read;
	void *ctx;
	struct network_bodies bodies;
	struct entry *entries;
	size_t n, cap;
	struct map
		*opened; /* "sandbox flow" to index + 1 of the exchange that opened a WebSocket */
	struct str key;
	uint64_t left_out;
};

struct har *har_new(network_body_fn read, void *ctx)
{
	struct har *har = new0(struct har);

	har->read = read;
	har->ctx = ctx;
	har->opened = map_new();
	return har;
}

void har_free(struct har *har)
{
	if (!har)
		return;
	for (size_t i = 0; i < har->n; i++) {
		str_done(&har->entries[i].json);
		str_done(&har->entries[i].messages);
	}
	free(har->entries);
	map_free(har->opened);
	network_body_done(&har->bodies);
	str_done(&har->key);
	free(har);
}

static struct entry *new_entry(struct har *har)
{
	if (har->n == har->cap) {
		har->cap = har->cap ? har->cap * 2 : 16;
		har->entries = mem_grow(har->entries, har->cap, sizeof(*har->entries));
	}
	har->entries[har->n] = (struct entry){.order = har->n};
	return &har->entries[har->n++];
}

static struct slice flow_key(struct har *har, const struct event *ev, const char *sandbox)
{
	str_reset(&har->key);
	str_printf(&har->key, "%s %lld", sandbox ? sandbox : "", (long long)ev->flow);
	return str_slice(&har->key);
}

static void add_exchange(struct har *har, const struct event *ev, const char *sandbox)
{
	struct entry *entry;

	if (har->n == HAR_ENTRIES_MAX) {
		har->left_out++;
		return;
	}
	entry = new_entry(har);
	entry->start_ms = har_parts_start_ms(ev);
	if (event_has(ev, upgrade) && event_has(ev, flow))
		*map_slot(har->opened, flow_key(har, ev, sandbox)) = (void *)(uintptr_t)har->n;
	har_parts_entry(&entry->json, ev, &har->bodies, sandbox);
}

static void add_message(struct har *har, const struct event *ev, const char *sandbox)
{
	uintptr_t at = (uintptr_t)map_find(har->opened, flow_key(har, ev, sandbox));
	struct str *out;

	if (!at)
		return;
	out = &har->entries[at - 1].messages;
	if (out->len)
		str_putc(out, ',');
	har_parts_message(out, ev, &har->bodies);
}

void har_add(struct har *har, const struct event *ev, const char *sandbox)
{
	if (ev->kind != EVENT_NET_HTTP && ev->kind != EVENT_NET_WS)
		return;
	network_body_read(&har->bodies, ev, har->read, har->ctx);
	if (ev->kind == EVENT_NET_HTTP)
		add_exchange(har, ev, sandbox);
	else
		add_message(har, ev, sandbox);
}

static int compare(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->start_ms != right->start_ms)
		return left->start_ms < right->start_ms ? -1 : 1;
	return left->order < right->order ? -1 : left->order > right->order;
}

static void write_head(struct jsonw *j, const struct har *har)
{
	jsonw_ktext(j, "version", "1.2");
	jsonw_key(j, "creator");
	jsonw_object(j);
	jsonw_ktext(j, "name", "cloche");
	jsonw_ktext(j, "version", CLOCHE_VERSION);
	jsonw_object_end(j);
	jsonw_key(j, "pages");
	jsonw_array(j);
	jsonw_array_end(j);
	if (har->left_out)
		jsonw_kint(j, "_left_out", (int64_t)har->left_out);
}

void har_json(struct har *har, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	if (har->n > 1)
		qsort(har->entries, har->n, sizeof(*har->entries), compare);
	jsonw_object(&j);
	jsonw_key(&j, "log");
	jsonw_object(&j);
	write_head(&j, har);
	jsonw_key(&j, "entries");
	jsonw_array(&j);
	for (size_t i = 0; i < har->n; i++) {
		const struct entry *entry = &har->entries[i];

		jsonw_raw(&j, str_slice(&entry->json));
		if (entry->messages.len) {
			str_puts(out, ",\"_webSocketMessages\":[");
			str_add(out, entry->messages.p, entry->messages.len);
			str_putc(out, ']');
		}
		str_putc(out, '}');
	}
	jsonw_array_end(&j);
	jsonw_object_end(&j);
	jsonw_object_end(&j);
}
