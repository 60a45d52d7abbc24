/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/idrange.h"
#include "sandbox/rawcall.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define LAST       (IDRANGE_LEN - 1)
#define MAP_TEXT   (IDMAP_MAX_LINES * 36)
#define PATH_LEN   64
#define STACK_SIZE 4096
/* Where the filesystem's root id goes when owner left no place for it: not nobody, so that it can be told. */
#define SPARE_ID 65533u

static void add(struct idmap *map, uint32_t disk, uint32_t host, uint32_t n)
{
	if (n > 0)
		map->lines[map->n++] = (struct idmap_line){.disk = disk, .host = host, .n = n};
}

void idmap_all(struct idmap *map, uint32_t owner, uint32_t base)
{
	uint32_t spare = owner <= LAST ? owner : SPARE_ID;

	map->n = 0;
	if (owner == 0) {
		add(map, 0, base, IDRANGE_LEN);
		return;
	}
	add(map, owner, base, 1);
	add(map, 0, base + spare, 1);
	add(map, 1, base + 1, spare - 1);
	add(map, spare + 1, base + spare + 1, LAST - spare);
}

void idmap_owner_only(struct idmap *map, uint32_t owner, uint32_t base)
{
	map->n = 0;
	add(map, owner, base, 1);
	add(map, base + 1, base + 1, LAST);
}

int idmap_is_plain(const struct idmap *map, uint32_t base)
{
	const struct idmap_line *l = &map->lines[0];

	return map->n == 1 && l->disk == 0 && l->host == base && l->n == IDRANGE_LEN;
}

static int write_map(pid_t pid, const char *which, const struct idmap *map)
{
	char path[PATH_LEN], text[MAP_TEXT];
	size_t len = 0;

	for (size_t i = 0; i < map->n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%u %u %u\n",
			map->lines[i].disk, map->lines[i].host, map->lines[i].n);
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, which);
	return fdio_put(AT_FDCWD, path, text);
}

/* Runs in the caller's memory and touches none of it. */
static __attribute__((noreturn)) int wait_for_kill(void *unused)
{
	for (;;)
		(void)rawcall(__NR_pause);
}

int idmap_open_userns(const struct idmap *uids, const struct idmap *gids, struct err *err)
{
	char stack[STACK_SIZE] __attribute__((aligned(16)));
	char path[PATH_LEN];
	sigset_t all, old;
	pid_t pid;
	int r, fd = -1;

	/* A handler of ours must not run in that child, which shares our memory. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(wait_for_kill, stack + STACK_SIZE,
		CLONE_VM | CLONE_FILES | CLONE_NEWUSER | SIGCHLD, NULL);
	r = pid < 0 ? -errno : 0;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		return err_set(err, r, "make a user namespace for an id map: %m");
	r = write_map(pid, "uid_map", uids);
	if (r == 0)
		r = write_map(pid, "gid_map", gids);
	if (r == 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? err_set(err, r, "write an id map: %m") : fd;
}
