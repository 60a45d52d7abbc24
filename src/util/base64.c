/* SPDX-License-Identifier: Apache-2.0 */
#include "util/base64.h"

#include <errno.h>

static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

int base64_decode(struct slice text, struct str *out)
{
	size_t used = text.len, before = out->len;
	unsigned v = 0;
	int bits = 0;

	while (used > 0 && text.p[used - 1] == '=')
		used--;
	for (size_t i = 0; i < used; i++) {
		int d = digit_value(text.p[i]);

		if (d < 0) {
			out->len = before;
			if (out->p)
				out->p[before] = '\0';
			return -EINVAL;
		}
		v = v << 6 | (unsigned)d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			str_putc(out, (char)(v >> bits));
		}
	}
	return 0;
}
