/* SPDX-License-Identifier: Apache-2.0 */
/* Folds the events of each file below tests/cases/view and compares what the views say.
 *
 * A case is lines: "# ..." a comment; "{...}" an event, with seq counted and guest_ns one millisecond later
 * each time where it says nothing; "filter KEY=VALUE..." ; and what is wanted, in the words of the add_*
 * functions below: "tree: ...", "file: ...", "command: ...", "log: ...", "time: ...", "net: ...". A view that is not named is not
 * looked at; one that is named is compared whole. */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <cmocka.h>

#include "event/event_json.h"
#include "util/fdio.h"
#include "view/command_list.h"
#include "view/exec_log.h"
#include "view/file_table.h"
#include "view/network_table.h"
#include "view/process_tree.h"
#include "view/timeline.h"

#define START_MS  1796047802000LL /* 2026-11-30T... : any fixed time */
#define CASES_MIN 20

static const struct {
	const char *name;
} views[] = {{"tree"}, {"file"}, {"command"}, {"log"}, {"time"}, {"net"}};

enum { TREE, FILES, COMMANDS, LOG, TIME, NET, N_VIEWS };

struct run {
	struct view_filter filter;
	struct process_tree *tree;
	struct file_table *files;
	struct command_list *commands;
	struct exec_log *log;
	struct timeline *timeline;
	struct network_table *network;
	struct event_line *line;
	int64_t seq;
	struct str wanted[N_VIEWS], got[N_VIEWS];
	bool is_wanted[N_VIEWS];
	char exec[64];
};

static void begin(struct run *run)
{
	run->tree = process_tree_new(&run->filter);
	run->files = file_table_new(&run->filter);
	run->commands = command_list_new(&run->filter);
	run->log = exec_log_new(&run->filter);
	run->timeline = timeline_new(&run->filter);
	run->network = network_table_new(&run->filter);
}

static void end(struct run *run)
{
	process_tree_free(run->tree);
	file_table_free(run->files);
	command_list_free(run->commands);
	exec_log_free(run->log);
	timeline_free(run->timeline);
	network_table_free(run->network);
	event_line_free(run->line);
	for (int i = 0; i < N_VIEWS; i++) {
		str_done(&run->wanted[i]);
		str_done(&run->got[i]);
	}
}

static void add_event(struct run *run, const char *text)
{
	json_error_t why;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	struct err err = {""};
	char *line;

	if (!root)
		fail_msg("%s: %s", why.text, text);
	run->seq++;
	if (!json_object_get(root, "seq"))
		json_object_set_new(root, "seq", json_integer(run->seq));
	if (!json_object_get(root, "guest_ns"))
		json_object_set_new(root, "guest_ns", json_integer(run->seq * 1000000));
	if (!json_object_get(root, "wall_ms"))
		json_object_set_new(root, "wall_ms",
			json_integer(
				START_MS +
				json_integer_value(json_object_get(root, "guest_ns")) / 1000000));
	line = json_dumps(root, JSON_COMPACT);
	if (event_json_read(slice_of(line), &run->line, &err) < 0)
		fail_msg("%s: %s", err.msg, text);
	process_tree_add(run->tree, event_json_get(run->line));
	file_table_add(run->files, event_json_get(run->line));
	command_list_add(run->commands, event_json_get(run->line));
	exec_log_add(run->log, event_json_get(run->line));
	timeline_add(run->timeline, event_json_get(run->line));
	network_table_add(run->network, event_json_get(run->line));
	free(line);
	json_decref(root);
}

static void add_tree_node(struct str *out, const json_t *node, int depth)
{
	const json_t *children = json_object_get(node, "children"), *arg, *child;
	size_t i;

	for (int d = 0; d < depth; d++)
		str_puts(out, "  ");
	if (json_is_integer(json_object_get(node, "pid")))
		str_int(out, json_integer_value(json_object_get(node, "pid")));
	else
		str_putc(out, '?');
	json_array_foreach(json_object_get(node, "argv"), i, arg)
		str_printf(out, " %s", json_string_value(arg));
	if (json_is_integer(json_object_get(node, "exit_code")))
		str_printf(out, " = %lld", json_integer_value(json_object_get(node, "exit_code")));
	if (json_is_integer(json_object_get(node, "signal")))
		str_printf(out, " ! %lld", json_integer_value(json_object_get(node, "signal")));
	if (json_is_true(json_object_get(node, "entered")))
		str_puts(out, " entered");
	if (json_is_true(json_object_get(node, "moved_up")))
		str_puts(out, " moved_up");
	str_putc(out, '\n');
	json_array_foreach(children, i, child) add_tree_node(out, child, depth + 1);
}

static void add_words(struct str *out, const json_t *object, const char *const *keys)
{
	for (; *keys; keys++)
		if (json_is_true(json_object_get(object, *keys)))
			str_printf(out, " %s", *keys);
}

