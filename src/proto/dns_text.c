/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdio.h>

#include "proto/dns_name.h"

#define PIECES_MAX 32 /* strings of a TXT record that are shown */

static void put_name(struct str *out, struct dns_cursor *c)
{
	struct dns_name name;
	char text[DNS_TEXT_MAX];

	if (dns_name_read(c, true, &name) < 0)
		return; /* was read before */
	(void)dns_name_text(&name, text);
	str_printf(out, " %s", text);
}

static void put_string(struct str *out, struct dns_cursor *c)
{
	uint32_t len = dns_cursor_int(c, 1);
	const uint8_t *p = c->p + c->at;

	dns_cursor_skip(c, len);
	if (c->bad)
		return;
	str_puts(out, " \"");
	for (size_t i = 0; i < len; i++)
		if (p[i] == '"' || p[i] == '\\')
			str_printf(out, "\\%c", p[i]);
		else if (p[i] >= ' ' && p[i] < 0x7f)
			str_putc(out, (char)p[i]);
		else
			str_printf(out, "\\%03u", p[i]);
	str_putc(out, '"');
}

static void put_hex(struct str *out, struct dns_cursor *c)
{
	if (c->at < c->len)
		str_putc(out, ' ');
	while (c->at < c->len)
		str_printf(out, "%02x", c->p[c->at++]);
}

static void put_piece(struct str *out, struct dns_cursor *c, char piece)
{
	switch (piece) {
	case 'n':
		put_name(out, c);
		break;
	case 's':
		put_string(out, c);
		break;
	case 'S':
		for (int i = 0; i < PIECES_MAX && c->at < c->len; i++)
			put_string(out, c);
		if (c->at < c->len)
			str_puts(out, " ...");
		break;
	case '*':
		put_hex(out, c);
		break;
	default:
		str_printf(out, " %u", dns_cursor_int(c, (size_t)(piece - '0')));
	}
}

static void put_address(struct str *out, const uint8_t address[16])
{
	char text[INET6_ADDRSTRLEN];
	bool is_v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)address);

	str_puts(out, inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? address + 12 : address, text,
			      sizeof(text)));
}

void dns_record_text(
	const struct dns_answer *answer, const struct dns_record *record, struct str *out)
{
	struct slice upto = {
		.p = answer->message.p, .len = (size_t)record->data_at + record->data_len};
	struct dns_cursor c = dns_cursor_at(upto, record->data_at);
	uint8_t address[16];

	if (dns_record_address(answer, record, address)) {
		put_address(out, address);
		return;
	}
	str_puts(out, dns_type_name(record->type));
	for (const char *piece = dns_layout_of(record->type)->pieces; *piece; piece++)
		put_piece(out, &c, *piece);
}
