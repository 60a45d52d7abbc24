/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "util/scoped.h"

#define PROGRAM_MAX (16 << 20)
#define SEALS       (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int sealed_load(int program_fd, const char *name, mode_t mode, struct err *err)
{
	scoped_fd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	off_t at = 0;
	struct stat st;

	if (fd < 0 || fstat(program_fd, &st) < 0)
		return err_set(err, -errno, "load the program '%s': %m", name);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > PROGRAM_MAX)
		return err_set(err, -EINVAL, "'%s' is no program", name);
	while (at < st.st_size) {
		ssize_t n = sendfile(fd, program_fd, &at, (size_t)(st.st_size - at));

		if (n <= 0)
			return err_set(
				err, n < 0 ? -errno : -EIO, "load the program '%s': %m", name);
	}
	if (fchmod(fd, mode) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return err_set(err, -errno, "seal the program '%s': %m", name);
	return take_fd(&fd);
}
