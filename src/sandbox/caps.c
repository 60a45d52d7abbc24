/* SPDX-License-Identifier: Apache-2.0 */
/* Not among them, for a reason: SETFCAP, because through a mount whose owner is the host's root a file
 * capability would count outside; SYS_ADMIN, with which mounts could be undone; NET_ADMIN and NET_RAW, the
 * gateway's; SYS_PTRACE, which tracing one's own programs does not need; MKNOD, which would only fail later. */
#include "sandbox/caps.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "sandbox/rawcall.h"

#define LAST_CAP 40 /* CAP_CHECKPOINT_RESTORE; numbers beyond it end the loop with EINVAL */
#define CAP_ROOM 63

#define BIT(cap) (UINT64_C(1) << (cap))

static const uint64_t kept = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
                             BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) |
                             BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT);

static int bound(uint64_t keep)
{
	for (int cap = 0; cap <= CAP_ROOM; cap++) {
		long r = 0;

		if (!(keep & BIT(cap)))
			r = rawcall(__NR_prctl, PR_CAPBSET_DROP, cap);
		if (r < 0)
			return cap > LAST_CAP ? 0 : (int)r; /* EINVAL: the kernel knows no more */
	}
	return 0;
}

int caps_bound(void)
{
	return bound(kept);
}

int caps_drop_bounding(void)
{
	return bound(0);
}

int caps_keep(uint64_t keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	int r = bound(keep);

	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].permitted = (uint32_t)(keep >> (32 * i));
	return r < 0 ? r : (int)rawcall(__NR_capset, &head, data);
}

int caps_drop_all(void)
{
	return caps_keep(0);
}
