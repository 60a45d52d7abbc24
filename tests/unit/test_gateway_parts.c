/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the gateway's own, and its loop. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "gateway/budget.h"
#include "gateway/config.h"
#include "gateway/copies.h"
#include "gateway/dns_burst.h"
#include "gateway/flow_head.h"
#include "gateway/plain_machine.h"
#include "gateway/poller.h"
#include "gateway/proxy_wire.h"
#include "gateway/relay.h"
#include "gateway/syn.h"
#include "util/clock.h"
#include "util/fdio.h"

/* ---- SYNs ---- */

/* 10.0.0.2:40000 to 203.0.113.9:80, with four options, as tcpdump showed it; its checksum is right. */
static const uint8_t syn4[] = {0x45, 0, 0, 0x3c, 0x12, 0x34, 0x40, 0, 0x40, 6, 0, 0, 10, 0, 0, 2,
	203, 0, 113, 9, 0x9c, 0x40, 0, 80, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 0xa0, 2, 0xff, 0xd7,
	0, 0, 0, 0, 2, 4, 0xff, 0xd7, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7};

static uint16_t ones_sum(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)p[i] << 8 | (i + 1 < len ? p[i + 1] : 0);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void test_syn_check(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} broken[] = {
		{0, 0x35},  /* another version */
		{0, 0x41},  /* a header of four bytes */
		{0, 0x4f},  /* one that leaves no room for TCP */
		{9, 17},    /* UDP */
		{32, 0x40}, /* a TCP header of 16 bytes */
		{32, 0xf0}, /* one that is longer than the packet */
		{33, 0x12}, /* SYN and ACK */
		{33, 0x10}, /* ACK */
	};
	uint8_t packet[sizeof(syn4)];

	assert_int_equal(syn_check(syn4, sizeof(syn4)), 0);
	for (size_t len = 0; len < sizeof(syn4); len++)
		assert_int_equal(syn_check(syn4, len), -EBADMSG);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		memcpy(packet, syn4, sizeof(packet));
		packet[broken[i].at] = broken[i].byte;
		assert_int_equal(syn_check(packet, sizeof(packet)), -EBADMSG);
	}
}

static void test_syn_checksum(void **state)
{
	uint8_t packet[sizeof(syn4)];
	uint32_t pseudo;

	memcpy(packet, syn4, sizeof(packet));
	syn_complete(packet, sizeof(packet));
	pseudo = 6 + sizeof(packet) - 20 + ones_sum(0, packet + 12, 8);
	assert_int_equal(ones_sum(pseudo, packet + 20, sizeof(packet) - 20), 0xffff);
	syn_complete(packet, sizeof(packet)); /* what stood there before does not count */
	assert_int_equal(ones_sum(pseudo, packet + 20, sizeof(packet) - 20), 0xffff);
}

static void test_syn_unreachable(void **state)
{
	uint8_t answer[SYN_ICMP_MAX];
	size_t len = syn_unreachable(syn4, sizeof(syn4), EHOSTUNREACH, answer);

	assert_int_equal(len, 28 + sizeof(syn4));
	assert_int_equal(answer[9], 1);
	assert_memory_equal(answer + 12, syn4 + 16, 4);
	assert_memory_equal(answer + 16, syn4 + 12, 4);
	assert_int_equal(answer[20], 3);
	assert_int_equal(answer[21], 1);
	assert_memory_equal(answer + 28, syn4, sizeof(syn4));
	assert_int_equal(ones_sum(0, answer + 20, len - 20), 0xffff);
	(void)syn_unreachable(syn4, sizeof(syn4), ENETUNREACH, answer);
	assert_int_equal(answer[21], 0);
}

static void test_port_unreachable(void **state)
{
	static const uint8_t src[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};
	static const uint8_t dst[16] = {[10] = 0xff, [11] = 0xff, 203, 0, 113, 9};
	static const uint8_t src6[16] = {0xfd, [15] = 2}, dst6[16] = {0x20, 1, [15] = 9};
	uint8_t answer[SYN_ICMP_MAX];
	size_t len = syn_port_unreachable(src, 5000, dst, 443, answer);
	uint32_t pseudo;

	assert_int_equal(len, 20 + 8 + 28);
	assert_int_equal(answer[21], 3);
	assert_int_equal(answer[28 + 9], 17);
	assert_int_equal(answer[48] << 8 | answer[49], 5000);
	assert_int_equal(answer[50] << 8 | answer[51], 443);
	len = syn_port_unreachable(src6, 5000, dst6, 443, answer);
	assert_int_equal(len, 40 + 8 + 48);
	assert_int_equal(answer[40], 1);
	assert_int_equal(answer[41], 4);
	pseudo = 58 + (uint32_t)len - 40 + ones_sum(0, answer + 8, 32);
	assert_int_equal(ones_sum(pseudo, answer + 40, len - 40), 0xffff);
}

