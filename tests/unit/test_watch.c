/* SPDX-License-Identifier: Apache-2.0 */
/* When a change has settled, what is told of it, and a watch of real folders. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "manifest/watch_fold.h"
#include "manifest/watch_internal.h"
#include "manifest/watch_line.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/path.h"
#include "watch_known.h"

#define MS          CLOCK_NS_PER_MS
#define DEADLINE_NS (20 * CLOCK_NS_PER_S)

/* ---- the clock is ours ---- */

static void test_settle(void **state)
{
	struct settle settle = {0};
	struct settle_item a = {0}, b = {0}, c = {0};
	int64_t at = 5000 * MS;

	(void)state;
	assert_int_equal(settle_next_ns(&settle), -1);
	settle_note(&settle, &a, SETTLE_WRITING, false, at);
	settle_note(&settle, &b, SETTLE_CLOSED, false, at);
	assert_int_equal(settle_next_ns(&settle), at + 100 * MS);
	assert_null(settle_take(&settle, at + 99 * MS));
	assert_ptr_equal(settle_take(&settle, at + 100 * MS), &b);
	assert_null(settle_take(&settle, at + 100 * MS));
	for (int i = 1; i < 10; i++) /* a writer that does not stop */
		settle_note(&settle, &a, SETTLE_WRITING, false, at + i * 90 * MS);
	assert_int_equal(settle_next_ns(&settle), at + 700 * MS);
	assert_ptr_equal(settle_take(&settle, at + 700 * MS), &a);
	settle_note(&settle, &a, SETTLE_WRITING, true, at + 710 * MS);
	settle_note(&settle, &a, SETTLE_WRITING, true, at + 3600 * MS);
	assert_int_equal(settle_next_ns(&settle), at + 3710 * MS);
	settle_note(&settle, &a, SETTLE_CLOSED, true, at + 3601 * MS); /* it was closed */
	assert_int_equal(settle_next_ns(&settle), at + 3701 * MS);
	settle_note(&settle, &c, SETTLE_GONE, false, at + 3300 * MS);
	assert_ptr_equal(settle_take(&settle, at + 9000 * MS), &c);
	settle_drop(&settle, &a);
	assert_int_equal(settle_next_ns(&settle), -1);
	settle_done(&settle);
}

static void test_settle_order(void **state)
{
	struct settle settle = {0};
	struct settle_item items[200] = {0}, *item;
	int64_t last_ns = 0;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < 200; i++)
		settle_note(
			&settle, &items[i], SETTLE_CLOSED, false, (int64_t)(i * 7919 % 200) * MS);
	for (size_t i = 0; i < 200; i += 3)
		settle_drop(&settle, &items[i]);
	while ((item = settle_take(&settle, INT64_MAX))) {
		assert_true(item->due_ns >= last_ns);
		assert_int_not_equal((item - items) % 3, 0);
		last_ns = item->due_ns;
		n++;
	}
	assert_int_equal(n, 133);
	settle_done(&settle);
}

/* ---- what is told ---- */

#define FILE_AT(ino_, size_, mtime_, mode_) \
	{ \
		.ino = (ino_), .size = (size_), .mtime_ns = (mtime_), .mode = S_IFREG | (mode_) \
	}
#define NOTHING \
	{ \
		0 \
	}

