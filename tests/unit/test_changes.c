/* SPDX-License-Identifier: Apache-2.0 */
/* Real overlays in a mount namespace of our own, with the options that a sandbox's have. A case is three shell scripts
 * (the host's folder, what the sandbox does, what the host does meanwhile) and the list that must come of it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "manifest/changes.h"
#include "manifest/changes_json.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

static char top[] = "/tmp/test_changes.XXXXXX";

struct changes_case {
	const char *name, *host, *inside, *meanwhile, *want;
};

static const struct changes_case cases[] = {
	{"nothing", "echo a > a", ":", ":", ""},
	{"touch is no change", "echo a > a; mkdir d; echo b > d/b",
		"touch a d/b d; touch -d 2020-01-01 a", ":", ""},
	{"same bytes again", "echo a > a", "echo a > a; cp a t; mv t a", ":", ""},
	{"same size and time, other bytes", "echo 0000 > a; touch -d 2020-01-01 a",
		"echo 1111 > a; touch -d 2020-01-01 a", ":", "changed a\n"},
	{"added", "echo a > a", "mkdir -p n/e m; echo x > n/x", ":",
		"added m directory\nadded n/e directory\nadded n/x\n"},
	{"removed folder", "mkdir -p d/e f; echo a > d/a; echo b > d/e/b; ln -s a d/l", "rm -r d f",
		":", "removed d/a\nremoved d/e/b\nremoved d/l link\nremoved f directory\n"},
	{"removed and made again", "mkdir -p base/b; echo a > base/a; echo c > base/b/c",
		"rm -rf base; mkdir base; echo n > base/n; cp -r base bak; mv bak/n bak/n2; rm -rf "
		"base; "
		"mv bak base",
		":", "removed base/a\nremoved base/b/c\nadded base/n2\n"},
	{"removed and written again alike",
		"mkdir -p d/e; echo a > d/a; echo b > d/e/b; echo c > d/e/c",
		"rm -r d; mkdir -p d/e; echo a > d/a; echo b > d/e/b", ":", "removed d/e/c\n"},
	{"renamed folder", "mkdir -p old/sub; echo 1 > old/sub/f; echo 2 > old/g; echo 3 > old/h",
		"mv old new; echo more >> new/sub/f; rm new/h; echo x > new/x", ":",
		"renamed old -> new directory\nremoved old/h\nchanged old/sub/f -> "
		"new/sub/f\nadded new/x\n"},
	{"renamed folder below a new one", "mkdir -p a/b/c; echo 1 > a/b/c/f; echo 2 > a/k",
		"mkdir z; mv a/b z/b2; rm a/k", ":",
		"removed a/k\nrenamed a/b -> z/b2 directory\n"},
	{"folder in a renamed folder renamed out", "mkdir -p p/c; echo 1 > p/c/f; echo 2 > p/g",
		"mv p q; mv q/c c2", ":",
		"renamed p/c -> c2 directory\nrenamed p -> q directory\n"},
	{"two folders swapped", "mkdir a b; echo 1 > a/f; echo 2 > b/g", "mv a t; mv b a; mv t b",
		":", "renamed b -> a directory\nrenamed a -> b directory\n"},
	{"folder over a removed one", "mkdir -p a b; echo 1 > a/f; echo 2 > b/g", "rm -r b; mv a b",
		":", "renamed a -> b directory\nremoved b/g\n"},
	{"renamed file", "echo g > g; echo k > k", "mv g G; mv k d; echo more >> d", ":",
		"renamed g -> G\nrenamed k -> d\n"},
	{"renamed link", "ln -s nowhere l", "mv l m", ":", "renamed l -> m link\n"},
	{"file renamed over another", "echo a > a; echo b > b", "mv a b", ":",
		"removed a\nchanged b\n"},
	{"copied and removed is not renamed", "echo a > a", "cp a b; rm a", ":",
		"removed a\nadded b\n"},
	{"mode only", "echo b > b; chmod 644 b; mkdir d", "chmod 4755 b; chmod 700 d", ":",
		"mode b 0644 4755\nmode d 0755 0700 directory\n"},
	{"owner only", "echo c > c", "chown 1:1 c", ":", "mode c owner\n"},
	{"attribute only", "echo d > d",
		"/usr/bin/python3 -c \"import os; os.setxattr('d', 'user.x', b'1')\"", ":",
		"mode d attributes\n"},
	{"link target", "ln -s a s; ln -s x t", "ln -sfn b s; ln -sfn x t", ":",
		"changed s link\n"},
	{"file to folder", "echo e > e", "rm e; mkdir e; echo q > e/in", ":",
		"removed e\nadded e/in\n"},
	{"file to empty folder", "echo e > e", "rm e; mkdir e", ":",
		"removed e\nadded e directory\n"},
	{"folder to file", "mkdir -p d/e; echo 1 > d/e/f", "rm -r d; echo d > d", ":",
		"added d\nremoved d/e/f\n"},
	{"file to link", "echo f > f", "ln -sf x f", ":", "changed f file link\n"},
	{"pipe and socket", "echo a > a", "mkfifo p; rm a; mkfifo a", ":",
		"changed a file pipe\nadded p pipe\n"},
	{"skipped",
		"mkdir -p .git/hooks s/node_modules/m; echo 1 > .git/index; echo 2 > "
		"s/node_modules/m/x",
		"echo 3 >> .git/index; echo 4 > .git/hooks/pre-commit; rm -r s/node_modules/m; "
		"echo 5 > s/a",
		":", "skipped .git 2 .git/hooks/pre-commit\nadded s/a\nskipped s/node_modules 1\n"},
	{"runs on host",
		"echo '{\"scripts\":{\"a\":\"b\"},\"x\":1}' > package.json; mkdir k; cp "
		"package.json k",
		"echo '{\"scripts\":{\"a\":\"c\"},\"x\":1}' > package.json; "
		"echo '{\"scripts\":{\"a\":\"b\"},\"x\":2}' > k/package.json; "
		"mkdir -p .github/workflows; echo y > .github/workflows/t.yml; echo e > .envrc; "
		"echo m > Makefile",
		":",
		"added .envrc runs\nadded .github/workflows/t.yml runs\nadded Makefile\n"
		"changed k/package.json\nchanged package.json runs\n"},
	{"host edits the same file", "echo a > a; echo b > b; echo c > c",
		"echo 1 >> a; rm b; echo 1 >> c", "echo 2 >> a; echo 2 >> b",
		"changed a host\nremoved b host\nchanged c\n"},
	{"host adds to a removed folder", "mkdir d; echo a > d/a", "rm -r d", "echo n > d/n",
		"removed d/a\nremoved d/n host\n"},
	{"host removes what was changed", "echo a > a", "echo 1 >> a", "rm a", "added a host\n"},
	{"host removes what was removed", "echo a > a", "rm a", "rm a", ""},
	{"host adds the same", "echo a > a", "echo n > n; echo m > m", "echo n > n; echo o > m",
		"changed m host\n"},
	{"names of any bytes", "printf x > \"$(printf 'two\\nlines')\"",
		"rm two*; printf y > \"$(printf 'fake\\n0  passwd')\"; printf z > ./-", ":",
		"added -\nadded fake\n0  passwd\nremoved two\nlines\n"},
	{"what sorts between a folder and its contents", "mkdir a; echo 1 > a/f",
		"echo 2 > a-b; rm -r a; echo 3 > a.c", ":", "removed a/f\nadded a-b\nadded a.c\n"},
};

static void run_script(const char *dir, const char *script)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (chdir(dir) == 0)
			execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("script failed in %s: %s", dir, script);
}

static int open_set(struct change_set **ret)
{
	scoped_mem char *dir = mem_printf("%s/set", top);
	struct err err = {0};
	int r = change_set_open(dir, ret, &err);

	if (r < 0)
		fail_msg("%s", err.msg);
	return r;
}

static void write_set(void)
{
	scoped_mem char *dir = mem_printf("%s/set", top);
	scoped_mem char *path = mem_printf("%s/changes.json", dir);
	struct timespec now;
	scoped_mem char *text = NULL;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	text = mem_printf("{\"v\":1,\"created_ns\":%lld,\"mounts\":[{\"n\":0,\"host\":\"%s/host\","
			  "\"guest\":\"/proj\",\"owner_uid\":0,\"owner_gid\":0,\"id_base\":0,"
			  "\"upper\":\"0/upper\"}]}",
		now.tv_sec * 1000000000LL + now.tv_nsec, top);
	assert_int_equal(fdio_replace(AT_FDCWD, path, text, strlen(text), 0600), 0);
}

static void mount_set(void)
{
	scoped_mem char *merged = mem_printf("%s/merged", top);
	scoped_mem char *options = mem_printf("lowerdir=%s/host,upperdir=%s/set/0/upper,"
					      "workdir=%s/set/0/work,redirect_dir=on,metacopy=on",
		top, top, top);

	if (mount("overlay", merged, "overlay", 0, options) < 0)
		fail_msg("mount overlay: %s", strerror(errno));
}

static void begin(const struct changes_case *c)
{
	scoped_mem char *host = mem_printf("%s/host", top), *merged = mem_printf("%s/merged", top);

	run_script(top, "mkdir -p host merged set/0/upper set/0/work");
	run_script(host, c->host);
	usleep(20000); /* the clock of file times has a coarse tick */
	write_set();
	usleep(20000);
	mount_set();
	run_script(merged, c->inside);
	run_script(host, c->meanwhile);
}

