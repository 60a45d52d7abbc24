/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "image/unpack_internal.h"
#include "sandbox/idrange.h"

#define CAPABILITY "security.capability"

int unpack_owner_check(struct unpack *u, struct archive_entry *entry, struct err *err)
{
	const long long uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);

	if (uid >= 0 && uid < IDRANGE_LEN && gid >= 0 && gid < IDRANGE_LEN)
		return 0;
	if (u->limits->any_owner) {
		u->n_strangers++;
		archive_entry_set_uid(entry, 0);
		archive_entry_set_gid(entry, 0);
		return 0;
	}
	return err_set(err, -ERANGE,
		"it belongs to %lld:%lld, and a sandbox has the ids 0 to %u: have the image made "
		"with "
		"such owners",
		uid, gid, IDRANGE_LEN - 1);
}

struct timespec unpack_owner_time(struct archive_entry *entry)
{
	return (struct timespec){
		.tv_sec = archive_entry_mtime(entry), .tv_nsec = archive_entry_mtime_nsec(entry)};
}

/* The kernel keeps it for the root of our namespace, which it is told by the form without an id. */
static int set_capability(int fd, const void *value, size_t len)
{
	struct vfs_cap_data plain;
	uint32_t magic;

	if (len < sizeof(plain))
		return -EINVAL;
	memcpy(&plain, value, sizeof(plain));
	magic = plain.magic_etc;
	if ((magic & VFS_CAP_REVISION_MASK) == VFS_CAP_REVISION_3)
		plain.magic_etc = VFS_CAP_REVISION_2 | (magic & VFS_CAP_FLAGS_MASK);
	return fsetxattr(fd, CAPABILITY, &plain, sizeof(plain), 0) < 0 ? -errno : 0;
}

/* One that cannot be kept is no reason to have no image: it is counted. */
static void set_xattrs(struct unpack *u, struct archive_entry *entry, int fd)
{
	const char *name;
	const void *value;
	size_t len;

	(void)archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &len) == ARCHIVE_OK) {
		int r = -EPERM;

		if (name && strcmp(name, CAPABILITY) == 0)
			r = set_capability(fd, value, len);
		else if (name && strncmp(name, "user.", strlen("user.")) == 0)
			r = fsetxattr(fd, name, value, len, 0) < 0 ? -errno : 0;
		if (r < 0)
			u->n_xattrs++;
	}
}

/* In this order: a change of owner takes set-id bits and capabilities away. */
int unpack_owner_set(struct unpack *u, struct archive_entry *entry, int fd, struct err *err)
{
	const struct timespec times[] = {unpack_owner_time(entry), unpack_owner_time(entry)};

	if (fchown(fd, (uid_t)archive_entry_uid(entry), (gid_t)archive_entry_gid(entry)) < 0 ||
		fchmod(fd, archive_entry_perm(entry) & 07777) < 0)
		return err_set(err, -errno, "set its owner and mode: %m");
	set_xattrs(u, entry, fd);
	if (futimens(fd, times) < 0)
		return err_set(err, -errno, "set its time: %m");
	return 0;
}
