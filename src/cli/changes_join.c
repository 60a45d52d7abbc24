/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/changes_join.h"

#include <string.h>

#include "cli/changes_names.h"
#include "cli/changes_text.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/path.h"

#define WHO_MAX     64    /* processes, execs and the like named for one path */
#define TOUCHED_MAX 10000 /* paths named that are as they were */

static const char *const kinds[] = {"added", "removed", "changed", "renamed", "mode_changed"};
static const char *const notes[] = {"runs_on_host", "host_changed"};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define N_NOTES (sizeof(notes) / sizeof(notes[0]))

/* ---- who ---- */

struct who {
	struct slice execs[WHO_MAX];
	int64_t processes[WHO_MAX];
	const struct process_node *programs[WHO_MAX];
	const struct command *commands[WHO_MAX];
	size_t n_execs, n_processes, n_programs, n_commands;
};

static void add_exec(struct who *who, struct slice exec)
{
	for (size_t i = 0; i < who->n_execs; i++)
		if (slice_eq(who->execs[i], exec))
			return;
	if (exec.len > 0 && who->n_execs < WHO_MAX)
		who->execs[who->n_execs++] = exec;
}

static void add_process(struct who *who, int64_t pid)
{
	for (size_t i = 0; i < who->n_processes; i++)
		if (who->processes[i] == pid)
			return;
	if (who->n_processes < WHO_MAX)
		who->processes[who->n_processes++] = pid;
}

static void add_command(struct who *who, const struct command *command)
{
	for (size_t i = 0; i < who->n_commands; i++)
		if (who->commands[i] == command)
			return;
	if (command && who->n_commands < WHO_MAX)
		who->commands[who->n_commands++] = command;
}

static void add_program(
	const struct changes_trace *trace, const struct process_node *node, struct who *who)
{
	for (size_t i = 0; i < who->n_programs; i++)
		if (who->programs[i] == node)
			return;
	if (who->n_programs == WHO_MAX)
		return;
	who->programs[who->n_programs++] = node;
	add_command(who, changes_trace_command(trace, node));
}

static void find_ids(const struct changes_trace *trace, struct slice path, struct who *who)
{
	const struct file_entry *e = changes_trace_find(trace, path);

	for (size_t i = 0; e && i < e->execs.n && i < WHO_MAX; i++)
		add_exec(who, changes_trace_execs(trace)[e->execs.ids[i]]);
	for (size_t i = 0; e && i < e->processes.n && i < WHO_MAX; i++)
		add_process(who, e->processes.ids[i]);
}

static void find_programs(
	const struct changes_trace *trace, const struct changes_mark *mark, struct who *who)
{
	for (size_t i = 0; i < mark->n_programs; i++) {
		const struct process_node *node =
			changes_trace_program(trace, mark->programs[i].seq);

		if (node)
			add_program(trace, node, who);
	}
}

/* Those who changed it under a name that it had until then. */
static void find_earlier(const struct changes_trace *trace, const struct changes_mark *mark,
	uint64_t until, struct who *who)
{
	for (size_t i = 0; i < mark->n_programs; i++) {
		const struct process_node *node =
			changes_trace_program(trace, mark->programs[i].seq);

		if (!node || mark->programs[i].at >= until)
			continue;
		add_program(trace, node, who);
		add_exec(who, node->exec);
		add_process(who, node->pid);
	}
}

static void find_who(const struct changes_trace *trace, struct slice path,
	const struct changes_mark *mark, struct who *who)
{
	scoped_str struct str name = {0};
	uint64_t until = UINT64_MAX;

	find_ids(trace, path, who);
	find_programs(trace, mark, who);
	str_add(&name, path.p, path.len);
	for (int i = 0; i < CHANGES_NAMES_MAX && changes_trace_back(trace, &name, &until); i++) {
		struct changes_mark earlier = changes_trace_mark(trace, str_slice(&name));

		find_earlier(trace, &earlier, until, who);
	}
}

static void write_ids(struct jsonw *j, const struct who *who)
{
	jsonw_klist(j, "execs", who->execs, who->n_execs);
	jsonw_key(j, "processes");
	jsonw_array(j);
	for (size_t i = 0; i < who->n_processes; i++)
		jsonw_int(j, who->processes[i]);
	jsonw_array_end(j);
}

