/* SPDX-License-Identifier: Apache-2.0 */
/* One event as one line for people. */
#ifndef CLI_EVENT_LINE_H
#define CLI_EVENT_LINE_H

#include "event/event.h"
#include "util/str.h"
#include "view/view_text.h"

/* Time of day (UTC), pid, kind, what happened. Escaped, cut to the style's width. */
void event_line_add(struct str *out, const struct event *ev, const struct view_style *style);

#endif
