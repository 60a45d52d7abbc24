/* SPDX-License-Identifier: Apache-2.0 */
#include "server/file_batch.h"

#include <string.h>

#include "util/clock.h"
#include "util/jsonw.h"

#define GAP_MAX   1000  /* bytes of reasons, before no more is added */
#define GATHER_MS 100   /* what comes together goes together */
#define EVERY_MS  1000  /* no two within */
#define COST_MS   10000 /* of each: the pace that can be kept up */
#define ROOM_MS   (60 * COST_MS)

void file_batch_done(struct file_batch *batch)
{
	str_done(&batch->changes);
	str_done(&batch->gap);
}

static void note_first(struct file_batch *batch, int64_t now_ms)
{
	if (!batch->first_ms)
		batch->first_ms = now_ms;
}

void file_batch_add(struct file_batch *batch, struct slice json, int64_t now_ms)
{
	note_first(batch, now_ms);
	if (batch->n == FILE_BATCH_MAX || batch->changes.len + json.len > FILE_BATCH_BYTES) {
		batch->left_out++;
		return;
	}
	if (batch->n++ > 0)
		str_putc(&batch->changes, ',');
	str_add(&batch->changes, json.p, json.len);
}

void file_batch_add_gap(
	struct file_batch *batch, const char *reason, int64_t left_out, int64_t now_ms)
{
	note_first(batch, now_ms);
	batch->left_out += left_out;
	if (batch->gap.len > 0 && strstr(batch->gap.p, reason))
		return;
	if (batch->gap.len > 0 && batch->gap.len < GAP_MAX)
		str_puts(&batch->gap, "; ");
	if (batch->gap.len < GAP_MAX)
		str_puts(&batch->gap, reason);
}

void file_batch_write(struct file_batch *batch, const struct file_batch_data *data, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	char at[CLOCK_TEXT_LEN];

	clock_format(data->at_ms, at);
	jsonw_object(&j);
	jsonw_ktext(&j, "type", "file.changed");
	jsonw_ktext(&j, "timestamp", at);
	jsonw_key(&j, "data");
	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", data->sandbox);
	jsonw_ktext(&j, "watch", data->watch);
	jsonw_kint(&j, "n", data->n);
	jsonw_ktext(&j, "gap", batch->gap.len > 0 ? batch->gap.p : NULL);
	jsonw_key(&j, "changes");
	jsonw_array(&j);
	if (batch->n > 0)
		jsonw_raw(&j, str_slice(&batch->changes));
	jsonw_array_end(&j);
	jsonw_kint(&j, "left_out", batch->left_out);
	jsonw_object_end(&j);
	jsonw_object_end(&j);
	str_reset(&batch->changes);
	str_reset(&batch->gap);
	batch->n = 0;
	batch->left_out = batch->first_ms = 0;
}

static int64_t debt_at(const struct file_pace *pace, int64_t now_ms)
{
	int64_t debt = pace->debt_ms - (now_ms - pace->last_ms);

	return debt > 0 ? debt : 0;
}

int64_t file_pace_due(const struct file_pace *pace, const struct file_batch *batch)
{
	int64_t due = batch->first_ms + GATHER_MS;
	int64_t paid = pace->last_ms + pace->debt_ms + COST_MS - ROOM_MS;

	if (!pace->last_ms)
		return due;
	if (due < pace->last_ms + EVERY_MS)
		due = pace->last_ms + EVERY_MS;
	return due < paid ? paid : due;
}

void file_pace_note(struct file_pace *pace, int64_t now_ms)
{
	pace->debt_ms = (pace->last_ms ? debt_at(pace, now_ms) : 0) + COST_MS;
	pace->last_ms = now_ms;
}
