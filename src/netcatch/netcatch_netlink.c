/* SPDX-License-Identifier: Apache-2.0 */
#include "netcatch/netcatch_netlink.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_MAX 4096

void netcatch_netlink_init(struct netcatch_netlink *requests)
{
	requests->len = requests->at = 0;
}

static void *grow(struct netcatch_netlink *requests, size_t len)
{
	char *p = requests->bytes + requests->len;

	assert(NLMSG_ALIGN(len) <= sizeof(requests->bytes) - requests->len);
	memset(p, 0, NLMSG_ALIGN(len));
	requests->len += NLMSG_ALIGN(len);
	((struct nlmsghdr *)(requests->bytes + requests->at))->nlmsg_len =
		(uint32_t)(requests->len - requests->at);
	return p;
}

void *netcatch_netlink_start(
	struct netcatch_netlink *requests, uint16_t type, uint16_t flags, size_t head_len)
{
	struct nlmsghdr *head;

	requests->at = requests->len;
	head = grow(requests, NLMSG_LENGTH(head_len));
	head->nlmsg_type = type;
	head->nlmsg_flags = NLM_F_REQUEST | flags;
	return NLMSG_DATA(head);
}

void netcatch_netlink_put(
	struct netcatch_netlink *requests, uint16_t type, const void *data, size_t len)
{
	struct nlattr *attr = grow(requests, NLA_HDRLEN + len);

	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy((char *)attr + NLA_HDRLEN, data, len);
}

size_t netcatch_netlink_open(struct netcatch_netlink *requests, uint16_t type)
{
	size_t opened = requests->len;
	struct nlattr *attr = grow(requests, NLA_HDRLEN);

	attr->nla_type = type | NLA_F_NESTED;
	return opened;
}

void netcatch_netlink_close(struct netcatch_netlink *requests, size_t opened)
{
	((struct nlattr *)(requests->bytes + opened))->nla_len = (uint16_t)(requests->len - opened);
}

/* Of one datagram; 0 where all went well. */
static int first_error(const char *p, size_t left)
{
	int r = 0;

	while (r == 0 && left >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
		const struct nlmsghdr *head = (const struct nlmsghdr *)p;
		size_t len = NLMSG_ALIGN(head->nlmsg_len);

		if (head->nlmsg_type != NLMSG_ERROR || len == 0 || len > left)
			return -EPROTO;
		r = ((const struct nlmsgerr *)NLMSG_DATA(head))->error;
		p += len;
		left -= len;
	}
	return r;
}

int netcatch_netlink_ask(int sock, const struct netcatch_netlink *requests)
{
	_Alignas(uint64_t) char answer[ANSWER_MAX];
	bool has_answer = false;
	int first = 0;
	ssize_t len;

	if (send(sock, requests->bytes, requests->len, 0) < 0)
		return -errno;
	while ((len = recv(sock, answer, sizeof(answer), MSG_DONTWAIT)) > 0) {
		has_answer = true;
		if (first == 0)
			first = first_error(answer, (size_t)len);
	}
	return has_answer ? first : -EPROTO;
}
