/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"
#include "util/jsonw.h"
#include "view/network_table.h"

static void write_text(struct jsonw *j, const char *key, struct slice text)
{
	if (text.len)
		jsonw_kslice(j, key, text);
	else
		jsonw_knull(j, key);
}

static void write_requests(struct jsonw *j, const struct network_entry *entry)
{
	jsonw_key(j, "requests");
	jsonw_array(j);
	for (size_t i = 0; i < entry->n_requests; i++)
		jsonw_raw(j, str_slice(&entry->requests[i].json));
	jsonw_array_end(j);
	if (entry->requests_more)
		jsonw_kint(j, "requests_more", entry->requests_more);
	if (entry->n_messages || entry->messages_more) {
		jsonw_key(j, "messages");
		jsonw_array(j);
		if (entry->n_messages)
			jsonw_raw(j, str_slice(&entry->messages));
		jsonw_array_end(j);
	}
	if (entry->messages_more)
		jsonw_kint(j, "messages_more", entry->messages_more);
	if (entry->bodies_cut)
		jsonw_kbool(j, "bodies_cut", true);
}

static void write_outcome(struct jsonw *j, const struct network_entry *entry)
{
	jsonw_kbool(j, "failed", entry->failed);
	jsonw_kbool(j, "refused", entry->refused);
	write_text(j, "rule", entry->rule);
	write_text(j, "reason", entry->reason);
	if (entry->shadow)
		jsonw_kbool(j, "shadow", true);
	if (entry->n_refused)
		jsonw_kint(j, "refusals", entry->n_refused);
	jsonw_kint(j, "connects", entry->connects);
	write_text(j, "error", entry->error);
	write_text(j, "tls", entry->tls);
}

static void write_secrets(struct jsonw *j, const struct network_entry *entry)
{
	jsonw_key(j, "secrets");
	jsonw_array(j);
	for (size_t i = 0; i < entry->n_secrets; i++) {
		jsonw_object(j);
		jsonw_kslice(j, "name", entry->secrets[i].name);
		jsonw_kint(j, "used", entry->secrets[i].used);
		if (entry->secrets[i].passed)
			jsonw_kint(j, "passed", entry->secrets[i].passed);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
}

static void write_entry(
	struct jsonw *j, const struct network_table *table, const struct network_entry *entry)
{
	char text[CLOCK_TEXT_LEN];

	jsonw_object(j);
	write_text(j, "host", entry->host);
	write_text(j, "address", entry->address);
	if (entry->port)
		jsonw_kint(j, "port", entry->port);
	else
		jsonw_knull(j, "port");
	write_text(j, "protocol", entry->protocol);
	clock_format(entry->first_ms, text);
	jsonw_ktext(j, "first_at", text);
	write_requests(j, entry);
	jsonw_kint(j, "bytes_out", entry->bytes_out);
	jsonw_kint(j, "bytes_in", entry->bytes_in);
	write_outcome(j, entry);
	write_secrets(j, entry);
	idset_write_who(j, &entry->processes, &entry->execs, network_table_execs(table));
	jsonw_object_end(j);
}

void network_table_json(struct network_table *table, struct str *out)
{
	size_t n = network_table_settle(table);
	struct jsonw j = jsonw_to(out);

	jsonw_array(&j);
	for (size_t i = 0; i < n; i++)
		write_entry(&j, table, network_table_get(table, i));
	jsonw_array_end(&j);
}
