/* SPDX-License-Identifier: Apache-2.0 */
/* cloche blame: which sandbox, command and program made a path what it is, across all records of the caller. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/blame_acts.h"
#include "cli/blame_record.h"
#include "cli/changes_text.h"
#include "cli/records.h"
#include "cli/verb.h"
#include "manifest/changes.h"
#include "record/record.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"
#include "view/blame.h"

#define META_MAX    (4U << 20)
#define CHANGES_MAX (256U << 20)
#define NO_EVENT    0          /* in place of an event's number: it was not traced */
#define NO_ONE      UINT64_MAX /* it is not one change but many */
#define ROWS_TEXT   100        /* shown without --limit */

struct options {
	bool guest, all;
	int64_t limit;
};

/* A row that is to be printed, whole. */
struct line {
	int64_t at_ms;
	struct str text, json;
	char *folder; /* it stands for n changes in this .git or node_modules; NULL: for one */
	size_t n;
};

struct job {
	const struct cli *cli;
	const struct options *o;
	char *host, *inside; /* one may be NULL */
	struct blame_acts *acts;
	struct line *lines;
	size_t n_lines, room;
	size_t n_read,
		n_unread; /* records that could say something; those that could not be read */
};

/* One record. */
struct part {
	const char *id, *task;
	json_t *meta;
	struct blame_targets targets;
	struct map *folders; /* .git or node_modules to the place of its line, from 1 */
};

/* ---- rows ---- */

static struct line *new_line(struct job *job, int64_t at_ms)
{
	if (job->n_lines == job->room) {
		job->room = job->room ? job->room * 2 : 64;
		job->lines = mem_grow(job->lines, job->room, sizeof(struct line));
	}
	job->lines[job->n_lines] = (struct line){.at_ms = at_ms};
	return &job->lines[job->n_lines++];
}

static const char *mode_of(const struct part *part, struct slice path)
{
	for (size_t i = 0; i < part->targets.n; i++)
		if (path_is_beneath(path, slice_of(part->targets.items[i].guest)))
			return part->targets.items[i].mode;
	return part->targets.n == 1 ? part->targets.items[0].mode : NULL;
}

static bool is_cow(const char *mode)
{
	return mode && strcmp(mode, "cow") == 0;
}

/* Of the path as it was then; where that is an old name, of what was asked for. */
static enum blame_fate fate_of(const struct job *job, const struct part *part, struct slice path)
{
	struct slice asked = slice_of(part->targets.items[0].guest);

	if (part->targets.n == 1 && !path_is_beneath(path, asked))
		return blame_acts_fate(job->acts, asked);
	return blame_acts_fate(job->acts, path);
}

/* How much of a path is a .git or node_modules that is one line: not in JSON, nor where it is asked for itself. */
static size_t folder_len(const struct job *job, const struct part *part, struct slice path)
{
	size_t len;

	if (job->o->all || job->cli->json || job->cli->jsonl)
		return 0;
	len = changes_skipped_len(path);
	for (size_t i = 0; len > 0 && i < part->targets.n; i++)
		if (changes_skipped_len(slice_of(part->targets.items[i].guest)) > 0)
			return 0;
	return len;
}

/* Whether it was counted with others, and needs no line of its own. What came there from elsewhere (from, else empty) left
 * a place that may be the one asked for. */
static bool count_in_folder(
	struct job *job, struct part *part, struct slice path, struct slice from, int64_t at_ms)
{
	struct slice folder = {.p = path.p, .len = folder_len(job, part, path)};
	struct line *line;
	void **place;

	if (folder.len == 0 || (from.len > 0 && folder_len(job, part, from) == 0))
		return false;
	place = map_slot(part->folders, folder);
	if (!*place) {
		line = new_line(job, at_ms);
		line->folder = mem_copy(folder.p, folder.len);
		*place = (void *)(uintptr_t)job->n_lines;
	}
	line = &job->lines[(size_t)(uintptr_t)*place - 1];
	line->at_ms = at_ms > line->at_ms ? at_ms : line->at_ms;
	line->n++;
	return true;
}

static void begin_json(struct jsonw *j, const struct part *part, int64_t at_ms, const char *change,
	struct slice path)
{
	char at[CLOCK_TEXT_LEN];

