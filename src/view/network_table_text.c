/* SPDX-License-Identifier: Apache-2.0 */
#include "util/log.h"
#include "view/network_place.h"
#include "view/network_table.h"

#define PLACE_MIN      20
#define PLACE_MAX      44
#define NUMBERS_WIDTH  38 /* of protocol, requests and bytes, with what parts them */
#define REQUESTS_SHOWN 8  /* of each entry */

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

/* "REFUSED (not in the allow list)", "failed (ECONNREFUSED)", "ok" */
static void add_outcome(struct str *out, const struct network_entry *entry)
{
	struct slice why = entry->error;

	if (entry->refused && !entry->failed && !entry->shadow)
		str_puts(out, "partly REFUSED");
	else if (entry->refused)
		str_puts(out, entry->shadow ? "would be REFUSED" : "REFUSED");
	else
		str_puts(out, entry->failed ? "failed" : "ok");
	if (entry->refused)
		why = network_place_why(entry->rule, entry->reason);
	else if (!entry->failed && slice_is(entry->tls, "unreadable"))
		why = slice_of("requests not seen: the program trusts no certificate of ours");
	else if (!entry->failed)
		why = (struct slice){0};
	if (why.len == 0)
		return;
	str_puts(out, " (");
	log_add_escaped(out, why);
	str_putc(out, ')');
}

static void add_request(
	struct str *out, const struct view_style *style, const struct network_request *request)
{
	scoped_str struct str line = {0}, size = {0};
	bool is_bad = request->status == 0 || request->status >= 400;

	if (request->status)
		str_int(&size, request->status);
	else
		str_putc(&size, '-');
	str_puts(&line, "  ");
	add_right(&line, &size, 4);
	str_puts(&line, "  ");
	log_add_escaped(&line, request->method);
	str_putc(&line, ' ');
	log_add_escaped(&line, str_slice(&request->url));
	str_reset(&size);
	view_text_add_cut(&size, str_slice(&line), style->columns > 40 ? style->columns - 1 : 0);
	view_text_add_color(out, style, is_bad ? VIEW_YELLOW : VIEW_DIM, str_slice(&size));
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
		str_puts(out, "        and ");
		view_text_add_count(out, more);
		str_puts(out, " more: --json\n");
	}
	if (entry->n_messages + entry->messages_more) {
		str_puts(out, "        ");
		view_text_add_count(out, entry->n_messages + entry->messages_more);
		str_puts(out, " WebSocket messages: --json\n");
	}
}

static void add_numbers(struct str *out, const struct network_entry *entry)
{
	scoped_str struct str cell = {0};

	add_left(out, entry->protocol.len ? entry->protocol : slice_of("-"), 5);
	view_text_add_count(&cell, (int64_t)entry->n_requests + entry->requests_more);
	add_right(out, &cell, 8);
	str_reset(&cell);
	view_text_add_bytes(&cell, entry->bytes_out);
	add_right(out, &cell, 12);
	str_reset(&cell);
	view_text_add_bytes(&cell, entry->bytes_in);
	add_right(out, &cell, 12);
}

static void add_entry(struct str *out, const struct view_style *style,
	const struct network_entry *entry, size_t width)
{
	scoped_str struct str cell = {0}, cut = {0};
	size_t room = style->columns > width + NUMBERS_WIDTH + 12
	                      ? style->columns - width - NUMBERS_WIDTH - 3
	                      : 0;

	add_place(&cell, entry);
	view_text_add_tail(&cut, str_slice(&cell), width);
	add_left(out, str_slice(&cut), width + 2);
	add_numbers(out, entry);
	str_puts(out, "  ");
	str_reset(&cell);
	str_reset(&cut);
	add_outcome(&cell, entry);
	view_text_add_cut(&cut, str_slice(&cell), room);
	if (entry->refused || entry->failed)
		view_text_add_color(
			out, style, entry->refused ? VIEW_RED : VIEW_YELLOW, str_slice(&cut));
	else
		str_add(out, cut.p, cut.len);
	str_putc(out, '\n');
	add_requests(out, style, entry);
}

static size_t widest(struct network_table *table, size_t n)
{
	size_t width = PLACE_MIN;

	for (size_t i = 0; i < n; i++) {
		scoped_str struct str cell = {0};

		add_place(&cell, network_table_get(table, i));
		if (view_text_width(str_slice(&cell)) > width)
			width = view_text_width(str_slice(&cell));
	}
	return width < PLACE_MAX ? width : PLACE_MAX;
}

void network_table_text(
	struct network_table *table, const struct view_style *style, struct str *out)
{
	size_t n = network_table_settle(table), width = widest(table, n);
	scoped_str struct str head = {0};

	if (n == 0) {
		str_puts(out, "no connections\n");
		return;
	}
	add_left(&head, slice_of("HOST"), width + 2);
	str_puts(&head, "PROTO REQUESTS         OUT          IN  RESULT");
	view_text_add_color(out, style, VIEW_DIM, str_slice(&head));
	str_putc(out, '\n');
	for (size_t i = 0; i < n; i++)
		add_entry(out, style, network_table_get(table, i), width);
}
