/* SPDX-License-Identifier: Apache-2.0 */
/* A reader a record; the one whose next event is oldest by the wall clock goes first, so that several
 * sandboxes read as one timeline. Following waits for the journals to grow (inotify). */
#include "cli/source.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "cli/elsewhere.h"
#include "cli/record_feed.h"
#include "cli/records.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define WAIT_MS 200 /* a writer that died wakes nobody: look again after this */

struct input {
	const char *id; /* borrowed from the ids */
	uint64_t n_given;
	struct feed *feed;
	struct view_filter filter;
	char *exec;               /* what the filter's points at */
	const struct event *next; /* read ahead; NULL: none for now */
	struct slice line;        /* likewise */
	bool is_live;             /* more may come */
};

struct source {
	const struct cli *cli;
	struct input *inputs;
	size_t n;
	size_t given; /* whose event was given last, SIZE_MAX: none */
	int notify;   /* inotify, -1 without --follow or elsewhere */
};

void source_free(struct source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < source->n; i++) {
		if (source->inputs[i].feed)
			source->inputs[i].feed->kind->free(source->inputs[i].feed);
		free(source->inputs[i].exec);
	}
	free(source->inputs);
	scoped_close(&source->notify);
	free(source);
}

const struct view_filter *source_filter(const struct source *source, size_t i)
{
	return &source->inputs[i].filter;
}

struct feed *source_feed(const struct source *source, size_t i)
{
	return source->inputs[i].feed;
}

/* What must be known of a record before its events are given out. */
struct outline {
	const char *exec_start; /* the exec asked for, or its beginning */
	struct str exec;        /* found in full */
	bool is_ambiguous;
	int64_t first_ms, last_ms;
};

static void note_exec(struct outline *outline, const struct event *ev)
{
	if (!outline->exec_start || ev->exec.len == 0 ||
		!slice_starts(ev->exec, outline->exec_start))
		return;
	if (outline->exec.len && !slice_eq(ev->exec, str_slice(&outline->exec)))
		outline->is_ambiguous = true;
	str_reset(&outline->exec);
	str_add(&outline->exec, ev->exec.p, ev->exec.len);
}

/* Reads the record once, where an option needs what only the whole tells. */
static int read_outline(struct feed *feed, struct outline *outline, struct err *err)
{
	const struct event *ev;
	struct slice line;
	int r;

	while ((r = feed->kind->next(feed, &ev, &line, err)) == 1) {
		note_exec(outline, ev);
		if (!outline->first_ms)
			outline->first_ms = ev->wall_ms - ev->guest_ns / CLOCK_NS_PER_MS;
		outline->last_ms = ev->wall_ms;
	}
	if (r == 0 && feed->kind->is_live(feed))
		outline->last_ms = clock_wall_ms();
	return r < 0 ? r : feed->kind->rewind(feed, err);
}

static int set_bounds(struct input *input, const struct source_options *o,
	const struct outline *outline, struct err *err)
{
	int r = 0;

	if (o->since)
		r = view_filter_parse_bound(
			o->since, outline->first_ms, outline->last_ms, &input->filter.since, err);
	if (r == 0 && o->until)
		r = view_filter_parse_bound(
			o->until, outline->first_ms, outline->last_ms, &input->filter.until, err);
	return r;
}

static int set_filter(const struct source_options *o, struct input *input, struct err *err)
{
	const char *id = input->id;
	struct outline outline = {.exec_start = o->exec};
	int r;

	input->filter = (struct view_filter){.noise = o->noise, .internal = o->internal};
	if (!o->exec && !o->since && !o->until)
		return 0;
	r = read_outline(input->feed, &outline, err);
	if (r == 0 && o->exec && !outline.exec.len)
		r = err_set(err, -ENOENT, "sandbox %s has no exec '%s': `cloche log %s` lists them",
			id, o->exec, id);
	if (r == 0 && outline.is_ambiguous)
		r = err_set(err, -ENOTUNIQ, "'%s' stands for several execs: write more of the id",
			o->exec);
	if (r == 0)
		r = set_bounds(input, o, &outline, err);
	if (r == 0 && o->exec) {
		input->exec = str_take(&outline.exec);
		input->filter.exec = slice_of(input->exec);
	}
	str_done(&outline.exec);
	return r;
}

