/* SPDX-License-Identifier: Apache-2.0 */
#include "view/network_place.h"

/* Where names are led that nothing may be sent to (docs/events.md). */
static bool is_made_up(struct slice address)
{
	return slice_starts(address, "198.18.") || slice_starts(address, "198.19.") ||
	       slice_starts(address, "fd00:c1:");
}

void network_place_add_request(struct str *out, const struct event *ev)
{
	const char *at = ev->url.len ? memmem(ev->url.p, ev->url.len, "://", 3) : NULL;
	const char *end = ev->url.p + ev->url.len;

	if (ev->method.len == 0 || ev->address.len == 0 || is_made_up(ev->address))
		return;
	at = at ? memchr(at + 3, '/', (size_t)(end - at - 3)) : NULL;
	str_puts(out, " (");
	str_add(out, ev->method.p, ev->method.len);
	if (at)
		str_putc(out, ' ');
	if (at)
		str_add(out, at, (size_t)(end - at));
	str_putc(out, ')');
}

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
