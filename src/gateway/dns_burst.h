/* SPDX-License-Identifier: Apache-2.0 */
/* Names that look like data: many different ones below one domain, with long labels of mixed characters, are how
 * something is carried out by asking. Counts them by domain and minute. No clock of its own. */
#ifndef GATEWAY_DNS_BURST_H
#define GATEWAY_DNS_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "util/scoped.h"

#define DNS_BURST_MAX 50 /* such names a minute below one domain; nearly no program needs ten */

struct dns_burst;

struct dns_burst *dns_burst_new(void);
void dns_burst_free(struct dns_burst *burst);
SCOPED_TYPE(dns_burst)

/* host: lower case, no final dot. False where it is one too many. */
bool dns_burst_allows(struct dns_burst *burst, const char *host, int64_t now_ns);

/* A domain whose burst is over or has just begun, once each: how many names were asked for and refused. False where
 * there is none. The text is valid until the next call. */
struct dns_burst_report {
	const char *domain;
	uint64_t asked, refused;
};
bool dns_burst_next(struct dns_burst *burst, int64_t now_ns, struct dns_burst_report *ret);

/* Whether the part of a name below its domain looks like data. */
bool dns_burst_is_data(const char *host);

#endif
