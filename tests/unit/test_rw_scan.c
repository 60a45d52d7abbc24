/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of a copied folder, done in the folder itself; what is told otherwise there is told here. */
#include "changes_cases.h"
#include "changes_lines.h"

#include "manifest/changes_rw.h"
#include "manifest/snapshot_take.h"

/* The scripts of a package from before are not known. */
static const struct {
	const char *name, *want;
} otherwise[] = {
	{"runs on host", "added .envrc runs\nadded .github/workflows/t.yml runs\nadded Makefile\n"
			 "changed k/package.json runs\nchanged package.json runs\n"},
	{"", NULL},
};

static const char *wanted(const struct changes_case *c)
{
	for (size_t i = 0; otherwise[i].want; i++)
		if (strcmp(otherwise[i].name, c->name) == 0)
			return otherwise[i].want;
	return c->want;
}

static void take_before(bool hash)
{
	scoped_mem char *host = mem_printf("%s/host", top), *set = mem_printf("%s/set", top);
	scoped_fd int root_fd = changes_rw_open(host);
	scoped_fd int dirfd = open(set, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped(snapshot) struct snapshot *before = NULL;
	struct snapshot_source source = {.root_fd = root_fd};

	assert_int_equal(snapshot_take(&source, dirfd, "before.0", NULL), 0);
	assert_int_equal(snapshot_open(dirfd, "before.0", true, &before), 0);
	if (hash)
		snapshot_hash(before, root_fd, SNAPSHOT_REACH_FULL, NULL);
}

static void write_rw_set(void)
{
	scoped_mem char *path = mem_printf("%s/set/changes.json", top);
	scoped_str struct str text = {0};

	str_printf(&text,
		"{\"v\":1,\"created_ns\":1,\"base\":100000,\"mounts\":[],\"rw\":[{\"host\":\"%s/"
		"host\",\"guest\":\"/proj\",\"before\":\"before.0\",\"owner_uid\":0,\"owner_gid\":"
		"0,\"uid_map\":[[0,100000,65536]],\"gid_map\":[[0,100000,65536]]}]}",
		top);
	assert_int_equal(fdio_replace(AT_FDCWD, path, text.p, text.len, 0600), 0);
}

static void begin_rw(const char *host_script, bool hash)
{
	scoped_mem char *host = mem_printf("%s/host", top);

	run_script(top, "mkdir -p host set");
	run_script(host, host_script);
	write_rw_set();
	usleep(30000); /* files of before are older than a tick of their clock */
	take_before(hash);
}

static void end_rw(void)
{
	run_script(top, "rm -rf host set");
}

static void list_rw(struct str *out, const struct rw_seen *seen)
{
	const struct changes_rw_options options = {.seen = seen};
	scoped(change_set) struct change_set *set = NULL;
	struct changes_list list = {0};

	open_set(&set);
	changes_rw_read_all(set, &options, &list);
	assert_int_equal(list.n, 1);
	list_changes(out, list.roots[0]);
	changes_list_done(&list);
}

static void test_lists(void **state)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(changes_cases) / sizeof(changes_cases[0]); i++) {
		const struct changes_case *c = &changes_cases[i];
		scoped_mem char *host = mem_printf("%s/host", top);
		scoped_str struct str got = {0};

		if (strcmp(c->meanwhile, ":") != 0)
			continue; /* here the host's hand cannot be told from the sandbox's by the files */
		begin_rw(c->host, true);
		run_script(host, c->inside);
		list_rw(&got, NULL);
		end_rw();
		if (strcmp(got.p ? got.p : "", wanted(c)) == 0)
			continue;
		print_error("case '%s'\nwant:\n%sgot:\n%s", c->name, wanted(c), got.p ? got.p : "");
		bad++;
	}
	assert_int_equal(bad, 0);
}

/* Without hashes of before: what differs in size is changed, what may differ is told as such. */
static void test_what_nobody_had_read(void **state)
{
	scoped_mem char *host = mem_printf("%s/host", top);
	scoped(change_set) struct change_set *set = NULL;
	const struct changes_rw_options options = {0};
	struct changes_list list = {0};

	begin_rw("echo 1 > longer; echo 1 > maybe; echo 1 > same; echo 1 > mode", false);
	run_script(host, "echo 22 > longer; echo 2 > maybe; chmod 600 mode");
	open_set(&set);
	changes_rw_read_all(set, &options, &list);
	assert_int_equal(list.roots[0]->n_items, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct change *c = &list.roots[0]->items[i];

		assert_int_equal(c->kind, CHANGE_CHANGED);
		assert_int_equal(!(c->flags & CHANGE_UNSURE), strcmp(c->path, "longer") == 0);
		assert_int_equal(c->before.sha256[0], 0);
	}
	changes_list_done(&list);
	end_rw();
}

static enum rw_touch saw_rights(void *data, struct slice path)
{
	return slice_is(path, "/proj/mode") ? RW_TOUCHED : RW_UNTOUCHED;
}

static bool saw_next(void *data, size_t *i, struct slice *ret_path)
{
	*ret_path = slice_of("/proj/mode");
	return (*i)++ == 0;
}

/* Who saw that only its mode was set knows that its content is the same. */
static void test_what_was_seen_says_more(void **state)
{
	const struct rw_seen seen = {.touch = saw_rights, .next = saw_next};
	scoped_mem char *host = mem_printf("%s/host", top);
	scoped_str struct str got = {0};

	begin_rw("echo 1 > mode; echo 1 > other", false);
	run_script(host, "chmod 600 mode");
	list_rw(&got, &seen);
	assert_string_equal(got.p, "mode mode 0644 0600\n");
	end_rw();
}

/* Folders made anew in folders made anew, deeper than is followed: that is told, and nothing wrong of them. */
static void test_made_anew_very_deep(void **state)
{
	static const char make[] =
		"p=a; for i in $(seq 80); do p=$p/a; done; mkdir -p $p; echo 1 > $p/f";
	scoped_mem char *host = mem_printf("%s/host", top), *anew = mem_printf("rm -r a; %s", make);
	scoped(change_set) struct change_set *set = NULL;
	const struct changes_rw_options options = {0};
	struct changes_list list = {0};

	begin_rw(make, true);
	run_script(host, anew);
	open_set(&set);
	changes_rw_read_all(set, &options, &list);
	assert_int_equal(list.roots[0]->n_items, 0);
	assert_non_null(list.roots[0]->unread);
	changes_list_done(&list);
	end_rw();
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_what_nobody_had_read),
		cmocka_unit_test(test_what_was_seen_says_more),
		cmocka_unit_test(test_made_anew_very_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	return run_in_namespace(run);
}
