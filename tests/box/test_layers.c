/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes over many shared layers, whose files have owners of their own, by both of the kernel's ways. Skips (77)
 * where it is not root. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "box.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define N_LAYERS    100 /* their names are longer than what fsconfig(2) takes */
#define OTHER_OWNER 3000000u

static void put_file(const char *dir, const char *name, const char *text, uint32_t owner)
{
	scoped_mem char *path = mem_printf("%s/%s", dir, name), *above = mem_dup(path);

	*strrchr(above, '/') = '\0';
	assert_int_equal(path_make_all(above, 0755), 0);
	assert_int_equal(chown(above, owner, owner), 0);
	assert_int_equal(fdio_put(AT_FDCWD, path, text), -ENOENT);
	(void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	assert_int_equal(fdio_put(AT_FDCWD, path, text), 0);
	assert_int_equal(chown(path, owner, owner), 0);
}

/* A root that can echo and no more: a shell with what it is linked to. */
static void put_shell(const char *dir)
{
	scoped_mem char *text = mem_printf(
		"mkdir -p %s/bin && for f in /bin/sh $(ldd /bin/sh | grep -o '/[^ ]*'); do "
		"mkdir -p %s${f%%/*} && cp -L $f %s$f; done",
		dir, dir, dir);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", text, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The topmost hides, the one at the bottom can run something; each has owners of its own. */
static void put_layers(struct box *box, const char *guest, const char *top, const char *bottom)
{
	scoped_mem char *gone = mem_printf("%s/gone", top), *d = mem_printf("%s/d", top);

	put_file(top, "both", "top", OTHER_OWNER + 7);
	put_file(top, "d/new", "top", OTHER_OWNER);
	assert_int_equal(setxattr(d, "trusted.overlay.opaque", "y", 1, 0), 0);
	assert_int_equal(mknod(gone, S_IFCHR, 0), 0);
	put_file(bottom, "both", "bottom", 7);
	put_file(bottom, "gone", "bottom", 0);
	put_file(bottom, "d/old", "bottom", 0);
	put_file(bottom, "below", "bottom", 8);
	spec_add_lower(&box->spec, guest, top, OTHER_OWNER);
	for (int i = 0; i < N_LAYERS - 2; i++) {
		scoped_mem char *dir = mem_printf("%s.%d", top, i);

		assert_int_equal(path_make_all(dir, 0755), 0);
		spec_add_lower(&box->spec, guest, dir, i % 2 ? OTHER_OWNER : 0);
	}
	spec_add_lower(&box->spec, guest, bottom, 0);
}

static void remove_layers(struct box *box)
{
	for (size_t i = 0; i < box->spec.n_lowers; i++) {
		(void)path_remove_all(AT_FDCWD, box->spec.lowers[i].dir);
		free(box->spec.lowers[i].dir);
		free(box->spec.lowers[i].guest);
	}
	free(box->spec.lowers);
}

static void assert_inside(struct box *box, const char *name, uint32_t owner)
{
	struct stat st;

	assert_int_equal(fstatat(sandbox_root_fd(box->sandbox), name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_uid, sandbox_id_base(box->sandbox) + owner);
	assert_int_equal(st.st_gid, sandbox_id_base(box->sandbox) + owner);
}

/* Nothing but shared layers, as of an image. */
static void try_image(void)
{
	scoped_mem char *top = mem_printf("%s/top", state),
			*bottom = mem_printf("%s/bottom", state);
	struct box box = {.spec = {.image = (char[]){"an image"}}};

	assert_int_equal(path_make_all(bottom, 0755), 0);
	put_shell(bottom);
	put_layers(&box, "/", top, bottom);
	box_open(&box);
	expect(&box, "echo /both* /gone* /d/* /below*; read a </both; echo $a; echo x >/both",
		"/both /gone* /d/new /below\ntop\n");
	assert_inside(&box, "both", 7);
	assert_inside(&box, "below", 8);
	assert_inside(&box, "d", 0);
	box_close(&box);
	remove_layers(&box);
}

/* Over the host view and over a mount: what lies below them shows through. */
static void try_over(const char *guest, const char *also)
{
	char *project = make_project();
	scoped_mem char *top = mem_printf("%s/top", state),
			*bottom = mem_printf("%s/bottom", state);
	scoped_mem char *command = mem_printf(
		"cd %s && echo both* gone* d/* below* && cat both && echo x >both && ls -d %s && "
		"stat -c '%%u %%g' below d/new",
		guest, also);
	scoped_mem char *want = mem_printf("both gone* d/new below\ntop%s\n8 8\n0 0\n", also);
	struct box box = {0};

	mount_project(&box, project, SPEC_MOUNT_COW);
	put_layers(&box, guest, top, bottom);
	box_open(&box);
	expect(&box, command, want);
	box_close(&box);
	remove_layers(&box);
	unmount_project(&box, project);
}

static void test_layers(void **unused)
{
	for (int old = 0; old < 2; old++) {
		if (old)
			assert_int_equal(setenv("CLOCHE_OLD_OVERLAY", "1", 1), 0);
		try_image();
		try_over("/", "/etc/hosts");
		try_over("/usr", "/usr/bin/env");
		try_over("/home/me/project", "/home/me/project/file");
	}
	assert_int_equal(unsetenv("CLOCHE_OLD_OVERLAY"), 0);
}

/* More than can be joined, one that lies at no layer's place, one that is not there. */
static void test_layers_refused(void **unused)
{
	static const struct {
		const char *guest, *dir, *reason;
		size_t n;
	} cases[] = {{"/", "/usr", "more than 128 layers lie at '/'", 129},
		{"/nowhere", "/usr", "a shared layer is for '/nowhere'", 1},
		{"/", "/not-there", "open '/not-there'", 1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct box box = {0};

		for (size_t k = 0; k < cases[i].n; k++)
			spec_add_lower(&box.spec, cases[i].guest, cases[i].dir, 0);
		assert_true(box_create(&box) < 0);
		if (!strstr(box.err.msg, cases[i].reason))
			fail_msg("%s", box.err.msg);
		box_close(&box);
		for (size_t k = 0; k < cases[i].n; k++) {
			free(box.spec.lowers[k].dir);
			free(box.spec.lowers[k].guest);
		}
		free(box.spec.lowers);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_layers_refused),
	};

	if (geteuid() != 0) {
		puts("skipped: needs root");
		return 77;
	}
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
