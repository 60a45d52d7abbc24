/* SPDX-License-Identifier: Apache-2.0 */
/* Which names led to an address: learned from the DNS answers that the sandbox was given, or because the address is
 * a synthetic one, which stands for one name and leads nowhere by itself. No sockets and no clock.
 *
 * Addresses are 16 bytes, v4 as ::ffff:a.b.c.d; hosts are lower case without a final dot. */
#ifndef GATEWAY_NAMES_H
#define GATEWAY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/scoped.h"

#define NAMES_PER_ADDRESS 32 /* that are remembered; the ones not heard for longest go first */

struct names;

struct names *names_new(void);
void names_free(struct names *names);
SCOPED_TYPE(names)

/* An answer for host held this address. It is remembered for an hour at least, since programs keep addresses longer
 * than they should, and for a day at most; less only where more addresses are learned than there is room for. An
 * answer cannot give a meaning to a synthetic address: such a one is not learned. */
void names_learn(struct names *names, const char *host, const uint8_t address[16], uint32_t ttl_s,
	int64_t now_ns);

/* The names of an address, the one heard last first: i counts from 0, NULL behind the last. A synthetic address has
 * one, or none where it was not handed out or its name had to give way. The text is valid until the next
 * names_learn() or names_synthetic(). */
const char *names_find(struct names *names, const uint8_t address[16], size_t i, int64_t now_ns);

/* The synthetic address that stands for a name, v4 in 198.18.0.0/15 or v6 in fd00:c1::/32. A name keeps it, unless
 * thousands of others were asked for since it was used last; another name gets it only after all others were used. */
void names_synthetic(struct names *names, const char *host, bool is_v6, uint8_t ret[16]);
bool names_is_synthetic(const uint8_t address[16]);

#endif
