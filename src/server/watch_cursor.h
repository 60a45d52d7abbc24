/* SPDX-License-Identifier: Apache-2.0 */
/* A place in a record, and what stands behind it as server-sent events: see watch_stream.h for what they are. */
#ifndef SERVER_WATCH_CURSOR_H
#define SERVER_WATCH_CURSOR_H

#include "record/reader.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/str.h"

struct watch_cursor;

/* Behind which row or seq events are told; those up to it are only read. */
struct watch_from {
	int64_t row, seq;
};

/* At the begin of the record in dir. has_events: every event is told, and not only rows. */
int watch_cursor_open(const char *dir, bool has_events, struct watch_cursor **ret, struct err *err);
void watch_cursor_free(struct watch_cursor *cursor);
SCOPED_TYPE(watch_cursor)

/* Reads on, at most max events. 1: there may be more at once; 0: no more for now; negative: no more ever. */
int watch_cursor_read(
	struct watch_cursor *cursor, const struct watch_from *from, int max, struct str *out);
int64_t watch_cursor_seq(const struct watch_cursor *cursor); /* of the last event read */
/* Whether what comes next is behind from. */
bool watch_cursor_is_behind(const struct watch_cursor *cursor, const struct watch_from *from);
/* After 0: nothing more will come. */
bool watch_cursor_has_ended(const struct watch_cursor *cursor);

#endif
