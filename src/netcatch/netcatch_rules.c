/* SPDX-License-Identifier: Apache-2.0 */
/* nf_tables and nfnetlink_log as linux/netfilter/{nf_tables,nfnetlink_log}.h have them. Plain netlink and not libnftables:
 * these dozen rules never change, and a static one of that is not packaged.
 *
 * One chain where packets come in from the loopback interface, before they are given to a socket; what no rule takes is
 * dropped, and so is what a rule leads to a socket that is gone. */
#include "netcatch/netcatch_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "netcatch/netcatch_maps.h"
#include "netcatch/netcatch_netlink.h"
#include "netcatch/netcatch_wire.h"
#include "util/scoped.h"

#define TABLE           "cloche"
#define CHAIN           "caught"
#define PRIORITY        -150 /* of what mangles packets: fragments are whole by then */
#define GROUP           1    /* of copies; numbers are the namespace's own */
#define COPY_BYTES      512  /* of one message: what it is made of and a packet's headers */
#define BUFFER_BYTES    (4 << 20)

#define TCP_FLAGS       13
#define TCP_SYN         0x02
#define TCP_ACK         0x10
#define TESTS_MAX       4

#define BYTES(x)        (uint8_t)((x) >> 24), (uint8_t)((x) >> 16), (uint8_t)((x) >> 8), (uint8_t)(x)
#define IP6(head, tail) BYTES(head), 0, 0, 0, 0, 0, 0, 0, 0, BYTES(tail)

enum what {
	WHAT_END,
	WHAT_META,  /* where: its key */
	WHAT_BYTES, /* where: the header; at, len */
};

struct test {
	enum what what;
	uint32_t where;
	uint8_t at, len, mask; /* mask 0: none; of one byte */
	bool differs;          /* from value */
	uint8_t value[16];
};

enum verdict {
	DROP,
	ACCEPT,
	COPY, /* and drop */
	LEAD, /* to a socket; where there is none the next rule is tried */
};

struct rule {
	struct test tests[TESTS_MAX];
	enum verdict verdict;
	struct {
		uint8_t address[16];
		uint16_t port;
	} to;
};

/* clang-format off */
#define FAMILY(which) {WHAT_META, NFT_META_NFPROTO, 0, 1, 0, false, {NFPROTO_##which}}
#define IS(protocol)  {WHAT_META, NFT_META_L4PROTO, 0, 1, 0, false, {IPPROTO_##protocol}}
#define MARKED        {WHAT_META, NFT_META_MARK, 0, 4, 0, false, {BYTES(NETCATCH_RULES_MARK)}}
#define TO4(n, ...)   {WHAT_BYTES, NFT_PAYLOAD_NETWORK_HEADER, 16, n, 0, false, {__VA_ARGS__}}
#define TO6(...)      {WHAT_BYTES, NFT_PAYLOAD_NETWORK_HEADER, 24, 16, 0, false, {__VA_ARGS__}}
#define TO_PORT(port) {WHAT_BYTES, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, 0, false, {(port) >> 8, (port) & 255}}
#define NOT_FIRST     {WHAT_BYTES, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, 1, TCP_SYN | TCP_ACK, true, {TCP_SYN}}
/* clang-format on */

#define GATEWAY_IP4     BYTES(NETCATCH_GATEWAY_IP4)
#define GATEWAY_MAPPED  IP6_MAPPED_HEAD, GATEWAY_IP4
#define IP6_MAPPED_HEAD 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff
#define GATEWAY_IP6     IP6(NETCATCH_OWN_IP6_HEAD, NETCATCH_GATEWAY_IP6_TAIL)

static const struct rule rules[] = {
	{{FAMILY(IPV4), TO4(4, GATEWAY_IP4)}, DROP},
	{{FAMILY(IPV4), TO4(1, 127)}, ACCEPT},
	{{FAMILY(IPV4), TO4(4, BYTES(NETCATCH_OWN_IP4))}, ACCEPT},
	{{FAMILY(IPV6), TO6(IP6(0, 1))}, ACCEPT},
	{{FAMILY(IPV6), TO6(IP6(NETCATCH_OWN_IP6_HEAD, NETCATCH_OWN_IP6_TAIL))}, ACCEPT},
	{{IS(TCP), NOT_FIRST}, ACCEPT}, /* of a connection that stands */
	{{FAMILY(IPV4), IS(TCP), MARKED}, LEAD, {{GATEWAY_IP4}, NETCATCH_PORT}},
	{{FAMILY(IPV6), IS(TCP), MARKED}, LEAD, {{GATEWAY_MAPPED}, NETCATCH_PORT}},
	{{IS(TCP), MARKED}, DROP}, /* or it would be told again and again */
	{{IS(TCP)}, COPY},
	{{FAMILY(IPV4), IS(UDP), TO_PORT(NETCATCH_DNS_PORT)}, LEAD,
		{{GATEWAY_IP4}, NETCATCH_DNS_PORT}},
	{{FAMILY(IPV4), IS(UDP)}, LEAD, {{GATEWAY_IP4}, NETCATCH_PORT}},
	{{FAMILY(IPV6), IS(UDP), TO_PORT(NETCATCH_DNS_PORT)}, LEAD,
		{{GATEWAY_IP6}, NETCATCH_DNS_PORT}},
	{{FAMILY(IPV6), IS(UDP)}, LEAD, {{GATEWAY_IP6}, NETCATCH_PORT}},
};

