/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/secret_forms.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "util/jsonw.h"
#include "util/mem.h"

#define B64_MIN 8 /* characters that a match within base64 needs, or chance would find it */

static const char b64_usual[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char b64_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool has_form(const struct secret_forms *forms, const struct secret_form *f)
{
	for (size_t i = 0; i < forms->n; i++) {
		const struct secret_form *g = &forms->items[i];

		if (g->secret == f->secret && g->len == f->len && g->base64 == f->base64 &&
			memcmp(g->from, f->from, f->len) == 0)
			return true;
	}
	return false;
}

static void wipe(struct secret_form *f)
{
	OPENSSL_cleanse(f->from, f->len);
	if (f->to)
		OPENSSL_cleanse(f->to, f->len);
	free(f->from);
	free(f->to);
}

/* from and to are the form's texts; to empty for what is only looked for. */
static void add_form(struct secret_forms *forms, struct secret_form f, const struct str *from,
	const struct str *to)
{
	if (!from->len || (to && to->len != from->len))
		return;
	f.len = from->len;
	f.from = mem_copy(from->p, from->len);
	f.to = to ? mem_copy(to->p, to->len) : NULL;
	if (has_form(forms, &f)) {
		wipe(&f);
		return;
	}
	forms->items = mem_grow(forms->items, forms->n + 1, sizeof(*forms->items));
	forms->items[forms->n++] = f;
	forms->longest = f.len > forms->longest ? f.len : forms->longest;
	forms->begins[(unsigned char)f.from[0]] = true;
}

static bool is_letter_or_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* leaves: what stands as it is beside letters and digits; NULL: nothing does, not even those. */
static void percent(struct str *out, struct slice text, const char *leaves, const char *digits)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (leaves && (is_letter_or_digit((char)c) || (c && strchr(leaves, c)))) {
			str_putc(out, (char)c);
			continue;
		}
		str_putc(out, '%');
		str_putc(out, digits[c >> 4]);
		str_putc(out, digits[c & 15]);
	}
}

static void escape_json(struct str *out, struct slice text, const char *escaped, const char *digits)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] && strchr(escaped, text.p[i]))
			str_putc(out, '\\');
		str_putc(out, text.p[i]);
	}
}

static void scrub(struct str *s)
{
	if (s->p)
		OPENSSL_cleanse(s->p, s->cap);
	str_done(s);
}

typedef void encode_fn(struct str *out, struct slice text, const char *how, const char *digits);

static void add_encoded(struct secret_forms *forms, unsigned secret, const struct slice texts[2],
	encode_fn *encode, const char *how, const char *digits)
{
	struct str from = {0}, to = {0};

	encode(&from, texts[0], how, digits);
	if (texts[1].p)
		encode(&to, texts[1], how, digits);
	add_form(forms, (struct secret_form){.secret = secret}, &from, texts[1].p ? &to : NULL);
	scrub(&from);
	scrub(&to);
}

/* What encoders of various languages leave: RFC 3986, JavaScript's component and URI, Python's quote. */
static void add_percent(struct secret_forms *forms, unsigned secret, const struct slice texts[2])
{
	static const char *const leaves[] = {
		"-._~", "-._~!'()*", "-._~/", "-._~!'()*;,/?:@&=+$#", "-._*"};
	static const char *const digits[] = {"0123456789ABCDEF", "0123456789abcdef"};

	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		for (size_t d = 0; d < 2; d++)
			add_encoded(forms, secret, texts, percent, leaves[i], digits[d]);
}

static unsigned bits_at(struct slice text, size_t skip, size_t sextet)
{
	unsigned v = 0;

	/* Bit by bit: `skip` bytes that are not known stand before the text. */
	for (size_t bit = sextet * 6; bit < sextet * 6 + 6; bit++) {
		size_t byte = bit / 8;
		unsigned b = byte >= skip && byte - skip < text.len
		                     ? (unsigned char)text.p[byte - skip] >> (7 - bit % 8) & 1
		                     : 0;

		v = v << 1 | b;
	}
	return v;
}

static struct secret_edge edge(
	const struct slice texts[2], size_t skip, size_t sextet, unsigned mask)
{
	return (struct secret_edge){.mask = (unsigned char)mask,
		.from = (unsigned char)(bits_at(texts[0], skip, sextet) & mask),
		.to = (unsigned char)(texts[1].p ? bits_at(texts[1], skip, sextet) & mask : 0)};
}

