/* SPDX-License-Identifier: Apache-2.0 */
/* The small verbs of a sandbox's life: one request to its supervisor each. */
#ifndef CLI_LIFE_H
#define CLI_LIFE_H

#include "cli/cli.h"
#include "util/err.h"

/* Asks the supervisor of each sandbox named; the first that fails ends it. */
int life_ask_all(
	const struct cli *cli, const char *request, char **ids, size_t n_ids, struct err *err);

#endif
