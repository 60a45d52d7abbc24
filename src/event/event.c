/* SPDX-License-Identifier: Apache-2.0 */
#include "event/event.h"

#include <errno.h>
#include <string.h>

#define TYPED_KIND(symbol, name) [EVENT_##symbol] = (name),
static const char *const kind_names[EVENT_N_KINDS] = {EVENT_KINDS(TYPED_KIND)};
#undef TYPED_KIND

#define INFO(json, member, kind) \
	[EVENT_F_##member] = {#json, EVENT_TYPE_##kind, offsetof(struct event, member)},
const struct event_field_info event_field_table[EVENT_N_FIELDS] = {EVENT_FIELDS(INFO)};
#undef INFO

const char *event_kind_name(enum event_kind kind)
{
	return kind_names[kind];
}

int event_kind_find(struct slice name, enum event_kind *ret_kind)
{
	for (int i = 0; i < EVENT_N_KINDS; i++) {
		if (!slice_is(name, kind_names[i]))
			continue;
		*ret_kind = (enum event_kind)i;
		return 0;
	}
	return -ENOENT;
}

bool event_kind_is_log(enum event_kind kind)
{
	return (kind >= EVENT_EXEC_START && kind <= EVENT_SANDBOX_ERROR &&
		       kind != EVENT_SANDBOX_REFUSED) ||
	       kind == EVENT_TRACE_CLEARED;
}

const char *event_errno_name(int positive_errno)
{
	const char *name = strerrorname_np(positive_errno);

	return name ? name : "E?";
}

int event_errno_find(struct slice name)
{
	for (int e = 1; e < 134; e++) {
		const char *known = strerrorname_np(e);

		if (known && slice_is(name, known))
			return e;
	}
	return 0;
}
