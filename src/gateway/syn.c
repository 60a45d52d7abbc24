/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 791, 8200, 9293, 792, 4443. */
#include "gateway/syn.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#define V4_HEAD   20
#define V6_HEAD   40
#define TCP_HEAD  20
#define ICMP_HEAD 8
#define TTL       64
#define TCP_SYN   0x02
#define TCP_RST   0x04
#define TCP_ACK   0x10
#define UDP_HEAD  8

/* Destination unreachable, and why. */
#define ICMP4_KIND    3
#define ICMP6_KIND    1
#define ICMP_NETWORK  0
#define ICMP4_HOST    1
#define ICMP4_PORT    3
#define ICMP6_ADDRESS 3
#define ICMP6_PORT    4

static bool is_v4(const uint8_t *packet)
{
	return packet[0] >> 4 == 4;
}

static size_t head_len(const uint8_t *packet)
{
	return is_v4(packet) ? (packet[0] & 15u) * 4u : V6_HEAD;
}

int syn_cut(const uint8_t *packet, size_t len)
{
	size_t head, tcp_head;
	const uint8_t *tcp;

	if (len < V4_HEAD || (!is_v4(packet) && packet[0] >> 4 != 6))
		return -EBADMSG;
	head = head_len(packet);
	if (head < V4_HEAD || len < head + TCP_HEAD)
		return -EBADMSG;
	if (packet[is_v4(packet) ? 9 : 6] != IPPROTO_TCP)
		return -EBADMSG;
	tcp = packet + head;
	tcp_head = (tcp[12] >> 4) * 4u;
	if (tcp_head < TCP_HEAD || head + tcp_head > len || head + tcp_head > SYN_MAX)
		return -EBADMSG;
	return (tcp[13] & (TCP_SYN | TCP_ACK)) == TCP_SYN ? (int)(head + tcp_head) : -EBADMSG;
}

int syn_check(const uint8_t *packet, size_t len)
{
	int r = len > SYN_MAX ? -EBADMSG : syn_cut(packet, len);

	return r < 0 ? r : 0;
}

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void put_address(uint8_t to[16], const uint8_t *address, bool v4)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	memcpy(to, mapped, sizeof(mapped));
	memcpy(to + (v4 ? 12 : 0), address, v4 ? 4 : 16);
}

void syn_ends(const uint8_t *packet, struct netcatch_key *ret_key)
{
	const uint8_t *tcp = packet + head_len(packet);
	bool v4 = is_v4(packet);

	*ret_key = (struct netcatch_key){
		.protocol = IPPROTO_TCP, .sport = get16(tcp), .dport = get16(tcp + 2)};
	put_address(ret_key->src, packet + (v4 ? 12 : 8), v4);
	put_address(ret_key->dst, packet + (v4 ? 16 : 24), v4);
}

uint32_t syn_sequence(const uint8_t *packet)
{
	uint32_t sequence;

	memcpy(&sequence, packet + head_len(packet) + 4, sizeof(sequence));
	return ntohl(sequence);
}

static uint32_t sum(uint32_t so_far, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		so_far += (uint32_t)p[i] << 8 | p[i + 1];
	if (len % 2)
		so_far += (uint32_t)p[len - 1] << 8;
	return so_far;
}

static void put_sum(uint8_t *at, uint32_t total)
{
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	at[0] = (uint8_t)(~total >> 8);
	at[1] = (uint8_t)~total;
}

