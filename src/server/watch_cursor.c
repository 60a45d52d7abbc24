/* SPDX-License-Identifier: Apache-2.0 */
#include "server/watch_cursor.h"

#include <stdlib.h>

#include "util/mem.h"
#include "view/exec_log.h"

struct watch_cursor {
	struct reader *reader;
	struct exec_log *log; /* rows are made of two events */
	int64_t seq, n_rows;  /* read so far */
	bool has_events;
};

int watch_cursor_open(const char *dir, bool has_events, struct watch_cursor **ret, struct err *err)
{
	scoped(watch_cursor) struct watch_cursor *cursor = new0(struct watch_cursor);
	int r = reader_open(dir, &cursor->reader, err);

	if (r < 0)
		return r;
	cursor->log = exec_log_new(&(struct view_filter){.noise = true});
	cursor->has_events = has_events;
	*ret = take(&cursor);
	return 0;
}

void watch_cursor_free(struct watch_cursor *cursor)
{
	if (!cursor)
		return;
	reader_free(cursor->reader);
	exec_log_free(cursor->log);
	free(cursor);
}

static void add_event(struct str *out, const char *name, char kind, int64_t id, struct slice data)
{
	str_printf(out, "event: %s\nid: %c%lld\ndata: ", name, kind, (long long)id);
	str_add(out, data.p, data.len);
	str_puts(out, "\n\n");
}

bool watch_cursor_is_behind(const struct watch_cursor *cursor, const struct watch_from *from)
{
	return cursor->n_rows >= from->row && cursor->seq >= from->seq;
}

/* Behind a row means behind the event that ended its exec. */
static void take_event(struct watch_cursor *cursor, const struct event *ev,
	const struct watch_from *from, struct str *out)
{
	scoped_str struct str row = {0};
	bool is_known = cursor->n_rows < from->row || (int64_t)ev->seq <= from->seq;
	bool is_row = exec_log_next_json(cursor->log, ev, &row);

	cursor->seq = (int64_t)ev->seq;
	cursor->n_rows += is_row;
	if (is_known)
		return;
	if (cursor->has_events)
		add_event(out, "trace", 's', cursor->seq, reader_line(cursor->reader));
	if (is_row)
		add_event(out, "row", cursor->has_events ? 's' : 'r',
			cursor->has_events ? cursor->seq : cursor->n_rows, str_slice(&row));
}

int watch_cursor_read(
	struct watch_cursor *cursor, const struct watch_from *from, int max, struct str *out)
{
	const struct event *ev;
	int r = 1;

	for (int i = 0; i < max && r == 1; i++) {
		r = reader_next(cursor->reader, &ev, NULL);
		if (r == 1)
			take_event(cursor, ev, from, out);
	}
	return r;
}

int64_t watch_cursor_seq(const struct watch_cursor *cursor)
{
	return cursor->seq;
}

bool watch_cursor_has_ended(const struct watch_cursor *cursor)
{
	return reader_has_ended(cursor->reader);
}
