/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/mount_unseen.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/str.h"

#define STATUS_MAX 8192

struct entry {
	struct mount_unseen_open open;
	char *path;
	bool is_told, is_closed, is_written;
};

struct mount_unseen {
	struct entry list[MOUNT_UNSEEN_MAX];
	size_t n;
	char *path; /* of the event given out last */
	struct mount_unseen_open last;
};

struct mount_unseen *mount_unseen_new(void)
{
	return new0(struct mount_unseen);
}

void mount_unseen_free(struct mount_unseen *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->n; i++)
		free(u->list[i].path);
	free(u->path);
	free(u);
}

static void remove_at(struct mount_unseen *u, size_t i)
{
	free(u->list[i].path);
	u->list[i] = u->list[--u->n];
}

/* A place that is told already and only waits for its close is the first to go. */
static bool make_room(struct mount_unseen *u)
{
	for (size_t i = 0; u->n == MOUNT_UNSEEN_MAX && i < u->n; i++)
		if (u->list[i].is_told)
			remove_at(u, i);
	return u->n < MOUNT_UNSEEN_MAX;
}

bool mount_unseen_add(
	struct mount_unseen *u, const struct mount_unseen_open *open, struct slice path)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->list[i].open.inode == open->inode &&
			u->list[i].open.host_pid == open->host_pid && !u->list[i].is_closed)
			return true;
	if (!make_room(u))
		return false;
	u->list[u->n++] = (struct entry){.open = *open, .path = mem_copy(path.p, path.len)};
	return true;
}

bool mount_unseen_settle(struct mount_unseen *u, uint64_t inode, pid_t host_pid)
{
	bool is_closed = false;

	for (size_t i = u->n; i-- > 0;) {
		const struct entry *entry = &u->list[i];

		if (entry->open.inode != inode || entry->open.host_pid != host_pid ||
			entry->is_told)
			continue;
		is_closed |= entry->is_closed;
		remove_at(u, i);
	}
	return is_closed;
}

void mount_unseen_closed(struct mount_unseen *u, uint64_t inode, bool written)
{
	for (size_t i = 0; i < u->n; i++) {
		if (u->list[i].open.inode != inode || u->list[i].is_closed)
			continue;
		u->list[i].is_closed = true;
		u->list[i].is_written = written;
		return;
	}
}

static void make_event(
	struct mount_unseen *u, const struct entry *entry, enum event_kind kind, struct event *ev)
{
	free(u->path);
	u->path = mem_dup(entry->path);
	u->last = entry->open;
	*ev = (struct event){.kind = kind,
		.guest_ns = entry->open.guest_ns,
		.pid = entry->open.pid,
		.task = entry->open.pid,
		.internal = entry->open.internal,
		.exec = slice_of(u->last.exec)};
	event_set_text(ev, path, u->path);
	event_set_text(ev, access, entry->is_written ? "write" : "read");
	event_set(ev, witness, true);
	if (entry->open.entered)
		event_set(ev, entered, true);
}

bool mount_unseen_waits(const struct mount_unseen *u)
{
	for (size_t i = 0; i < u->n; i++)
		if (!u->list[i].is_told)
			return true;
	return false;
}

bool mount_unseen_next(struct mount_unseen *u, int64_t now_ns, struct event *ret_ev)
{
	for (size_t i = 0; i < u->n; i++) {
		struct entry *entry = &u->list[i];

		if (!entry->is_told && now_ns - entry->open.guest_ns >= MOUNT_UNSEEN_NS) {
			entry->is_told = true;
			make_event(u, entry, EVENT_MOUNT_OPEN, ret_ev);
			return true;
		}
		if (entry->is_told && entry->is_closed) {
			make_event(u, entry, EVENT_MOUNT_CLOSE, ret_ev);
			remove_at(u, i);
			return true;
		}
	}
	return false;
}

int64_t mount_unseen_pid(pid_t host_pid)
{
	scoped_mem char *path = mem_printf("/proc/%d/status", host_pid);
	scoped_str struct str text = {0};
	const char *line, *last;
	long long pid = 0;

	if (fdio_read_file(AT_FDCWD, path, STATUS_MAX, &text) < 0 || !text.p)
		return 0;
	line = strstr(text.p, "\nNSpid:");
	if (!line)
		return 0;
	line += strlen("\nNSpid:\t");
	last = line + strcspn(line, "\n");
	while (last > line && last[-1] != '\t')
		last--;
	if (last == line) /* one number: the host's */
		return 0;
	return sscanf(last, "%lld", &pid) == 1 ? pid : 0;
}
