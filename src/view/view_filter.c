/* SPDX-License-Identifier: Apache-2.0 */
#include "view/view_filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/path.h"

#define DAY_MS 86400000LL

static int64_t position(const struct event *ev, enum view_bound_kind kind)
{
	switch (kind) {
	case VIEW_BOUND_WALL:
		return ev->wall_ms;
	case VIEW_BOUND_GUEST:
		return ev->guest_ns;
	case VIEW_BOUND_SEQ:
		return (int64_t)ev->seq;
	case VIEW_BOUND_NONE:
		break;
	}
	return 0;
}

static bool is_within(const struct view_filter *filter, const struct event *ev)
{
	const struct view_bound *since = &filter->since, *until = &filter->until;

	if (since->kind != VIEW_BOUND_NONE && position(ev, since->kind) < since->value)
		return false;
	return until->kind == VIEW_BOUND_NONE || position(ev, until->kind) <= until->value;
}

bool view_filter_takes(const struct view_filter *filter, const struct event *ev)
{
	bool is_loss = ev->kind == EVENT_TRACE_DROPPED || ev->kind == EVENT_TRACE_BLIND;

	if (ev->internal && !filter->internal)
		return false;
	if (!is_within(filter, ev))
		return false;
	if (filter->exec.len == 0 || (is_loss && ev->exec.len == 0))
		return true;
	return slice_eq(ev->exec, filter->exec);
}

/* Then it is nobody's inside: a peer, or a process of the host that opened a file through the sandbox's mount. */
static bool is_from_outside(const struct event *ev)
{
	return ev->kind == EVENT_NET_ACCEPT || (event_has(ev, witness) && event_has(ev, entered));
}

bool view_filter_lacks_process(const struct event *ev)
{
	return ev->kind <= EVENT_SECRET_MISUSE && ev->pid == 0 && !is_from_outside(ev);
}

bool view_filter_is_kernel_path(struct slice path)
{
	if (path_is_beneath(path, slice_of("/dev/shm")) ||
		path_is_beneath(path, slice_of("/dev/mqueue")))
		return false;
	return path_is_beneath(path, slice_of("/proc")) ||
	       path_is_beneath(path, slice_of("/sys")) || path_is_beneath(path, slice_of("/dev"));
}

static struct slice last_part(struct slice path)
{
	size_t at = path.len;

	while (at > 0 && path.p[at - 1] != '/')
		at--;
	return (struct slice){.p = path.p + at, .len = path.len - at};
}

/* libm.so, libm.so.6, libm.so.6.0.1, but not notes.so.txt */
static bool is_shared_object(struct slice name)
{
	size_t end = name.len;

	while (end > 0 &&
		(name.p[end - 1] == '.' || (name.p[end - 1] >= '0' && name.p[end - 1] <= '9')))
		end--;
	return end > 3 && memcmp(name.p + end - 3, ".so", 3) == 0 &&
	       (end == name.len || name.p[end] == '.');
}

bool view_filter_is_library(struct slice path)
{
	static const char *const folders[] = {
		"/usr/lib/locale", "/usr/share/locale", "/usr/share/i18n"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (path_is_beneath(path, slice_of(folders[i])))
			return true;
	return slice_is(path, "/etc/ld.so.cache") || slice_ends(path, "/gconv-modules.cache") ||
	       is_shared_object(last_part(path));
}

/* "14:10" or "14:10:02": ms since midnight. */
static int parse_clock(const char *text, int64_t *ret_ms)
{
	unsigned h, m, s = 0;
	int used = 0;

	if (sscanf(text, "%2u:%2u%n", &h, &m, &used) != 2)
		return -EINVAL;
	if (text[used] == ':') {
		int more = 0;

		if (sscanf(text + used, ":%2u%n", &s, &more) != 1)
			return -EINVAL;
		used += more;
	}
	if (text[used] == 'Z')
		used++;
	if (text[used] || h > 23 || m > 59 || s > 60)
		return -EINVAL;
	*ret_ms = ((int64_t)h * 3600 + m * 60 + s) * 1000;
	return 0;
}

static int64_t on_a_day(int64_t of_day_ms, int64_t start_ms, int64_t end_ms)
{
	int64_t at = end_ms - end_ms % DAY_MS + of_day_ms;

	return at > end_ms && at - DAY_MS >= start_ms ? at - DAY_MS : at;
}

static bool is_number(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n < 19 && text[n] == 0;
}

int view_filter_parse_bound(const char *text, int64_t start_ms, int64_t end_ms,
	struct view_bound *ret_bound, struct err *err)
{
	struct view_bound bound = {.kind = VIEW_BOUND_WALL};
	int64_t ms;

	if (is_number(text)) {
		bound = (struct view_bound){VIEW_BOUND_SEQ, strtoll(text, NULL, 10)};
	} else if (text[0] == '+' && clock_parse_duration(text + 1, &ms) == 0 &&
		   ms < INT64_MAX / CLOCK_NS_PER_MS) {
		bound = (struct view_bound){VIEW_BOUND_GUEST, ms * CLOCK_NS_PER_MS};
	} else if (clock_parse_duration(text, &ms) == 0) {
		bound.value = end_ms - ms;
	} else if (parse_clock(text, &ms) == 0) {
		bound.value = on_a_day(ms, start_ms, end_ms);
	} else if (clock_parse(text, &ms) == 0) {
		bound.value = ms;
	} else {
		return err_set(err, -EINVAL,
			"'%s': want a time (14:10, 2026-11-29T14:10:02Z), a duration (5m, +5m) or "
			"the "
			"number of an event",
			text);
	}
	*ret_bound = bound;
	return 0;
}
