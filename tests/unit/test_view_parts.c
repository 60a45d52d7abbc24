/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of views that are functions of text, and folds of many events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/mem.h"
#include "view/command_fold.h"
#include "view/command_list.h"
#include "view/file_table.h"
#include "view/file_touched.h"
#include "view/live_files.h"
#include "view/process_tree.h"
#include "view/program_class.h"
#include "view/view_filter.h"
#include "view/view_text.h"

#define ARGS_MAX 16
#define N(array) (sizeof(array) / sizeof((array)[0]))

static struct event_list list_of(const char *const *args, struct slice *items)
{
	size_t n = 0;

	for (; args[n]; n++)
		items[n] = slice_of(args[n]);
	return (struct event_list){.items = items, .n = n};
}

static void test_fold(void **state)
{
	static const struct {
		const char *argv[ARGS_MAX];
		enum command_shape shape;
		const char *want; /* the string, or the first argument */
	} cases[] = {
		{{"ls", "-la"}, COMMAND_ARGV, "ls"},
		{{"sh", "-c", "ls | wc"}, COMMAND_STRING, "ls | wc"},
		{{"bash", "-lc", "x"}, COMMAND_STRING, "x"},
		{{"bash", "-c", "-l", "x"}, COMMAND_STRING, "x"},
		{{"bash", "--noprofile", "-o", "pipefail", "-ec", "x"}, COMMAND_STRING, "x"},
		{{"-bash"}, COMMAND_SESSION, NULL},
		{{"bash", "-i"}, COMMAND_SESSION, NULL},
		{{"sh", "script.sh", "-c", "x"}, COMMAND_ARGV, "sh"},
		{{"sh", "--", "-c"}, COMMAND_ARGV, "sh"},
		{{"env", "-i", "A=b", "-u", "C", "make", "-j"}, COMMAND_ARGV, "make"},
		{{"env"}, COMMAND_ARGV, "env"},
		{{"env", "A=b"}, COMMAND_ARGV, "env"},
		{{"timeout", "-k", "5", "10", "nice", "-n", "3", "sh", "-c", "x"}, COMMAND_STRING,
			"x"},
		{{"timeout", "--signal=KILL", "10s", "pytest"}, COMMAND_ARGV, "pytest"},
		{{"nohup", "sudo", "-u", "bob", "id"}, COMMAND_ARGV, "id"},
		{{"taskset", "-c", "0-1", "id"}, COMMAND_ARGV, "id"},
		{{"sh", "-c",
			 "source s/snapshot-1.sh && eval 'it'\\''s' \\< /dev/null && pwd -P >| "
			 "/tmp/c"},
			COMMAND_STRING, "it's"},
		{{"sh", "-c", "source venv/bin/activate && eval \"$(ssh-agent)\""}, COMMAND_STRING,
			"source venv/bin/activate && eval \"$(ssh-agent)\""},
		{{"sh", "-c", "[[ -f ~/.bashrc ]] && source ~/.bashrc\neval \"a \\\"b\\\"\"\n"},
			COMMAND_STRING, "a \"b\""},
		{{"sh", "-c", "eval 'unterminated"}, COMMAND_STRING, "eval 'unterminated"},
		{{"bash", "-c",
			 "shopt -u extglob; { ls -l; }; __code=$?; pgrep -g 0 >/tmp/x 2>&1; exit "
			 "$__code;"},
			COMMAND_STRING, "ls -l"},
		{{"bash", "-c", "{ echo {a,b}; }; __code=$?; pgrep -g 0 >/tmp/x; exit $__code;"},
			COMMAND_STRING, "echo {a,b}"},
		{{"bash", "-c", "echo __code=$?"}, COMMAND_STRING, "echo __code=$?"},
		{{"bash", "-c",
			 "if . 'a/shell_snapshots/1.sh'; then :; fi\n\nexec '/bin/zsh' -c 'ls -1'"},
			COMMAND_STRING, "ls -1"},
		{{"bash", "-c", "exec '/bin/zsh' -c 'ls -1'"}, COMMAND_STRING,
			"exec '/bin/zsh' -c 'ls -1'"},
		{{"sh", "-c", "source s/snapshot-1.sh && eval 'a\nSNAPSHOT_FILE=1' && pwd -P"},
			COMMAND_STRING, "a\nSNAPSHOT_FILE=1"},
		{{"bash", "-c", "SNAPSHOT_FILE=/x\nsource y"}, COMMAND_PLUMBING, NULL},
		{{"bash", "-lc", "if [ -n 1 ]; then\n:\nfi\necho '# Snapshot file'\nset -o"},
			COMMAND_PLUMBING, NULL},
		{{"bash", "-c", "set -e; . \"/root/.codex/shell_snapshots/1.tmp-2\""},
			COMMAND_PLUMBING, NULL},
		{{"bash", "-c", "set -e; . \"/root/.codex/shell_snapshots/1.sh\"; ls"},
			COMMAND_STRING, "set -e; . \"/root/.codex/shell_snapshots/1.sh\"; ls"},
		{{"bash", "-c", "set -e; . ./shell_snapshots/x"}, COMMAND_STRING,
			"set -e; . ./shell_snapshots/x"},
		{{"codex-linux-sandbox", "--cwd", "/w", "--", "bash", "-lc", "ls"}, COMMAND_STRING,
			"ls"},
		{{"bwrap", "--ro-bind", "/", "/", "--", "/tmp/codex-linux-sandbox", "--cwd", "/w",
			 "--", "/bin/sh", "-c", "echo hi"},
			COMMAND_STRING, "echo hi"},
		{{"bwrap", "--ro-bind", "/", "/", "--", "/usr/bin/true"}, COMMAND_ARGV, "bwrap"},
		{{"bwrap", "--ro-bind", "/", "/", "sh", "-c", "x"}, COMMAND_ARGV, "bwrap"},
		{{"bwrap", "--"}, COMMAND_ARGV, "bwrap"},
		{{"sh", "-c", ""}, COMMAND_STRING, ""},
	};
	struct command_fold fold = {0};

	for (size_t i = 0; i < N(cases); i++) {
		struct slice items[ARGS_MAX];
		struct event_list argv = list_of(cases[i].argv, items);

		command_fold_read(&fold, &argv);
		if (fold.shape != cases[i].shape)
			fail_msg("case %zu: shape %d", i, (int)fold.shape);
		if (fold.shape == COMMAND_STRING)
			assert_string_equal(fold.command.p ? fold.command.p : "", cases[i].want);
		else if (cases[i].want)
			assert_string_equal(argv.items[fold.first].p, cases[i].want);
	}
	command_fold_done(&fold);
}

