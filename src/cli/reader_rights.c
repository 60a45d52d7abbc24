/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reader_rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int keep_reading(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	data[0].permitted = data[0].effective = 1u << CAP_DAC_READ_SEARCH;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int reader_rights_keep(uid_t uid, struct err *err)
{
	int r;

	if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setgroups(0, NULL) < 0 ||
		setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_set(err, -errno, "become uid %u: %m", uid);
	r = keep_reading();
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "give up rights: %m") : 0;
}
