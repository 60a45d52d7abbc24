/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a list of sha256sum, plain or with --tag. */
#ifndef MANIFEST_SUM_LINE_H
#define MANIFEST_SUM_LINE_H

#include "manifest/manifest_lines.h"

/* Adds what a line says, which a comment and an empty one do not. -EBADMSG: it is none of such a list. */
int sum_line_take(struct manifest *manifest, struct slice line);

#endif