static void test_names(void **state)
{
	static const struct {
		const char *argv[ARGS_MAX];
		const char *path, *want;
	} cases[] = {
		{{"python3", "agent.py"}, "/usr/bin/python3.11", "agent"},
		{{"python3", "-m", "pytest"}, "/usr/bin/python3.11", "pytest"},
		{{"python3", "-W", "error", "-c", "x"}, "/usr/bin/python3.11", "python3.11"},
		{{"node", "/opt/node_modules/@a/claude-code/dist/cli.js"}, "/usr/bin/node",
			"claude-code"},
		{{"node", "--require", "x.js", "/a/npm/bin/npm-cli.js"}, "/usr/bin/node",
			"npm-cli"},
		{{"/bin/sh", "/usr/local/bin/claude"}, "/usr/bin/dash", "claude"},
		{{"sh", "-c", "x"}, "/usr/bin/dash", "dash"},
		{{"ls"}, "/bin/busybox", "ls"},
		{{"codex-linux-sandbox"}, "/opt/codex", "codex"},
		{{"node", "index.js"}, "/usr/bin/node", "index"},
		{{NULL}, "", ""},
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct slice items[ARGS_MAX];
		struct event_list argv = list_of(cases[i].argv, items);
		struct slice name = program_class_name(&argv, slice_of(cases[i].path));

		if (!slice_is(name, cases[i].want))
			fail_msg("case %zu: '%.*s'", i, (int)name.len, name.p);
	}
	assert_true(program_class_is_tool(slice_of("x86_64-linux-gnu-gcc-12")));
	assert_true(program_class_is_tool(slice_of("pip3.11")));
	assert_false(program_class_is_tool(slice_of("agent")));
	assert_true(program_class_is_shell(slice_of("-bash")));
}

