/* SPDX-License-Identifier: Apache-2.0 */
#include "view/view_text.h"

#include <stdio.h>
#include <string.h>

#include "util/log.h"

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t view_text_width(struct slice text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += !is_continuation(text.p[i]);
	return n;
}

void view_text_add_color(
	struct str *out, const struct view_style *style, const char *color, struct slice text)
{
	if (style->color)
		str_printf(out, "\033[%sm", color);
	str_add(out, text.p, text.len);
	if (style->color)
		str_puts(out, "\033[0m");
}

void view_text_add_cut(struct str *out, struct slice text, size_t width)
{
	size_t n = 0, i = 0;

	if (width == 0 || view_text_width(text) <= width) {
		str_add(out, text.p, text.len);
		return;
	}
	for (; i < text.len; i++)
		if (!is_continuation(text.p[i]) && ++n == width)
			break;
	str_add(out, text.p, i);
	str_puts(out, "\xe2\x80\xa6");
}

void view_text_add_tail(struct str *out, struct slice text, size_t width)
{
	size_t n = 0, i = text.len;

	if (view_text_width(text) <= width) {
		str_add(out, text.p, text.len);
		return;
	}
	while (i > 0 && n + 1 < width)
		n += !is_continuation(text.p[--i]);
	str_puts(out, "\xe2\x80\xa6");
	str_add(out, text.p + i, text.len - i);
}

static bool is_plain(struct slice arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_@%+=:,./-^~";

	for (size_t i = 0; i < arg.len; i++)
		if (!memchr(plain, arg.p[i], sizeof(plain) - 1) && (unsigned char)arg.p[i] < 0x80)
			return false;
	return arg.len > 0;
}

static void add_arg(struct str *out, struct slice arg)
{
	if (is_plain(arg)) {
		log_add_escaped(out, arg);
		return;
	}
	str_putc(out, '\'');
	for (size_t i = 0, from = 0; i <= arg.len; i++) {
		if (i < arg.len && arg.p[i] != '\'')
			continue;
		log_add_escaped(out, (struct slice){.p = arg.p + from, .len = i - from});
		if (i < arg.len)
			str_puts(out, "'\\''");
		from = i + 1;
	}
	str_putc(out, '\'');
}

void view_text_add_argv(struct str *out, const struct event_list *argv)
{
	for (size_t i = 0; i < argv->n; i++) {
		if (i)
			str_putc(out, ' ');
		add_arg(out, argv->items[i]);
	}
}

void view_text_add_status(struct str *out, bool has_ended, int64_t code, int64_t signal)
{
	const char *name = signal > 0 && signal < 128 ? sigabbrev_np((int)signal) : NULL;

	if (!has_ended)
		str_puts(out, "-");
	else if (name)
		str_printf(out, "SIG%s", name);
	else if (signal > 0)
		str_printf(out, "SIG%lld", (long long)signal);
	else
		str_int(out, code);
}

void view_text_add_count(struct str *out, int64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%lld", (long long)n);

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
			str_putc(out, ',');
		str_putc(out, digits[i]);
	}
}

void view_text_add_bytes(struct str *out, int64_t n)
{
	static const char *const units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
	double v = (double)n;
	int unit = -1;

	for (; v >= 1000 && unit < 5; unit++)
		v /= 1024;
	if (unit < 0)
		str_printf(out, "%lld bytes", (long long)n);
	else
		str_printf(out, v < 10 ? "%.1f %s" : "%.0f %s", v, units[unit]);
}
