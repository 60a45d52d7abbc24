/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/at_rest.h"

#include <errno.h>
#include <unistd.h>

#include "cli/freeze.h"
#include "cli/records.h"
#include "control/client.h"
#include "launcher/launch.h"
#include "launcher/mend.h"
#include "util/mem.h"

bool at_rest_is(const struct cli *cli, const char *id)
{
	scoped_mem char *path = mem_printf("%s/sandboxes/%s/" REST_NAME, cli->state_dir, id);

	return access(path, F_OK) == 0;
}

static bool is_alive(const struct cli *cli, const char *id)
{
	scoped(client) struct client *client = NULL;

	return client_connect(cli->state_dir, id, &client, NULL) == 0;
}

static int refuse(const struct cli *cli, const char *id, struct err *err)
{
	if (is_alive(cli, id))
		return err_set(err, -EINVAL,
			"sandbox %s is running already; for a fork of it, `cloche suspend %s` "
			"first, which ends its processes and keeps its files",
			id, id);
	return err_set(err, -EINVAL,
		"sandbox %s has ended and kept no files: it was neither suspended nor made with "
		"--keep",
		id);
}

static int find(const struct cli *cli, const char *name, struct at_rest *at, struct err *err)
{
	scoped(reader) struct reader *reader = NULL;
	int r = cli_need_root(err);

	if (r == 0)
		r = records_resolve(cli, name, at->id, err);
	return r < 0 ? r : records_open(cli, at->id, &reader, err); /* refuses another user's */
}

int at_rest_open(const struct cli *cli, const char *name, struct at_rest *at, struct err *err)
{
	int r;

	*at = (struct at_rest){.lock_fd = -1, .changes_fd = -1};
	r = find(cli, name, at, err);
	if (r < 0)
		return r;
	if (!at_rest_is(cli, at->id))
		return refuse(cli, at->id, err);
	r = mend_sandbox(cli->state_dir, cli->run_dir, at->id, err);
	if (r >= 0)
		r = at->lock_fd = launch_lock(cli->state_dir, at->id, err);
	if (r < 0) /* another was faster, and may have removed it */
		return r == -ENOENT || is_alive(cli, at->id) ? refuse(cli, at->id, err) : r;
	at->dir = mem_printf("%s/sandboxes/%s", cli->state_dir, at->id);
	r = rest_read(at->dir, &at->rest, err);
	if (r == -ENOENT || (r == 0 && at->rest->is_wanted_gone))
		return refuse(cli, at->id, err); /* another was faster */
	return r < 0 ? r : freeze_settle(cli, at, err);
}

void at_rest_done(struct at_rest *at)
{
	scoped_close(&at->changes_fd);
	scoped_close(&at->lock_fd);
	rest_free(at->rest);
	free(at->dir);
	*at = (struct at_rest){.lock_fd = -1, .changes_fd = -1};
}
