/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher does for a control plane: the table of all that its unprivileged half may ask for, each with a check.
 *
 * The other half faces the network, so nothing it says is believed: it may only name sandboxes that a control plane made, and
 * of the host only what the configuration lists for the account. */
#ifndef LAUNCHER_OFFICE_H
#define LAUNCHER_OFFICE_H

#include <jansson.h>
#include <sys/types.h>

#include "util/err.h"

struct office {
	const char *state_dir, *run_dir;
	gid_t readers; /* the group of the other half: may read the records that it has made */
	const json_t *config; /* what --config holds, see docs/server.md; an object */
	/* The other half has begun, or has looked at a certificate that it was told of. why: it did not take it; NULL: it
	 * did. */
	void (*on_ready)(void *ctx, const char *why);
	void *ctx;
};

/* Takes one request from sock and has it answered, by this process or one that it starts for that. 0; -EPIPE: the other side
 * has gone. A request that cannot be read is dropped. */
int office_serve_one(const struct office *office, int sock);

#endif
