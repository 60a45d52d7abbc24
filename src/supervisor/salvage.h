/* SPDX-License-Identifier: Apache-2.0 */
/* Mends what a supervisor left that died: its record, its pinned ring, its box. */
#ifndef SUPERVISOR_SALVAGE_H
#define SUPERVISOR_SALVAGE_H

#include "util/err.h"

struct salvage_config {
	const char *id, *state_dir, *run_dir;
	int seal_fd; /* to who holds the host key; -1: the end stays unsigned */
};

/* Does nothing to a sandbox whose supervisor lives, or which rests in order (-EBUSY). Safe to repeat. */
int salvage_sandbox(const struct salvage_config *config, struct err *err);

#endif
