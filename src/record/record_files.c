/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define READ_STEP 65536
#define WALK_MAX  1000000U /* entries of one folder that are looked at */

static const char *const folders[] = {"outputs", "casts", "changes"};
#define N_FOLDERS (sizeof(folders) / sizeof(folders[0]))

static int open_folder(int dirfd, const char *folder)
{
	int fd = openat(dirfd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The folder's name, and the file's in it; NULL for a path that is none of ours. */
static const char *split(const char *path, const char **ret_name)
{
	for (size_t i = 0; i < N_FOLDERS; i++) {
		size_t n = strlen(folders[i]);

		if (!slice_starts(slice_of(path), folders[i]) || path[n] != '/')
			continue;
		*ret_name = path + n + 1;
		return record_internal_is_name(*ret_name) ? folders[i] : NULL;
	}
	return NULL;
}

int record_files_create(const struct record *record, const char *path)
{
	const char *name, *folder = split(path, &name);
	scoped_fd int fd = -1;
	int r;

	if (!folder)
		return -EINVAL;
	r = record_internal_folder(record->dirfd, folder, record->uid, record->gid);
	if (r < 0)
		return r;
	fd = open_folder(record->dirfd, folder);
	return fd < 0 ? fd : record_internal_create(fd, name, 0, record->uid, record->gid);
}

int record_files_open(int dirfd, const char *path)
{
	const char *name, *folder = split(path, &name);
	scoped_fd int fd = folder ? open_folder(dirfd, folder) : -EINVAL;

	return fd < 0 ? fd : record_internal_open(fd, name, O_RDONLY, NULL);
}

int record_files_hash(int fd, struct digest *ret_digest, uint64_t *ret_bytes)
{
	char step[READ_STEP];
	ssize_t n;

	digest_init(ret_digest);
	*ret_bytes = 0;
	while ((n = fdio_read_full(fd, step, sizeof(step))) > 0) {
		digest_add(ret_digest, step, (size_t)n);
		*ret_bytes += (uint64_t)n;
	}
	return n < 0 ? (int)n : 0;
}

void record_files_enter(
	struct record *record, const char *path, const struct digest *digest, uint64_t bytes)
{
	struct str *out = record_journal_line_begin(&record->log);
	struct jsonw j = jsonw_to(out);
	char hex[DIGEST_HEX_SIZE];

	digest_value_hex(digest, hex);
	jsonw_object(&j);
	jsonw_ktext(&j, "file", path);
	jsonw_ktext(&j, "sha256", hex);
	jsonw_kint(&j, "bytes", (int64_t)bytes);
	jsonw_object_end(&j);
	(void)record_journal_line_end(&record->log, 0); /* nobody follows these lines */
}

/* By one name and then by the other, so that a list that is there is whole. */
static int write_whole(int folder, const char *part, const char *name, struct slice bytes,
	const struct record *record)
{
	scoped_fd int fd = record_internal_create(folder, part, 0, record->uid, record->gid);
	int r = fd < 0 ? fd : fdio_write_all(fd, bytes.p, bytes.len);

	if (r == 0 && renameat(folder, part, folder, name) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		(void)unlinkat(folder, part, 0); /* the reason it failed is the one to tell */
	return r;
}

int record_files_put(struct record *record, const char *path, struct slice bytes)
{
	const char *name, *folder = split(path, &name);
	scoped_mem char *part = folder ? mem_printf("%s" RECORD_FILES_PART, name) : NULL;
	scoped_fd int fd = -1;
	struct digest digest;
	int r = folder ? record_internal_folder(record->dirfd, folder, record->uid, record->gid)
	               : -EINVAL;

	if (r < 0)
		return r;
	fd = open_folder(record->dirfd, folder);
	if (fd < 0)
		return fd;
	if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	r = write_whole(fd, part, name, bytes, record);
	if (r < 0)
		return r;
	digest_init(&digest);
	digest_add(&digest, bytes.p, bytes.len);
	record_files_enter(record, path, &digest, bytes.len);
	return 0;
}

void record_files_drop_part(int dirfd, const char *path)
{
	const char *name, *folder = split(path, &name);
	scoped_fd int fd = folder ? open_folder(dirfd, folder) : -EINVAL;

	if (fd >= 0)
		(void)unlinkat(fd, name, 0); /* else verify tells of it */
}

static int walk_folder(
	DIR *dir, const char *folder, void (*on_path)(void *ctx, const char *path), void *ctx)
{
	struct dirent *e;

	for (unsigned n = 0; n < WALK_MAX && (errno = 0, e = readdir(dir)); n++) {
		scoped_mem char *path = mem_printf("%s/%s", folder, e->d_name);

		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			on_path(ctx, path);
	}
	return e ? 0 : -errno;
}

int record_files_walk(int dirfd, void (*on_path)(void *ctx, const char *path), void *ctx)
{
	for (size_t i = 0; i < N_FOLDERS; i++) {
		scoped_fd int fd = open_folder(dirfd, folders[i]);
		DIR *dir;
		int r;

		if (fd == -ENOENT)
			continue;
		dir = fd < 0 ? NULL : fdopendir(fd);
		if (!dir)
			return fd < 0 ? fd : -errno;
		(void)take_fd(&fd); /* dir's now */
		r = walk_folder(dir, folders[i], on_path, ctx);
		closedir(dir);
		if (r < 0)
			return r;
	}
	return 0;
}
