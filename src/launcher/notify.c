/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/mem.h"
#include "util/scoped.h"

#define VARIABLE "NOTIFY_SOCKET"

int notify_open(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *place = getenv(VARIABLE);
	size_t len = place ? strlen(place) : 0;
	scoped_fd int fd = -1;

	if (len < 2 || len >= sizeof(to.sun_path) || (place[0] != '/' && place[0] != '@'))
		len = 0;
	else
		memcpy(to.sun_path, place, len);
	(void)unsetenv(VARIABLE);
	if (len == 0)
		return -1;
	if (to.sun_path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		return -1;
	return take_fd(&fd);
}

void notify_send(int fd, const char *lines)
{
	if (fd >= 0)
		(void)send(fd, lines, strlen(lines), MSG_NOSIGNAL);
}

void notify_reloading(int fd)
{
	scoped_mem char *lines =
		mem_printf("RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(clock_mono_ns() / 1000));

	notify_send(fd, lines);
}
