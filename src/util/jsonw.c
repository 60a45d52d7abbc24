/* SPDX-License-Identifier: Apache-2.0 */
#include "util/jsonw.h"

#include <math.h>
#include <stdio.h>

#include "util/utf8.h"

static void separate(struct jsonw *j)
{
	if (j->comma)
		str_putc(j->out, ',');
	j->comma = true;
}

static void begin(struct jsonw *j, char c)
{
	separate(j);
	str_putc(j->out, c);
	j->comma = false;
}

static void end(struct jsonw *j, char c)
{
	str_putc(j->out, c);
	j->comma = true;
}

void jsonw_object(struct jsonw *j)
{
	begin(j, '{');
}

void jsonw_object_end(struct jsonw *j)
{
	end(j, '}');
}

void jsonw_array(struct jsonw *j)
{
	begin(j, '[');
}

void jsonw_array_end(struct jsonw *j)
{
	end(j, ']');
}

void jsonw_key(struct jsonw *j, const char *key)
{
	separate(j);
	str_putc(j->out, '"');
	str_puts(j->out, key);
	str_add(j->out, "\":", 2);
	j->comma = false;
}

static void escape(struct str *out, unsigned char c)
{
	switch (c) {
	case '"':
		str_add(out, "\\\"", 2);
		return;
	case '\\':
		str_add(out, "\\\\", 2);
		return;
	case '\n':
		str_add(out, "\\n", 2);
		return;
	case '\t':
		str_add(out, "\\t", 2);
		return;
	case '\r':
		str_add(out, "\\r", 2);
		return;
	default:
		str_printf(out, "\\u%04x", c);
	}
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c != '"' && c != '\\' && c < 0x7f;
}

/* Writes text quoted; says whether all of it was UTF-8. */
static bool quote(struct str *out, struct slice text)
{
	bool whole = true;

	str_putc(out, '"');
	for (size_t i = 0; i < text.len;) {
		size_t run = i, n;

		while (run < text.len && is_plain((unsigned char)text.p[run]))
			run++;
		str_add(out, text.p + i, run - i);
		i = run;
		if (i == text.len)
			break;
		n = utf8_len(text.p + i, text.len - i);
		if (n > 1) {
			str_add(out, text.p + i, n);
		} else if (n == 1) {
			escape(out, (unsigned char)text.p[i]);
		} else {
			str_add(out, "\xef\xbf\xbd", 3);
			whole = false;
			n = 1;
		}
		i += n;
	}
	str_putc(out, '"');
	return whole;
}

void jsonw_slice(struct jsonw *j, struct slice text)
{
	separate(j);
	(void)quote(j->out, text); /* no key, so no place for the exact bytes */
}

void jsonw_text(struct jsonw *j, const char *text)
{
	if (text)
		jsonw_slice(j, slice_of(text));
	else
		jsonw_null(j);
}

void jsonw_int(struct jsonw *j, int64_t v)
{
	separate(j);
	str_int(j->out, v);
}

void jsonw_real(struct jsonw *j, double v)
{
	separate(j);
	if (isfinite(v))
		str_printf(j->out, "%.3f", v);
	else
		str_puts(j->out, "null");
}

void jsonw_bool(struct jsonw *j, bool v)
{
	separate(j);
	str_puts(j->out, v ? "true" : "false");
}

void jsonw_null(struct jsonw *j)
{
	separate(j);
	str_puts(j->out, "null");
}

void jsonw_raw(struct jsonw *j, struct slice text)
{
	separate(j);
	str_add(j->out, text.p, text.len);
}

static void b64_key(struct jsonw *j, const char *key)
{
	separate(j);
	str_putc(j->out, '"');
	str_puts(j->out, key);
	str_puts(j->out, "_b64\":");
	j->comma = false;
}

static void b64_value(struct jsonw *j, struct slice bytes)
{
	separate(j);
	str_putc(j->out, '"');
	jsonw_base64(j->out, bytes.p, bytes.len);
	str_putc(j->out, '"');
}

void jsonw_kslice(struct jsonw *j, const char *key, struct slice text)
{
	jsonw_key(j, key);
	separate(j);
	if (quote(j->out, text))
		return;
	b64_key(j, key);
	b64_value(j, text);
}

void jsonw_ktext(struct jsonw *j, const char *key, const char *text)
{
	if (text)
		jsonw_kslice(j, key, slice_of(text));
	else
		jsonw_knull(j, key);
}

void jsonw_kint(struct jsonw *j, const char *key, int64_t v)
{
	jsonw_key(j, key);
	jsonw_int(j, v);
}

void jsonw_kbool(struct jsonw *j, const char *key, bool v)
{
	jsonw_key(j, key);
	jsonw_bool(j, v);
}

void jsonw_knull(struct jsonw *j, const char *key)
{
	jsonw_key(j, key);
	jsonw_null(j);
}

void jsonw_klist(struct jsonw *j, const char *key, const struct slice *items, size_t n)
{
	bool whole = true;

	jsonw_key(j, key);
	jsonw_array(j);
	for (size_t i = 0; i < n; i++) {
		separate(j);
		whole &= quote(j->out, items[i]);
	}
	jsonw_array_end(j);
	if (whole)
		return;
	b64_key(j, key);
	jsonw_array(j);
	for (size_t i = 0; i < n; i++)
		b64_value(j, items[i]);
	jsonw_array_end(j);
}

void jsonw_free_key(struct jsonw *j, struct slice key)
{
	separate(j);
	(void)quote(j->out, key); /* a key has no second form */
	str_putc(j->out, ':');
	j->comma = false;
}

void jsonw_base64(struct str *out, const void *p, size_t len)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *u = p;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		unsigned v = (unsigned)u[i] << 16 | (n > 1 ? u[i + 1] : 0U) << 8 |
		             (n > 2 ? u[i + 2] : 0U);
		char four[4] = {digit[v >> 18], digit[v >> 12 & 63],
			n > 1 ? digit[v >> 6 & 63] : '=', n > 2 ? digit[v & 63] : '='};

		str_add(out, four, 4);
	}
}
