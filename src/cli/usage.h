/* SPDX-License-Identifier: Apache-2.0 */
/* Help, from the same tables that options are parsed by. */
#ifndef CLI_USAGE_H
#define CLI_USAGE_H

#include "cli/verb.h"
#include "util/str.h"

void usage_add_all(struct str *out);                           /* cloche --help */
void usage_add_verb(struct str *out, const struct verb *verb); /* cloche VERB --help */

#endif
