/* SPDX-License-Identifier: Apache-2.0 */
/* What an apply that was killed left beside the files it worked on. */
#ifndef MANIFEST_APPLY_TIDY_H
#define MANIFEST_APPLY_TIDY_H

#include "manifest/change_set.h"

/* Takes it away, by what the journal knows, in all mounts of a set: before its changes are read, or it would be taken for
 * files of the host. Costs nothing where the last apply came to its end. What cannot go is tried again the next time. */
void apply_tidy(struct change_set *set);
/* A file or folder of the host that is still parked under a name of ours, since something else is at its place; NULL: none. */
const char *apply_tidy_parked(const struct change_set *set);

#endif