static void test_labels(void **state)
{
	static const struct {
		const char *argv[ARGS_MAX];
		const char *command, *want;
	} cases[] = {
		{{"/usr/bin/pip3", "install", "x"}, NULL, "pip3 install"},
		{{"pip", "--version"}, NULL, "pip"},
		{{"python3", "-m", "pytest"}, NULL, "pytest"},
		{{NULL}, "cd /w && A=b git commit -m x", "git commit"},
		{{NULL}, "python3 -m unittest 2>&1 | tail", "unittest"},
		{{NULL}, "ls|wc", "ls"},
		{{NULL}, "  ./run-tests.sh; echo", "run-tests.sh"},
		{{NULL}, "(a)", "(a)"},
		{{NULL}, "&&", "&&"},
		{{NULL}, "\033[2J", "\\x1b[2J"},
		{{NULL}, "cd", "cd"},
		{{NULL}, NULL, "?"},
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct slice items[ARGS_MAX];
		struct command command = {.argv = list_of(cases[i].argv, items),
			.command = slice_of(cases[i].command)};
		scoped_str struct str out = {0};

		command_list_add_label(&out, &command);
		assert_string_equal(out.p, cases[i].want);
	}
}

static void test_bounds(void **state)
{
	/* A record from 2026-11-29 23:50:00 to 2026-11-30 00:20:00 UTC. */
	static const int64_t start = 1795996200000LL, stop = 1795998000000LL;
	static const struct {
		const char *text;
		enum view_bound_kind kind;
		int64_t value;
	} cases[] = {
		{"17", VIEW_BOUND_SEQ, 17},
		{"+90s", VIEW_BOUND_GUEST, 90000000000LL},
		{"+250ms", VIEW_BOUND_GUEST, 250000000LL},
		{"10m", VIEW_BOUND_WALL, stop - 600000},
		{"23:55", VIEW_BOUND_WALL, start + 300000},
		{"00:10", VIEW_BOUND_WALL, stop - 600000},
		{"00:10:30", VIEW_BOUND_WALL, stop - 570000},
		{"00:30", VIEW_BOUND_WALL, stop + 600000},
		{"2026-11-29T23:55:00Z", VIEW_BOUND_WALL, start + 300000},
		{"2026-11-30", VIEW_BOUND_WALL, start + 600000},
		{"", VIEW_BOUND_NONE, 0},
		{"yesterday", VIEW_BOUND_NONE, 0},
		{"25:00", VIEW_BOUND_NONE, 0},
		{"10:00x", VIEW_BOUND_NONE, 0},
		{"-5m", VIEW_BOUND_NONE, 0},
		{"+", VIEW_BOUND_NONE, 0},
		{"+11000d", VIEW_BOUND_GUEST, 950400000000000000LL},
		{"+1100000d", VIEW_BOUND_NONE, 0},
		{"99999999999999999999", VIEW_BOUND_NONE, 0},
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct view_bound bound = {VIEW_BOUND_NONE, 0};
		struct err err;
		int r = view_filter_parse_bound(cases[i].text, start, stop, &bound, &err);

		if ((r == 0) != (cases[i].kind != VIEW_BOUND_NONE) || bound.kind != cases[i].kind ||
			bound.value != cases[i].value)
			fail_msg("'%s': %d, %d %lld", cases[i].text, r, (int)bound.kind,
				(long long)bound.value);
	}
}