static const struct fold_case {
	const char *name;
	struct watch_seen before, came, now;
	unsigned why;
	const char *lines;
} fold_cases[] = {
	{"new", NOTHING, NOTHING, FILE_AT(1, 5, 1, 0644), WATCH_WHY_MADE, "created "},
	{"a write", FILE_AT(1, 5, 1, 0644), NOTHING, FILE_AT(1, 5, 1, 0644), WATCH_WHY_WRITE,
		"written "},
	{"closed, not written", FILE_AT(1, 5, 1, 0644), NOTHING, FILE_AT(1, 5, 1, 0644),
		WATCH_WHY_COMPARE, ""},
	{"written by a mapping", FILE_AT(1, 5, 1, 0644), NOTHING, FILE_AT(1, 5, 2, 0644),
		WATCH_WHY_COMPARE, "written "},
	{"its times were set", FILE_AT(1, 5, 1, 0644), NOTHING, FILE_AT(1, 5, 2, 0644),
		WATCH_WHY_LOOK, ""},
	{"mode", FILE_AT(1, 5, 1, 0644), NOTHING, FILE_AT(1, 5, 1, 0755), WATCH_WHY_LOOK, "mode "},
	{"written and mode", FILE_AT(1, 5, 1, 0644), NOTHING, FILE_AT(1, 6, 2, 0755),
		WATCH_WHY_WRITE | WATCH_WHY_LOOK, "written mode "},
	{"another in its place", FILE_AT(1, 5, 1, 0644), NOTHING, FILE_AT(2, 5, 1, 0644),
		WATCH_WHY_MADE, "written! "},
	{"renamed", NOTHING, FILE_AT(1, 5, 1, 0644), FILE_AT(1, 5, 1, 0644), WATCH_WHY_MADE,
		"renamed "},
	{"renamed over another", FILE_AT(2, 1, 1, 0644), FILE_AT(1, 5, 1, 0644),
		FILE_AT(1, 5, 1, 0644), WATCH_WHY_MADE, "renamed! "},
	{"renamed and written", NOTHING, FILE_AT(1, 5, 1, 0644), FILE_AT(1, 9, 2, 0644),
		WATCH_WHY_MADE | WATCH_WHY_WRITE, "renamed written "},
	{"turned into a folder", FILE_AT(1, 5, 1, 0644), NOTHING, {.ino = 2, .mode = S_IFDIR},
		WATCH_WHY_MADE, "deleted created "},
	{"a link has no mode", {.ino = 1, .mode = S_IFLNK | 0777}, NOTHING,
		{.ino = 1, .mode = S_IFLNK | 0755}, WATCH_WHY_LOOK, ""},
};

static void test_fold(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(fold_cases) / sizeof(fold_cases[0]); i++) {
		const struct fold_case *c = &fold_cases[i];
		struct watch_fold_line lines[WATCH_FOLD_MAX];
		scoped_str struct str got = {0};
		size_t n = watch_fold(
			&c->before, c->came.mode ? &c->came : NULL, &c->now, c->why, lines);

		str_puts(&got, "");
		for (size_t k = 0; k < n; k++)
			str_printf(&got, "%s%s ", watch_line_word(lines[k].kind),
				lines[k].replaced ? "!" : "");
		if (strcmp(got.p ? got.p : "", c->lines) != 0)
			fail_msg("%s: got '%s', not '%s'", c->name, got.p, c->lines);
	}
}

/* ---- real folders ---- */

static char top[] = "/tmp/test_watch.XXXXXX";

static void run_script(const char *script)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (chdir(top) == 0)
			execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("script failed: %s", script);
}

static void empty_top(void)
{
	run_script("rm -rf ./* ./.[!.]*");
}

static void add_line(void *arg, const struct watch_change *change)
{
	struct str *out = arg;

	str_printf(out, "%s%s ", watch_line_word(change->kind), change->replaced ? "!" : "");
	if (change->from)
		str_printf(out, "%s>", change->from);
	str_puts(out, change->path);
	if (change->entries)
		str_printf(out, "+%zu", change->entries);
	str_puts(out, "\n");
}

static struct watch *open_watch(const struct watch_config *how, struct str *out)
{
	scoped_fd int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct watch_config config = *how;
	struct watch *watch = NULL;
	struct err err = {0};

	config.root_fd = fd;
	if (!config.tell) {
		config.tell = add_line;
		config.arg = out;
	}
	if (watch_open(&config, &watch, &err) < 0)
		fail_msg("%s", err.msg);
	return watch;
}

/* Until nothing waits any more. The status of the last look. */
static int work_off(struct watch *watch)
{
	int64_t end_ns = clock_mono_ns() + DEADLINE_NS;
	struct pollfd p = {.fd = watch_fd(watch), .events = POLLIN};
	int r;

	do {
		r = watch_work(watch);
		assert_true(clock_mono_ns() < end_ns);
		if (r == 0 && is_busy(watch))
			(void)poll(&p, 1, 1000);
	} while (r == 0 && (is_busy(watch) || poll(&p, 1, 0) > 0));
	return r;
}

