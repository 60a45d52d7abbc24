/* SPDX-License-Identifier: Apache-2.0 */
/* The authority of one sandbox, by which its gateway speaks TLS to the programs inside: a P-256 key that is in no
 * file, and a certificate of its own that the sandbox trusts and nobody else does. */
#ifndef LAUNCHER_AUTHORITY_H
#define LAUNCHER_AUTHORITY_H

#include "util/err.h"
#include "util/str.h"

/* Adds the line that the gateway reads of it ({"ca":{"key","certificate"}}, with its line feed) to hidden, which the
 * caller overwrites; and to trust what the sandbox gets: 8 hexadecimal digits, by which OpenSSL names links to the
 * certificate, and its DER. */
int authority_make(const char *sandbox, struct str *hidden, struct str *trust, struct err *err);

#endif
