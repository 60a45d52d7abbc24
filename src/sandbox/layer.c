/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/kmount.h"
#include "sandbox/late.h"
#include "util/scoped.h"

#define NAME_LEN 64
#define PATH_LEN 4096

static bool by_path; /* the kernel, or the user, wants the older way */
static bool in_own_ns;

/* Attaching anything is seen by nobody else, and what the host unmounts is let go here too. */
static int enter_own_ns(struct err *err)
{
	if (in_own_ns)
		return 0;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_set(err, -errno, "make a mount namespace: %m");
	in_own_ns = true;
	return 0;
}

static int attach_at(int mount_fd, const char *at, struct err *err)
{
	int r;

	if (mkdir(at, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make '%s': %m", at);
	r = kmount_attach_nofollow(mount_fd, AT_FDCWD, at);
	return r < 0 ? err_set(err, r, "attach a lower layer: %m") : 0;
}

static void detach(const char *at)
{
	(void)umount2(at, MNT_DETACH); /* the overlay holds its own copy */
	(void)rmdir(at);
}

static int overlay_by_path(
	int lower_fd, const struct kmount_overlay *wanted, const char *at, struct err *err)
{
	struct kmount_overlay overlay = *wanted;
	char both[2 * NAME_LEN], over[NAME_LEN];
	int fd, r = enter_own_ns(err);

	(void)snprintf(over, sizeof(over), "%.50sover", at);
	(void)snprintf(both, sizeof(both), "%s:%s", over, at);
	if (r == 0)
		r = attach_at(lower_fd, at, err);
	if (r == 0 && overlay.over_fd >= 0)
		r = attach_at(overlay.over_fd, over, err);
	overlay.lower_fd = -1;
	overlay.lower_path = overlay.over_fd >= 0 ? both : at;
	fd = r < 0 ? r : kmount_overlay(&overlay, err);
	if (overlay.over_fd >= 0)
		detach(over);
	detach(at);
	return fd;
}

/* Called with the current folder at dir_fd, so that paths are short and say nothing of the host. */
static int make_overlay(const struct layer *layer, int lower_fd, struct err *err)
{
	char upper[NAME_LEN], work[NAME_LEN], at[NAME_LEN];
	struct kmount_overlay overlay = {.over_fd = layer->over_fd,
		.lower_fd = lower_fd,
		.upper = upper,
		.work = work,
		.throw_away = layer->throw_away};
	int fd;

	(void)snprintf(upper, sizeof(upper), "%.40supper", layer->prefix);
	(void)snprintf(work, sizeof(work), "%.40swork", layer->prefix);
	(void)snprintf(at, sizeof(at), "%.40slower", layer->prefix);
	if (!by_path && !getenv("CLOCHE_OLD_OVERLAY")) {
		fd = kmount_overlay(&overlay, err);
		if (fd != -EINVAL)
			return fd;
	}
	fd = overlay_by_path(lower_fd, &overlay, at, err);
	by_path = by_path || fd >= 0;
	return fd;
}

static int make_folder(int dirfd, const char *path, uint32_t owner, mode_t mode)
{
	if (mkdirat(dirfd, path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (fchownat(dirfd, path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ||
		fchmodat(dirfd, path, mode, 0) < 0)
		return -errno;
	return 0;
}

static int make_folders(const struct layer *layer, struct err *err)
{
	char path[NAME_LEN];
	const char *slash = strchr(layer->prefix, '/');
	int r = 0;

	(void)snprintf(path, sizeof(path), "%.40s", layer->prefix);
	if (slash && mkdirat(layer->dir_fd, path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	(void)snprintf(path, sizeof(path), "%.40supper", layer->prefix);
	if (r == 0)
		r = make_folder(layer->dir_fd, path, layer->owner, layer->mode);
	(void)snprintf(path, sizeof(path), "%.40swork", layer->prefix);
	if (r == 0)
		r = make_folder(layer->dir_fd, path, layer->owner, 0700);
	return r < 0 ? err_set(err, r, "make the layer over '%s': %m", layer->lower) : 0;
}

/* A descriptor that was opened before we had a mount namespace of our own leads back into the other one, where
 * nothing of ours can be attached: then the folder is gone to by its path. */
static int go_to(int dir_fd)
{
	char link[NAME_LEN], path[PATH_LEN];
	ssize_t n;

	if (!in_own_ns)
		return fchdir(dir_fd) < 0 ? -errno : 0;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return chdir(path) < 0 ? -errno : 0;
}

int layer_open(const struct layer *layer, struct err *err)
{
	scoped_fd int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), lower_fd = -1;
	int fd, r = make_folders(layer, err);

	if (r < 0)
		return r;
	lower_fd = kmount_clone(layer->lower,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, layer->userns_fd, err);
	if (lower_fd < 0)
		return lower_fd;
	r = cwd < 0 ? -errno : go_to(layer->dir_fd);
	if (r < 0)
		return err_set(err, r, "go to the layers' folder: %m");
	fd = make_overlay(layer, lower_fd, err);
	late_close(take_fd(&lower_fd)); /* the overlay has a copy of its own */
	if (fchdir(cwd) < 0 && fd >= 0) {
		r = -errno;
		(void)close(fd);
		return err_set(err, r, "go back from the layers' folder: %m");
	}
	return fd < 0 ? err_wrap(err, fd, "layer over '%s'", layer->lower) : fd;
}
