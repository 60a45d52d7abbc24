/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/proxy_wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/jsonw.h"

#define STATUS_AT                     9 /* behind "HTTP/1.1 " */
#define PROXY_AUTHENTICATION_REQUIRED 407

int proxy_wire_url(const char *url, struct str *ret_host, uint16_t *ret_port)
{
	const char *scheme = "http://", *host, *colon;
	unsigned port;
	char end;

	if (strncmp(url, scheme, strlen(scheme)) != 0)
		return -EINVAL;
	host = url + strlen(scheme);
	colon = strrchr(host, ':');
	if (!colon || sscanf(colon + 1, "%5u%c", &port, &end) < 1 || port == 0 || port > UINT16_MAX)
		return -EINVAL;
	str_reset(ret_host);
	if (*host == '[')
		str_add(ret_host, host + 1, (size_t)(colon - host) - 2);
	else
		str_add(ret_host, host, (size_t)(colon - host));
	*ret_port = (uint16_t)port;
	return 0;
}

void proxy_wire_connect(
	struct str *out, const char *host, uint16_t port, const char *user, const char *password)
{
	bool is_v6 = strchr(host, ':') != NULL;
	scoped_str struct str place = {0}, pair = {0};

	str_printf(&place, "%s%s%s:%u", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
	str_printf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", place.p, place.p);
	if (user) {
		str_printf(&pair, "%s:%s", user, password ? password : "");
		str_puts(out, "Proxy-Authorization: Basic ");
		jsonw_base64(out, pair.p, pair.len);
		str_puts(out, "\r\n");
		explicit_bzero(pair.p, pair.len);
	}
	str_puts(out, "\r\n");
}

static int status_of(struct slice in)
{
	int status = 0;

	if (in.len < STATUS_AT + 3 || !slice_starts(in, "HTTP/1.") || in.p[STATUS_AT - 1] != ' ')
		return -EPROTO;
	for (int i = 0; i < 3; i++) {
		char c = in.p[STATUS_AT + i];

		if (c < '0' || c > '9')
			return -EPROTO;
		status = status * 10 + (c - '0');
	}
	return status;
}

int proxy_wire_answer(struct slice in)
{
	int status;

	if (!memmem(in.p, in.len, "\r\n\r\n", 4))
		return in.len < PROXY_WIRE_HEAD_MAX ? -EAGAIN : -EPROTO;
	status = status_of(in);
	if (status < 0)
		return status;
	if (status >= 200 && status < 300)
		return 0;
	return status == PROXY_AUTHENTICATION_REQUIRED ? -EACCES : -EHOSTUNREACH;
}
