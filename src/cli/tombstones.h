/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger says of records that were removed. */
#ifndef CLI_TOMBSTONES_H
#define CLI_TOMBSTONES_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "launcher/ledger.h"
#include "util/err.h"
#include "util/id.h"
#include "util/jsonw.h"

struct tombstone {
	char sandbox[ID_SIZE];
	char head[LEDGER_HEAD_SIZE]; /* its last one; empty: none was ever signed */
	char actor[64];
	uint64_t seq; /* of the head */
	int64_t at_ms;
	bool is_aged; /* else somebody had it removed */
};

/* Of the record that text stands for: a whole id, or a prefix that only one of those has. -ENOENT: none; -ENOTUNIQ; -EACCES:
 * only root may read the ledger. */
int tombstones_find(
	const struct cli *cli, const char *text, struct tombstone *ret, struct err *err);

/* A line for people; members of what `verify --json` prints of it. */
void tombstones_add_text(struct str *out, const struct tombstone *t);
void tombstones_add_members(struct jsonw *j, const struct tombstone *t);

#endif
