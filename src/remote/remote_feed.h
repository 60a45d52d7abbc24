/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's events from its control plane. They are kept in a file without a name, so that a view may read them twice and
 * take its time. */
#ifndef REMOTE_REMOTE_FEED_H
#define REMOTE_REMOTE_FEED_H

#include "remote/link.h"

/* Takes in all that there is; with follow, what comes is taken in later, as link_work() is called. The caller's. */
int remote_feed_open(
	struct link *link, const char *id, bool follow, struct feed **ret_feed, struct err *err);

#endif
