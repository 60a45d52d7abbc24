/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream.h"

#include <stdlib.h>

#include "util/mem.h"

#define CHUNK (64 << 10) /* written at once */

struct streaming {
	const struct cli *cli;
	const struct stream *stream;
	const struct source_ids *ids;
	void **states; /* one a record */
	struct view_style style;
	struct str out;
	bool has_line; /* of the JSON list */
};

/* Takes back what was added before it turned out that there was nothing to say. */
static void cut_to(struct str *out, size_t len)
{
	out->len = len;
	if (out->p)
		out->p[len] = '\0';
}

static void add_line(struct streaming *s, const struct stream_line *line, size_t i)
{
	size_t before = s->out.len;
	bool is_text = !s->cli->json && !s->cli->jsonl, said;

	if (s->cli->json && s->has_line)
		str_puts(&s->out, ",\n");
	if (is_text && s->ids->n > 1)
		str_printf(&s->out, "%s ", s->ids->items[i]);
	if (is_text)
		said = s->stream->text(s->states[i], line, &s->style, &s->out);
	else
		said = s->stream->json(s->states[i], line, &s->out);
	if (!said)
		cut_to(&s->out, before);
	else if (s->cli->jsonl)
		str_putc(&s->out, '\n');
	s->has_line = s->has_line || said;
}

static int flush(struct streaming *s, struct err *err)
{
	int r = s->out.len ? cli_print(&s->out, err) : 0;

	str_reset(&s->out);
	return r;
}

static int print_all(struct streaming *s, struct source *source, struct err *err)
{
	struct stream_line line = {0};
	size_t i;
	int r;

	while ((r = source_next(source, &line.ev, &line.json, &i, err)) == 1) {
		line.filter = source_filter(source, i);
		add_line(s, &line, i);
		if (s->out.len > CHUNK && (r = flush(s, err)) < 0)
			return r;
	}
	return r < 0 ? r : flush(s, err);
}

static int run(struct streaming *s, const struct source_options *o, struct err *err)
{
	scoped(source) struct source *source = NULL;
	int r = source_open(s->cli, o, s->ids, &source, err);

	if (r < 0)
		return r;
	if (s->cli->json)
		str_putc(&s->out, '[');
	for (size_t i = 0; s->stream->new &&i < s->ids->n; i++)
		s->states[i] = s->stream->new (source_filter(source, i));
	do {
		r = print_all(s, source, err);
	} while (r == 0 && o->follow && source_wait(source));
	for (size_t i = 0; s->stream->free && i < s->ids->n; i++)
		s->stream->free(s->states[i]);
	if (r == 0)
		r = source_finish(source, err);
	if (r == 0 && s->cli->json) {
		str_puts(&s->out, "]\n");
		r = flush(s, err);
	}
	return r;
}

int stream_run(const struct cli *cli, const struct stream *stream, const struct source_options *o,
	char **args, size_t n_args, struct err *err)
{
	struct source_ids ids;
	struct streaming s = {.cli = cli, .stream = stream, .ids = &ids, .style = cli_style(cli)};
	int r = source_find(cli, o, args, n_args, &ids, err);

	if (r == 0) {
		s.states = new0_n(void *, ids.n);
		r = run(&s, o, err);
		free(s.states);
	}
	str_done(&s.out);
	source_ids_done(&ids);
	return r;
}
