/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "report/summary_internal.h"
#include "util/jsonw.h"
#include "view/saturate.h"

static void write_text(struct jsonw *j, const char *key, struct slice text)
{
	if (text.len)
		jsonw_kslice(j, key, text);
	else
		jsonw_knull(j, key);
}

static void write_place(struct jsonw *j, const struct summary_place *place)
{
	bool is_address = slice_eq(place->host, place->address);

	write_text(j, "host", is_address ? (struct slice){0} : place->host);
	write_text(j, "address", place->address);
	if (place->port)
		jsonw_kint(j, "port", place->port);
	else
		jsonw_knull(j, "port");
}

void summary_network_json_refused(struct summary *summary, struct jsonw *j)
{
	for (size_t i = 0; i < summary->hosts_refused.n; i++) {
		const struct summary_row *row = &summary->hosts_refused.rows[i];

		jsonw_object(j);
		write_place(j, &row->place);
		write_text(j, "protocol", row->place.protocol);
		if (row->place.method.len)
			jsonw_kslice(j, "method", row->place.method);
		if (row->place.url.len)
			jsonw_kslice(j, "url", row->place.url);
		write_text(j, "rule", row->rule);
		write_text(j, "reason", row->place.reason);
		summary_json_row_end(summary, j, row);
		jsonw_kbool(j, "shadow", row->place.is_shadow);
		jsonw_object_end(j);
	}
}

void summary_network_json_misused(struct summary *summary, struct jsonw *j)
{
	if (!summary_watched(summary, "network")) {
		jsonw_knull(j, "misused");
		return;
	}
	jsonw_key(j, "misused");
	jsonw_array(j);
	for (size_t i = 0; i < summary->misused.n; i++) {
		const struct summary_row *row = &summary->misused.rows[i];

		jsonw_object(j);
		jsonw_kslice(j, "secret", row->rule);
		write_place(j, &row->place);
		write_text(j, "where", row->place.where);
		summary_json_row_end(summary, j, row);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
	if (summary->misused.more > 0)
		jsonw_kint(j, "misused_more", summary->misused.more);
}

struct totals {
	int64_t hosts, failed, refused, requests, bytes_out, bytes_in, unreadable, passed;
};

static struct totals add_up(const struct summary *summary, size_t n)
{
	struct totals t = {0};

	for (size_t i = 0; i < n; i++) {
		const struct network_entry *entry = network_table_get(summary->network, i);

		t.hosts += !entry->failed;
		t.failed += entry->failed && !entry->refused;
		t.refused += entry->refused;
		t.requests =
			saturate_add(t.requests, (int64_t)entry->n_requests + entry->requests_more);
		t.bytes_out = saturate_add(t.bytes_out, entry->bytes_out);
		t.bytes_in = saturate_add(t.bytes_in, entry->bytes_in);
		if (entry->refused && entry->failed)
			continue; /* nothing went there */
		t.unreadable += entry->unreadable;
		t.passed += slice_is(entry->tls, "passthrough");
	}
	return t;
}

static void write_secrets(const struct summary *summary, struct jsonw *j, size_t n)
{
	jsonw_key(j, "secrets");
	jsonw_array(j);
	for (size_t i = 0; i < n; i++) {
		const struct network_entry *entry = network_table_get(summary->network, i);

		for (size_t s = 0; s < entry->n_secrets; s++) {
			jsonw_object(j);
			jsonw_kslice(j, "name", entry->secrets[s].name);
			jsonw_kint(j, "used", entry->secrets[s].used);
			if (entry->secrets[s].passed)
				jsonw_kint(j, "passed", entry->secrets[s].passed);
			jsonw_kslice(j, "host", entry->host.len ? entry->host : entry->address);
			jsonw_object_end(j);
		}
	}
	jsonw_array_end(j);
}

void summary_network_json(struct summary *summary, struct jsonw *j)
{
	bool is_watched = summary_watched(summary, "network");
	size_t n = network_table_settle(summary->network);
	struct totals t = add_up(summary, n);
	scoped_str struct str list = {0};
	struct slice error;

	jsonw_key(j, "network");
	jsonw_object(j);
	jsonw_kbool(j, "watched", is_watched);
	if (!is_watched) {
		jsonw_ktext(j, "reason", summary_network_why(summary));
		jsonw_object_end(j);
		return;
	}
	jsonw_kint(j, "reached", t.hosts);
	jsonw_kint(j, "failed", t.failed);
	jsonw_kint(j, "refused", t.refused);
	jsonw_kint(j, "looked_up", network_lookups_only(network_table_lookups(summary->network)));
	jsonw_kint(j, "unanswered",
		network_lookups_unanswered(network_table_lookups(summary->network), &error));
	jsonw_kint(j, "requests", t.requests);
	jsonw_kint(j, "bytes_out", t.bytes_out);
	jsonw_kint(j, "bytes_in", t.bytes_in);
	jsonw_kint(j, "unreadable", t.unreadable);
	jsonw_kint(j, "passthrough", t.passed);
	write_secrets(summary, j, n);
	network_table_json(summary->network, &list);
	jsonw_key(j, "list");
	jsonw_raw(j, str_slice(&list));
	jsonw_object_end(j);
}

void summary_network_json_enforced(const struct summary *summary, struct jsonw *j)
{
	const json_t *network = summary_spec(summary, "network");
	const char *mode = json_string_value(json_object_get(network, "net"));
	char *text;

	jsonw_ktext(j, "network", mode ? mode : "none");
	if (!mode || strcmp(mode, "none") == 0)
		return;
	text = json_dumps(network, JSON_COMPACT);
	jsonw_key(j, "network_rules");
	jsonw_raw(j, slice_of(text ? text : "null"));
	free(text);
}
