/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the blobs that events name are there and hold what their names say. */
#ifndef RECORD_VERIFY_BLOBS_H
#define RECORD_VERIFY_BLOBS_H

#include "event/event_json.h"
#include "record/verify.h"
#include "record/verify_chain.h"
#include "util/map.h"

struct verify_blobs {
	struct map *names; /* made at the first */
	struct event_line *parsed;
};

/* Notes those that a line names; others cost one look. */
void verify_blobs_take(struct verify_blobs *blobs, struct slice line);
/* Those that are missing, and may be, are counted in the result. */
void verify_blobs_check(const struct verify_blobs *blobs, int dirfd,
	const struct verify_options *options, struct verify_findings *findings,
	struct verify_result *result);
void verify_blobs_done(struct verify_blobs *blobs);

#endif
