/* SPDX-License-Identifier: Apache-2.0 */
/* The network options of create and run, and what is left to do about them after parsing. */
#ifndef CLI_NETWORK_OPTIONS_H
#define CLI_NETWORK_OPTIONS_H

#include "cli/cli.h"
#include "cli/create_options.h"

/* With a settled network: opens sets, reads the values of secrets and makes their stand-ins. Before spec_check(). */
int network_options_finish(struct create_options *o, const struct cli *cli, struct err *err);

#endif
