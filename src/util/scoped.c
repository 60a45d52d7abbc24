/* SPDX-License-Identifier: Apache-2.0 */
#include "util/scoped.h"

#include <errno.h>
#include <unistd.h>

void scoped_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}