/* The text with `skip` (0 to 2) bytes before it in its group of three. */
static void add_base64(struct secret_forms *forms, unsigned secret, const struct slice texts[2],
	size_t skip, const char *alphabet)
{
	struct secret_form f = {.secret = secret, .base64 = true, .alphabet = alphabet};
	struct str from = {0}, to = {0};
	size_t before = skip * 8 % 6, first = (skip * 8 + 5) / 6;
	size_t end = (skip + texts[0].len) * 8 / 6, behind = (skip + texts[0].len) * 8 % 6;

	if (end < first + B64_MIN)
		return;
	for (size_t s = first; s < end; s++) {
		str_putc(&from, alphabet[bits_at(texts[0], skip, s)]);
		if (texts[1].p)
			str_putc(&to, alphabet[bits_at(texts[1], skip, s)]);
	}
	if (before)
		f.before = edge(texts, skip, first - 1, (1U << (6 - before)) - 1);
	if (behind)
		f.behind = edge(texts, skip, end, 63U & ~((1U << (6 - behind)) - 1));
	add_form(forms, f, &from, texts[1].p ? &to : NULL);
	scrub(&from);
	scrub(&to);
}

void secret_forms_add(struct secret_forms *forms, unsigned secret, struct slice from,
	struct slice to, unsigned kinds)
{
	const struct slice texts[2] = {from, to};

	if (kinds & SECRET_PLAIN) {
		add_encoded(forms, secret, texts, escape_json, "", NULL);
		add_percent(forms, secret, texts);
		add_encoded(forms, secret, texts, escape_json, "\"\\", NULL);
		add_encoded(forms, secret, texts, escape_json, "\"\\/", NULL);
	}
	if (kinds & SECRET_ALL_PERCENT) {
		add_encoded(forms, secret, texts, percent, NULL, "0123456789ABCDEF");
		add_encoded(forms, secret, texts, percent, NULL, "0123456789abcdef");
	}
	for (size_t skip = 0; kinds & SECRET_BASE64 && skip < 3; skip++) {
		add_base64(forms, secret, texts, skip, b64_usual);
		add_base64(forms, secret, texts, skip, b64_url);
	}
}

void secret_forms_done(struct secret_forms *forms)
{
	for (size_t i = 0; i < forms->n; i++)
		wipe(&forms->items[i]);
	free(forms->items);
	*forms = (struct secret_forms){0};
}

/* The character's bits at an edge, where they are those of the text, become those of its replacement. */
static void mend_edge(const struct secret_form *f, const struct secret_edge *e, char *c)
{
	const char *at = e->mask && *c ? strchr(f->alphabet, *c) : NULL;
	unsigned v;

	if (!at)
		return;
	v = (unsigned)(at - f->alphabet);
	if ((v & e->mask) == e->from)
		*c = f->alphabet[(v & ~(unsigned)e->mask) | e->to];
}

static bool replace_form(const struct secret_form *f, char *p, size_t len, bool final)
{
	bool any = false;
	char *at = p, *end = p + len;

	while ((at = memmem(at, (size_t)(end - at), f->from, f->len)) != NULL) {
		if (f->base64 && !final && at + f->len == end)
			break;
		any = true;
		if (f->to) {
			memcpy(at, f->to, f->len);
			if (f->base64 && at > p)
				mend_edge(f, &f->before, at - 1);
			if (f->base64 && at + f->len < end)
				mend_edge(f, &f->behind, at + f->len);
		}
		at += f->len;
	}
	return any;
}

uint64_t secret_forms_replace(
	const struct secret_forms *forms, uint64_t mask, char *p, size_t len, bool final)
{
	uint64_t found = 0;

	for (size_t i = 0; i < forms->n; i++) {
		const struct secret_form *f = &forms->items[i];

		if ((mask >> f->secret & 1) && f->len <= len && replace_form(f, p, len, final))
			found |= 1ULL << f->secret;
	}
	return found;
}

/* Whether a form may begin here: *ret_at is where to hold from. */
static bool may_begin(
	const struct secret_form *f, const char *p, size_t at, size_t len, size_t *ret_at)
{
	size_t n = len - at;

	if (n > f->len || (n == f->len && !f->base64) || memcmp(p + at, f->from, n) != 0)
		return false;
	/* The character before it may have to be mended with it. */
	*ret_at = f->base64 && at ? at - 1 : at;
	return true;
}

size_t secret_forms_hold(const struct secret_forms *forms, uint64_t mask, const char *p, size_t len)
{
	size_t at = len > forms->longest ? len - forms->longest : 0, hold = len;

	for (; at < len && hold == len; at++) {
		if (!forms->begins[(unsigned char)p[at]])
			continue;
		for (size_t i = 0; i < forms->n; i++) {
			size_t from;

			if ((mask >> forms->items[i].secret & 1) &&
				may_begin(&forms->items[i], p, at, len, &from))
				hold = from < hold ? from : hold;
		}
	}
	return hold;
}
