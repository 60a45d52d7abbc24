/* SPDX-License-Identifier: Apache-2.0 */
#include "util/aside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define NAMES_MAX 100 /* tried for one folder */

static int make_trash(const char *trash)
{
	return mkdir(trash, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* By a folder that is not empty, or by what is none. */
static bool is_taken(int r)
{
	return r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR || r == -EISDIR;
}

int aside_move(const char *trash, const char *dir, const char *name, char **ret_path)
{
	int r = -EEXIST;

	for (unsigned i = 0; is_taken(r) && i < NAMES_MAX; i++) {
		scoped_mem char *to = i == 0 ? mem_printf("%s/%s", trash, name)
		                             : mem_printf("%s/%s.%u", trash, name, i);

		r = make_trash(trash);
		if (r == 0)
			r = rename(dir, to) < 0 ? -errno : 0;
		if (r == 0 && ret_path)
			*ret_path = take(&to);
	}
	return r;
}

bool aside_is_hindered(int r)
{
	return r == -EXDEV || r == -ENOSPC || r == -EDQUOT || r == -EMLINK;
}

/* Goes on with the next where one cannot be removed. */
static int remove_entries(const char *path, const char *but)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	int r = 0;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		int one;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			strcmp(e->d_name, but) == 0)
			continue;
		one = path_remove_all(dirfd(dir), e->d_name);
		if (one < 0)
			r = one;
	}
	closedir(dir);
	return r;
}

int aside_remove_here(const char *dir, const char *last)
{
	int r = last ? remove_entries(dir, last) : 0;

	return r < 0 ? r : path_remove_all(AT_FDCWD, dir);
}

int aside_remove(const char *trash, const char *dir, const char *name, const char *last)
{
	scoped_mem char *path = NULL;
	int r = aside_move(trash, dir, name, &path);

	if (r == -ENOENT)
		return 0;
	if (aside_is_hindered(r))
		return aside_remove_here(dir, last);
	if (r == 0)
		(void)path_remove_all(AT_FDCWD, path); /* what stays goes with the trash */
	return r;
}

int aside_empty(const char *trash)
{
	return remove_entries(trash, "");
}
