/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/removal.h"

#include <errno.h>
#include <sys/stat.h>

#include "cli/pending.h"
#include "launcher/ledger.h"
#include "manifest/change_set.h"
#include "record/record.h"
#include "util/aside.h"
#include "util/mem.h"

/* name: of its own, in the trash. */
static int remove_tree(const struct cli *cli, const char *path, const char *name, const char *last,
	struct err *err)
{
	scoped_mem char *trash = mem_printf("%s/trash", cli->state_dir);
	int r = aside_remove(trash, path, name, last);

	return r < 0 ? err_set(err, r, "remove '%s': %m", path) : 0;
}

/* An apply that has read a set would take its files' end for their removal. */
int removal_changes(const struct cli *cli, const char *id, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/changes/%s", cli->state_dir, id);
	scoped_mem char *name = mem_printf("%s.changes", id);
	scoped_fd int lock = -1;
	int r = pending_lock(path, &lock, err);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : remove_tree(cli, path, name, CHANGE_SET_LAST, err);
}

/* Who, what, whose, and where the record stood: before it goes. */
static int enter_tombstone(
	const struct cli *cli, const char *id, const char *act, const char *detail, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/records/%s", cli->state_dir, id);
	char head[LEDGER_HEAD_SIZE] = "";
	struct ledger_line line = {.act = act,
		.sandbox = id,
		.actor = cli->actor,
		.owner = cli->uid,
		.detail = detail};
	struct stat st;

	if (lstat(path, &st) == 0)
		line.owner = st.st_uid;
	if (ledger_find_head(cli->state_dir, id, head, &line.seq, err) == 0)
		line.head = head;
	return ledger_append(cli->state_dir, &line, err);
}

int removal_bodies(const struct cli *cli, const char *id, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/records/%s/bodies", cli->state_dir, id);
	scoped_mem char *name = mem_printf("%s.bodies", id);
	int r = enter_tombstone(cli, id, "remove-bodies", "bodies removed", err);

	return r < 0 ? r : remove_tree(cli, path, name, NULL, err);
}

int removal_record(const struct cli *cli, const char *id, bool is_aged, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/records/%s", cli->state_dir, id);
	scoped_mem char *name = mem_printf("%s.record", id);
	int r = enter_tombstone(
		cli, id, LEDGER_REMOVE, is_aged ? LEDGER_AGED : "record removed", err);

	return r < 0 ? r : remove_tree(cli, path, name, RECORD_LAST, err);
}
