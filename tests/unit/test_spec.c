/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spec/spec.h"
#include "spec/spec_parse.h"
#include "util/mem.h"
#include "util/path.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void test_size(void **state)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: refused */
	} cases[] = {
		{"0", 0},
		{"4096", 4096},
		{"1K", 1024},
		{"512M", 512LL << 20},
		{"512m", 512LL << 20},
		{"1.5G", 3LL << 29},
		{"2GB", 2LL << 30},
		{"2GiB", 2LL << 30},
		{"10b", 10},
		{"1T", 1LL << 40},
		{"", -1},
		{"M", -1},
		{"-1M", -1},
		{"+1", -1},
		{"1.2.3M", -1},
		{"1MM", -1},
		{"1iB", -1},
		{"0x10", -1},
		{"1e3", -1},
		{" 1", -1},
		{"1 M", -1},
		{"inf", -1},
		{"nan", -1},
		{"99999999T", -1},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct err err = {0};
		int64_t got = -1;
		int r = spec_parse_size(cases[i].text, &got, &err);

		if (got != cases[i].want || (r < 0) != (cases[i].want < 0))
			fail_msg("size '%s': %d, %lld", cases[i].text, r, (long long)got);
		if (r < 0)
			assert_non_null(strstr(err.msg, cases[i].text));
	}
}

static void test_cpus_duration_count(void **state)
{
	static const struct {
		int (*parse)(const char *text, int64_t *ret, struct err *err);
		const char *text;
		int64_t want;
	} cases[] = {
		{spec_parse_cpus, "1.5", 1500},
		{spec_parse_cpus, "2", 2000},
		{spec_parse_cpus, "0.01", 10},
		{spec_parse_cpus, "0.009", -1},
		{spec_parse_cpus, "0", -1},
		{spec_parse_cpus, "-1", -1},
		{spec_parse_cpus, "1,5", -1},
		{spec_parse_cpus, "5000", -1},
		{spec_parse_cpus, "", -1},
		{spec_parse_duration, "30s", 30000},
		{spec_parse_duration, "1.5m", 90000},
		{spec_parse_duration, "250ms", 250},
		{spec_parse_duration, "2h", 7200000},
		{spec_parse_duration, "7", 7000},
		{spec_parse_duration, "0", -1},
		{spec_parse_duration, "0.1ms", -1},
		{spec_parse_duration, "5 s", -1},
		{spec_parse_duration, "5y", -1},
		{spec_parse_duration, "-5s", -1},
		{spec_parse_duration, "", -1},
		{spec_parse_count, "256", 256},
		{spec_parse_count, "0", -1},
		{spec_parse_count, "1.5", -1},
		{spec_parse_count, "12x", -1},
		{spec_parse_count, "99999999999999999999", -1},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		int64_t got = -1;
		int r = cases[i].parse(cases[i].text, &got, NULL);

		if (got != cases[i].want || (r < 0) != (cases[i].want < 0))
			fail_msg("row %zu, '%s': %d, %lld", i, cases[i].text, r, (long long)got);
	}
}

