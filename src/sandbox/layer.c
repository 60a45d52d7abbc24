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

#include "sandbox/idrange.h"
#include "sandbox/kmount.h"
#include "sandbox/late.h"
#include "util/scoped.h"
#include "util/str.h"

#define NAME_LEN 64
#define PATH_LEN 4096
/* and one over them, one at the bottom */
#define MAX_BELOW (LAYER_MAX_LOWERS + 2)

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

/* All that lies below the upper, topmost first, as mounts attached nowhere. */
struct stack {
	int fds[MAX_BELOW];
	size_t n;
	bool has_over; /* fds[0] is the caller's */
};

static void name_lower(char name[NAME_LEN], const struct layer *layer, size_t i)
{
	(void)snprintf(name, NAME_LEN, "%.40sl%zu", layer->prefix, i);
}

static int attach_stack(
	const struct layer *layer, const struct stack *stack, struct str *names, struct err *err)
{
	char name[NAME_LEN];
	int r = 0;

	for (size_t i = 0; r == 0 && i < stack->n; i++) {
		name_lower(name, layer, i);
		r = attach_at(stack->fds[i], name, err);
		str_printf(names, "%s%s", i > 0 ? ":" : "", name);
	}
	return r;
}

static int overlay_by_path(const struct layer *layer, const struct stack *stack,
	const struct kmount_overlay *overlay, struct err *err)
{
	scoped_str struct str names = {0};
	char at[NAME_LEN], name[NAME_LEN];
	int fd, r = enter_own_ns(err);

	(void)snprintf(at, sizeof(at), "%.40smade", layer->prefix);
	if (r == 0)
		r = attach_stack(layer, stack, &names, err);
	if (r == 0 && mkdir(at, 0700) < 0 && errno != EEXIST)
		r = err_set(err, -errno, "make '%s': %m", at);
	fd = r < 0 ? r : kmount_overlay_by_path(overlay, names.p, at, err);
	for (size_t i = 0; i < stack->n; i++) {
		name_lower(name, layer, i);
		detach(name);
	}
	(void)rmdir(at);
	return fd;
}

/* Called with the current folder at dir_fd, so that paths are short and say nothing of the host. */
static int make_overlay(
	const struct layer *layer, const struct stack *stack, bool has_upper, struct err *err)
{
	char upper[NAME_LEN], work[NAME_LEN];
	struct kmount_overlay overlay = {.lower_fds = stack->fds,
		.n_lowers = stack->n,
		.upper = has_upper ? upper : NULL,
		.work = work,
		.throw_away = layer->throw_away};
	struct err why = {0};
	int fd;

	(void)snprintf(upper, sizeof(upper), "%.40supper", layer->prefix);
	(void)snprintf(work, sizeof(work), "%.40swork", layer->prefix);
	if (!by_path && !getenv("CLOCHE_OLD_OVERLAY")) {
		fd = kmount_overlay(&overlay, &why);
		if (fd >= 0)
			return fd;
		if (fd != -EINVAL)
			return err_set(err, fd, "%s", why.msg);
	}
	fd = overlay_by_path(layer, stack, &overlay, err);
	if (fd < 0 && why.msg[0])
		return err_set(err, fd, "%s", why.msg); /* the newer way has the better words */
	by_path = by_path || (fd >= 0 && why.msg[0]);
	return fd;
}

/* Rights of a top folder: what the shared layer right below shows of it stays as it is. */
struct rights {
	uint32_t uid, gid;
	mode_t mode;
};

static uint32_t own_id(const struct layer *layer, uint32_t base, uint32_t id)
{
	return base && id - base < IDRANGE_LEN ? layer->owner + (id - base) : layer->owner;
}

static struct rights top_rights(const struct layer *layer)
{
	const struct layer_lower *below = layer->n_lowers > 0 ? &layer->lowers[0] : NULL;
	struct stat st;

	if (!below || stat(below->dir, &st) < 0)
		return (struct rights){layer->owner, layer->owner, layer->mode};
	return (struct rights){own_id(layer, below->base, st.st_uid),
		own_id(layer, below->base, st.st_gid), st.st_mode & 07777};
}

