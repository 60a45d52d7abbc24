/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses and problem documents (RFC 9457). */
#ifndef SERVER_HTTP_STATUS_H
#define SERVER_HTTP_STATUS_H

#include "util/str.h"

const char *http_status_reason(unsigned status); /* "Not Found"; never NULL */

/* The status and the stable code of a failure: of -ENOENT 404 and "not_found". What is nobody's fault but ours is 500
 * and "internal". */
/* Whether the store said that it is not now: a negative errno of store.h. */
bool http_status_is_passing(int r);
unsigned http_status_of(int r, const char **ret_code);

/* Adds {type, title, status, detail, code, instance}; detail is a sentence for people, instance (may be NULL) the path that
 * was asked for. */
void http_status_problem(struct str *out, unsigned status, const char *code, const char *detail,
	const char *instance);

#endif
