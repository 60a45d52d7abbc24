/* SPDX-License-Identifier: Apache-2.0 */
/* What a variable holds inside in place of a secret's value. */
#ifndef SPEC_SPEC_STAND_IN_H
#define SPEC_SPEC_STAND_IN_H

#include "util/err.h"
#include "util/str.h"

#define SPEC_STAND_IN_MIN      8    /* shorter values cannot be told from other text */
#define SPEC_STAND_IN_MAX      4096 /* longer ones fit no header */
#define SPEC_STAND_IN_ANYWHERE 16   /* from this length on they are looked for in bodies too */

/* As long as value and of the same kinds of characters, with its first part ("sk-ant-api03-", "ghp_") kept, the
 * rest random. -EINVAL, with a sentence that does not show it, where the value is too short, too long, or holds
 * what no header may. */
int spec_stand_in_make(const char *value, struct str *out, struct err *err);

#endif