/* ---- attributes ---- */

static void put_u32(struct netcatch_netlink *m, uint16_t type, uint32_t value)
{
	value = htonl(value);
	netcatch_netlink_put(m, type, &value, sizeof(value));
}

static void put_u16(struct netcatch_netlink *m, uint16_t type, uint16_t value)
{
	value = htons(value);
	netcatch_netlink_put(m, type, &value, sizeof(value));
}

static void put_text(struct netcatch_netlink *m, uint16_t type, const char *text)
{
	netcatch_netlink_put(m, type, text, strlen(text) + 1);
}

static void put_value(struct netcatch_netlink *m, uint16_t type, const void *value, size_t len)
{
	size_t at = netcatch_netlink_open(m, type);

	netcatch_netlink_put(m, NFTA_DATA_VALUE, value, len);
	netcatch_netlink_close(m, at);
}

struct expression {
	size_t element, data;
};

static struct expression begin(struct netcatch_netlink *m, const char *name)
{
	struct expression e = {.element = netcatch_netlink_open(m, NFTA_LIST_ELEM)};

	put_text(m, NFTA_EXPR_NAME, name);
	e.data = netcatch_netlink_open(m, NFTA_EXPR_DATA);
	return e;
}

static void end(struct netcatch_netlink *m, struct expression e)
{
	netcatch_netlink_close(m, e.data);
	netcatch_netlink_close(m, e.element);
}

/* ---- a rule ---- */

static void put_load(struct netcatch_netlink *m, const struct test *test)
{
	struct expression e;

	if (test->what == WHAT_META) {
		e = begin(m, "meta");
		put_u32(m, NFTA_META_KEY, test->where);
		put_u32(m, NFTA_META_DREG, NFT_REG_1);
	} else {
		e = begin(m, "payload");
		put_u32(m, NFTA_PAYLOAD_DREG, NFT_REG_1);
		put_u32(m, NFTA_PAYLOAD_BASE, test->where);
		put_u32(m, NFTA_PAYLOAD_OFFSET, test->at);
		put_u32(m, NFTA_PAYLOAD_LEN, test->len);
	}
	end(m, e);
}

static void put_mask(struct netcatch_netlink *m, uint8_t mask)
{
	struct expression e = begin(m, "bitwise");
	uint8_t nothing = 0;

	put_u32(m, NFTA_BITWISE_SREG, NFT_REG_1);
	put_u32(m, NFTA_BITWISE_DREG, NFT_REG_1);
	put_u32(m, NFTA_BITWISE_LEN, sizeof(mask));
	put_value(m, NFTA_BITWISE_MASK, &mask, sizeof(mask));
	put_value(m, NFTA_BITWISE_XOR, &nothing, sizeof(nothing));
	end(m, e);
}

static void put_test(struct netcatch_netlink *m, const struct test *test)
{
	struct expression e;

	put_load(m, test);
	if (test->mask)
		put_mask(m, test->mask);
	e = begin(m, "cmp");
	put_u32(m, NFTA_CMP_SREG, NFT_REG_1);
	put_u32(m, NFTA_CMP_OP, test->differs ? NFT_CMP_NEQ : NFT_CMP_EQ);
	put_value(m, NFTA_CMP_DATA, test->value, test->len);
	end(m, e);
}

