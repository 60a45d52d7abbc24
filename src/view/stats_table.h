/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox used over time: a row for each sample. With an exec in the filter, those while it ran. */
#ifndef VIEW_STATS_TABLE_H
#define VIEW_STATS_TABLE_H

#include "util/scoped.h"
#include "view/stats_totals.h"
#include "view/view_filter.h"
#include "view/view_text.h"

struct stats_table;

struct stats_table *stats_table_new(const struct view_filter *filter);
void stats_table_free(struct stats_table *table);
SCOPED_TYPE(stats_table)

void stats_table_add(struct stats_table *table, const struct event *ev);

/* `stats --json`: a list. */
void stats_table_json(struct stats_table *table, struct str *out);
/* A heading, a line for each sample, and what was used in all. */
void stats_table_text(struct stats_table *table, const struct view_style *style, struct str *out);

/* For a caller that prints rows as they come and holds none: where the event is a sample that is asked for, writes it
 * (one JSON object, or a line) and returns true. Of several sandboxes, is_one_of: objects name theirs; lines have no
 * heading before the first. */
bool stats_table_next_json(
	struct stats_table *table, const struct event *ev, bool is_one_of, struct str *out);
bool stats_table_next_text(struct stats_table *table, const struct event *ev, bool is_one_of,
	const struct view_style *style, struct str *out);

#endif
