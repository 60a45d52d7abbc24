/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/copies.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>

#include "gateway/syn.h"

#define PACKET (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)

/* Takes n bytes and what fills them up to a whole word. */
static void pass(struct slice *rest, size_t n)
{
	n = NLMSG_ALIGN(n) < rest->len ? NLMSG_ALIGN(n) : rest->len;
	rest->p += n;
	rest->len -= n;
}

/* The packet among the attributes of one message; nothing where it has none. */
static struct slice find_packet(struct slice attributes)
{
	struct nlattr attr;

	while (attributes.len >= sizeof(attr)) {
		memcpy(&attr, attributes.p, sizeof(attr));
		if (attr.nla_len < sizeof(attr) || attr.nla_len > attributes.len)
			break;
		if ((attr.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD)
			return (struct slice){
				attributes.p + sizeof(attr), attr.nla_len - sizeof(attr)};
		pass(&attributes, attr.nla_len);
	}
	return (struct slice){0};
}

static bool read_packet(struct slice packet, struct netcatch_record *ret_record)
{
	const uint8_t *p = (const uint8_t *)packet.p;
	int len = p ? syn_cut(p, packet.len) : -1;

	if (len < 0)
		return false;
	*ret_record = (struct netcatch_record){.kind = NETCATCH_SYN, .len = (uint32_t)len};
	memcpy(ret_record->packet, p, (size_t)len);
	syn_ends(p, &ret_record->key);
	return true;
}

bool copies_next(struct slice *messages, struct netcatch_record *ret_record)
{
	const size_t head_len = NLMSG_LENGTH(sizeof(struct nfgenmsg));
	struct nlmsghdr head;

	while (messages->len >= sizeof(head)) {
		struct slice message = *messages;

		memcpy(&head, messages->p, sizeof(head));
		if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > messages->len)
			break;
		message.len = head.nlmsg_len;
		pass(messages, head.nlmsg_len);
		if (head.nlmsg_type != PACKET || message.len < head_len)
			continue;
		pass(&message, head_len);
		if (read_packet(find_packet(message), ret_record))
			return true;
	}
	return false;
}
