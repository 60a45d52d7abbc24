/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people: what was refused first, then the rest in the order of first contact. On a terminal a line
 * takes no more than its columns: why something was refused goes below where it does not fit behind. */
#include <string.h>

#include "util/log.h"
#include "view/network_place.h"
#include "view/network_table.h"

#define PLACE_MIN      16
#define PLACE_MAX      44
#define NUMBERS_WIDTH  35 /* of protocol, requests and bytes, with what stands before and behind */
#define COUNT_WIDTH    6
#define BYTES_WIDTH    10
#define INDENT         8 /* of what stands below an entry */
#define REQUESTS_SHOWN 8 /* of each entry */
#define LOOKUPS_SHOWN  8

static void add_right(struct str *out, const struct str *cell, size_t width)
{
	for (size_t w = cell->len; w < width; w++)
		str_putc(out, ' ');
	str_add(out, cell->p, cell->len);
}

static void add_left(struct str *out, struct slice text, size_t width)
{
	str_add(out, text.p, text.len);
	for (size_t w = view_text_width(text); w < width; w++)
		str_putc(out, ' ');
}

static void add_place(struct str *out, const struct network_entry *entry)
{
	scoped_str struct str plain = {0};

	network_place_add(&plain, entry->host.len ? entry->host : entry->address, entry->port);
	log_add_escaped(out, str_slice(&plain));
}

static const char *outcome(const struct network_entry *entry)
{
	if (entry->refused && entry->shadow)
		return "would be REFUSED";
	if (entry->refused)
		return entry->failed ? "REFUSED" : "partly REFUSED";
	if (entry->failed)
		return "failed";
	return entry->error.len ? "partly failed" : "ok";
}

/* "not in the allow list", "ECONNREFUSED"; nothing where all is said. */
static struct slice why(const struct network_entry *entry)
{
	if (entry->refused)
		return network_place_why(entry->rule, entry->reason);
	if (entry->error.len)
		return entry->error;
	if (slice_is(entry->tls, "unreadable"))
		return slice_of("requests not seen: the program trusts no certificate of ours");
	return slice_of(
		slice_is(entry->tls, "passthrough") ? "requests not seen: passed through" : "");
}

static void add_colored(struct str *out, const struct view_style *style,
	const struct network_entry *entry, const struct str *text)
{
	if (entry->refused || entry->failed || entry->error.len)
		view_text_add_color(
			out, style, entry->refused ? VIEW_RED : VIEW_YELLOW, str_slice(text));
	else
		str_add(out, text->p, text->len);
}

/* Columns of what stands below an entry; 0: any. */
static size_t below_room(const struct view_style *style)
{
	return style->columns > 2 * INDENT ? style->columns - INDENT : 0;
}

/* Ends the line that has room columns left with "REFUSED (not in the allow list)", in two lines where it is too long. */
static void add_outcome(struct str *out, const struct view_style *style,
	const struct network_entry *entry, size_t room)
{
	scoped_str struct str text = {0}, reason = {0};
	bool is_below;

	str_puts(&text, outcome(entry));
	log_add_escaped(&reason, why(entry));
	is_below = style->columns &&
	           text.len + strlen(" ()") + view_text_width(str_slice(&reason)) > room;
	if (reason.len && !is_below)
		str_printf(&text, " (%s)", reason.p);
	add_colored(out, style, entry, &text);
	str_putc(out, '\n');
	if (reason.len == 0 || !is_below)
		return;
	str_reset(&text);
	view_text_add_cut(&text, str_slice(&reason), below_room(style));
	str_printf(out, "%*s", INDENT, "");
	add_colored(out, style, entry, &text);
	str_putc(out, '\n');
}

/* "   200  POST http://a.test/form  12 bytes sent" */
static void add_request(
	struct str *out, const struct view_style *style, const struct network_request *request)
{
	scoped_str struct str line = {0}, cell = {0}, sent = {0};
	bool is_bad = request->status == 0 || request->status >= 400;

	if (request->status)
		str_int(&cell, request->status);
	else
		str_putc(&cell, '-');
	str_puts(&line, "  ");
	add_right(&line, &cell, 4);
	str_puts(&line, "  ");
	str_reset(&cell);
	log_add_escaped(&cell, request->method);
	str_putc(&cell, ' ');
	log_add_escaped(&cell, str_slice(&request->url));
	if (request->sent > 0) {
		str_puts(&sent, "  ");
		view_text_add_bytes(&sent, request->sent);
		str_puts(&sent, " sent");
	}
	view_text_add_cut(&line, str_slice(&cell),
		below_room(style) > 2 * sent.len ? below_room(style) - sent.len : 0);
	str_add(&line, sent.p, sent.len);
	view_text_add_color(out, style, is_bad ? VIEW_YELLOW : VIEW_DIM, str_slice(&line));
	str_putc(out, '\n');
}

static void add_requests(
	struct str *out, const struct view_style *style, const struct network_entry *entry)
{
	size_t n = entry->n_requests < REQUESTS_SHOWN ? entry->n_requests : REQUESTS_SHOWN;
	int64_t more = (int64_t)(entry->n_requests - n) + entry->requests_more;