static void test_takes(void **state)
{
	static const struct {
		struct view_filter filter;
		struct event ev;
		bool want;
	} cases[] = {
		{{0}, {.kind = EVENT_FILE_OPEN}, true},
		{{0}, {.kind = EVENT_FILE_OPEN, .internal = true}, false},
		{{.internal = true}, {.kind = EVENT_FILE_OPEN, .internal = true}, true},
		{{.exec = {"a", 1}}, {.kind = EVENT_FILE_OPEN, .exec = {"a", 1}}, true},
		{{.exec = {"a", 1}}, {.kind = EVENT_FILE_OPEN, .exec = {"b", 1}}, false},
		{{.exec = {"a", 1}}, {.kind = EVENT_TRACE_DROPPED}, true},
		{{.exec = {"a", 1}}, {.kind = EVENT_TRACE_DROPPED, .exec = {"b", 1}}, false},
		{{.exec = {"a", 1}}, {.kind = EVENT_FILE_OPEN}, false},
		{{.since = {VIEW_BOUND_SEQ, 5}}, {.seq = 4}, false},
		{{.since = {VIEW_BOUND_SEQ, 5}}, {.seq = 5}, true},
		{{.until = {VIEW_BOUND_GUEST, 5}}, {.guest_ns = 5}, true},
		{{.until = {VIEW_BOUND_GUEST, 5}}, {.guest_ns = 6}, false},
		{{.since = {VIEW_BOUND_WALL, 5}}, {.wall_ms = 4}, false},
	};

	for (size_t i = 0; i < N(cases); i++)
		if (view_filter_takes(&cases[i].filter, &cases[i].ev) != cases[i].want)
			fail_msg("case %zu", i);
}

static void test_text(void **state)
{
	struct slice items[] = {slice_of("a b"), slice_of("it's"), slice_of(""),
		slice_of("x\033[2J\n"), slice_of("plain-1.2/ü")};
	struct event_list argv = {.items = items, .n = N(items)};
	scoped_str struct str out = {0};

	view_text_add_argv(&out, &argv);
	assert_string_equal(out.p, "'a b' 'it'\\''s' '' 'x\\x1b[2J\\n' plain-1.2/\xc3\xbc");
	str_reset(&out);
	view_text_add_cut(&out, slice_of("\xc3\xbc\xc3\xbc\xc3\xbc"), 2);
	assert_string_equal(out.p, "\xc3\xbc\xe2\x80\xa6");
	str_reset(&out);
	view_text_add_count(&out, 1234567);
	assert_string_equal(out.p, "1,234,567");
	str_reset(&out);
	view_text_add_status(&out, true, 0, 9);
	assert_string_equal(out.p, "SIGKILL");
}

static void test_live_files(void **state)
{
	scoped(live_files) struct live_files *live = live_files_new();
	scoped_str struct str path = {0};
	const struct live_facts *facts;
	void *at = NULL;

	idset_add(&live_files_get(live, slice_of("/a/b/f"))->processes, 1);
	idset_add(&live_files_get(live, slice_of("/t/g"))->processes, 2);
	live_files_move(live, slice_of("/a"), slice_of("/a/b/c")); /* no kernel does that */
	live_files_move(live, slice_of("/a/b"), slice_of("/t"));
	assert_null(live_files_find(live, slice_of("/t/g")));
	assert_true(live_files_next(live, &at, &path, &facts));
	assert_string_equal(path.p, "/t/f");
	assert_int_equal(facts->processes.ids[0], 1);
	assert_false(live_files_next(live, &at, &path, &facts));
	live_files_swap(live, slice_of("/t"), slice_of("/none"));
	assert_non_null(live_files_find(live, slice_of("/none/f")));
	live_files_delete(live, slice_of("/none"));
	assert_null(live_files_find(live, slice_of("/none/f")));
	(void)live_files_get(live, slice_of("/"));
}

struct feed {
	struct process_tree *tree;
	struct event held;
	struct slice held_argv[3];
	char held_text[3][16];
	bool has_held;
	uint64_t seq;
};

