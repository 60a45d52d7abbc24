/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of several sandboxes in one order, by the time that their JSON tells ("at"). */
#ifndef CLI_FOLD_MERGE_H
#define CLI_FOLD_MERGE_H

#include "util/scoped.h"
#include "util/str.h"

struct fold_merge;

struct fold_merge *fold_merge_new(void);
void fold_merge_free(struct fold_merge *merge);
SCOPED_TYPE(fold_merge)

/* lines: what is to be printed, the nth of them told by the nth of json. */
void fold_merge_add(struct fold_merge *merge, const struct str *json, const struct str *lines);
/* All lines, oldest first; those of one time in the order in which they were added. */
void fold_merge_lines(struct fold_merge *merge, struct str *out);

#endif
