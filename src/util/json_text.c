/* SPDX-License-Identifier: Apache-2.0 */
#include "util/json_text.h"

#include <string.h>

#define UNICODE_LEN 6 /* backslash, u, four digits */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What \uXXXX stands for; -1: it is none, or half of a pair. */
static int read_unicode(const char *p, size_t len)
{
	int code = 0;

	if (len < UNICODE_LEN)
		return -1;
	for (size_t i = 2; i < UNICODE_LEN; i++) {
		int digit = digit_of(p[i]);

		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code >= 0xd800 && code <= 0xdfff ? -1 : code;
}

/* Of one escape, at its backslash: how long it is and what it stands for. */
static int read_escape(const char *p, size_t len, int *ret_code)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (len < 2)
		return -1;
	if (p[1] == 'u') {
		*ret_code = read_unicode(p, len);
		return *ret_code < 0 ? -1 : UNICODE_LEN;
	}
	at = memchr(names, p[1], sizeof(names) - 1);
	if (!at)
		return -1;
	*ret_code = (unsigned char)meant[at - names];
	return 2;
}

long json_text_find_end(const char *p, size_t len, bool *ret_escaped)
{
	const char *quote = len ? memchr(p, '"', len) : NULL, *slash;
	size_t at = 0;

	*ret_escaped = false;
	while (quote && (slash = memchr(p + at, '\\', (size_t)(quote - p) - at))) {
		size_t from = (size_t)(slash - p);
		int code, n = read_escape(slash, len - from, &code);

		if (n < 0)
			return -1;
		*ret_escaped = true;
		at = from + (size_t)n;
		if (p + at > quote)
			quote = memchr(p + at, '"', len - at);
	}
	return quote ? quote - p : -1;
}

static size_t put(char *out, int code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	out[0] = (char)(0xe0 | code >> 12);
	out[1] = (char)(0x80 | (code >> 6 & 0x3f));
	out[2] = (char)(0x80 | (code & 0x3f));
	return 3;
}

size_t json_text_decode(char *p, size_t len)
{
	size_t from = 0, to = 0;

	while (from < len) {
		const char *slash = memchr(p + from, '\\', len - from);
		size_t run = slash ? (size_t)(slash - p) - from : len - from;
		int code = 0, n;

		memmove(p + to, p + from, run);
		from += run;
		to += run;
		if (!slash)
			break;
		n = read_escape(p + from, len - from, &code);
		if (n < 0)
			break; /* json_text_find_end() has refused it */
		to += put(p + to, code);
		from += (size_t)n;
	}
	return to;
}

static bool take(struct json_flat *flat, char want)
{
	if (flat->at == flat->end || *flat->at != want)
		return false;
	flat->at++;
	return true;
}

static bool take_text(struct json_flat *flat, struct slice *ret, bool *ret_escaped)
{
	long n;

	if (!take(flat, '"'))
		return false;
	n = json_text_find_end(flat->at, (size_t)(flat->end - flat->at), ret_escaped);
	if (n < 0)
		return false;
	*ret = (struct slice){.p = flat->at, .len = (size_t)n};
	flat->at += n + 1;
	return true;
}

int json_flat_next(struct json_flat *flat, struct json_flat_item *ret_item)
{
	bool escaped;

	if (flat->is_over)
		return 0;
	if (!flat->is_begun) {
		flat->is_begun = true;
		if (!take(flat, '{'))
			return -1;
		if (take(flat, '}')) {
			flat->is_over = true;
			return 0;
		}
	} else if (take(flat, '}')) {
		flat->is_over = true;
		return 0;
	} else if (!take(flat, ',')) {
		return -1;
	}
	if (!take_text(flat, &ret_item->name, &escaped) || escaped || !take(flat, ':'))
		return -1;
	return take_text(flat, &ret_item->value, &ret_item->escaped) ? 1 : -1;
}
