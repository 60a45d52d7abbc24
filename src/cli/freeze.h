/* SPDX-License-Identifier: Apache-2.0 */
/* Turns what a resting sandbox changed into shared layers, by renames alone: however many files there are, it takes the
 * same time. Afterwards it lies over them, with new uppers once it is resumed, and so can others.
 *
 * Written down first (rest.json, then changes.json, each at once), done then: at_rest_open() goes on with one that was
 * cut off. Until a layer's fs/ is there, the upper in its old place is that layer. */
#ifndef CLI_FREEZE_H
#define CLI_FREEZE_H

#include "cli/at_rest.h"
#include "util/err.h"

/* The store's lock is held (layers.h). An upper in which nothing is stays what it is. -EBUSY with a sentence where an
 * apply reads them: until at_rest_done(), none does. */
int freeze_uppers(const struct cli *cli, struct at_rest *at, struct err *err);
/* Goes on with one that was cut off; nothing to do mostly. */
int freeze_settle(const struct cli *cli, struct at_rest *at, struct err *err);

#endif
