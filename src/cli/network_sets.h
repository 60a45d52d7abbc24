/* SPDX-License-Identifier: Apache-2.0 */
/* The sets that rules may name. @github and its like are files of ours; @npm, @pip and @apt are the registries that
 * this host's own configuration of these tools names. */
#ifndef CLI_NETWORK_SETS_H
#define CLI_NETWORK_SETS_H

#include "cli/cli.h"
#include "spec/spec_network.h"

/* Fills in every set that allow and deny name and the spec does not bring along. -ENOENT for one that nobody knows
 * or that names nothing here. */
int network_sets_open(struct spec_network *net, const struct cli *cli, struct err *err);

/* "https://user:x@host:8443/path" as a rule "host:8443"; the scheme's port where there is none. False: no such URL. */
bool network_sets_rule_of(const char *url, struct str *out);

#endif
