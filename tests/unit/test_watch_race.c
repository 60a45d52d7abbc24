/* SPDX-License-Identifier: Apache-2.0 */
/* A watch of folders that are made, moved, moved over and removed between any two of its own system calls. In the end it
 * knows what there is, and who believed each line that it told knows the same.
 *
 * The calls are wrapped by the linker (tests/meson.build): before each one others may act. The clock is ours, and there is
 * one thread. `test_watch_race FROM TO` runs these seeds instead, and says what is done and told where it is one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "manifest/watch_internal.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/path.h"
#include "watch_told.h"

#define MS         CLOCK_NS_PER_MS
#define SEEDS      50
#define ACTS       120 /* of a seed, while it is watched, */
#define ACTS_FIRST 20  /* and before */
#define LOOKS_MAX  400 /* until all has settled */
#define PATH_SIZE  16
#define EVENTS_LEN 300 /* some at a time */

static char top[] = "/tmp/test_watch_race.XXXXXX";
static unsigned first_seed = 1, last_seed = SEEDS;

/* ---- what others do meanwhile ---- */

static struct {
	uint64_t state;
	int top_fd;
	unsigned left;   /* acts */
	unsigned one_in; /* so many calls somebody acts; 0: nobody does */
	bool is_acting, is_loud;
	int64_t now_ns;
} race = {.top_fd = -1, .now_ns = CLOCK_NS_PER_S};

static unsigned pick(unsigned n)
{
	race.state = race.state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(race.state >> 33) % n;
}

/* Few names and few levels, so that they meet. */
static void pick_path(char path[PATH_SIZE])
{
	unsigned n = 1 + pick(4);

	for (unsigned i = 0; i < n; i++) {
		path[i * 2] = (char)('a' + pick(3));
		path[i * 2 + 1] = i + 1 < n ? '/' : '\0';
	}
}

static void make_folders(const char *a, const char *b)
{
	char part[PATH_SIZE];

	(void)b;
	for (size_t i = 1; i <= strlen(a); i += 2) {
		memcpy(part, a, i);
		part[i] = '\0';
		(void)mkdirat(race.top_fd, part, 0755);
	}
}

static void write_file(const char *a, const char *b)
{
	scoped_fd int fd = openat(race.top_fd, a, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	(void)b;
	if (fd >= 0)
		assert_int_equal(write(fd, "x", 1), 1);
}

static void remove_file(const char *a, const char *b)
{
	(void)b;
	(void)unlinkat(race.top_fd, a, 0);
}

static void remove_all(const char *a, const char *b)
{
	(void)b;
	(void)path_remove_all(race.top_fd, a);
}

static void move(const char *a, const char *b)
{
	(void)renameat(race.top_fd, a, race.top_fd, b);
}

static void link_to(const char *a, const char *b)
{
	(void)linkat(race.top_fd, a, race.top_fd, b, 0);
}

static void move_out(const char *a, const char *b)
{
	(void)b;
	move(a, "../out");
}

static void move_in(const char *a, const char *b)
{
	(void)b;
	move("../out", a);
}

/* What fails, fails: most names are not there. */
static const struct act {
	const char *word;
	void (*act)(const char *a, const char *b);
	unsigned weight; /* 16 in all */
} acts[] = {
	{"mkdir", make_folders, 4},
	{"write", write_file, 2},
	{"unlink", remove_file, 1},
	{"move", move, 5},
	{"remove", remove_all, 1},
	{"link", link_to, 1},
	{"out", move_out, 1},
	{"in", move_in, 1},
};

static void act(void)
{
	const struct act *what = acts;
	char a[PATH_SIZE], b[PATH_SIZE];

	for (unsigned n = pick(16); n >= what->weight; what++)
		n -= what->weight;
	pick_path(a);
	pick_path(b);
	if (race.is_loud)
		print_message("\t%s %s %s\n", what->word, a, b);
	what->act(a, b);
}

static void act_times(unsigned n)
{
	race.is_acting = true;
	while (n-- > 0)
		act();
	race.is_acting = false;
}

static bool is_racing(void)
{
	return !race.is_acting && race.one_in > 0;
}

static void meanwhile(void)
{
	int saved = errno;
	unsigned n;

	if (!is_racing() || race.left == 0 || pick(race.one_in) != 0)
		return;
	n = 1 + pick(3);
	n = n < race.left ? n : race.left;
	race.left -= n;
	act_times(n);
	errno = saved;
}

/* ---- the watch's calls ---- */

int64_t __wrap_clock_mono_ns(void);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __real_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret);
int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret);
struct dirent *__real_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir);
long __real_syscall(long number, long a, long b, long c, long d);
long __wrap_syscall(long number, long a, long b, long c, long d);
ssize_t __real_read(int fd, void *buffer, size_t len);
ssize_t __wrap_read(int fd, void *buffer, size_t len);

