/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/api.h"
#include "server/watch_stream.h"
#include "util/mem.h"

/* "r17": behind the 17th row; "s9031": behind the event with that seq. */
static int read_last_id(const struct call *call, struct watch_stream_ask *ask, struct err *err)
{
	struct slice id = {0};
	scoped_mem char *text = NULL;
	char *end;
	long long n;
	int r = call_field(call, "Last-Event-ID", &id, err);

	if (r < 0 || !id.p || id.len == 0)
		return r;
	text = mem_copy(id.p, id.len);
	errno = 0;
	n = strtoll(text + 1, &end, 10);
	if ((text[0] != 'r' && text[0] != 's') || text[1] < '0' || text[1] > '9' || *end || errno)
		return err_set(err, -EINVAL, "Last-Event-ID: want an id of this stream");
	if (text[0] == 'r')
		ask->from.row = n;
	else
		ask->from.seq = n;
	return 0;
}

int api_watch(struct call *call, struct err *err)
{
	static const char *const names[] = {"events", "follow", NULL};
	struct watch_stream_ask *ask = new0(struct watch_stream_ask);
	scoped_mem char *dir = NULL;
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	if (r == 0)
		r = call_check_query(call, names, err);
	if (r == 0)
		r = call_query_bool(call, "events", &ask->has_events, err);
	ask->follows = true;
	if (r == 0)
		r = call_query_bool(call, "follow", &ask->follows, err);
	if (r == 0)
		r = read_last_id(call, ask, err);
	if (r == 0) {
		memcpy(ask->sandbox, id, ID_SIZE);
		dir = mem_printf("%s/records/%s", call->server->state_dir, id);
		r = watch_cursor_open(dir, ask->has_events, &ask->cursor, err);
	}
	if (r < 0) {
		free(ask);
		return r;
	}
	call->state = ask;
	call->then = watch_stream_run;
	return 0;
}
