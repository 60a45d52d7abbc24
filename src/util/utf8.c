/* SPDX-License-Identifier: Apache-2.0 */
#include "util/utf8.h"

static bool is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Bounds of the second byte by the first: they hold overlong forms, surrogates and the top out. */
static bool is_second(unsigned char first, unsigned char c)
{
	switch (first) {
	case 0xe0:
		return c >= 0xa0 && c <= 0xbf;
	case 0xed:
		return c >= 0x80 && c <= 0x9f;
	case 0xf0:
		return c >= 0x90 && c <= 0xbf;
	case 0xf4:
		return c >= 0x80 && c <= 0x8f;
	default:
		return is_tail(c);
	}
}

size_t utf8_len(const char *p, size_t len)
{
	const unsigned char *u = (const unsigned char *)p;
	size_t n;

	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4)
		return 0;
	n = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	if (len < n || !is_second(u[0], u[1]))
		return 0;
	for (size_t i = 2; i < n; i++)
		if (!is_tail(u[i]))
			return 0;
	return n;
}

bool utf8_is_valid(const char *p, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = utf8_len(p + i, len - i);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

size_t utf8_cut(const char *p, size_t len, size_t max)
{
	if (len <= max)
		return len;
	for (size_t back = 0; back < 4 && back < max; back++)
		if (!is_tail((unsigned char)p[max - back]))
			return max - back;
	return max;
}

size_t utf8_whole_len(const char *p, size_t len)
{
	for (size_t i = len; i > 0 && i + 3 > len; i--) {
		unsigned char c = (unsigned char)p[i - 1];
		size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;

		if (want)
			return len - (i - 1) < want ? i - 1 : len;
		if (c < 0x80)
			break;
	}
	return len;
}

size_t utf8_next_start(const char *p, size_t len, size_t from)
{
	for (size_t i = from; i < len && i < from + 4; i++)
		if (!is_tail((unsigned char)p[i]))
			return i;
	return from < len ? from : len;
}
