/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/merged.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/stack.h"
#include "util/scoped.h"
#include "util/str.h"

#define VALUE_MAX  255 /* bytes of one of fsconfig(2) */
#define LAYERS_MAX (CHANGE_SET_STACK_MAX + 2)
#define LINK_LEN   64

/* By descriptor, since a path may hold what overlayfs takes for its own syntax. */
static void name_layers(struct str *out, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_printf(out, "%s/proc/self/fd/%d", i > 0 ? ":" : "", fds[i]);
}

/* All are lower layers here, so nothing is ever written and no work folder is needed. */
static int mount_few(const char *layers)
{
	const char *const options[][2] = {
		{"lowerdir", layers}, {"redirect_dir", "on"}, {"metacopy", "on"},
		{"index", "off"}, /* else a sandbox that runs keeps its upper to itself */
	};
	scoped_fd int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) < 0)
			return -errno;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The same folder by way of this mount namespace, of which the layers of a mount in it have to be. */
static int open_again(int fd)
{
	char link[LINK_LEN], path[PATH_MAX];
	struct stat was, is;
	scoped_fd int again = -1;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	again = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (again < 0 || fstat(fd, &was) < 0 || fstat(again, &is) < 0)
		return -errno;
	return was.st_dev == is.st_dev && was.st_ino == is.st_ino ? take_fd(&again) : -ESTALE;
}

static int open_all_again(const int *fds, size_t n, int *again)
{
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		again[i] = r < 0 ? -1 : open_again(fds[i]);
		if (r == 0 && again[i] < 0)
			r = again[i];
	}
	return r;
}

/* Over a folder that any host has, in a mount namespace that nobody else is in. */
static int mount_over(const int *fds, size_t n)
{
	scoped_str struct str options = {0};
	int fd;

	str_puts(&options, "lowerdir=");
	name_layers(&options, fds, n);
	str_puts(&options, ",redirect_dir=on,metacopy=on,index=off");
	if (mount("overlay", "/proc", "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		    options.p) < 0)
		return -errno;
	fd = open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int mount_apart(const int *fds, size_t n)
{
	int again[LAYERS_MAX], r;

	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return -errno;
	r = open_all_again(fds, n, again);
	if (r == 0)
		r = mount_over(again, n);
	for (size_t i = 0; i < n; i++)
		scoped_close(&again[i]);
	return r;
}

/* Going to a namespace takes the thread to its root. */
static int go_back(int namespace, int root, int cwd)
{
	if (setns(namespace, CLONE_NEWNS) < 0 || fchdir(root) < 0 || chroot(".") < 0 ||
		fchdir(cwd) < 0)
		return -errno;
	return 0;
}

/* More than one value of fsconfig(2) can name: mount(2) takes a page of names, but wants a place for the mount. */
static int mount_many(const int *fds, size_t n)
{
	scoped_fd int namespace = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
	scoped_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	int r;

	if (namespace < 0 || root < 0 || cwd < 0 || unshare(CLONE_NEWNS) < 0)
		return -errno;
	fd = mount_apart(fds, n);
	r = go_back(namespace, root, cwd);
	return r < 0 ? r : take_fd(&fd);
}

static int mount_all(const int *fds, size_t n)
{
	scoped_str struct str layers = {0};

	name_layers(&layers, fds, n);
	return layers.len > VALUE_MAX ? mount_many(fds, n) : mount_few(layers.p);
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
	int fds[LAYERS_MAX], fd, r;
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
