/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's answers say of an address: the kernel being a socket of ours. */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "gateway/own_address.h"

static const uint8_t address[16] = {
	[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 1};

static bool is_own(const void *answer, size_t len)
{
	int ends[2];
	bool own;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	if (answer)
		assert_int_equal(send(ends[1], answer, len, 0), len);
	own = own_address_is(ends[0], address);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return own;
}

static void test_errors(void **state)
{
	static const struct {
		int error;
		bool own;
	} cases[] = {{ENETUNREACH, false}, {EHOSTUNREACH, false}, {EACCES, false}, {EINVAL, false},
		{EOPNOTSUPP, false}, {ENOMEM, true}, {ENOBUFS, true}, {EPERM, true}, {0, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct {
			struct nlmsghdr head;
			struct nlmsgerr body;
		} answer = {.head = {.nlmsg_len = sizeof(answer), .nlmsg_type = NLMSG_ERROR},
			.body = {.error = -cases[i].error}};

		assert_int_equal(is_own(&answer, sizeof(answer)), cases[i].own);
	}
}

static void test_routes(void **state)
{
	static const struct {
		unsigned char type;
		bool own;
	} cases[] = {{RTN_UNICAST, false}, {RTN_LOCAL, true}, {RTN_ANYCAST, true},
		{RTN_BROADCAST, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct {
			struct nlmsghdr head;
			struct rtmsg body;
		} answer = {.head = {.nlmsg_len = sizeof(answer), .nlmsg_type = RTM_NEWROUTE},
			.body = {.rtm_type = cases[i].type}};

		assert_int_equal(is_own(&answer, sizeof(answer)), cases[i].own);
	}
	assert_true(is_own(NULL, 0)); /* it says nothing */
	assert_true(is_own("short", 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors), cmocka_unit_test(test_routes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
