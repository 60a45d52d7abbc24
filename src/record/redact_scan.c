/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over each text. Most bytes cost one look into a table; at the few that can begin or announce a
 * secret (a word's start, '=', ':', '-') the rules are asked. Where a rule finds a value, the mark takes its
 * place; what is around it stays. */
#include "record/redact_scan.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "record/redact_rules.h"
#include "util/digest.h"

#define MARK        "[redacted #"
#define MARK_HEX    6
#define BEARER_MIN  8  /* shorter words behind "bearer" are prose */
#define BEARER_LONG 20 /* so long without a digit is still a token */
#define USER_MIN    20 /* a URL's user name of this length is a token */
#define BARE_MIN    8  /* of a value behind "name = " */

enum look {
	LOOK_NONE,
	LOOK_WORD, /* may begin a token or "Bearer" */
	LOOK_SIGN, /* '=', ':', '-' */
};

/* The text at hand. */
struct scan {
	const struct redact_scan_rules *rules;
	struct slice in;
	bool is_argument; /* NAME=VALUE goes to the end */
	struct str *out;
	size_t done; /* of in, already in out */
	bool found;
};

static unsigned char looks[256];

void redact_scan_init(void)
{
	for (const char *p = redact_rules_token_starts; *p; p++)
		looks[(unsigned char)*p] = LOOK_WORD;
	looks['B'] = looks['b'] = LOOK_WORD;
	looks['='] = looks[':'] = looks['-'] = LOOK_SIGN;
}

static void add_mark(const struct scan *scan, struct slice value)
{
	char hex[DIGEST_HEX_SIZE];
	struct digest d;

	digest_init(&d);
	digest_add(&d, scan->rules->salt, strlen(scan->rules->salt));
	digest_add(&d, "\n", 1);
	digest_add(&d, value.p, value.len);
	digest_value_hex(&d, hex);
	str_puts(scan->out, MARK);
	str_add(scan->out, hex, MARK_HEX);
	str_putc(scan->out, ']');
}

static bool is_allowed(const struct scan *scan, size_t from, size_t to)
{
	struct slice value = {.p = scan->in.p + from, .len = to - from};

	for (size_t i = 0; i < scan->rules->n_allowed; i++)
		if (slice_eq(scan->rules->allowed[i], value))
			return true;
	return false;
}

/* The mark for bytes from..to; says where to go on. */
static size_t put(struct scan *scan, size_t from, size_t to)
{
	if (is_allowed(scan, from, to))
		return to;
	str_add(scan->out, scan->in.p + scan->done, from - scan->done);
	add_mark(scan, (struct slice){.p = scan->in.p + from, .len = to - from});
	scan->done = to;
	scan->found = true;
	return to;
}

static struct slice part(const struct scan *scan, size_t from, size_t to)
{
	return (struct slice){.p = scan->in.p + from, .len = to - from};
}

static bool is_at(const struct scan *scan, size_t i, char c)
{
	return i < scan->in.len && scan->in.p[i] == c;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

static size_t skip_blanks(const struct scan *scan, size_t i)
{
	while (i < scan->in.len && is_blank(scan->in.p[i]))
		i++;
	return i;
}

/* No value of its own: a variable, a word of a language, stars, or redacted already. */
bool redact_scan_is_no_value(struct slice v)
{
	static const char *const words[] = {"none", "null", "nil", "true", "false", "undefined"};

	if (v.len == 0 || slice_starts(v, MARK))
		return true;
	if (v.p[0] == '$' && v.len > 1 && (redact_rules_is_word(v.p[1]) || strchr("{(", v.p[1])))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (v.len == strlen(words[i]) && strncasecmp(v.p, words[i], v.len) == 0)
			return true;
	for (size_t i = 0; i < v.len; i++)
		if (v.p[i] != '*')
			return false;
	return true;
}

/* Where a bare word ends. An escaped quote ends it, other escapes belong to it: in JSON that is kept as it
 * is nothing may be cut in two. */
static size_t word_end(const struct scan *scan, size_t i)
{
	const char *p = scan->in.p;

	for (; i < scan->in.len; i++) {
		if (p[i] == '\\' && i + 1 < scan->in.len) {
			if (is_quote(p[i + 1]))
				return i;
			i++;
		} else if (isspace((unsigned char)p[i]) || is_quote(p[i]) ||
			   strchr("&;|<>(),{}", p[i])) {
			return i;
		}
	}
	return scan->in.len;
}

static size_t quote_end(const struct scan *scan, size_t i, char quote)
{
	for (; i < scan->in.len && scan->in.p[i] != quote; i++)
		if (scan->in.p[i] == '\\' && quote == '"')
			i++;
	return i < scan->in.len ? i : scan->in.len;
}

static size_t line_end(const struct scan *scan, size_t i)
{
	const char *p = scan->in.p;

	for (; i < scan->in.len && !strchr("\r\n\"'", p[i]); i++)
		if (p[i] == '\\' && i + 1 < scan->in.len &&
			(is_quote(p[i + 1]) || strchr("nr", p[i + 1])))
			break;
		else if (p[i] == '\\')
			i++;
	return i < scan->in.len ? i : scan->in.len;
}

/* Redacts the value that begins at i, quoted or not. */
static size_t put_value(struct scan *scan, size_t i)
{
	size_t to;

	if (i < scan->in.len && scan->in.p[i] == '\\' && i + 1 < scan->in.len &&
		is_quote(scan->in.p[i + 1]))
		i += 2;
	else if (i < scan->in.len && is_quote(scan->in.p[i])) {
		to = quote_end(scan, i + 1, scan->in.p[i]);
		return redact_scan_is_no_value(part(scan, i + 1, to)) ? to : put(scan, i + 1, to);
	}
	to = word_end(scan, i);
	return redact_scan_is_no_value(part(scan, i, to)) ? to : put(scan, i, to);
}

static bool is_name_byte(char c)
{
	return redact_rules_is_word(c) || c == '-' || c == '.';
}

/* The name that ends before i, without dashes in front. */
static struct slice name_before(const struct scan *scan, size_t i)
{
	size_t from = i;

	while (from > 0 && is_name_byte(scan->in.p[from - 1]))
		from--;
	while (from < i && scan->in.p[from] == '-')
		from++;
	return part(scan, from, i);
}

static bool begins_line(const struct scan *scan, const char *at)
{
	while (at > scan->in.p && (is_blank(at[-1]) || at[-1] == '-' || at[-1] == '{'))
		at--;
	return at == scan->in.p || at[-1] == '\n';
}

/* "name = value", as in ini files: a value, not code. */
static bool is_bare_value(struct slice v)
{
	bool digit = false;

	for (size_t i = 0; i < v.len; i++) {
		if (!redact_rules_is_word(v.p[i]) && !strchr("+/=~-", v.p[i]))
			return false;
		digit |= isdigit((unsigned char)v.p[i]) != 0;
	}
	return v.len >= BARE_MIN && digit;
}

static size_t on_spaced_equals(struct scan *scan, size_t i, size_t name_end)
{
	struct slice name = name_before(scan, name_end);
	size_t value = skip_blanks(scan, i + 1);

	if (name.len == 0 || !redact_rules_is_secret_name(name) || !begins_line(scan, name.p))
		return i + 1;
	if (value < scan->in.len && is_quote(scan->in.p[value]))
		return put_value(scan, value);
	return is_bare_value(part(scan, value, word_end(scan, value))) ? put_value(scan, value)
	                                                               : i + 1;
}

static size_t on_equals(struct scan *scan, size_t i)
{
	struct slice name;

	if (i == 0 || is_at(scan, i + 1, '=') || strchr("!<>=+:", scan->in.p[i - 1]))
		return i + 1;
	if (is_blank(scan->in.p[i - 1])) {
		size_t end = i;

		while (end > 0 && is_blank(scan->in.p[end - 1]))
			end--;
		return on_spaced_equals(scan, i, end);
	}
	name = name_before(scan, i);
	if (name.len == 0 || !redact_rules_is_secret_name(name))
		return i + 1;
	if (!scan->is_argument || name.p - scan->in.p > 2 ||
		redact_scan_is_no_value(part(scan, i + 1, scan->in.len)))
		return put_value(scan, i + 1);
	return put(scan, i + 1, scan->in.len);
}

/* ://user:secret@host */
static size_t on_url(struct scan *scan, size_t i)
{
	size_t from = i + 3, end = from, at = 0, colon = 0;

	for (; end < scan->in.len && !strchr("/?#\\ \t\r\n\"'`<>", scan->in.p[end]); end++) {
		if (scan->in.p[end] == '@')
			at = end;
		else if (scan->in.p[end] == ':' && !colon && !at)
			colon = end;
	}
	if (at == 0)
		return from;
	if (colon)
		from = colon + 1;
	else if (at - from < USER_MIN)
		return at;
	return redact_scan_is_no_value(part(scan, from, at)) ? at : put(scan, from, at);
}

/* The value of Authorization, without the scheme's name before it. */
static size_t on_credentials(struct scan *scan, size_t i)
{
	size_t end = line_end(scan, i), word = i;

	while (word < end && isalpha((unsigned char)scan->in.p[word]))
		word++;
	if (word < end && scan->in.p[word] == ' ')
		i = skip_blanks(scan, word);
	while (end > i && is_blank(scan->in.p[end - 1]))
		end--;
	return redact_scan_is_no_value(part(scan, i, end)) ? end : put(scan, i, end);
}

static size_t on_header(struct scan *scan, size_t i, struct slice name, bool is_json)
{
	size_t value = skip_blanks(scan, i + 1);

	if (value >= scan->in.len || scan->in.p[value] == '\n' || scan->in.p[value] == '\r')
		return i + 1;
	if (is_json)
		return is_quote(scan->in.p[value]) || scan->in.p[value] == '\\'
		               ? put_value(scan, value)
		               : i + 1;
	if (redact_rules_is_cookie(name))
		return put(scan, value, line_end(scan, value));
	if (slice_ends(name, "uthorization"))
		return on_credentials(scan, value);
	return put_value(scan, value);
}

/* "name": in JSON, Name: at the start of a line or of a quoted argument. */
static size_t on_colon(struct scan *scan, size_t i)
{
	size_t end = i;
	struct slice name;
	bool is_json;

	if (is_at(scan, i + 1, '/') && is_at(scan, i + 2, '/'))
		return on_url(scan, i);
	is_json = i > 1 && is_quote(scan->in.p[i - 1]);
	if (is_json)
		end -= scan->in.p[i - 2] == '\\' ? 2 : 1;
	name = name_before(scan, end);
	if (name.len == 0)
		return i + 1;
	if (!redact_rules_is_secret_header(name) && !(is_json && redact_rules_is_secret_name(name)))
		return i + 1;
	if (!is_json && !begins_line(scan, name.p) && !is_quote(name.p[-1]))
		return i + 1;
	return on_header(scan, i, name, is_json);
}

/* Takes out a private key in PEM, up to its end line. */
static size_t on_pem(struct scan *scan, size_t i)
{
	static const char head_end[] = "PRIVATE KEY-----", end[] = "-----END";
	size_t stop = line_end(scan, i);
	const char *body = memmem(scan->in.p + i, stop - i, head_end, sizeof(head_end) - 1), *to;
	size_t from;

	if (!body)
		return i + 5;
	from = (size_t)(body - scan->in.p) + sizeof(head_end) - 1;
	to = memmem(scan->in.p + from, scan->in.len - from, end, sizeof(end) - 1);
	stop = to ? (size_t)(to - scan->in.p) : scan->in.len;
	for (size_t k = from; k < stop;
		k++) /* there is no quote in a key: the text around it ends there */
		if (is_quote(scan->in.p[k]))
			stop = k;
	return put(scan, from, stop);
}

/* `curl -u name:secret` in a command line: the one such option that people type there. */
static size_t on_user_option(struct scan *scan, size_t i)
{
	size_t end, colon;

	if (i < scan->in.len && is_quote(scan->in.p[i]))
		i++;
	end = word_end(scan, i);
	for (colon = i; colon < end && scan->in.p[colon] != ':';)
		colon++;
	if (colon >= end || redact_scan_is_no_value(part(scan, colon + 1, end)))
		return i;
	return put(scan, colon + 1, end);
}

static bool is_after_curl(const struct scan *scan, size_t i)
{
	return memmem(scan->in.p, i, "curl ", 5) != NULL;
}

/* --name value, inside a command line. */
static size_t on_dash(struct scan *scan, size_t i)
{
	size_t end = i, value;

	struct slice rest = part(scan, i, scan->in.len);

	if (slice_starts(rest, "-----BEGIN "))
		return on_pem(scan, i);
	if (i > 0 && !isspace((unsigned char)scan->in.p[i - 1]))
		return i + 1;
	if (slice_starts(rest, "-u ") && is_after_curl(scan, i))
		return on_user_option(scan, i + 3);
	if (slice_starts(rest, "--user ") && is_after_curl(scan, i))
		return on_user_option(scan, i + 7);
	if (!is_at(scan, i + 1, '-'))
		return i + 1;
	while (end < scan->in.len && is_name_byte(scan->in.p[end]))
		end++;
	value = skip_blanks(scan, end);
	if (value == end || value == scan->in.len || scan->in.p[value] == '-')
		return end;
	return redact_rules_is_secret_name(name_before(scan, end)) ? put_value(scan, value) : end;
}

static size_t on_bearer(struct scan *scan, size_t i)
{
	size_t from = skip_blanks(scan, i + 6), end = from;
	bool digit = false;

	for (; end < scan->in.len &&
		(redact_rules_is_word(scan->in.p[end]) || strchr(".~+/=-", scan->in.p[end]));
		end++)
		digit |= isdigit((unsigned char)scan->in.p[end]) != 0;
	if (from == i + 6 || end - from < BEARER_MIN || (!digit && end - from < BEARER_LONG))
		return i + 6;
	return put(scan, from, end);
}

static size_t on_word(struct scan *scan, size_t i)
{
	struct slice rest = part(scan, i, scan->in.len);
	size_t len;

	if (i > 0 && redact_rules_is_word(scan->in.p[i - 1]))
		return i + 1;
	if (rest.len > 6 && (rest.p[0] == 'B' || rest.p[0] == 'b'))
		return strncasecmp(rest.p, "bearer", 6) == 0 ? on_bearer(scan, i) : i + 1;
	len = redact_rules_token(rest);
	return len ? put(scan, i, i + len) : i + 1;
}

static bool run(struct scan *scan)
{
	const unsigned char *p = (const unsigned char *)scan->in.p;

	for (size_t i = 0; i < scan->in.len;) {
		if (looks[p[i]] == LOOK_NONE)
			i++;
		else if (looks[p[i]] == LOOK_WORD)
			i = on_word(scan, i);
		else if (p[i] == '=')
			i = on_equals(scan, i);
		else
			i = p[i] == ':' ? on_colon(scan, i) : on_dash(scan, i);
	}
	if (scan->found)
		str_add(scan->out, scan->in.p + scan->done, scan->in.len - scan->done);
	return scan->found;
}

bool redact_scan_text(
	const struct redact_scan_rules *rules, struct slice text, bool is_argument, struct str *out)
{
	struct scan scan = {.rules = rules, .in = text, .is_argument = is_argument, .out = out};

	return run(&scan);
}

bool redact_scan_put(
	const struct redact_scan_rules *rules, struct slice text, size_t from, struct str *out)
{
	struct scan scan = {.rules = rules, .in = text, .out = out};

	(void)put(&scan, from, text.len); /* there is nothing behind it */
	return scan.found;
}