static void test_mount(void **state)
{
	static const struct {
		const char *text;
		const char *host, *guest; /* NULL: refused */
		enum spec_mount_mode mode;
		const char *why;
	} cases[] = {
		{"/usr:/mnt/usr:ro", "/usr", "/mnt/usr", SPEC_MOUNT_RO},
		{"/usr/../usr/:/mnt//a/./b/:cow", "/usr", "/mnt/a/b", SPEC_MOUNT_COW},
		{"/tmp/a:b:/g:rw", "/tmp/a:b", "/g", SPEC_MOUNT_RW},
		{"/proc/self/root/usr:/u:ro", "/usr", "/u", SPEC_MOUNT_RO},
		{"/usr", NULL, NULL, 0, "mount '/usr': want HOST:GUEST:ro, :rw or :cow"},
		{"/usr:/mnt", NULL, NULL, 0, "mount '/usr:/mnt': want HOST:GUEST:ro, :rw or :cow"},
		{":/mnt:ro", NULL, NULL, 0, "mount ':/mnt:ro': want HOST:GUEST:ro, :rw or :cow"},
		{"/usr::ro", NULL, NULL, 0, "mount '/usr::ro': want HOST:GUEST:ro, :rw or :cow"},
		{"/usr:/mnt:rx", NULL, NULL, 0,
			"mount '/usr:/mnt:rx': 'rx' is no mount mode: want ro, rw or cow"},
		{"/usr:mnt:ro", NULL, NULL, 0,
			"mount '/usr:mnt:ro': 'mnt' is the place inside and must be an absolute "
			"path"},
		{"/nope/x:/mnt:ro", NULL, NULL, 0,
			"mount '/nope/x:/mnt:ro': '/nope/x': No such file or directory"},
	};

	mkdir("/tmp/a:b", 0700);
	for (size_t i = 0; i < LEN(cases); i++) {
		scoped(spec) struct spec *spec = spec_new();
		struct err err = {0};
		int r = spec_parse_mount(cases[i].text, true, spec, &err);

		if (!cases[i].host) {
			assert_true(r < 0);
			assert_string_equal(err.msg, cases[i].why);
			assert_int_equal(spec->n_mounts, 0);
			continue;
		}
		assert_int_equal(r, 0);
		assert_string_equal(spec->mounts[0].host, cases[i].host);
		assert_string_equal(spec->mounts[0].guest, cases[i].guest);
		assert_int_equal(spec->mounts[0].mode, cases[i].mode);
		assert_false(spec->mounts[0].internal);
	}
	rmdir("/tmp/a:b");
}

static void test_words(void **state)
{
	unsigned trace = 99;
	struct spec_pair pair = {0};
	struct err err = {0};

	assert_int_equal(spec_parse_sources("processes,outputs,network", &trace, NULL), 0);
	assert_int_equal(trace, SPEC_TRACE_PROCESSES | SPEC_TRACE_OUTPUTS | SPEC_TRACE_NETWORK);
	assert_int_equal(spec_parse_sources("none", &trace, NULL), 0);
	assert_int_equal(trace, 0);
	assert_int_equal(spec_parse_sources("files,mounts", &trace, NULL), 0);
	assert_int_equal(trace, SPEC_TRACE_FILES | SPEC_TRACE_MOUNTS);
	assert_int_equal(spec_parse_sources("all", &trace, NULL), 0);
	assert_int_equal(trace, SPEC_TRACE_ALL);
	assert_true(spec_parse_sources("files,", &trace, &err) < 0);
	assert_string_equal(err.msg,
		"'' is no trace source: want processes, files, outputs, network or mounts");

	assert_int_equal(spec_parse_pair("a=b=c", &pair, NULL), 0);
	assert_string_equal(pair.key, "a");
	assert_string_equal(pair.value, "b=c");
	free(pair.key);
	free(pair.value);
	assert_true(spec_parse_pair("=b", &pair, NULL) < 0);
	assert_true(spec_parse_pair("a", &pair, NULL) < 0);
	assert_true(spec_parse_pair("a=\xff", &pair, NULL) < 0);
}

/* Everything set, with bytes that are no UTF-8 wherever a path may be. */
static struct spec *full_spec(void)
{
	struct spec *spec = spec_new();

	spec->name = mem_dup("n\"1\n");
	spec->task = mem_dup("fix \xc3\xa9");
	spec->account = mem_dup("");
	spec->agent = mem_dup("claude");
	spec->work_item = mem_dup("W-7");
	spec->rootfs = mem_dup("/r\xff");
	spec_add_mount(spec, "/h\xfe", "/g", SPEC_MOUNT_COW, false);
	spec_add_mount(spec, "/i", "/i\xc3", SPEC_MOUNT_RO, true);
	spec_words_add(&spec->hide, "*.p\x80m");
	spec_add_label(spec, "k", "1");
	spec_add_label(spec, "k", "2");
	spec->memory_bytes = 512LL << 20;
	spec->disk_bytes = 3LL << 30;
	spec->cpu_milli = 1501;
	spec->pids_max = 256;
	spec->trace = SPEC_TRACE_FILES;
	spec->buffer_bytes = 1 << 20;
	spec->on_loss = SPEC_ON_LOSS_STOP;
	spec->record_raw = true;
	spec->durable = true;
	spec->keep = true;
	spec->image = mem_dup("an image");
	spec->image_digest = mem_dup("sha256:1");
	spec_words_add(&spec->image_env, "A=b");
	spec_words_add(&spec->image_labels, "k=v");
	spec->workdir = mem_dup("/srv");
	spec->user = mem_dup("ana:crew");
	spec_add_lower(spec, "/", "/l\xff", 4294967294U);
	spec_add_lower(spec, "/", "/below", 0);
	spec->full = true;
	spec->owner_uid = 4294967294U;
	spec->owner_gid = 7;
	return spec;
}

