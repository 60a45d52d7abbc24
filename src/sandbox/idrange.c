/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/idrange.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define SUBIDS_MAX (256u * 1024)
#define PATH_LEN   4096
#define NAME_LEN   16
#define OWNER_MAX  128
#define KEPT       " kept" /* behind the owner's id: not free without its lock either */

int idrange_is_given(const char *subids, uint32_t base)
{
	unsigned long long from, n;
	const char *line = subids;

	for (; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		if (sscanf(line, "%*[^:\n]:%llu:%llu", &from, &n) != 2 ||
			strncmp(line, "cloche:", 7) == 0)
			continue;
		if (n > 0 && from < (unsigned long long)base + IDRANGE_LEN && from + n > base)
			return 1;
	}
	return 0;
}

static uint32_t first_base(void)
{
	const char *text = getenv("CLOCHE_ID_BASE");
	unsigned long v = text ? strtoul(text, NULL, 10) : 0;

	/* Never the range in which real users live. */
	return v >= IDRANGE_LEN && v < UINT32_MAX - IDRANGE_LEN ? (uint32_t)v : IDRANGE_BASE;
}

static uint32_t start_slot(const char *id)
{
	uint32_t h = 2166136261u;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 16777619u;
	return h % IDRANGE_MAX;
}

static bool is_kept(const char *text)
{
	const char *at = strstr(text, KEPT);

	return at && at[strlen(KEPT)] == '\0';
}

/* Whether the file says that it is kept for somebody else than id. */
static bool is_kept_for_other(int fd, const char *id)
{
	char text[OWNER_MAX + 1];
	ssize_t n = pread(fd, text, OWNER_MAX, 0);

	text[n > 0 ? n : 0] = '\0';
	return is_kept(text) &&
	       (strncmp(text, id, strlen(id)) != 0 || strcmp(text + strlen(id), KEPT) != 0);
}

/* The lock counts only on the file that the name still means: its last holder may just have removed it. */
static int try_slot(int dirfd, uint32_t slot, const char *id)
{
	char name[NAME_LEN];
	struct stat a, b;
	scoped_fd int fd = -1;

	(void)snprintf(name, sizeof(name), "%u", slot);
	fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	if (fstat(fd, &a) < 0 || fstatat(dirfd, name, &b, AT_SYMLINK_NOFOLLOW) < 0 ||
		a.st_ino != b.st_ino || is_kept_for_other(fd, id))
		return -EWOULDBLOCK;
	if (ftruncate(fd, 0) < 0 || pwrite(fd, id, strlen(id), 0) < 0)
		return -errno;
	return take_fd(&fd);
}

/* 0 where none was chosen. */
static uint32_t base_for_layers(const char *state_dir)
{
	scoped_mem char *path = mem_printf("%s/layers/base", state_dir);
	scoped_str struct str text = {0};

	if (fdio_read_file(AT_FDCWD, path, NAME_LEN, &text) < 0 || !text.p)
		return 0;
	return (uint32_t)strtoul(text.p, NULL, 10);
}

static bool overlaps(uint32_t a, uint32_t b)
{
	return b != 0 && a < (uint64_t)b + IDRANGE_LEN && b < (uint64_t)a + IDRANGE_LEN;
}

static bool is_free(const struct str *subuid, const struct str *subgid, uint32_t base)
{
	return !(subuid->p && idrange_is_given(subuid->p, base)) &&
	       !(subgid->p && idrange_is_given(subgid->p, base));
}

/* One id for each slot, right below the ranges; where real users may live there, right above them. */
static uint32_t gateway_id(uint32_t first, uint32_t slot)
{
	return (first >= 2 * IDRANGE_LEN ? first - IDRANGE_LEN
					 : first + IDRANGE_MAX * IDRANGE_LEN) +
	       slot;
}

