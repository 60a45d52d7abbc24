/* SPDX-License-Identifier: Apache-2.0 */
/* The exec log: a row for each exec that ended. One that has a start and no end (it failed inside Cloche, or
 * still runs) is no row; what was cut off is one, with interrupted. */
#ifndef VIEW_EXEC_LOG_H
#define VIEW_EXEC_LOG_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/view_filter.h"
#include "view/view_text.h"

struct exec_log;

struct exec_log *exec_log_new(const struct view_filter *filter);
void exec_log_free(struct exec_log *log);
SCOPED_TYPE(exec_log)

void exec_log_add(struct exec_log *log, const struct event *ev);

/* `log --json`: a list, in order of ending. */
void exec_log_json(struct exec_log *log, struct str *out);
/* A line for each row, then one for each exec without an end. */
void exec_log_text(struct exec_log *log, const struct view_style *style, struct str *out);

/* For a caller that prints rows as they come and holds none: adds the event, and where a row that the
 * filter takes came of it, writes that (one JSON object, or one line) to out and returns true. Both leave
 * exec_log_json() and exec_log_text() without it. */
bool exec_log_next_json(struct exec_log *log, const struct event *ev, struct str *out);
bool exec_log_next_text(struct exec_log *log, const struct event *ev,
	const struct view_style *style, struct str *out);

#endif
