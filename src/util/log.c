/* SPDX-License-Identifier: Apache-2.0 */
#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/jsonw.h"
#include "util/utf8.h"

static bool verbose, as_json;

void log_set_verbose(bool on)
{
	verbose = on;
}

void log_set_json(bool on)
{
	as_json = on;
}

static unsigned codepoint(const unsigned char *u, size_t n)
{
	switch (n) {
	case 2:
		return (u[0] & 0x1fU) << 6 | (u[1] & 0x3fU);
	case 3:
		return (u[0] & 0x0fU) << 12 | (u[1] & 0x3fU) << 6 | (u[2] & 0x3fU);
	default:
		return (u[0] & 0x07U) << 18 | (u[1] & 0x3fU) << 12 | (u[2] & 0x3fU) << 6 |
		       (u[3] & 0x3fU);
	}
}

/* Characters that change how a terminal or a reader's eye takes the rest of the line. */
static bool is_tricky(unsigned c)
{
	return (c >= 0x80 && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

static void add_byte(struct str *out, unsigned char c)
{
	switch (c) {
	case '\n':
		str_puts(out, "\\n");
		return;
	case '\r':
		str_puts(out, "\\r");
		return;
	case '\t':
		str_puts(out, "\\t");
		return;
	default:
		if (c >= 0x20 && c < 0x7f)
			str_putc(out, (char)c);
		else
			str_printf(out, "\\x%02x", c);
	}
}

void log_add_escaped(struct str *out, struct slice text)
{
	for (size_t i = 0; i < text.len;) {
		size_t n = utf8_len(text.p + i, text.len - i);

		if (n <= 1) {
			add_byte(out, (unsigned char)text.p[i]);
			i++;
			continue;
		}
		if (is_tricky(codepoint((const unsigned char *)text.p + i, n)))
			str_printf(out, "\\u%04x", codepoint((const unsigned char *)text.p + i, n));
		else
			str_add(out, text.p + i, n);
		i += n;
	}
}

/* In quotes where it could be taken for more than one field. */
static void add_field(struct str *out, const char *text)
{
	bool is_plain = text[0] && !text[strcspn(text, " =\"\\")];

	if (is_plain) {
		log_add_escaped(out, slice_of(text));
		return;
	}
	str_putc(out, '"');
	for (const char *rest = text; *rest;) {
		size_t n = strcspn(rest, "\"\\");

		log_add_escaped(out, (struct slice){.p = rest, .len = n});
		if (rest[n])
			str_printf(out, "\\%c", rest[n]);
		rest += n + (rest[n] != 0);
	}
	str_putc(out, '"');
}

static void add_text_line(
	struct str *out, const char *message, const struct log_field *fields, size_t n)
{
	str_puts(out, "cloche: ");
	log_add_escaped(out, slice_of(message));
	for (size_t i = 0; i < n; i++) {
		str_printf(out, " %s=", fields[i].key);
		if (fields[i].text)
			add_field(out, fields[i].text);
		else
			str_printf(out, "%lld", (long long)fields[i].number);
	}
}

static void add_json_line(struct str *out, const char *level, const char *message,
	const struct log_field *fields, size_t n)
{
	struct jsonw j = jsonw_to(out);
	char at[CLOCK_TEXT_LEN];

	clock_format(clock_wall_ms(), at);
	jsonw_object(&j);
	jsonw_ktext(&j, "at", at);
	jsonw_ktext(&j, "level", level);
	jsonw_ktext(&j, "message", message);
	for (size_t i = 0; i < n; i++)
		if (fields[i].text)
			jsonw_ktext(&j, fields[i].key, fields[i].text);
		else
			jsonw_kint(&j, fields[i].key, fields[i].number);
	jsonw_object_end(&j);
}

/* In one write, so that lines of several programs do not mix. */
static void put(const char *level, const char *message, const struct log_field *fields, size_t n)
{
	scoped_str struct str line = {0};

	if (as_json)
		add_json_line(&line, level, message, fields, n);
	else
		add_text_line(&line, message, fields, n);
	str_putc(&line, '\n');
	fwrite(line.p, 1, line.len, stderr);
}

static void say(const char *level, const char *fmt, va_list ap)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		return;
	put(level, text, NULL, 0);
	free(text);
}

void log_fields(const char *message, const struct log_field *fields, size_t n)
{
	put("info", message, fields, n);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("warn", fmt, ap);
	va_end(ap);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	if (!verbose)
		return;
	va_start(ap, fmt);
	say("info", fmt, ap);
	va_end(ap);
}

void log_debug(const char *fmt, ...)
{
	va_list ap;

	if (!getenv("CLOCHE_DEBUG"))
		return;
	va_start(ap, fmt);
	say("debug", fmt, ap);
	va_end(ap);
}