static const struct watch_case {
	const char *before, *script, *lines;
} watch_cases[] = {
	{":", "echo a > a", "created a\n"},
	{"echo a > a", "echo b >> a; echo c >> a", "written a\n"},
	{":", "echo a > a; rm a", ""},
	{"echo a > a", "rm a", "deleted a\n"},
	{"echo a > a", "mv a b", "renamed a>b\n"},
	{"echo a > a", "mv a b; mv b c", "renamed a>c\n"},
	{"echo a > a", "mv a b; mv b a", ""},
	{"echo a > a", "mv a b; echo x >> b", "renamed a>b\nwritten b\n"},
	{"echo a > a", "mv a b; rm b", "deleted a\n"},
	{"echo a > a; echo b > b", "mv a b", "renamed! a>b\n"},
	{"echo a > a; echo b > b", "mv a t; mv b a; mv t b", "renamed! a>b\nrenamed b>a\n"},
	{"echo a > a", "echo n > .tmp; mv .tmp a", "written! a\n"},
	{"echo a > a", "rm a; echo n > a", "written! a\n"},
	{"echo a > a", "mv a a~; echo n > a; rm a~", "written! a\n"},
	{"echo a > a", "cp a a~; echo n > a", "created a~\nwritten a\n"},
	{"echo a > a", "mv a b; echo n > a", "renamed a>b\ncreated a\n"},
	{"echo a > a", "rm a; mkdir a", "deleted a\ncreated a\n"},
	{"mkdir d; echo x > d/x", "rm -r d; echo n > d", "deleted d+1\ncreated d\n"},
	{"mkdir -p d/e; echo x > d/e/x", "rm -r d; mkdir d; echo y > d/y",
		"deleted d+2\ncreated d\ncreated d/y\n"},
	{":", "mkdir -p d/e/f; echo x > d/e/f/x",
		"created d\ncreated d/e\ncreated d/e/f\ncreated d/e/f/x\n"},
	{"mkdir -p d/e; echo x > d/e/x", "rm -r d", "deleted d+2\n"},
	{"mkdir -p d/e; echo x > d/e/x", "mv d g; echo y >> g/e/x", "renamed d>g\nwritten g/e/x\n"},
	{"mkdir -p d/e; echo x > d/e/x", "mv d /tmp/test_watch_out; rm -r /tmp/test_watch_out",
		"deleted d+2\n"},
	{":", "mkdir t; echo x > t/x; mv t d", "created d\ncreated d/x\n"},
	{"mkdir d; echo x > d/x", "mv d/x y; rmdir d", "renamed d/x>y\ndeleted d\n"},
	{"echo a > a", "mkdir n; mv a n/b", "created n\nrenamed a>n/b\n"},
	{"mkdir d; echo x > d/x", "mkdir n; mv d n/", "created n\nrenamed d>n/d\n"},
	/* All at once, so that what is read is ahead of what is told of it: the folder that left d/q for p lies in one that
	 * has moved by then, and d/q is another one. */
	{"mkdir d p",
		"mkdir h; mv d h/d; mkdir h/d/q; mv h/d/q p/p; mkdir h/d/q; mv p p2; echo x > "
		"p2/p/x",
		"created h\nrenamed d>h/d\nrenamed p>p2\ncreated h/d/q\n"
		"created p2/p\ncreated p2/p/x\n"},
	{"mkdir d e; echo x > d/x", "mv -T d e", "deleted e\nrenamed d>e\n"},
	{"echo a > a", "chmod 600 a; chmod 644 a", ""},
	{"echo a > a; chmod 600 a", "chmod 644 a", "mode a\n"},
	{"mkdir d; chmod 700 d", "chmod 755 d", "mode d\n"},
	{"echo a > a", "touch -d 2001-01-01 b; chmod +t .; rm b", "mode \n"},
	{"echo a > a; ln a b", "echo x >> a", "written a\nwritten b\n"},
	{"echo a > a", "ln a b; mkfifo p; ln -s nowhere l", "created b\ncreated l\ncreated p\n"},
	{"ln -s x l", "ln -s y t; mv -T t l", "written! l\n"},
	{"echo a > a", "truncate -s 100 a", "written a\n"},
	{"echo a > a", "cat a > /dev/null; : >> a; test -e a", ""},
	{"mkdir -p out; ln -s /usr out/usr", "mkdir in; ln -s / in/root; echo x > in/x",
		"created in\ncreated in/root\ncreated in/x\n"},
	{"echo old > f",
		"/usr/bin/python3 -c \"import mmap; f = open('f', 'r+b'); "
		"m = mmap.mmap(f.fileno(), 3); m[0:3] = b'new'; m.close(); f.close()\"",
		"written f\n"},
};

