/* SPDX-License-Identifier: Apache-2.0 */
#include "server/index_batch.h"

#include <stdlib.h>
#include <string.h>

#include "server/row_shorten.h"
#include "util/clock.h"
#include "util/mem.h"

#define TEXTS_OF_ONE 6          /* of a row; and a sample's */
#define MEMBER_MAX   (64 << 10) /* of a row that is longer than the store takes */

struct index_batch *index_batch_new(void)
{
	return new0(struct index_batch);
}

void index_batch_reset(struct index_batch *batch)
{
	for (size_t i = 0; i < batch->n_texts; i++)
		free(batch->texts[i]);
	batch->n_rows = batch->n_events = batch->n_metrics = batch->n_asks = batch->n_texts = 0;
}

void index_batch_free(struct index_batch *batch)
{
	if (!batch)
		return;
	index_batch_reset(batch);
	free(batch);
}

bool index_batch_is_empty(const struct index_batch *batch)
{
	return batch->n_rows + batch->n_events + batch->n_metrics + batch->n_asks == 0;
}

bool index_batch_is_full(const struct index_batch *batch)
{
	return batch->n_rows == INDEX_BATCH_MAX || batch->n_events == INDEX_BATCH_MAX ||
	       batch->n_metrics == INDEX_BATCH_MAX || batch->n_asks == INDEX_BATCH_MAX ||
	       batch->n_texts + TEXTS_OF_ONE > sizeof(batch->texts) / sizeof(batch->texts[0]);
}

static const char *keep(struct index_batch *batch, struct slice text)
{
	char *copy = mem_copy(text.p ? text.p : "", text.len);

	batch->texts[batch->n_texts++] = copy;
	return copy;
}

/* One that is longer than the store takes would keep all behind it out. */
static const char *keep_json(struct index_batch *batch, struct slice json)
{
	scoped_str struct str shorter = {0};

	if (json.len <= STORE_JSON_MAX)
		return keep(batch, json);
	row_shorten(json, MEMBER_MAX, true, &shorter);
	return keep(batch, str_slice(&shorter));
}

static void add_search(struct str *out, const struct event *ev)
{
	for (size_t i = 0; i < ev->argv.n && out->len < STORE_SEARCH_MAX; i++) {
		str_puts(out, i ? " " : "");
		str_add(out, ev->argv.items[i].p, ev->argv.items[i].len);
	}
	str_add(out, ev->command.p, ev->command.len);
	str_puts(out, "\n");
	str_add(out, ev->detail.p, ev->detail.len);
	if (out->len > STORE_SEARCH_MAX)
		out->len = STORE_SEARCH_MAX;
}

void index_batch_add_row(struct index_batch *batch, const struct index_batch_of *of,
	const struct event *ev, struct slice json)
{
	scoped_str struct str search = {0};
	struct store_log_row *row = &batch->rows[batch->n_rows++];
	int64_t at_ms = ev->wall_ms;
	scoped_mem char *started =
		mem_copy(ev->started_at.p ? ev->started_at.p : "", ev->started_at.len);

	add_search(&search, ev);
	(void)clock_parse(started, &at_ms); /* else the time of its end */
	*row = (struct store_log_row){.sandbox = of->sandbox,
		.exec = keep(batch, ev->exec),
		.source = keep(batch, ev->source),
		.operation = keep(batch, ev->operation),
		.seq = (int64_t)ev->seq,
		.id = ev->id,
		.has_exit_code = event_has(ev, exit_code),
		.exit_code = ev->exit_code,
		.output_truncated = ev->output_truncated,
		.at_ms = at_ms,
		.duration_ms = ev->duration_ms,
		.search = {.p = keep(batch, str_slice(&search)), .len = search.len},
		.json = keep_json(batch, json)};
}

void index_batch_add_event(struct index_batch *batch, const struct index_batch_of *of,
	const struct event *ev, struct slice line)
{
	batch->events[batch->n_events++] = (struct store_event){.account = of->account,
		.sandbox = of->sandbox,
		.seq = (int64_t)ev->seq,
		.at_ms = ev->wall_ms,
		.kind = event_kind_name(ev->kind),
		.json = keep_json(batch, line)};
}

void index_batch_add_metric(struct index_batch *batch, const struct index_batch_of *of,
	const struct event *ev, struct slice line)
{
	batch->metrics[batch->n_metrics++] = (struct store_metric){
		.sandbox = of->sandbox, .json = keep_json(batch, line), .at_ms = ev->wall_ms};
}

void index_batch_add_ask(struct index_batch *batch, const struct index_batch_of *of,
	const struct event *ev, struct slice line)
{
	batch->asks[batch->n_asks++] = (struct webhooks_event){.kind = event_kind_name(ev->kind),
		.sandbox = of->sandbox,
		.json = keep_json(batch, line),
		.seq = (int64_t)ev->seq,
		.at_ms = ev->wall_ms};
}

const struct store_log_row *index_batch_find(const struct index_batch *batch, const char *exec)
{
	for (size_t i = 0; i < batch->n_rows; i++)
		if (strcmp(batch->rows[i].exec, exec) == 0)
			return &batch->rows[i];
	return NULL;
}

size_t index_batch_heard(
	const struct index_batch *batch, struct webhooks_event events[INDEX_BATCH_HEARD_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < batch->n_events; i++)
		events[n++] = (struct webhooks_event){.kind = batch->events[i].kind,
			.sandbox = batch->events[i].sandbox,
			.json = batch->events[i].json,
			.seq = batch->events[i].seq,
			.at_ms = batch->events[i].at_ms};
	for (size_t i = 0; i < batch->n_rows; i++)
		events[n++] = (struct webhooks_event){.kind = event_kind_name(EVENT_EXEC_END),
			.sandbox = batch->rows[i].sandbox,
			.json = batch->rows[i].json,
			.seq = batch->rows[i].seq,
			.at_ms = batch->rows[i].at_ms + batch->rows[i].duration_ms};
	for (size_t i = 0; i < batch->n_asks; i++)
		events[n++] = batch->asks[i];
	return n;
}
