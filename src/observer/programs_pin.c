/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observer/programs_internal.h"

int programs_pin_path(const struct programs *p, const char *name, char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/%s", p->dir, name);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int programs_pin_get(const struct programs *p, const char *name)
{
	char path[PATH_MAX];
	int r = programs_pin_path(p, name, path);

	return r < 0 ? r : bpf_obj_get(path);
}

int programs_pin_put(const struct programs *p, const char *name, int fd, struct err *err)
{
	char path[PATH_MAX];
	int r = programs_pin_path(p, name, path);

	if (r == 0)
		r = bpf_obj_pin(fd, path);
	return r < 0 ? err_set(err, r, "pin '%s' in %s: %m", name, p->dir) : 0;
}

void programs_pin_remove(const struct programs *p, const char *name)
{
	char path[PATH_MAX];

	if (programs_pin_path(p, name, path) == 0)
		(void)unlink(path); /* it may never have been there */
}

void programs_pin_remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0); /* "." and ".." stay */
	if (d)
		closedir(d);
	(void)rmdir(dir); /* fails where a pin could not go; the next one in tries again */
}
