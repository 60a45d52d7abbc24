/* SPDX-License-Identifier: Apache-2.0 */
/* What the summary says of the network: misuse and refusals first, then where it went, how well that was seen, and
 * what was enforced. */
#include <stdlib.h>

#include "report/summary_internal.h"
#include "view/network_place.h"
#include "view/saturate.h"

#define HOSTS_TOLD   6
#define SECRETS_TOLD 4
#define HOST_MAX     60 /* columns of one */

/* Those it began with are told, too: only others than before are a change, or those that somebody set. */
static void take_rules(struct summary *summary, const struct event *ev)
{
	scoped_str struct str text = {0};
	struct slice rules;

	for (size_t i = 0; i < ev->rules.n; i++) {
		str_add(&text, ev->rules.items[i].p, ev->rules.items[i].len);
		str_putc(&text, '\n');
	}
	str_putc(&text, '\n');
	rules = intern_text(summary->intern, str_slice(&text));
	summary->rules_replaced +=
		summary->rules.len ? !slice_eq(summary->rules, rules) : ev->actor.len > 0;
	summary->rules = rules;
}

void summary_network_take(struct summary *summary, const struct event *ev)
{
	scoped_str struct str text = {0};

	if (ev->kind == EVENT_NET_RULES) {
		take_rules(summary, ev);
		return;
	}
	if (!slice_is(ev->what, "died"))
		return;
	str_puts(&text, "the network gateway died");
	if (ev->reason.len)
		str_puts(&text, ": ");
	str_add(&text, ev->reason.p, ev->reason.len);
	summary_note_reason(summary, &summary->errors, str_slice(&text));
}

void summary_network_row(const struct event *ev, struct str *what, struct summary_row *ret_row)
{
	network_place_add(what, network_place_host(ev), ev->port);
	ret_row->what = str_slice(what);
	ret_row->how = "";
	if (ev->kind == EVENT_SECRET_MISUSE) {
		str_printf(what, "%c", 0); /* the row is one of its place and its secret */
		str_add(what, ev->name.p, ev->name.len);
		ret_row->what = str_slice(what);
		ret_row->rule = ev->name;
	} else {
		network_place_add_request(what, ev);
		ret_row->what = str_slice(what);
		ret_row->rule = ev->rule;
	}
	ret_row->place = (struct summary_place){
		.host = network_place_host(ev),
		.address = ev->address,
		.protocol = ev->protocol,
		.method = ev->method,
		.url = ev->url,
		.reason = ev->reason,
		.where = ev->where,
		.port = ev->port,
		.is_shadow = ev->shadow,
	};
}

static void add_place(struct str *out, const struct summary_row *row)
{
	scoped_str struct str text = {0};

	network_place_add(&text, row->place.host, row->place.port);
	summary_lines_quote(out, str_slice(&text), HOST_MAX);
}

/* " (not in the allow list)" */
static void add_why(struct str *out, const struct summary_row *row)
{
	struct slice why = network_place_why(row->rule, row->place.reason);

	if (why.len == 0)
		return;
	str_puts(out, " (");
	summary_lines_quote(out, why, HOST_MAX);
	str_putc(out, ')');
}

static void add_misused(
	struct summary *summary, struct summary_lines *lines, const struct summary_row *row)
{
	struct str *out = summary_lines_add(lines, SUMMARY_BAD, "MISUSED");

	str_puts(out, "secret ");
	summary_lines_quote(out, row->rule, HOST_MAX);
	str_puts(out, " on its way to ");
	add_place(out, row);
	if (row->place.where.len) {
		str_puts(out, " in the ");
		summary_lines_quote(out, row->place.where, 20);
	}
	summary_lines_who(summary, out, row);
}

static void add_refused(
	struct summary *summary, struct summary_lines *lines, const struct summary_row *row)
{
	bool is_shadow = row->place.is_shadow;
	struct str *out = summary_lines_add(
		lines, is_shadow ? SUMMARY_WARN : SUMMARY_BAD, is_shadow ? "SHADOW" : "REFUSED");

	summary_lines_quote(out, row->what, HOST_MAX);
	if (is_shadow)
		str_puts(out, " would be refused,");
	summary_lines_who(summary, out, row);
	add_why(out, row);
}

/* A name that was refused when it was looked up, and then again where it was tried: that tells it all. */
static bool is_told_by_another(const struct summary_rows *rows, const struct summary_row *row)
{
	for (size_t i = 0; row->place.port == 0 && i < rows->n; i++)
		if (rows->rows[i].place.port && slice_eq(rows->rows[i].place.host, row->place.host))
			return true;
	return false;
}