/* Every other event is given out after its successor, as when two cores write at once. */
static void add(struct feed *feed, struct event *ev)
{
	ev->guest_ns = (int64_t)++feed->seq * 100;
	ev->seq = feed->seq % 2 ? feed->seq + 1 : feed->seq - 1;
	if (feed->has_held) {
		process_tree_add(feed->tree, ev);
		process_tree_add(feed->tree, &feed->held);
		feed->has_held = false;
		return;
	}
	feed->held = *ev;
	for (size_t i = 0; i < ev->argv.n; i++) {
		snprintf(feed->held_text[i], sizeof(feed->held_text[i]), "%s", ev->argv.items[i].p);
		feed->held_argv[i] = slice_of(feed->held_text[i]);
	}
	feed->held.argv.items = feed->held_argv;
	feed->has_held = true;
}

static size_t number_of(struct slice text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n = n * 10 + (size_t)(text.p[i] - '0');
	return n;
}

/* R10: 8 parents start 500 programs each, at once, and pids are used again all the time. */
static void test_short_lived(void **state)
{
	const struct view_filter filter = {0};
	struct feed feed = {.tree = process_tree_new(&filter)};
	struct process_tree_counts counts;
	size_t n, per_parent[8] = {0};
	struct event ev = {.kind = EVENT_PROCESS_EXEC, .pid = 2};
	char text[2][16];

	event_set_text(&ev, path, "/bin/sh");
	add(&feed, &ev);
	for (int w = 0; w < 8; w++) {
		ev = (struct event){.kind = EVENT_PROCESS_FORK, .pid = 2};
		event_set(&ev, child_pid, 10 + w);
		add(&feed, &ev);
	}
	for (int i = 0; i < 500; i++) {
		for (int step = 0; step < 3; step++) {
			for (int w = 0; w < 8; w++) {
				int64_t pid = 100 + w + i % 3 * 8;
				struct slice argv[3] = {slice_of("/bin/true")};

				snprintf(text[0], sizeof(text[0]), "w%d", w);
				snprintf(text[1], sizeof(text[1]), "%d", i);
				argv[1] = slice_of(text[0]);
				argv[2] = slice_of(text[1]);
				ev = (struct event){.kind = EVENT_PROCESS_FORK, .pid = 10 + w};
				event_set(&ev, child_pid, pid);
				if (step == 1) {
					ev = (struct event){.kind = EVENT_PROCESS_EXEC, .pid = pid};
					event_set_text(&ev, path, "/bin/true");
					event_set(&ev, argv, ((struct event_list){argv, 3}));
					event_set(&ev, ppid, 10 + w);
				} else if (step == 2) {
					ev = (struct event){.kind = EVENT_PROCESS_EXIT, .pid = pid};
					event_set(&ev, code, 0);
				}
				add(&feed, &ev);
			}
		}
	}
	if (feed.has_held)
		process_tree_add(feed.tree, &feed.held);
	n = process_tree_settle(feed.tree);
	assert_int_equal(n, 4001);
	for (size_t i = 1; i < n; i++) {
		const struct process_node *node = process_tree_get(feed.tree, i);

		assert_ptr_equal(node->parent, process_tree_get(feed.tree, 0));
		assert_true(node->has_ended && node->exit_code == 0);
		assert_int_equal(number_of(node->argv->items[2]),
			per_parent[node->argv->items[1].p[1] - '0']++);
	}
	process_tree_count(feed.tree, &counts);
	assert_int_equal(counts.started, 4001);
	assert_int_equal(counts.running, 1);
	process_tree_free(feed.tree);
}

