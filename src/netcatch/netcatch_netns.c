/* SPDX-License-Identifier: Apache-2.0 */
/* All requests go out in one message and are answered in order. */
#include "netcatch/netcatch_netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "netcatch/netcatch_maps.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define LOOPBACK_INDEX 1       /* the first interface of every namespace */
#define CONGESTION     "cubic" /* bbr, where a host has it as its default, paces even here */
#define REQUEST_MAX    256
#define ANSWER_MAX     4096
#define N_REQUESTS     3

struct request {
	_Alignas(NLMSG_ALIGNTO) char bytes[REQUEST_MAX];
	size_t len;
};

struct family {
	int family;
	uint8_t address[16];
	size_t len;
};

int netcatch_netns_enter(int netns_fd, int *ret_own_fd, struct err *err)
{
	scoped_fd int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	if (own < 0)
		return err_set(err, -errno, "open the host's network namespace: %m");
	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return err_set(err, -errno, "enter the sandbox's network namespace: %m");
	*ret_own_fd = take_fd(&own);
	return 0;
}

void netcatch_netns_leave(int own_fd)
{
	if (setns(own_fd, CLONE_NEWNET) < 0)
		abort();
	(void)close(own_fd);
}

static void *start(struct request *request, uint16_t type, size_t len)
{
	struct nlmsghdr *head = (struct nlmsghdr *)request->bytes;

	memset(request, 0, sizeof(*request));
	head->nlmsg_type = type;
	head->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
	request->len = NLMSG_LENGTH(len);
	head->nlmsg_len = (uint32_t)request->len;
	return NLMSG_DATA(head);
}

static void add(struct request *request, uint16_t type, const void *data, size_t len)
{
	struct rtattr *attr = (struct rtattr *)(request->bytes + NLMSG_ALIGN(request->len));

	attr->rta_type = type;
	attr->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(attr), data, len);
	request->len = NLMSG_ALIGN(request->len) + RTA_ALIGN(attr->rta_len);
	((struct nlmsghdr *)request->bytes)->nlmsg_len = (uint32_t)request->len;
}

static void build_up(struct request *request)
{
	struct ifinfomsg *m = start(request, RTM_NEWLINK, sizeof(*m));

	m->ifi_index = LOOPBACK_INDEX;
	m->ifi_flags = m->ifi_change = IFF_UP;
}

static void build_address(struct request *request, const struct family *f)
{
	struct ifaddrmsg *m = start(request, RTM_NEWADDR, sizeof(*m));

	m->ifa_family = (uint8_t)f->family;
	m->ifa_prefixlen = (uint8_t)(f->len * 8);
	m->ifa_index = LOOPBACK_INDEX;
	m->ifa_flags = f->family == AF_INET6 ? IFA_F_NODAD : 0;
	add(request, IFA_LOCAL, f->address, f->len);
	add(request, IFA_ADDRESS, f->address, f->len);
}

/* "local default dev lo src ADDRESS congctl cubic": without the source a local route uses the destination as one. */
static void build_route(struct request *request, const struct family *f, bool with_congestion)
{
	struct rtmsg *m = start(request, RTM_NEWROUTE, sizeof(*m));
	struct {
		struct rtattr head;
		char name[8];
	} metric = {.head = {.rta_type = RTAX_CC_ALGO,
			    .rta_len = (uint16_t)RTA_LENGTH(sizeof(CONGESTION))},
		.name = CONGESTION};
	uint32_t interface = LOOPBACK_INDEX;

	m->rtm_family = (uint8_t)f->family;
	m->rtm_table = RT_TABLE_LOCAL;
	m->rtm_type = RTN_LOCAL;
	m->rtm_scope = f->family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	m->rtm_protocol = RTPROT_BOOT;
	add(request, RTA_OIF, &interface, sizeof(interface));
	add(request, RTA_PREFSRC, f->address, f->len);
	if (with_congestion)
		add(request, RTA_METRICS, &metric, sizeof(metric));
}

/* 0, or the errno of the first request that failed. */
static int ask(int sock, struct request *requests, size_t n)
{
	struct iovec parts[N_REQUESTS];
	_Alignas(NLMSG_ALIGNTO) char answer[ANSWER_MAX];
	int first = 0;

	for (size_t i = 0; i < n; i++)
		parts[i] =
			(struct iovec){.iov_base = requests[i].bytes, .iov_len = requests[i].len};
	if (writev(sock, parts, (int)n) < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		ssize_t len = recv(sock, answer, sizeof(answer), 0);
		const struct nlmsghdr *head = (const struct nlmsghdr *)answer;

		if (len < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
			head->nlmsg_type != NLMSG_ERROR)
			return len < 0 ? -errno : -EPROTO;
		if (first == 0)
			first = ((const struct nlmsgerr *)NLMSG_DATA(head))->error;
	}
	return first;
}

static int configure_family(int sock, const struct family *f)
{
	struct request requests[N_REQUESTS];
	int r;

	build_up(&requests[0]);
	build_address(&requests[1], f);
	build_route(&requests[2], f, true);
	r = ask(sock, requests, N_REQUESTS);
	if (r != -EINVAL && r != -ENOENT)
		return r;
	build_route(&requests[2], f, false); /* without what this kernel does not have */
	return ask(sock, &requests[2], 1);
}

static void set_words(uint8_t *to, uint32_t head, uint32_t tail)
{
	head = htonl(head);
	tail = htonl(tail);
	memcpy(to, &head, sizeof(head));
	memcpy(to + 12, &tail, sizeof(tail));
}

/* A ping that were answered would say that anything is there. */
static int set_kernel(struct err *err)
{
	int r = fdio_put(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");

	if (r == 0)
		r = fdio_put(AT_FDCWD, "/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
	if (r < 0)
		return err_set(err, r, "set up the sandbox's network: %m");
	(void)fdio_put(
		AT_FDCWD, "/proc/sys/net/ipv6/icmp/echo_ignore_all", "1"); /* no IPv6 is fine */
	return 0;
}

int netcatch_netns_configure(struct err *err)
{
	scoped_fd int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct family ip4 = {.family = AF_INET, .len = 4}, ip6 = {.family = AF_INET6, .len = 16};
	uint32_t own = htonl(NETCATCH_OWN_IP4);
	int r;

	if (sock < 0)
		return err_set(err, -errno, "open a netlink socket: %m");
	memcpy(ip4.address, &own, sizeof(own));
	set_words(ip6.address, NETCATCH_OWN_IP6_HEAD, NETCATCH_OWN_IP6_TAIL);
	r = configure_family(sock, &ip4);
	if (r < 0)
		return err_set(err, r, "give the sandbox an IPv4 address: %m");
	r = configure_family(sock, &ip6);
	if (r < 0 && r != -EOPNOTSUPP && r != -EACCES && r != -EAFNOSUPPORT)
		return err_set(err, r, "give the sandbox an IPv6 address: %m");
	return set_kernel(err);
}