static void test_syn_cut(void **state)
{
	uint8_t packet[sizeof(syn4) + 200] = {0};

	memcpy(packet, syn4, sizeof(syn4));
	assert_int_equal(syn_cut(packet, sizeof(syn4)), sizeof(syn4));
	assert_int_equal(syn_cut(packet, sizeof(packet)), sizeof(syn4)); /* data behind it */
	assert_int_equal(syn_cut(packet, sizeof(syn4) - 1), -EBADMSG);
	packet[0] = 0x4f; /* all the room for options there is: with TCP's, what fits */
	memcpy(packet + 60, syn4 + 20, sizeof(syn4) - 20);
	assert_int_equal(syn_cut(packet, sizeof(packet)), 100);
}

static void test_syn_ends(void **state)
{
	struct netcatch_key key, want = {.protocol = 6, .sport = 40000, .dport = 80};

	memcpy(want.src, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}, 16);
	memcpy(want.dst, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, 203, 0, 113, 9}, 16);
	syn_ends(syn4, &key);
	assert_memory_equal(&key, &want, sizeof(key));
}

static void test_syn_reset(void **state)
{
	uint8_t answer[SYN_ICMP_MAX];
	size_t len = syn_reset(syn4, answer);
	uint32_t pseudo = 6 + 20 + ones_sum(0, answer + 12, 8);

	assert_int_equal(len, 40);
	assert_memory_equal(answer + 12, syn4 + 16, 4);
	assert_memory_equal(answer + 16, syn4 + 12, 4);
	assert_int_equal(answer[20] << 8 | answer[21], 80);
	assert_int_equal(answer[22] << 8 | answer[23], 40000);
	assert_memory_equal(answer + 28, ((const uint8_t[]){0x11, 0x22, 0x33, 0x45}), 4);
	assert_int_equal(answer[33], 0x14);
	assert_int_equal(ones_sum(pseudo, answer + 20, 20), 0xffff);
}

static void test_syn_datagram(void **state)
{
	static const char text[] = "an answer of odd length";
	struct netcatch_key keys[2] = {
		{.dport = 123, .sport = 5000}, {.dport = 123, .sport = 5000}};
	uint8_t packet[SYN_DATAGRAM_HEAD + sizeof(text)];

	memcpy(keys[0].src, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}, 16);
	memcpy(keys[0].dst, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, 203, 0, 113, 9}, 16);
	memcpy(keys[1].src, (const uint8_t[16]){0xfd, [15] = 2}, 16);
	memcpy(keys[1].dst, (const uint8_t[16]){0x20, 1, [15] = 9}, 16);
	for (size_t i = 0; i < 2; i++) {
		size_t n = sizeof(text) - 1, head = syn_datagram(&keys[i], text, n, packet);
		size_t ip = head - 8, at = i == 0 ? 12 : 8;
		uint32_t pseudo = 17 + 8 + (uint32_t)n + ones_sum(0, packet + at, ip - at);

		memcpy(packet + head, text, n);
		assert_int_equal(ip, i == 0 ? 20 : 40);
		assert_int_equal(packet[ip] << 8 | packet[ip + 1], 123);
		assert_int_equal(packet[ip + 2] << 8 | packet[ip + 3], 5000);
		assert_int_equal(ones_sum(pseudo, packet + ip, 8 + n), 0xffff);
	}
}

/* One message as the kernel writes it: a packet's head that we pass over, then the packet. */
static size_t copy_message(uint8_t *out, uint16_t type, const uint8_t *packet, size_t len)
{
	uint16_t attr_len = (uint16_t)(4 + len), attr_type = 9;
	uint32_t total = (uint32_t)(20 + 8 + 4 + len);

	memset(out, 0, total + 3);
	memcpy(out, &total, 4);
	memcpy(out + 4, &type, 2);
	memcpy(out + 20, ((const uint8_t[]){8, 0, 1, 0}), 4);
	memcpy(out + 28, &attr_len, 2);
	memcpy(out + 30, &attr_type, 2);
	memcpy(out + 32, packet, len);
	return (total + 3) & ~(size_t)3;
}

