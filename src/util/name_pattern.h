/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths: '*', '?' and [...] within a name, a name '**' for any number of folders, '\' before a character that
 * means itself. Bytes, not characters; names that begin with a dot are names like others. Pure; time is at most the product
 * of both lengths. */
#ifndef UTIL_NAME_PATTERN_H
#define UTIL_NAME_PATTERN_H

#include <stdbool.h>

#include "util/slice.h"

#define NAME_PATTERN_MAX 1000

bool name_pattern_matches(struct slice pattern, struct slice path);
/* Whether something below that folder may match. */
bool name_pattern_leads(struct slice pattern, struct slice folder);

#endif