#define N_CASES (sizeof(watch_cases) / sizeof(watch_cases[0]))

/* Its number leads the path: "7/a". */
static void add_to_case(void *arg, const struct watch_change *change)
{
	struct str *outs = arg;
	char *rest;
	size_t i = strtoul(change->path, &rest, 10);
	struct watch_change below = *change;

	if (i >= N_CASES || rest == change->path)
		return; /* of the folder that holds all */
	below.path = rest + (*rest == '/');
	if (below.from)
		below.from = strchr(below.from, '/') + 1;
	add_line(&outs[i], &below);
}

static void run_in_each(bool is_before)
{
	scoped_str struct str script = {0};

	for (size_t i = 0; i < N_CASES; i++) {
		const struct watch_case *c = &watch_cases[i];

		str_printf(&script, "mkdir -p %zu; cd %zu; %s; cd ..\n", i, i,
			is_before ? c->before : c->script);
	}
	run_script(script.p);
}

/* All at once, each in a folder of its own, since each has to wait. */
static void test_cases(void **state)
{
	struct str outs[N_CASES] = {0};
	scoped(watch) struct watch *watch = NULL;

	(void)state;
	empty_top();
	run_in_each(true);
	watch = open_watch(&(struct watch_config){.tell = add_to_case, .arg = outs}, NULL);
	run_in_each(false);
	assert_int_equal(work_off(watch), 0);
	for (size_t i = 0; i < N_CASES; i++) {
		const struct watch_case *c = &watch_cases[i];
		scoped_str struct str got = {0}, want = {0};

		sort_lines(outs[i].p ? outs[i].p : "", &got);
		sort_lines(c->lines, &want);
		if (strcmp(got.p ? got.p : "", want.p ? want.p : "") != 0)
			fail_msg("%s; %s: got\n%s", c->before, c->script, outs[i].p);
		str_done(&outs[i]);
	}
}

/* A folder is told before what is in it, however it came there. */
static void test_order(void **state)
{
	scoped_str struct str out = {0};
	scoped(watch) struct watch *watch = NULL;

	(void)state;
	empty_top();
	watch = open_watch(&(struct watch_config){0}, &out);
	run_script("mkdir -p a/b/c/d; echo x > a/b/c/d/x");
	assert_int_equal(work_off(watch), 0);
	assert_string_equal(out.p,
		"created a\ncreated a/b\ncreated a/b/c\ncreated a/b/c/d\ncreated a/b/c/d/x\n");
}

/* One name in a folder, whatever else happens there. */
static void test_only(void **state)
{
	scoped_str struct str out = {0};
	scoped(watch) struct watch *watch = NULL;

	(void)state;
	empty_top();
	run_script("echo a > a; echo b > b; mkdir d");
	watch = open_watch(&(struct watch_config){.only = "a"}, &out);
	run_script("echo x >> b; echo x >> a; rm b; mkdir e; echo y > d/y");
	assert_int_equal(work_off(watch), 0);
	run_script("echo n > t; mv t a");
	assert_int_equal(work_off(watch), 0);
	run_script("mv a c");
	assert_int_equal(work_off(watch), 0);
	run_script("echo x >> c; echo n > a");
	assert_int_equal(work_off(watch), 0);
	assert_string_equal(out.p, "written a\nwritten! a\nrenamed a>c\ncreated a\n");
}

/* The folder itself. */
static void test_root(void **state)
{
	static char aside[64];
	scoped_str struct str out = {0};
	scoped(watch) struct watch *watch = NULL, *again = NULL;

	(void)state;
	empty_top();
	run_script("echo a > a");
	watch = open_watch(&(struct watch_config){0}, &out);
	run_script("rm a; rmdir \"$PWD\"");
	assert_int_equal(work_off(watch), 1);
	assert_string_equal(out.p, "deleted +1\n");
	assert_int_equal(mkdir(top, 0700), 0);
	run_script("mkdir d; echo x > d/x");
	str_reset(&out);
	again = open_watch(&(struct watch_config){.tell_all = true}, &out);
	assert_int_equal(work_off(again), 0);
	assert_string_equal(out.p, "created \ncreated d\ncreated d/x\n");
	str_reset(&out);
	(void)snprintf(aside, sizeof(aside), "%s.aside", top);
	assert_int_equal(rename(top, aside), 0);
	assert_int_equal(work_off(again), 1);
	assert_string_equal(out.p, "deleted +2\n");
	assert_int_equal(rename(aside, top), 0);
}

