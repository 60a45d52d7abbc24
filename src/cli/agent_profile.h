/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent program needs, from a data file: folders, keys as secrets, hosts, variables. Files are ours
 * (share/profiles/NAME.json) or the user's (~/.config/cloche/profiles/NAME.json, which wins), never a project's. */
#ifndef CLI_AGENT_PROFILE_H
#define CLI_AGENT_PROFILE_H

#include "cli/cli.h"
#include "spec/spec.h"

/* name: what --agent names ("none": no profile), or NULL: the one called like program, if there is one. program may
 * be NULL. Adds to spec what it does not say itself; spec->network is settled. -ENOENT where a profile that was named
 * is not there, -EINVAL where it is malformed. */
int agent_profile_apply(struct spec *spec, const char *name, const char *program,
	const struct cli *cli, struct err *err);

#endif