	clock_format(at_ms, at);
	jsonw_object(j);
	jsonw_ktext(j, "sandbox", part->id);
	jsonw_ktext(j, "task", part->task);
	jsonw_ktext(j, "at", at);
	jsonw_ktext(j, "change", change);
	jsonw_kslice(j, "path", path);
}

static void end_json(
	const struct job *job, const struct part *part, struct jsonw *j, struct slice path)
{
	const char *mode = mode_of(part, path);

	if (mode)
		jsonw_ktext(j, "mount", mode);
	if (is_cow(mode))
		blame_acts_json(job->acts, fate_of(job, part, path), j);
	jsonw_object_end(j);
}

static void write_who(struct jsonw *j, const struct blame_row *row)
{
	jsonw_kslice(j, "exec", row->exec);
	jsonw_kint(j, "pid", row->pid);
	if (row->node) {
		jsonw_kslice(j, "program", row->node->path);
		jsonw_klist(j, "argv", row->node->argv->items, row->node->argv->n);
	}
	if (row->command && row->command->command.len > 0)
		jsonw_kslice(j, "command", row->command->command);
	else if (row->command)
		jsonw_klist(j, "command_argv", row->command->argv.items, row->command->argv.n);
}

static void add_command(struct str *out, const struct command *command)
{
	if (command->command.len > 0)
		log_add_escaped(out, command->command);
	else
		view_text_add_argv(out, &command->argv);
}

static void add_who(struct str *out, const struct blame_row *row)
{
	if (row->node) {
		str_puts(out, " by ");
		log_add_escaped(out, row->node->path);
	} else if (row->pid) {
		str_printf(out, " by process %lld", (long long)row->pid);
	}
	if (row->command) {
		str_puts(out, " in `");
		add_command(out, row->command);
		str_puts(out, "`");
	}
}

static void add_head(struct str *out, int64_t at_ms, const char *change)
{
	char at[CLOCK_TEXT_LEN];

	clock_format(at_ms, at);
	str_printf(out, "%.10s %.8s  %-8s ", at, at + 11, change);
}

static void add_where(const struct job *job, const struct part *part, struct slice path,
	uint64_t seq, struct str *out)
{
	const char *mode = mode_of(part, path);

	str_printf(out, "\n    %s", part->id);
	if (seq != NO_EVENT && seq != NO_ONE)
		str_printf(out, " event %llu", (unsigned long long)seq);
	if (part->task) {
		str_puts(out, ", task ");
		log_add_escaped(out, slice_of(part->task));
	}
	if (mode) {
		str_puts(out, ", ");
		log_add_escaped(out, slice_of(mode));
		str_puts(out, " mount");
	}
	if (is_cow(mode))
		blame_acts_text(job->acts,
			seq == NO_ONE ? BLAME_FATE_UNKNOWN : fate_of(job, part, path), out);
	str_putc(out, '\n');
}

static void add_folders(struct job *job, const struct part *part, size_t first)
{
	for (size_t i = first; i < job->n_lines; i++) {
		struct line *line = &job->lines[i];

		if (!line->folder)
			continue;
		add_head(&line->text, line->at_ms, "changed");
		log_add_escaped(&line->text, slice_of(line->folder));
		str_printf(&line->text, "/ (%zu change%s: name it, or --all)", line->n,
			line->n == 1 ? "" : "s");
		add_where(job, part, slice_of(line->folder), NO_ONE, &line->text);
	}
}

static void take_row(struct job *job, struct part *part, const struct blame_row *row)
{
	struct slice from = row->change == BLAME_RENAMED ? row->from : (struct slice){0};
	struct line *line;
	struct jsonw j;

	if (count_in_folder(job, part, row->path, from, row->wall_ms))
		return;
	line = new_line(job, row->wall_ms);
	j = jsonw_to(&line->json);
	begin_json(&j, part, row->wall_ms, blame_word(row->change), row->path);
	if (row->from.len > 0)
		jsonw_kslice(&j, row->change == BLAME_RENAMED ? "from" : "target", row->from);
	jsonw_kint(&j, "times", (int64_t)row->times);
	jsonw_kint(&j, "seq", (int64_t)row->seq);
	jsonw_kint(&j, "first_seq", (int64_t)row->first_seq);
	write_who(&j, row);
	end_json(job, part, &j, row->path);
	add_head(&line->text, row->wall_ms, blame_word(row->change));
	if (row->change == BLAME_RENAMED) {
		log_add_escaped(&line->text, row->from);
		str_puts(&line->text, " -> ");
	}
	log_add_escaped(&line->text, row->path);
	if (row->times > 1)
		str_printf(&line->text, " (%zu times)", row->times);
	add_who(&line->text, row);
	add_where(job, part, row->path, row->seq, &line->text);
}