/* More than the kernel keeps: what differs is told, once, and that the rest is not known. */
static void test_overflow(void **state)
{
	scoped_str struct str out = {0}, got = {0};
	scoped(watch) struct watch *watch = NULL;

	(void)state;
	empty_top();
	run_script("mkdir -p d/e noise gone; echo 1 > d/w; echo 2 > d/m; echo 3 > gone/x; "
		   "echo 4 > kept; echo 5 > d/e/moved; mkdir -p up/x/y");
	watch = open_watch(&(struct watch_config){0}, &out);
	run_script("cd noise; /usr/bin/python3 -c \"\nimport os\nfor i in range(20000): "
		   "os.close(os.open('n', os.O_CREAT | os.O_WRONLY)); os.unlink('n')\n\"");
	run_script("echo more >> d/w; chmod 600 d/m; rm -r gone; mkdir -p new/er; "
		   "echo n > new/er/n; mv d/e f; mv f/moved kept2; mv up/x t; rmdir up; mv t up");
	assert_int_equal(work_off(watch), 0);
	sort_lines(out.p, &got);
	assert_string_equal(got.p,
		"created new\ncreated new/er\ncreated new/er/n\ncreated up\ncreated up/y\n"
		"deleted gone+1\ndeleted up+2\nmode d/m\noverflow \n"
		"renamed d/e>f\nrenamed f/moved>kept2\nwritten d/w\n");
	str_reset(&out);
	run_script("echo x >> f/y; echo x >> new/er/n; echo x >> kept");
	assert_int_equal(work_off(watch), 0);
	str_reset(&got);
	sort_lines(out.p, &got);
	assert_string_equal(got.p, "created f/y\nwritten kept\nwritten new/er/n\n");
}

/* Where there are no more watches, or too many files, that is told and the rest goes on. */
static void test_limits(void **state)
{
	scoped_str struct str out = {0};
	scoped(watch) struct watch *watch = NULL, *few = NULL;

	(void)state;
	empty_top();
	run_script("mkdir -p a/b; echo x > a/b/x");
	watch = open_watch(&(struct watch_config){.watches_max = 2}, &out);
	assert_string_equal(out.p, "unwatched a/b\n");
	run_script("echo x >> a/b/x; echo y > a/y; rm -r a/b");
	assert_int_equal(work_off(watch), 0);
	run_script("mkdir a/c; mkdir a/d; echo y > a/c/y; echo z > a/d/z");
	assert_int_equal(work_off(watch), 0);
	assert_string_equal(out.p, "unwatched a/b\ncreated a/y\ndeleted a/b\n"
				   "unwatched a/c\nunwatched a/d\ncreated a/c\ncreated a/d\n");
	str_reset(&out);
	few = open_watch(&(struct watch_config){.entries_max = 3}, &out);
	assert_non_null(strstr(out.p, "unwatched a"));
	assert_int_equal(few->tree.n, 3);
}

static void assert_knows_all(struct watch *watch)
{
	scoped_str struct str out = {0}, known = {0}, there = {0};
	scoped(watch) struct watch *fresh = open_watch(&(struct watch_config){0}, &out);

	add_known(&watch->tree, &known);
	add_known(&fresh->tree, &there);
	if (strcmp(known.p, there.p) != 0)
		fail_msg("known:\n%sthere:\n%s", known.p, there.p);
	assert_int_equal(watch->tree.n, fresh->tree.n);
	assert_int_equal(watch->n_wds, fresh->n_wds);
	assert_int_equal(watch->tree.inos.n, fresh->tree.inos.n);
}

