/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the compression off: gzip, zstd, xz, bzip2. In a child of its own that has nothing but two descriptors, so that
 * what it gives is hashed by the parent before anybody makes files of it. */
#ifndef IMAGE_INFLATE_H
#define IMAGE_INFLATE_H

#include "image/jail.h"

/* Whether a file that begins so is compressed in a way that we know. Pure. */
#define INFLATE_MAGIC_LEN 6
bool inflate_is_packed(const unsigned char *head, size_t len);

/* jail_work: 0 to 1, whole; the report is empty. */
int inflate_run(void *unused, struct str *report, struct err *err);
extern const struct callfilter inflate_filter;

#endif
