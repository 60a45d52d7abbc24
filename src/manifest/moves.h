/* SPDX-License-Identifier: Apache-2.0 */
/* Renames one after the other, and where a path of before is after all of them. Each costs what its depth is, but for
 * a folder in which others were renamed before. */
#ifndef MANIFEST_MOVES_H
#define MANIFEST_MOVES_H

#include <stdbool.h>

#include "util/scoped.h"
#include "util/slice.h"

struct moves;

struct moves *moves_new(void);
void moves_free(struct moves *moves);
SCOPED_TYPE(moves)

/* What is at `from` by now went to `to`. Where something new stands at `from`, no path of before is meant. */
void moves_add(struct moves *moves, const char *from, const char *to);
/* Where a path of before is now; the caller frees it. NULL: at its place. */
char *moves_find(const struct moves *moves, const char *path);
/* Where what is at a path now was before; the caller frees it. */
char *moves_find_old(const struct moves *moves, struct slice path);

#endif
