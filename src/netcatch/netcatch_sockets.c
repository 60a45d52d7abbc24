/* SPDX-License-Identifier: Apache-2.0 */
/* They are bound out of the way of what binds inside: to an address of the loopback network that nobody uses, to one
 * of IPv6 that is not the sandbox's, and to ports above those that are given out. The kernel half leads packets to
 * them, whatever these say; rules lead them only to sockets that may have other addresses than the host's
 * (IP_TRANSPARENT). Options set here are inherited by what is accepted. */
#include "netcatch/netcatch_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/in6.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netcatch/netcatch_rules.h"
#include "util/scoped.h"

#define PORT      61053
#define HOLD_PORT 61054
#define BACKLOG   4096

struct option {
	int level, name;
};

struct plan {
	enum netcatch_socket which;
	int family, type;
	uint16_t port;
	struct option option; /* set to 1 */
};

static const struct plan plans[] = {
	{NETCATCH_TCP, AF_INET6, SOCK_STREAM, NETCATCH_PORT, {IPPROTO_TCP, TCP_NODELAY}},
	{NETCATCH_HOLD, AF_INET6, SOCK_STREAM, HOLD_PORT, {SOL_SOCKET, SO_REUSEADDR}},
	{NETCATCH_UDP4, AF_INET, SOCK_DGRAM, NETCATCH_PORT, {IPPROTO_IP, IP_RECVORIGDSTADDR}},
	{NETCATCH_UDP6, AF_INET6, SOCK_DGRAM, NETCATCH_PORT, {IPPROTO_IPV6, IPV6_RECVORIGDSTADDR}},
	{NETCATCH_DNS4, AF_INET, SOCK_DGRAM, NETCATCH_DNS_PORT, {IPPROTO_IP, IP_PKTINFO}},
	{NETCATCH_DNS6, AF_INET6, SOCK_DGRAM, NETCATCH_DNS_PORT, {IPPROTO_IPV6, IPV6_RECVPKTINFO}},
};

void netcatch_sockets_init(struct netcatch_sockets *sockets)
{
	memset(sockets, 0xff, sizeof(*sockets)); /* -1, all of them */
}

void netcatch_sockets_close(struct netcatch_sockets *sockets)
{
	for (size_t i = 0; i < NETCATCH_N_SOCKETS; i++)
		scoped_close(&sockets->fds[i]);
	scoped_close(&sockets->raw4);
	scoped_close(&sockets->raw6);
	scoped_close(&sockets->copies);
	netcatch_sockets_init(sockets);
}

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int bind_ip4(int fd, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(NETCATCH_GATEWAY_IP4)};

	return bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
}

/* Streams of both families end at one socket, datagrams at one each. */
static int bind_ip6(int fd, uint16_t port, bool is_mapped)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	uint32_t *words = a.sin6_addr.s6_addr32;
	int r = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !is_mapped);

	words[2] = is_mapped ? htonl(0xffff) : 0;
	words[3] = htonl(is_mapped ? NETCATCH_GATEWAY_IP4 : NETCATCH_GATEWAY_IP6_TAIL);
	words[0] = is_mapped ? 0 : htonl(NETCATCH_OWN_IP6_HEAD);
	if (r == 0)
		r = set(fd, IPPROTO_IPV6, IPV6_FREEBIND, 1);
	if (r == 0 && bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		r = -errno;
	return r;
}

/* What was accepted from it by who dies is reset and not ended in good order. */
static int start_listening(int fd)
{
	struct linger abrupt = {.l_onoff = 1};

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof(abrupt)) < 0 ||
		listen(fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static int make_transparent(int fd, int family)
{
	if (family == AF_INET)
		return set(fd, IPPROTO_IP, IP_TRANSPARENT, 1);
	return set(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, 1);
}

static int prepare(int fd, const struct plan *plan, int family, bool for_rules)
{
	int r = set(
		fd, SOL_SOCKET, SO_REUSEADDR, 1); /* a name server inside may have port 53, too */

	if (r == 0 && for_rules)
		r = make_transparent(fd, family);
	if (r == 0)
		r = set(fd, plan->option.level, plan->option.name, 1);
	if (r == 0)
		r = family == AF_INET ? bind_ip4(fd, plan->port)
		                      : bind_ip6(fd, plan->port, plan->type == SOCK_STREAM);
	if (r == 0 && plan->type == SOCK_STREAM)
		r = start_listening(fd);
	return r;
}

/* The descriptor; -EAFNOSUPPORT where the host has no IPv6. */
static int open_one(const struct plan *plan, int family, bool for_rules)
{
	scoped_fd int fd = socket(family, plan->type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = prepare(fd, plan, family, for_rules);
	return r < 0 ? r : take_fd(&fd);
}

static int open_planned(struct netcatch_sockets *sockets, bool for_rules)
{
	for (size_t i = 0; i < NETCATCH_N_SOCKETS; i++) {
		const struct plan *plan = &plans[i];
		int fd;

		if (for_rules && plan->which == NETCATCH_HOLD)
			continue;
		fd = open_one(plan, plan->family, for_rules);
		if (fd == -EAFNOSUPPORT && plan->type == SOCK_STREAM)
			fd = open_one(plan, AF_INET, for_rules);
		if (fd < 0 && fd != -EAFNOSUPPORT)
			return fd;
		sockets->fds[plan->which] = fd < 0 ? -1 : fd;
	}
	return 0;
}

/* They send whole packets, headers and all, and get none. */
static int open_raw(struct netcatch_sockets *sockets)
{
	sockets->raw4 = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW);
	if (sockets->raw4 < 0)
		return -errno;
	sockets->raw6 = socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW);
	if (sockets->raw6 < 0)
		return errno == EAFNOSUPPORT ? 0 : -errno;
	return set(sockets->raw6, IPPROTO_IPV6, IPV6_HDRINCL, 1);
}

/* What they send passes the rules. */
static int mark_raw(const struct netcatch_sockets *sockets)
{
	int r = set(sockets->raw4, SOL_SOCKET, SO_MARK, NETCATCH_RULES_MARK);

	if (r == 0 && sockets->raw6 >= 0)
		r = set(sockets->raw6, SOL_SOCKET, SO_MARK, NETCATCH_RULES_MARK);
	return r;
}

int netcatch_sockets_open(struct netcatch_sockets *sockets, bool for_rules, struct err *err)
{
	int r = open_planned(sockets, for_rules);

	if (r == 0)
		r = open_raw(sockets);
	if (r == 0 && for_rules)
		r = mark_raw(sockets);
	if (r < 0)
		return err_set(err, r, "make the gateway's sockets: %m");
	r = for_rules ? netcatch_rules_copies(err) : -1;
	sockets->copies = r < 0 ? -1 : r;
	return for_rules && r < 0 ? r : 0;
}
