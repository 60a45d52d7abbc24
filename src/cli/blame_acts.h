/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a sandbox's changes: by the host's ledger for all of them, by the change set's journal for each path. Both
 * are root's to read; for others nothing is known. */
#ifndef CLI_BLAME_ACTS_H
#define CLI_BLAME_ACTS_H

#include "cli/cli.h"
#include "util/jsonw.h"
#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"

struct blame_acts;

/* Reads the ledger; one that cannot be read is empty. */
struct blame_acts *blame_acts_new(const struct cli *cli);
void blame_acts_free(struct blame_acts *acts);
SCOPED_TYPE(blame_acts)

/* The sandbox that is asked for until the next call. */
void blame_acts_open(struct blame_acts *acts, const struct cli *cli, const char *id);

enum blame_fate {
	BLAME_FATE_UNKNOWN,
	BLAME_FATE_APPLIED,
	BLAME_FATE_DISCARDED,
	BLAME_FATE_NEITHER, /* it may wait, or be as it was */
};
/* Of a path inside, in a cow mount. */
enum blame_fate blame_acts_fate(const struct blame_acts *acts, struct slice path);

/* The members "applied" and, where it is known, "state"; or "; applied at ...". */
void blame_acts_json(const struct blame_acts *acts, enum blame_fate fate, struct jsonw *j);
void blame_acts_text(const struct blame_acts *acts, enum blame_fate fate, struct str *out);

#endif
