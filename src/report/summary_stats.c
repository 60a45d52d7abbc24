/* SPDX-License-Identifier: Apache-2.0 */
/* What the run used: one line, and the member "stats". */
#include "report/summary_internal.h"
#include "util/jsonw.h"

void summary_stats_line(const struct summary *summary, struct summary_lines *lines)
{
	struct str *out = summary_lines_add(lines, SUMMARY_PLAIN, "Used");

	if (summary->stats.samples == 0)
		str_puts(out, "not measured");
	else
		stats_totals_text(&summary->stats, out);
}

void summary_stats_json(const struct summary *summary, struct jsonw *j)
{
	jsonw_key(j, "stats");
	jsonw_object(j);
	jsonw_kbool(j, "watched", summary->stats.samples > 0);
	if (summary->stats.samples == 0)
		jsonw_ktext(
			j, "reason", "nothing ran, or it ran with a version that did not measure");
	else
		stats_totals_json(&summary->stats, j);
	jsonw_object_end(j);
}
