/* SPDX-License-Identifier: Apache-2.0 */
#include "view/command_fold.h"

#include "view/program_class.h"

#define WRAPPERS_MAX 16 /* one in another */
#define N(array)     (sizeof(array) / sizeof((array)[0]))

static struct slice from(struct slice s, size_t at)
{
	return (struct slice){.p = s.p + at, .len = s.len - at};
}

static struct slice trim(struct slice s)
{
	while (s.len && strchr(" \t\n;", s.p[0]))
		s = from(s, 1);
	while (s.len && strchr(" \t\n", s.p[s.len - 1]))
		s.len--;
	return s;
}

/* Where needle begins in s for the last time, or s.len. */
static size_t find_last(struct slice s, const char *needle)
{
	size_t n = strlen(needle);

	for (size_t at = s.len >= n ? s.len - n + 1 : 0; at-- > 0;)
		if (memcmp(s.p + at, needle, n) == 0)
			return at;
	return s.len;
}

static size_t find_first(struct slice s, const char *needle)
{
	const char *at = s.len ? memmem(s.p, s.len, needle, strlen(needle)) : NULL;

	return at ? (size_t)(at - s.p) : s.len;
}

/* A quoted stretch that begins behind the quote at s.p[i]; i moves to its closing quote. -1 without one. */
static int read_quoted(struct slice s, size_t *i, struct str *word)
{
	char quote = s.p[*i];

	for (++*i; *i < s.len && s.p[*i] != quote; ++*i) {
		if (quote == '"' && s.p[*i] == '\\' && *i + 1 < s.len &&
			strchr("\"\\$`", s.p[*i + 1]))
			++*i;
		str_putc(word, s.p[*i]);
	}
	return *i < s.len ? 0 : -1;
}

/* Reads one word as a shell would, without expansions. Returns how long it was, 0 where it does not end. */
static size_t read_word(struct slice s, struct str *word)
{
	size_t i = 0;

	str_reset(word);
	for (; i < s.len && !strchr(" \t\n;&|<>", s.p[i]); i++) {
		if (s.p[i] == '\'' || s.p[i] == '"') {
			if (read_quoted(s, &i, word) < 0)
				return 0;
		} else if (s.p[i] == '\\' && i + 1 < s.len) {
			str_putc(word, s.p[++i]);
		} else {
			str_putc(word, s.p[i]);
		}
	}
	return i;
}

static bool starts_as_preamble(struct slice s)
{
	static const char *const starts[] = {"source ", ". ", "[[ -f ", "if ", "shopt ", "setopt "};

	for (size_t i = 0; i < N(starts); i++)
		if (slice_starts(s, starts[i]))
			return true;
	return false;
}

/* What stands behind the command's word in a wrapper. Nothing may, where what stands before it is one for certain. */
static bool is_epilogue(struct slice whole, struct slice s)
{
	static const char *const starts[] = {"\\< /dev/null", "< /dev/null", "&& pwd -P", "pwd -P"};

	s = trim(s);
	for (size_t i = 0; i < N(starts); i++)
		if (slice_starts(s, starts[i]))
			return true;
	return s.len == 0 &&
	       (slice_starts(whole, "[[ -f ") || find_first(whole, "snapshot") < whole.len);
}

/* "PREAMBLE eval 'COMMAND' EPILOGUE" */
static bool unwrap_eval(struct slice s, struct str *word)
{
	size_t at = find_first(s, "eval "), len;
	struct slice rest;

	if (at == s.len || !starts_as_preamble(s))
		return false;
	for (;;) {
		size_t more;

		rest = trim(from(s, at + 5));
		len = rest.len && strchr("'\"", rest.p[0]) ? read_word(rest, word) : 0;
		if (len && is_epilogue(s, from(rest, len)))
			return true;
		more = find_first(from(s, at + 5), "eval ");
		if (at + 5 + more >= s.len)
			return false;
		at += 5 + more;
	}
}

/* ". SNAPSHOT; exec '/bin/bash' -c 'COMMAND'" */
static bool unwrap_exec(struct slice s, struct str *word)
{
	size_t at = find_first(s, "exec '"), len;
	struct slice rest;

	if (at == s.len || find_first(s, "snapshot") > at)
		return false;
	rest = from(s, at + 5);
	len = read_word(rest, word);
	if (!len || !program_class_is_shell(program_class_base(str_slice(word))))
		return false;
	rest = trim(from(rest, len));
	if (!slice_starts(rest, "-c ") && !slice_starts(rest, "-lc "))
		return false;
	rest = trim(from(rest, find_first(rest, " ")));
	return read_word(rest, word) > 0;
}

/* "shopt ...; { COMMAND; }; __code=$?; pgrep -g 0 >FILE 2>&1; exit $__code;" */
static bool unwrap_group(struct slice s, struct str *word)
{
	size_t end = find_last(s, "__code=$?"), open = find_first(s, "{ ");
	struct slice inner;

	if (end == s.len || open > end || find_first(from(s, end), "pgrep -g 0") == s.len - end)
		return false;
	inner = trim((struct slice){.p = s.p + open + 1, .len = end - open - 1});
	while (inner.len && strchr("}; \n", inner.p[inner.len - 1]) &&
		inner.p[inner.len - 1] != '}')
		inner.len--;
	if (inner.len && inner.p[inner.len - 1] == '}')
		inner.len--;
	while (inner.len && strchr("; \n", inner.p[inner.len - 1]))
		inner.len--;
	str_reset(word);
	str_add(word, inner.p, inner.len);
	return inner.len > 0;
}

/* An agent makes a snapshot of its shell's settings, or tries whether one can be read: no command of anybody. */
static bool is_plumbing(struct slice s)
{
	static const char trial[] = "set -e; . \"/";

	if (slice_starts(s, trial))
		return find_first(s, "/shell_snapshots/") < s.len &&
		       find_first(from(s, sizeof(trial)), "\"") == s.len - sizeof(trial) - 1;
	return slice_starts(s, "SNAPSHOT_FILE=") || find_first(s, "\nSNAPSHOT_FILE=") < s.len ||
	       find_first(s, "\necho '# Snapshot file'\n") < s.len;
}

static void read_string(struct command_fold *fold, struct slice s)
{
	struct slice text = trim(s);

	fold->shape = COMMAND_STRING;
	if (unwrap_eval(text, &fold->command) || unwrap_exec(text, &fold->command) ||
		unwrap_group(text, &fold->command))
		return;
	if (is_plumbing(text))
		fold->shape = COMMAND_PLUMBING;
	str_reset(&fold->command);
	str_add(&fold->command, s.p, s.len);
}

void command_fold_read(struct command_fold *fold, const struct event_list *argv)
{
	size_t at;

	fold->shape = COMMAND_ARGV;
	fold->first = 0;
	str_reset(&fold->command);
	for (int i = 0; i < WRAPPERS_MAX; i++) {
		size_t inner = program_class_unwrap(argv, fold->first);

		if (!inner)
			break;
		fold->first = inner;
	}
	if (fold->first >= argv->n ||
		!program_class_is_shell(program_class_base(argv->items[fold->first])))
		return;
	switch (program_class_shell(argv, fold->first, &at)) {
	case PROGRAM_CLASS_STRING:
		read_string(fold, argv->items[at]);
		return;
	case PROGRAM_CLASS_SESSION:
		fold->shape = COMMAND_SESSION;
		return;
	case PROGRAM_CLASS_SCRIPT:
		return;
	}
}

void command_fold_done(struct command_fold *fold)
{
	str_done(&fold->command);
}