/* ---- a record ---- */

static int take_trace(struct job *job, struct part *part, size_t *ret_n, struct err *err)
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
		take_row(job, part, blame_get(blame, i));
	return 0;
}

static bool is_target(const struct part *part, struct slice path)
{
	for (size_t i = 0; path.len > 0 && i < part->targets.n; i++)
		if (path_is_beneath(path, slice_of(part->targets.items[i].guest)))
			return true;
	return false;
}

static void take_change(
	struct job *job, struct part *part, const char *kind, const json_t *change, int64_t at_ms)
{
	scoped_str struct str path = {0}, from = {0};
	struct line *line;
	struct jsonw j;

	changes_text_bytes(change, "path", &path);
	changes_text_bytes(change, "from", &from);
	if (!is_target(part, str_slice(&path)) && !is_target(part, str_slice(&from)))
		return;
	if (count_in_folder(job, part, str_slice(&path), str_slice(&from), at_ms))
		return;
	line = new_line(job, at_ms);
	j = jsonw_to(&line->json);
	begin_json(&j, part, at_ms, kind, str_slice(&path));
	if (from.len > 0)
		jsonw_kslice(&j, "from", str_slice(&from));
	jsonw_knull(&j, "exec");
	end_json(job, part, &j, str_slice(&path));
	add_head(&line->text, at_ms, kind);
	if (from.len > 0 && strcmp(kind, "renamed") == 0) {
		log_add_escaped(&line->text, str_slice(&from));
		str_puts(&line->text, " -> ");
	}
	log_add_escaped(&line->text, str_slice(&path));
	str_puts(&line->text, ", by whom was not traced");
	add_where(job, part, str_slice(&path), NO_EVENT, &line->text);
}

/* Who changed it was not seen; that it was changed, the list of the run's end says. */
static void take_end(struct job *job, struct part *part, const char *dir)
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
				take_change(job, part, kinds[n], change, st.st_mtime * 1000LL);
			}
		}
	}
	json_decref(list);
}

static int take_part(struct job *job, struct part *part, const char *dir, struct err *err)
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
	add_folders(job, part, first);
	return r;
}

static void take_record(struct job *job, const struct record_entry *entry)
{
	scoped_str struct str dir = {0}, meta = {0};
	scoped_mem char *path = NULL;
	struct part part = {.id = entry->id, .folders = map_new()};
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
	const struct line *x = a, *y = b;

	return x->at_ms < y->at_ms ? 1 : x->at_ms > y->at_ms ? -1 : 0;
}

/* A row as text, each of its lines cut to the terminal: a command may be a whole script. */
static void add_cut(const struct job *job, const struct str *text, struct str *out)
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

static int print(struct job *job, struct err *err)
{
	bool is_json = job->cli->json || job->cli->jsonl;
	size_t max = job->o->limit > 0 ? (size_t)job->o->limit : is_json ? SIZE_MAX : ROWS_TEXT;
	scoped_str struct str out = {0};
	size_t n = job->n_lines < max ? job->n_lines : max;
	int r;

	if (job->n_lines > 1)
		qsort(job->lines, job->n_lines, sizeof(struct line), newest_first);
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

static int say_none(const struct job *job, const char *path)
{
	if (!job->cli->quiet && job->n_read == 0)
		log_warn("no record of yours has '%s' in a mount%s", path,
			job->o->guest ? "" : "; --guest PATH asks for a path inside");
	else if (!job->cli->quiet)
		log_warn("none of %zu records says that '%s' was changed", job->n_read, path);
	return CLI_NO;
}

/* A path of the host, with what leads to it resolved. One where nothing lies may have been deleted, or be one inside. */
static void name_paths(struct job *job, const char *path)
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
	struct job job = {.cli = cli, .o = options};
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
		offsetof(struct options, guest)},
	{"all", 0, NULL, "also each change in .git and node_modules", OPTION_ON,
		offsetof(struct options, all)},
	{"limit", 0, "N", "at most so many changes, the newest; as text 100 without it",
		OPTION_COUNT, offsetof(struct options, limit)},
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
	.options_size = sizeof(struct options),
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
