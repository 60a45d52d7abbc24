/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the caller names for us to write. Behind sudo we are root for him, and what runs inside may write to
 * the folder they lie in: so they are made with his rights and through no link. */
#ifndef CLI_CALLER_FILE_H
#define CLI_CALLER_FILE_H

#include "cli/cli.h"
#include "util/err.h"
#include "util/slice.h"

/* Replaces what the file holds. A last part that is a link is refused, but for /dev/stdout and its like. */
int caller_file_write(const struct cli *cli, const char *path, struct slice text, struct err *err);

#endif
