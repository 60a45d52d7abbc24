/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REMOTE_REMOTE_CREATE_H
#define REMOTE_REMOTE_CREATE_H

#include "cli/create_options.h"
#include "cli/verb.h"
#include "util/id.h"

/* Has the server make a sandbox of the options of create: 0, CLI_USAGE for what a server cannot do, or negative. */
int remote_create_sandbox(const struct cli *cli, const struct verb *verb,
	const struct create_options *o, char ret_id[ID_SIZE], struct err *err);

/* Adds an upstream proxy's URL with its credentials, which a spec keeps apart. */
void remote_create_add_proxy(const struct spec_network *net, struct str *url);

#endif
