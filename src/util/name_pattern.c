/* SPDX-License-Identifier: Apache-2.0 */
/* Both levels, characters in a name and names in a path, by the same rule: on a mismatch the last star takes one more. A
 * star before the last need not be looked at again, since what it could take the last can take as well. */
#include "util/name_pattern.h"

static struct slice cut(struct slice from, size_t n)
{
	return (struct slice){.p = from.p + n, .len = from.len - n};
}

/* Length of the set at p, which begins with '['; 0 where it has no end, so that the '[' means itself. */
static size_t set_len(struct slice p)
{
	size_t i = 1;

	i += i < p.len && (p.p[i] == '!' || p.p[i] == '^');
	i += i < p.len && p.p[i] == ']';
	while (i < p.len && p.p[i] != ']')
		i += p.p[i] == '\\' && i + 1 < p.len ? 2 : 1;
	return i < p.len ? i + 1 : 0;
}

static bool set_has(struct slice set, unsigned char c)
{
	bool is_not = set.len > 1 && (set.p[1] == '!' || set.p[1] == '^'), has = false;
	size_t end = set.len - 1;

	for (size_t i = is_not ? 2 : 1; i < end; i++) {
		unsigned char from, to;

		i += set.p[i] == '\\' && i + 1 < end;
		from = to = (unsigned char)set.p[i];
		if (i + 2 < end && set.p[i + 1] == '-') {
			i += 2;
			i += set.p[i] == '\\' && i + 1 < end;
			to = (unsigned char)set.p[i];
		}
		has |= from <= c && c <= to;
	}
	return has != is_not;
}

/* How much of the pattern the character takes; 0: it is another. */
static size_t take_one(struct slice pattern, char c)
{
	size_t len;

	if (pattern.len == 0)
		return 0;
	if (pattern.p[0] == '?')
		return 1;
	if (pattern.p[0] == '\\' && pattern.len > 1)
		return pattern.p[1] == c ? 2 : 0;
	len = pattern.p[0] == '[' ? set_len(pattern) : 0;
	if (len > 0)
		return set_has((struct slice){.p = pattern.p, .len = len}, (unsigned char)c) ? len
		                                                                             : 0;
	return pattern.p[0] == c ? 1 : 0;
}

static bool matches_name(struct slice pattern, struct slice name)
{
	struct slice star = {0}, from = {0};

	while (name.len > 0) {
		size_t n =
			pattern.len > 0 && pattern.p[0] == '*' ? 0 : take_one(pattern, name.p[0]);

		if (n > 0) {
			pattern = cut(pattern, n);
			name = cut(name, 1);
		} else if (pattern.len > 0 && pattern.p[0] == '*') {
			pattern = star = cut(pattern, 1);
			from = name;
		} else if (from.p) {
			pattern = star;
			name = from = cut(from, 1);
		} else {
			return false;
		}
	}
	while (pattern.len > 0 && pattern.p[0] == '*')
		pattern = cut(pattern, 1);
	return pattern.len == 0;
}

/* Takes the first name of a path. */
static bool next_name(struct slice *path, struct slice *ret)
{
	const char *slash;

	while (path->len > 0 && path->p[0] == '/')
		*path = cut(*path, 1);
	if (path->len == 0)
		return false;
	slash = memchr(path->p, '/', path->len);
	*ret = (struct slice){.p = path->p, .len = slash ? (size_t)(slash - path->p) : path->len};
	*path = cut(*path, ret->len);
	return true;
}

bool name_pattern_matches(struct slice pattern, struct slice path)
{
	struct slice stars = {0}, from = {0}, name, want;
	bool has_stars = false;

	for (;;) {
		struct slice rest = pattern, left = path;
		bool has_want = next_name(&rest, &want), has_name = next_name(&left, &name);

		if (has_want && slice_is(want, "**")) {
			pattern = stars = rest;
			from = path;
			has_stars = true;
		} else if (!has_name && !has_want) {
			return true;
		} else if (has_name && has_want && matches_name(want, name)) {
			pattern = rest;
			path = left;
		} else if (has_stars && next_name(&from, &name)) {
			pattern = stars;
			path = from;
		} else {
			return false;
		}
	}
}

bool name_pattern_leads(struct slice pattern, struct slice folder)
{
	struct slice name, want;

	while (next_name(&folder, &name)) {
		if (!next_name(&pattern, &want))
			return false;
		if (slice_is(want, "**"))
			return true;
		if (!matches_name(want, name))
			return false;
	}
	return next_name(&pattern, &want);
}
