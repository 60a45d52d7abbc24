/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/file_program.h"

#include <errno.h>
#include <fcntl.h>

#include "sandbox/sealed.h"
#include "util/program.h"
#include "util/scoped.h"
#include "util/str.h"

#define MODE_RUN_ONLY 0111

int file_program_open(struct err *err)
{
	scoped_str struct str path = {0};
	scoped_fd int fd = -1;
	int r = program_find("cloche-files", &path, err);

	if (r < 0)
		return r;
	fd = open(path.p, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "open '%s': %m", path.p);
	return sealed_load(fd, "cloche-files", MODE_RUN_ONLY, err);
}
