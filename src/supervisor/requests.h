/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may ask of a supervisor: one table of kinds, each with its handler. */
#ifndef SUPERVISOR_REQUESTS_H
#define SUPERVISOR_REQUESTS_H

#include "supervisor/supervisor_internal.h"

/* A frame from a client: a request, bytes for its exec, or a message to it. */
void requests_on_frame(struct supervisor *sup, struct conn *conn, const struct wire_frame *frame);

#endif