static void end(void)
{
	scoped_mem char *merged = mem_printf("%s/merged", top);

	assert_int_equal(umount(merged), 0);
	run_script(top, "rm -rf host merged set");
}

static void list_rights(struct str *out, const struct change *c)
{
	if (c->kind == CHANGE_MODE && ((c->before.mode ^ c->after.mode) & 07777))
		str_printf(out, " %04o %04o", c->before.mode & 07777, c->after.mode & 07777);
	if (c->flags & CHANGE_OWNER)
		str_puts(out, " owner");
	if (c->flags & CHANGE_ATTRIBUTES)
		str_puts(out, " attributes");
}

static const char *type_word(mode_t mode)
{
	return S_ISDIR(mode)    ? "directory"
	       : S_ISLNK(mode)  ? "link"
	       : S_ISFIFO(mode) ? "pipe"
	                        : "file";
}

static void list_type(struct str *out, const struct change *c)
{
	mode_t before = c->before.mode, after = c->after.mode;

	if (before && after && ((before ^ after) & S_IFMT))
		str_printf(out, " %s %s", type_word(before), type_word(after));
	else if (!S_ISREG(after ? after : before))
		str_printf(out, " %s", type_word(after ? after : before));
}

static void list_one(struct str *out, const struct change *c)
{
	static const char *const words[] = {"", "added", "removed", "changed", "renamed", "mode"};

	str_printf(out, "%s ", words[c->kind]);
	if (c->from && c->kind != CHANGE_REMOVED)
		str_printf(out, "%s -> ", c->from);
	str_puts(out, changes_shown_path(c));
	list_rights(out, c);
	list_type(out, c);
	if (c->flags & CHANGE_RUNS_ON_HOST)
		str_puts(out, " runs");
	if (c->flags & CHANGE_HOST_CHANGED)
		str_puts(out, " host");
	str_putc(out, '\n');
	assert_int_equal(c->before.sha256[0] != 0, S_ISREG(c->before.mode));
	assert_int_equal(c->after.sha256[0] != 0, S_ISREG(c->after.mode));
}

