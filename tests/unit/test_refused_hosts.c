/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "supervisor/refused_hosts.h"

static struct event refusal(const char *exec, const char *host)
{
	struct event ev = {.kind = EVENT_NET_REFUSED, .exec = slice_of(exec)};

	event_set_text(&ev, host, host);
	return ev;
}

static void test_each_host_once(void **state)
{
	scoped(refused_hosts) struct refused_hosts *hosts = refused_hosts_new();
	struct event one = refusal("ex_1", "a.test"), two = refusal("ex_1", "b.test"),
		     other = refusal("ex_2", "c.test"), none = refusal("", "d.test"),
		     shadow = refusal("ex_1", "e.test"), raw = refusal("ex_1", NULL);
	struct event_list list;

	event_set(&shadow, shadow, true);
	event_set_text(&raw, address, "203.0.113.1");
	refused_hosts_add(hosts, &one);
	refused_hosts_add(hosts, &two);
	refused_hosts_add(hosts, &one);
	refused_hosts_add(hosts, &other);
	refused_hosts_add(hosts, &none);
	refused_hosts_add(hosts, &shadow);
	refused_hosts_add(hosts, &raw);
	list = refused_hosts_of(hosts, slice_of("ex_1"));
	assert_int_equal(list.n, 3);
	assert_true(slice_is(list.items[0], "a.test"));
	assert_true(slice_is(list.items[1], "b.test"));
	assert_true(slice_is(list.items[2], "203.0.113.1"));
	refused_hosts_forget(hosts, slice_of("ex_1"));
	assert_int_equal(refused_hosts_of(hosts, slice_of("ex_1")).n, 0);
	assert_int_equal(refused_hosts_of(hosts, slice_of("ex_2")).n, 1);
}

static void test_bounded(void **state)
{
	scoped(refused_hosts) struct refused_hosts *hosts = refused_hosts_new();

	for (unsigned i = 0; i < REFUSED_HOSTS_MAX + 50; i++) {
		char name[32];
		struct event ev;

		snprintf(name, sizeof(name), "h%u.test", i);
		ev = refusal("ex_1", name);
		refused_hosts_add(hosts, &ev);
	}
	assert_int_equal(refused_hosts_of(hosts, slice_of("ex_1")).n, REFUSED_HOSTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_host_once), cmocka_unit_test(test_bounded)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
