/* SPDX-License-Identifier: Apache-2.0 */
/* Where a control plane is, as --server names it. Pure. */
#ifndef REMOTE_ADDRESS_H
#define REMOTE_ADDRESS_H

#include <stdbool.h>

#include "util/err.h"
#include "util/str.h"

struct address {
	char *shown;  /* as it was named */
	char *base;   /* what the path of a request is put behind: "https://host:443/prefix" */
	char *socket; /* a Unix socket, to which it goes; NULL: none */
	bool is_near; /* of this host: no proxy leads there */
	bool is_open; /* neither encrypted nor of this host: whoever is between reads the key */
};

/* https://HOST[:PORT][/PREFIX], http://..., unix://PATH. -EINVAL with a sentence. */
int address_read(const char *text, struct address *ret_address, struct err *err);
void address_done(struct address *address);

/* Adds a part of a path or query, percent-encoded but for the unreserved characters of RFC 3986. */
void address_add_part(struct str *out, const char *text);

#endif