static void test_copies(void **state)
{
	uint8_t bytes[1024], other[sizeof(syn4)];
	struct netcatch_record record;
	struct slice rest = {.p = (const char *)bytes};
	size_t n;

	memcpy(other, syn4, sizeof(other));
	other[33] = 0x10; /* no SYN: passed over, and so is what is of another kind */
	n = copy_message(bytes, 0x400, other, sizeof(other));
	n += copy_message(bytes + n, 0x401, syn4, sizeof(syn4));
	n += copy_message(bytes + n, 0x400, syn4, sizeof(syn4));
	rest.len = n;
	assert_true(copies_next(&rest, &record));
	assert_int_equal(record.kind, NETCATCH_SYN);
	assert_int_equal(record.len, sizeof(syn4));
	assert_memory_equal(record.packet, syn4, sizeof(syn4));
	assert_int_equal(record.key.dport, 80);
	assert_int_equal(record.owner.pid, 0);
	assert_false(copies_next(&rest, &record));
	for (size_t len = 0; len < 32 + sizeof(syn4); len++) {
		rest = (struct slice){.p = (const char *)bytes + n - 92, .len = len};
		assert_false(copies_next(&rest, &record)); /* cut */
	}
	memset(bytes, 0, sizeof(bytes)); /* of no length: nothing, and it ends */
	rest = (struct slice){.p = (const char *)bytes, .len = sizeof(bytes)};
	assert_false(copies_next(&rest, &record));
}

/* ---- names that look like data ---- */

