/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts as descriptors (fsopen(2), open_tree(2), mount_setattr(2)): made here, attached by whoever is inside. */
#ifndef SANDBOX_KMOUNT_H
#define SANDBOX_KMOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

/* A copy of the mount at path, attached nowhere, without the mounts below it. attrs are MOUNT_ATTR_*;
 * userns_fd maps its ids, -1 for none. path has no links: one that is there now was put there after it was checked,
 * and is refused. Returns a descriptor. The sentence names path. */
int kmount_clone(const char *path, uint64_t attrs, int userns_fd, struct err *err);

struct kmount_option {
	const char *key, *value; /* value NULL: a flag */
};
/* A new filesystem of that type, attached nowhere; the list of options ends with a NULL key. */
int kmount_new(
	const char *type, const struct kmount_option *options, uint64_t attrs, struct err *err);

struct kmount_overlay {
	const int *lower_fds; /* topmost first */
	size_t n_lowers;
	const char *upper,
		*work; /* relative to the current folder, so that no path of the host shows inside; NULL: read-only */
	int throw_away; /* volatile: never synced, gone after a crash */
};
/* Attached nowhere. -EINVAL where the kernel does not take a lower layer by descriptor. */
int kmount_overlay(const struct kmount_overlay *overlay, struct err *err);
/* The same without lower_fds: they are attached below the current folder, lowers names them ("A:B", topmost first). It
 * is attached for a moment at `at`, an empty folder, so that wants a mount namespace of the caller's own. */
int kmount_overlay_by_path(
	const struct kmount_overlay *overlay, const char *lowers, const char *at, struct err *err);

/* Attaches a mount at path below dirfd (AT_FDCWD). Links in path are followed, as the caller's root has them. */
int kmount_attach(int mount_fd, int dirfd, const char *path);
int kmount_attach_nofollow(
	int mount_fd, int dirfd, const char *path); /* the last part is no link */

#endif
