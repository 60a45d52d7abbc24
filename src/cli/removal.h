/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox keeps goes, each in one step; of what the ledger knows it is entered first, so that where this is cut off
 * nobody finds it missing. */
#ifndef CLI_REMOVAL_H
#define CLI_REMOVAL_H

#include "cli/cli.h"
#include "util/err.h"

/* Changes that were not applied: an apply or a discard that is at work is -EBUSY. None is fine. */
int removal_changes(const struct cli *cli, const char *id, struct err *err);
/* What requests, answers and messages carried. */
int removal_bodies(const struct cli *cli, const char *id, struct err *err);
/* The record: the ledger keeps its last head, who removed it, and whether it had aged out. */
int removal_record(const struct cli *cli, const char *id, bool is_aged, struct err *err);

#endif
