/* SPDX-License-Identifier: Apache-2.0 */
/* What a file.open asked for and got. */
#ifndef VIEW_FILE_ACCESS_H
#define VIEW_FILE_ACCESS_H

#include "event/event.h"

static inline bool file_access_reads(const struct event *ev)
{
	return slice_is(ev->access, "read") || slice_is(ev->access, "read_write");
}

static inline bool file_access_writes(const struct event *ev)
{
	return slice_is(ev->access, "write") || slice_is(ev->access, "read_write");
}

/* Opened so that its content is, or may be, other than before. */
static inline bool file_access_changes(const struct event *ev)
{
	return file_access_writes(ev) || (event_has(ev, truncate) && ev->truncate);
}

static inline bool file_access_made(const struct event *ev)
{
	return event_has(ev, created) && ev->created;
}

/* The path names a file that lies in no folder: a pipe, a socket, memory. */
static inline bool file_access_is_nowhere(const struct event *ev)
{
	return slice_is(ev->path_state, "memory");
}

#endif
