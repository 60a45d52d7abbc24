/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kmount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "util/path.h"
#include "util/scoped.h"

#define REASON_MAX        256
#define MOUNT_OPTIONS_MAX 4096 /* a page, all the kernel takes */

int kmount_clone(const char *path, uint64_t attrs, int userns_fd, struct err *err)
{
	scoped_fd int at = path_open_judged(path, O_PATH), fd = -1;
	struct mount_attr attr = {.attr_set = attrs};
	int r;

	if (at == -ELOOP)
		return err_set(
			err, -ELOOP, "'%s' is not what it was: a link is in its way now", path);
	if (at < 0)
		return err_set(err, at, "open '%s': %m", path);
	fd = open_tree(at, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "copy the mount of '%s': %m", path);
	if (userns_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns_fd;
	}
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0) {
		r = -errno;
		if (r == -EINVAL && userns_fd >= 0)
			return err_set(err, r,
				"'%s' lies on a filesystem whose ids cannot be mapped (overlay, "
				"NFS, 9p; tmpfs "
				"before Linux 6.3): move it to a local disk filesystem",
				path);
		return err_set(err, r, "set attributes on the mount of '%s': %m", path);
	}
	return take_fd(&fd);
}

/* The kernel's own words, which fsopen's descriptor gives a line at a time: "e overlay: ...". */
static void read_reason(int fs, char reason[REASON_MAX])
{
	ssize_t n = read(fs, reason, REASON_MAX - 1);

	reason[n > 0 ? n : 0] = '\0';
	reason[strcspn(reason, "\n")] = '\0';
}

static int finish(int fs, uint64_t attrs, const char *type, struct err *err)
{
	char reason[REASON_MAX];
	int fd, r;

	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
		r = -errno;
		read_reason(fs, reason);
		return err_set(
			err, r, "make %s filesystem: %m%s%s", type, reason[0] ? ": " : "", reason);
	}
	fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs);
	return fd < 0 ? err_set(err, -errno, "mount %s: %m", type) : fd;
}

int kmount_new(
	const char *type, const struct kmount_option *options, uint64_t attrs, struct err *err)
{
	scoped_fd int fs = fsopen(type, FSOPEN_CLOEXEC);

	if (fs < 0)
		return err_set(err, -errno, "open filesystem type %s: %m", type);
	for (const struct kmount_option *o = options; o->key; o++)
		if (fsconfig(fs, o->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, o->key,
			    o->value, 0) < 0)
			return err_set(err, -errno, "%s option %s=%s: %m", type, o->key,
				o->value ? o->value : "");
	return finish(fs, attrs, type, err);
}

static int set_option(int fs, const char *key, const char *value, struct err *err)
{
	if (fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) < 0)
		return err_set(err, -errno, "overlay option %s=%s: %m", key, value);
	return 0;
}

static int set_lowers(int fs, const struct kmount_overlay *o, struct err *err)
{
	for (size_t i = 0; i < o->n_lowers; i++)
		if (fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, o->lower_fds[i]) < 0)
			return err_set(err, -EINVAL, "overlay lower layer by descriptor: %m");
	return 0;
}

int kmount_overlay(const struct kmount_overlay *o, struct err *err)
{
	scoped_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	int r;

	if (fs < 0)
		return err_set(err, -errno,
			"the kernel has no overlay filesystem: %m (try 'modprobe overlay')");
	r = set_lowers(fs, o, err);
	if (r == 0 && o->upper)
		r = set_option(fs, "upperdir", o->upper, err);
	if (r == 0 && o->upper)
		r = set_option(fs, "workdir", o->work, err);
	if (r == 0)
		r = set_option(fs, "redirect_dir", "on", err);
	if (r == 0)
		r = set_option(fs, "metacopy", "on", err);
	if (r == 0 && o->throw_away && fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0)
		r = err_set(err, -errno, "overlay option volatile: %m");
	if (r < 0)
		return r;
	return finish(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, "overlay", err);
}

/* By mount(2): a value of fsconfig(2) ends at 255 bytes, which do not hold the names of many layers. */
int kmount_overlay_by_path(
	const struct kmount_overlay *o, const char *lowers, const char *at, struct err *err)
{
	char options[MOUNT_OPTIONS_MAX];
	int n, fd, r;

	n = o->upper ? snprintf(options, sizeof(options),
			       "lowerdir=%s,upperdir=%s,workdir=%s,redirect_dir=on,metacopy=on%s",
			       lowers, o->upper, o->work, o->throw_away ? ",volatile" : "")
	             : snprintf(options, sizeof(options), "lowerdir=%s,redirect_dir=on,metacopy=on",
			       lowers);
	if (n < 0 || n >= (int)sizeof(options))
		return err_set(err, -E2BIG, "the names of %zu layers are too long", o->n_lowers);
	if (mount("overlay", at, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return err_set(err, -errno, "make overlay filesystem: %m");
	fd = open_tree(AT_FDCWD, at, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = fd < 0 ? -errno : 0;
	(void)umount2(at, MNT_DETACH); /* the copy stays */
	return fd < 0 ? err_set(err, r, "copy the mount of an overlay: %m") : fd;
}

int kmount_attach(int mount_fd, int dirfd, const char *path)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS;

	return move_mount(mount_fd, "", dirfd, path, flags) < 0 ? -errno : 0;
}

int kmount_attach_nofollow(int mount_fd, int dirfd, const char *path)
{
	return move_mount(mount_fd, "", dirfd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}
