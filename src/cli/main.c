/* SPDX-License-Identifier: Apache-2.0 */
/* The program cloche. Where a control plane is named, it becomes cloche-remote, so that only that one loads what speaks
 * HTTP. */
#include "cli/elsewhere.h"
#include "cli/entry.h"

static int run(const struct cli *cli, const struct verb *verb, void *options, char **args,
	size_t n_args, struct err *err)
{
	/* A completion script is made of the tables, whoever is asked for ids then. */
	if ((cli->server && verb != &verb_completion) || verb->is_of_server)
		return elsewhere_become(cli, err);
	return verb->run(cli, options, args, n_args, err);
}

int main(int argc, char **argv)
{
	return entry_main(&(struct entry){.run = run}, argc, argv);
}
