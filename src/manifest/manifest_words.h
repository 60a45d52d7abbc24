/* SPDX-License-Identifier: Apache-2.0 */
/* The words and numbers that manifests and lists of changes share. */
#ifndef MANIFEST_MANIFEST_WORDS_H
#define MANIFEST_MANIFEST_WORDS_H

#include "manifest/tree.h"
#include "util/jsonw.h"

const char *manifest_type_word(mode_t mode);                  /* "file", "directory", ... */
const char *manifest_problem_word(enum tree_problem problem); /* NULL: none */

#define MANIFEST_OWNER_SIZE 32
void manifest_owner_text(uint32_t uid, uint32_t gid, char ret[MANIFEST_OWNER_SIZE]); /* "0:0" */
void manifest_write_mode(struct jsonw *j, const char *key, mode_t mode);             /* "0644" */
void manifest_write_owner(struct jsonw *j, const char *key, uint32_t uid, uint32_t gid);

#endif
