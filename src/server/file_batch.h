/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of files on their way into deliveries of a webhook: gathered, as many as one may have, and when the next one may
 * go. Pure: clocks are the caller's, in ms, and only go forward. */
#ifndef SERVER_FILE_BATCH_H
#define SERVER_FILE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define FILE_BATCH_MAX   100         /* changes */
#define FILE_BATCH_BYTES (16u << 10) /* of them */

struct file_batch {
	struct str changes; /* with commas between */
	size_t n;
	int64_t left_out;
	struct str gap;   /* why something is not told; empty: nothing is missing */
	int64_t first_ms; /* when the first of it came; 0: it is empty */
};
void file_batch_done(struct file_batch *batch);
/* Over what one may have it is counted as left out. */
void file_batch_add(struct file_batch *batch, struct slice json, int64_t now_ms);
/* left_out: how many changes are missing, as far as that is known. Reasons are joined, each stands there once. */
void file_batch_add_gap(
	struct file_batch *batch, const char *reason, int64_t left_out, int64_t now_ms);

struct file_batch_data {
	const char *sandbox, *watch;
	int64_t n;     /* of the delivery in this watch, from 1 */
	int64_t at_ms; /* on the wall */
};
/* The body of a delivery; the batch is empty then. */
void file_batch_write(
	struct file_batch *batch, const struct file_batch_data *data, struct str *out);

/* One a second at most; where changes go on and on, after 60 of them one in 10 seconds. */
struct file_pace {
	int64_t last_ms; /* 0: there was none */
	int64_t debt_ms; /* as of then */
};
/* When it may go. */
int64_t file_pace_due(const struct file_pace *pace, const struct file_batch *batch);
void file_pace_note(struct file_pace *pace, int64_t now_ms);

#endif