	for (size_t i = 0; i < n; i++)
		add_request(out, style, &entry->requests[i]);
	if (more) {
		str_printf(out, "%*sand ", INDENT, "");
		view_text_add_count(out, more);
		str_puts(out, " more: --json\n");
	}
	if (entry->n_messages + entry->messages_more) {
		str_printf(out, "%*s", INDENT, "");
		view_text_add_count(out, entry->n_messages + entry->messages_more);
		str_puts(out, " WebSocket messages: --json\n");
	}
}

static void add_numbers(struct str *out, const struct network_entry *entry)
{
	scoped_str struct str cell = {0};

	add_left(out, entry->protocol.len ? entry->protocol : slice_of("-"), 5);
	view_text_add_count(&cell, (int64_t)entry->n_requests + entry->requests_more);
	add_right(out, &cell, COUNT_WIDTH);
	str_reset(&cell);
	view_text_add_bytes(&cell, entry->bytes_out);
	add_right(out, &cell, BYTES_WIDTH);
	str_reset(&cell);
	view_text_add_bytes(&cell, entry->bytes_in);
	add_right(out, &cell, BYTES_WIDTH);
	str_puts(out, "  ");
}

static void add_entry(struct str *out, const struct view_style *style,
	const struct network_entry *entry, size_t width)
{
	scoped_str struct str cell = {0}, cut = {0};
	size_t before = width + NUMBERS_WIDTH;

	add_place(&cell, entry);
	view_text_add_tail(&cut, str_slice(&cell), width);
	add_left(out, str_slice(&cut), width + 2);
	add_numbers(out, entry);
	add_outcome(out, style, entry, style->columns > before ? style->columns - before : 0);
	add_requests(out, style, entry);
}

static size_t place_width(struct network_table *table, const struct view_style *style, size_t n)
{
	size_t width = PLACE_MIN, most = PLACE_MAX, behind = NUMBERS_WIDTH;

	for (size_t i = 0; i < n; i++) {
		const struct network_entry *entry = network_table_get(table, i);
		scoped_str struct str cell = {0};

		add_place(&cell, entry);
		if (view_text_width(str_slice(&cell)) > width)
			width = view_text_width(str_slice(&cell));
		if (NUMBERS_WIDTH + strlen(outcome(entry)) > behind)
			behind = NUMBERS_WIDTH + strlen(outcome(entry));
	}
	if (style->columns && style->columns < most + behind)
		most = style->columns > PLACE_MIN + behind ? style->columns - behind : PLACE_MIN;
	return width < most ? width : most;
}

static void add_entries(
	struct network_table *table, const struct view_style *style, size_t n, struct str *out)
{
	size_t width = place_width(table, style, n);
	scoped_str struct str head = {0};

	add_left(&head, slice_of("HOST"), width + 2);
	str_puts(&head, "PROTO   REQ       OUT        IN  RESULT");
	view_text_add_color(out, style, VIEW_DIM, str_slice(&head));
	str_putc(out, '\n');
	for (int refused = 1; refused >= 0; refused--)
		for (size_t i = 0; i < n; i++)
			if (network_table_get(table, i)->refused == refused)
				add_entry(out, style, network_table_get(table, i), width);
}

static void add_lookup(
	struct str *out, const struct view_style *style, const struct network_lookup *lookup)
{
	scoped_str struct str line = {0};

	log_add_escaped(&line, lookup->name);
	if (lookup->error.len) {
		str_puts(&line, " (");
		log_add_escaped(&line, lookup->error);
		str_putc(&line, ')');
	}
	str_printf(out, "%*s", INDENT, "");
	view_text_add_cut(out, str_slice(&line), below_room(style));
	str_putc(out, '\n');
}

static void add_lookups(
	const struct network_table *table, const struct view_style *style, struct str *out)
{
	const struct network_lookups *lookups = network_table_lookups(table);
	int64_t left = network_lookups_only(lookups);
	size_t told = 0;

	if (left == 0)
		return;
	view_text_add_color(out, style, VIEW_DIM, slice_of("Names that were only looked up:"));
	str_putc(out, '\n');
	for (size_t i = 0; i < network_lookups_n(lookups) && told < LOOKUPS_SHOWN; i++) {
		const struct network_lookup *lookup = network_lookups_get(lookups, i);

		if (lookup->is_reached)
			continue;
		add_lookup(out, style, lookup);
		told++;
		left--;
	}
	if (left > 0) {
		str_printf(out, "%*sand ", INDENT, "");
		view_text_add_count(out, left);
		str_puts(out, " more: cloche events\n");
	}
}

void network_table_text(
	struct network_table *table, const struct view_style *style, struct str *out)
{
	size_t n = network_table_settle(table);

	if (n > 0)
		add_entries(table, style, n, out);
	else
		str_puts(out, "no connections\n");
	add_lookups(table, style, out);
}
