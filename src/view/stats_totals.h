/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox used in all, and at most. Of a figure that no event has, STATS_UNKNOWN. */
#ifndef VIEW_STATS_TOTALS_H
#define VIEW_STATS_TOTALS_H

#include "event/event.h"
#include "util/jsonw.h"
#include "util/str.h"

#define STATS_UNKNOWN (-1)

/* What only grows; each time a sandbox is resumed it begins anew in the record, and views add it up. */
enum stats_sum {
	STATS_SUM_CPU_MS,
	STATS_SUM_DISK_READ,
	STATS_SUM_DISK_WRITE,
	STATS_SUM_OUT,
	STATS_SUM_IN,
	STATS_N_SUMS,
};

struct stats_totals {
	int64_t samples;
	int64_t sums[STATS_N_SUMS];   /* since it was last resumed */
	int64_t before[STATS_N_SUMS]; /* until then; 0: nothing known */
	int64_t memory_peak_bytes;    /* the memory controller's */
	int64_t rss_peak_bytes;       /* of all processes together, as seen at the samples */
	int64_t rss_max_bytes;        /* of the largest process that ended */
	int64_t processes_seen;       /* most at a sample */
	int64_t threads_peak;
	int64_t disk_peak_bytes; /* held by its layers */
};

void stats_totals_init(struct stats_totals *totals);
/* Any event of a record. */
void stats_totals_add(struct stats_totals *totals, const struct event *ev);
/* In all; STATS_UNKNOWN. */
int64_t stats_totals_sum(const struct stats_totals *totals, enum stats_sum sum);
/* Members of an object that is open; null for what is not known. */
void stats_totals_json(const struct stats_totals *totals, struct jsonw *j);
/* "3.2s CPU, memory 120 MB at most, ..."; only numbers of ours. */
void stats_totals_text(const struct stats_totals *totals, struct str *out);

#endif
