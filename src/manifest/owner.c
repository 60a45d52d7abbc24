/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/owner.h"

#include <errno.h>
#include <sys/fsuid.h>
#include <unistd.h>

void owner_leave(void)
{
	int kept = errno;

	setfsuid(geteuid());
	setfsgid(getegid());
	errno = kept;
}

int owner_become(uid_t uid, gid_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
	/* Both say nothing when they fail; an id that is none reads them back. */
	if ((uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid)
		return 0;
	owner_leave();
	return -EPERM;
}
