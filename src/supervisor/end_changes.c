/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/end_changes.h"

#include "manifest/change_set.h"
#include "manifest/changes.h"
#include "manifest/changes_json.h"
#include "manifest/changes_rw.h"
#include "supervisor/rw_before.h"

int end_changes_put(struct record *record, const char *changes_dir,
	const struct changes_rw_options *rw, struct err *err)
{
	scoped(change_set) struct change_set *set = NULL;
	struct changes_list list = {0};
	scoped_str struct str text = {0};
	int r = change_set_open(changes_dir, &set, err);

	if (r < 0)
		return r;
	r = changes_read_all(set, &list, err);
	if (r == 0) {
		changes_rw_read_all(set, rw, &list);
		changes_json_write(&text, &list);
		(void)changes_keep_seen(
			set, &list); /* without it, a later touch shows as a change */
		r = record_put_changes(record, str_slice(&text));
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

	if (end_changes_put(sup->record, sup->changes_dir, &rw, &err) == 0)
		return;
	(void)err_wrap(&err, 0, "what was changed is not known");
	event_set_text(&ev, reason, err.msg);
	recorder_emit_now(sup->recorder, &ev);
}
