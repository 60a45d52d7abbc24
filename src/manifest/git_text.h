/* SPDX-License-Identifier: Apache-2.0 */
/* The few files of a git folder that say where its branches stand: HEAD, loose references, packed-refs
 * (gitrepository-layout(5)). They come from inside a sandbox, so what git itself would not write is refused. Pure. */
#ifndef MANIFEST_GIT_TEXT_H
#define MANIFEST_GIT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "util/slice.h"

#define GIT_TEXT_ID_SIZE  65  /* SHA-256 in hex and a NUL; SHA-1 is shorter */
#define GIT_TEXT_NAME_MAX 250 /* bytes of a reference's name */

/* What HEAD or a loose reference holds: an object, or the name of another reference. */
struct git_text_ref {
	char id[GIT_TEXT_ID_SIZE];        /* "" where it names another */
	char name[GIT_TEXT_NAME_MAX + 1]; /* "refs/heads/main"; "" where it is an object */
};

/* 40 or 64 lowercase hex digits. */
bool git_text_is_id(struct slice text);
/* "refs/...", as git-check-ref-format(1) has it, and stricter: no part begins with a dot or a dash. */
bool git_text_is_ref_name(struct slice name);
/* -EBADMSG where it is neither. */
int git_text_parse_ref(struct slice text, struct git_text_ref *ret_ref);
/* The object of one reference in a packed-refs file. -ENOENT where it is not in it, -EBADMSG where its line is none. */
int git_text_find_packed(struct slice text, const char *name, char ret_id[GIT_TEXT_ID_SIZE]);
/* The name of a file that holds an object, or (is_pack) many: "9a3f..." without the first two, "pack-9a3f....pack". */
bool git_text_is_object_file(const char *name, bool is_pack);

#endif
