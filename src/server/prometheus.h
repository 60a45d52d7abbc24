/* SPDX-License-Identifier: Apache-2.0 */
/* What this process counts for Prometheus: requests by route and status, how long they took, what is under way, tries of
 * webhooks. Any thread may count. docs/server.md names them all. */
#ifndef SERVER_PROMETHEUS_H
#define SERVER_PROMETHEUS_H

#include <stdint.h>

#include "util/scoped.h"
#include "util/str.h"

struct route;

struct prometheus *prometheus_new(void);
void prometheus_free(struct prometheus *prometheus);
SCOPED_TYPE(prometheus)

/* A request of a route has come. */
void prometheus_begin(struct prometheus *prometheus, const struct route *route);
/* It has ended; route NULL: there is none, and it had no begin. status 0: a stream, which is not timed. */
void prometheus_end(struct prometheus *prometheus, const struct route *route, unsigned status,
	int64_t duration_ns);

enum prometheus_try {
	PROMETHEUS_SENT,
	PROMETHEUS_AGAIN,
	PROMETHEUS_FAILED,
	PROMETHEUS_N_TRIES,
};
void prometheus_try(struct prometheus *prometheus, enum prometheus_try outcome);

/* All of it as text (exposition format 0.0.4). */
void prometheus_write(struct prometheus *prometheus, struct str *out);
/* The lines before the values of one: HELP and TYPE. */
void prometheus_head(struct str *out, const char *name, const char *type, const char *help);

#endif