static void write_programs(struct jsonw *j, const struct who *who)
{
	struct slice paths[WHO_MAX];
	size_t n = 0;

	for (size_t i = 0; i < who->n_programs; i++) {
		size_t k = 0;

		while (k < n && !slice_eq(paths[k], who->programs[i]->path))
			k++;
		if (k == n)
			paths[n++] = who->programs[i]->path;
	}
	jsonw_klist(j, "programs", paths, n);
}

static void write_commands(struct jsonw *j, const struct who *who)
{
	jsonw_key(j, "commands");
	jsonw_array(j);
	for (size_t i = 0; i < who->n_commands; i++) {
		scoped_str struct str line = {0};

		command_list_add_line(&line, who->commands[i]);
		jsonw_object(j);
		jsonw_kint(j, "seq", (int64_t)who->commands[i]->seq);
		jsonw_kslice(j, "line", str_slice(&line));
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
}

static void update(json_t *object, const struct str *text)
{
	json_error_t why;
	json_t *more = json_loadb(text->p, text->len, 0, &why);

	json_object_update(object, more);
	json_decref(more);
}

static void add_who(const struct changes_trace *trace, json_t *entry, struct slice path,
	const struct changes_mark *mark)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);
	struct who who = {0};

	find_who(trace, path, mark, &who);
	jsonw_object(&j);
	write_ids(&j, &who);
	write_programs(&j, &who);
	write_commands(&j, &who);
	jsonw_object_end(&j);
	update(entry, &text);
}

/* ---- a part of the run ---- */

static void widen(struct changes_mark *a, const struct changes_mark *b)
{
	if (b->first_out && (!a->first_out || b->first_out < a->first_out))
		a->first_out = b->first_out;
	if (b->last_out > a->last_out)
		a->last_out = b->last_out;
	if (b->first_in && (!a->first_in || b->first_in < a->first_in))
		a->first_in = b->first_in;
	if (b->last_in > a->last_in)
		a->last_in = b->last_in;
	a->did |= b->did;
}

/* The whole run's content of before is the part's where nobody else had changed the path by then; and so with after. */
static void cut_hashes(json_t *entry, const struct changes_mark *mark)
{
	if (mark->first_out && mark->first_out < mark->first_in) {
		json_object_set_new(entry, "before", json_null());
		json_object_set_new(entry, "before_by_others", json_true());
	}
	if (mark->last_out > mark->last_in) {
		json_object_set_new(entry, "after", json_null());
		json_object_set_new(entry, "after_by_others", json_true());
	}
}

/* What was done under a name counts until the path got another. Who came last until then is not known where the name was
 * used again afterwards: both did, so that no content is told as the part's own. */
static void cut_mark(struct changes_mark *mark, uint64_t until)
{
	if (mark->first_in >= until)
		mark->first_in = mark->last_in = mark->did = 0;
	if (mark->first_out >= until)
		mark->first_out = mark->last_out = 0;
	if (mark->last_out >= until)
		mark->last_out = until;
	if (mark->last_in >= until)
		mark->last_in = mark->last_out ? mark->last_out - 1 : until;
}

static struct changes_mark mark_of(const struct changes_trace *trace, const json_t *entry)
{
	scoped_str struct str path = {0}, from = {0};
	struct changes_mark mark, other;
	uint64_t until = UINT64_MAX;

	changes_text_bytes(entry, "path", &path);
	mark = changes_trace_mark(trace, str_slice(&path));
	for (int i = 0; i < CHANGES_NAMES_MAX && changes_trace_back(trace, &path, &until); i++) {
		other = changes_trace_mark(trace, str_slice(&path));
		cut_mark(&other, until);
		widen(&mark, &other);
	}
	if (!json_object_get(entry, "from"))
		return mark;
	changes_text_bytes(entry, "from", &from);
	other = changes_trace_mark(trace, str_slice(&from));
	widen(&mark, &other);
	return mark;
}

/* Taking entries out one by one would move all that follow each time. */
static void keep(const struct changes_trace *trace, json_t *list,
	bool (*is_kept)(const struct changes_trace *trace, json_t *entry))
{
	json_t *kept = json_array(), *entry;
	size_t i;

	json_array_foreach(list, i, entry)
	{
		if (is_kept(trace, entry))
			json_array_append(kept, entry);
	}
	json_array_clear(list);
	json_array_extend(list, kept);
	json_decref(kept);
}

