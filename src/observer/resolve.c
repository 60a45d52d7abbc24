/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

#define CACHE_MAX    4096                   /* folders */
#define COARSE_NS    (20 * CLOCK_NS_PER_MS) /* how far a file's times may lag behind the clock */
#define FD_LINK_SIZE 32

struct resolve {
	int root_fd;
	struct map *plain;  /* folder as written to where it is: char *; no link in it */
	struct map *linked; /* the same, with links */
	struct str joined, lexical;
};

struct resolve *resolve_new(int root_fd)
{
	struct resolve *r = new0(struct resolve);

	r->root_fd = root_fd;
	r->plain = map_new();
	r->linked = map_new();
	return r;
}

static void free_values(struct map *map)
{
	struct slice key;
	void *value;
	size_t i = 0;

	while (map_next(map, &i, &key, &value))
		free(value);
	map_free(map);
}

static void empty(struct map **map)
{
	if (map_len(*map) == 0)
		return;
	free_values(*map);
	*map = map_new();
}

void resolve_free(struct resolve *r)
{
	if (!r)
		return;
	free_values(r->plain);
	free_values(r->linked);
	str_done(&r->joined);
	str_done(&r->lexical);
	free(r);
}

void resolve_links_changed(struct resolve *r)
{
	empty(&r->plain);
	empty(&r->linked);
}

void resolve_name_removed(struct resolve *r)
{
	empty(&r->linked);
}

static int open_in_root(const struct resolve *r, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (r->root_fd < 0)
		return -EBADF;
	fd = syscall(SYS_openat2, r->root_fd, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* Where a descriptor is, as its mount namespace's root sees it. */
static int name_of(int fd, char path[PATH_MAX])
{
	char link[FD_LINK_SIZE];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n <= 0 || n >= PATH_MAX - 1 || path[0] != '/')
		return -ENOENT;
	path[n] = '\0';
	if (slice_ends((struct slice){.p = path, .len = (size_t)n}, " (deleted)"))
		return -ENOENT;
	return 0;
}

/* A name that is not the one asked for comes of a link, or of a move between opening and naming: a second look
 * tells them apart. */
static bool is_still(const struct resolve *r, const char *path, int flags, const char *found)
{
	scoped_fd int fd = open_in_root(r, path, flags);
	char again[PATH_MAX];

	return fd >= 0 && name_of(fd, again) == 0 && strcmp(again, found) == 0;
}

/* Follows all links of a path; false where it is not there. */
static bool follow(const struct resolve *r, const char *path, int flags, char found[PATH_MAX])
{
	scoped_fd int fd = open_in_root(r, path, flags);

	if (fd < 0 || name_of(fd, found) < 0)
		return false;
	return strcmp(found, path) == 0 || is_still(r, path, flags, found);
}

/* The place of a folder, from the cache or by looking. The text is the cache's. */
static const char *folder_of(struct resolve *r, const char *dir)
{
	struct slice key = slice_of(dir);
	char found[PATH_MAX];
	char *place = map_find(r->plain, key);
	struct map *map;

	if (!place)
		place = map_find(r->linked, key);
	if (place)
		return place;
	if (map_len(r->plain) + map_len(r->linked) >= CACHE_MAX)
		resolve_links_changed(r);
	path_resolve(slice_of("/"), key, &r->lexical);
	map = r->plain;
	if (!follow(r, dir, O_DIRECTORY, found)) {
		place = mem_dup(r->lexical.p);
	} else {
		place = mem_dup(found);
		if (!slice_is(str_slice(&r->lexical), found))
			map = r->linked;
	}
	*map_slot(map, key) = place;
	return place;
}

/* Process folders are another for each process, so what lies behind them cannot be told from here. */
static bool is_of_process(struct slice path)
{
	static const char *const rests[] = {"self/", "thread-self/"};
	size_t n_digits = 0;

	if (!slice_starts(path, "/proc/"))
		return false;
	path.p += 6;
	path.len -= 6;
	for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++)
		if (slice_starts(path, rests[i]))
			return true;
	while (n_digits < path.len && path.p[n_digits] >= '0' && path.p[n_digits] <= '9')
		n_digits++;
	return n_digits > 0 && n_digits < path.len && path.p[n_digits] == '/';
}

/* Splits off the last part: its start, or 0 where the whole path is to be followed as a folder ("..", "."). */
static size_t last_part(const char *path, size_t len)
{
	size_t start = len;

	while (start > 0 && path[start - 1] != '/')
		start--;
	if (start == len || slice_is(slice_of(path + start), ".") ||
		slice_is(slice_of(path + start), ".."))
		return 0;
	return start;
}

static void join(struct resolve *r, const struct decode_name *name)
{
	bool absolute = name->text.len > 0 && name->text.p[0] == '/';
	struct str *s = &r->joined;

	str_reset(s);
	if (!absolute) {
		str_add(s, name->base.p, name->base.len);
		if (name->text.len > 0)
			str_putc(s, '/');
	}
	str_add(s, name->text.p, name->text.len);
	while (s->len > 1 && s->p[s->len - 1] == '/')
		s->p[--s->len] = '\0';
}

bool resolve_name(struct resolve *r, const struct decode_name *name, struct str *out)
{
	bool absolute = name->text.len > 0 && name->text.p[0] == '/';
	char found[PATH_MAX];
	const char *folder;
	size_t last;

	str_reset(out);
	join(r, name);
	if ((name->cut && !absolute) || r->joined.len == 0 ||
		is_of_process(str_slice(&r->joined))) {
		str_add(out, r->joined.p, r->joined.len);
		return false;
	}
	if (name->follow && follow(r, r->joined.p, 0, found)) {
		str_puts(out, found);
		return true;
	}
	last = last_part(r->joined.p, r->joined.len);
	if (last == 0) {
		str_puts(out, folder_of(r, r->joined.p));
		return true;
	}
	r->joined.p[last - 1] = '\0';
	folder = folder_of(r, last == 1 ? "/" : r->joined.p);
	str_puts(out, folder);
	if (folder[1] != '\0')
		str_putc(out, '/');
	str_puts(out, r->joined.p + last);
	return true;
}

enum resolve_sight resolve_look(
	const struct resolve *r, struct slice path, int64_t since_mono_ns, bool sure)
{
	scoped_mem char *copy = mem_copy(path.p, path.len);
	scoped_fd int fd = open_in_root(r, copy, O_NOFOLLOW);
	struct timespec now;
	struct stat st;
	int64_t since;

	if (r->root_fd < 0)
		return RESOLVE_UNSEEN;
	if (fd < 0 || fstat(fd, &st) < 0)
		return RESOLVE_ABSENT;
	clock_gettime(CLOCK_REALTIME, &now);
	since = clock_ns(now) - (clock_mono_ns() - since_mono_ns);
	if (!sure)
		since -= COARSE_NS;
	return clock_ns(st.st_ctim) >= since ? RESOLVE_NEWER : RESOLVE_OLDER;
}
