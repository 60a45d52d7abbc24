/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/udp_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/flow_head.h"
#include "gateway/gateway_internal.h"
#include "util/scoped.h"

/* Many flows have the same address here: it is the other end that tells them apart. */
static int bind_to(int fd, const struct sockaddr_storage *own, socklen_t len)
{
	int one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	if (own->ss_family == AF_INET6 &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof(one)) < 0)
		return -errno;
	return bind(fd, (const struct sockaddr *)own, len) < 0 ? -errno : 0;
}

int udp_socket_inside(struct gateway *gw, const struct netcatch_key *key)
{
	struct sockaddr_storage own, peer;
	socklen_t own_len = flow_sockaddr(key->dst, key->dport, &own);
	socklen_t peer_len = flow_sockaddr(key->src, key->sport, &peer);
	scoped_fd int fd = inside_socket(gw->inside, own.ss_family, SOCK_DGRAM);
	int r;

	if (fd < 0)
		return fd;
	r = bind_to(fd, &own, own_len);
	if (r == 0 && connect(fd, (struct sockaddr *)&peer, peer_len) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

int udp_socket_outside(const uint8_t address[16], uint16_t port)
{
	struct sockaddr_storage to;
	socklen_t len = flow_sockaddr(address, port, &to);
	scoped_fd int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) < 0)
		return -errno;
	return take_fd(&fd);
}