static void add_rows(struct summary *summary, struct summary_lines *lines,
	const struct summary_rows *rows, bool shadow,
	void (*add)(struct summary *summary, struct summary_lines *lines,
		const struct summary_row *row))
{
	int64_t told = 0, more = shadow ? 0 : rows->more;

	for (size_t i = 0; i < rows->n; i++) {
		if (rows->rows[i].place.is_shadow != shadow ||
			is_told_by_another(rows, &rows->rows[i]))
			continue;
		if (told++ < SUMMARY_HEAD_ROWS)
			add(summary, lines, &rows->rows[i]);
		else
			more++;
	}
	if (more > 0) {
		const struct summary_line *last = &lines->lines[lines->n - 1];

		str_printf(summary_lines_add(lines, last->tone, last->label),
			"and %lld more: see the timeline", (long long)more);
	}
}

void summary_network_head(struct summary *summary, struct summary_lines *lines)
{
	add_rows(summary, lines, &summary->misused, false, add_misused);
	add_rows(summary, lines, &summary->hosts_refused, false, add_refused);
}

void summary_network_shadowed(struct summary *summary, struct summary_lines *lines)
{
	add_rows(summary, lines, &summary->hosts_refused, true, add_refused);
}

/* Hosts that were reached, each once, in the order of first contact; and how many there are beyond those told. */
struct hosts {
	struct map *seen;
	size_t told, more, failed;
	int64_t bytes_out, bytes_in;
};

static void add_host(struct str *out, struct hosts *hosts, const struct network_entry *entry)
{
	struct slice host = entry->host.len ? entry->host : entry->address;
	void **slot = map_slot(hosts->seen, host);

	if (*slot)
		return;
	*slot = hosts;
	if (hosts->told == HOSTS_TOLD) {
		hosts->more++;
		return;
	}
	if (hosts->told++)
		str_puts(out, ", ");
	summary_lines_quote(out, host, HOST_MAX);
}

/* ", 2 of them without an answer (timeout)" */
static void add_unanswered(const struct summary *summary, struct str *out)
{
	struct slice error;
	int64_t n = network_lookups_unanswered(network_table_lookups(summary->network), &error);

	if (n == 0)
		return;
	str_printf(out, ", %lld of them without an answer (", (long long)n);
	summary_lines_quote(out, error, HOST_MAX);
	str_putc(out, ')');
}

static void add_hosts(struct summary *summary, struct str *out, size_t n)
{
	struct hosts hosts = {.seen = map_new()};
	int64_t looked_up = network_lookups_only(network_table_lookups(summary->network));

	for (size_t i = 0; i < n; i++) {
		const struct network_entry *entry = network_table_get(summary->network, i);

		hosts.bytes_out = saturate_add(hosts.bytes_out, entry->bytes_out);
		hosts.bytes_in = saturate_add(hosts.bytes_in, entry->bytes_in);
		hosts.failed += entry->failed && !entry->refused;
		if (!entry->failed)
			add_host(out, &hosts, entry);
	}
	map_free(hosts.seen);
	if (hosts.more > 0)
		str_printf(out, " and %zu more", hosts.more);
	if (hosts.told == 0)
		str_puts(out, "nothing was reached");
	str_puts(out, " (");
	view_text_add_bytes(out, hosts.bytes_in);
	str_puts(out, " in, ");
	view_text_add_bytes(out, hosts.bytes_out);
	str_puts(out, " out)");
	if (hosts.failed > 0) {
		str_puts(out, "; ");
		summary_lines_number(out, (int64_t)hosts.failed, "place failed", "places failed");
	}
	if (looked_up > 0) {
		str_puts(out, "; ");
		summary_lines_number(out, looked_up, "name only looked up", "names only looked up");
		add_unanswered(summary, out);
	}
}

/* "API_KEY used 31 times", "OTHER_KEY used 2 times, its stand-in sent 3 times", "OTHER_KEY's stand-in sent 3 times" */
static void add_secret(struct str *out, const struct network_secret *secret)
{
	summary_lines_quote(out, secret->name, HOST_MAX);
	if (secret->used) {
		str_puts(out, " used ");
		summary_lines_number(out, secret->used, "time", "times");
	}
	if (!secret->passed)
		return;
	str_puts(out, secret->used ? ", its stand-in sent " : "'s stand-in sent ");
	summary_lines_number(out, secret->passed, "time", "times");
}