static void test_round_trip(void **state)
{
	scoped(spec) struct spec *full = full_spec(), *plain = spec_new(), *back = NULL;
	const struct spec *specs[] = {full, plain};
	struct err err = {0};

	for (size_t i = 0; i < LEN(specs); i++) {
		scoped_str struct str first = {0}, second = {0};

		spec_write(&first, specs[i]);
		assert_int_equal(spec_read(str_slice(&first), &back, &err), 0);
		spec_write(&second, back);
		assert_string_equal(first.p, second.p);
		if (i == 0) {
			assert_string_equal(back->rootfs, "/r\xff");
			assert_string_equal(back->mounts[0].host, "/h\xfe");
			assert_string_equal(back->mounts[1].guest, "/i\xc3");
			assert_true(back->mounts[1].internal);
			assert_string_equal(back->hide.items[back->hide.n - 1], "*.p\x80m");
			assert_int_equal(back->hide.n, full->hide.n);
			assert_string_equal(back->image, "an image");
			assert_string_equal(back->image_digest, "sha256:1");
			assert_string_equal(back->image_env.items[0], "A=b");
			assert_string_equal(back->image_labels.items[0], "k=v");
			assert_string_equal(back->workdir, "/srv");
			assert_string_equal(back->user, "ana:crew");
			assert_int_equal(back->n_lowers, 2);
			assert_string_equal(back->lowers[0].dir, "/l\xff");
			assert_int_equal(back->lowers[0].base, 4294967294U);
			assert_int_equal(back->n_labels, 1);
			assert_string_equal(back->labels[0].value, "2");
			assert_int_equal(back->cpu_milli, 1501);
			assert_int_equal(back->trace, SPEC_TRACE_FILES);
			assert_int_equal(back->on_loss, SPEC_ON_LOSS_STOP);
			assert_true(back->durable && back->keep && back->full && back->record_raw);
			assert_int_equal(back->owner_uid, 4294967294U);
		}
		spec_free(take(&back));
	}
}

static void test_exec_round_trip(void **state)
{
	scoped(spec_exec) struct spec_exec *exec = spec_exec_new(), *back = NULL;
	scoped_str struct str first = {0}, second = {0};

	spec_words_add(&exec->argv, "echo");
	spec_words_add(&exec->argv, "");
	spec_words_add(&exec->argv, "\xff");
	spec_words_add(&exec->env, "A=b");
	exec->cwd = mem_dup("/w\xfe");
	exec->user = mem_dup("1:2");
	exec->timeout_ms = 5;
	exec->terminal = exec->has_stdin = exec->detach = true;
	exec->rows = 65535;
	exec->columns = 80;
	exec->actor = mem_dup("uid:0");
	spec_exec_write(&first, exec);
	assert_int_equal(spec_exec_read(str_slice(&first), &back, NULL), 0);
	spec_exec_write(&second, back);
	assert_string_equal(first.p, second.p);
	assert_int_equal(back->argv.n, 3);
	assert_string_equal(back->argv.items[1], "");
	assert_string_equal(back->argv.items[2], "\xff");
	assert_string_equal(back->cwd, "/w\xfe");
	assert_int_equal(back->rows, 65535);
}

