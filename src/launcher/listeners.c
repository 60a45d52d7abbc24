/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define BACKLOG 1024
#define GROUP   "cloche"

static int split(const char *place, char **ret_host, const char **ret_port)
{
	const char *colon = strrchr(place, ':');
	bool is_v6 = place[0] == '[';

	if (!colon || colon == place || (is_v6 && colon[-1] != ']'))
		return -EINVAL;
	*ret_host = mem_copy(place + is_v6, (size_t)(colon - place) - 2 * (size_t)is_v6);
	*ret_port = colon + 1;
	return 0;
}

static int bind_to(const struct addrinfo *info)
{
	const int on = 1;
	scoped_fd int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(
		fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* bind says what matters */
	if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

int listeners_open_tcp(const char *place, struct err *err)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM};
	scoped_mem char *host = NULL;
	struct addrinfo *info = NULL;
	const char *port;
	int fd;

	if (split(place, &host, &port) < 0 || getaddrinfo(host, port, &hints, &info) != 0)
		return err_set(err, -EINVAL,
			"listen on '%s': want ADDRESS:PORT, such as 127.0.0.1:7410 or [::1]:7410",
			place);
	fd = bind_to(info);
	freeaddrinfo(info);
	return fd < 0 ? err_set(err, fd, "listen on '%s': %m", place) : fd;
}

static bool is_in_use(const struct sockaddr_un *address)
{
	scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

static int make_folder(const char *path)
{
	scoped_mem char *folder = mem_dup(path);
	char *slash = strrchr(folder, '/');

	if (!slash || slash == folder)
		return 0;
	*slash = '\0';
	return path_make_all(folder, 0755);
}

static int open_to_group(const char *path)
{
	const struct group *group = getgrnam(GROUP);

	if (group && chown(path, 0, group->gr_gid) < 0)
		return -errno;
	return chmod(path, group ? 0660 : 0600) < 0 ? -errno : 0;
}

int listeners_open_unix(const char *path, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before;
	int r = fd < 0 ? -errno : 0;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
		(int)sizeof(address.sun_path))
		return err_set(err, -ENAMETOOLONG,
			"the path of the socket '%s' is longer than the kernel takes", path);
	if (r == 0)
		r = make_folder(path);
	if (r == 0 && is_in_use(&address))
		r = -EADDRINUSE;
	if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		r = -errno;
	before = umask(0177);
	if (r == 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	umask(before);
	if (r == 0)
		r = open_to_group(path);
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "listen on '%s': %m", path) : take_fd(&fd);
}

static int option_of(int fd, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -1 : value;
}

int listeners_check_passed(int fd, const char *name, bool *ret_is_unix, struct err *err)
{
	int domain = option_of(fd, SO_DOMAIN);
	int r = option_of(fd, SO_TYPE) == SOCK_STREAM && option_of(fd, SO_ACCEPTCONN) == 1 &&
	                        (domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX)
	                ? 0
	                : -EINVAL;

	if (r < 0)
		return err_set(err, r,
			"the socket '%s' that was passed does not listen for streams over TCP or "
			"at a Unix socket",
			name);
	*ret_is_unix = domain == AF_UNIX;
	r = fdio_set_nonblock(fd, true);
	return r < 0 ? err_set(err, r, "the socket '%s' that was passed: %m", name) : 0;
}