static bool join_entry(const struct changes_trace *trace, json_t *entry)
{
	struct changes_mark mark = mark_of(trace, entry);
	scoped_str struct str path = {0};

	if (changes_trace_is_part(trace) && !mark.did)
		return false;
	changes_text_bytes(entry, "path", &path);
	add_who(trace, entry, str_slice(&path), &mark);
	if (changes_trace_is_part(trace))
		cut_hashes(entry, &mark);
	return true;
}

static bool is_of_part(const struct changes_trace *trace, json_t *note)
{
	return mark_of(trace, note).did != 0;
}

static size_t count_below(const struct changes_trace *trace, struct slice folder)
{
	const struct changes_mark *mark;
	struct slice path;
	size_t n = 0;

	for (size_t i = 0; changes_trace_next(trace, &i, &path, &mark);)
		n += mark->did && path.len > folder.len && path_is_beneath(path, folder);
	return n;
}

/* Of a skipped folder the part has a number of its own: of paths that it touched. */
static bool cut_skipped(const struct changes_trace *trace, json_t *folder)
{
	scoped_str struct str path = {0};
	size_t n;

	changes_text_bytes(folder, "path", &path);
	n = count_below(trace, str_slice(&path));
	if (n == 0)
		return false;
	json_object_set_new(folder, "count", json_integer((json_int_t)n));
	for (size_t k = 0; k < N_KINDS; k++)
		json_object_del(folder, kinds[k]);
	keep(trace, json_object_get(folder, "notable"), is_of_part);
	return true;
}

/* ---- what the part touched, and is no change of the whole run ---- */

static void collect_listed(const json_t *root, struct map *listed)
{
	for (size_t k = 0; k < N_KINDS; k++) {
		const json_t *entry, *list = json_object_get(root, kinds[k]);
		size_t i;

		json_array_foreach(list, i, entry)
		{
			scoped_str struct str path = {0};

			changes_text_bytes(entry, "path", &path);
			*map_slot(listed, str_slice(&path)) = listed;
			changes_text_bytes(entry, "from", &path);
			*map_slot(listed, str_slice(&path)) = listed;
		}
	}
}

static bool is_skipped(const json_t *root, struct slice path)
{
	const json_t *folder;
	size_t i;

	json_array_foreach(json_object_get(root, "skipped"), i, folder)
	{
		scoped_str struct str name = {0};

		changes_text_bytes(folder, "path", &name);
		if (path_is_beneath(path, str_slice(&name)))
			return true;
	}
	return false;
}

static void write_did(struct jsonw *j, unsigned did)
{
	static const char *const words[] = {"written", "created", "deleted", "moved", "rights"};

	jsonw_key(j, "did");
	jsonw_array(j);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (did & 1u << i)
			jsonw_text(j, words[i]);
	jsonw_array_end(j);
}

static void add_touched(const struct changes_trace *trace, json_t *root)
{
	scoped_str struct str name = {0}, text = {0};
	scoped(map) struct map *listed = map_new();
	struct jsonw j = jsonw_to(&text);
	const struct changes_mark *mark;
	struct slice path;
	size_t n = 0;

	changes_text_bytes(root, "root", &name);
	collect_listed(root, listed);
	jsonw_object(&j);
	jsonw_key(&j, "touched");
	jsonw_array(&j);
	for (size_t i = 0; changes_trace_next(trace, &i, &path, &mark);) {
		if (!mark->did || !path_is_beneath(path, str_slice(&name)) ||
			map_find(listed, path) || is_skipped(root, path) || ++n > TOUCHED_MAX)
			continue;
		jsonw_object(&j);
		jsonw_kslice(&j, "path", path);
		write_did(&j, mark->did);
		jsonw_object_end(&j);
	}
	jsonw_array_end(&j);
	if (n > TOUCHED_MAX)
		jsonw_kint(&j, "touched_cut", (int64_t)(n - TOUCHED_MAX));
	jsonw_object_end(&j);
	update(root, &text);
}

void changes_join(const struct changes_trace *trace, json_t *root)
{
	bool is_part = changes_trace_is_part(trace);

	if (is_part)
		add_touched(trace, root); /* before anything is taken out */
	for (size_t i = 0; i < N_KINDS; i++)
		keep(trace, json_object_get(root, kinds[i]), join_entry);
	for (size_t i = 0; is_part && i < N_NOTES; i++)
		keep(trace, json_object_get(root, notes[i]), is_of_part);
	if (is_part)
		keep(trace, json_object_get(root, "skipped"), cut_skipped);
	json_object_set_new(root, "traced", json_boolean(changes_trace_has_files(trace)));
}
