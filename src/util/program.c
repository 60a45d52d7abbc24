/* SPDX-License-Identifier: Apache-2.0 */
#include "util/program.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

int program_find(const char *name, struct str *ret_path, struct err *err)
{
	static const char *const places[] = {"", "../libexec/cloche/", "../lib/cloche/"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return err_set(err, -errno, "read /proc/self/exe: %m");
	self[n] = '\0';
	slash = strrchr(self, '/');
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		str_reset(ret_path);
		str_printf(ret_path, "%s%s%s", self, places[i], name);
		if (access(ret_path->p, X_OK) == 0)
			return 0;
	}
	return err_set(err, -ENOENT, "program '%s' is missing beside '%s': install Cloche again",
		name, self);
}
