/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/git_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "manifest/owner.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define FILES_MAX  2000000 /* of the sandbox's that are taken */
#define FOLDERS    256     /* "00" to "ff" */
#define PATH_LEN   16
#define CONFIG     "[core]\n\trepositoryformatversion = %d\n\tbare = true\n\thooksPath = /dev/null\n"
#define CONFIG_256 "[extensions]\n\tobjectFormat = sha256\n"

/* ---- writing, as the owner ---- */

static int make_folder(const struct git_store *store, int dirfd, const char *path)
{
	int r = owner_become(store->uid, store->gid);

	if (r == 0 && mkdirat(dirfd, path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	owner_leave();
	return r;
}

static int make_file(const struct git_store *store, const char *path)
{
	int fd = owner_become(store->uid, store->gid);

	if (fd == 0) {
		fd = openat(store->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0400);
		fd = fd < 0 ? -errno : fd;
	}
	owner_leave();
	return fd;
}

static int write_file(const struct git_store *store, const char *path, const char *text)
{
	scoped_fd int fd = make_file(store, path);

	return fd < 0 ? fd : fdio_write_all(fd, text, strlen(text));
}

static int remove_store(const struct git_store *store)
{
	int r = owner_become(store->uid, store->gid);

	if (r == 0)
		r = path_remove_all(store->objects_fd, store->name);
	owner_leave();
	return r;
}

static int write_frame(struct git_store *store, const char *id)
{
	static const char *const folders[] = {
		"objects", "objects/info", "objects/pack", "refs", "refs/heads"};
	bool is_256 = strlen(id) == GIT_TEXT_ID_SIZE - 1;
	scoped_mem char *ref = mem_printf("%s\n", id);
	scoped_mem char *config = mem_printf(CONFIG "%s", is_256, is_256 ? CONFIG_256 : "");
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
		r = make_folder(store, store->fd, folders[i]);
	if (r == 0)
		r = write_file(store, "config", config);
	if (r == 0)
		r = write_file(store, "HEAD", "ref: refs/heads/" GIT_STORE_BRANCH "\n");
	if (r == 0)
		r = write_file(store, "refs/heads/" GIT_STORE_BRANCH, ref);
	/* What the host has is not copied: it is seen through this, which leads from here to the host's objects. */
	if (r == 0)
		r = write_file(store, "objects/info/alternates", "../..\n");
	return r;
}

static int make_frame(struct git_store *store, const char *id)
{
	int r = remove_store(store);

	if (r == 0)
		r = make_folder(store, store->objects_fd, store->name);
	if (r < 0)
		return r;
	store->fd = beneath_open(store->objects_fd, store->name, O_RDONLY | O_DIRECTORY);
	return store->fd < 0 ? store->fd : write_frame(store, id);
}

/* ---- copying ---- */

struct copy {
	struct git_store *store;
	const char *folder; /* "9a", "pack" */
	int from, host;     /* that folder of the sandbox; of the host, or -1 */
	bool is_pack;
};

/* A name says what a file of objects holds, so the host's own is as good; of packs, one with the same size. */
static bool is_on_host(const struct copy *copy, const char *name, const struct stat *st)
{
	struct stat host;

	return copy->host >= 0 && fstatat(copy->host, name, &host, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(host.st_mode) && (!copy->is_pack || host.st_size == st->st_size);
}

/* Gone meanwhile, a link, a pipe: no object. */
static bool is_none(int r)
{
	return r == -ENOENT || r == -ELOOP || r == -EBADF || r == -ENXIO;
}

static int copy_file(const struct copy *copy, const char *name)
{
	struct git_store *store = copy->store;
	struct stat st;
	scoped_fd int from = content_open(copy->from, name, &st), to = -1;
	scoped_mem char *path = mem_printf("objects/%s/%s", copy->folder, name);
	int r;

	if (from < 0)
		return is_none(from) ? 0 : from;
	if (is_on_host(copy, name, &st))
		return 0;
	if (++store->n_copied > FILES_MAX)
		return -E2BIG;
	to = make_file(store, path);
	r = to < 0 ? to : content_copy(from, to);
	if (r < 0 || !copy->is_pack)
		return r;
	store->packs = mem_grow(store->packs, store->n_packs + 1, sizeof(*store->packs));
	store->packs[store->n_packs++] = take(&path);
	return 0;
}

static int copy_names(const struct copy *copy)
{
	int fd = openat(copy->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		r = -errno;
		scoped_close(&fd);
		return r;
	}
	while (r == 0 && (errno = 0, e = readdir(dir)))
		if (git_text_is_object_file(e->d_name, copy->is_pack))
			r = copy_file(copy, e->d_name);
	if (r == 0 && errno)
		r = -errno;
	closedir(dir);
	return r;
}

/* What is no folder there holds no object. */
static int copy_folder(
	struct git_store *store, const struct git_source *source, const char *folder, bool is_pack)
{
	scoped_mem char *path = mem_printf("objects/%s", folder);
	scoped_fd int from = beneath_open(source->fd, path, O_RDONLY | O_DIRECTORY);
	scoped_fd int host = beneath_open(store->objects_fd, folder, O_RDONLY | O_DIRECTORY);
	const struct copy copy = {
		.store = store, .folder = folder, .from = from, .host = host, .is_pack = is_pack};
	int r;

	if (from < 0)
		return 0;
	r = is_pack ? 0 : make_folder(store, store->fd, path);
	return r < 0 ? r : copy_names(&copy);
}

static int copy_all(struct git_store *store, const struct git_source *source)
{
	int r = copy_folder(store, source, "pack", true);

	for (unsigned i = 0; r == 0 && i < FOLDERS; i++) {
		char folder[PATH_LEN];

		(void)snprintf(folder, sizeof(folder), "%02x", i);
		r = copy_folder(store, source, folder, false);
	}
	return r;
}

int git_store_make(int git_fd, const char *name, uid_t uid, gid_t gid,
	const struct git_source *source, struct git_store *ret_store, struct err *err)
{
	int r;

	*ret_store = (struct git_store){.objects_fd = -1, .fd = -1, .uid = uid, .gid = gid};
	ret_store->name = mem_printf("tmp_cloche_%s", name);
	ret_store->objects_fd = beneath_open(git_fd, "objects", O_RDONLY | O_DIRECTORY);
	if (ret_store->objects_fd < 0)
		return err_set(err, ret_store->objects_fd,
			"open the object folder of the host's repository: %m");
	r = make_frame(ret_store, source->id);
	if (r < 0)
		return err_set(err, r, "write to the object folder of the host's repository: %m");
	r = copy_all(ret_store, source);
	return r < 0 ? err_set(err, r, "copy the sandbox's commits to the host: %m") : 0;
}

void git_store_done(struct git_store *store)
{
	if (store->objects_fd >= 0)
		(void)remove_store(store); /* what stays, git gc removes */
	scoped_close(&store->fd);
	scoped_close(&store->objects_fd);
	for (size_t i = 0; i < store->n_packs; i++)
		free(store->packs[i]);
	free(store->packs);
	free(store->name);
	*store = (struct git_store){.objects_fd = -1, .fd = -1};
}
