/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests as text: the JSON lines of docs/manifests.md, written and read, and the lists of sha256sum, read. */
#ifndef MANIFEST_MANIFEST_LINES_H
#define MANIFEST_MANIFEST_LINES_H

#include "manifest/tree.h"
#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"

/* What stands in the first line of one. */
struct manifest_head {
	const char *root;    /* absolute, in the words of the sandbox or of the host */
	const char *sandbox; /* NULL: a folder of the host */
	const char *made_at; /* RFC 3339 */
	bool all;
};
void manifest_lines_write(
	struct str *out, const struct manifest_head *head, const struct tree *tree);

/* One that was read. */
struct manifest {
	char *root; /* NULL: a list of sums, whose names start where it was made */
	bool all;
	bool has_sums_only; /* modes, owners and what is no regular file are not in it */
	struct tree tree;
};
struct manifest_list {
	struct manifest *items;
	size_t n;
};
/* Reads one or more manifests, or one list of sha256sum, in its escaped form too. -EBADMSG with the line where it is
 * neither, -ENODATA where the last one is cut off. */
int manifest_lines_read(struct slice text, struct manifest_list *ret_list, struct err *err);
/* Of a list of sums with absolute names: makes those below root paths below it. */
void manifest_take_below(struct manifest *manifest, const char *root);
void manifest_list_done(struct manifest_list *list);

#endif
