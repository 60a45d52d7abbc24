/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/called_as.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/event.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "view/view_text.h"

#define NAME "cloche"

/* Whether a shell that is given the bare name starts that file: the first one in PATH counts. */
static bool is_in_path(const struct stat *program)
{
	const char *path = getenv("PATH");
	struct stat st;

	while (path && *path) {
		size_t len = strcspn(path, ":");
		scoped_mem char *file = mem_printf("%.*s/" NAME, (int)len, path);

		if (len > 0 && access(file, X_OK) == 0 && stat(file, &st) == 0)
			return st.st_dev == program->st_dev && st.st_ino == program->st_ino;
		path += len + (path[len] == ':');
	}
	return false;
}

void called_as_add(const struct cli *cli, bool as_root, struct str *out)
{
	struct slice program = slice_of(cli->program ? cli->program : NAME);
	const struct event_list argv = {.items = &program, .n = 1};
	struct stat st;

	if (as_root && geteuid() == 0 && getenv("SUDO_UID"))
		str_puts(out, "sudo ");
	if (!memchr(program.p, '/', program.len) || stat(program.p, &st) < 0 || is_in_path(&st))
		str_puts(out, NAME);
	else
		view_text_add_argv(out, &argv);
}
