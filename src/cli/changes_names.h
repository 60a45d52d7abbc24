/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a path had before: what was renamed, itself or with a folder above it, is followed back in time. */
#ifndef CLI_CHANGES_NAMES_H
#define CLI_CHANGES_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"

#define CHANGES_NAMES_MAX \
	64 /* steps back that are worth asking for: each costs a look-up for each folder above */

struct changes_names;

struct changes_names *changes_names_new(void);
void changes_names_free(struct changes_names *names);
SCOPED_TYPE(changes_names)

/* In order of happening: at grows. */
void changes_names_add(
	struct changes_names *names, struct slice from, struct slice to, uint64_t at);

/* One step back: the name that path had before the last rename between since (when it was made there; 0: not known) and
 * *until, which becomes that rename's moment. false, and nothing is changed, where there was none. */
bool changes_names_back(
	const struct changes_names *names, uint64_t since, struct str *path, uint64_t *until);

#endif
