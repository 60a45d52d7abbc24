/* SPDX-License-Identifier: Apache-2.0 */
#include "changes_cases.h"
#include "overlay.h"

#include "manifest/apply.h"

#define DUMP \
	"find . \\( -type f -printf 'f %m %p\\n' -exec sha256sum {} \\; \\) -o -type l " \
	"-printf 'l %p %l\\n' -o -printf '%y %m %p\\n' | LC_ALL=C sort > "

static void dump(const char *what, struct str *out)
{
	scoped_mem char *dir = mem_printf("%s/%s", top, what);
	scoped_mem char *file = mem_printf("%s/dump", top);
	scoped_mem char *script = mem_printf("%s%s", DUMP, file);

	run_script(dir, script);
	assert_int_equal(fdio_read_file(AT_FDCWD, file, 1 << 20, out), 0);
}

static void note(struct str *out, const struct apply_note *n)
{
	static const char *const words[APPLY_N_RESULTS] = {
		[APPLY_DONE] = "done",
		[APPLY_LESS] = "less",
		[APPLY_DROPPED] = "dropped",
		[APPLY_LEFT] = "left",
		[APPLY_REFUSED] = "refused",
	};

	str_printf(out, "%s %s%s%s\n", words[n->result], n->path, n->text ? ": " : "",
		n->text ? n->text : "");
}

/* Applies and returns what was said. */
static void apply(const struct apply_options *options, struct str *out)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped(changes) struct changes *changes = NULL;
	struct apply_report report;
	struct err err = {0};

	open_set(&set);
	changes = read_changes(set);
	if (apply_changes(set, changes, options, &report, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < report.n_notes; i++)
		note(out, &report.notes[i]);
	apply_report_done(&report);
}

static size_t count_pending(void)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped(changes) struct changes *changes = NULL;
	size_t n = 0;

	open_set(&set);
	changes = read_changes(set);
	for (size_t i = 0; i < changes->n_items; i++)
		n += changes_is_listed(&changes->items[i]);
	return n;
}

static bool brings_all_over(const struct changes_case *c)
{
	const struct apply_options all = {0};
	scoped_str struct str inside = {0}, host = {0}, said = {0}, again = {0}, once = {0};
	size_t pending;

	begin(c->host, c->inside, c->meanwhile);
	dump("merged", &inside);
	apply(&all, &said);
	dump("host", &host);
	pending = count_pending();
	apply(&all, &again);
	dump("host", &once);
	end();
	if (slice_eq(str_slice(&inside), str_slice(&host)) && pending == 0 && again.len == 0 &&
		slice_eq(str_slice(&host), str_slice(&once)))
		return true;
	fprintf(stderr,
		"case '%s'\nsaid:\n%spending: %zu\ninside:\n%shost:\n%safter a second apply:\n%s%s",
		c->name, said.p, pending, inside.p, host.p, once.p, again.p ? again.p : "");
	return false;
}

static void test_whole(void **state)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(changes_cases) / sizeof(changes_cases[0]); i++)
		if (!changes_cases[i].partly)
			bad += !brings_all_over(&changes_cases[i]);
	assert_int_equal(bad, 0);
}

static unsigned next_random(unsigned long long *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(*state >> 33);
}

static void add_random_path(struct str *out, unsigned long long *state)
{
	unsigned depth = 1 + next_random(state) % 3;

	for (unsigned i = 0; i < depth; i++)
		str_printf(out, "%s%c", i ? "/" : "", 'a' + (char)(next_random(state) % 4));
}

/* One step of a shell script; @ stands for a path. Those that cannot be done are passed over. */
static void add_random_step(struct str *out, unsigned long long *state, unsigned n)
{
	static const char *const steps[] = {"echo # > @", "echo # >> @", "rm -rf @", "mkdir -p @",
		"mv -T @ @", "mv -T @ @", "mv @ @", "ln -s x# @", "chmod 640 @", "chmod 750 @",
		"cp -r @ @", "touch @", "ln @ @", "rm -rf @ && mkdir @", "mv -T @ @ && mkdir @"};

	str_puts(out, "{ ");
	for (const char *p = steps[next_random(state) % (sizeof(steps) / sizeof(steps[0]))]; *p;
		p++) {
		if (*p == '@')
			add_random_path(out, state);
		else if (*p == '#')
			str_printf(out, "%u", n);
		else
			str_putc(out, *p);
	}
	str_puts(out, "; } 2>/dev/null || :\n");
}

static char *random_script(unsigned long long *state, unsigned n_steps)
{
	struct str out = {0};

	for (unsigned i = 0; i < n_steps; i++)
		add_random_step(&out, state, i + next_random(state) % 1000 * 100);
	return str_take(&out);
}

/* Whatever is done inside, the host's folder ends as the sandbox saw it. TEST_ROUNDS and TEST_SEED for more. */
static void test_random(void **state)
{
	const char *rounds = getenv("TEST_ROUNDS"), *first = getenv("TEST_SEED");
	unsigned long long seed = first ? strtoull(first, NULL, 10) : 1;
	unsigned long long end_seed = seed + (rounds ? strtoull(rounds, NULL, 10) : 20);

	/* In memory: many rounds in little time. */
	assert_int_equal(mount("tmpfs", top, "tmpfs", 0, NULL), 0);
	for (; seed < end_seed; seed++) {
		unsigned long long random = seed;
		scoped_mem char *steps = random_script(&random, 12);
		scoped_mem char *host = mem_printf("mkdir -p a/b/c b/a c/d; echo 1 > a/a; "
						   "echo 2 > a/b/d; echo 3 > c/d/a; echo 4 > d\n%s",
			steps);
		scoped_mem char *inside = random_script(&random, 14);
		scoped_mem char *name =
			mem_printf("seed %llu\n%s\ninside:\n%s", seed, host, inside);
		struct changes_case c = {
			.name = name, .host = host, .inside = inside, .meanwhile = ":"};

		assert_true(brings_all_over(&c));
	}
	assert_int_equal(umount(top), 0);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	return run_in_namespace(run);
}