static void put_verdict(struct netcatch_netlink *m, uint32_t code)
{
	struct expression e = begin(m, "immediate");
	size_t data, verdict;

	put_u32(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = netcatch_netlink_open(m, NFTA_IMMEDIATE_DATA);
	verdict = netcatch_netlink_open(m, NFTA_DATA_VERDICT);
	put_u32(m, NFTA_VERDICT_CODE, code);
	netcatch_netlink_close(m, verdict);
	netcatch_netlink_close(m, data);
	end(m, e);
}

static void put_register(struct netcatch_netlink *m, uint32_t which, const void *value, size_t len)
{
	struct expression e = begin(m, "immediate");

	put_u32(m, NFTA_IMMEDIATE_DREG, which);
	put_value(m, NFTA_IMMEDIATE_DATA, value, len);
	end(m, e);
}

static void put_lead(struct netcatch_netlink *m, const struct rule *rule)
{
	bool is_ip4 = rule->tests[0].value[0] == NFPROTO_IPV4;
	uint16_t port = htons(rule->to.port);
	struct expression e;

	put_register(m, NFT_REG_1, rule->to.address, is_ip4 ? 4 : 16);
	put_register(m, NFT_REG_2, &port, sizeof(port));
	e = begin(m, "tproxy");
	put_u32(m, NFTA_TPROXY_FAMILY, is_ip4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	put_u32(m, NFTA_TPROXY_REG_ADDR, NFT_REG_1);
	put_u32(m, NFTA_TPROXY_REG_PORT, NFT_REG_2);
	end(m, e);
}

static void put_copy(struct netcatch_netlink *m)
{
	struct expression e = begin(m, "log");

	put_u16(m, NFTA_LOG_GROUP, GROUP);
	end(m, e);
}

static void *start(struct netcatch_netlink *m, uint16_t type, uint16_t flags)
{
	struct nfgenmsg *head = netcatch_netlink_start(
		m, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, sizeof(*head));

	head->nfgen_family = NFPROTO_INET;
	return head;
}

static void put_rule(struct netcatch_netlink *m, const struct rule *rule, bool is_last)
{
	size_t list;

	start(m, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | (is_last ? NLM_F_ACK : 0));
	put_text(m, NFTA_RULE_TABLE, TABLE);
	put_text(m, NFTA_RULE_CHAIN, CHAIN);
	list = netcatch_netlink_open(m, NFTA_RULE_EXPRESSIONS);
	for (size_t i = 0; i < TESTS_MAX && rule->tests[i].what != WHAT_END; i++)
		put_test(m, &rule->tests[i]);
	if (rule->verdict == LEAD)
		put_lead(m, rule);
	else if (rule->verdict == COPY)
		put_copy(m);
	put_verdict(m, rule->verdict == ACCEPT || rule->verdict == LEAD ? NF_ACCEPT : NF_DROP);
	netcatch_netlink_close(m, list);
}

/* ---- all of it ---- */

static void put_chain(struct netcatch_netlink *m)
{
	size_t hook;

	start(m, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	put_text(m, NFTA_TABLE_NAME, TABLE);
	start(m, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	put_text(m, NFTA_CHAIN_TABLE, TABLE);
	put_text(m, NFTA_CHAIN_NAME, CHAIN);
	put_text(m, NFTA_CHAIN_TYPE, "filter");
	hook = netcatch_netlink_open(m, NFTA_CHAIN_HOOK);
	put_u32(m, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	put_u32(m, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY);
	netcatch_netlink_close(m, hook);
	put_u32(m, NFTA_CHAIN_POLICY, NF_DROP);
}

/* All or nothing comes into force. */
static void put_batch(struct netcatch_netlink *m, uint16_t type)
{
	struct nfgenmsg *head = netcatch_netlink_start(m, type, 0, sizeof(*head));

	head->nfgen_family = AF_UNSPEC;
	head->res_id = htons(NFNL_SUBSYS_NFTABLES);
}

static bool is_wanted(const struct rule *rule, bool with_ip6)
{
	return with_ip6 || rule->verdict != LEAD || rule->tests[0].value[0] != NFPROTO_IPV6;
}

int netcatch_rules_set(bool with_ip6, struct err *err)
{
	scoped_fd int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	const size_t n = sizeof(rules) / sizeof(rules[0]);
	struct netcatch_netlink m;
	int r;

	if (sock < 0)
		return err_set(err, -errno, "open a socket to nftables: %m");
	netcatch_netlink_init(&m);
	put_batch(&m, NFNL_MSG_BATCH_BEGIN);
	put_chain(&m);
	for (size_t i = 0; i < n; i++)
		if (is_wanted(&rules[i], with_ip6))
			put_rule(&m, &rules[i], false);
	put_rule(&m, &(const struct rule){.verdict = DROP}, true); /* the one that is answered */
	put_batch(&m, NFNL_MSG_BATCH_END);
	r = netcatch_netlink_ask(sock, &m);
	return r < 0 ? err_set(err, r, "set nftables rules in the sandbox's network: %m") : 0;
}

static struct nfgenmsg *start_config(struct netcatch_netlink *m)
{
	struct nfgenmsg *head = netcatch_netlink_start(
		m, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, NLM_F_ACK, sizeof(*head));

	head->res_id = htons(GROUP);
	return head;
}

static void put_config(struct netcatch_netlink *m)
{
	struct nfulnl_msg_config_cmd command = {.command = NFULNL_CFG_CMD_BIND};
	struct nfulnl_msg_config_mode mode = {
		.copy_range = htonl(NETCATCH_PACKET_MAX), .copy_mode = NFULNL_COPY_PACKET};

	start_config(m);
	netcatch_netlink_put(m, NFULA_CFG_CMD, &command, sizeof(command));
	start_config(m);
	netcatch_netlink_put(m, NFULA_CFG_MODE, &mode, sizeof(mode));
	put_u32(m, NFULA_CFG_QTHRESH, 1); /* at once */
	put_u32(m, NFULA_CFG_NLBUFSIZ, COPY_BYTES);
}

int netcatch_rules_copies(struct err *err)
{
	scoped_fd int sock =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
	int bytes = BUFFER_BYTES, r;
	struct netcatch_netlink m;

	if (sock < 0)
		return err_set(err, -errno, "open a socket to nftables: %m");
	(void)setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &bytes,
		sizeof(bytes)); /* less: SYNs that find no room come again */
	netcatch_netlink_init(&m);
	put_config(&m);
	r = netcatch_netlink_ask(sock, &m);
	return r < 0 ? err_set(err, r, "have SYNs copied (NFLOG): %m") : take_fd(&sock);
}
