/* SPDX-License-Identifier: Apache-2.0 */
/* Host fields and request targets (RFC 9112, 3.2). */
#include <errno.h>
#include <strings.h>

#include "proto/http1.h"

#define MAX_HOST 255

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_text_of(struct slice text, const char *also)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_alnum(text.p[i]) && !strchr(also, text.p[i]))
			return false;
	return text.len > 0 && text.len <= MAX_HOST;
}

static int read_port(struct slice text, uint16_t *ret)
{
	unsigned v = 0;

	if (!text.len || text.len > 5)
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return -EINVAL;
		v = v * 10 + (unsigned)(text.p[i] - '0');
	}
	if (!v || v > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

int http1_split_host(struct slice text, struct slice *ret_host, uint16_t *ret_port)
{
	struct slice host = text, rest = {0};
	uint16_t port = 0;

	if (text.len && *text.p == '[') {
		const char *close = memchr(text.p, ']', text.len);

		if (!close)
			return -EINVAL;
		host = (struct slice){.p = text.p + 1, .len = (size_t)(close - text.p) - 1};
		rest = (struct slice){.p = close + 1, .len = text.len - host.len - 2};
		if (!is_text_of(host, ":."))
			return -EINVAL;
	} else {
		const char *colon = text.len ? memchr(text.p, ':', text.len) : NULL;

		host.len = colon ? (size_t)(colon - text.p) : text.len;
		if (colon)
			rest = (struct slice){.p = colon, .len = text.len - host.len};
		if (!is_text_of(host, "-._") || *host.p == '.')
			return -EINVAL;
	}
	if (rest.len &&
		(*rest.p != ':' ||
			read_port((struct slice){.p = rest.p + 1, .len = rest.len - 1}, &port) < 0))
		return -EINVAL;
	*ret_host = host;
	*ret_port = port;
	return 0;
}

int http1_split_absolute(struct slice target, struct slice *ret_scheme, struct slice *ret_authority,
	struct slice *ret_path)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(schemes[i]), end;
		struct slice authority, host;
		uint16_t port;

		if (target.len < n || strncasecmp(target.p, schemes[i], n) != 0)
			continue;
		for (end = n; end < target.len && target.p[end] != '/' && target.p[end] != '?';
			end++)
			;
		authority = (struct slice){.p = target.p + n, .len = end - n};
		if (http1_split_host(authority, &host, &port) < 0)
			return -EINVAL;
		*ret_scheme = (struct slice){.p = target.p, .len = n - 3};
		*ret_authority = authority;
		*ret_path = (struct slice){.p = target.p + end, .len = target.len - end};
		return 0;
	}
	return -EINVAL;
}