static void test_burst_data(void **state)
{
	static const struct {
		const char *host;
		bool is_data;
	} rows[] = {
		{"www.example.org", false},
		{"files.packages.example.org", false},
		{"documentation-and-more.example.org", false},
		{"a1b2c3d4e5f6g7h8.example.org", true},
		{"mfrggzdfmztwq2lknnwg23tpobyxe43u.example.org", true},
		{"x.4d2e9f0a7b6c1835.wild.test", true},
		{"1234567890123456.example.org", false},
		{"aaaaaaaaaaaaaaaa1.example.org", false},
		{"mfrggzdfmztwq2lknnwg23tpobyxe43u.org", false}, /* the domain itself */
		{"localhost", false},
		{"", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(dns_burst_is_data(rows[i].host), rows[i].is_data);
}

static void test_burst_limit(void **state)
{
	struct dns_burst *burst = dns_burst_new();
	struct dns_burst_report report;
	char host[64];
	int64_t now_ns = 5 * CLOCK_NS_PER_S;

	for (int i = 0; i < 200; i++) {
		snprintf(host, sizeof(host), "a1b2c3d4e5f6g7h8%d.wild.test", i);
		assert_int_equal(dns_burst_allows(burst, host, now_ns), i < DNS_BURST_MAX);
		assert_true(dns_burst_allows(burst, "www.wild.test", now_ns));
	}
	/* one that was let through is again */
	assert_true(dns_burst_allows(burst, "a1b2c3d4e5f6g7h80.wild.test", now_ns));
	assert_true(dns_burst_allows(burst, "a1b2c3d4e5f6g7h8.other.test", now_ns));
	assert_true(dns_burst_next(burst, now_ns, &report));
	assert_string_equal(report.domain, "wild.test");
	assert_int_equal(report.refused, 200 - DNS_BURST_MAX);
	assert_false(dns_burst_next(burst, now_ns, &report));
	now_ns += 61 * CLOCK_NS_PER_S;
	assert_true(dns_burst_next(burst, now_ns, &report));
	assert_int_equal(report.asked, 200);
	assert_false(dns_burst_next(burst, now_ns, &report));
	assert_true(dns_burst_allows(burst, "zzb2c3d4e5f6g7h8.wild.test", now_ns));
	dns_burst_free(burst);
}

/* ---- upstream proxy ---- */

static void test_proxy_request(void **state)
{
	struct str out = {0}, host = {0};
	uint16_t port;

	proxy_wire_connect(&out, "allowed.test", 443, "user", "pass:word");
	assert_string_equal(out.p, "CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n"
				   "Proxy-Authorization: Basic dXNlcjpwYXNzOndvcmQ=\r\n\r\n");
	str_reset(&out);
	proxy_wire_connect(&out, "2001:db8::1", 80, NULL, NULL);
	assert_string_equal(
		out.p, "CONNECT [2001:db8::1]:80 HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n");
	assert_int_equal(proxy_wire_url("http://proxy.test:3128", &host, &port), 0);
	assert_string_equal(host.p, "proxy.test");
	assert_int_equal(port, 3128);
	assert_int_equal(proxy_wire_url("http://[2001:db8::1]:3128", &host, &port), 0);
	assert_string_equal(host.p, "2001:db8::1");
	assert_int_equal(proxy_wire_url("http://proxy.test", &host, &port), -EINVAL);
	assert_int_equal(proxy_wire_url("https://proxy.test:1", &host, &port), -EINVAL);
	str_done(&out);
	str_done(&host);
}

static void test_proxy_answer(void **state)
{
	static const struct {
		const char *text;
		int r;
	} rows[] = {
		{"", -EAGAIN},
		{"HTTP/1.1 200 OK\r\n", -EAGAIN},
		{"HTTP/1.1 200 OK\r\n\r\n", 0},
		{"HTTP/1.0 200 Connection established\r\nX: y\r\n\r\n", 0},
		{"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", -EACCES},
		{"HTTP/1.1 502 Bad Gateway\r\n\r\n", -EHOSTUNREACH},
		{"HTTP/1.1 100 Continue\r\n\r\n", -EHOSTUNREACH},
		{"HTTP/1.1 2x0 OK\r\n\r\n", -EPROTO},
		{"SSH-2.0-x\r\n\r\n", -EPROTO},
		{"\r\n\r\n", -EPROTO},
	};
	struct str endless = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(proxy_wire_answer(slice_of(rows[i].text)), rows[i].r);
	str_puts(&endless, "HTTP/1.1 200 OK\r\n");
	while (endless.len < PROXY_WIRE_HEAD_MAX)
		str_puts(&endless, "X: y\r\n");
	assert_int_equal(proxy_wire_answer(str_slice(&endless)), -EPROTO);
	str_done(&endless);
}

/* ---- configuration ---- */

static void test_resolvers(void **state)
{
	struct spec_words words = {0};

	config_resolvers(
		slice_of("# nameserver 192.0.2.9\nsearch x.test\nnameserver 192.0.2.1\n"
			 "nameserver\t2001:db8::1  # here\nnameserver\nnameservers 192.0.2.8\n"
			 "nameserver 192.0.2.2"),
		&words);
	assert_int_equal(words.n, 3);
	assert_string_equal(words.items[0], "192.0.2.1");
	assert_string_equal(words.items[1], "2001:db8::1");
	assert_string_equal(words.items[2], "192.0.2.2");
	spec_words_done(&words);
}

static void test_addresses(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 203, 0, 113, 9};
	struct sockaddr_storage to;
	uint8_t back[16];
	char text[FLOW_ADDRESS_SIZE];
	uint16_t port;

	flow_address_text(v4, text);
	assert_string_equal(text, "203.0.113.9");
	assert_int_equal(flow_sockaddr(v4, 80, &to), sizeof(struct sockaddr_in));
	flow_from_sockaddr(&to, back, &port);
	assert_memory_equal(back, v4, sizeof(back));
	assert_int_equal(port, 80);
}

/* ---- the loop ---- */

struct fired {
	struct poller *poller;
	struct poller_timer timers[64];
	int order[64], n;
};
static struct fired fired;

static void on_time(void *ctx)
{
	fired.order[fired.n++] = (int)((struct poller_timer *)ctx - fired.timers);
	if (fired.n == 32)
		poller_stop(fired.poller);
}

static void no_turn(void *ctx)
{
}

static void test_timers(void **state)
{
	fired = (struct fired){.poller = poller_new()};
	for (int i = 0; i < 64; i++) {
		fired.timers[i] =
			(struct poller_timer){.on_time = on_time, .ctx = &fired.timers[i]};
		poller_timer_set(fired.poller, &fired.timers[i],
			(int64_t)(i * 37 % 64) * CLOCK_NS_PER_MS / 4);
	}
	for (int i = 0; i < 64; i++) /* half of them go, some move */
		if (i * 37 % 64 % 2)
			poller_timer_stop(fired.poller, &fired.timers[i]);
	poller_run(fired.poller, no_turn, NULL);
	for (int i = 0; i < fired.n; i++)
		assert_int_equal(fired.order[i] * 37 % 64, 2 * i);
	poller_free(fired.poller);
}

static struct poller_io pair_io[2];

static void on_ready_remove_both(void *ctx)
{
	struct poller *poller = ctx;

	fired.n++;
	poller_remove(poller, &pair_io[0]);
	poller_remove(poller, &pair_io[1]);
	poller_stop(poller);
}

/* What was ready stays so for the next owner, who hears of everything else, and the old one of nothing. */
static void on_ready_move(void *ctx)
{
	struct poller *poller = ctx;

	fired.n++;
	if (fired.n == 1) {
		assert_int_equal(pair_io[0].ready, POLLER_WRITE);
		poller_move(poller, &pair_io[0], &pair_io[1], on_ready_move, poller);
		assert_int_equal(pair_io[0].fd, -1);
		assert_int_equal(pair_io[1].ready, POLLER_WRITE);
		assert_int_equal(send(fired.order[1], "x", 1, 0), 1);
		return;
	}
	assert_int_equal(pair_io[0].ready, POLLER_WRITE);
	assert_int_equal(pair_io[1].ready, POLLER_WRITE | POLLER_READ);
	poller_remove(poller, &pair_io[1]);
	poller_stop(poller);
}

static void test_move(void **state)
{
	struct poller *poller = poller_new();

	fired.n = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fired.order), 0);
	assert_int_equal(poller_add(poller, &pair_io[0], fired.order[0], on_ready_move, poller), 0);
	poller_run(poller, no_turn, NULL);
	assert_int_equal(fired.n, 2);
	poller_move(poller, &pair_io[1], &pair_io[0], on_ready_move, poller); /* none is none */
	assert_int_equal(pair_io[0].fd, -1);
	poller_free(poller);
	close(fired.order[0]);
	close(fired.order[1]);
}

