/* SPDX-License-Identifier: Apache-2.0 */
/* For verbs that become the launcher of a control plane (launcher/main.c): what they hand over to it. */
#ifndef CLI_LAUNCHER_START_H
#define CLI_LAUNCHER_START_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/passed_sockets.h"
#include "util/err.h"

/* text NULL: not at all. */
void launcher_start_set(json_t *settings, const char *key, const char *text);
/* What the file of --config holds, which has to be a JSON object. */
int launcher_start_config(json_t *settings, const char *path, struct err *err);
/* With the sockets that a service manager passed (may be NULL). Comes back only where it failed. */
int launcher_start(const struct cli *cli, const json_t *settings,
	const struct passed_sockets *passed, struct err *err);

#endif