/* A program that replaces itself for ever: the tree stays shallow enough for any reader. */
static void test_deep(void **state)
{
	const struct view_filter filter = {0};
	struct process_tree *tree = process_tree_new(&filter);
	scoped_str struct str out = {0};
	size_t depth = 0, deepest = 0;

	for (int i = 0; i < 20000; i++) {
		struct event ev = {.kind = EVENT_PROCESS_EXEC,
			.pid = 2,
			.seq = (uint64_t)i + 1,
			.guest_ns = i};

		event_set_text(&ev, path, "/bin/again");
		process_tree_add(tree, &ev);
	}
	process_tree_json(tree, &out);
	for (size_t i = 0; i < out.len; i++) {
		depth += out.p[i] == '{';
		depth -= out.p[i] == '}';
		deepest = depth > deepest ? depth : deepest;
	}
	assert_int_equal(depth, 0);
	assert_int_equal(deepest, PROCESS_TREE_DEPTH + 1);
	str_reset(&out);
	process_tree_text(tree, &(struct view_style){.columns = 100}, &out);
	process_tree_free(tree);
}

/* One path a million times, from few processes: memory goes by paths. */
static void test_many_events(void **state)
{
	const struct view_filter filter = {0};
	struct file_table *files = file_table_new(&filter);
	struct event ev = {.kind = EVENT_FILE_OPEN};
	char path[32];

	event_set_text(&ev, access, "write");
	for (int i = 0; i < 200000; i++) {
		snprintf(path, sizeof(path), "/w/n%d", i % 1000);
		ev.seq++;
		ev.guest_ns++;
		ev.pid = 2 + i % 7;
		ev.kind = i % 2 ? EVENT_FILE_OPEN : EVENT_FILE_DELETE;
		event_set_text(&ev, path, path);
		file_table_add(files, &ev);
	}
	assert_int_equal(file_table_settle(files), 1000);
	assert_true(file_table_get(files, 0)->deleted || file_table_get(files, 0)->written);
	file_table_free(files);
}

/* Names may be few and long: what does not fit makes the answer that nobody knows. */
static void test_touched_bytes(void **state)
{
	enum { LONG = 4000, MORE = FILE_TOUCHED_BYTES / LONG + 10 };
	struct file_touched *touched = file_touched_new();
	char path[LONG + 1];
	struct event ev = {.kind = EVENT_FILE_DELETE};
	size_t kept = 0;
	struct slice at;

	memset(path, 'n', LONG);
	path[LONG] = '\0';
	for (int i = 0; i < MORE; i++) {
		memcpy(path, "/w/", 3);
		path[3 + snprintf(path + 3, 16, "%d", i)] = '-';
		event_set_text(&ev, path, path);
		file_touched_add(touched, &ev);
		file_touched_add(touched, &ev); /* counts once */
		if (i == 0)
			assert_int_equal(
				file_touched_find(touched, slice_of("/w/x")), FILE_TOUCH_NONE);
	}
	for (size_t i = 0; file_touched_next(touched, &i, &at);)
		kept++;
	assert_int_equal(kept, FILE_TOUCHED_BYTES / LONG + 1);
	assert_int_equal(file_touched_find(touched, slice_of("/w/x")), FILE_TOUCH_UNKNOWN);
	file_touched_free(touched);
}

/* The kernel's half does not tell what was renamed. */
static void test_touched_below(void **state)
{
	struct event ev = {.kind = EVENT_FILE_RENAME};
	scoped(file_touched) struct file_touched *touched = file_touched_new();

	event_set_text(&ev, from, "/w/a");
	event_set_text(&ev, to, "/w/b");
	file_touched_add(touched, &ev);
	assert_int_equal(file_touched_find(touched, slice_of("/w/b")), FILE_TOUCH_CONTENT);
	assert_int_equal(file_touched_find(touched, slice_of("/w/a/x/y")), FILE_TOUCH_CONTENT);
	assert_int_equal(file_touched_find(touched, slice_of("/w/ab")), FILE_TOUCH_NONE);
	assert_int_equal(file_touched_find(touched, slice_of("/w")), FILE_TOUCH_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_takes),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_live_files),
		cmocka_unit_test(test_short_lived),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_many_events),
		cmocka_unit_test(test_touched_bytes),
		cmocka_unit_test(test_touched_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
