/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/policy_path.h"

#include <ctype.h>
#include <string.h>

#include "util/mem.h"
#include "util/scoped.h"
#include "util/utf8.h"

#define PATH_LONGEST 16384 /* longer ones are not looked into */

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The character at *p, which moves behind it; -1 where it may be read in more than one way. */
static int next_char(const char **p, const char *end)
{
	unsigned char c = (unsigned char)*(*p)++;
	int high, low;

	if (c == '%') {
		high = *p < end ? hex(**p) : -1;
		low = high >= 0 && *p + 1 < end ? hex((*p)[1]) : -1;
		if (low < 0)
			return -1;
		*p += 2;
		c = (unsigned char)(high * 16 + low);
		if (c == '/' || c == '%')
			return -1;
	}
	return c < 0x20 || c == 0x7f || c == '\\' || c == '#' ? -1 : c;
}

/* "." and "..", with ";" behind them or nothing before it, too: some servers cut that off. */
static bool is_dots(const char *part, size_t len)
{
	const char *semicolon = len ? memchr(part, ';', len) : NULL;

	if (semicolon)
		len = (size_t)(semicolon - part);
	return (semicolon && len == 0) || (len == 1 && part[0] == '.') ||
	       (len == 2 && memcmp(part, "..", 2) == 0);
}

/* Every part but the last, which is empty behind a final '/', has a name. */
static bool has_plain_parts(const char *path)
{
	const char *part = path + 1;

	for (;;) {
		size_t len = strcspn(part, "/");

		if (is_dots(part, len) || (len == 0 && part[len] == '/'))
			return false;
		if (!part[len])
			return true;
		part += len + 1;
	}
}

bool policy_path_read(const char *path, struct str *out)
{
	const char *end = path + strcspn(path, "?");

	str_reset(out);
	if (*path != '/' || end - path > PATH_LONGEST)
		return false;
	while (path < end) {
		int c = next_char(&path, end);

		if (c < 0)
			return false;
		str_putc(out, (char)c);
	}
	return has_plain_parts(out->p) && utf8_is_valid(out->p, out->len);
}

/* One step of a machine whose states are the places in the pattern: O(pattern * path), whatever they are. */
static void skip_stars(const char *pattern, size_t len, bool *at)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] && pattern[i] == '*')
			at[i + 1] = true;
}

static bool is_same(char a, char b, bool any_case)
{
	return a == b || (any_case && tolower((unsigned char)a) == tolower((unsigned char)b));
}

static bool matches(const char *pattern, const char *path, bool any_case)
{
	size_t len = strlen(pattern);
	scoped_mem bool *now = mem_zero(len + 1, sizeof(bool));
	scoped_mem bool *next = mem_zero(len + 1, sizeof(bool));

	now[0] = true;
	for (; *path; path++) {
		skip_stars(pattern, len, now);
		memset(next, 0, len + 1);
		for (size_t i = 0; i < len; i++) {
			bool is_deep = pattern[i] == '*' &&
			               (pattern[i + 1] == '*' || (i > 0 && pattern[i - 1] == '*'));

			if (!now[i])
				continue;
			if (pattern[i] == '*' && (is_deep || *path != '/'))
				next[i] = true;
			else if (is_same(pattern[i], *path, any_case))
				next[i + 1] = true;
		}
		bool *swap = now;

		now = next;
		next = swap;
	}
	skip_stars(pattern, len, now);
	return now[len];
}

bool policy_path_matches(const char *pattern, const char *path)
{
	return matches(pattern, path, false);
}

bool policy_path_may_match(const char *pattern, const char *path)
{
	scoped_str struct str bare = {0};
	bool is_in_tail = false;

	if (matches(pattern, path, true))
		return true;
	if (!strchr(path, ';'))
		return false;
	for (; *path; path++) {
		is_in_tail = *path == ';' || (is_in_tail && *path != '/');
		if (!is_in_tail)
			str_putc(&bare, *path);
	}
	return matches(pattern, bare.p ? bare.p : "", true);
}