/* What happens in the middle of its work, as soon as this line is told. */
static const struct meanwhile_case {
	const char *before, *script, *line, *meanwhile, *lines;
} meanwhile_cases[] = {
	/* The folder of what is to be told next is renamed: that it is not there says nothing of what is in it. */
	{"mkdir d", "echo z > z; sleep 0.01; mkdir d/e", "created z\n", "mv d g",
		"created z\nrenamed d>g\ncreated g/e\n"},
	{"mkdir d", "echo z > z; sleep 0.01; echo x > d/x", "created z\n", "mv d g; mv g h",
		"created z\nrenamed d>g\nrenamed g>h\ncreated h/x\n"},
};

struct meanwhile {
	const struct meanwhile_case *how;
	struct str out;
	bool is_done;
};

static void add_meanwhile(void *arg, const struct watch_change *change)
{
	struct meanwhile *m = arg;
	size_t start = m->out.len;

	add_line(&m->out, change);
	if (m->is_done || strcmp(m->out.p + start, m->how->line) != 0)
		return;
	m->is_done = true;
	run_script(m->how->meanwhile);
}

static void test_meanwhile(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(meanwhile_cases) / sizeof(meanwhile_cases[0]); i++) {
		const struct meanwhile_case *c = &meanwhile_cases[i];
		struct meanwhile m = {.how = c};
		scoped(watch) struct watch *watch = NULL;

		empty_top();
		run_script(c->before);
		watch = open_watch(&(struct watch_config){.tell = add_meanwhile, .arg = &m}, NULL);
		run_script(c->script);
		assert_int_equal(work_off(watch), 0);
		assert_string_equal(m.out.p, c->lines);
		assert_knows_all(watch);
		str_done(&m.out);
	}
}

/* Made, moved and removed by several at once, in whatever order the events come: in the end it knows what there is. */
static void test_churn(void **state)
{
	static const char script[] =
		"import os, random, sys, shutil\n"
		"r = random.Random(int(sys.argv[1]))\n"
		"def any(): return '/'.join(r.choice('abc') for _ in range(r.randint(1, 4)))\n"
		"for i in range(800):\n"
		"  try:\n"
		"    k = r.randint(0, 5)\n"
		"    if k == 0: os.makedirs(any())\n"
		"    elif k == 1: open(any(), 'a').write('x')\n"
		"    elif k == 2: os.unlink(any())\n"
		"    elif k == 3: os.rename(any(), any())\n"
		"    elif k == 4: shutil.rmtree(any())\n"
		"    else: os.rename(any(), any())\n"
		"  except OSError: pass\n";
	scoped_mem char *go = mem_printf("for i in 1 2 3; do /usr/bin/python3 -c \"%s\" $i & done; "
					 "wait",
		script);
	scoped_str struct str out = {0};
	scoped(watch) struct watch *watch = NULL;

	(void)state;
	empty_top();
	watch = open_watch(&(struct watch_config){0}, &out);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			run_script(go);
			_exit(0);
		}
		while (waitpid(pid, NULL, WNOHANG) == 0) {
			struct pollfd p = {.fd = watch_fd(watch), .events = POLLIN};

			(void)poll(&p, 1, 5);
			assert_int_equal(watch_work(watch), 0);
		}
	}
	assert_int_equal(work_off(watch), 0);
	assert_knows_all(watch);
}

static int make_top(void **state)
{
	(void)state;
	return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
	(void)state;
	return path_remove_all(AT_FDCWD, top);
}

/* What is freed is nowhere any more: events that come late would find it. */
static void test_moved_out(void **state)
{
	scoped_str struct str got = {0};
	scoped(watch) struct watch *watch = NULL;

	(void)state;
	empty_top();
	run_script("mkdir -p d/e; echo x > d/e/x; echo a > a");
	watch = open_watch(&(struct watch_config){0}, &got);
	run_script(
		"mkdir /tmp/test_watch_out; mv a d /tmp/test_watch_out; rm -r /tmp/test_watch_out");
	assert_int_equal(work_off(watch), 0);
	assert_non_null(strstr(got.p, "deleted a\n"));
	assert_non_null(strstr(got.p, "deleted d+2\n"));
	assert_int_equal(watch->next_move, 2);
	for (size_t i = 0; i < WATCH_MOVES; i++)
		assert_null(watch->moves[i].entry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_settle_order),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_only),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_meanwhile),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_moved_out),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