static int open_folder(const char *state_dir, struct err *err)
{
	char path[PATH_LEN];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/ids", state_dir);
	if (path_make_all(path, 0700) < 0)
		return err_set(err, -errno, "make '%s': %m", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_set(err, -errno, "open '%s': %m", path) : fd;
}

static struct idrange range_of(uint32_t first, uint32_t slot, int lock_fd)
{
	return (struct idrange){.base = first + slot * IDRANGE_LEN,
		.lock_fd = lock_fd,
		.slot = slot,
		.gateway = gateway_id(first, slot)};
}

int idrange_open_again(struct idrange *range, const char *state_dir, const char *id, uint32_t base,
	struct err *err)
{
	uint32_t first = first_base(), slot = (base - first) / IDRANGE_LEN;
	scoped_fd int dirfd = open_folder(state_dir, err);
	int fd;

	*range = (struct idrange){.lock_fd = -1};
	if (dirfd < 0)
		return dirfd;
	if (base < first || (base - first) % IDRANGE_LEN != 0 || slot >= IDRANGE_MAX)
		return err_set(err, -EBUSY,
			"its user ids from %u on are not Cloche's any more: is CLOCHE_ID_BASE set? "
			"`cloche fork %s` makes a new sandbox of its files",
			base, id);
	fd = try_slot(dirfd, slot, id);
	if (fd < 0)
		return err_set(err, fd == -EWOULDBLOCK ? -EBUSY : fd,
			"its user ids from %u on cannot be had back: `cloche fork %s` makes a new "
			"sandbox of its files",
			base, id);
	*range = range_of(first, slot, fd);
	return 0;
}

int idrange_keep(struct idrange *range, const char *id)
{
	char text[OWNER_MAX];
	int n = snprintf(text, sizeof(text), "%s" KEPT, id);

	if (range->lock_fd < 0 || ftruncate(range->lock_fd, 0) < 0 ||
		pwrite(range->lock_fd, text, (size_t)n, 0) != n)
		return -errno;
	(void)close(range->lock_fd);
	range->lock_fd = -1;
	return 0;
}

int idrange_open(struct idrange *range, const char *state_dir, const char *id, struct err *err)
{
	scoped_str struct str subuid = {0}, subgid = {0};
	scoped_fd int dirfd = open_folder(state_dir, err);
	uint32_t first = first_base(), start = start_slot(id);
	int fd;

	*range = (struct idrange){.lock_fd = -1};
	if (dirfd < 0)
		return dirfd;
	/* Neither file has to be there. */
	(void)fdio_read_file(AT_FDCWD, "/etc/subuid", SUBIDS_MAX, &subuid);
	(void)fdio_read_file(AT_FDCWD, "/etc/subgid", SUBIDS_MAX, &subgid);
	for (uint32_t i = 0; i < IDRANGE_MAX; i++) {
		uint32_t slot = (start + i) % IDRANGE_MAX;
		uint64_t base = (uint64_t)first + (uint64_t)slot * IDRANGE_LEN;

		if (base + IDRANGE_LEN > UINT32_MAX || !is_free(&subuid, &subgid, (uint32_t)base))
			continue;
		fd = try_slot(dirfd, slot, id);
		if (fd == -EWOULDBLOCK)
			continue;
		if (fd < 0)
			return err_set(err, fd, "lock an id range in '%s/ids': %m", state_dir);
		/* Asked behind the lock, which whoever chooses it holds meanwhile. */
		if (overlaps((uint32_t)base, base_for_layers(state_dir))) {
			(void)close(fd);
			continue;
		}
		*range = range_of(first, slot, fd);
		return 0;
	}
	return err_set(err, -EUSERS,
		"no free id range: %u sandboxes live or are suspended, or /etc/subuid gives all of "
		"them away",
		IDRANGE_MAX);
}

/* Whole or not at all, and the first one's. */
static int create_base(const char *path, const char *text)
{
	scoped_mem char *temp = mem_printf("%s.%d", path, (int)getpid());
	int r = fdio_replace(AT_FDCWD, temp, text, strlen(text), 0600);

	if (r == 0 && link(temp, path) < 0 && errno != EEXIST)
		r = -errno;
	(void)unlink(temp);
	return r;
}

int idrange_for_layers(const char *state_dir, uint32_t *ret_base, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/layers/base", state_dir);
	char text[NAME_LEN];
	struct idrange range;
	int r;

	*ret_base = base_for_layers(state_dir);
	if (*ret_base)
		return 0;
	/* Of several who choose at once each has another range, and the file that was first decides. */
	r = idrange_open(&range, state_dir, "layers", err);
	if (r < 0)
		return r;
	(void)snprintf(text, sizeof(text), "%u\n", range.base);
	r = create_base(path, text);
	idrange_close(&range, state_dir);
	*ret_base = r == 0 ? base_for_layers(state_dir) : 0;
	if (*ret_base == 0)
		return err_set(err, r < 0 ? r : -EIO, "write '%s': %m", path);
	return 0;
}

void idrange_close(struct idrange *range, const char *state_dir)
{
	char path[PATH_LEN];

	if (range->lock_fd < 0)
		return;
	(void)snprintf(path, sizeof(path), "%s/ids/%u", state_dir, range->slot);
	(void)unlink(path); /* a file that stays is taken again as it is */
	(void)close(range->lock_fd);
	range->lock_fd = -1;
}

static bool is_owner(struct slice text, const char *id)
{
	size_t len = strlen(id);

	return text.len >= len && memcmp(text.p, id, len) == 0 &&
	       (text.len == len || slice_is((struct slice){text.p + len, text.len - len}, KEPT));
}

void idrange_clean(const char *state_dir, const char *id)
{
	char path[PATH_LEN];
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/ids", state_dir);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		scoped_str struct str owner = {0};
		scoped_fd int fd =
			openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd < 0 || fdio_read_all(fd, PATH_LEN, &owner) < 0 ||
			!is_owner(str_slice(&owner), id))
			continue;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
	(void)closedir(dir);
}
