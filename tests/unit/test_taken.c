/* SPDX-License-Identifier: Apache-2.0 */
/* What an apply says and leaves: refusals, losses, names, force, other owners; and discard. */
#include "overlay.h"

#include "manifest/apply.h"
#include "manifest/discard.h"

struct taken_case {
	const char *name, *host, *inside, *meanwhile;
	const char *paths; /* separated by spaces */
	bool force, is_live;
	const char *said;
	const char *check; /* in the host's folder */
	size_t pending;    /* left after it */
};

static const struct taken_case cases[] = {
	{"set-id bits", "echo b > b; mkdir d",
		"chmod 4755 b; echo c > c; chmod 2755 c; chmod 1777 d", ":", "", false, false,
		"less b: without its set-id bits\nless c: without its set-id bits\ndone d\n",
		"test $(stat -c %a b c d | tr '\\n' ' ' | tr -d ' ') = 7557551777", 0},
	{"capabilities", ":",
		"cp /bin/true c; /usr/bin/python3 -c \"import os, struct; os.setxattr('c', "
		"'security.capability', "
		"struct.pack('<IIIII', 0x2000001, 0x2000, 0, 0, 0))\"",
		":", "", false, false, "less c: without security.capability\n",
		"cmp c /bin/true; /usr/bin/python3 -c \"import os; assert 'security.capability' "
		"not in os.listxattr('c')\"",
		0},
	{"attributes", "echo a > a",
		"/usr/bin/python3 -c \"import os; os.setxattr('a', 'user.x', b'1')\"", ":", "",
		false, false, "done a\n",
		"/usr/bin/python3 -c \"import os; assert os.getxattr('a', 'user.x') == b'1'\"", 0},
	{"owner", "echo a > a", "chown 3:4 a", ":", "", false, false, "less a: without its owner\n",
		"test $(stat -c %u:%g a) = 0:0", 0},
	{"pipe", ":", "mkfifo p; echo a > a", ":", "", false, false,
		"done a\ndropped p: a pipe is not taken over\n", "test ! -e p", 0},
	{"links", "mkdir d", "ln -s /etc/passwd l; ln -s ../../x d/m; ln -s ../a d/k", ":", "",
		false, false,
		"done d/k\ndone d/m: a link that leads out of the folder\n"
		"done l: a link that leads out of the folder\n",
		"test $(readlink l) = /etc/passwd; test $(readlink d/m) = ../../x", 0},
	{"skipped", "mkdir .git",
		"echo 1 > .git/x; mkdir node_modules; echo 2 > node_modules/y; echo 3 > z", ":", "",
		false, false,
		"left .git/x: files of .git do not come over one by one: "
		"--branch NAME brings the commits\n"
		"left node_modules/y: name its folder to take it over\ndone z\n",
		"test ! -e .git/x; test ! -e node_modules", 0},
	{"skipped and named", "mkdir .git",
		"mkdir .git/hooks; echo 1 > .git/hooks/h; echo 1 > .git/x; "
		"mkdir node_modules; echo 2 > node_modules/y",
		":", "node_modules .git/hooks/h .git/x", false, false,
		"done .git/hooks/h\nleft .git/x: files of .git do not come over one by one: "
		"--branch NAME brings the commits\ndone "
		"node_modules/y\n",
		"test -e .git/hooks/h; test ! -e .git/x; test -e node_modules/y", 0},
	{"runs on the host", ":",
		"mkdir .husky .github tools; echo 1 > .husky/h; echo 2 > .envrc; ln -s tools "
		".vscode",
		":", ".", false, false,
		"left .envrc: the host would run it (shell set-up): name it to take it over\n"
		"done .github\nleft .husky/h: the host would run it (git hook): name "
		"it to take it "
		"over\n"
		"left .vscode: the host would run it (editor task): name it to take it over\ndone "
		"tools\n",
		"test ! -e .envrc; test ! -e .husky; test -d .github; test ! -L .vscode", 3},
	{"runs on the host and is named", ":", "mkdir .husky; echo 1 > .husky/h; echo 2 > .envrc",
		":", ".husky .envrc", false, false, "done .envrc\ndone .husky/h\n",
		"test -e .envrc; test -e .husky/h", 0},
	{"the host changed it", "echo a > a; echo b > b", "echo 1 >> a; rm b",
		"echo 2 >> a; echo 2 >> b", "", false, false,
		"refused a: the host has changed it meanwhile: `apply --force` goes over "
		"it\nrefused b: the host has changed it "
		"meanwhile: `apply --force` goes over it\n",
		"test \"$(cat a b | tr -d '\\n')\" = a2b2", 2},
	{"the host changed it, forced", "echo a > a; echo b > b", "echo 1 >> a; rm b",
		"echo 2 >> a; echo 2 >> b", "", true, false,
		"done a: over what the host changed meanwhile, sha256 "
		"fa39ab7bea456781477b3697b4380ea256af38b0fe75aa3b0d477fc74be511be\ndone b: over "
		"what the host changed meanwhile, sha256 "
		"19793d5ded0529a285d3bf96d9fba0c6f01ce5619bcce3f8b8177b923272c70e\n",
		"test \"$(cat a | tr -d '\\n')\" = a1; test ! -e b", 0},
	{"the host added to a removed folder", "mkdir d; echo a > d/a", "rm -r d", "echo n > d/n",
		"", false, false,
		"refused d: the host's folder holds more than the sandbox saw\n"
		"refused d/a: the host has changed it meanwhile: `apply --force` goes over it\n"
		"refused d/n: the host has changed it meanwhile: `apply --force` goes over it\n",
		"test -e d/n; test -e d/a", 2},
	{"a link of the host is in the way", "mkdir d", "echo 1 > d/f; mkdir n; echo 2 > n/f",
		"mv d e; ln -s e d; ln -s e n", "", false, false,
		"refused d: the host has changed it meanwhile: `apply --force` goes over "
		"it\nrefused d: something else is there "
		"on the host\n"
		"refused d/f: something else is there on the host\n"
		"refused n: the host has changed it meanwhile: `apply --force` goes over "
		"it\nrefused n: something else is there "
		"on the host\n"
		"refused n/f: something else is there on the host\n",
		"test -z \"$(ls e)\"", 4},
	{"a link of the host on the way", "mkdir d; echo a > d/f", "echo 1 >> d/f",
		"mv d e; ln -s e d", "", false, false,
		"refused d: the host has changed it meanwhile: `apply --force` goes over "
		"it\nrefused d: something else is there "
		"on the host\nrefused d/f: something else is there on the host\n",
		"test $(cat e/f) = a", 2},
	{"one path with its new folders", ":", "mkdir -p n/m; echo 1 > n/m/x; echo 2 > n/y", ":",
		"n/m/x", false, false, "done n/m/x\n", "test -e n/m/x; test ! -e n/y", 1},
	{"a path where nothing changed", "echo a > a", "echo 1 > b", ":", "a", false, false,
		"refused a: nothing to take over there\n", "test ! -e b", 1},
	{"the old name of a renamed folder", "mkdir d; echo 1 > d/f", "mv d e; echo 2 > g", ":",
		"d", false, false, "done e\n", "test -e e/f; test ! -e d; test ! -e g", 1},
	{"renamed while the sandbox runs", "mkdir d; echo 1 > d/f; echo a > a; echo b > b",
		"mv d e; mv a b; echo 3 > c", ":", "", false, true,
		"refused a: the sandbox may go on and needs it for 'b': `cloche rm` it first\n"
		"refused b: renamed, and the sandbox may go on: `cloche rm` it first, its changes "
		"stay\ndone c\n"
		"refused e: renamed, and the sandbox may go on: `cloche rm` it first, its changes "
		"stay\n",
		"test -e d/f; grep -q a a; grep -q b b; test -e c", 3},
	{"data of another path is kept", "echo a > a; echo b > b", "mv a b", ":", "a", false, false,
		"done a\n", "test ! -e a; grep -q b b", 1},
};

