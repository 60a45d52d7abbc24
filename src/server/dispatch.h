/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to its handler and back: route, key, right, rate, body. */
#ifndef SERVER_DISPATCH_H
#define SERVER_DISPATCH_H

#include "server/http_conn.h"
#include "server/server.h"

/* The handler of connections; ctx is the server. */
struct http_handler dispatch_handler(struct server *server);

/* Decodes %XX, and in a query '+' as a blank. -EINVAL where it is malformed, holds a NUL or is not UTF-8. The caller owns
 * *ret. */
int dispatch_decode(struct slice text, bool is_query, char **ret);

#endif
