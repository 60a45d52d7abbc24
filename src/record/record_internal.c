/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/scoped.h"

bool record_internal_has_readers(uid_t uid, gid_t gid)
{
	return uid == 0 && gid != 0;
}

int record_internal_create(int dirfd, const char *name, int flags, uid_t uid, gid_t gid)
{
	scoped_fd int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600);

	if (fd < 0)
		return -errno;
	if ((uid != geteuid() || gid != getegid()) && fchown(fd, uid, gid) < 0)
		return -errno;
	if (record_internal_has_readers(uid, gid) && fchmod(fd, 0640) < 0)
		return -errno;
	return take_fd(&fd);
}

int record_internal_open(int dirfd, const char *name, int flags, struct stat *ret_st)
{
	scoped_fd int fd =
		openat(dirfd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return -EINVAL;
	if (ret_st)
		*ret_st = st;
	return take_fd(&fd);
}

int record_internal_folder(int dirfd, const char *name, uid_t uid, gid_t gid)
{
	if (mkdirat(dirfd, name, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (fchownat(dirfd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (record_internal_has_readers(uid, gid) && fchmodat(dirfd, name, 0750, 0) < 0)
		return -errno;
	return 0;
}

int record_internal_lock(int log_fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(log_fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

bool record_internal_is_name(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > RECORD_ID_MAX || name[0] == '.')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
	       len;
}

void record_internal_init(struct record *record)
{
	record_journal_init(&record->log, record->dirfd, "log", record->id);
	record_journal_init(&record->trace, record->dirfd, "trace", record->id);
	record->log.meta_sha256 = record->meta_sha256;
	record->blobs.fd = -1;
	record->log.uid = record->trace.uid = record->uid;
	record->log.gid = record->trace.gid = record->gid;
}