static char **split(const char *paths, size_t *ret_n)
{
	char **list = NULL;

	*ret_n = 0;
	while (*paths) {
		size_t len = strcspn(paths, " ");

		list = mem_grow(list, *ret_n + 1, sizeof(char *));
		list[(*ret_n)++] = mem_copy(paths, len);
		paths += len + (paths[len] == ' ');
	}
	return list;
}

static void free_paths(char **paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
}

static void add_note(struct str *out, const struct apply_note *n)
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

static int apply_paths(
	const char *text, bool force, bool is_live, struct str *said, struct err *err)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped(changes) struct changes *changes = NULL;
	struct apply_options options = {.force = force, .is_live = is_live};
	struct apply_report report;
	char **paths = split(text, &options.n_paths);
	int r;

	options.paths = (const char *const *)paths;
	open_set(&set);
	changes = read_changes(set);
	r = apply_changes(set, changes, &options, &report, err);
	for (size_t i = 0; i < report.n_notes; i++)
		add_note(said, &report.notes[i]);
	apply_report_done(&report);
	free_paths(paths, options.n_paths);
	return r;
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

static void check_host(const char *script)
{
	scoped_mem char *host = mem_printf("%s/host", top);
	/* Every command counts, also those before a semicolon, and none may leave a temporary file. */
	scoped_mem char *all = mem_printf("%s\ntest -z \"$(find . -name '.cloche-*')\"", script);

	run_script(host, all);
}

