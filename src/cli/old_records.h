/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are too old, or more than there is to be room for, go: the oldest first. Those of sandboxes that live or rest
 * stay, and so do those that an account of a control plane has, which it keeps as long as its configuration says. */
#ifndef CLI_OLD_RECORDS_H
#define CLI_OLD_RECORDS_H

#include <stdint.h>

#include "cli/cli.h"
#include "util/err.h"

struct old_records_limits {
	int64_t older_ms;  /* since they ended; 0: no such limit */
	int64_t max_bytes; /* of all of them; 0: no such limit */
};

struct old_records_removed {
	int records;
	int64_t bytes;
	int pending; /* that stay over max_bytes: they have changes that were not applied, which go by age alone */
};

/* With changes that were not applied. What cannot be removed now is told on stderr and stays; the first such failure is the one
 * returned, behind all the others. */
int old_records_remove(const struct cli *cli, const struct old_records_limits *limits,
	struct old_records_removed *ret, struct err *err);

#endif
