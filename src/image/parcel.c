/* SPDX-License-Identifier: Apache-2.0 */
#include "image/parcel.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define HEAD_LEN \
	5 /* the type, and the length in the machine's own order: both ends are one program */
#define DIGITS_MAX 19

void parcel_add(struct str *out, enum parcel_type type, struct slice text)
{
	uint32_t len = (uint32_t)text.len;

	str_putc(out, (char)type);
	str_add(out, &len, sizeof(len));
	str_add(out, text.p, text.len);
}

void parcel_add_count(struct str *out, enum parcel_type type, unsigned long long n)
{
	scoped_str struct str text = {0};

	str_printf(&text, "%llu", n);
	parcel_add(out, type, str_slice(&text));
}

int parcel_next(struct slice *rest, int *ret_type, struct slice *ret_text)
{
	uint32_t len;

	if (rest->len == 0)
		return 0;
	if (rest->len < HEAD_LEN)
		return -EBADMSG;
	memcpy(&len, rest->p + 1, sizeof(len));
	if (len > rest->len - HEAD_LEN)
		return -EBADMSG;
	*ret_type = (unsigned char)rest->p[0];
	*ret_text = (struct slice){.p = rest->p + HEAD_LEN, .len = len};
	rest->p += HEAD_LEN + len;
	rest->len -= HEAD_LEN + len;
	return 1;
}

int parcel_count(struct slice text, unsigned long long *ret_n)
{
	unsigned long long n = 0;

	if (text.len == 0 || text.len > DIGITS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return -EBADMSG;
		n = n * 10 + (unsigned long long)(text.p[i] - '0');
	}
	*ret_n = n;
	return 0;
}
