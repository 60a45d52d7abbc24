/* SPDX-License-Identifier: Apache-2.0 */
/* ip(7), ipv6(7), udp(7). */
#include "gateway/datagram.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow_head.h"

#define CONTROL_BYTES 256

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* What one piece of control data says of the destination. */
static bool read_control(const struct cmsghdr *c, struct netcatch_key *key)
{
	struct sockaddr_storage to;
	struct in_pktinfo info4;
	struct in6_pktinfo info6;

	if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR) ||
		(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR)) {
		memset(&to, 0, sizeof(to));
		memcpy(&to, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
		flow_from_sockaddr(&to, key->dst, &key->dport);
		return true;
	}
	if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
		memcpy(&info4, CMSG_DATA(c), sizeof(info4));
		memcpy(key->dst, mapped, sizeof(mapped));
		memcpy(key->dst + sizeof(mapped), &info4.ipi_addr, sizeof(info4.ipi_addr));
		return true;
	}
	if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
		memcpy(&info6, CMSG_DATA(c), sizeof(info6));
		memcpy(key->dst, &info6.ipi6_addr, sizeof(key->dst));
		return true;
	}
	return false;
}

int datagram_read(int fd, struct datagram *ret)
{
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES];

	for (;;) {
		struct iovec iov = {.iov_base = ret->p, .iov_len = ret->max};
		struct msghdr m = {.msg_name = &ret->from,
			.msg_namelen = sizeof(ret->from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(fd, &m, 0);
		bool is_known = false;

		if (n < 0)
			return 0;
		ret->len = (size_t)n;
		ret->from_len = m.msg_namelen;
		memset(&ret->key, 0, sizeof(ret->key));
		ret->key.protocol = IPPROTO_UDP;
		flow_from_sockaddr(&ret->from, ret->key.src, &ret->key.sport);
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
			is_known |= read_control(c, &ret->key);
		if (is_known)
			return 1;
	}
}

void datagram_reply(int fd, const struct datagram *to, const void *p, size_t len)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = {0};
	struct iovec iov = {.iov_base = (void *)p, .iov_len = len};
	struct msghdr m = {.msg_name = (void *)&to->from,
		.msg_namelen = to->from_len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control};
	struct cmsghdr *c = (struct cmsghdr *)control;

	if (to->from.ss_family == AF_INET) {
		struct in_pktinfo info = {0};

		memcpy(&info.ipi_spec_dst, to->key.dst + sizeof(mapped), sizeof(info.ipi_spec_dst));
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info));
		m.msg_controllen = CMSG_SPACE(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	} else {
		struct in6_pktinfo info = {0};

		memcpy(&info.ipi6_addr, to->key.dst, sizeof(info.ipi6_addr));
		c->cmsg_level = IPPROTO_IPV6;
		c->cmsg_type = IPV6_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info));
		m.msg_controllen = CMSG_SPACE(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	}
	(void)sendmsg(fd, &m, 0); /* as any datagram, it may be lost */
}
