/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/gauge.h"
#include "util/mem.h"
#include "util/scoped.h"

#define MARK  "project" /* in the sandbox's folder: the first file of its project */
#define UPPER "root.upper"
#define BLOCK 1024 /* of limits (QIF_DQBLKSIZE) */
#define BYTES_PER_FILE \
	4096 /* files are limited, too, or empty ones would fill the disk's table of them */
#define FILES_MIN 1024
#define SLACK     (64 << 10) /* of what a filesystem keeps back before it says no */

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443 /* the same on all machines */
#endif

static int control(int fd, unsigned command, uint32_t id, void *data)
{
	return syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), id, data) < 0 ? -errno : 0;
}

static int set_limit(int fd, uint32_t id, int64_t bytes)
{
	struct if_dqblk block = {.dqb_valid = QIF_LIMITS};

	if (bytes > 0) {
		block.dqb_bhardlimit = ((uint64_t)bytes + BLOCK - 1) / BLOCK;
		block.dqb_ihardlimit = FILES_MIN + (uint64_t)bytes / BYTES_PER_FILE;
	}
	return control(fd, Q_SETQUOTA, id, &block);
}

static bool is_ours(uint32_t id)
{
	return id >= QUOTA_FIRST_ID && id - QUOTA_FIRST_ID < QUOTA_N_IDS;
}

/* 0 where there is none. */
static uint32_t project_of(int at_fd, const char *path)
{
	scoped_fd int fd = openat(at_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct fsxattr attr = {0};

	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attr) < 0)
		return 0;
	return attr.fsx_projid;
}

static int set_project(int fd, uint32_t id)
{
	struct fsxattr attr = {0};
	struct stat st;

	if (fstat(fd, &st) < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attr) < 0)
		return -errno;
	attr.fsx_projid = id;
	if (S_ISDIR(st.st_mode))
		attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	return ioctl(fd, FS_IOC_FSSETXATTR, &attr) < 0 ? -errno : 0;
}

/* Counting is not enough: ext4 counts without the mount option, too. */
static int check_enforced(int fd, const char *path, struct err *err)
{
	struct fs_quota_statv state = {.qs_version = FS_QSTATV_VERSION1};
	int r = control(fd, Q_XGETQSTATV, 0, &state);

	if (r == 0 && state.qs_flags & FS_QUOTA_PDQ_ENFD)
		return 0;
	if (r == 0 && state.qs_flags & FS_QUOTA_PDQ_ACCT)
		return err_set(err, -EOPNOTSUPP,
			"the filesystem of '%s' counts for projects, but limits none: mount it "
			"with prjquota",
			path);
	return err_set(err, -EOPNOTSUPP,
		"no project quotas on the filesystem of '%s': on ext4 `tune2fs -O project,quota "
		"DEVICE` (not mounted), then mount it with prjquota; on xfs mount it so; or take "
		"another state folder (--state)",
		path);
}

int quota_probe(const char *path, struct err *err)
{
	scoped_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_set(err, -errno, "open '%s': %m", path) : check_enforced(fd, path, err);
}

/* The id belongs to who made the project's first file. */
static int mark(int dir_fd, uint32_t id)
{
	scoped_fd int fd = openat(dir_fd, MARK, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : set_project(fd, id);
}

/* An id without files and limits, or with a limit only: whoever set that died before it had a file, since the caller holds
 * the lock under which both are made. Another state on the same filesystem begins its search elsewhere. */
static int take_id(struct quota *quota, const char *id)
{
	uint32_t start = 2166136261u;

	for (; *id; id++)
		start = (start ^ (unsigned char)*id) * 16777619u;
	for (uint32_t i = 0; i < QUOTA_N_IDS; i++) {
		uint32_t project = QUOTA_FIRST_ID + (start + i) % QUOTA_N_IDS;
		struct if_dqblk block = {0};
		int r = control(quota->dir_fd, Q_GETQUOTA, project, &block);

		if (r < 0 && r != -ENOENT)
			return r;
		if (block.dqb_curinodes || block.dqb_curspace)
			continue;
		quota->id = project;
		return 0;
	}
	return -EUSERS;
}

/* A layer that is gone on with stays in its project, which is nobody else's as long as it has files. */
static int choose_id(struct quota *quota, const char *id)
{
	uint32_t before = project_of(quota->dir_fd, UPPER);

	if (!is_ours(before))
		return take_id(quota, id);
	quota->id = before;
	return 0;
}

static int open_locked(struct quota *quota, const char *id)
{
	int r = choose_id(quota, id);

	if (r == 0)
		r = set_limit(quota->dir_fd, quota->id, quota->limit_bytes);
	return r < 0 ? r : mark(quota->dir_fd, quota->id);
}

int quota_open(struct quota *ret, int dir_fd, const char *state_dir, const char *id, int64_t bytes,
	struct err *err)
{
	struct quota quota = {.dir_fd = dir_fd, .limit_bytes = bytes};
	scoped_mem char *lock = mem_printf("%s/projects.lock", state_dir);
	scoped_fd int lock_fd = -1;
	struct stat st;
	int r = check_enforced(dir_fd, state_dir, err);

	if (r < 0)
		return err_wrap(err, r, "--disk");
	lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock_fd < 0 || fstat(dir_fd, &st) < 0 || flock(lock_fd, LOCK_EX) < 0)
		return err_set(err, -errno, "lock '%s': %m", lock);
	quota.dev = st.st_dev;
	r = open_locked(&quota, id);
	if (r < 0) {
		quota_close(&quota);
		return err_set(err, r, "limit what the sandbox keeps below '%s': %m", state_dir);
	}
	*ret = quota;
	return 0;
}

int quota_take_folder(const struct quota *quota, int at_fd, const char *path)
{
	scoped_fd int fd = -1;
	struct stat st;

	if (!quota || quota->dir_fd < 0)
		return 0;
	fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == quota->dev ? set_project(fd, quota->id) : -EXDEV;
}

void quota_close(struct quota *quota)
{
	if (quota->dir_fd >= 0 && quota->id)
		(void)set_limit(quota->dir_fd, quota->id, 0); /* else gc, or who is next */
	*quota = (struct quota){.dir_fd = -1};
}

void quota_clean(int dir_fd)
{
	uint32_t id = project_of(dir_fd, MARK);

	if (is_ours(id))
		(void)set_limit(dir_fd, id, 0); /* without its files the id is free all the same */
}

int64_t quota_held(const struct quota *quota, bool *ret_is_full)
{
	struct if_dqblk block = {0};

	*ret_is_full = false;
	if (quota->dir_fd < 0 || control(quota->dir_fd, Q_GETQUOTA, quota->id, &block) < 0)
		return GAUGE_UNKNOWN;
	*ret_is_full = block.dqb_curspace + SLACK >= (uint64_t)quota->limit_bytes ||
	               block.dqb_curinodes >= block.dqb_ihardlimit;
	return (int64_t)block.dqb_curspace;
}
