/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what may be reached. Pure: no I/O, no clock; never changes once built.
 *
 * In this order: a deny rule refuses; an allow rule that names the address lets through; addresses that lead
 * inward are refused whatever name led there; an allow rule that names the host lets through; the mode says the
 * rest. So deny wins over allow, however narrow the allow rule is. */
#ifndef GATEWAY_POLICY_H
#define GATEWAY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/spec.h"
#include "util/err.h"
#include "util/scoped.h"

struct policy;

/* Copies what it needs. -EINVAL, with a sentence, for a rule that is malformed or a set that is not there. */
int policy_new(const struct spec_network *network, struct policy **ret_policy, struct err *err);
void policy_free(struct policy *policy);
SCOPED_TYPE(policy)

enum policy_verdict {
	POLICY_DENY,
	POLICY_ALLOW,
	POLICY_ASK, /* no rule names it and a person is to be asked: as DENY until the answer */
};

struct policy_query {
	const char *host;     /* lower case, no final dot; NULL: a raw address */
	uint8_t address[16];  /* what is or will be dialled; IPv4 as ::ffff:a.b.c.d */
	bool has_address;     /* not at DNS time */
	bool is_own;          /* the address is one of this host's: refused like its loopback */
	uint16_t port;        /* 0: not known yet (DNS time) */
	const char *protocol; /* "tcp", "udp" */
	const char *method;   /* NULL unless HTTP was read, then both are there */
	const char *path;     /* as it was sent, with its query */
};

struct policy_answer {
	enum policy_verdict verdict;
	bool shadow; /* ALLOW, but only because of --shadow: rule and reason say what would have refused it */
	bool only_http; /* ALLOW only as long as every request is asked about with method and path: what is no
			 * HTTP that can be read is to be refused */
	bool is_named; /* ALLOW, and a rule names the host, itself or what it lies below: not everything, not its
			* address */
	char rule[192];   /* the rule that decided, "deny *.example.com", or the default's name */
	char reason[384]; /* refused: a sentence that an agent can act on */
};

void policy_check(const struct policy *policy, const struct policy_query *query,
	struct policy_answer *ret_answer);

/* Some rule for this host has a method or path, so the flow must be read as HTTP. host may be NULL. */
bool policy_wants_http(const struct policy *policy, const char *host, uint16_t port);

/* How TLS to this name is treated: by the longest name that fits, else the mode. host NULL: the mode. */
enum spec_tls policy_tls(const struct policy *policy, const char *host);

/* Where a mapped name leads, or NULL. An entry with the port wins over one without. */
const struct spec_host_map *policy_map(
	const struct policy *policy, const char *host, uint16_t port);
/* Whether any port of the name is mapped: DNS answers such names with synthetic addresses. */
bool policy_is_mapped(const struct policy *policy, const char *host);
/* The control plane's name, which leads to no address. Rules to deny hold for it, and nothing else: no mode, no rule to
 * allow, no --shadow opens it where the spec does not. */
bool policy_is_plane(const char *host);

#endif
