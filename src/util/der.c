/* SPDX-License-Identifier: Apache-2.0 */
#include "util/der.h"

#include <stdlib.h>

/* How many bytes the length takes behind its first one. */
static size_t more_bytes(size_t len)
{
	if (len < 0x80)
		return 0;
	if (len <= 0xff)
		return 1;
	return len <= 0xffff ? 2 : 3;
}

size_t der_head_len(size_t len)
{
	return 2 + more_bytes(len);
}

void der_head(struct str *out, enum der_tag tag, size_t len)
{
	size_t more = more_bytes(len);

	if (len > DER_LEN_MAX)
		abort();
	str_putc(out, (char)tag);
	str_putc(out, (char)(more ? 0x80 | more : len));
	while (more-- > 0)
		str_putc(out, (char)(len >> (8 * more)));
}

void der_put(struct str *out, enum der_tag tag, struct slice content)
{
	der_head(out, tag, content.len);
	str_add(out, content.p, content.len);
}

void der_wrap(struct str *out, enum der_tag tag, struct str *content)
{
	der_put(out, tag, str_slice(content));
	str_reset(content);
}
