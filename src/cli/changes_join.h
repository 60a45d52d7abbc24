/* SPDX-License-Identifier: Apache-2.0 */
/* Puts into the JSON of a root's changes who made them, and leaves only what part of a run did. */
#ifndef CLI_CHANGES_JOIN_H
#define CLI_CHANGES_JOIN_H

#include <jansson.h>

#include "cli/changes_trace.h"

/* Fills in execs, processes, programs and commands of each entry of a root, and "traced". Where only a part of the run
 * was asked for: takes out what that did not touch, puts null for a hash that is not its own, and adds "touched". */
void changes_join(const struct changes_trace *trace, json_t *root);

#endif
