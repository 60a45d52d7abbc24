/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RECORD_FEED_H
#define CLI_RECORD_FEED_H

#include "cli/cli.h"
#include "cli/feed.h"

/* Of a record in the state folder. The caller's. */
int record_feed_open(
	const struct cli *cli, const char *id, struct feed **ret_feed, struct err *err);

#endif