/* One that is there keeps what the sandbox made of it. */
static int make_folder(const struct layer *layer, const char *path, const struct rights *rights)
{
	bool is_new = mkdirat(layer->dir_fd, path, 0700) == 0;

	if (!is_new && errno != EEXIST)
		return -errno;
	if (is_new &&
		(fchownat(layer->dir_fd, path, rights->uid, rights->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
			fchmodat(layer->dir_fd, path, rights->mode, 0) < 0))
		return -errno;
	return quota_take_folder(layer->quota, layer->dir_fd, path);
}

/* For sentences. */
static const char *bottom_of(const struct layer *layer)
{
	return layer->lower ? layer->lower : layer->lowers[layer->n_lowers - 1].dir;
}

static int make_folders(const struct layer *layer, struct err *err)
{
	char path[NAME_LEN];
	const char *slash = strchr(layer->prefix, '/');
	const struct rights top = top_rights(layer), work = {layer->owner, layer->owner, 0700};
	int r = 0;

	(void)snprintf(path, sizeof(path), "%.40s", layer->prefix);
	if (slash && mkdirat(layer->dir_fd, path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	(void)snprintf(path, sizeof(path), "%.40supper", layer->prefix);
	if (r == 0)
		r = make_folder(layer, path, &top);
	(void)snprintf(path, sizeof(path), "%.40swork", layer->prefix);
	if (r == 0)
		r = make_folder(layer, path, &work);
	return r < 0 ? err_set(err, r, "make the layer over '%s': %m", bottom_of(layer)) : 0;
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

static int add_below(struct stack *stack, const char *dir, int userns_fd, struct err *err)
{
	int fd = kmount_clone(
		dir, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, userns_fd, err);

	if (fd < 0)
		return fd;
	stack->fds[stack->n++] = fd;
	return 0;
}

static int open_stack(
	const struct layer *layer, bool with_over, struct stack *stack, struct err *err)
{
	int r = 0;

	if (layer->n_lowers > LAYER_MAX_LOWERS)
		return err_set(err, -E2BIG, "%zu layers, at most %d can be joined", layer->n_lowers,
			LAYER_MAX_LOWERS);
	if (layer->n_lowers == 0 && !layer->lower)
		return err_set(err, -EINVAL, "a layer over nothing");
	if (with_over && layer->over_fd >= 0) {
		stack->has_over = true;
		stack->fds[stack->n++] = layer->over_fd;
	}
	for (size_t i = 0; r == 0 && i < layer->n_lowers; i++) {
		const struct layer_lower *l = &layer->lowers[i];

		r = add_below(stack, l->dir,
			l->userns_fd == LAYER_OWN_MAP ? layer->userns_fd : l->userns_fd, err);
	}
	return r == 0 && layer->lower ? add_below(stack, layer->lower, layer->userns_fd, err) : r;
}

/* The overlay has copies of its own. */
static void close_stack(struct stack *stack)
{
	for (size_t i = stack->has_over ? 1 : 0; i < stack->n; i++)
		late_close(stack->fds[i]);
	stack->n = 0;
}

static int open_over_stack(
	const struct layer *layer, const struct stack *stack, bool has_upper, struct err *err)
{
	scoped_fd int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd, r = cwd < 0 ? -errno : go_to(layer->dir_fd);

	if (r < 0)
		return err_set(err, r, "go to the layers' folder: %m");
	fd = make_overlay(layer, stack, has_upper, err);
	if (fchdir(cwd) < 0 && fd >= 0) {
		r = -errno;
		(void)close(fd);
		return err_set(err, r, "go back from the layers' folder: %m");
	}
	return fd < 0 ? err_wrap(err, fd, "layer over '%s'", bottom_of(layer)) : fd;
}

int layer_open(const struct layer *layer, struct err *err)
{
	struct stack stack = {0};
	int r = open_stack(layer, true, &stack, err);

	if (r == 0)
		r = make_folders(layer, err);
	if (r == 0)
		r = open_over_stack(layer, &stack, true, err);
	close_stack(&stack);
	return r;
}

/* The kernel joins two folders at least. */
int layer_open_below(const struct layer *layer, struct err *err)
{
	struct stack stack = {0};
	int r = open_stack(layer, false, &stack, err);

	if (r == 0 && stack.n == 1)
		return stack.fds[0];
	if (r == 0)
		r = open_over_stack(layer, &stack, false, err);
	close_stack(&stack);
	return r;
}
