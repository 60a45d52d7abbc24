/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a webhook hears of: absolute patterns of paths (util/name_pattern.h), of which one without wildcards stands for that
 * path and all below it. Pure. */
#ifndef SERVER_WEBHOOK_PATHS_H
#define SERVER_WEBHOOK_PATHS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/err.h"
#include "util/slice.h"
#include "util/str.h"

#define WEBHOOK_PATHS_MAX 4

struct webhook_paths {
	char *items[WEBHOOK_PATHS_MAX];
	size_t n;
};
void webhook_paths_done(struct webhook_paths *paths);

/* A list of texts; NULL or null: none. -EINVAL, with a sentence: one that begins with no '/', has '.' or '..' as a name, ... */
int webhook_paths_read(const json_t *list, struct webhook_paths *ret, struct err *err);
void webhook_paths_copy(const struct webhook_paths *from, struct webhook_paths *ret);

bool webhook_paths_have(const struct webhook_paths *paths, struct slice path);

/* The folders, or files, to watch for them: what each begins with before the first wildcard, but none that is below another.
 * bases: as many as there are paths; filled, the caller's. How many. */
size_t webhook_paths_bases(const struct webhook_paths *paths, struct str bases[WEBHOOK_PATHS_MAX]);

#endif
