/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sandbox/kmount.h"
#include "sandbox/layer.h"
#include "sandbox/skel.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define SHM_SIZE "512m"
#define NAME_LEN 16
#define ROOT     "root."

/* Folders of the host that programs live in; where one is a link, the skeleton has the link. */
static const struct rootfs_layer host_layers[] = {{"usr.", "/usr", NULL}, {"opt.", "/opt", NULL},
	{"bin.", "/bin", NULL}, {"sbin.", "/sbin", NULL}, {"lib.", "/lib", NULL},
	{"lib64.", "/lib64", NULL}};

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
_Static_assert(LEN(host_layers) < ROOTFS_MAX_LAYERS, "the skeleton needs a place too");

static bool has_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && n <= 2 && readdir(dir)) /* "." and ".." */
		n++;
	if (dir)
		(void)closedir(dir);
	return n > 2;
}

static void add_layer(struct rootfs *rootfs, const char *prefix, const char *guest, char *lower)
{
	rootfs->layers[rootfs->n_layers++] =
		(struct rootfs_layer){.prefix = prefix, .guest = guest, .lower = lower};
}

/* As it was judged: opened without following any link that may have come into its way since. */
static int plan_folder(struct rootfs *rootfs, const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "root filesystem '%s': no such folder", path);
	add_layer(rootfs, ROOT, "/", mem_dup(path));
	return 0;
}

static bool is_asked_for(const struct spec *spec, const char *guest)
{
	for (size_t i = 0; i < spec->n_lowers; i++)
		if (strcmp(spec->lowers[i].guest, guest) == 0)
			return true;
	return false;
}

/* A folder that the host no longer has is still there where shared layers hold it. */
static void plan_host_folder(
	struct rootfs *rootfs, const struct rootfs_layer *l, const struct spec *spec)
{
	struct stat st;
	bool is_there = lstat(l->guest, &st) == 0 && S_ISDIR(st.st_mode) && has_entries(l->guest);

	if (is_there || is_asked_for(spec, l->guest))
		add_layer(rootfs, l->prefix, l->guest, is_there ? mem_dup(l->guest) : NULL);
}

static int plan_host_view(
	struct rootfs *rootfs, const struct spec *spec, const char *state_dir, struct err *err)
{
	scoped_mem char *skeleton = NULL, *real = NULL;
	int r = skel_open(state_dir, &skeleton, &rootfs->lock_fd, err);

	if (r < 0)
		return r;
	real = realpath(skeleton, NULL);
	if (!real)
		return err_set(err, -errno, "find '%s': %m", skeleton);
	add_layer(rootfs, ROOT, "/", take(&real));
	for (size_t i = 0; i < LEN(host_layers); i++)
		plan_host_folder(rootfs, &host_layers[i], spec);
	return 0;
}

int rootfs_plan(
	struct rootfs *rootfs, const struct spec *spec, const char *state_dir, struct err *err)
{
	*rootfs = (struct rootfs){.lock_fd = -1};
	if (spec->rootfs)
		return plan_folder(rootfs, spec->rootfs, err);
	if (!spec->image)
		return plan_host_view(rootfs, spec, state_dir, err);
	add_layer(rootfs, ROOT, "/", NULL);
	return 0;
}

bool rootfs_has(const struct rootfs *rootfs, const char *guest)
{
	for (size_t i = 0; i < rootfs->n_layers; i++)
		if (strcmp(rootfs->layers[i].guest, guest) == 0)
			return true;
	return false;
}

void rootfs_done(struct rootfs *rootfs)
{
	for (size_t i = 0; i < rootfs->n_layers; i++)
		free(rootfs->layers[i].lower);
	rootfs->n_layers = 0;
	scoped_close(&rootfs->lock_fd);
	rootfs->lock_fd = -1;
}

static int open_layer(const struct rootfs *rootfs, size_t i, const struct rootfs_place *place,
	int (*open_it)(const struct layer *layer, struct err *err), struct err *err)
{
	struct layer_lower buf[LAYER_MAX_LOWERS];
	struct layer layer = {.dir_fd = place->dir_fd,
		.prefix = rootfs->layers[i].prefix,
		.lower = rootfs->layers[i].lower,
		.over_fd = i == 0 ? place->over_fd : -1,
		.userns_fd = place->userns_fd,
		.owner = place->owner,
		.mode = 0755,
		.throw_away = place->throw_away,
		.quota = place->quota};
	int r = lowers_put(place->lowers, rootfs->layers[i].guest, &layer, buf, err);

	return r < 0 ? r : open_it(&layer, err);
}

int rootfs_open(
	const struct rootfs *rootfs, size_t i, const struct rootfs_place *place, struct err *err)
{
	return open_layer(rootfs, i, place, layer_open, err);
}

int rootfs_open_below(
	const struct rootfs *rootfs, const struct rootfs_place *place, struct err *err)
{
	return open_layer(rootfs, 0, place, layer_open_below, err);
}

