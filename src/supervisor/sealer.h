/* SPDX-License-Identifier: Apache-2.0 */
/* Asks whoever holds the host's key (launcher, cli or keeper) to sign the record's head: now and then while
 * it runs, and once at the end. The supervisor never sees the key. */
#ifndef SUPERVISOR_SEALER_H
#define SUPERVISOR_SEALER_H

#include "supervisor/supervisor_internal.h"

struct sealer *sealer_new(
	struct supervisor *sup, int sock); /* takes the socket over; -1: unsigned record */
void sealer_free(struct sealer *sealer);

/* Something was recorded: it will be signed within seconds. No timer runs while nothing happens. */
void sealer_poke(struct sealer *sealer);
/* The last seal, waited for. False where the signer is gone: the record's end then stays open, for gc to mark. */
bool sealer_finish(struct sealer *sealer, enum record_end end);

#endif
