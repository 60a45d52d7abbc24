/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, authorities and absolute URLs (RFC 3986), read so that two readers cannot take them in two ways: what
 * browsers mend (backslashes, tabs, percent signs in hosts, several '@') is refused. */
#ifndef PROTO_URL_H
#define PROTO_URL_H

#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define URL_HOST_MAX 254 /* with its NUL */

enum url_host_kind {
	URL_NAME,
	URL_IPV4,
	URL_IPV6,
};

struct url_host {
	enum url_host_kind kind;
	/* A name: lower case, without the final dot, xn-- labels as they are. An address: its one usual spelling,
	 * without brackets. */
	char text[URL_HOST_MAX];
	uint8_t address[16]; /* of addresses; v4 as ::ffff:a.b.c.d */
};

/* "WWW.example.org.", "[2001:DB8::1]", and every spelling of an IPv4 address that programs take: "0x7f.1",
 * "0313.0.0161.011", "3405803785". What ends in a number and is no address is refused, not taken for a name.
 * -EINVAL: empty, a character that has no place in a host (a percent sign, any byte over 127), an empty or long
 * label, no brackets around v6, a zone. */
int url_host_read(struct slice text, struct url_host *ret);

struct url_authority {
	struct slice user; /* what stands before the '@'; p is NULL where there is no '@' */
	struct url_host host;
	uint16_t port; /* 0: none said */
};
/* "[user@]host[:port]". -EINVAL; also for port 0, a port of more than five digits, or an empty one. */
int url_authority_read(struct slice text, struct url_authority *ret);

struct url {
	char scheme[16]; /* lower case */
	struct url_authority authority;
	struct slice path; /* with its query; begins with '/' or '?', or is empty */
};
/* "scheme://authority[/path][?query]", in one line without spaces or a fragment. -EINVAL. */
int url_read(struct slice text, struct url *ret);

uint16_t url_default_port(struct slice scheme); /* of http, https, ws, wss; else 0 */
/* Brackets around a v6 address; no port where it is 0 or the scheme's own. */
void url_add(
	struct str *out, const char *scheme, const char *host, uint16_t port, struct slice path);
/* The same without scheme and path. */
void url_add_authority(struct str *out, const char *scheme, const char *host, uint16_t port);

#endif