static void add_file(struct str *out, const json_t *file)
{
	static const char *const flags[] = {"read", "written", "created", "deleted", "replaced",
		"denied", "mode_changed", "directory", "path_unresolved", NULL};
	const char *to = json_string_value(json_object_get(file, "renamed_to"));
	const char *from = json_string_value(json_object_get(file, "renamed_from"));
	const json_t *item;
	size_t i;

	str_puts(out, json_string_value(json_object_get(file, "path")));
	add_words(out, file, flags);
	if (to)
		str_printf(out, " ->%s", to);
	if (from)
		str_printf(out, " <-%s", from);
	str_puts(out, " by");
	json_array_foreach(json_object_get(file, "processes"), i, item)
		str_printf(out, " %lld", json_integer_value(item));
	json_array_foreach(json_object_get(file, "execs"), i, item)
		str_printf(out, " %s", json_string_value(item));
	str_putc(out, '\n');
}

static void add_what(struct str *out, const json_t *object)
{
	const json_t *command = json_object_get(object, "command"), *arg;
	size_t i;

	if (json_is_string(command))
		str_printf(out, " \"%s\"", json_string_value(command));
	json_array_foreach(json_object_get(object, "argv"), i, arg)
		str_printf(out, " %s", json_string_value(arg));
	if (json_is_integer(json_object_get(object, "exit_code")))
		str_printf(
			out, " = %lld", json_integer_value(json_object_get(object, "exit_code")));
	if (json_is_integer(json_object_get(object, "signal")))
		str_printf(out, " ! %lld", json_integer_value(json_object_get(object, "signal")));
}

static void add_command(struct str *out, const json_t *command)
{
	const char *text;
	const json_t *item;
	size_t i;

	str_puts(out, json_is_true(json_object_get(command, "derived")) ? "-" : "");
	str_puts(out, json_string_value(json_object_get(command, "exec")));
	add_what(out, command);
	str_printf(out, " %s", json_string_value(json_object_get(command, "output")));
	text = json_string_value(json_object_get(command, "stdout"));
	if (text && *text)
		str_printf(out, " 1:%s", text);
	text = json_string_value(json_object_get(command, "stderr"));
	if (text && *text)
		str_printf(out, " 2:%s", text);
	json_array_foreach(json_object_get(command, "files_written"), i, item)
		str_printf(out, " %s", json_string_value(item));
	json_array_foreach(json_object_get(command, "hosts"), i, item)
		str_printf(out, " @%s", json_string_value(item));
	json_array_foreach(json_object_get(command, "hosts_refused"), i, item)
		str_printf(out, " !@%s", json_string_value(item));
	str_putc(out, '\n');
}

static void add_row(struct str *out, const json_t *row)
{
	str_printf(out, "%lld %s", json_integer_value(json_object_get(row, "id")),
		json_string_value(json_object_get(row, "exec")));
	add_what(out, row);
	add_words(out, row, (const char *const[]){"interrupted", "timed_out", NULL});
	str_putc(out, '\n');
}

static void add_time(struct str *out, const json_t *row)
{
	static const char *const keys[] = {"change", "event", "path", "call", "secret", "host",
		"address", "answer", "actor", "rule", "reason", "advice", "to"};

	str_puts(out, json_string_value(json_object_get(row, "what")));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_is_string(json_object_get(row, keys[i])))
			str_printf(out, " %s", json_string_value(json_object_get(row, keys[i])));
	add_what(out, row);
	if (json_integer_value(json_object_get(row, "count")) > 1)
		str_printf(out, " x%lld", json_integer_value(json_object_get(row, "count")));
	str_putc(out, '\n');
}

static const char *text_or(const json_t *object, const char *key, const char *other)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : other;
}

static void add_request(struct str *out, const json_t *request)
{
	str_printf(out, " [%s %s", text_or(request, "method", "?"), text_or(request, "url", "?"));
	if (json_is_integer(json_object_get(request, "status")))
		str_printf(out, " %lld", json_integer_value(json_object_get(request, "status")));
	if (json_is_string(json_object_get(request, "body")))
		str_printf(out, " %s", text_or(request, "body", ""));
	str_putc(out, ']');
}

static void add_net(struct str *out, const json_t *entry)
{
	static const char *const flags[] = {"failed", "refused", "shadow", NULL};
	const json_t *item;
	size_t i;

	str_printf(out, "%s %s %lld %s out %lld in %lld", text_or(entry, "host", "-"),
		text_or(entry, "address", "-"), json_integer_value(json_object_get(entry, "port")),
		text_or(entry, "protocol", "-"),
		json_integer_value(json_object_get(entry, "bytes_out")),
		json_integer_value(json_object_get(entry, "bytes_in")));
	add_words(out, entry, flags);
	if (json_is_string(json_object_get(entry, "rule")))
		str_printf(out, " rule %s", text_or(entry, "rule", ""));
	if (json_is_string(json_object_get(entry, "error")))
		str_printf(out, " error %s", text_or(entry, "error", ""));
	json_array_foreach(json_object_get(entry, "requests"), i, item) add_request(out, item);
	json_array_foreach(json_object_get(entry, "messages"), i, item) str_printf(
		out, " <%s %s>", text_or(item, "direction", "?"), text_or(item, "body", "?"));
	json_array_foreach(json_object_get(entry, "secrets"), i, item)
		str_printf(out, " secret %s x%lld", text_or(item, "name", "?"),
			json_integer_value(json_object_get(item, "used")));
	str_puts(out, " by");
	json_array_foreach(json_object_get(entry, "processes"), i, item)
		str_printf(out, " %lld", json_integer_value(item));
	json_array_foreach(json_object_get(entry, "execs"), i, item)
		str_printf(out, " %s", json_string_value(item));
	str_putc(out, '\n');
}

