/* SPDX-License-Identifier: Apache-2.0 */
#include "record/redact_cut.h"

#include <ctype.h>
#include <string.h>

#include "record/redact_rules.h"

#define PIECE_MIN  8    /* shorter ones give little away */
#define PIECE_LONG 20   /* so long without a digit may still be a token */
#define PIECE_MAX  4096 /* longer ones are data */

static bool is_token_byte(char c)
{
	return redact_rules_is_word(c) || (c && strchr(".~+/-", c));
}

static struct slice first_word(struct slice text)
{
	size_t n = 0;

	while (n < text.len && n <= PIECE_MAX && is_token_byte(text.p[n]))
		n++;
	return (struct slice){.p = text.p, .len = n};
}

static struct slice last_word(struct slice text)
{
	size_t n = 0;

	while (n < text.len && n <= PIECE_MAX && is_token_byte(text.p[text.len - n - 1]))
		n++;
	return (struct slice){.p = text.p + text.len - n, .len = n};
}

/* Words are of one kind of letters, mostly; tokens mix. */
static bool may_be_token(struct slice word)
{
	bool digit = false, upper = false, lower = false;

	for (size_t i = 0; i < word.len; i++) {
		digit |= isdigit((unsigned char)word.p[i]) != 0;
		upper |= isupper((unsigned char)word.p[i]) != 0;
		lower |= islower((unsigned char)word.p[i]) != 0;
	}
	if (word.len < PIECE_MIN || word.len > PIECE_MAX)
		return false;
	return (digit && (upper || lower)) || (upper && lower && word.len >= PIECE_LONG);
}

/* How much of the beginning belongs to a private key, by the line that ends it. */
static size_t key_rest(struct slice text)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ", key[] = "PRIVATE KEY-----";
	const char *to = memmem(text.p, text.len, end, sizeof(end) - 1), *mark;
	size_t at = to ? (size_t)(to - text.p) : 0, rest = text.len - at;

	if (!to || memmem(text.p, at, begin, sizeof(begin) - 1))
		return 0;
	mark = memmem(to, rest < 64 ? rest : 64, key, sizeof(key) - 1);
	return mark ? at : 0;
}

static void add_secret(const struct redact_scan_rules *rules, struct slice text, struct str *out)
{
	if (text.len && !redact_scan_put(rules, text, 0, out))
		str_add(out, text.p, text.len);
}

bool redact_cut_text(
	const struct redact_scan_rules *rules, struct slice text, bool is_tail, struct str *out)
{
	struct slice word = is_tail ? first_word(text) : last_word(text), middle = text;
	size_t secret = may_be_token(word) ? word.len : 0, key = is_tail ? key_rest(text) : 0;
	scoped_str struct str without = {0};
	bool found;

	if (key > secret)
		secret = key;
	middle.len -= secret;
	if (is_tail)
		middle.p += secret;
	found = redact_scan_text(rules, middle, false, &without);
	if (!found && secret == 0)
		return false;
	if (is_tail)
		add_secret(rules, (struct slice){.p = text.p, .len = secret}, out);
	if (found)
		middle = str_slice(&without);
	str_add(out, middle.p, middle.len);
	if (!is_tail)
		add_secret(
			rules, (struct slice){.p = text.p + text.len - secret, .len = secret}, out);
	return true;
}
