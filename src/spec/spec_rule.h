/* SPDX-License-Identifier: Apache-2.0 */
/* A network rule as people write it: [METHOD[,METHOD...] ]HOST[:PORT][/PATH]. Pure.
 *
 * HOST is a name, "*.name" (everything below it, not itself), "*", an address or a range in CIDR form; IPv6
 * stands in brackets where a port or path follows. PATH may hold * (within a part) and ** (anything). */
#ifndef SPEC_SPEC_RULE_H
#define SPEC_SPEC_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"

enum spec_rule_host {
	SPEC_RULE_ANY,     /* "*" */
	SPEC_RULE_NAME,    /* name */
	SPEC_RULE_BELOW,   /* "*.name": host is the name */
	SPEC_RULE_ADDRESS, /* address, bits */
};

struct spec_rule {
	char *text; /* as written */
	enum spec_rule_host kind;
	char *host;          /* lower case, no final dot; NULL for any and addresses */
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned bits;       /* of the 128 that must agree */
	uint16_t port;       /* 0: any */
	char *methods;       /* "GET,HEAD", upper case; NULL: any */
	char *path;          /* a pattern from '/'; NULL: any */
};

/* -EINVAL with one sentence. The rule is the caller's. */
int spec_rule_parse(const char *text, struct spec_rule *ret_rule, struct err *err);
void spec_rule_done(struct spec_rule *rule);

/* host: lower case, no final dot. An address rule matches no name, any (*) matches all. */
bool spec_rule_matches_host(const struct spec_rule *rule, const char *host);
bool spec_rule_matches_address(const struct spec_rule *rule, const uint8_t address[16]);

/* Lower case, one final dot gone, and only what a host name may hold: -EINVAL for anything else. out is replaced. */
struct str;
int spec_rule_host_name(struct slice text, struct str *out);
/* "192.0.2.1", "2001:db8::1" (brackets allowed) to 16 bytes. -EINVAL where it is none. */
int spec_rule_address(struct slice text, uint8_t ret_address[16]);

#endif
