/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db_escape.h"

#include "util/utf8.h"

#define LEAD "\xf4\x8f" /* of all characters from U+10F000 on */

/* Whether one of the 256 characters begins here. */
static bool is_ours(const char *p, size_t len)
{
	return len >= DB_ESCAPE_LEN && memcmp(p, LEAD, 2) == 0 &&
	       ((unsigned char)p[2] & 0xfc) == 0xb8 && ((unsigned char)p[3] & 0xc0) == 0x80;
}

bool db_escape_is_in(struct slice kept)
{
	const char *p = kept.p, *end = kept.p + kept.len;

	while (p < end && (p = memchr(p, LEAD[0], (size_t)(end - p)))) {
		if (is_ours(p, (size_t)(end - p)))
			return true;
		p++;
	}
	return false;
}

bool db_escape_is_needed(struct slice text)
{
	return text.len && (memchr(text.p, 0, text.len) || !utf8_is_valid(text.p, text.len) ||
				   db_escape_is_in(text));
}

static void add_byte(struct str *out, unsigned char byte)
{
	str_puts(out, LEAD);
	str_putc(out, (char)(0xb8 | byte >> 6));
	str_putc(out, (char)(0x80 | (byte & 0x3f)));
}

void db_escape_add(struct str *out, struct slice text)
{
	for (size_t i = 0, n; i < text.len; i += n) {
		n = text.p[i] ? utf8_len(text.p + i, text.len - i) : 0;
		if (n && !is_ours(text.p + i, text.len - i)) {
			str_add(out, text.p + i, n);
			continue;
		}
		n = 1; /* the other bytes of a character of ours are none alone, and follow one by one */
		add_byte(out, (unsigned char)text.p[i]);
	}
}

void db_escape_undo(struct str *out, struct slice kept)
{
	for (size_t i = 0; i < kept.len;) {
		const unsigned char *p = (const unsigned char *)kept.p + i;

		if (is_ours(kept.p + i, kept.len - i)) {
			str_putc(out, (char)((p[2] & 3) << 6 | (p[3] & 0x3f)));
			i += DB_ESCAPE_LEN;
		} else {
			str_putc(out, kept.p[i++]);
		}
	}
}
