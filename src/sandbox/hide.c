/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/hide.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"
#include "util/str.h"

#define PATTERN_MAX 1024

void hide_list_done(struct hide_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct hide_list){0};
}

bool hide_matches(const char *pattern, const char *path, bool is_folder)
{
	const char *name = strrchr(path, '/');
	char text[PATTERN_MAX];
	size_t len = strlen(pattern);

	if (len == 0 || len >= sizeof(text))
		return false;
	memcpy(text, pattern, len + 1);
	if (text[len - 1] == '/') {
		if (!is_folder)
			return false;
		text[len - 1] = '\0';
	}
	pattern = text;
	if (strncmp(pattern, "**/", 3) == 0)
		pattern += 3;
	name = name ? name + 1 : path;
	if (!strchr(pattern, '/'))
		return fnmatch(pattern, name, 0) == 0;
	if (pattern == text)
		return fnmatch(pattern + (*pattern == '/'), path, FNM_PATHNAME) == 0;
	for (const char *at = path; at; at = strchr(at, '/'), at = at ? at + 1 : NULL)
		if (fnmatch(pattern, at, FNM_PATHNAME) == 0)
			return true;
	return false;
}

struct walk {
	const struct spec_words *patterns;
	struct hide_list *list;
	struct str path;
	dev_t dev;
};

static bool is_hidden(const struct walk *walk, bool is_folder)
{
	for (size_t i = 0; i < walk->patterns->n; i++)
		if (hide_matches(walk->patterns->items[i], walk->path.p, is_folder))
			return true;
	return false;
}

static void add_found(struct walk *walk, bool is_folder)
{
	struct hide_list *list = walk->list;

	if (list->n >= HIDE_MAX_FOUND) {
		list->is_cut = true;
		return;
	}
	list->items = mem_grow(list->items, list->n + 1, sizeof(*list->items));
	list->items[list->n++] =
		(struct hide_found){.path = mem_dup(walk->path.p), .is_folder = is_folder};
}

static bool is_big_and_dull(const char *name)
{
	return strcmp(name, ".git") == 0 || strcmp(name, "node_modules") == 0;
}

static void walk_folder(struct walk *walk, int dirfd, size_t depth);

static void walk_entry(struct walk *walk, int dirfd, const struct dirent *entry, size_t depth)
{
	bool is_folder = entry->d_type == DT_DIR;
	struct stat st;

	if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
		/* A link is hidden as what it leads to. */
		if (fstatat(dirfd, entry->d_name, &st, 0) < 0)
			return;
		is_folder = S_ISDIR(st.st_mode);
	}
	if (is_hidden(walk, is_folder)) {
		add_found(walk, is_folder);
		return;
	}
	if (entry->d_type == DT_LNK || !is_folder || is_big_and_dull(entry->d_name))
		return;
	if (depth + 1 >= HIDE_MAX_DEPTH) {
		walk->list->is_cut = true;
		return;
	}
	walk_folder(walk,
		openat(dirfd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
		depth + 1);
}

/* Takes dirfd over. */
static void walk_folder(struct walk *walk, int dirfd, size_t depth)
{
	size_t len = walk->path.len;
	struct dirent *entry;
	struct stat st;
	DIR *dir = dirfd < 0 ? NULL : fdopendir(dirfd);

	if (!dir) {
		walk->list->is_cut = walk->list->is_cut || errno != ENOENT;
		scoped_close(&dirfd);
		return;
	}
	if (fstat(dirfd, &st) < 0 || st.st_dev != walk->dev) {
		(void)closedir(dir);
		return;
	}
	while (!walk->list->is_cut && (errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (++walk->list->n_seen > HIDE_MAX_ENTRIES)
			walk->list->is_cut = true;
		if (len > 0)
			str_putc(&walk->path, '/');
		str_puts(&walk->path, entry->d_name);
		walk_entry(walk, dirfd, entry, depth);
		walk->path.len = len;
		walk->path.p[len] = '\0';
	}
	walk->list->is_cut = walk->list->is_cut || errno;
	(void)closedir(dir);
}

void hide_find(const char *folder, const struct spec_words *patterns, struct hide_list *ret_list)
{
	struct walk walk = {.patterns = patterns, .list = ret_list};
	struct stat st;
	int fd;

	*ret_list = (struct hide_list){0};
	if (patterns->n == 0)
		return;
	fd = path_open_judged(folder, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		ret_list->is_cut = fd != -ENOTDIR && fd != -ENOENT;
		scoped_close(&fd);
		return;
	}
	walk.dev = st.st_dev;
	walk_folder(&walk, fd, 0);
	str_done(&walk.path);
}
