/* SPDX-License-Identifier: Apache-2.0 */
/* How the caller starts this program again, for commands that are shown to be copied. */
#ifndef CLI_CALLED_AS_H
#define CLI_CALLED_AS_H

#include "cli/cli.h"
#include "util/str.h"

/* "cloche", or the path it was started by where PATH does not lead to it, quoted as a shell needs it; as_root: behind
 * sudo where it was started so. */
void called_as_add(const struct cli *cli, bool as_root, struct str *out);

#endif
