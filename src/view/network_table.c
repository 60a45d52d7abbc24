/* SPDX-License-Identifier: Apache-2.0 */
#include "view/network_table.h"

#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "view/intern.h"
#include "view/network_place.h"
#include "view/network_request.h"
#include "view/saturate.h"

/* One flow, as far as its entry is judged by it. */
struct flow {
	struct network_entry *entry;
	bool connected, failed, refused, answered;
	struct slice refused_url; /* a request that was: the flow's others may be fine */
};

struct network_table {
	struct view_filter filter;
	struct intern *intern;
	struct map *index; /* "protocol address port host" to entry */
	struct map *flows; /* by number */
	struct network_lookups *lookups;
	struct map *exec_ids;
	struct slice *execs;
	size_t n_execs;
	struct network_entry **entries;
	size_t n_entries, cap_entries, n_shown;
	size_t kept; /* bytes of requests and messages */
	bool no_bodies;
	network_body_fn read; /* NULL: what is in the events is all */
	void *ctx;
	struct network_bodies bodies;
	struct str key;
};

struct network_table *network_table_new(const struct view_filter *filter)
{
	struct network_table *table = new0(struct network_table);

	table->filter = *filter;
	table->intern = intern_new();
	table->index = map_new();
	table->flows = map_new();
	table->lookups = network_lookups_new();
	table->exec_ids = map_new();
	return table;
}

static void free_entry(struct network_entry *entry)
{
	for (size_t i = 0; i < entry->n_requests; i++) {
		str_done(&entry->requests[i].url);
		str_done(&entry->requests[i].json);
	}
	free(entry->requests);
	free(entry->secrets);
	str_done(&entry->messages);
	idset_done(&entry->processes);
	idset_done(&entry->execs);
	free(entry);
}

void network_table_free(struct network_table *table)
{
	struct slice key;
	void *flow;

	if (!table)
		return;
	for (size_t i = 0; i < table->n_entries; i++)
		free_entry(table->entries[i]);
	for (size_t i = 0; map_next(table->flows, &i, &key, &flow);)
		free(flow);
	map_free(table->index);
	map_free(table->flows);
	network_lookups_free(table->lookups);
	map_free(table->exec_ids);
	intern_free(table->intern);
	free(table->execs);
	free(table->entries);
	network_body_done(&table->bodies);
	str_done(&table->key);
	free(table);
}

void network_table_leave_bodies(struct network_table *table)
{
	table->no_bodies = true;
}

void network_table_read_bodies(struct network_table *table, network_body_fn read, void *ctx)
{
	table->read = read;
	table->ctx = ctx;
}

/* "tcp" also of a request: h2 is no other place than HTTP/1.1. */
static struct slice transport(const struct event *ev)
{
	return slice_of(ev->kind == EVENT_NET_UDP || slice_is(ev->protocol, "udp") ? "udp" : "tcp");
}

/* Those whose address is not known say nothing of the protocol: a name was refused. */
static void make_key(struct network_table *table, const struct event *ev, struct slice host)
{
	struct slice protocol = ev->address.len ? transport(ev) : slice_of("");

	str_reset(&table->key);
	str_add(&table->key, protocol.p, protocol.len);
	str_putc(&table->key, '\0');
	str_add(&table->key, ev->address.p, ev->address.len);
	str_printf(&table->key, "%c%lld%c", 0, ev->address.len ? (long long)ev->port : 0LL, 0);
	str_add(&table->key, host.p, host.len);
}

static struct network_entry *add_entry(
	struct network_table *table, const struct event *ev, struct slice host)
{
	struct network_entry *entry = new0(struct network_entry);

	if (table->n_entries == table->cap_entries) {
		table->cap_entries = table->cap_entries ? table->cap_entries * 2 : 16;
		table->entries = mem_grow(
			table->entries, table->cap_entries, sizeof(struct network_entry *));
	}
	table->entries[table->n_entries++] = entry;
	entry->host = intern_text(table->intern, host);
	entry->address = intern_text(table->intern, ev->address);
	if (ev->address.len) {
		entry->protocol = transport(ev);
		entry->port = ev->port;
	}
	entry->first_ns = ev->guest_ns;
	entry->first_ms = ev->wall_ms;
	entry->first_seq = ev->seq;
	return entry;
}