static void test_refused_json(void **state)
{
	static const struct {
		const char *json, *why;
	} cases[] = {
		{"", "spec: line 1 is not JSON: '[' or '{' expected near end of file"},
		{"[]", "spec: want a JSON object"},
		{"{\"memry\":1}", "spec: there is no key 'memry'"},
		{"{\"memory_bytes\":-1}",
			"spec: 'memory_bytes' must be a whole number from 0 that fits"},
		{"{\"memory_bytes\":\"12Q\"}",
			"spec: memory_bytes: '12Q' is no size: want a number with K, M, G or T"},
		{"{\"pids\":1.5}", "spec: 'pids' must be a whole number from 0 that fits"},
		{"{\"owner_uid\":4294967296}",
			"spec: 'owner_uid' must be a whole number from 0 that fits"},
		{"{\"name\":3}", "spec: 'name' must be text without NUL"},
		{"{\"name\":\"a\",\"name_b64\":\"YQBi\"}", "spec: 'name' must be text without NUL"},
		{"{\"keep\":\"yes\"}", "spec: 'keep' must be true or false"},
		{"{\"hide\":\"x\"}", "spec: 'hide' must be a list of texts"},
		{"{\"mounts\":[{\"host\":\"/a\"}]}", "spec: mount 1: want host, guest and mode"},
		{"{\"mounts\":[{\"host\":\"/a\",\"guest\":\"/b\",\"mode\":\"x\"}]}",
			"spec: mount 1: 'x' is no mount mode: want ro, rw or cow"},
		{"{\"trace\":{\"mounts\":1}}", "spec: 'trace.mounts' must be true or false"},
		{"{\"trace\":{\"nets\":true}}", "spec: there is no key 'trace.nets'"},
		{"{\"on_loss\":1}", "spec: on_loss: '': want freeze, stop or continue"},
		{"{\"labels\":{\"a\":1}}", "spec: label 'a' must be text"},
		{"{\"lowers\":[{\"guest\":\"/\",\"dir\":\"x\"}]}",
			"spec: lower layer 1: want guest and dir, both absolute"},
		{"{\"cpus\":\"2\"}", "spec: 'cpus' must be a number such as 1.5"},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct spec *spec = NULL;
		struct err err = {0};

		assert_true(spec_read(slice_of(cases[i].json), &spec, &err) < 0);
		assert_null(spec);
		assert_string_equal(err.msg, cases[i].why);
	}
}

/* What only our own programs tell each other is no key of a user's file. */
static void test_refused_in_file(void **state)
{
	scoped(spec) struct spec *spec = spec_new();
	struct err err = {0};

	assert_true(spec_apply(spec, slice_of("{\"lowers\":[]}"), &err) < 0);
	assert_string_equal(err.msg, "spec: there is no key 'lowers'");
}

static void test_exec_refused(void **state)
{
	static const char *const cases[] = {
		"{}",
		"{\"argv\":[]}",
		"{\"argv\":[\"a\"],\"command\":\"b\"}",
		"{\"argv\":[\"a\\u0000b\"]}",
		"{\"argv\":[\"a\"],\"rows\":65536}",
		"{\"argv\":[1]}",
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct spec_exec *exec = NULL;

		assert_true(spec_exec_read(slice_of(cases[i]), &exec, NULL) < 0);
		assert_null(exec);
	}
}

static void test_file_form(void **state)
{
	static const char json[] = "{\"memory_bytes\":\"512M\",\"cpus\":1.5,\"pids\":null,"
				   "\"trace\":true,\"rootfs\":\"host\",\"hide\":[]}";
	scoped(spec) struct spec *spec = NULL;

	assert_int_equal(spec_read(slice_of(json), &spec, NULL), 0);
	assert_int_equal(spec->memory_bytes, 512LL << 20);
	assert_int_equal(spec->cpu_milli, 1500);
	assert_int_equal(spec->pids_max, 0);
	assert_int_equal(spec->trace, SPEC_TRACE_ALL);
	assert_int_equal(spec->buffer_bytes, 64LL << 20);
	assert_null(spec->rootfs);
	assert_int_equal(spec->hide.n, 0);
}

struct check_case {
	const char *rootfs, *host, *guest, *guest2; /* @ stands for the test's folder */
	enum spec_mount_mode mode;
	int64_t memory, pids, buffer;
	const char *why; /* NULL: good */
};