static void list_skipped(struct str *out, const struct changes *changes, size_t *i)
{
	const struct change *first = &changes->items[*i];
	scoped_str struct str notable = {0};
	size_t n = 0;

	for (; *i < changes->n_items; ++*i) {
		const struct change *c = &changes->items[*i];

		if (c->skipped_len != first->skipped_len ||
			strncmp(c->path, first->path, c->skipped_len) != 0)
			break;
		n += !(c->flags & CHANGE_QUIET);
		if (c->flags & CHANGE_RUNS_ON_HOST)
			str_printf(&notable, " %s", c->path);
	}
	str_printf(out, "skipped %.*s %zu%s\n", (int)first->skipped_len, first->path, n,
		notable.p ? notable.p : "");
}

static struct changes *read_changes(const struct change_set *set)
{
	struct changes_query query = {.layer = &set->layers[0], .below = ""};
	struct changes *changes = NULL;
	struct err err = {0};

	if (changes_read(set, &query, &changes, &err) < 0)
		fail_msg("%s", err.msg);
	return changes;
}

static void list_all(struct str *out)
{
	scoped(change_set) struct change_set *set = NULL;
	scoped(changes) struct changes *changes = NULL;

	open_set(&set);
	changes = read_changes(set);
	if (changes->unread)
		str_printf(out, "unread %s\n", changes->unread);
	for (size_t i = 0; i < changes->n_items;) {
		if (changes->items[i].flags & CHANGE_SKIPPED)
			list_skipped(out, changes, &i);
		else if (!changes_is_listed(&changes->items[i++]))
			continue;
		else
			list_one(out, &changes->items[i - 1]);
	}
}

static void test_lists(void **state)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped_str struct str got = {0};

		begin(&cases[i]);
		list_all(&got);
		end();
		if (strcmp(got.p ? got.p : "", cases[i].want) == 0)
			continue;
		print_error("case '%s'\nwant:\n%sgot:\n%s", cases[i].name, cases[i].want,
			got.p ? got.p : "");
		bad++;
	}
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("skipped: mounting overlays needs root\n");
		return 77;
	}
	if (!mkdtemp(top))
		return 1;
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	(void)path_remove_all(AT_FDCWD, top);
	return r;
}
