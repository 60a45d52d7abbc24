/* SPDX-License-Identifier: Apache-2.0 */
/* cloche blame: which sandbox, command and program made a path what it is, across all records of the caller. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/blame_line.h"
#include "cli/records.h"
#include "cli/verb.h"
#include "record/record.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"
#include "view/blame.h"

#define META_MAX    (4U << 20)
#define CHANGES_MAX (256U << 20)
#define ROWS_TEXT   100 /* shown without --limit */

/* ---- a record ---- */

static int take_trace(
	struct blame_job *job, struct blame_part *part, size_t *ret_n, struct err *err)
{
	scoped(reader) struct reader *reader = NULL;
	scoped(blame) struct blame *blame = blame_new();
	const struct event *ev;
	int r = records_open(job->cli, part->id, &reader, err);

	for (size_t i = 0; i < part->targets.n; i++)
		blame_ask(blame, slice_of(part->targets.items[i].guest));
	while (r >= 0 && (r = reader_next(reader, &ev, err)) > 0)
		blame_add(blame, ev);
	if (r < 0)
		return r;
	*ret_n = blame_settle(blame);
	if (blame_is_cut(blame))
		log_warn("the record of %s holds more changes or old names than can be followed, "
			 "going on without the oldest",
			part->id);
	for (size_t i = 0; i < *ret_n; i++)
		blame_line_add_row(job, part, blame_get(blame, i));
	return 0;
}

/* Who changed it was not seen; that it was changed, the list of the run's end says. */
static void take_end(struct blame_job *job, struct blame_part *part, const char *dir)
{
	static const char *const kinds[] = {
		"added", "removed", "changed", "renamed", "mode_changed"};
	scoped_mem char *path = mem_printf("%s/" RECORD_CHANGES_NAME, dir);
	scoped_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	scoped_str struct str text = {0};
	const json_t *root, *change;
	struct stat st;
	json_t *list;
	size_t i, k;

	if (fd < 0 || fstat(fd, &st) < 0 || fdio_read_all(fd, CHANGES_MAX, &text) < 0)
		return;
	list = json_loadb(text.p ? text.p : "", text.len, 0, NULL);
	json_array_foreach(list, i, root)
	{
		for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
			const json_t *changes = json_object_get(root, kinds[n]);

			json_array_foreach(changes, k, change)
			{
				blame_line_add_change(
					job, part, kinds[n], change, st.st_mtime * 1000LL);
			}
		}
	}
	json_decref(list);
}

static int take_part(
	struct blame_job *job, struct blame_part *part, const char *dir, struct err *err)
{
	const json_t *spec = json_object_get(part->meta, "spec");
	size_t n = 0, first = job->n_lines;
	int r;

	part->task = json_string_value(json_object_get(spec, "task"));
	if (job->host)
		blame_record_map(spec, job->host, &part->targets);
	if (job->inside)
		blame_record_add(&part->targets, job->inside, NULL);
	if (part->targets.n == 0)
		return 0;
	job->n_read++;
	blame_acts_open(job->acts, job->cli, part->id);
	r = blame_record_mentions(dir, &part->targets);
	if (r > 0)
		r = take_trace(job, part, &n, err);
	if (r == 0 && n == 0)
		take_end(job, part, dir);
	blame_line_add_folders(job, part, first);
	return r;
}

static void take_record(struct blame_job *job, const struct record_entry *entry)
{
	scoped_str struct str dir = {0}, meta = {0};
	scoped_mem char *path = NULL;
	struct blame_part part = {.id = entry->id, .folders = map_new()};
	struct err err = {0};

	records_dir(job->cli, entry->id, &dir);
	path = mem_printf("%s/meta.json", dir.p);
	if (fdio_read_file(AT_FDCWD, path, META_MAX, &meta) >= 0)
		part.meta =
			json_loadb(meta.p ? meta.p : "", meta.len, JSON_REJECT_DUPLICATES, NULL);
	if (!part.meta || take_part(job, &part, dir.p, &err) < 0) {
		job->n_unread++;
		log_warn("the record of %s cannot be read, going on without it: %s", entry->id,
			err.msg[0] ? err.msg : "its meta.json is none");
	}
	blame_record_done(&part.targets);
	map_free(part.folders);
	json_decref(part.meta);
}

/* ---- all of them ---- */

static int newest_first(const void *a, const void *b)
{
	const struct blame_line *x = a, *y = b;

	return x->at_ms < y->at_ms ? 1 : x->at_ms > y->at_ms ? -1 : 0;
}