static const struct check_case check_cases[] = {
	{.why = NULL},
	{.host = "@/src", .guest = "/w", .mode = SPEC_MOUNT_COW},
	{.host = "@/src", .guest = "/w", .guest2 = "/w/in"},
	{.host = "@/file", .guest = "/w", .mode = SPEC_MOUNT_RO},
	{.rootfs = "@/root"},
	{.rootfs = "@/linkroot"},
	{.memory = 1 << 20, .why = "a memory limit below 4M starts nothing: raise it"},
	{.pids = 1, .why = "a limit below 2 processes starts nothing: raise it"},
	{.buffer = 1000, .why = "the trace buffer must lie between 256K and 4G"},
	{.rootfs = "@/src",
		.why = "rootfs '@/src' is no root filesystem: it has neither bin nor usr/bin"},
	{.rootfs = "@/none", .why = "rootfs '@/none': No such file or directory"},
	{.rootfs = "@/file", .why = "rootfs '@/file' is not a folder"},
	{.rootfs = "root", .why = "rootfs 'root' must be an absolute path"},
	{.rootfs = "/",
		.why = "rootfs '/' would show Cloche's own state in @/state inside: choose "
		       "a folder apart from it"},
	{.host = "@/none", .guest = "/w", .why = "mount of '@/none': No such file or directory"},
	{.host = "@/pipe",
		.guest = "/w",
		.why = "mount of '@/pipe': want a folder or a regular file"},
	{.host = "@/file",
		.guest = "/w",
		.mode = SPEC_MOUNT_COW,
		.why = "mount of '@/file': only a folder can be cow, use ro or rw for a file"},
	{.host = "@",
		.guest = "/w",
		.why = "mount of '@' would show Cloche's own state in @/state inside: mount a "
		       "folder apart from it"},
	{.host = "@/state/records",
		.guest = "/w",
		.why = "mount of '@/state/records' would show Cloche's own state in @/state "
		       "inside: mount a folder apart from it"},
	{.host = "@/alias/records",
		.guest = "/w",
		.why = "mount of '@/alias/records' would show Cloche's own state in @/state "
		       "inside: mount a folder apart from it"},
	{.host = "@/alias",
		.guest = "/w",
		.why = "mount of '@/alias' would show Cloche's own state in @/state inside: mount "
		       "a folder apart from it"},
	{.host = "@/above",
		.guest = "/w",
		.why = "mount of '@/above' would show Cloche's own state in @/state inside: mount "
		       "a folder apart from it"},
	{.host = "@/run/cloche/bpf",
		.guest = "/w",
		.why = "mount of '@/run/cloche/bpf' would show Cloche's own state in "
		       "@/run/cloche inside: mount a folder apart from it"},
	{.host = "@/run",
		.guest = "/w",
		.why = "mount of '@/run' would show Cloche's own state in @/run/cloche inside: "
		       "mount a folder apart from it"},
	{.host = "@/run/other", .guest = "/w"},
	{.host = "/sys",
		.guest = "/w",
		.why = "mount of '/sys': the host's /proc, /sys and /dev stay outside"},
	{.host = "/dev/shm", .guest = "/w"},
	{.host = "/",
		.guest = "/w",
		.why = "mount of '/': that is the whole host, name the folders that are to be "
		       "shown"},
	{.host = "/var/lib",
		.guest = "/w",
		.why = "mount of '/var/lib' would show Cloche's own state in /var/lib/cloche "
		       "inside: mount a folder apart from it"},
	{.host = "@/src", .guest = "/", .why = "mount at '/': that place is the sandbox's own"},
	{.host = "@/src",
		.guest = "/proc/x",
		.why = "mount at '/proc/x': that place is the sandbox's own"},
	{.host = "@/src", .guest = "w", .why = "mount at 'w': want an absolute path inside"},
	{.host = "@/src", .guest = "/w", .guest2 = "/w", .why = "two mounts at '/w': name it once"},
};

/* text with the folder put in for each @. */
static char *fill(const char *text, const char *dir)
{
	struct str out = {0};

	for (; *text; text++)
		if (*text == '@')
			str_puts(&out, dir);
		else
			str_putc(&out, *text);
	return str_take(&out);
}

