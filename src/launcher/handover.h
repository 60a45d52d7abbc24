/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor with a network is handed beside the spec: a memory file for the gateway that it passes on unread
 * (credentials, the authority's key: nothing of it is ever on disk), and what its sandbox is to trust.
 *
 * The authority is made after the supervisor was started: OpenSSL wakes up beside it, not before it. */
#ifndef LAUNCHER_HANDOVER_H
#define LAUNCHER_HANDOVER_H

#include "spec/spec_network.h"
#include "util/err.h"

struct handover {
	int secrets_fd; /* JSON lines: spec_hidden_write(), then authority_make(); sealed once it is whole */
	int trust_fd; /* a pipe, read by whoever makes the sandbox until it ends */
	int to_trust_fd;
};

#define HANDOVER_NONE ((struct handover){-1, -1, -1})

/* Opens them, with numbers from lowest on; without a network there are none, and nothing else here does anything. */
int handover_open(
	struct handover *handover, const struct spec_network *network, int lowest, struct err *err);
/* Makes the authority of the sandbox, seals the file, ends the pipe. */
int handover_fill(struct handover *handover, const char *sandbox, struct err *err);
void handover_done(struct handover *handover);

#endif
