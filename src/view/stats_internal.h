/* SPDX-License-Identifier: Apache-2.0 */
/* What the forms of the stats view share. */
#ifndef VIEW_STATS_INTERNAL_H
#define VIEW_STATS_INTERNAL_H

#include "view/stats_table.h"

/* Figures of a sample, as its event has them. */
enum stats_figure {
	STATS_CPU_MS,
	STATS_MEMORY,
	STATS_MEMORY_PEAK,
	STATS_RSS,
	STATS_PROCESSES,
	STATS_THREADS_PEAK,
	STATS_DISK_READ,
	STATS_DISK_WRITE,
	STATS_DISK,
	STATS_OUT,
	STATS_IN,
	STATS_N_FIGURES,
};

struct stats_row {
	uint64_t seq;
	int64_t wall_ms, guest_ns;
	int64_t cpu_permille; /* of one CPU, since the sample before or since something began to run */
	int64_t figures[STATS_N_FIGURES];
};

void stats_text_add_heading(struct str *out, const struct view_style *style);
void stats_text_add_row(struct str *out, const struct stats_row *row);

#endif
