/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/safe_text.h"

#include <ctype.h>

#include "util/log.h"

#define COLOR_MAX 8 /* digits and semicolons */

/* The length of a color at the begin of text; 0: none. */
static size_t color_len(struct slice text)
{
	size_t n = 2;

	if (!slice_starts(text, "\x1b["))
		return 0;
	while (n < text.len && n < 2 + COLOR_MAX &&
		(isdigit((unsigned char)text.p[n]) || text.p[n] == ';'))
		n++;
	return n < text.len && text.p[n] == 'm' ? n + 1 : 0;
}

/* What may stand as it is at the begin of text. */
static size_t plain_len(struct slice text, bool colors)
{
	if (text.p[0] == '\n' || text.p[0] == '\t')
		return 1;
	return colors ? color_len(text) : 0;
}

void safe_text_add(struct str *out, struct slice text, bool colors)
{
	size_t begin = 0, at = 0;

	while (at < text.len) {
		size_t n = plain_len((struct slice){text.p + at, text.len - at}, colors);

		if (n > 0) {
			log_add_escaped(out, (struct slice){text.p + begin, at - begin});
			str_add(out, text.p + at, n);
			begin = at + n;
		}
		at += n > 0 ? n : 1;
	}
	log_add_escaped(out, (struct slice){text.p + begin, at - begin});
}
