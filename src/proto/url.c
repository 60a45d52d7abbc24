/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/url.h"

#include <arpa/inet.h>
#include <errno.h>

#define LABEL_MAX     63
#define PARTS_MAX     4 /* of an IPv4 address */
#define PORT_DIGITS   5
#define BRACKETED_MAX 64 /* the longest v6 address, and some */

static const struct {
	const char *scheme;
	uint16_t port;
} schemes[] = {{"http", 80}, {"https", 443}, {"ws", 80}, {"wss", 443}};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool is_letter(char c)
{
	c = lower(c);
	return c >= 'a' && c <= 'z';
}

static struct slice part_of(struct slice text, size_t from, size_t to)
{
	return (struct slice){.p = text.p + from, .len = to - from};
}

/* The place of c in text, or its length. */
static size_t find(struct slice text, char c)
{
	const char *at = text.len ? memchr(text.p, c, text.len) : NULL;

	return at ? (size_t)(at - text.p) : text.len;
}

/* A digit in this base, or -1. */
static int digit_of(char c, unsigned base)
{
	int v = -1;

	if (is_digit(c))
		v = c - '0';
	else if (is_letter(c))
		v = lower(c) - 'a' + 10;
	return v >= 0 && (unsigned)v < base ? v : -1;
}

/* A number as C writes it: decimal, 0x..., 0... False for anything else; "0x" is 0, as elsewhere. */
static bool read_number(struct slice text, uint64_t *ret)
{
	unsigned base = 10;
	size_t i = 0;
	uint64_t v = 0;

	if (text.len == 0)
		return false;
	if (text.len > 1 && text.p[0] == '0') {
		base = lower(text.p[1]) == 'x' ? 16 : 8;
		i = base == 16 ? 2 : 1;
	}
	for (; i < text.len; i++) {
		int digit = digit_of(text.p[i], base);

		if (digit < 0)
			return false;
		v = v * base + (unsigned)digit;
		if (v > UINT32_MAX)
			v = (uint64_t)UINT32_MAX + 1; /* too big, and stays so */
	}
	*ret = v;
	return true;
}

static bool is_all_digits(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_digit(text.p[i]))
			return false;
	return text.len > 0;
}

/* Whether programs take a host for an IPv4 address: the last of its labels is a number. */
static bool ends_in_number(struct slice text)
{
	size_t from = text.len;
	struct slice last;
	uint64_t v;

	while (from > 0 && text.p[from - 1] != '.')
		from--;
	last = part_of(text, from, text.len);
	return is_all_digits(last) || read_number(last, &v);
}

/* One to four numbers; the last fills what the others leave. */
static int read_ipv4(struct slice text, struct url_host *ret)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint64_t parts[PARTS_MAX], v;
	size_t n = 0;

	for (size_t from = 0; from <= text.len; n++) {
		size_t to = from + find(part_of(text, from, text.len), '.');

		if (n == PARTS_MAX || !read_number(part_of(text, from, to), &parts[n]))
			return -EINVAL;
		from = to + 1;
	}
	v = parts[n - 1];
	if (v >= 1ULL << 8 * (PARTS_MAX + 1 - n))
		return -EINVAL;
	for (size_t i = 0; i + 1 < n; i++) {
		if (parts[i] > UINT8_MAX)
			return -EINVAL;
		v |= parts[i] << 8 * (PARTS_MAX - 1 - i);
	}
	ret->kind = URL_IPV4;
	memcpy(ret->address, mapped, sizeof(mapped));
	for (size_t i = 0; i < PARTS_MAX; i++)
		ret->address[sizeof(mapped) + i] = (uint8_t)(v >> 8 * (PARTS_MAX - 1 - i));
	return inet_ntop(AF_INET, ret->address + sizeof(mapped), ret->text, sizeof(ret->text))
	               ? 0
	               : -EINVAL;
}

static int read_ipv6(struct slice text, struct url_host *ret)
{
	char copy[BRACKETED_MAX] = {0};

	if (text.len >= sizeof(copy) || find(text, '\0') < text.len)
		return -EINVAL;
	memcpy(copy, text.p, text.len);
	if (inet_pton(AF_INET6, copy, ret->address) != 1)
		return -EINVAL;
	ret->kind = URL_IPV6;
	return inet_ntop(AF_INET6, ret->address, ret->text, sizeof(ret->text)) ? 0 : -EINVAL;
}