/* A row as text, each of its lines cut to the terminal: a command may be a whole script. */
static void add_cut(const struct blame_job *job, const struct str *text, struct str *out)
{
	size_t columns = cli_style(job->cli).columns;

	for (size_t at = 0; at < text->len;) {
		const char *line = text->p + at, *end = memchr(line, '\n', text->len - at);
		size_t len = end ? (size_t)(end - line) : text->len - at;

		view_text_add_cut(out, (struct slice){line, len}, columns);
		str_putc(out, '\n');
		at += len + 1;
	}
}

static int print(struct blame_job *job, struct err *err)
{
	bool is_json = job->cli->json || job->cli->jsonl;
	size_t max = job->o->limit > 0 ? (size_t)job->o->limit : is_json ? SIZE_MAX : ROWS_TEXT;
	scoped_str struct str out = {0};
	size_t n = job->n_lines < max ? job->n_lines : max;
	int r;

	if (job->n_lines > 1)
		qsort(job->lines, job->n_lines, sizeof(struct blame_line), newest_first);
	if (job->cli->json && !job->cli->jsonl)
		str_putc(&out, '[');
	for (size_t i = 0; i < n; i++) {
		const struct str *text = is_json ? &job->lines[i].json : &job->lines[i].text;

		if (i > 0 && job->cli->json && !job->cli->jsonl)
			str_putc(&out, ',');
		if (is_json)
			str_add(&out, text->p, text->len);
		else
			add_cut(job, text, &out);
		if (job->cli->jsonl)
			str_putc(&out, '\n');
	}
	if (job->cli->json && !job->cli->jsonl)
		str_puts(&out, "]\n");
	r = cli_print(&out, err);
	if (n < job->n_lines && !job->cli->quiet)
		log_warn("%zu older ones are not shown: --limit N shows more", job->n_lines - n);
	return r;
}

static int say_none(const struct blame_job *job, const char *path)
{
	if (!job->cli->quiet && job->n_read == 0)
		log_warn("no record of yours has '%s' in a mount%s", path,
			job->o->guest ? "" : "; --guest PATH asks for a path inside");
	else if (!job->cli->quiet)
		log_warn("none of %zu records says that '%s' was changed", job->n_read, path);
	return CLI_NO;
}

/* A path of the host, with what leads to it resolved. One where nothing lies may have been deleted, or be one inside. */
static void name_paths(struct blame_job *job, const char *path)
{
	scoped_mem char *cwd = getcwd(NULL, 0), *folder = NULL, *real = NULL;
	scoped_str struct str whole = {0}, host = {0};
	struct stat st;
	char *slash;

	path_resolve(slice_of(cwd ? cwd : "/"), slice_of(path), &whole);
	if (job->o->guest || lstat(whole.p, &st) < 0)
		job->inside = mem_dup(whole.p);
	if (job->o->guest)
		return;
	folder = mem_dup(whole.p);
	slash = strrchr(folder, '/');
	*slash = '\0';
	real = realpath(*folder ? folder : "/", NULL);
	path_resolve(slice_of(real ? real : *folder ? folder : "/"), slice_of(slash + 1), &host);
	job->host = str_take(&host);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct blame_job job = {.cli = cli, .o = options};
	struct record_list list;
	int r = records_list(cli, &list, err);

	(void)n_args;
	if (r < 0)
		return r;
	name_paths(&job, args[0]);
	job.acts = blame_acts_new(cli);
	for (size_t i = list.n; i-- > 0;)
		if (records_may_read(cli, &list.items[i]))
			take_record(&job, &list.items[i]);
	r = job.n_lines > 0 || cli->json ? print(&job, err) : 0;
	if (r == 0 && job.n_lines == 0)
		r = say_none(&job, args[0]);
	for (size_t i = 0; i < job.n_lines; i++) {
		str_done(&job.lines[i].text);
		str_done(&job.lines[i].json);
		free(job.lines[i].folder);
	}
	free(job.lines);
	blame_acts_free(job.acts);
	free(job.host);
	free(job.inside);
	records_list_done(&list);
	return r;
}

static const struct option table[] = {
	{"guest", 0, NULL, "PATH is one inside the sandboxes, not of this host", OPTION_ON,
		offsetof(struct blame_options, guest)},
	{"all", 0, NULL, "also each change in .git and node_modules", OPTION_ON,
		offsetof(struct blame_options, all)},
	{"limit", 0, "N", "at most so many changes, the newest; as text 100 without it",
		OPTION_COUNT, offsetof(struct blame_options, limit)},
	{NULL},
};

static const struct option_group groups[] = {{"Options", table}, {NULL}};

const struct verb verb_blame = {
	.name = "blame",
	.class = VERB_FILES,
	.usage = "PATH",
	.help = "which sandbox, command and program changed a file, in all records",
	.text = "The newest change first. A path of this host is looked for where it was "
		"mounted; of a folder, all below. Renames are followed back to old names.",
	.groups = groups,
	.options_size = sizeof(struct blame_options),
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