static struct network_entry *entry_at(struct network_table *table, const struct event *ev)
{
	struct slice host = ev->host;
	void **slot;

	if (host.len == 0 && ev->address.len == 0)
		host = ev->name;
	make_key(table, ev, host);
	slot = map_slot(table->index, str_slice(&table->key));
	if (!*slot)
		*slot = add_entry(table, ev, host);
	return *slot;
}

/* Whether the flow shows that something there succeeded. */
static bool is_good(const struct flow *flow)
{
	if (flow->answered)
		return true;
	return flow->connected && !flow->failed && !flow->refused;
}

/* A gateway that was started again counts anew. */
static bool is_another(const struct flow *flow, const struct event *ev)
{
	const struct network_entry *entry = flow->entry;

	if (ev->kind == EVENT_NET_CONNECT && (flow->connected || flow->failed))
		return true;
	return ev->address.len && entry->address.len &&
	       (!slice_eq(entry->address, ev->address) || entry->port != ev->port);
}

/* The flow of an event, made at its first; NULL where it names none. */
static struct flow *flow_of(struct network_table *table, const struct event *ev)
{
	unsigned long long number = (unsigned long long)ev->flow;
	void **slot;
	struct flow *flow;

	if (!event_has(ev, flow))
		return NULL;
	slot = map_slot(table->flows, map_int_key(&number));
	flow = *slot ? *slot : (*slot = new0(struct flow));
	if (flow->entry && is_another(flow, ev)) {
		flow->entry->succeeded |= is_good(flow);
		*flow = (struct flow){0};
	}
	if (!flow->entry)
		flow->entry = entry_at(table, ev);
	return flow;
}

static int64_t exec_id(struct network_table *table, struct slice exec)
{
	void **slot = map_slot(table->exec_ids, exec);

	if (!*slot) {
		table->execs = mem_grow(table->execs, table->n_execs + 1, sizeof(*table->execs));
		table->execs[table->n_execs++] = intern_text(table->intern, exec);
		*slot = (void *)(uintptr_t)table->n_execs;
	}
	return (int64_t)(uintptr_t)*slot - 1;
}

static void note_who(
	struct network_table *table, struct network_entry *entry, const struct event *ev)
{
	if (ev->pid)
		idset_add(&entry->processes, ev->pid);
	if (ev->exec.len)
		idset_add(&entry->execs, exec_id(table, ev->exec));
	if (ev->guest_ns < entry->first_ns) {
		entry->first_ns = ev->guest_ns;
		entry->first_ms = ev->wall_ms;
		entry->first_seq = ev->seq;
	}
}

static void note_outcome(struct network_table *table, struct network_entry *entry,
	struct flow *flow, const struct event *ev)
{
	bool is_failure = (event_has(ev, result) && ev->result) || ev->failed;
	struct slice why = ev->error;

	if (event_has(ev, result) && ev->result)
		why = slice_of(event_errno_name(ev->result));
	if (is_failure)
		entry->error = intern_text(table->intern, why);
	if (!flow) {
		entry->succeeded |= !is_failure;
		return;
	}
	flow->failed |= is_failure;
	flow->connected |= !is_failure;
}

static void take_connect(struct network_table *table, struct network_entry *entry,
	struct flow *flow, const struct event *ev)
{
	entry->connects++;
	note_outcome(table, entry, flow, ev);
}

static void take_end(struct network_table *table, struct network_entry *entry, struct flow *flow,
	const struct event *ev)
{
	entry->bytes_out = saturate_add(entry->bytes_out, ev->bytes_out);
	entry->bytes_in = saturate_add(entry->bytes_in, ev->bytes_in);
	if (ev->tls.len)
		entry->tls = intern_text(table->intern, ev->tls);
	entry->unreadable |= slice_is(ev->tls, "unreadable");
	note_outcome(table, entry, flow, ev);
}

/* NULL where there are too many. */
static struct network_secret *find_secret(
	struct network_table *table, struct network_entry *entry, struct slice text)
{
	struct slice name = intern_text(table->intern, text);
	size_t at = 0;