static void put16(uint8_t *at, size_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* Of the pseudo header: addresses, protocol, length. */
static uint32_t pseudo(const uint8_t *packet, uint8_t protocol, size_t len)
{
	uint32_t total = protocol + (uint32_t)len;

	return is_v4(packet) ? sum(total, packet + 12, 8) : sum(total, packet + 8, 32);
}

void syn_complete(uint8_t *packet, size_t len)
{
	uint8_t *tcp = packet + head_len(packet);
	size_t tcp_len = len - head_len(packet);

	tcp[16] = tcp[17] = 0;
	put_sum(tcp + 16, sum(pseudo(packet, IPPROTO_TCP, tcp_len), tcp, tcp_len));
}

/* Back to whom it came from, as from where it was to go. The kernel sets the checksum of an IPv4 header. */
static size_t answer_head(const uint8_t *packet, uint8_t protocol, size_t payload_len, uint8_t *out)
{
	if (is_v4(packet)) {
		out[0] = 0x45;
		put16(out + 2, V4_HEAD + payload_len);
		out[8] = TTL;
		out[9] = protocol;
		memcpy(out + 12, packet + 16, 4);
		memcpy(out + 16, packet + 12, 4);
		return V4_HEAD;
	}
	out[0] = 0x60;
	put16(out + 4, payload_len);
	out[6] = protocol;
	out[7] = TTL;
	memcpy(out + 8, packet + 24, 16);
	memcpy(out + 24, packet + 8, 16);
	return V6_HEAD;
}

static size_t answer(
	const uint8_t *packet, size_t len, uint8_t code, uint8_t ret_answer[SYN_ICMP_MAX])
{
	uint8_t *icmp;
	size_t head;

	memset(ret_answer, 0, SYN_ICMP_MAX);
	head = answer_head(
		packet, is_v4(packet) ? IPPROTO_ICMP : IPPROTO_ICMPV6, ICMP_HEAD + len, ret_answer);
	icmp = ret_answer + head;
	icmp[0] = is_v4(packet) ? ICMP4_KIND : ICMP6_KIND;
	icmp[1] = code;
	memcpy(icmp + ICMP_HEAD, packet, len);
	put_sum(icmp + 2,
		sum(is_v4(packet) ? 0 : pseudo(ret_answer, IPPROTO_ICMPV6, ICMP_HEAD + len), icmp,
			ICMP_HEAD + len));
	return head + ICMP_HEAD + len;
}

size_t syn_unreachable(
	const uint8_t *packet, size_t len, int positive_errno, uint8_t ret_answer[SYN_ICMP_MAX])
{
	uint8_t host = is_v4(packet) ? ICMP4_HOST : ICMP6_ADDRESS;

	return answer(packet, len, positive_errno == ENETUNREACH ? ICMP_NETWORK : host, ret_answer);
}

size_t syn_reset(const uint8_t *packet, uint8_t ret_answer[SYN_ICMP_MAX])
{
	const uint8_t *from = packet + head_len(packet);
	uint32_t next = htonl(syn_sequence(packet) + 1);
	uint8_t *tcp;
	size_t head;

	memset(ret_answer, 0, SYN_ICMP_MAX);
	head = answer_head(packet, IPPROTO_TCP, TCP_HEAD, ret_answer);
	tcp = ret_answer + head;
	memcpy(tcp, from + 2, 2);
	memcpy(tcp + 2, from, 2);
	memcpy(tcp + 8, &next, sizeof(next));
	tcp[12] = TCP_HEAD / 4 << 4;
	tcp[13] = TCP_RST | TCP_ACK;
	syn_complete(ret_answer, head + TCP_HEAD);
	return head + TCP_HEAD;
}

/* The headers of a datagram; its checksum is left out. */
static size_t datagram_head(const uint8_t src[16], uint16_t sport, const uint8_t dst[16],
	uint16_t dport, size_t len, uint8_t *out)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	bool v4 = memcmp(dst, mapped, sizeof(mapped)) == 0;
	uint8_t *udp = out + (v4 ? V4_HEAD : V6_HEAD);

	memset(out, 0, SYN_DATAGRAM_HEAD);
	out[0] = v4 ? 0x45 : 0x60;
	out[v4 ? 9 : 6] = IPPROTO_UDP;
	out[v4 ? 8 : 7] = TTL;
	put16(out + (v4 ? 2 : 4), (v4 ? V4_HEAD : 0) + UDP_HEAD + len);
	memcpy(out + (v4 ? 12 : 8), src + (v4 ? 12 : 0), v4 ? 4 : 16);
	memcpy(out + (v4 ? 16 : 24), dst + (v4 ? 12 : 0), v4 ? 4 : 16);
	put16(udp, sport);
	put16(udp + 2, dport);
	put16(udp + 4, UDP_HEAD + len);
	return (size_t)(udp - out) + UDP_HEAD;
}

size_t syn_datagram(const struct netcatch_key *key, const void *p, size_t len,
	uint8_t ret_head[SYN_DATAGRAM_HEAD])
{
	size_t head = datagram_head(key->dst, key->dport, key->src, key->sport, len, ret_head);
	uint8_t *udp = ret_head + head - UDP_HEAD;
	uint32_t total = pseudo(ret_head, IPPROTO_UDP, UDP_HEAD + len);

	put_sum(udp + 6, sum(sum(total, udp, UDP_HEAD), p, len));
	if (udp[6] == 0 && udp[7] == 0)
		udp[6] = udp[7] = 0xff; /* 0 means none */
	return head;
}

size_t syn_port_unreachable(const uint8_t src[16], uint16_t sport, const uint8_t dst[16],
	uint16_t dport, uint8_t ret_answer[SYN_ICMP_MAX])
{
	uint8_t packet[SYN_DATAGRAM_HEAD];
	size_t len = datagram_head(src, sport, dst, dport, 0, packet);

	return answer(packet, len, is_v4(packet) ? ICMP4_PORT : ICMP6_PORT, ret_answer);
}