static int open_input(const struct cli *cli, const struct source_options *o, const char *id,
	struct source *source, struct err *err)
{
	struct input *input = &source->inputs[source->n++];
	scoped_str struct str dir = {0};
	int r;

	*input = (struct input){.id = id, .is_live = true};
	records_dir(cli, id, &dir);
	if (source->notify >= 0 &&
		inotify_add_watch(source->notify, dir.p, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0 &&
		errno == ENOSPC)
		return err_set(err, -errno,
			"follow %s: the host's limit of inotify watches is reached "
			"(fs.inotify.max_user_watches)",
			id);
	if (cli->elsewhere)
		r = cli->elsewhere->open(cli, id, o->follow, &input->feed, err);
	else
		r = record_feed_open(cli, id, &input->feed, err);
	return r < 0 ? r : set_filter(o, input, err);
}

int source_open(const struct cli *cli, const struct source_options *o, const struct source_ids *ids,
	struct source **ret_source, struct err *err)
{
	scoped(source) struct source *source = new0(struct source);

	source->cli = cli;
	source->inputs = new0_n(struct input, ids->n);
	source->given = SIZE_MAX;
	source->notify =
		o->follow && !cli->elsewhere ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
	for (size_t i = 0; i < ids->n; i++) {
		int r = open_input(cli, o, ids->items[i], source, err);

		if (r < 0)
			return r;
	}
	*ret_source = take(&source);
	return 0;
}

static int read_on(struct input *input, struct err *err)
{
	const struct event *ev;
	int r = input->next ? 0 : input->feed->kind->next(input->feed, &ev, &input->line, err);

	if (r == 1)
		input->next = ev;
	return r < 0 ? r : 0;
}

/* A writer may write and let go between our last read and our look at its lock: then read once more. */
static int fill(struct input *input, struct err *err)
{
	int r = read_on(input, err);

	if (r < 0 || input->next || !input->is_live)
		return r;
	input->is_live = input->feed->kind->is_live(input->feed);
	return input->is_live ? 0 : read_on(input, err);
}

int source_next(struct source *source, const struct event **ret_ev, struct slice *ret_line,
	size_t *ret_i, struct err *err)
{
	struct input *oldest = NULL;

	if (source->given != SIZE_MAX)
		source->inputs[source->given].next = NULL;
	source->given = SIZE_MAX;
	for (size_t i = 0; i < source->n; i++) {
		struct input *input = &source->inputs[i];
		int r = fill(input, err);

		if (r < 0)
			return r;
		if (input->next && (!oldest || input->next->wall_ms < oldest->next->wall_ms))
			oldest = input;
	}
	if (!oldest)
		return 0;
	source->given = (size_t)(oldest - source->inputs);
	oldest->n_given++;
	*ret_ev = oldest->next;
	*ret_line = oldest->line;
	*ret_i = source->given;
	return 1;
}

int source_finish(const struct source *source, struct err *err)
{
	for (size_t i = 0; i < source->n; i++) {
		const struct input *input = &source->inputs[i];
		unsigned long long n_bad = input->feed->kind->n_bad(input->feed);

		if (n_bad && !input->n_given)
			return err_set(err, -EBADMSG,
				"the record of %s cannot be read: its lines are no events (`cloche "
				"verify %s` says "
				"more)",
				input->id, input->id);
		if (n_bad)
			log_warn("%llu lines of the record of %s cannot be read and are left out: "
				 "`cloche verify "
				 "%s` says more",
				n_bad, input->id, input->id);
	}
	return 0;
}

int source_wait(struct source *source)
{
	struct pollfd p = {.fd = source->notify, .events = POLLIN};
	char events[4096];
	bool is_live = false;

	for (size_t i = 0; i < source->n; i++)
		is_live = is_live || source->inputs[i].is_live;
	if (!is_live)
		return 0;
	if (source->cli->elsewhere) {
		source->cli->elsewhere->wait(source->cli, WAIT_MS);
		return 1;
	}
	(void)poll(&p, 1, WAIT_MS); /* a signal or the time: look again either way */
	while (source->notify >= 0 && read(source->notify, events, sizeof(events)) > 0)
		;
	return 1;
}
