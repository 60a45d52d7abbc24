/* SPDX-License-Identifier: Apache-2.0 */
#include "view/mount_event.h"

static bool has_source(const struct event *ev, const char *name)
{
	for (size_t i = 0; i < ev->sources.n; i++)
		if (slice_is(ev->sources.items[i], name))
			return true;
	return false;
}

static enum event_kind kind_of_file(const struct event *ev)
{
	switch ((int)ev->kind) {
	case EVENT_MOUNT_CREATE:
		return event_has(ev, target) ? EVENT_FILE_LINK : EVENT_FILE_OPEN;
	case EVENT_MOUNT_MKDIR:
		return EVENT_DIR_CREATE;
	case EVENT_MOUNT_RENAME:
		return EVENT_FILE_RENAME;
	case EVENT_MOUNT_DELETE:
		return EVENT_FILE_DELETE;
	case EVENT_MOUNT_TRUNCATE:
		return EVENT_FILE_TRUNCATE;
	default:
		return EVENT_FILE_OPEN;
	}
}

const struct event *mount_event_take(struct mount_event *state, const struct event *ev)
{
	if (ev->kind == EVENT_TRACE_STARTED)
		state->has_files = has_source(ev, "files");
	if (ev->kind < EVENT_MOUNT_OPEN || ev->kind > EVENT_MOUNT_TRUNCATE ||
		ev->kind == EVENT_MOUNT_CLOSE)
		return ev;
	if (state->has_files && !event_has(ev, witness))
		return NULL;
	state->turned = *ev;
	state->turned.kind = kind_of_file(ev);
	return &state->turned;
}
