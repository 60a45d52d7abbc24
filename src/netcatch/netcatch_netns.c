/* SPDX-License-Identifier: Apache-2.0 */
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
#include <unistd.h>

#include "netcatch/netcatch_maps.h"
#include "netcatch/netcatch_netlink.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define LOOPBACK_INDEX 1       /* the first interface of every namespace */
#define CONGESTION     "cubic" /* bbr, where a host has it as its default, paces even here */

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

static void *start(struct netcatch_netlink *requests, uint16_t type, size_t len)
{
	uint16_t how = type == RTM_NEWLINK ? 0 : NLM_F_CREATE | NLM_F_REPLACE;

	return netcatch_netlink_start(requests, type, NLM_F_ACK | how, len);
}

static void build_up(struct netcatch_netlink *requests)
{
	struct ifinfomsg *m = start(requests, RTM_NEWLINK, sizeof(*m));

	m->ifi_index = LOOPBACK_INDEX;
	m->ifi_flags = m->ifi_change = IFF_UP;
}

static void build_address(struct netcatch_netlink *requests, const struct family *f)
{
	struct ifaddrmsg *m = start(requests, RTM_NEWADDR, sizeof(*m));

	m->ifa_family = (uint8_t)f->family;
	m->ifa_prefixlen = (uint8_t)(f->len * 8);
	m->ifa_index = LOOPBACK_INDEX;
	m->ifa_flags = f->family == AF_INET6 ? IFA_F_NODAD : 0;
	netcatch_netlink_put(requests, IFA_LOCAL, f->address, f->len);
	netcatch_netlink_put(requests, IFA_ADDRESS, f->address, f->len);
}

/* "local default dev lo src ADDRESS congctl cubic": without the source a local route uses the destination as one. */
static void build_route(
	struct netcatch_netlink *requests, const struct family *f, bool with_congestion)
{
	struct rtmsg *m = start(requests, RTM_NEWROUTE, sizeof(*m));
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
	netcatch_netlink_put(requests, RTA_OIF, &interface, sizeof(interface));
	netcatch_netlink_put(requests, RTA_PREFSRC, f->address, f->len);
	if (with_congestion)
		netcatch_netlink_put(requests, RTA_METRICS, &metric, sizeof(metric));
}

static int configure_family(int sock, const struct family *f)
{
	struct netcatch_netlink requests;
	int r;

	netcatch_netlink_init(&requests);
	build_up(&requests);
	build_address(&requests, f);
	build_route(&requests, f, true);
	r = netcatch_netlink_ask(sock, &requests);
	if (r != -EINVAL && r != -ENOENT)
		return r;
	netcatch_netlink_init(&requests);
	build_route(&requests, f, false); /* without what this kernel does not have */
	return netcatch_netlink_ask(sock, &requests);
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
