/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox used in all, and at most. Of a figure that no event has, STATS_UNKNOWN. */
#ifndef VIEW_STATS_TOTALS_H
#define VIEW_STATS_TOTALS_H

#include "event/event.h"
#include "util/jsonw.h"
#include "util/str.h"

#define STATS_UNKNOWN (-1)

struct stats_totals {
	int64_t samples;
	int64_t cpu_ms;
	int64_t memory_peak_bytes; /* the memory controller's */
	int64_t rss_peak_bytes;    /* of all processes together, as seen at the samples */
	int64_t rss_max_bytes;     /* of the largest process that ended */
	int64_t processes_seen;    /* most at a sample */
	int64_t threads_peak;
	int64_t disk_read_bytes, disk_write_bytes;
	int64_t disk_peak_bytes; /* held by its layers */
	int64_t bytes_out, bytes_in;
};

void stats_totals_init(struct stats_totals *totals);
/* Any event of a record. */
void stats_totals_add(struct stats_totals *totals, const struct event *ev);
/* Members of an object that is open; null for what is not known. */
void stats_totals_json(const struct stats_totals *totals, struct jsonw *j);
/* "3.2s CPU, memory 120 MB at most, ..."; only numbers of ours. */
void stats_totals_text(const struct stats_totals *totals, struct str *out);

#endif