static bool is_taken(const struct taken_case *c)
{
	scoped_str struct str said = {0};
	struct err err;
	size_t pending;

	begin(c->host, c->inside, c->meanwhile);
	assert_int_equal(apply_paths(c->paths, c->force, c->is_live, &said, &err), 0);
	check_host(c->check);
	pending = count_pending();
	end();
	if (said.p && strcmp(said.p, c->said) == 0 && pending == c->pending)
		return true;
	fprintf(stderr, "case '%s'\nwant:\n%sgot:\n%spending: %zu\n", c->name, c->said,
		said.p ? said.p : "", pending);
	return false;
}

static void test_taken(void **state)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		bad += !is_taken(&cases[i]);
	assert_int_equal(bad, 0);
}

/* A folder of another user: what is made belongs to him, and what he could not do is not done. */
static void test_owner(void **state)
{
	scoped_str struct str said = {0};
	struct err err;

	owner_uid = 1234;
	owner_gid = 1235;
	id_base = 100000;
	begin("chown 1234:1235 .; echo a > a; chown 1234:7 a; echo r > r; mkdir s; chmod 755 s; "
	      "mkdir d; "
	      "chown 1234:1235 d",
		"echo 1 >> a; echo 2 > n; echo 3 > d/n; chown -h 100000:100000 n d d/n; echo 4 > "
		"s/n; "
		"chown 100000:100000 s/n; echo 5 >> r; chown 100000 a",
		":");
	assert_int_equal(apply_paths("", false, false, &said, &err), 0);
	check_host("test $(stat -c %u:%g a) = 1234:7; test $(stat -c %u:%g n) = 1234:1235; "
		   "test $(stat -c %u:%g d/n) = 1234:1235; test ! -e s/n; grep -q 5 r && exit 1; "
		   "grep -q 1 a");
	end();
	owner_uid = owner_gid = id_base = 0;
	assert_string_equal(said.p, "done a\ndone d/n\ndone n\n"
				    "refused r: belongs to another user (0) on the host\n"
				    "refused s/n: Permission denied\n");
}

/* The disk is full half-way: each file is the old one or the new one, and a second try ends the work. */
static void test_full_disk(void **state)
{
	scoped_mem char *host = mem_printf("%s/host", top);
	scoped_str struct str said = {0}, again = {0};
	struct err err;

	run_script(top, "mkdir host");
	assert_int_equal(mount("tmpfs", host, "tmpfs", 0, "size=256k"), 0);
	begin("echo old > a; echo old > m; echo old > z",
		"echo new > a; dd if=/dev/zero of=m bs=1k count=400; echo new > z", ":");
	assert_int_equal(apply_paths("", false, false, &said, &err), -ENOSPC);
	assert_string_equal(
		said.p, "done a\nrefused m: No space left on device\nrefused z: not reached\n");
	check_host("test $(cat a) = new; test $(cat m) = old; test $(cat z) = old");
	assert_int_equal(mount(NULL, host, NULL, MS_REMOUNT, "size=2m"), 0);
	assert_int_equal(apply_paths("", false, false, &again, &err), 0);
	assert_string_equal(again.p, "done m\ndone z\n");
	check_host("test $(stat -c %s m) = 409600; test $(cat z) = new");
	assert_int_equal(umount2(host, MNT_DETACH), 0);
	end();
}