int64_t __wrap_clock_mono_ns(void)
{
	return race.now_ns;
}

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	int wd;

	meanwhile();
	wd = __real_inotify_add_watch(fd, path, mask);
	meanwhile();
	return wd;
}

int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret)
{
	meanwhile();
	return __real_statx(fd, path, flags, mask, ret);
}

struct dirent *__wrap_readdir64(DIR *dir)
{
	meanwhile();
	return __real_readdir64(dir);
}

/* openat2, which the C library has no function for. */
long __wrap_syscall(long number, long a, long b, long c, long d)
{
	meanwhile();
	return __real_syscall(number, a, b, c, d);
}

/* Events come some at a time, and some after what has settled is told. */
ssize_t __wrap_read(int fd, void *buffer, size_t len)
{
	meanwhile();
	if (is_racing() && pick(4) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return __real_read(fd, buffer, is_racing() && len > EVENTS_LEN ? EVENTS_LEN : len);
}

/* ---- a seed ---- */

static void ignore(void *arg, const struct watch_change *change)
{
	(void)arg;
	(void)change;
}

static struct watch *open_watch(void (*tell)(void *arg, const struct watch_change *change))
{
	struct watch_config config = {.root_fd = race.top_fd, .tell = tell};
	struct watch *watch = NULL;
	struct err err = {0};

	if (watch_open(&config, &watch, &err) < 0)
		fail_msg("%s", err.msg);
	return watch;
}

/* What was there when it was opened is known without a word. */
static struct watch *open_racing(void)
{
	struct watch *watch = open_watch(ignore);

	watch->config.tell = believe;
	watch->config.arg = &race.is_loud;
	for (struct watch_entry *e = &watch->tree.root;
		(e = watch_tree_walk(&watch->tree.root, e));) {
		scoped_str struct str path = {0};

		watch_tree_add_path(e, &path);
		if (e->told.mode)
			add(path.p);
	}
	return watch;
}

static void work(struct watch *watch, unsigned seed)
{
	int looks = 0;

	while (race.left > 0) {
		meanwhile();
		assert_int_equal(watch_work(watch), 0);
		race.now_ns += pick(8) * 20 * MS;
	}
	race.one_in = 0;
	do {
		assert_int_equal(watch_work(watch), 0);
		race.now_ns += 50 * MS;
		if (++looks == LOOKS_MAX)
			fail_msg("seed %u: it does not settle", seed);
	} while (is_busy(watch));
}

static void assert_same(
	unsigned seed, const char *what, const struct str *got, const struct str *there)
{
	if (strcmp(got->p, there->p) != 0)
		fail_msg("seed %u: %s:\n%sthere:\n%s", seed, what, got->p, there->p);
}

static void compare(struct watch *watch, unsigned seed)
{
	scoped_str struct str known = {0}, there = {0}, believed = {0}, names = {0};
	scoped(watch) struct watch *fresh = open_watch(ignore);

	add_known(&watch->tree, &known);
	add_known(&fresh->tree, &there);
	assert_same(seed, "known", &known, &there);
	assert_int_equal(watch->tree.n, fresh->tree.n);
	assert_int_equal(watch->n_wds, fresh->n_wds);
	assert_int_equal(watch->tree.inos.n, fresh->tree.inos.n);
	if (told.wrong.p)
		fail_msg("seed %u: it cannot be: %s", seed, told.wrong.p);
	add_told(&believed);
	add_names(&fresh->tree, &names);
	assert_same(seed, "told", &believed, &names);
}

static void run_seed(unsigned seed)
{
	static const char *const all[] = {"a", "b", "c", "../out"};
	scoped(watch) struct watch *watch = NULL;

	race.state = seed * 2654435761ULL + 1;
	race.left = ACTS;
	race.one_in = 0;
	act_times(ACTS_FIRST);
	race.one_in = 1 + pick(12);
	watch = open_racing();
	work(watch, seed);
	compare(watch, seed);
	forget_all();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		remove_all(all[i], NULL);
}

static void test_seeds(void **state)
{
	(void)state;
	race.is_loud = first_seed == last_seed;
	for (unsigned seed = first_seed; seed <= last_seed; seed++)
		run_seed(seed);
}

static int make_top(void **state)
{
	scoped_mem char *in = NULL;

	(void)state;
	if (!mkdtemp(top))
		return -1;
	in = mem_printf("%s/in", top);
	if (mkdir(in, 0700) < 0)
		return -1;
	race.top_fd = open(in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return race.top_fd < 0 ? -1 : 0;
}

static int remove_top(void **state)
{
	(void)state;
	race.one_in = 0;
	race.is_acting = false;
	scoped_close(&race.top_fd);
	forget_all();
	return path_remove_all(AT_FDCWD, top);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeds)};

	if (argc == 3) {
		first_seed = (unsigned)strtoul(argv[1], NULL, 10);
		last_seed = (unsigned)strtoul(argv[2], NULL, 10);
	}
	return cmocka_run_group_tests(tests, make_top, remove_top);
}
