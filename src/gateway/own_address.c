/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/own_address.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow_head.h"

#define ANSWER_MAX 4096

struct question {
	struct nlmsghdr head;
	struct rtmsg route;
	struct rtattr to;
	uint8_t address[16];
};

int own_address_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

static bool ask(int route_fd, const uint8_t address[16])
{
	struct sockaddr_storage to;
	size_t len;
	struct question q = {
		.head = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST},
		.to = {.rta_type = RTA_DST},
	};

	(void)flow_sockaddr(address, 0, &to);
	len = to.ss_family == AF_INET ? 4 : 16;
	memcpy(q.address, address + 16 - len, len); /* IPv4 is the end of ::ffff:a.b.c.d */
	q.route.rtm_family = (unsigned char)to.ss_family;
	q.route.rtm_dst_len = (unsigned char)(8 * len);
	q.to.rta_len = (unsigned short)RTA_LENGTH(len);
	q.head.nlmsg_len = (uint32_t)(offsetof(struct question, address) + len);
	return send(route_fd, &q, q.head.nlmsg_len, 0) == (ssize_t)q.head.nlmsg_len;
}

/* What the kernel says where no route leads there, or one that says no: unreachable, prohibit, blackhole; or where the host
 * has none of these addresses (no IPv6). Anything else (no memory) tells nothing of the address. */
static bool says_no_way(int error)
{
	switch (-error) {
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EACCES:
	case EINVAL:
	case EAFNOSUPPORT:
	case EOPNOTSUPP:
		return true;
	default:
		return false;
	}
}

/* The kernel has answered when send() is back. */
bool own_address_is(int route_fd, const uint8_t address[16])
{
	union {
		struct nlmsghdr head;
		char bytes[ANSWER_MAX];
	} answer;
	const struct rtmsg *route = NLMSG_DATA(&answer.head);
	const struct nlmsgerr *failure = NLMSG_DATA(&answer.head);
	ssize_t n;

	if (!ask(route_fd, address))
		return true;
	n = recv(route_fd, &answer, sizeof(answer), 0);
	if (n >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
		answer.head.nlmsg_type == NLMSG_ERROR)
		return !says_no_way(failure->error);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*route)) || answer.head.nlmsg_type != RTM_NEWROUTE)
		return true;
	return route->rtm_type == RTN_LOCAL || route->rtm_type == RTN_ANYCAST;
}
