/* SPDX-License-Identifier: Apache-2.0 */
/* The audit journal: every act on the control plane, a line each, chained as the ledger is: <state>/audit.jsonl. A
 * database holds its index. */
#ifndef LAUNCHER_AUDIT_H
#define LAUNCHER_AUDIT_H

#include <jansson.h>

#include "util/err.h"
#include "util/str.h"

/* line: an object with any of account, actor, origin, act, object, sandbox, detail, texts. Waits for the disk. ret_line
 * gets the line as it was written, with its number n and its time at. -EINVAL where it has no act. */
int audit_append(const char *state_dir, const json_t *line, struct str *ret_line, struct err *err);

/* The journal, to be read: a descriptor. -ENOENT: nothing was entered yet. */
int audit_open(const char *state_dir, struct err *err);

/* As chain_walk(). */
int audit_walk(const char *state_dir, int (*on_line)(void *ctx, const json_t *line), void *ctx,
	struct err *err);

#endif
