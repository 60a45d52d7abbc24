/* SPDX-License-Identifier: Apache-2.0 */
#include "store/search.h"

#include "util/utf8.h"

static char fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == 0 || c == '\n' || c == '\r' ? ' ' : c;
}

void search_fold(struct str *out, struct slice text, size_t max)
{
	size_t end = out->len + max;

	for (size_t i = 0, n; i < text.len; i += n ? n : 1) {
		n = utf8_len(text.p + i, text.len - i);
		if (out->len + (n ? n : 3) > end)
			return;
		if (n == 1)
			str_putc(out, fold(text.p[i]));
		else if (n > 1)
			str_add(out, text.p + i, n);
		else
			str_puts(out, "\xef\xbf\xbd");
	}
}

void search_add_like(struct str *out, struct slice q)
{
	str_putc(out, '%');
	for (size_t i = 0; i < q.len; i++) {
		if (q.p[i] == '%' || q.p[i] == '_' || q.p[i] == '\\')
			str_putc(out, '\\');
		str_putc(out, q.p[i]);
	}
	str_putc(out, '%');
}

void search_add_phrase(struct str *out, struct slice q)
{
	str_putc(out, '"');
	for (size_t i = 0; i < q.len; i++) {
		if (q.p[i] == '"')
			str_putc(out, '"');
		str_putc(out, q.p[i]);
	}
	str_putc(out, '"');
}

static bool is_of_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c & 0x80);
}

size_t search_word_len(struct slice q)
{
	size_t longest = 0;

	for (size_t i = 0; i < q.len; i++) {
		struct slice word = {q.p + i, 0};

		while (i < q.len && is_of_word(q.p[i])) {
			word.len++;
			i++;
		}
		if (search_len(word) > longest)
			longest = search_len(word);
	}
	return longest;
}

size_t search_len(struct slice q)
{
	size_t n = 0;

	for (size_t i = 0; i < q.len; i++)
		n += ((unsigned char)q.p[i] & 0xc0) != 0x80;
	return n;
}