/* Both ends are ready in one round; the first callback takes the second away. */
static void test_remove_in_callback(void **state)
{
	struct poller *poller = poller_new();
	int fds[2];

	fired.n = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			poller_add(poller, &pair_io[i], fds[i], on_ready_remove_both, poller), 0);
	poller_again(poller, &pair_io[0]);
	poller_again(poller, &pair_io[1]);
	poller_run(poller, no_turn, NULL);
	assert_int_equal(fired.n, 1);
	poller_free(poller);
	close(fds[0]);
	close(fds[1]);
}

static struct poller *idle_poller;
static int idle_steps, idle_at;

/* Goes on for ten more rounds, then has nothing to do. */
static void on_step(void *ctx)
{
	if (++idle_steps < 10)
		poller_again(idle_poller, ctx);
}

static void on_idle(void *ctx)
{
	idle_at = idle_steps;
	poller_stop(idle_poller);
}

static void test_idle(void **state)
{
	struct poller_io io;
	int fds[2];

	idle_poller = poller_new();
	idle_steps = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(poller_add(idle_poller, &io, fds[0], on_step, &io), 0);
	poller_when_idle(idle_poller, on_idle, NULL);
	poller_run(idle_poller, no_turn, NULL);
	assert_int_equal(idle_at, 10);
	poller_free(idle_poller);
	close(fds[0]);
	close(fds[1]);
}

/* One that is never done does not keep who waits for it. */
static void on_endless(void *ctx)
{
	idle_steps++;
	poller_again(idle_poller, ctx);
}

static void test_never_idle(void **state)
{
	struct poller_io io;
	int fds[2];

	idle_poller = poller_new();
	idle_steps = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(poller_add(idle_poller, &io, fds[0], on_endless, &io), 0);
	poller_when_idle(idle_poller, on_idle, NULL);
	poller_run(idle_poller, no_turn, NULL);
	assert_true(idle_at > 10);
	poller_free(idle_poller);
	close(fds[0]);
	close(fds[1]);
}

/* ---- bytes as they are ---- */

struct ends {
	int in, from, to,
		out; /* what is written to in is read at from, relayed to to, read at out */
};

static void ends_open(struct ends *ends)
{
	int a[2], b[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b), 0);
	*ends = (struct ends){.in = a[0], .from = a[1], .to = b[0], .out = b[1]};
}

