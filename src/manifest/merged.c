/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/merged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "manifest/stack.h"
#include "util/scoped.h"
#include "util/str.h"

#define LAYERS_LEN 255 /* of a value of fsconfig(2) */

/* Both are lower layers here, so nothing is ever written and no work folder is needed. */
static int set_options(int fs, const char *layers)
{
	const char *const options[][2] = {
		{"lowerdir", layers}, {"redirect_dir", "on"}, {"metacopy", "on"},
		{"index", "off"}, /* else a sandbox that runs keeps its upper to itself */
	};

	for (size_t i = layers ? 0 : 1; i < sizeof(options) / sizeof(options[0]); i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) < 0)
			return -errno;
	return fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

/* Many: Linux 6.13. */
static int add_layers(int fs, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, fds[i]) < 0)
			return -errno;
	return 0;
}

/* By descriptor: a path may hold what overlayfs takes for its own syntax, and older kernels take short ones only. */
static int mount_all(const int *fds, size_t n)
{
	scoped_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	scoped_str struct str layers = {0};
	int fd, r;

	if (fs < 0)
		return -errno;
	for (size_t i = 0; i < n; i++)
		str_printf(&layers, "%s/proc/self/fd/%d", i > 0 ? ":" : "", fds[i]);
	r = layers.len > LAYERS_LEN ? add_layers(fs, fds, n) : 0;
	if (r == 0)
		r = set_options(fs, layers.len > LAYERS_LEN ? NULL : layers.p);
	if (r < 0)
		return r;
	fd = fsmount(fs, FSMOUNT_CLOEXEC,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

/* What lies below all comes last. */
static size_t all_below(const struct stack *stack, int lower_fd, int *fds)
{
	size_t n = 0;

	for (size_t i = 0; i < stack->n; i++)
		if (stack->fds[i] >= 0)
			fds[n++] = stack->fds[i];
	if (lower_fd >= 0)
		fds[n++] = lower_fd;
	return n;
}

int merged_open_shared(const struct change_shared *layers, size_t n)
{
	int fds[CHANGE_SET_STACK_MAX], fd = -1, r = 0;
	size_t n_open = 0;
	scoped_fd int tree = -1;

	if (n == 0)
		return -ENOENT;
	for (; r == 0 && n_open < n && n_open < CHANGE_SET_STACK_MAX; n_open++) {
		fds[n_open] =
			open(layers[n_open].dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fds[n_open] < 0)
			r = -errno;
	}
	if (r == 0 && n_open > 1)
		r = tree = mount_all(fds, n_open);
	if (r >= 0)
		fd = openat(n_open > 1 ? tree : fds[0], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = r < 0 ? r : fd < 0 ? -errno : fd;
	for (size_t i = 0; i < n_open; i++)
		scoped_close(&fds[i]);
	return r;
}

int merged_open(const struct change_layer *layer, struct err *err)
{
	int fds[CHANGE_SET_STACK_MAX + 2], fd, r;
	scoped_fd int lower = -1, tree = -1;
	struct stack stack;

	if (layer->lower)
		lower = open(layer->lower, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	else
		lower = merged_open_shared(layer->stack + layer->n_stack, layer->n_below);
	if (lower < 0)
		return err_set(err, layer->lower ? -errno : lower, "open what lies below '%s': %m",
			layer->guest);
	r = stack_open(layer, &stack);
	if (r < 0)
		return err_set(err, r, "open '%s': %m", layer->upper);
	tree = mount_all(fds, all_below(&stack, lower, fds));
	stack_done(&stack);
	if (tree < 0)
		return err_set(err, tree, "look at '%s' as the sandbox sees it: %m", layer->guest);
	fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_set(err, -errno, "open '%s': %m", layer->guest) : fd;
}
