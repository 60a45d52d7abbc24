/* SPDX-License-Identifier: Apache-2.0 */
/* One sandbox as a whole, from its first line in the record to its last: wires spec, sandbox, observer and
 * record, and serves whoever asks. Runs until the sandbox ends; its death is the sandbox's. */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include "util/err.h"

struct supervisor_config {
	const char *id, *state_dir, *run_dir;
	int control_fd;        /* the first client, who is told when it is ready or why not */
	int spec_fd;           /* the spec as JSON */
	int seal_fd;           /* to who holds the host key; -1: none */
	int secrets_fd;        /* for the gateway, who alone reads it; -1: no network */
	int trust_fd;          /* what the sandbox is to trust (launcher/authority.h); likewise */
	int init_fd;           /* the static pid 1 */
	const char *host_json; /* what meta.json says of host and version */
};

/* Takes the descriptors over. 0 when the sandbox ended in order. */
int supervisor_main(const struct supervisor_config *config);

#endif
