/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that were held until somebody answered (--ask): where to, the answer, and whose it was. */
#include <stdlib.h>

#include "report/summary_internal.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "view/network_place.h"

#define PLACE_MAX 60 /* columns of one */

static void own(struct summary *summary, struct summary_question *question)
{
	struct slice *texts[] = {&question->host, &question->address, &question->protocol,
		&question->answer, &question->actor, &question->reason};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*texts[i] = intern_text(summary->intern, *texts[i]);
}

/* What makes two of them one. */
static void make_key(const struct summary_question *question, struct str *out)
{
	const struct slice texts[] = {question->host, question->address, question->protocol,
		question->answer, question->actor, question->reason};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		str_add(out, texts[i].p, texts[i].len);
		str_putc(out, '\0');
	}
	str_printf(out, "%lld", (long long)question->port);
}

void summary_asked_take(struct summary *summary, const struct event *ev)
{
	struct summary_questions *asked = &summary->asked;
	struct summary_question question = {.host = ev->host,
		.address = ev->address,
		.protocol = ev->protocol,
		.answer = ev->answer,
		.actor = ev->actor,
		.reason = ev->reason,
		.port = ev->port};
	scoped_str struct str key = {0};
	void **slot;

	make_key(&question, &key);
	if (asked->n == SUMMARY_ROWS_MAX && !map_find(asked->index, str_slice(&key))) {
		asked->more++;
		return;
	}
	slot = map_slot(asked->index, str_slice(&key));
	if (!*slot) {
		own(summary, &question);
		asked->items = mem_grow(asked->items, asked->n + 1, sizeof(*asked->items));
		asked->items[asked->n++] = question;
		*slot = (void *)(uintptr_t)asked->n;
	}
	asked->items[(uintptr_t)*slot - 1].count++;
}

/* "a.test:443 allowed by uid:0"; nobody's answer has its reason instead. */
static void add_question(struct str *out, const struct summary_question *question)
{
	scoped_str struct str place = {0};

	network_place_add(
		&place, question->host.len ? question->host : question->address, question->port);
	summary_lines_quote(out, str_slice(&place), PLACE_MAX);
	str_putc(out, ' ');
	summary_lines_quote(out, question->answer, 20);
	if (question->actor.len) {
		str_puts(out, " by ");
		summary_lines_quote(out, question->actor, 40);
	}
	if (question->reason.len) {
		str_puts(out, " (");
		summary_lines_quote(out, question->reason, PLACE_MAX);
		str_putc(out, ')');
	}
	if (question->count > 1)
		str_printf(out, ", %lld times", (long long)question->count);
}

void summary_asked_line(struct summary *summary, struct summary_lines *lines)
{
	const struct summary_questions *asked = &summary->asked;
	int64_t more = asked->more;
	struct str *out;

	if (asked->n == 0)
		return;
	out = summary_lines_add(lines, SUMMARY_PLAIN, "Asked");
	for (size_t i = 0; i < asked->n; i++) {
		if (i >= SUMMARY_HEAD_ROWS) {
			more++;
			continue;
		}
		if (i)
			str_puts(out, "; ");
		add_question(out, &asked->items[i]);
	}
	if (more > 0)
		str_printf(out, "; and %lld more: see the timeline", (long long)more);
}

static void write_text(struct jsonw *j, const char *key, struct slice text)
{
	if (text.len)
		jsonw_kslice(j, key, text);
	else
		jsonw_knull(j, key);
}

void summary_asked_json(struct summary *summary, struct jsonw *j)
{
	const struct summary_questions *asked = &summary->asked;

	jsonw_key(j, "asked");
	jsonw_array(j);
	for (size_t i = 0; i < asked->n; i++) {
		const struct summary_question *question = &asked->items[i];

		jsonw_object(j);
		write_text(j, "host", question->host);
		write_text(j, "address", question->address);
		jsonw_kint(j, "port", question->port);
		write_text(j, "protocol", question->protocol);
		write_text(j, "answer", question->answer);
		write_text(j, "actor", question->actor);
		write_text(j, "reason", question->reason);
		jsonw_kint(j, "count", question->count);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
	if (asked->more > 0)
		jsonw_kint(j, "asked_more", asked->more);
}
