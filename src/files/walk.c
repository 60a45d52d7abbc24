/* SPDX-License-Identifier: Apache-2.0 */
#include "files/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/target.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/str.h"

struct state {
	const struct walk *walk;
	struct str path;
	size_t n;
	int depth;
	bool has_left_out;
};

const char *walk_end_name(enum walk_end end)
{
	static const char *const names[] = {[WALK_DONE] = NULL,
		[WALK_STOPPED] = "limit",
		[WALK_ENTRIES] = "entries",
		[WALK_TIME] = "time",
		[WALK_DEPTH] = "depth"};

	return names[end];
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **walk_names(int fd, size_t max, size_t *ret_n, bool *ret_has_more)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	char **names = NULL;
	size_t n = 0, room = 0;

	*ret_has_more = false;
	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		*ret_has_more = n == max;
		if (n == max)
			break;
		if (n == room) {
			room = room ? 2 * room : 64;
			names = mem_grow(names, room, sizeof(*names));
		}
		names[n++] = mem_dup(entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	else
		(void)close(fd);
	if (n > 1)
		qsort(names, n, sizeof(*names), by_bytes);
	*ret_n = n;
	return names;
}

static enum walk_end enter(struct state *state, int fd);

static enum walk_end go_down(struct state *state, const struct walk_entry *entry)
{
	const struct walk *walk = state->walk;
	struct stat st;
	enum walk_end end;
	int fd;

	if (walk->is_wanted && !walk->is_wanted(walk->ctx, entry->path))
		return WALK_DONE;
	if (state->depth == WALK_DEPTH_MAX) {
		state->has_left_out = true;
		return WALK_DONE;
	}
	fd = openat(entry->dirfd, entry->name,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || target_is_kernels(fd, &st)) {
		if (fd >= 0)
			(void)close(fd);
		return WALK_DONE; /* it is gone, or not ours */
	}
	state->depth++;
	end = enter(state, fd);
	state->depth--;
	return end;
}

static enum walk_end visit(struct state *state, int dirfd, const char *name)
{
	struct walk_entry entry = {.dirfd = dirfd, .name = name};
	size_t before = state->path.len;
	enum walk_end end = WALK_DONE;
	struct stat st;

	if (++state->n > WALK_ENTRIES_MAX)
		return WALK_ENTRIES;
	if (state->n % 64 == 0 && clock_mono_ns() > state->walk->deadline_ns)
		return WALK_TIME;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return WALK_DONE; /* it is gone */
	if (before > 0)
		str_putc(&state->path, '/');
	str_puts(&state->path, name);
	entry.type = IFTODT(st.st_mode);
	entry.path = str_slice(&state->path);
	if (!state->walk->on_entry(state->walk->ctx, &entry))
		end = WALK_STOPPED;
	else if (entry.type == DT_DIR)
		end = go_down(state, &entry);
	state->path.len = before;
	return end;
}

static enum walk_end enter(struct state *state, int fd)
{
	int dirfd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	enum walk_end end = WALK_DONE;
	bool has_more;
	size_t n;
	char **names = walk_names(fd, WALK_ENTRIES_MAX, &n, &has_more);

	for (size_t i = 0; i < n; i++) {
		if (end == WALK_DONE)
			end = visit(state, dirfd, names[i]);
		free(names[i]);
	}
	free(names);
	(void)close(dirfd);
	return end == WALK_DONE && has_more ? WALK_ENTRIES : end;
}

enum walk_end walk_folder(const struct walk *walk, int fd)
{
	struct state state = {.walk = walk};
	enum walk_end end = enter(&state, fd);

	str_done(&state.path);
	return end == WALK_DONE && state.has_left_out ? WALK_DEPTH : end;
}