static void ends_close(struct ends *ends)
{
	if (ends->in >= 0)
		close(ends->in);
	close(ends->from);
	close(ends->to);
	close(ends->out);
}

static char chunk[65536], data[65536];

/* Sends total bytes of a pattern through, reading as much as there is each round; checks that they come as they
 * were and that the end follows them. */
static void pump_through(size_t total, size_t read_each)
{
	struct relay_pool pool = {.chunk = chunk, .chunk_len = sizeof(chunk)};
	struct relay relay = {0};
	struct ends ends;
	size_t sent = 0, got = 0;
	bool ended = false;

	ends_open(&ends);
	while (!ended) {
		while (sent < total) {
			size_t n = total - sent < sizeof(data) ? total - sent : sizeof(data);
			ssize_t w;

			for (size_t i = 0; i < n; i++)
				data[i] = (char)((sent + i) * 7 >> 3);
			w = write(ends.in, data, n);
			if (w < 0)
				break;
			sent += (size_t)w;
		}
		if (sent == total && ends.in >= 0) {
			close(ends.in);
			ends.in = -1;
		}
		assert_true(relay_pump(&relay, &pool, ends.from, ends.to) >= 0);
		for (size_t want = read_each; want > 0 && !ended;) {
			ssize_t r = read(ends.out, data, want < sizeof(data) ? want : sizeof(data));

			if (r < 0)
				break;
			ended = r == 0;
			for (ssize_t i = 0; i < r; i++)
				assert_int_equal(data[i], (char)((got + (size_t)i) * 7 >> 3));
			got += (size_t)r;
			want -= (size_t)r;
		}
	}
	assert_int_equal(got, total);
	assert_int_equal(relay.bytes, total);
	assert_true(relay.is_shut);
	relay_done(&relay, &pool);
	assert_int_equal(pool.held, 0);
	assert_int_equal(pool.pipes, 0);
	ends_close(&ends);
}

static void test_relay(void **state)
{
	pump_through(0, 100);
	pump_through(1, 100);
	pump_through(300000, 1000);   /* a slow reader */
	pump_through(5000000, 70000); /* by pipe at the end */
}

static void test_relay_holds_little(void **state)
{
	struct relay_pool pool = {.chunk = chunk, .chunk_len = sizeof(chunk)};
	struct relay relay = {0};
	struct ends ends;
	int r = 0;

	ends_open(&ends);
	for (int i = 0; i < 100; i++) {
		while (write(ends.in, data, sizeof(data)) > 0)
			;
		r = relay_pump(&relay, &pool, ends.from, ends.to);
	}
	assert_int_equal(r, RELAY_WAIT_SINK);
	assert_true(pool.held <= sizeof(chunk));
	close(ends.out);
	ends.out = open("/dev/null", 0);
	assert_true(relay_pump(&relay, &pool, ends.from, ends.to) < 0);
	relay_done(&relay, &pool);
	assert_int_equal(pool.held, 0);
	ends_close(&ends);
}

/* Whose failure it was, by copying and by pipe. */
static void test_relay_says_who_failed(void **state)
{
	for (size_t before = 0; before <= 2u << 20; before += 2u << 20) {
		struct relay_pool pool = {.chunk = chunk, .chunk_len = sizeof(chunk)};
		struct relay relay = {0};
		struct ends ends;
		int r;

		ends_open(&ends);
		while (relay.bytes < before) {
			(void)!write(ends.in, data, sizeof(data));
			assert_true(relay_pump(&relay, &pool, ends.from, ends.to) >= 0);
			while (read(ends.out, data, sizeof(data)) > 0)
				;
		}
		assert_int_equal(pool.pipes, before > 0);
		close(ends.out);
		ends.out = open("/dev/null", 0);
		assert_true(write(ends.in, data, 100) > 0);
		r = relay_pump(&relay, &pool, ends.from, ends.to);
		assert_int_equal(r, -EPIPE);
		assert_true(relay.sink_failed);
		relay_done(&relay, &pool);
		ends_close(&ends);
	}
}

/* ---- bytes inside TLS ---- */