static void make(const char *dir, const char *name)
{
	scoped_mem char *path = mem_printf("%s/%s", dir, name);

	assert_int_equal(path_make_all(path, 0700), 0);
}

static void check_one(const struct check_case *c, const char *dir)
{
	scoped(spec) struct spec *spec = spec_new();
	scoped_mem char *state_dir = fill("@/state", dir), *why = NULL;
	scoped_mem char *run_dir = fill("@/run/cloche", dir);
	scoped_mem char *host = fill(c->host ? c->host : "", dir);
	struct err err = {0};
	int r;

	if (c->rootfs)
		spec->rootfs = fill(c->rootfs, dir);
	if (c->host)
		spec_add_mount(spec, host, c->guest, c->mode, false);
	if (c->guest2)
		spec_add_mount(spec, host, c->guest2, c->mode, false);
	spec->memory_bytes = c->memory;
	spec->pids_max = c->pids;
	if (c->buffer)
		spec->buffer_bytes = c->buffer;
	r = spec_check(spec, state_dir, run_dir, &err);
	if (!c->why) {
		assert_string_equal(err.msg, "");
		assert_int_equal(r, 0);
		return;
	}
	why = fill(c->why, dir);
	assert_true(r < 0);
	assert_string_equal(err.msg, why);
}

static void test_check(void **state)
{
	char dir[] = "/tmp/cloche-spec-XXXXXX";
	scoped_mem char *pipe = NULL, *file = NULL, *link = NULL, *own = NULL, *alias = NULL,
			*above = NULL;

	assert_non_null(mkdtemp(dir));
	make(dir, "state/records");
	make(dir, "run/cloche/bpf");
	make(dir, "run/other");
	make(dir, "src");
	make(dir, "root/usr/bin");
	make(dir, "linkroot");
	pipe = fill("@/pipe", dir);
	file = fill("@/file", dir);
	link = fill("@/linkroot/bin", dir);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_equal(symlink("/usr/bin", link), 0);
	/* Other names, as a bind mount gives them. */
	own = fill("@/state", dir);
	alias = fill("@/alias", dir);
	above = fill("@/above", dir);
	assert_int_equal(symlink(own, alias), 0);
	assert_int_equal(symlink(dir, above), 0);
	for (size_t i = 0; i < LEN(check_cases); i++)
		check_one(&check_cases[i], dir);
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

/* A folder inside the state, by another mount of it. */
static void test_check_bind_mount(void **state)
{
	const struct check_case refused = {.host = "@/an other",
		.guest = "/w",
		.why = "mount of '@/an other' would show Cloche's own state in @/state inside: "
		       "mount a folder apart from it"};
	const struct check_case good = {.host = "@/src2", .guest = "/w"};
	char dir[] = "/tmp/cloche-spec-XXXXXX";
	scoped_mem char *from = NULL, *to = NULL, *src = NULL, *src2 = NULL;

	if (unshare(CLONE_NEWNS) < 0) {
		print_message("skipped: a mount namespace of its own takes root\n");
		skip();
	}
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_non_null(mkdtemp(dir));
	make(dir, "state/records/deep");
	make(dir, "run/cloche");
	make(dir, "an other");
	make(dir, "src");
	make(dir, "src2");
	from = fill("@/state/records", dir);
	to = fill("@/an other", dir);
	src = fill("@/src", dir);
	src2 = fill("@/src2", dir);
	assert_int_equal(mount(from, to, NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount(src, src2, NULL, MS_BIND, NULL), 0);
	check_one(&refused, dir);
	check_one(&good, dir);
	assert_int_equal(umount(to), 0);
	assert_int_equal(umount(src2), 0);
	assert_int_equal(path_remove_all(AT_FDCWD, dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_cpus_duration_count),
		cmocka_unit_test(test_mount),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_exec_round_trip),
		cmocka_unit_test(test_refused_json),
		cmocka_unit_test(test_refused_in_file),
		cmocka_unit_test(test_exec_refused),
		cmocka_unit_test(test_file_form),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_check_bind_mount),
	};

	return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