	while (at < entry->n_secrets && !slice_eq(entry->secrets[at].name, name))
		at++;
	if (at == NETWORK_TABLE_SECRETS_MAX)
		return NULL;
	if (at == entry->n_secrets) {
		entry->secrets = mem_grow(entry->secrets, at + 1, sizeof(struct network_secret));
		entry->secrets[entry->n_secrets++] = (struct network_secret){.name = name};
	}
	return &entry->secrets[at];
}

static void note_secrets(
	struct network_table *table, struct network_entry *entry, const struct event *ev)
{
	struct network_secret *secret;

	for (size_t i = 0; i < ev->secrets.n; i++) {
		secret = find_secret(table, entry, ev->secrets.items[i]);
		if (secret)
			secret->used++;
	}
	for (size_t i = 0; i < ev->stand_ins.n; i++) {
		secret = find_secret(table, entry, ev->stand_ins.items[i]);
		if (secret)
			secret->passed++;
	}
}

/* A place for one more request, or NULL where it is only counted. */
static struct network_request *new_request(struct network_entry *entry)
{
	if (entry->n_requests == entry->cap_requests) {
		entry->cap_requests = entry->cap_requests ? entry->cap_requests * 2 : 4;
		entry->requests =
			mem_grow(entry->requests, entry->cap_requests, sizeof(*entry->requests));
	}
	entry->requests[entry->n_requests] = (struct network_request){0};
	return &entry->requests[entry->n_requests++];
}

/* What is kept of a request or message, within bounds: false where it is only counted. */
static bool keep(struct network_table *table, struct network_entry *entry, const struct event *ev,
	void (*write)(struct str *out, const struct event *ev, const struct network_bodies *bodies),
	struct str *ret_json)
{
	bool bodies = !table->no_bodies;

	if (bodies && table->kept >= NETWORK_TABLE_KEPT_MAX)
		bodies = !(entry->bodies_cut = true);
	if (table->kept / 2 >= NETWORK_TABLE_KEPT_MAX)
		return false;
	if (bodies)
		network_body_read(&table->bodies, ev, table->read, table->ctx);
	write(ret_json, ev, bodies ? &table->bodies : NULL);
	table->kept += ret_json->len;
	return true;
}

static void take_request(struct network_table *table, struct network_entry *entry,
	struct flow *flow, const struct event *ev)
{
	bool is_answered = event_has(ev, status) && ev->status > 0;
	struct str json = {0};
	struct network_request *request;

	note_secrets(table, entry, ev);
	if (!flow)
		entry->succeeded |= is_answered;
	else if (!flow->refused || (flow->refused_url.len && !slice_eq(flow->refused_url, ev->url)))
		flow->answered |= is_answered;
	if (!keep(table, entry, ev, network_request_json, &json)) {
		entry->requests_more++;
		return;
	}
	request = new_request(entry);
	request->at_ms = ev->wall_ms;
	request->status = ev->status;
	request->sent = event_has(ev, request_bytes) ? ev->request_bytes : ev->body_bytes;
	request->received = ev->response_bytes;
	request->method = intern_text(table->intern, ev->method);
	request->json = json;
	str_add(&request->url, ev->url.p, ev->url.len);
}

static void take_message(struct network_table *table, struct network_entry *entry,
	struct flow *flow, const struct event *ev)
{
	scoped_str struct str json = {0};

	note_secrets(table, entry, ev);
	if (!keep(table, entry, ev, network_request_message_json, &json)) {
		entry->messages_more++;
		return;
	}
	if (entry->n_messages++)
		str_putc(&entry->messages, ',');
	str_add(&entry->messages, json.p, json.len);
}

static void take_refused(struct network_table *table, struct network_entry *entry,
	struct flow *flow, const struct event *ev)
{
	entry->refused = true;
	entry->shadow |= ev->shadow;
	entry->n_refused += ev->kind == EVENT_NET_REFUSED;
	if (ev->rule.len)
		entry->rule = intern_text(table->intern, ev->rule);
	if (ev->reason.len)
		entry->reason = intern_text(table->intern, ev->reason);
	if (!flow || ev->shadow)
		return;
	flow->refused = true;
	if (slice_is(ev->stage, "http"))
		flow->refused_url = intern_text(table->intern, ev->url);
}

