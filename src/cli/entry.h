/* SPDX-License-Identifier: Apache-2.0 */
/* What cloche and cloche-remote have in common: finds the verb, parses by its tables, and has it run. */
#ifndef CLI_ENTRY_H
#define CLI_ENTRY_H

#include "cli/verb.h"

struct entry {
	/* As a verb's run(), for the one that was named. */
	int (*run)(const struct cli *cli, const struct verb *verb, void *options, char **args,
		size_t n_args, struct err *err);
};

/* The exit status. */
int entry_main(const struct entry *entry, int argc, char **argv);

#endif
