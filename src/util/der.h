/* SPDX-License-Identifier: Apache-2.0 */
/* Writes elements in DER (X.690), for the few places where OpenSSL's encoders cost more than all they write. */
#ifndef UTIL_DER_H
#define UTIL_DER_H

#include "util/str.h"

enum der_tag {
	DER_INTEGER = 0x02,
	DER_BITS = 0x03,
	DER_BYTES = 0x04,
	DER_OID = 0x06,
	DER_UTF8 = 0x0c,
	DER_UTC_TIME = 0x17,
	DER_LONG_TIME = 0x18,
	DER_UTF16 = 0x1e, /* BMPString */
	DER_SEQUENCE = 0x30,
	DER_SET = 0x31,
	DER_CHOICE_0 = 0xa0,
	DER_CHOICE_3 = 0xa3,
};

/* Tag and length of what follows, at most DER_LEN_MAX bytes. */
#define DER_LEN_MAX 0xffffff
void der_head(struct str *out, enum der_tag tag, size_t len);
size_t der_head_len(size_t len);
void der_put(struct str *out, enum der_tag tag, struct slice content);
/* What has been gathered, as the content of a new element; the place is empty then. */
void der_wrap(struct str *out, enum der_tag tag, struct str *content);

#endif
