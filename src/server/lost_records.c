/* SPDX-License-Identifier: Apache-2.0 */
#include "server/lost_records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/launcher_ask.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define PAGE 1000

struct lost {
	char id[ID_SIZE], account[64];
};

struct lost_list {
	struct server *server;
	struct lost items[PAGE];
	size_t n;
	int64_t last_n; /* of the sandbox that was told last */
};

static bool is_there(const struct server *server, const char *id)
{
	scoped_mem char *path = mem_printf("%s/records/%s", server->state_dir, id);
	struct stat st;

	return lstat(path, &st) == 0 || errno != ENOENT;
}

static int take_lost(const struct store_sandbox *sandbox, void *arg)
{
	struct lost_list *list = arg;
	struct lost *lost = &list->items[list->n];

	list->last_n = sandbox->n;
	if (strcmp(sandbox->place, list->server->host) != 0 || is_there(list->server, sandbox->id))
		return 0;
	snprintf(lost->id, sizeof(lost->id), "%s", sandbox->id);
	snprintf(lost->account, sizeof(lost->account), "%s", sandbox->account);
	list->n++;
	return 0;
}

int lost_records_forget(struct call *as, const char *sandbox, const char *why, struct err *err)
{
	int r = store_sandbox_forget(
		as->server->store, as->caller.account, sandbox, why, clock_wall_ms(), err);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : launcher_ask_audit(as, "record.removed", sandbox, sandbox, why, err);
}

/* What the ledger says of its removal. */
static int forget_removed(
	struct server *server, const struct lost *lost, const json_t *removal, struct err *err)
{
	const char *actor = json_string_value(json_object_get(removal, "actor"));
	const char *why = json_string_value(json_object_get(removal, "detail"));
	struct call as = {.server = server};

	memcpy(as.caller.account, lost->account, sizeof(as.caller.account));
	snprintf(as.caller.actor, sizeof(as.caller.actor), "%s", actor ? actor : "unknown");
	return lost_records_forget(&as, lost->id, why ? why : "record removed", err);
}

static int settle(struct server *server, const struct lost_list *list, struct lost_counts *counts,
	struct err *err)
{
	const char *ids[PAGE];
	json_t *removed = NULL;
	int r = 0;

	for (size_t i = 0; i < list->n; i++)
		ids[i] = list->items[i].id;
	if (list->n > 0)
		r = launcher_ask_removed(server, ids, list->n, &removed, err);
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const struct lost *lost = &list->items[i];
		const json_t *removal = json_object_get(removed, lost->id);

		if (removal) {
			r = forget_removed(server, lost, removal, err);
			counts->forgotten += r == 0;
			continue;
		}
		counts->missing++;
		log_warn("the record of %s is not there, and the ledger does not say that it was "
			 "removed: its rows stay (see `cloche verify --all`)",
			lost->id);
	}
	json_decref(removed);
	return r;
}

int lost_records_look(struct server *server, const char *sandbox, struct err *err)
{
	struct lost_list *list = new0(struct lost_list);
	struct lost_counts counts = {0};
	int r;

	list->server = server;
	r = store_sandbox_find(server->store, sandbox, take_lost, list, err);
	if (r == 0)
		r = settle(server, list, &counts, err);
	free(list);
	return r == -ENOENT ? 0 : r;
}

int lost_records_sweep(struct server *server, struct lost_counts *counts, struct err *err)
{
	struct lost_list *list = new0(struct lost_list);
	int n, r;

	list->server = server;
	do {
		list->n = 0;
		r = n = store_sandbox_of_place(
			server->store, server->host, list->last_n, PAGE, take_lost, list, err);
		if (r > 0)
			r = settle(server, list, counts, err);
	} while (n == PAGE && r == 0);
	free(list);
	return r < 0 ? r : 0;
}
