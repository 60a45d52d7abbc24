/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/publish.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/mem.h"

#define WAITING_MAX 128 /* connections that are not accepted yet, of one port */

static socklen_t address_of(const struct spec_publish *publish, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){0};
	if (inet_pton(AF_INET, publish->address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(publish->host_port);
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, publish->address, &v6->sin6_addr) != 1)
		return 0;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(publish->host_port);
	return sizeof(*v6);
}

static int listen_at(const struct spec_publish *publish, struct err *err)
{
	struct sockaddr_storage address;
	socklen_t len = address_of(publish, &address);
	scoped_fd int fd =
		socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	int one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
		(address.ss_family == AF_INET6 &&
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) ||
		bind(fd, (const struct sockaddr *)&address, len) < 0 || listen(fd, WAITING_MAX) < 0)
		return err_set(err, -errno, "publish port %u of the sandbox at port %u of %s: %m",
			publish->port, publish->host_port, publish->address);
	return take_fd(&fd);
}

int publish_open(struct supervisor *sup, struct err *err)
{
	const struct spec_network *net = &sup->spec->network;

	if (net->n_publish > GATEWAY_PUBLISHED_MAX)
		return err_set(err, -E2BIG, "more than %d published ports", GATEWAY_PUBLISHED_MAX);
	for (size_t i = 0; i < net->n_publish; i++) {
		int fd = listen_at(&net->publish[i], err);

		if (fd < 0)
			return fd;
		sup->published[sup->n_published++] = fd;
	}
	return 0;
}

void publish_close(struct supervisor *sup)
{
	while (sup->n_published > 0)
		close(sup->published[--sup->n_published]);
}
