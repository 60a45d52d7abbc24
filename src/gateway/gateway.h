/* SPDX-License-Identifier: Apache-2.0 */
/* cloche-gateway: the only way out of one sandbox. Everything it handles arrives at descriptors that the supervisor made
 * inside the sandbox's network namespace and handed over (proto/gateway_wire.h); all it does outside is ask
 * resolvers and dial what the rules allow. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include "util/err.h"

/* Runs until the supervisor is gone. Negative: it could not begin. */
int gateway_main(struct err *err);

#endif