static void test_plain_passes(void **state)
{
	struct http_setup setup = {0};
	struct machine m;
	char filler[4096];
	size_t n, total = 0;

	memset(filler, 'x', sizeof(filler));
	plain_machine_new(&setup, true, &m);
	assert_int_equal((m.ops->take)(m.self, MACHINE_CLIENT, "\1\2\3", 3), 3);
	assert_int_equal(m.ops->peek(m.self, MACHINE_SERVER).len, 3);
	assert_memory_equal(m.ops->peek(m.self, MACHINE_SERVER).p, "\1\2\3", 3);
	m.ops->sent(m.self, MACHINE_SERVER, 3);
	while ((n = (m.ops->take)(m.self, MACHINE_SERVER, filler, sizeof(filler))) > 0)
		total += n;
	assert_true(total > 0 && total <= 65536); /* it holds only so much */
	assert_false(m.ops->wants_end(m.self, MACHINE_CLIENT));
	m.ops->end(m.self, MACHINE_SERVER);
	assert_true(m.ops->wants_end(m.self, MACHINE_CLIENT));
	assert_false(m.ops->wants_end(m.self, MACHINE_SERVER));
	assert_int_equal(m.ops->error(m.self), 0);
	m.ops->free(m.self);
}

static void test_plain_refuses(void **state)
{
	struct http_setup setup = {0};
	struct machine m;

	plain_machine_new(&setup, false, &m);
	assert_int_equal((m.ops->take)(m.self, MACHINE_SERVER, "220 hello", 9), 9);
	assert_int_equal(m.ops->error(m.self), -EACCES);
	m.ops->free(m.self);
}

/* ---- memory ---- */

static void write_statm(int fd, size_t mb)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%zu %zu 100 1 0 1 0\n", (mb << 8) + 200,
		(mb << 8) + 100); /* pages */

	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, (size_t)n, 0), n);
}

static void test_budget(void **state)
{
	char path[] = "/tmp/cloche-statm-XXXXXX";
	scoped_fd int fd = mkstemp(path);
	scoped(budget) struct budget *budget = NULL;
	struct err err;
	int64_t now = 0;

	assert_true(fd >= 0);
	assert_int_equal(sysconf(_SC_PAGESIZE), 4096);
	write_statm(fd, 200);
	assert_int_equal(budget_open(path, &budget, &err), 0);
	assert_int_equal(budget_look(budget, now), BUDGET_ROOM);
	assert_int_equal(budget_excess(budget), 0);
	write_statm(fd, 230);
	assert_int_equal(budget_look(budget, now + CLOCK_NS_PER_MS), BUDGET_ROOM); /* as before */
	assert_int_equal(budget_look(budget, now += 10 * CLOCK_NS_PER_MS), BUDGET_FULL_UP);
	assert_int_equal(budget_excess(budget), 6u << 20);
	write_statm(fd, 300);
	assert_int_equal(budget_look(budget, now += 10 * CLOCK_NS_PER_MS), BUDGET_OVER);
	assert_int_equal(budget_excess(budget), 76u << 20);
	write_statm(fd, 1);
	budget_give_back(budget, now);
	assert_int_equal(budget_level(budget), BUDGET_ROOM);
	write_statm(fd, 300);
	assert_int_equal(budget_look(budget, now += 10 * CLOCK_NS_PER_MS), BUDGET_OVER);
	assert_int_equal(ftruncate(fd, 0), 0); /* what was seen last stays */
	assert_int_equal(budget_look(budget, now += 10 * CLOCK_NS_PER_MS), BUDGET_OVER);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(budget_open(path, &budget, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_syn_check),
		cmocka_unit_test(test_syn_checksum),
		cmocka_unit_test(test_syn_unreachable),
		cmocka_unit_test(test_port_unreachable),
		cmocka_unit_test(test_syn_cut),
		cmocka_unit_test(test_syn_ends),
		cmocka_unit_test(test_syn_reset),
		cmocka_unit_test(test_syn_datagram),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_burst_data),
		cmocka_unit_test(test_burst_limit),
		cmocka_unit_test(test_proxy_request),
		cmocka_unit_test(test_proxy_answer),
		cmocka_unit_test(test_resolvers),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_remove_in_callback),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_never_idle),
		cmocka_unit_test(test_relay),
		cmocka_unit_test(test_relay_holds_little),
		cmocka_unit_test(test_relay_says_who_failed),
		cmocka_unit_test(test_plain_passes),
		cmocka_unit_test(test_plain_refuses),
		cmocka_unit_test(test_budget),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as the gateway does: splice() knows no MSG_NOSIGNAL */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
