/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a DNS message piece by piece, and the names in it. For the other files of dns. */
#ifndef PROTO_DNS_NAME_H
#define PROTO_DNS_NAME_H

#include "proto/dns.h"

/* A place in a message. Reads past the end give 0 and set bad, which is looked at once, after them. */
struct dns_cursor {
	const uint8_t *p;
	size_t len, at;
	bool bad;
};

static inline struct dns_cursor dns_cursor_at(struct slice message, size_t at)
{
	return (struct dns_cursor){.p = (const uint8_t *)message.p, .len = message.len, .at = at};
}

uint32_t dns_cursor_int(
	struct dns_cursor *c, size_t bytes); /* of 1 to 4 bytes, the high one first */
void dns_cursor_skip(struct dns_cursor *c, size_t bytes);

/* Reads the name at c, whose pointers, if they are allowed, lead backwards only, and goes behind it.
 * -EBADMSG: past the end, too long, an odd label. */
int dns_name_read(struct dns_cursor *c, bool pointers, struct dns_name *ret);
/* One that has been read before, so that nothing can go wrong. */
struct dns_name dns_name_get(struct slice message, size_t at);
bool dns_name_eq(const struct dns_name *a, const struct dns_name *b); /* in any case */
void dns_name_lower(struct dns_name *name);
/* In words: lower case, no final dot, "." for the root; what is not a letter, a digit, '-' or '_' as \DDD.
 * Tells whether there was nothing of that sort, and at least one label. */
bool dns_name_text(const struct dns_name *name, char ret[DNS_TEXT_MAX]);

/* What the data of a type is made of, one letter a piece: 1, 2, 4 an integer of so many bytes; n a name; s a string
 * behind its length; S any number of those; * the rest, which may be nothing. "*" for types that are not known, in
 * which no name may be compressed (RFC 3597). */
struct dns_layout {
	uint16_t type;
	const char *pieces;
	bool compressed; /* its names may be written so */
};
const struct dns_layout *dns_layout_of(uint16_t type);

#endif
