/* SPDX-License-Identifier: Apache-2.0 */
#include "control/plane_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/scoped.h"

#define FOLDER  "inside"
#define PREFIX  "cloche/inside/"
#define BACKLOG 1024

static int make_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int open_folder(const char *state_dir)
{
	scoped_mem char *path = mem_printf("%s/" FOLDER, state_dir);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Through a descriptor of the folder: a socket's address is short, a state's path need not be. */
static struct sockaddr_un address_of(int dir, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.*s", dir, ID_LEN,
		name);
	return address;
}

static int connect_to(int sock, int dir, const char *name)
{
	struct sockaddr_un address = address_of(dir, name);

	return connect(sock, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

/* Calls on_name for each socket in the folder until one gives 0; else the last one's errno, -ENOENT where there is none. */
static int each(int dir, int (*on_name)(int dir, const char *name, void *arg), void *arg)
{
	int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = -ENOENT;
	DIR *list = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;

	if (!list) {
		scoped_close(&again);
		return -errno;
	}
	while (r != 0 && (entry = readdir(list)))
		if (id_is_valid("in", entry->d_name))
			r = on_name(dir, entry->d_name, arg);
	closedir(list);
	return r;
}

/* ---- the launcher's side ---- */

static int remove_stale(int dir, const char *name, void *arg)
{
	scoped_fd int sock = make_socket();

	(void)arg;
	if (sock >= 0 && connect_to(sock, dir, name) == -ECONNREFUSED)
		(void)unlinkat(dir, name, 0); /* one that stays is passed over */
	return 1;
}

static int open_own_folder(const char *state_dir)
{
	scoped_mem char *path = mem_printf("%s/" FOLDER, state_dir);
	struct stat st;
	int fd;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open_folder(state_dir);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
		return fd;
	close(fd);
	return -EPERM;
}

int plane_socket_listen(const char *state_dir, char ret_name[ID_SIZE], struct err *err)
{
	scoped_fd int dir = open_own_folder(state_dir), sock = make_socket();
	struct sockaddr_un address;

	if (dir < 0 || sock < 0)
		return err_set(err, dir < 0 ? dir : sock, "open '%s/" FOLDER "': %m", state_dir);
	id_new("in", ret_name);
	address = address_of(dir, ret_name);
	/* Locked, so that none is taken for stale between its bind and its listen. */
	if (flock(dir, LOCK_EX) < 0)
		return err_set(err, -errno, "lock '%s/" FOLDER "': %m", state_dir);
	(void)each(dir, remove_stale, NULL);
	if (bind(sock, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(sock, BACKLOG) < 0)
		return err_set(err, -errno, "listen in '%s/" FOLDER "': %m", state_dir);
	return take_fd(&sock);
}

void plane_socket_remove(const char *state_dir, const char *name)
{
	scoped_fd int dir = open_folder(state_dir);

	if (dir >= 0)
		(void)unlinkat(dir, name, 0); /* else the next one that starts does */
}

/* ---- the supervisor's ---- */

static int bind_name(int sock, const char *sandbox)
{
	struct sockaddr_un own = {.sun_family = AF_UNIX};
	uint64_t random;
	int n;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EAGAIN;
	n = snprintf(own.sun_path + 1, sizeof(own.sun_path) - 1, PREFIX "%s/%016llx", sandbox,
		(unsigned long long)random);
	return bind(sock, (const struct sockaddr *)&own,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0
	               ? -errno
	               : 0;
}

static int try_one(int dir, const char *name, void *arg)
{
	return connect_to(*(int *)arg, dir, name);
}

int plane_socket_connect(const char *state_dir, const char *sandbox)
{
	scoped_fd int dir = open_folder(state_dir), sock = make_socket();
	int r = dir < 0 ? dir : sock < 0 ? sock : bind_name(sock, sandbox);

	if (r == 0)
		r = each(dir, try_one, &sock);
	if (r == -ENOENT)
		r = -ECONNREFUSED;
	return r < 0 ? r : take_fd(&sock);
}

/* ---- the server's ---- */

int plane_socket_caller(const struct sockaddr_un *from, socklen_t len, char ret_sandbox[ID_SIZE])
{
	size_t n = len < offsetof(struct sockaddr_un, sun_path)
	                   ? 0
	                   : len - offsetof(struct sockaddr_un, sun_path);
	const char *name = from->sun_path + 1;
	char sandbox[ID_SIZE] = "";

	if (from->sun_family != AF_UNIX || n < 1 + sizeof(PREFIX) + ID_LEN ||
		n > sizeof(from->sun_path) || from->sun_path[0] != '\0' ||
		memcmp(name, PREFIX, strlen(PREFIX)) != 0)
		return -EINVAL;
	name += strlen(PREFIX);
	memcpy(sandbox, name, ID_LEN);
	if (name[ID_LEN] != '/' || !id_is_valid("sb", sandbox))
		return -EINVAL;
	memcpy(ret_sandbox, sandbox, ID_SIZE);
	return 0;
}
