/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that events fold into (docs/views.md), by the names that routes and requests have for them. */
#ifndef SERVER_TRACE_SHAPES_H
#define SERVER_TRACE_SHAPES_H

#include "util/str.h"
#include "view/view_filter.h"

struct trace_shape {
	const char *name;
	unsigned
		sources; /* SPEC_TRACE_*: where none of these is traced, it has nothing to tell; 0: it always has */
	void *(*new)(const struct view_filter *filter); /* what filter borrows must outlive it */
	void (*free)(void *view);
	void (*add)(void *view, const struct event *ev); /* all events of the record, in order */
	void (*json)(void *view, struct str *out);       /* adds a list */
};

#define TRACE_SHAPES_N 5
extern const struct trace_shape trace_shapes[TRACE_SHAPES_N];

/* NULL where none has that name. */
const struct trace_shape *trace_shapes_find(const char *name);

#endif
