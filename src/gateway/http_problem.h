/* SPDX-License-Identifier: Apache-2.0 */
/* What a refused request is answered with: a problem document (RFC 9457) that an agent can act on. */
#ifndef GATEWAY_HTTP_PROBLEM_H
#define GATEWAY_HTTP_PROBLEM_H

#include "util/str.h"

struct http_problem {
	unsigned status;
	const char *host; /* NULL: not known */
	const char *rule; /* NULL or empty: none to name */
	const char *reason;
};

/* Adds the JSON document. */
void http_problem_write(struct str *out, const struct http_problem *problem);
const char *http_problem_title(unsigned status); /* "Forbidden" */

#define HTTP_PROBLEM_TYPE "application/problem+json"

#endif
