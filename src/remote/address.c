/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/address.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/url.h"
#include "spec/spec_network.h"
#include "util/mem.h"
#include "util/scoped.h"

#define UNIX      "unix://"
#define PATH_MAX_ 107 /* of a Unix socket */

void address_done(struct address *address)
{
	free(address->shown);
	free(address->base);
	free(address->socket);
	*address = (struct address){0};
}

void address_add_part(struct str *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c < 128 && isalnum(c)) || strchr("-._~", c))
			str_putc(out, *text);
		else
			str_printf(out, "%%%02X", c);
	}
}

static int read_socket(const char *text, struct address *ret, struct err *err)
{
	const char *path = text + strlen(UNIX);

	if (path[0] != '/' || strlen(path) > PATH_MAX_)
		return err_set(err, -EINVAL,
			"'%s': want " UNIX "PATH with an absolute path of at most %d bytes", text,
			PATH_MAX_);
	*ret = (struct address){.shown = mem_dup(text),
		.base = mem_dup("http://localhost"),
		.socket = mem_dup(path),
		.is_near = true};
	return 0;
}

static bool is_loopback(const struct url_host *host)
{
	static const unsigned char v4[13] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127},
				   v6[16] = {[15] = 1};

	switch (host->kind) {
	case URL_NAME:
		return strcmp(host->text, "localhost") == 0;
	case URL_IPV4:
		return memcmp(host->address, v4, sizeof(v4)) == 0;
	case URL_IPV6:
		return memcmp(host->address, v6, sizeof(v6)) == 0;
	}
	return false;
}

/* "localhost:7410" reads as a scheme to a parser, and as an address to people. */
static int refuse(const char *text, struct err *err)
{
	if (!strstr(text, "://"))
		return err_set(err, -EINVAL,
			"'%s': want a URL, such as https://%s or unix:///run/cloche/cloche.sock",
			text, text[0] && text[0] != '/' ? text : "HOST:PORT");
	return err_set(err, -EINVAL,
		"'%s': want https://HOST[:PORT], http://HOST[:PORT] or unix://PATH, without a "
		"user, a query or a fragment",
		text);
}

int address_read(const char *text, struct address *ret_address, struct err *err)
{
	scoped_str struct str base = {0};
	struct url url;
	bool is_secure;

	if (strncmp(text, UNIX, strlen(UNIX)) == 0)
		return read_socket(text, ret_address, err);
	if (url_read(slice_of(text), &url) < 0 || url.authority.user.p ||
		(url.path.len && memchr(url.path.p, '?', url.path.len)))
		return refuse(text, err);
	is_secure = strcmp(url.scheme, "https") == 0;
	if (!is_secure && strcmp(url.scheme, "http") != 0)
		return refuse(text, err);
	while (url.path.len && url.path.p[url.path.len - 1] == '/')
		url.path.len--;
	url_add(&base, url.scheme, url.authority.host.text, url.authority.port, url.path);
	*ret_address = (struct address){.shown = mem_dup(text),
		.base = str_take(&base),
		.is_near = is_loopback(&url.authority.host)};
	ret_address->is_open =
		!is_secure && !ret_address->is_near &&
		strcmp(url.authority.host.text, SPEC_PLANE_HOST) != 0; /* leaves no host */
	return 0;
}
