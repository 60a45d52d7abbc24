/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648) back to bytes; jsonw_base64() is the way there. */
#ifndef UTIL_BASE64_H
#define UTIL_BASE64_H

#include "util/slice.h"
#include "util/str.h"

/* Adds the bytes to out. -EINVAL, and nothing added, where the text is none; padding may be missing. */
int base64_decode(struct slice text, struct str *out);

#endif