static int read_name(struct slice text, struct url_host *ret)
{
	size_t label = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = lower(text.p[i]);

		label = c == '.' ? 0 : label + 1;
		if (label > LABEL_MAX || (c == '.' && (i == 0 || text.p[i - 1] == '.')))
			return -EINVAL;
		if (!is_letter(c) && !is_digit(c) && c != '.' && c != '-' && c != '_')
			return -EINVAL;
		ret->text[i] = c;
	}
	ret->text[text.len] = '\0';
	ret->kind = URL_NAME;
	return 0;
}

int url_host_read(struct slice text, struct url_host *ret)
{
	struct url_host host = {0};
	int r;

	if (text.len >= 2 && text.p[0] == '[' && text.p[text.len - 1] == ']') {
		r = read_ipv6(part_of(text, 1, text.len - 1), &host);
	} else {
		if (text.len > 1 && text.p[text.len - 1] == '.')
			text.len--;
		if (text.len == 0 || text.len >= URL_HOST_MAX || text.p[text.len - 1] == '.')
			return -EINVAL;
		r = ends_in_number(text) ? read_ipv4(text, &host) : read_name(text, &host);
	}
	if (r < 0)
		return r;
	*ret = host;
	return 0;
}

static int read_port(struct slice text, uint16_t *ret)
{
	unsigned v = 0;

	if (!is_all_digits(text) || text.len > PORT_DIGITS)
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++)
		v = v * 10 + (unsigned)(text.p[i] - '0');
	if (v == 0 || v > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

int url_authority_read(struct slice text, struct url_authority *ret)
{
	struct url_authority authority = {0};
	size_t at = find(text, '@'), end;
	struct slice rest = text;
	int r;

	if (at < text.len) {
		authority.user = part_of(text, 0, at);
		rest = part_of(text, at + 1, text.len);
	}
	/* A colon inside brackets is the address's own. */
	end = rest.len > 0 && rest.p[0] == '[' ? find(rest, ']') : 0;
	end += find(part_of(rest, end, rest.len), ':');
	r = url_host_read(part_of(rest, 0, end), &authority.host);
	if (r == 0 && end < rest.len)
		r = read_port(part_of(rest, end + 1, rest.len), &authority.port);
	if (r < 0)
		return r;
	*ret = authority;
	return 0;
}

/* Printable, and nothing that one reader or another takes for the end or for a slash. */
static bool is_plain(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.p[i] <= ' ' || text.p[i] == 0x7f || text.p[i] == '#' ||
			text.p[i] == '\\')
			return false;
	return true;
}

int url_read(struct slice text, struct url *ret)
{
	size_t colon = find(text, ':'), end;
	struct url url = {0};
	int r;

	if (colon == 0 || colon >= sizeof(url.scheme) || !is_plain(text) ||
		!slice_starts(part_of(text, colon, text.len), "://"))
		return -EINVAL;
	for (size_t i = 0; i < colon; i++) {
		if (!is_letter(text.p[i]))
			return -EINVAL;
		url.scheme[i] = lower(text.p[i]);
	}
	text = part_of(text, colon + strlen("://"), text.len);
	end = find(text, '/');
	end = find(part_of(text, 0, end), '?');
	r = url_authority_read(part_of(text, 0, end), &url.authority);
	if (r < 0)
		return r;
	url.path = part_of(text, end, text.len);
	*ret = url;
	return 0;
}

uint16_t url_default_port(struct slice scheme)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (slice_is(scheme, schemes[i].scheme))
			return schemes[i].port;
	return 0;
}

void url_add_authority(struct str *out, const char *scheme, const char *host, uint16_t port)
{
	str_printf(out, strchr(host, ':') ? "[%s]" : "%s", host);
	if (port && port != url_default_port(slice_of(scheme)))
		str_printf(out, ":%u", port);
}

void url_add(
	struct str *out, const char *scheme, const char *host, uint16_t port, struct slice path)
{
	str_printf(out, "%s://", scheme);
	url_add_authority(out, scheme, host, port);
	str_add(out, path.p, path.len);
}