/* What the host has mounted in its folder is as invisible to us as to the sandbox, and nothing is written there. */
static void test_mount_below(void **state)
{
	scoped_mem char *mounted = mem_printf("%s/host/d e", top);
	scoped_str struct str said = {0};
	struct err err;

	run_script(top, "mkdir -p 'host/d e'; echo a > 'host/d e/f'; echo b > host/k");
	assert_int_equal(mount("tmpfs", mounted, "tmpfs", 0, NULL), 0);
	run_script(mounted, "echo z > f; echo z > g");
	begin(":", "rm -r 'd e'; echo 1 >> k", ":");
	assert_int_equal(apply_paths("", false, false, &said, &err), 0);
	assert_int_equal(umount(mounted), 0);
	check_host("test $(cat 'd e/f') = a");
	end();
	assert_string_equal(said.p,
		"refused d e: Device or resource busy\n"
		"refused d e/f: another file system is mounted there on the host\n"
		"done k\n");
}

/* What the host's files held at the end of a run is known: the same again is no change. */
static void test_seen(void **state)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped(changes) struct changes *changes = NULL;
	scoped_str struct str said = {0};
	struct changes_list list = {.roots = &changes, .n = 1};
	scoped_mem char *host = mem_printf("%s/host", top);
	struct err err;

	begin("echo a > a; echo b > b", "echo 1 >> a; echo 1 >> b", ":");
	open_set(&set);
	changes = read_changes(set);
	assert_int_equal(changes_keep_seen(set, &list), 0);
	run_script(host, "touch a; echo b > b.tmp; mv b.tmp b");
	assert_int_equal(apply_paths("", false, false, &said, &err), 0);
	end();
	assert_string_equal(said.p, "done a\ndone b\n");
}

/* After an apply the sandbox works on: only what it did since is pending, and it is no change of the host's. */
static void test_works_on(void **state)
{
	scoped_mem char *merged = mem_printf("%s/merged", top);
	scoped_str struct str said = {0}, again = {0};
	struct err err;

	begin("echo a > a; echo b > b", "echo 1 >> a; chmod 4755 b", ":");
	assert_int_equal(apply_paths("", false, true, &said, &err), 0);
	assert_int_equal(count_pending(), 0);
	run_script(merged, "echo 2 >> a; rm b");
	assert_int_equal(apply_paths("", false, true, &again, &err), 0);
	check_host("test \"$(tr -d '\\n' < a)\" = a12; test ! -e b");
	end();
	assert_string_equal(said.p, "done a\nless b: without its set-id bits\n");
	assert_string_equal(again.p, "done a\ndone b\n");
}

static void discard_paths(const char *text, size_t want)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped(changes) struct changes *changes = NULL;
	struct apply_options options = {0};
	char **paths = split(text, &options.n_paths);
	struct err err;
	size_t n;

	options.paths = (const char *const *)paths;
	open_set(&set);
	changes = read_changes(set);
	assert_int_equal(discard_changes(set, changes, &options, &n, &err), 0);
	assert_int_equal(n, want);
	free_paths(paths, options.n_paths);
}

static void test_discard(void **state)
{
	scoped_mem char *upper = mem_printf("%s/set/0/upper/n/x", top);
	scoped_str struct str said = {0};
	struct err err;

	begin("echo a > a; echo b > b; mkdir d; echo 1 > d/f; echo 2 > d/g",
		"echo 1 >> a; rm b; mkdir n; echo x > n/x; rm -r d; mkdir d; echo 3 > d/f", ":");
	discard_paths("n b d", 4);
	assert_int_equal(access(upper, F_OK), -1);
	assert_int_equal(count_pending(), 1);
	assert_int_equal(apply_paths("", false, false, &said, &err), 0);
	check_host("grep -q 1 a; test -e b; test ! -e n; test $(cat d/f) = 1; test -e d/g");
	end();
	assert_string_equal(said.p, "done a\n");
}

static void test_discard_all(void **state)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped_mem char *dir = mem_printf("%s/set", top);
	scoped_mem char *merged = mem_printf("%s/merged", top);
	scoped_mem char *trash = mem_printf("%s/trash", top);
	struct err err;

	begin("echo a > a", "echo 1 >> a; mkdir -p x/y; echo z > x/y/z", ":");
	assert_int_equal(umount(merged), 0);
	open_set(&set);
	assert_int_equal(discard_empty_set(set, trash, &err), 0);
	assert_int_equal(discard_set(set, trash, &err), 0);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(rmdir(trash), 0);
	run_script(top, "rm -rf host merged");
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_mount_below),
		cmocka_unit_test(test_seen),
		cmocka_unit_test(test_works_on),
		cmocka_unit_test(test_discard),
		cmocka_unit_test(test_discard_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	return run_in_namespace(run);
}
