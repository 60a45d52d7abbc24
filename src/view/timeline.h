/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, in one order: commands, changes to files, refusals, the sandbox's life, gaps.
 *
 * What repeats in one exec (a file written again, a call refused again) is one row at its first time, with a
 * count. Memory goes by distinct rows. */
#ifndef VIEW_TIMELINE_H
#define VIEW_TIMELINE_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/view_filter.h"
#include "view/view_text.h"

struct timeline;

struct timeline *timeline_new(const struct view_filter *filter);
void timeline_free(struct timeline *timeline);
SCOPED_TYPE(timeline)

void timeline_add(struct timeline *timeline, const struct event *ev);

/* `timeline --json`. */
void timeline_json(struct timeline *timeline, struct str *out);
void timeline_text(struct timeline *timeline, const struct view_style *style, struct str *out);

#endif
