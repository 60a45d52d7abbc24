/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in a sandbox's files, as it changes. */
#include <errno.h>
#include <string.h>

#include "server/api.h"
#include "server/file_watch.h"
#include "util/mem.h"
#include "util/path.h"

static int read_last_id(const struct call *call, struct file_watch_ask *ask, struct err *err)
{
	struct slice id = {0};
	int r = call_field(call, "Last-Event-ID", &id, err);

	if (r < 0 || !id.p || id.len == 0)
		return r;
	ask->has_at = true;
	return file_watch_read_id(id, &ask->at, err);
}

int api_files_watch(struct call *call, struct err *err)
{
	static const char *const names[] = {"path", "path_b64", NULL};
	scoped(file_watch_ask) struct file_watch_ask *ask = new0(struct file_watch_ask);
	scoped_str struct str path = {0};
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	if (r == 0)
		r = call_check_query(call, names, err);
	if (r == 0)
		r = api_files_path(call, &path, err);
	if (r == 0)
		r = read_last_id(call, ask, err);
	if (r < 0)
		return r;
	memcpy(ask->sandbox, id, ID_SIZE);
	path_resolve(slice_of("/"), str_slice(&path), &ask->path);
	call->state = take(&ask);
	call->then = file_watch_run;
	return 0;
}