static void settle_layer(int dir_fd, const char *prefix)
{
	static const struct {
		const char *path;
		int flags;
	} marks[] = {{"incompat/volatile/dirty", 0}, {"incompat/volatile", AT_REMOVEDIR}};
	char path[NAME_LEN + 64];

	for (size_t i = 0; i < LEN(marks); i++) {
		(void)snprintf(path, sizeof(path), "%swork/work/%s", prefix, marks[i].path);
		(void)unlinkat(dir_fd, path, marks[i].flags); /* mostly not there */
	}
}

void rootfs_settle(int dir_fd)
{
	settle_layer(dir_fd, ROOT);
	for (size_t i = 0; i < LEN(host_layers); i++)
		settle_layer(dir_fd, host_layers[i].prefix);
}

/* A layer in which nothing was changed goes in a few calls by the names that overlayfs gives its own; what is
 * there beyond them is left to the walk. */
static int remove_layer(int dir_fd, const char *prefix)
{
	static const struct {
		const char *path;
		int flags;
	} parts[] = {{"/work/incompat/volatile/dirty", 0},
		{"/work/incompat/volatile", AT_REMOVEDIR}, {"/work/incompat", AT_REMOVEDIR},
		{"/work", AT_REMOVEDIR}, {"", AT_REMOVEDIR}};
	char upper[NAME_LEN], work[NAME_LEN], path[NAME_LEN + 64];
	int r;

	(void)snprintf(upper, sizeof(upper), "%supper", prefix);
	(void)snprintf(work, sizeof(work), "%swork", prefix);
	if (unlinkat(dir_fd, upper, AT_REMOVEDIR) < 0 && errno == ENOENT)
		return path_remove_all(dir_fd, work);
	for (size_t i = 0; i < LEN(parts); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", work, parts[i].path);
		(void)unlinkat(dir_fd, path, parts[i].flags);
	}
	r = path_remove_all(dir_fd, upper);
	return r < 0 ? r : path_remove_all(dir_fd, work);
}

int rootfs_remove(int dir_fd)
{
	int r = remove_layer(dir_fd, ROOT);

	for (size_t i = 0; i < LEN(host_layers); i++) {
		int one = remove_layer(dir_fd, host_layers[i].prefix);

		r = r < 0 ? r : one;
	}
	return r;
}

static int open_tmpfs(
	uint32_t owner, const char *mode, const char *size, uint64_t attrs, struct err *err)
{
	char id[16];
	const struct kmount_option options[] = {
		{"mode", mode}, {"uid", id}, {"gid", id}, {"size", size}, {NULL, NULL}};

	(void)snprintf(id, sizeof(id), "%u", owner);
	return kmount_new("tmpfs", options, attrs, err);
}

static int make_node(
	int dirfd, const char *name, unsigned major_nr, unsigned minor_nr, uint32_t owner)
{
	if (mknodat(dirfd, name, S_IFCHR | 0666, makedev(major_nr, minor_nr)) < 0)
		return -errno;
	if (fchmodat(dirfd, name, 0666, 0) < 0 || fchownat(dirfd, name, owner, owner, 0) < 0)
		return -errno;
	return 0;
}

static int make_link(int dirfd, const char *name, const char *target, uint32_t owner)
{
	if (symlinkat(target, dirfd, name) < 0)
		return -errno;
	return fchownat(dirfd, name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int rootfs_open_dev(uint32_t owner, struct err *err)
{
	static const struct {
		const char *name;
		unsigned major_nr, minor_nr;
	} nodes[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8},
		{"urandom", 1, 9}, {"tty", 5, 0}};
	static const char *const links[][2] = {{"ptmx", "pts/ptmx"}, {"fd", "/proc/self/fd"},
		{"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
		{"stderr", "/proc/self/fd/2"}};
	scoped_fd int fd =
		open_tmpfs(owner, "0755", "256k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	int r = 0;

	if (fd < 0)
		return fd;
	for (size_t i = 0; r == 0 && i < LEN(nodes); i++)
		r = make_node(fd, nodes[i].name, nodes[i].major_nr, nodes[i].minor_nr, owner);
	for (size_t i = 0; r == 0 && i < LEN(links); i++)
		r = make_link(fd, links[i][0], links[i][1], owner);
	return r < 0 ? err_set(err, r, "fill /dev: %m") : take_fd(&fd);
}

int rootfs_open_shm(uint32_t owner, struct err *err)
{
	return open_tmpfs(owner, "1777", SHM_SIZE, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

/* Owned by the host's root, an id that the sandbox does not have: no right inside reaches them. */
int rootfs_open_hide_source(struct err *err)
{
	scoped_fd int fd = open_tmpfs(
		0, "0755", "16k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	scoped_fd int file = -1;
	struct mount_attr sealed = {.attr_set = MOUNT_ATTR_RDONLY};

	if (fd < 0)
		return fd;
	file = openat(fd, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	if (file < 0 || mkdirat(fd, "folder", 0) < 0)
		return err_set(err, -errno, "make the hide source: %m");
	scoped_close(&file);
	file = -1;
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &sealed, sizeof(sealed)) < 0)
		return err_set(err, -errno, "seal the hide source: %m");
	return take_fd(&fd);
}
