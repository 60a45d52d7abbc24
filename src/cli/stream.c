/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream.h"

#define CHUNK (64 << 10) /* written at once */

struct streaming {
	const struct cli *cli;
	const struct stream *stream;
	const struct source_ids *ids;
	struct view_style style;
	struct str out;
	bool has_line; /* of the JSON list */
};

static void add_line(struct streaming *s, const struct stream_line *line)
{
	if (s->cli->json) {
		str_puts(&s->out, s->has_line ? ",\n" : "");
		s->stream->json(line, &s->out);
	} else if (s->cli->jsonl) {
		s->stream->json(line, &s->out);
		str_putc(&s->out, '\n');
	} else {
		s->stream->text(line, &s->style, &s->out);
	}
	s->has_line = true;
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
		line.sandbox = s->ids->n > 1 ? s->ids->items[i] : NULL;
		if (!s->stream->takes(&line))
			continue;
		add_line(s, &line);
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
	else if (!s->cli->jsonl && s->stream->heading)
		view_text_add_color(&s->out, &s->style, VIEW_DIM, slice_of(s->stream->heading));
	do {
		r = print_all(s, source, err);
	} while (r == 0 && o->follow && source_wait(source));
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

	if (r == 0)
		r = run(&s, o, err);
	str_done(&s.out);
	source_ids_done(&ids);
	return r;
}
