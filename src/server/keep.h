/* SPDX-License-Identifier: Apache-2.0 */
/* How long things are kept: "retention" of --config, else what docs/server.md says. */
#ifndef SERVER_KEEP_H
#define SERVER_KEEP_H

#include <jansson.h>
#include <stdint.h>

#include "util/err.h"

enum keep {
	KEEP_RECORDS, /* with their rows, lifecycle events and changes that were not applied */
	KEEP_METRICS,
	KEEP_DELIVERIES,
	KEEP_AUDIT,
	KEEP_N,
};

/* config: may be NULL. In ms. */
int64_t keep_ms(const json_t *config, enum keep keep);
/* -EINVAL, with a sentence, where the configuration's "retention" is none. */
int keep_check(const json_t *config, struct err *err);

#endif
