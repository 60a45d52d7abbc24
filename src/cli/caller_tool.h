/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one of the caller's own programs with his rights, never with ours, and reads what it prints. */
#ifndef CLI_CALLER_TOOL_H
#define CLI_CALLER_TOOL_H

#include "cli/cli.h"
#include "util/str.h"

/* argv ends with NULL; found by PATH. -ENOENT where it is not there, -EIO where it failed or took too long. */
int caller_tool_output(const struct cli *cli, const char *const *argv, struct str *out);

#endif
