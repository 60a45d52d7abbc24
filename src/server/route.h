/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all routes, each with the right it needs: what has none is refused. docs/openapi.yaml tells them to
 * others; a test holds the two side by side. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include <stddef.h>

#include "server/call.h"
#include "util/err.h"
#include "util/slice.h"

enum right {
	RIGHT_ANYONE = 1, /* without a key */
	RIGHT_READ,       /* auditors, members, admins */
	RIGHT_WORK,       /* members, admins */
	RIGHT_ADMIN,      /* admins of the account */
	RIGHT_OPERATOR,   /* admins of the account "default" */
};

struct route {
	const char *method;
	const char *path; /* "/v1/sandboxes/{id}/exec" */
	enum right right;
	int (*handler)(struct call *call, struct err *err);
	bool has_body;  /* a JSON object, which may be left out where it would be empty */
	bool has_query; /* its handler reads parameters, and refuses others; else there are none */
	bool is_upload; /* the body is a file */
	bool is_creating;     /* takes an Idempotency-Key */
	bool is_slow;         /* may take minutes */
	bool is_from_outside; /* changes what holds a sandbox: not by a program in that one */
};

extern const struct route route_table[];
extern const size_t route_n;

/* The route of a method and a path (as sent, without the query): sets *ret and *ret_params, parts of path, NULL where there
 * is none. -ENOENT: no such path; -EOPNOTSUPP: not with this method, and allow holds those it has. */
int route_find(struct slice method, struct slice path, const struct route **ret,
	struct slice ret_params[CALL_PARAMS_MAX], struct str *allow);
bool route_allows(const struct route *route, const struct caller *caller);

#endif
