/* SPDX-License-Identifier: Apache-2.0 */
#include "util/program.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* "name" in one of the places, which are relative to the folder of the running program. */
static int find(const char *name, const char *const *places, size_t n_places, int access_mode,
	struct str *ret_path, struct err *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return err_set(err, -errno, "read /proc/self/exe: %m");
	self[n] = '\0';
	slash = strrchr(self, '/');
	slash[1] = '\0';
	for (size_t i = 0; i < n_places; i++) {
		str_reset(ret_path);
		str_printf(ret_path, "%s%s%s", self, places[i], name);
		if (access(ret_path->p, access_mode) == 0)
			return 0;
	}
	return err_set(
		err, -ENOENT, "'%s' is missing beside '%s': install Cloche again", name, self);
}

int program_find(const char *name, struct str *ret_path, struct err *err)
{
	static const char *const places[] = {"", "../libexec/cloche/", "../lib/cloche/"};
	int r = find(name, places, sizeof(places) / sizeof(places[0]), X_OK, ret_path, err);

	return r == -ENOENT ? err_wrap(err, r, "program") : r;
}

int program_find_data(const char *name, struct str *ret_path, struct err *err)
{
	static const char *const places[] = {"../share/cloche/", "share/"};

	return find(name, places, sizeof(places) / sizeof(places[0]), R_OK, ret_path, err);
}
