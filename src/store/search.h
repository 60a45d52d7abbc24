/* SPDX-License-Identifier: Apache-2.0 */
/* What is searched, and what for. Both databases compare the same bytes: the text is folded here, so no locale and
 * no rule of theirs has a say. */
#ifndef STORE_SEARCH_H
#define STORE_SEARCH_H

#include "util/slice.h"
#include "util/str.h"

/* Adds text as it is searched: A-Z small, what is no UTF-8 as U+FFFD, NUL and line ends as blanks, at most max bytes. */
void search_fold(struct str *out, struct slice text, size_t max);
/* Adds the folded q as a pattern of LIKE with "\" as the escape: q anywhere. */
void search_add_like(struct str *out, struct slice q);
/* Adds the folded q as a phrase of FTS5. */
void search_add_phrase(struct str *out, struct slice q);
/* Characters of UTF-8: an index of three characters finds nothing shorter. */
size_t search_len(struct slice q);
/* The longest run of letters and digits, in characters, where all that is not ASCII counts as a letter: what pg_trgm's
 * index is made of. */
size_t search_word_len(struct slice q);

#endif
