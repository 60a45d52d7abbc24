/* SPDX-License-Identifier: Apache-2.0 */
/* The audit journal: every act on the control plane, a line each, chained as the ledger is: <state>/audit.jsonl. A
 * database holds its index. */
#ifndef LAUNCHER_AUDIT_H
#define LAUNCHER_AUDIT_H

#include <jansson.h>
#include <stdint.h>

#include "util/err.h"

/* line: an object with any of account, actor, origin, act, object, sandbox, detail, texts. Waits for the disk. *ret_n is its
 * number. -EINVAL where it has no act. */
int audit_append(const char *state_dir, const json_t *line, uint64_t *ret_n, struct err *err);

/* As chain_walk(). */
int audit_walk(const char *state_dir, int (*on_line)(void *ctx, const json_t *line), void *ctx,
	struct err *err);

#endif
