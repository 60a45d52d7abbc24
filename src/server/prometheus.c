/* SPDX-License-Identifier: Apache-2.0 */
#include "server/prometheus.h"

#include <stdatomic.h>
#include <string.h>

#include "server/route.h"
#include "util/clock.h"
#include "util/mem.h"

static const unsigned statuses[] = {200, 201, 202, 204, 206, 304, 400, 401, 403, 404, 405, 409, 413,
	415, 416, 422, 429, 431, 500, 501, 503, 507};
#define N_STATUSES (sizeof(statuses) / sizeof(statuses[0]))

static const int bounds_ms[] = {1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 60000};
#define N_BOUNDS (sizeof(bounds_ms) / sizeof(bounds_ms[0]))

struct counts {                                  /* of a route */
	atomic_ullong by_status[N_STATUSES + 1]; /* the last: others */
	atomic_ullong by_time[N_BOUNDS + 1];     /* the last: longer */
	atomic_ullong total_us;
	atomic_llong n_running;
};

struct prometheus {
	struct counts *routes; /* the last: of no route */
	atomic_ullong tries[PROMETHEUS_N_TRIES];
};

struct prometheus *prometheus_new(void)
{
	struct prometheus *prometheus = new0(struct prometheus);

	prometheus->routes = new0_n(struct counts, route_n + 1);
	return prometheus;
}

void prometheus_free(struct prometheus *prometheus)
{
	if (!prometheus)
		return;
	free(prometheus->routes);
	free(prometheus);
}

static struct counts *counts_of(struct prometheus *prometheus, const struct route *route)
{
	return &prometheus->routes[route ? (size_t)(route - route_table) : route_n];
}

void prometheus_begin(struct prometheus *prometheus, const struct route *route)
{
	atomic_fetch_add(&counts_of(prometheus, route)->n_running, 1);
}

void prometheus_end(struct prometheus *prometheus, const struct route *route, unsigned status,
	int64_t duration_ns)
{
	struct counts *counts = counts_of(prometheus, route);
	size_t i = 0, k = 0;

	while (i < N_STATUSES && statuses[i] != (status ? status : 200))
		i++;
	atomic_fetch_add(&counts->by_status[i], 1);
	if (route)
		atomic_fetch_sub(&counts->n_running, 1);
	if (status == 0)
		return;
	while (k < N_BOUNDS && duration_ns > bounds_ms[k] * CLOCK_NS_PER_MS)
		k++;
	atomic_fetch_add(&counts->by_time[k], 1);
	atomic_fetch_add(&counts->total_us, (unsigned long long)duration_ns / 1000);
}

void prometheus_try(struct prometheus *prometheus, enum prometheus_try outcome)
{
	atomic_fetch_add(&prometheus->tries[outcome], 1);
}

void prometheus_head(struct str *out, const char *name, const char *type, const char *help)
{
	str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Names of routes are our own, so nothing in them has to be escaped. */
static void add_labels(struct str *out, size_t i)
{
	if (i < route_n)
		str_printf(out, "method=\"%s\",route=\"%s\"", route_table[i].method,
			route_table[i].path);
	else
		str_puts(out, "method=\"\",route=\"none\"");
}

static void write_statuses(struct prometheus *prometheus, struct str *out)
{
	prometheus_head(
		out, "cloche_http_requests_total", "counter", "Requests that have been answered.");
	for (size_t i = 0; i <= route_n; i++)
		for (size_t k = 0; k <= N_STATUSES; k++) {
			unsigned long long n = atomic_load(&prometheus->routes[i].by_status[k]);

			if (n == 0)
				continue;
			str_puts(out, "cloche_http_requests_total{");
			add_labels(out, i);
			str_printf(
				out, ",status=\"%u\"} %llu\n", k < N_STATUSES ? statuses[k] : 0, n);
		}
}

static void write_times_of(const struct counts *counts, size_t i, struct str *out)
{
	static const char name[] = "cloche_http_request_duration_seconds";
	unsigned long long n = 0;

	for (size_t k = 0; k <= N_BOUNDS; k++) {
		n += atomic_load(&counts->by_time[k]);
		str_printf(out, "%s_bucket{", name);
		add_labels(out, i);
		if (k < N_BOUNDS)
			str_printf(out, ",le=\"%g\"} %llu\n", bounds_ms[k] / 1e3, n);
		else
			str_printf(out, ",le=\"+Inf\"} %llu\n", n);
	}
	str_printf(out, "%s_sum{", name);
	add_labels(out, i);
	str_printf(out, "} %.6f\n%s_count{", (double)atomic_load(&counts->total_us) / 1e6, name);
	add_labels(out, i);
	str_printf(out, "} %llu\n", n);
}

static void write_times(struct prometheus *prometheus, struct str *out)
{
	prometheus_head(out, "cloche_http_request_duration_seconds", "histogram",
		"From a whole request to its answer; streams are not timed.");
	for (size_t i = 0; i <= route_n; i++) {
		unsigned long long n = 0;

		for (size_t k = 0; k <= N_BOUNDS; k++)
			n += atomic_load(&prometheus->routes[i].by_time[k]);
		if (n > 0)
			write_times_of(&prometheus->routes[i], i, out);
	}
}

static long long running(const struct prometheus *prometheus, const char *path)
{
	long long n = 0;

	for (size_t i = 0; i < route_n; i++)
		if (!path || strcmp(route_table[i].path, path) == 0)
			n += atomic_load(&prometheus->routes[i].n_running);
	return n;
}

static void write_gauge(struct str *out, const char *name, const char *help, long long n)
{
	prometheus_head(out, name, "gauge", help);
	str_printf(out, "%s %lld\n", name, n);
}

static void write_tries(struct prometheus *prometheus, struct str *out)
{
	static const char *const words[] = {"sent", "again", "failed"};

	prometheus_head(out, "cloche_webhook_tries_total", "counter",
		"Tries to deliver, by what came of them.");
	for (size_t i = 0; i < PROMETHEUS_N_TRIES; i++)
		str_printf(out, "cloche_webhook_tries_total{outcome=\"%s\"} %llu\n", words[i],
			(unsigned long long)atomic_load(&prometheus->tries[i]));
}

void prometheus_write(struct prometheus *prometheus, struct str *out)
{
	write_statuses(prometheus, out);
	write_times(prometheus, out);
	write_gauge(out, "cloche_http_requests_running", "Requests under way, streams too.",
		running(prometheus, NULL));
	write_gauge(out, "cloche_execs_running",
		"Commands whose end a client of this process waits for.",
		running(prometheus, "/v1/sandboxes/{id}/exec"));
	write_gauge(out, "cloche_watchers", "Streams of what happens in a sandbox.",
		running(prometheus, "/v1/sandboxes/{id}/watch") +
			running(prometheus, "/v1/sandboxes/{id}/files/watch"));
	write_tries(prometheus, out);
}
