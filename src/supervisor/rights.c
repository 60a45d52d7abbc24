/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_ROOM 63

#define BIT(cap) (UINT64_C(1) << (cap))

static const uint64_t running =
	BIT(CAP_SYS_ADMIN) | /* entering the sandbox's namespaces, unmounting, the marks of overlays */
	BIT(CAP_SYS_CHROOT) | /* entering its mount namespace */
	BIT(CAP_SYS_PTRACE) | /* looking at its processes in /proc */
	BIT(CAP_KILL) |       /* ending them: their ids are not ours */
	BIT(CAP_CHOWN) | /* a terminal belongs to who uses it, a change set to who applies it */
	BIT(CAP_DAC_OVERRIDE) |    /* its layers are its ids' */
	BIT(CAP_DAC_READ_SEARCH) | /* the same, and files by handle */
	BIT(CAP_FOWNER) |          /* the same, for their modes */
	BIT(CAP_FSETID) |          /* and these as they are */
	BIT(CAP_BPF) |             /* the observer's programs and maps */
	BIT(CAP_PERFMON) |         /* reading kernel memory in them */
	BIT(CAP_SYS_RESOURCE) | /* the space kept back for root: a record's last lines on a full disk */
	BIT(CAP_SYS_NICE);      /* the reader of the ring goes first */

/* The gateway is started, and after its death started again, when the network is used: it becomes another user then. It
 * inherits what else it takes, for its first moment, from the list above: SYS_ADMIN, to enter the namespace. */
static const uint64_t running_network = BIT(CAP_SETUID) | BIT(CAP_SETGID);

static const uint64_t creating =
	BIT(CAP_SETUID) | BIT(CAP_SETGID) | /* the maps of its user namespace; its first process */
	BIT(CAP_SETPCAP) |                  /* giving up rights for good, here and in it */
	BIT(CAP_SETFCAP) |                  /* mapping the host's 0 in a mount's ids */
	BIT(CAP_MKNOD) |                    /* its /dev */
	BIT(CAP_NET_ADMIN) | /* its network: addresses, routes, programs that catch what leaves it */
	BIT(CAP_NET_BIND_SERVICE) | /* published ports below 1024 */
	BIT(CAP_NET_RAW);           /* the sockets by which a held connection goes on */

static int set(uint64_t keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		uint32_t half = (uint32_t)(keep >> (32 * i));

		data[i].permitted &= half;
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/* An exec would give root back all of the bounding set. */
static int bound(uint64_t keep)
{
	for (int cap = 0; cap <= CAP_ROOM; cap++)
		if (!(keep & BIT(cap)) && prctl(PR_CAPBSET_READ, cap) == 1 &&
			prctl(PR_CAPBSET_DROP, cap) < 0)
			return -errno;
	return 0;
}

int rights_keep(enum rights_phase phase, struct err *err)
{
	uint64_t keep = running;
	int r;

	if (phase == RIGHTS_CREATING)
		keep |= creating;
	else if (phase == RIGHTS_RUNNING_NETWORK)
		keep |= running_network;
	r = bound(keep);
	if (r == 0)
		r = set(keep);
	return r < 0 ? err_set(err, r, "give up rights: %m") : 0;
}
