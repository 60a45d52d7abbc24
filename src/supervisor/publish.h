/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of the sandbox on the host (-p): listeners that the gateway accepts from. They are made before the sandbox, so that
 * a port that is taken is an error and not a surprise, and stay when a gateway dies. */
#ifndef SUPERVISOR_PUBLISH_H
#define SUPERVISOR_PUBLISH_H

#include "supervisor/supervisor_internal.h"

/* Fills sup->published, in the spec's order. */
int publish_open(struct supervisor *sup, struct err *err);
void publish_close(struct supervisor *sup);

#endif