static void add_root(struct str *out, const json_t *node)
{
	add_tree_node(out, node, 0);
}

static void collect(struct run *run, int view, struct str *json,
	void (*add)(struct str *out, const json_t *item))
{
	json_error_t why;
	json_t *list = json_loadb(json->p, json->len, JSON_ALLOW_NUL, &why), *item;
	size_t i;

	if (!json_is_array(list))
		fail_msg("view %s is no JSON list: %s", views[view].name, why.text);
	json_array_foreach(list, i, item) add(&run->got[view], item);
	json_decref(list);
	str_reset(json);
}

static void collect_all(struct run *run)
{
	scoped_str struct str json = {0};

	process_tree_json(run->tree, &json);
	collect(run, TREE, &json, add_root);
	file_table_json(run->files, &json);
	collect(run, FILES, &json, add_file);
	command_list_json(run->commands, &json);
	collect(run, COMMANDS, &json, add_command);
	exec_log_json(run->log, &json);
	collect(run, LOG, &json, add_row);
	timeline_json(run->timeline, &json);
	collect(run, TIME, &json, add_time);
	network_table_json(run->network, &json);
	collect(run, NET, &json, add_net);
}

/* "filter noise internal exec=ex_a since=3 until=7": bounds by seq. */
static void read_filter(struct run *run, const char *text)
{
	const char *since = strstr(text, "since="), *until = strstr(text, "until="),
		   *exec = strstr(text, "exec=");

	run->filter.noise = strstr(text, "noise") != NULL;
	run->filter.internal = strstr(text, "internal") != NULL;
	if (exec && sscanf(exec, "exec=%63s", run->exec) == 1)
		run->filter.exec = slice_of(run->exec);
	if (since)
		run->filter.since =
			(struct view_bound){VIEW_BOUND_SEQ, strtoll(since + 6, NULL, 10)};
	if (until)
		run->filter.until =
			(struct view_bound){VIEW_BOUND_SEQ, strtoll(until + 6, NULL, 10)};
}

static void take_line(struct run *run, const char *line)
{
	if (line[0] == '{') {
		if (!run->tree)
			begin(run);
		add_event(run, line);
		return;
	}
	if (strncmp(line, "filter", 6) == 0)
		read_filter(run, line);
	for (int i = 0; i < N_VIEWS; i++) {
		size_t n = strlen(views[i].name);

		if (strncmp(line, views[i].name, n) != 0 || line[n] != ':')
			continue;
		/* Nothing behind the first one: nothing is wanted; behind a later one: an empty line. */
		if (line[n + 1] || run->is_wanted[i]) {
			str_puts(&run->wanted[i], line[n + 1] ? line + n + 2 : "");
			str_putc(&run->wanted[i], '\n');
		}
		run->is_wanted[i] = true;
	}
}

static void run_case(const char *path)
{
	scoped_str struct str text = {0};
	struct run run = {0};
	char *save = NULL;
	size_t n_wanted = 0;

	assert_int_equal(fdio_read_file(-100, path, 1 << 20, &text), 0);
	for (char *line = strtok_r(text.p, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		take_line(&run, line);
	if (!run.tree)
		fail_msg("%s holds no event", path);
	for (int pass = 0; pass < 2; pass++) { /* looking does not change what is seen */
		for (int i = 0; i < N_VIEWS; i++)
			str_reset(&run.got[i]);
		collect_all(&run);
		for (int i = 0; i < N_VIEWS; i++) {
			const char *want = run.wanted[i].p ? run.wanted[i].p : "",
				   *got = run.got[i].p ? run.got[i].p : "";

			n_wanted += run.is_wanted[i];
			if (run.is_wanted[i] && strcmp(want, got) != 0)
				fail_msg("%s, %s\nwant:\n%s\ngot:\n%s", path, views[i].name, want,
					got);
		}
	}
	if (n_wanted == 0)
		fail_msg("%s wants nothing", path);
	end(&run);
}

static void test_cases(void **state)
{
	char pattern[4096];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/tests/cases/view/*.case", getenv("CLOCHE_SOURCE"));
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= CASES_MIN);
	for (size_t i = 0; i < found.gl_pathc; i++)
		run_case(found.gl_pathv[i]);
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
