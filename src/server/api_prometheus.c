/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: what Prometheus scrapes. What the store knows is of all replicas, what is counted of this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server/api.h"
#include "server/prometheus.h"
#include "util/fdio.h"

#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

static int on_state(const char *state, int64_t n, void *arg)
{
	str_printf(arg, "cloche_sandboxes{state=\"%s\"} %lld\n", state, (long long)n);
	return 0;
}

static int on_delivery_state(const char *state, int64_t n, void *arg)
{
	str_printf(arg, "cloche_webhook_deliveries{state=\"%s\"} %lld\n", state, (long long)n);
	return 0;
}

static void add_memory(struct str *out)
{
	scoped_str struct str text = {0};
	unsigned long size, resident;

	if (fdio_read_file(AT_FDCWD, "/proc/self/statm", 4096, &text) < 0 ||
		sscanf(text.p, "%lu %lu", &size, &resident) != 2)
		return;
	prometheus_head(out, "cloche_process_resident_memory_bytes", "gauge",
		"Memory of the half that faces the network.");
	str_printf(out, "cloche_process_resident_memory_bytes %llu\n",
		(unsigned long long)resident * (unsigned long long)sysconf(_SC_PAGESIZE));
}

int api_prometheus(struct call *call, struct err *err)
{
	struct store *store = call->server->store;
	struct str *out = &call->out;
	int r;

	prometheus_head(out, "cloche_sandboxes", "gauge", "Sandboxes that have not ended.");
	r = store_sandbox_states(store, on_state, out, err);
	if (r < 0)
		return r;
	prometheus_head(out, "cloche_webhook_deliveries", "gauge",
		"Deliveries that are kept, by their state.");
	r = store_delivery_states(store, on_delivery_state, out, err);
	if (r < 0)
		return r;
	prometheus_write(call->server->prometheus, out);
	add_memory(out);
	call->type = TEXT_TYPE;
	return 0;
}