static const struct {
	enum event_kind kind;
	void (*fold)(struct network_table *table, struct network_entry *entry, struct flow *flow,
		const struct event *ev);
} takers[] = {
	{EVENT_NET_DNS, take_refused},
	{EVENT_NET_CONNECT, take_connect},
	{EVENT_NET_FLOW, take_end},
	{EVENT_NET_UDP, take_end},
	{EVENT_NET_HTTP, take_request},
	{EVENT_NET_WS, take_message},
	{EVENT_NET_REFUSED, take_refused},
};

/* A request on a flow that was for another host, which is the one that was refused. */
static bool is_of_another_host(const struct flow *flow, const struct event *ev)
{
	return ev->kind == EVENT_NET_REFUSED && ev->host.len && flow->entry->host.len &&
	       !slice_eq(ev->host, flow->entry->host);
}

void network_table_add(struct network_table *table, const struct event *ev)
{
	struct network_entry *entry;
	struct flow *flow;

	if (!network_place_is_outward(ev) && ev->kind != EVENT_NET_DNS)
		return;
	if (!view_filter_takes(&table->filter, ev))
		return;
	if (ev->kind == EVENT_NET_DNS && !ev->refused) {
		network_lookups_add(table->lookups, ev);
		return;
	}
	flow = ev->kind == EVENT_NET_DNS ? NULL : flow_of(table, ev);
	if (flow && is_of_another_host(flow, ev))
		flow = NULL;
	entry = flow ? flow->entry : entry_at(table, ev);
	note_who(table, entry, ev);
	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
		if (takers[i].kind == ev->kind)
			takers[i].fold(table, entry, flow, ev);
}

static int compare(const void *a, const void *b)
{
	const struct network_entry *left = *(struct network_entry *const *)a,
				   *right = *(struct network_entry *const *)b;

	if (left->first_ns != right->first_ns)
		return left->first_ns < right->first_ns ? -1 : 1;
	return left->first_seq < right->first_seq ? -1 : left->first_seq > right->first_seq;
}

/* The hosts that have an address somewhere. */
static struct map *find_addressed(const struct network_table *table)
{
	struct map *hosts = map_new();

	for (size_t i = 0; i < table->n_entries; i++)
		if (table->entries[i]->address.len && table->entries[i]->host.len)
			*map_slot(hosts, table->entries[i]->host) = hosts;
	return hosts;
}

/* A name that was refused has no entry of its own where it has one with an address: those go to the end. */
static void part_hidden(struct network_table *table)
{
	scoped(map) struct map *addressed = find_addressed(table);
	struct network_entry **hidden = new0_n(struct network_entry *, table->n_entries + 1);
	size_t n_hidden = 0, n = 0;

	for (size_t i = 0; i < table->n_entries; i++) {
		struct network_entry *entry = table->entries[i];

		if (entry->address.len == 0 && entry->host.len && map_find(addressed, entry->host))
			hidden[n_hidden++] = entry;
		else
			table->entries[n++] = entry;
	}
	for (size_t i = 0; i < n_hidden; i++)
		table->entries[n + i] = hidden[i];
	table->n_shown = n;
	free(hidden);
}

size_t network_table_settle(struct network_table *table)
{
	struct slice key;
	void *value;

	for (size_t i = 0; i < table->n_entries; i++)
		table->entries[i]->failed = !table->entries[i]->succeeded;
	for (size_t i = 0; map_next(table->flows, &i, &key, &value);) {
		const struct flow *flow = value;

		if (is_good(flow))
			flow->entry->failed = false;
	}
	if (table->n_entries > 1)
		qsort(table->entries, table->n_entries, sizeof(struct network_entry *), compare);
	part_hidden(table);
	for (size_t i = 0; i < table->n_shown; i++)
		network_lookups_reached(table->lookups, table->entries[i]->host);
	return table->n_shown;
}

const struct network_lookups *network_table_lookups(const struct network_table *table)
{
	return table->lookups;
}

const struct network_entry *network_table_get(const struct network_table *table, size_t i)
{
	return table->entries[i];
}

const struct slice *network_table_execs(const struct network_table *table)
{
	return table->execs;
}
