/* SPDX-License-Identifier: Apache-2.0 */
/* cloche apply --branch: the commits that a sandbox made in a git work tree, as a branch of the host's repository.
 *
 * How it works. The sandbox's repository is never opened by git: its HEAD and its object files are read by us and
 * copied into a store of our own (git_store.h), whose packs get their indexes anew. The host's git then fetches from
 * there, run as the folder's owner (host_git.h), and checks each object that it does not have yet. The branch that is checked out on the
 * host, its index and its work tree are not touched. */
#ifndef CLI_APPLY_BRANCH_H
#define CLI_APPLY_BRANCH_H

#include "cli/pending.h"

/* name: of the branch. args: none, or the one folder whose repository is meant. force: also where the branch then has
 * no longer all it had. 0, CLI_NO where it was refused, or a negative errno. */
int apply_branch(const struct cli *cli, struct pending *pending, const char *name, bool force,
	char **args, size_t n_args, struct err *err);

#endif
