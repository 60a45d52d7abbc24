/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/gateway_internal.h"
#include "gateway/resolver.h"
#include "util/mem.h"
#include "util/str.h"

#define ADDRESSES_MAX 16
#define LABEL_MAX     63

struct lookup {
	struct gateway *gw;
	char *host;
	struct resolver_ask *ask;
	struct poller_timer timer; /* for what fails at once */
	uint8_t addresses[ADDRESSES_MAX][16];
	size_t n;
	bool is_v6;
	lookup_fn on_found;
	void *ctx;
};

static void start(struct lookup *lookup);

static int add_labels(struct str *out, const char *host)
{
	while (*host) {
		size_t len = strcspn(host, ".");

		if (len == 0 || len > LABEL_MAX)
			return -EINVAL;
		str_putc(out, (char)len);
		str_add(out, host, len);
		host += len + (host[len] == '.');
	}
	str_putc(out, 0);
	return 0;
}

int lookup_query(const char *host, uint16_t type, struct dns_query *ret)
{
	static const uint8_t head[] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}; /* one question */
	uint8_t tail[] = {(uint8_t)(type >> 8), (uint8_t)type, 0, DNS_CLASS_IN};
	scoped_str struct str message = {0};
	int r;

	str_add(&message, head, sizeof(head));
	r = add_labels(&message, host);
	if (r < 0)
		return r;
	str_add(&message, tail, sizeof(tail));
	if (dns_query_read(str_slice(&message), ret) < 0 || ret->fault != DNS_NOERROR)
		return -EINVAL;
	return 0;
}

void lookup_cancel(struct lookup *lookup)
{
	if (!lookup)
		return;
	resolver_cancel(lookup->ask);
	poller_timer_stop(lookup->gw->poller, &lookup->timer);
	free(lookup->host);
	free(lookup);
}

static void finish(struct lookup *lookup, int r)
{
	lookup->on_found(lookup->ctx, r, (const uint8_t(*)[16])lookup->addresses, lookup->n);
	lookup_cancel(lookup);
}

static void on_answer(void *ctx, int r, const struct dns_answer *answer)
{
	struct lookup *lookup = ctx;

	lookup->ask = NULL;
	for (size_t i = 0; answer && i < answer->n_records && lookup->n < ADDRESSES_MAX; i++)
		if (dns_record_address(answer, &answer->records[i], lookup->addresses[lookup->n]))
			lookup->n++;
	if (lookup->n > 0 || r < 0 || lookup->is_v6) {
		finish(lookup, lookup->n > 0 ? 0 : r < 0 ? r : -ENOENT);
		return;
	}
	lookup->is_v6 = true;
	start(lookup);
}

static void on_no_name(void *ctx)
{
	finish(ctx, -EINVAL);
}

static void start(struct lookup *lookup)
{
	static struct dns_query query;

	if (lookup_query(lookup->host, lookup->is_v6 ? DNS_AAAA : DNS_A, &query) == 0)
		lookup->ask = resolver_ask(lookup->gw->resolver, &query, on_answer, lookup);
	else
		poller_timer_set(lookup->gw->poller, &lookup->timer, 0);
}

struct lookup *lookup_start(struct gateway *gw, const char *host, lookup_fn on_found, void *ctx)
{
	struct lookup *lookup = new0(struct lookup);

	lookup->gw = gw;
	lookup->host = mem_dup(host);
	lookup->timer = (struct poller_timer){.on_time = on_no_name, .ctx = lookup};
	lookup->on_found = on_found;
	lookup->ctx = ctx;
	start(lookup);
	return lookup;
}
