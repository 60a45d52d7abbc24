/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a record a view shows. Every view is given one of these and ALL events of the record: it needs
 * what came before to place what it shows, and leaves out the rest itself. A zeroed one shows everything but
 * noise and our own plumbing. */
#ifndef VIEW_VIEW_FILTER_H
#define VIEW_VIEW_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "util/err.h"

enum view_bound_kind {
	VIEW_BOUND_NONE,
	VIEW_BOUND_WALL,  /* value: wall clock, ms since 1970 */
	VIEW_BOUND_GUEST, /* value: ns since the sandbox started */
	VIEW_BOUND_SEQ,   /* value: number of an event */
};

struct view_bound {
	enum view_bound_kind kind;
	int64_t value;
};

struct view_filter {
	bool noise;    /* show /proc, /sys, /dev and libraries that were only read, too */
	bool internal; /* show our own plumbing, too */
	struct slice
		exec; /* only this exec; empty: all. Borrowed: must outlive whoever was given the filter */
	struct view_bound since, until; /* both ends belong to what is shown */
};

/* Whether the event lies within exec, since and until, and is no plumbing of ours. A loss that names no
 * exec concerns every exec. Noise is not looked at: it depends on all that happened to a path. */
bool view_filter_takes(const struct view_filter *filter, const struct event *ev);

/* Whether it should name a process and does not, so that it may be anybody's. */
bool view_filter_lacks_process(const struct event *ev);

/* /proc, /sys, /dev (but not shared memory and queues, which hold data). */
bool view_filter_is_kernel_path(struct slice path);
/* Shared libraries, the loader's cache, locale data: noise where they were only read. */
bool view_filter_is_library(struct slice path);

/* Reads what stands behind --since or --until:
 *   2026-11-29T14:10:02Z, 2026-11-29, 14:10, 14:10:02   clock time, UTC; without a date: on the record's
 *                                                      last day, or the day before where only that is in it
 *   90s, 5m, 2h, 1d, 250ms                             that long before end_ms (now, or the record's end)
 *   +90s                                               that long after the sandbox started
 *   1234                                               the event with that seq
 * -EINVAL with a sentence otherwise. */
int view_filter_parse_bound(const char *text, int64_t start_ms, int64_t end_ms,
	struct view_bound *ret_bound, struct err *err);

#endif
