/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/end_changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "manifest/change_set.h"
#include "manifest/changes.h"
#include "manifest/changes_json.h"
#include "manifest/changes_rw.h"
#include "manifest/discard.h"
#include "supervisor/rw_before.h"
#include "util/aside.h"
#include "util/mem.h"
#include "util/scoped.h"

static bool is_settled(const struct changes_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->roots[i]->cow && (list->roots[i]->n_items > 0 || list->roots[i]->unread))
			return false;
	return true;
}

int end_changes_put(struct record *record, const char *changes_dir,
	const struct changes_rw_options *rw, bool *ret_is_settled, struct err *err)
{
	scoped(change_set) struct change_set *set = NULL;
	struct changes_list list = {0};
	scoped_str struct str text = {0};
	int r = change_set_open(changes_dir, &set, err);

	*ret_is_settled = false;
	if (r < 0)
		return r;
	r = changes_read_all(set, &list, err);
	if (r == 0) {
		changes_rw_read_all(set, rw, &list);
		changes_json_write(&text, &list);
		(void)changes_keep_seen(
			set, &list); /* without it, a later touch shows as a change */
		r = record_put_changes(record, str_slice(&text));
		*ret_is_settled = (r == 0 || r == -EEXIST) && is_settled(&list);
		if (r < 0)
			r = err_set(err, r, "keep the list of changes: %m");
	}
	changes_list_done(&list);
	return r;
}

void end_changes_save(struct supervisor *sup)
{
	const struct changes_rw_options rw = {.full = sup->spec->full, .seen = rw_before_seen(sup)};
	struct event ev = {.kind = EVENT_SANDBOX_ERROR};
	struct err err = {0};

	if (end_changes_put(sup->record, sup->changes_dir, &rw, &sup->is_settled, &err) == 0)
		return;
	(void)err_wrap(&err, 0, "what was changed is not known");
	event_set_text(&ev, reason, err.msg);
	recorder_emit_now(sup->recorder, &ev);
}

void end_changes_drop(const char *state_dir, const char *id)
{
	scoped_mem char *from = mem_printf("%s/changes/%s", state_dir, id);
	scoped_mem char *to = mem_printf("%s/sandboxes/%s/changes", state_dir, id);
	scoped_mem char *trash = mem_printf("%s/trash", state_dir);
	scoped_mem char *name = mem_printf("%s.changes", id);

	if (rename(from, to) < 0)
		(void)aside_remove(trash, from, name,
			CHANGE_SET_LAST); /* else the next discard takes it away */
}

void end_changes_drop_settled(const char *state_dir, const char *id)
{
	scoped_mem char *dir = mem_printf("%s/changes/%s", state_dir, id);
	scoped_mem char *trash = mem_printf("%s/trash", state_dir);
	scoped_fd int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped(change_set) struct change_set *set = NULL;
	struct err ignored; /* what stays, a discard takes away */
	int r;

	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
		return;
	r = change_set_open(dir, &set, &ignored);
	if (r == -ENOENT)
		end_changes_drop(state_dir, id); /* killed before a command could start */
	else if (r == 0)
		(void)discard_empty_set(set, trash, &ignored);
}
