/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that are refused unless a rule names them, because they lead inward or nowhere. Pure. */
#ifndef PROTO_ADDRESS_RANGE_H
#define PROTO_ADDRESS_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct address_range {
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned bits;
	const char *what;  /* "a private address" */
	bool by_name;      /* --net open with a rule that names the host lets it through */
	bool is_in_shadow; /* --shadow lets it through */
};

/* NULL for a public address. */
const struct address_range *address_range_find(const uint8_t address[16]);
/* The IPv4 address that an IPv6 one carries (6to4, NAT64, Teredo and their like), as ::ffff:a.b.c.d. */
bool address_range_carried(const uint8_t address[16], uint8_t ret_inner[16]);

#endif
