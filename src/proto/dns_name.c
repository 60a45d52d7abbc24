/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/dns_name.h"

#include <errno.h>
#include <stdio.h>

#define LABEL_MAX   63
#define POINTER     0xc0u
#define POINTER_MAX 0x3fffu

uint32_t dns_cursor_int(struct dns_cursor *c, size_t bytes)
{
	uint32_t v = 0;

	if (c->bad || bytes > c->len - c->at) {
		c->bad = true;
		return 0;
	}
	while (bytes-- > 0)
		v = v << 8 | c->p[c->at++];
	return v;
}

void dns_cursor_skip(struct dns_cursor *c, size_t bytes)
{
	if (c->bad || bytes > c->len - c->at)
		c->bad = true;
	else
		c->at += bytes;
}

/* Where the pointer behind its first byte leads; it has to be before limit, or it could lead in a circle. */
static int follow(struct dns_cursor *c, uint32_t first, size_t limit)
{
	size_t to = (first << 8 | dns_cursor_int(c, 1)) & POINTER_MAX;

	if (c->bad || to >= limit)
		return -EBADMSG;
	c->at = to;
	return 0;
}

int dns_name_read(struct dns_cursor *c, bool pointers, struct dns_name *ret)
{
	size_t behind = 0,
	       limit = c->at; /* behind: where the message goes on, once a pointer was met */
	struct dns_name name = {0};
	size_t n = 0;
	uint32_t len;

	for (;;) {
		len = dns_cursor_int(c, 1);
		if (pointers && (len & POINTER) == POINTER) {
			behind = behind ? behind : c->at + 1;
			if (follow(c, len, limit) < 0)
				return -EBADMSG;
			limit = c->at;
			continue;
		}
		if (c->bad || len > LABEL_MAX || len > c->len - c->at || n + 1 + len > DNS_NAME_MAX)
			return -EBADMSG;
		name.wire[n++] = (uint8_t)len;
		if (len == 0)
			break;
		memcpy(name.wire + n, c->p + c->at, len);
		n += len;
		c->at += len;
	}
	if (behind)
		c->at = behind;
	name.len = (uint8_t)n;
	*ret = name;
	return 0;
}

struct dns_name dns_name_get(struct slice message, size_t at)
{
	struct dns_cursor c = dns_cursor_at(message, at);
	struct dns_name name = {0};

	(void)dns_name_read(&c, true, &name); /* was read before */
	return name;
}

/* A length is at most 63 and no letter, so that whole names can be gone through byte by byte. */
static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b)
{
	if (a->len != b->len)
		return false;
	for (size_t i = 0; i < a->len; i++)
		if (lower(a->wire[i]) != lower(b->wire[i]))
			return false;
	return true;
}

void dns_name_lower(struct dns_name *name)
{
	for (size_t i = 0; i < name->len; i++)
		name->wire[i] = lower(name->wire[i]);
}

static bool is_plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool dns_name_text(const struct dns_name *name, char ret[DNS_TEXT_MAX])
{
	bool plain = name->len > 1;
	size_t at = 0, n = 0;

	while (at < name->len && name->wire[at] > 0) {
		size_t end = at + 1 + name->wire[at];

		if (n > 0)
			ret[n++] = '.';
		while (++at < end) {
			uint8_t c = lower(name->wire[at]);

			if (is_plain(c))
				ret[n++] = (char)c;
			else
				n += (size_t)snprintf(ret + n, DNS_TEXT_MAX - n, "\\%03u", c);
			plain = plain && is_plain(c);
		}
	}
	if (n == 0)
		ret[n++] = '.';
	ret[n] = '\0';
	return plain;
}

/* The types in which a name may be compressed (RFC 3597, section 4), and those that are worth reading. */
static const struct dns_layout layouts[] = {
	{DNS_NS, "n", true},
	{DNS_CNAME, "n", true},
	{DNS_SOA, "nn44444", true},
	{DNS_PTR, "n", true},
	{DNS_MX, "2n", true},
	{DNS_TXT, "S", false},
	{DNS_SRV, "222n", false},
	{DNS_SVCB, "2n*", false},
	{DNS_HTTPS, "2n*", false},
	{3 /* MD */, "n", true},
	{4 /* MF */, "n", true},
	{7 /* MB */, "n", true},
	{8 /* MG */, "n", true},
	{9 /* MR */, "n", true},
	{13 /* HINFO */, "ss", false},
	{14 /* MINFO */, "nn", true},
	{17 /* RP */, "nn", false},
	{18 /* AFSDB */, "2n", false},
	{21 /* RT */, "2n", false},
	{26 /* PX */, "2nn", false},
	{35 /* NAPTR */, "22sssn", false},
	{36 /* KX */, "2n", false},
	{39 /* DNAME */, "n", false},
};

const struct dns_layout *dns_layout_of(uint16_t type)
{
	static const struct dns_layout other = {.pieces = "*"};

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].type == type)
			return &layouts[i];
	return &other;
}
