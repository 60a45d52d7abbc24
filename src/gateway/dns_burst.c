/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/dns_burst.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"

#define MINUTE_NS   (60 * CLOCK_NS_PER_S)
#define DOMAINS_MAX 256 /* beyond, names of further domains share one count */
#define LABEL_MIN   16  /* shorter ones say too little to be data */
#define KINDS_MIN   10  /* different characters in it */

struct domain {
	char *name;
	int64_t since_ns;
	uint64_t asked, refused;
	struct map *names; /* those of this minute, up to the limit: asking again is no news */
	bool is_told;      /* that it has begun */
};

struct dns_burst {
	struct map *domains;
	char *reported;
	size_t n_over; /* domains with something to tell */
};

struct dns_burst *dns_burst_new(void)
{
	struct dns_burst *burst = new0(struct dns_burst);

	burst->domains = map_new();
	return burst;
}

static void domain_free(struct domain *domain)
{
	if (!domain)
		return;
	free(domain->name);
	map_free(domain->names);
	free(domain);
}

void dns_burst_free(struct dns_burst *burst)
{
	struct slice key;
	void *value;

	if (!burst)
		return;
	for (size_t i = 0; map_next(burst->domains, &i, &key, &value);)
		domain_free(value);
	map_free(burst->domains);
	free(burst->reported);
	free(burst);
}

/* The last two labels: good enough to count by, since one who owns a name owns all below it. */
static const char *domain_of(const char *host)
{
	const char *at = host + strlen(host);
	int dots = 0;

	while (at > host && (at[-1] != '.' || ++dots < 2))
		at--;
	return at;
}

/* Words and hashes of releases have letters or digits; data in base32 or hexadecimal has both, and many of them. */
static bool is_data_label(const char *label, size_t len)
{
	bool seen[256] = {false};
	size_t kinds = 0, digits = 0;

	if (len < LABEL_MIN)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)label[i];

		kinds += !seen[c];
		seen[c] = true;
		digits += isdigit(c) != 0;
	}
	return kinds >= KINDS_MIN && digits > 0 && digits < len;
}

bool dns_burst_is_data(const char *host)
{
	const char *end = domain_of(host);

	while (host < end) {
		size_t len = strcspn(host, ".");

		if (is_data_label(host, len))
			return true;
		host += len + 1;
	}
	return false;
}

static struct domain *domain_at(struct dns_burst *burst, const char *name, int64_t now_ns)
{
	bool is_full = map_len(burst->domains) >= DOMAINS_MAX;
	const char *key = is_full && !map_find(burst->domains, slice_of(name)) ? "" : name;
	void **slot = map_slot(burst->domains, slice_of(key));

	if (!*slot) {
		struct domain *domain = new0(struct domain);

		domain->name = mem_dup(*key ? key : "(others)");
		domain->since_ns = now_ns;
		domain->names = map_new();
		*slot = domain;
	}
	return *slot;
}

bool dns_burst_allows(struct dns_burst *burst, const char *host, int64_t now_ns)
{
	struct domain *domain;

	if (!dns_burst_is_data(host))
		return true;
	domain = domain_at(burst, domain_of(host), now_ns);
	if (domain->refused == 0 && now_ns - domain->since_ns > MINUTE_NS) {
		domain->since_ns = now_ns;
		domain->asked = 0;
		map_free(domain->names);
		domain->names = map_new();
	}
	if (map_find(domain->names, slice_of(host)))
		return true;
	domain->asked++;
	if (domain->asked <= DNS_BURST_MAX) {
		*map_slot(domain->names, slice_of(host)) = domain;
		return true;
	}
	burst->n_over += domain->refused++ == 0;
	return false;
}

static void report(
	struct dns_burst *burst, const struct domain *domain, struct dns_burst_report *ret)
{
	free(burst->reported);
	burst->reported = mem_dup(domain->name);
	*ret = (struct dns_burst_report){
		.domain = burst->reported, .asked = domain->asked, .refused = domain->refused};
}

bool dns_burst_next(struct dns_burst *burst, int64_t now_ns, struct dns_burst_report *ret)
{
	struct slice key;
	void *value;

	if (burst->n_over == 0)
		return false;
	for (size_t i = 0; map_next(burst->domains, &i, &key, &value);) {
		struct domain *domain = value;

		if (domain->refused == 0)
			continue;
		if (now_ns - domain->since_ns > MINUTE_NS) {
			report(burst, domain, ret);
			map_remove(burst->domains, key);
			domain_free(domain);
			burst->n_over--;
			return true;
		}
		if (!domain->is_told) {
			domain->is_told = true;
			report(burst, domain, ret);
			return true;
		}
	}
	return false;
}
