/* SPDX-License-Identifier: Apache-2.0 */
#include "view/network_place.h"

struct slice network_place_why(struct slice rule, struct slice reason)
{
	static const char start[] = "default: ";
	const size_t len = sizeof(start) - 1;

	if (rule.len == 0)
		return reason;
	if (slice_starts(rule, start))
		return (struct slice){.p = rule.p + len, .len = rule.len - len};
	return rule;
}

void network_place_add(struct str *out, struct slice host, int64_t port)
{
	bool is_v6 = host.len && memchr(host.p, ':', host.len);

	if (is_v6 && port)
		str_putc(out, '[');
	str_add(out, host.p, host.len);
	if (is_v6 && port)
		str_putc(out, ']');
	if (port)
		str_printf(out, ":%lld", (long long)port);
}
