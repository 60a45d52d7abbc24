/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/merged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "util/scoped.h"

#define LAYERS_LEN 64

/* Both are lower layers here, so nothing is ever written and no work folder is needed. */
static int set_options(int fs, const char *layers)
{
	const char *const options[][2] = {
		{"lowerdir", layers}, {"redirect_dir", "on"}, {"metacopy", "on"},
		{"index", "off"}, /* else a sandbox that runs keeps its upper to itself */
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) < 0)
			return -errno;
	return fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

/* By descriptor: a path may hold what overlayfs takes for its own syntax, and older kernels take short ones only. */
static int mount_both(int upper_fd, int lower_fd)
{
	scoped_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	char layers[LAYERS_LEN];
	int fd, r;

	if (fs < 0)
		return -errno;
	(void)snprintf(
		layers, sizeof(layers), "/proc/self/fd/%d:/proc/self/fd/%d", upper_fd, lower_fd);
	r = set_options(fs, layers);
	if (r < 0)
		return r;
	fd = fsmount(fs, FSMOUNT_CLOEXEC,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

int merged_open(const struct change_layer *layer, struct err *err)
{
	scoped_fd int upper = open(layer->upper, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	scoped_fd int lower = open(layer->lower, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	scoped_fd int tree = -1;
	int fd;

	if (upper < 0 || lower < 0)
		return err_set(
			err, -errno, "open '%s': %m", upper < 0 ? layer->upper : layer->lower);
	tree = mount_both(upper, lower);
	if (tree < 0)
		return err_set(err, tree, "look at '%s' as the sandbox sees it: %m", layer->guest);
	fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_set(err, -errno, "open '%s': %m", layer->guest) : fd;
}
