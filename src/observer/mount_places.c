/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/mount_places.h"

#include <errno.h>
#include <stdlib.h>

#include "util/mem.h"
#include "util/path.h"

struct mount_places {
	struct {
		char *guest;
		bool is_internal;
	} * list;
	size_t n;
};

struct mount_places *mount_places_new(const struct mount_place *places, size_t n)
{
	struct mount_places *p = new0(struct mount_places);

	p->list = mem_grow(NULL, n + 1, sizeof(*p->list));
	p->n = n;
	for (size_t i = 0; i < n; i++) {
		p->list[i].guest = mem_dup(places[i].guest);
		p->list[i].is_internal = places[i].is_internal;
	}
	return p;
}

void mount_places_free(struct mount_places *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		free(p->list[i].guest);
	free(p->list);
	free(p);
}

bool mount_places_has(const struct mount_places *p, struct slice path)
{
	size_t longest = 0;
	bool has = false;

	for (size_t i = 0; i < p->n; i++) {
		struct slice guest = slice_of(p->list[i].guest);

		if (guest.len < longest || !path_is_beneath(path, guest))
			continue;
		longest = guest.len;
		has = !p->list[i].is_internal;
	}
	return has;
}

/* A name that was not there is no activity on the mount. */
static bool is_miss(const struct event *ev)
{
	return event_has(ev, result) && (ev->result == ENOENT || ev->result == ENOTDIR);
}

static bool is_on_mount(const struct mount_places *p, const struct event *ev)
{
	if (ev->kind == EVENT_FILE_RENAME)
		return mount_places_has(p, ev->from) || mount_places_has(p, ev->to);
	return event_has(ev, path) && mount_places_has(p, ev->path);
}

static bool find_kind(const struct event *ev, enum event_kind *ret_kind)
{
	switch ((int)ev->kind) {
	case EVENT_FILE_OPEN:
		*ret_kind = event_has(ev, created) ? EVENT_MOUNT_CREATE : EVENT_MOUNT_OPEN;
		return !slice_is(ev->access, "path") && !slice_is(ev->path_state, "memory");
	case EVENT_FILE_LINK:
		*ret_kind = EVENT_MOUNT_CREATE;
		return true;
	case EVENT_DIR_CREATE:
		*ret_kind = EVENT_MOUNT_MKDIR;
		return true;
	case EVENT_FILE_RENAME:
		*ret_kind = EVENT_MOUNT_RENAME;
		return true;
	case EVENT_FILE_DELETE:
		*ret_kind = EVENT_MOUNT_DELETE;
		return true;
	case EVENT_FILE_TRUNCATE:
		*ret_kind = EVENT_MOUNT_TRUNCATE;
		return true;
	default:
		return false;
	}
}

bool mount_places_turn(const struct mount_places *p, struct event *ev)
{
	enum event_kind kind;

	if (is_miss(ev) || !find_kind(ev, &kind) || !is_on_mount(p, ev))
		return false;
	ev->kind = kind;
	return true;
}
