/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it: shortest form, no surrogates, at most U+10FFFF. */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length (1 to 4) of the character at p, 0 where the bytes are none. len is at least 1. */
size_t utf8_len(const char *p, size_t len);
bool utf8_is_valid(const char *p, size_t len);
/* The longest prefix of at most max bytes that ends between characters. */
size_t utf8_cut(const char *p, size_t len, size_t max);
/* Less the begin of a character whose end may come yet. */
size_t utf8_whole_len(const char *p, size_t len);
/* The start, at or after from, of a whole character: from itself or up to 3 bytes on. */
size_t utf8_next_start(const char *p, size_t len, size_t from);

#endif
