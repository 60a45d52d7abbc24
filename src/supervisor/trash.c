/* SPDX-License-Identifier: Apache-2.0 */
/* The thread owns its copy of the path and touches nothing else; it may be cut off anywhere by the end of
 * the process, since whoever sweeps next goes on. */
#include "supervisor/trash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/aside.h"
#include "util/mem.h"
#include "util/path.h"

#define SMALL_ENTRIES 200       /* files and folders that may be moved aside */
#define SMALL_BYTES   (1 << 20) /* and what they may hold in all */
#define HEAPS_MAX     64        /* leftovers in the trash: over it, each is removed at once */
#define SWEEP_MS      200       /* after the start: the command is at work then */

struct size {
	unsigned entries;
	int64_t bytes;
};

static bool is_small(const struct size *size)
{
	return size->entries <= SMALL_ENTRIES && size->bytes <= SMALL_BYTES;
}

/* Adds what lies below dirfd, which it closes, until it is no longer small. */
static void measure(int fd, struct size *size)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		close(fd);
		return;
	}
	while (is_small(size) && (e = readdir(dir))) {
		struct stat st;
		int below;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		size->entries++;
		if (e->d_type != DT_DIR) {
			if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
				size->bytes += st.st_blocks * 512;
			continue;
		}
		below = openat(
			dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			measure(below, size);
	}
	closedir(dir);
}

/* One link for each folder in it, but where the filesystem counts none for folders (btrfs). */
static unsigned n_heaps(const char *trash)
{
	struct stat st;
	unsigned n = 0;
	DIR *dir;

	if (stat(trash, &st) == 0 && st.st_nlink >= 2)
		return (unsigned)st.st_nlink - 2;
	dir = opendir(trash);
	while (dir && n < HEAPS_MAX + 2 && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n > 2 ? n - 2 : 0;
}

int trash_remove(const char *state_dir, const char *dir, const char *id)
{
	scoped_mem char *trash = mem_printf("%s/trash", state_dir), *aside = NULL;
	struct size size = {0};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool may_wait;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	measure(fd, &size);
	may_wait = is_small(&size) && n_heaps(trash) < HEAPS_MAX;
	r = aside_move(trash, dir, id, &aside);
	if (aside_is_hindered(r))
		return aside_remove_here(dir, "lock");
	if (r == 0 && !may_wait)
		(void)path_remove_all(AT_FDCWD, aside); /* what stays, the next sweep removes */
	return r;
}

struct trash_sweep {
	struct loop_timer *timer;
	char *trash;
};

static void *sweep_thread(void *arg)
{
	scoped_mem char *trash = arg;

	(void)aside_empty(trash); /* the next sweep tries again */
	return NULL;
}

static void on_time(void *ctx)
{
	struct trash_sweep *sweep = ctx;
	char *trash = mem_dup(sweep->trash);
	pthread_t thread;

	if (pthread_create(&thread, NULL, sweep_thread, trash) != 0) {
		free(trash); /* another time */
		return;
	}
	pthread_detach(thread);
}

struct trash_sweep *trash_sweep_new(struct loop *loop, const char *state_dir)
{
	struct trash_sweep *sweep = new0(struct trash_sweep);

	sweep->trash = mem_printf("%s/trash", state_dir);
	sweep->timer = loop_timer_new(loop, on_time, sweep);
	loop_timer_set(sweep->timer, SWEEP_MS);
	return sweep;
}

void trash_sweep_free(struct trash_sweep *sweep)
{
	if (!sweep)
		return;
	loop_timer_free(sweep->timer);
	free(sweep->trash);
	free(sweep);
}