/* "; secrets: API_KEY used 31 times at api.anthropic.com" */
static void add_secrets(struct summary *summary, struct str *out, size_t n)
{
	size_t told = 0, more = 0;

	for (size_t i = 0; i < n; i++) {
		const struct network_entry *entry = network_table_get(summary->network, i);

		for (size_t s = 0; s < entry->n_secrets; s++) {
			if (told >= SECRETS_TOLD) {
				more++;
				continue;
			}
			str_puts(out, told++ ? ", " : "; secrets: ");
			add_secret(out, &entry->secrets[s]);
			str_puts(out, " at ");
			summary_lines_quote(
				out, entry->host.len ? entry->host : entry->address, HOST_MAX);
		}
	}
	if (more > 0)
		str_printf(out, " and %zu more", more);
}

static const char *mode_of(const struct summary *summary)
{
	return json_string_value(json_object_get(summary_spec(summary, "network"), "net"));
}

const char *summary_network_why(const struct summary *summary)
{
	const char *mode = mode_of(summary);

	if (!mode)
		return "no gateway";
	return strcmp(mode, "none") == 0 ? "no network" : "tracing left it out";
}

void summary_network_line(struct summary *summary, struct summary_lines *lines)
{
	struct str *out = summary_lines_add(lines, SUMMARY_PLAIN, "Network");
	size_t n;

	if (!summary_watched(summary, "network")) {
		str_printf(out, "not watched (%s)", summary_network_why(summary));
		return;
	}
	n = network_table_settle(summary->network);
	add_hosts(summary, out, n);
	add_secrets(summary, out, n);
}

void summary_network_observed(struct summary *summary, struct str *out)
{
	int64_t unreadable = 0, passed = 0;
	size_t n = network_table_settle(summary->network);

	for (size_t i = 0; i < n; i++) {
		const struct network_entry *entry = network_table_get(summary->network, i);

		if (entry->refused && entry->failed)
			continue; /* nothing went there */
		unreadable += entry->unreadable;
		passed += slice_is(entry->tls, "passthrough");
	}
	if (unreadable > 0) {
		str_puts(out, "; ");
		summary_lines_number(out, unreadable, "host read without its requests",
			"hosts read without their requests");
		str_puts(out, " (pinned TLS)");
	}
	if (passed > 0) {
		str_puts(out, "; ");
		summary_lines_number(out, passed, "host", "hosts");
		str_puts(out, " passed through unread (--tls)");
	}
}

/* The host of a rule: 'GET api.github.com/repos' and api.github.com:443 have the same. */
static struct slice host_of_rule(const char *rule)
{
	const char *space = strrchr(rule, ' ');
	struct slice host = slice_of(space ? space + 1 : rule);

	host.len = strcspn(host.p, host.p[0] == '[' ? "]" : "/:");
	if (host.len && strchr("0123456789[", host.p[0]))
		host.len = strlen(host.p); /* an address or a range of them stands for itself */
	return host;
}

static void add_rule_hosts(struct map *hosts, const json_t *rules, const json_t *sets)
{
	const json_t *item;
	size_t i;

	json_array_foreach(rules, i, item)
	{
		const char *rule = json_string_value(item);
		const json_t *set = rule ? json_object_get(sets, rule) : NULL;

		if (set)
			add_rule_hosts(hosts, set, NULL);
		else if (rule)
			*map_slot(hosts, host_of_rule(rule)) = hosts;
	}
}

static int64_t count_hosts(const json_t *network, const char *key)
{
	struct map *hosts = map_new();
	int64_t n;

	add_rule_hosts(hosts, json_object_get(network, key), json_object_get(network, "sets"));
	n = (int64_t)map_len(hosts);
	map_free(hosts);
	return n;
}

void summary_network_enforced(const struct summary *summary, struct str *out)
{
	const json_t *network = summary_spec(summary, "network");
	const char *mode = mode_of(summary);
	int64_t allowed = count_hosts(network, "allow"), denied = count_hosts(network, "deny");

	if (!mode || strcmp(mode, "none") == 0) {
		str_puts(out, "no network");
		return;
	}
	if (strcmp(mode, "allow") == 0) {
		str_puts(out, "allow list of ");
		summary_lines_number(out, allowed, "host", "hosts");
	} else {
		str_puts(out, "public network");
		if (allowed > 0) {
			str_puts(out, " and ");
			summary_lines_number(out, allowed, "host", "hosts");
		}
	}
	if (denied > 0) {
		str_puts(out, " but ");
		summary_lines_number(out, denied, "host", "hosts");
	}
	if (json_is_true(json_object_get(network, "ask")))
		str_puts(out, ", others asked for");
	if (json_is_true(json_object_get(network, "shadow")))
		str_puts(out, ", in shadow: nothing was refused");
	if (summary->rules_replaced > 0) {
		str_puts(out, ", replaced ");
		summary_lines_number(out, summary->rules_replaced, "time", "times");
	}
}
