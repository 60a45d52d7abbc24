/* SPDX-License-Identifier: Apache-2.0 */
/* The events of one sandbox, from wherever its record is: here (record_feed.h) or at a control plane (elsewhere.h). */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "util/err.h"
#include "util/str.h"

struct feed;

struct feed_kind {
	/* 1: the next event in the order of seq, and its line in the journal, good until the next call; 0: no more for now. */
	int (*next)(struct feed *feed, const struct event **ret_ev, struct slice *ret_line,
		struct err *err);
	/* From the beginning again. */
	int (*rewind)(struct feed *feed, struct err *err);
	/* After next() said 0: more may come. */
	bool (*is_live)(const struct feed *feed);
	/* As reader_blob(). */
	int (*blob)(struct feed *feed, struct slice sha256, size_t max, struct str *out);
	uint64_t (*n_bad)(const struct feed *feed); /* lines that are no events */
	void (*free)(struct feed *feed);
};

struct feed {
	const struct feed_kind *kind;
};

#endif
