/* SPDX-License-Identifier: Apache-2.0 */
/* Real sandboxes by src/sandbox alone, for the tests of this folder: each works below `state`. */
#ifndef TESTS_BOX_BOX_H
#define TESTS_BOX_BOX_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cmocka.h>

#include "sandbox/sandbox.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define WAIT_MS  30000
#define TEXT_MAX (1u << 20)

static char *state; /* a folder of this run */

struct box {
	struct spec spec;
	struct spec_mount mount;
	char *hide[2];
	char id[ID_SIZE];
	char *dir, *changes;
	struct sandbox *sandbox;
	struct err err;
};

struct result {
	struct str out;
	struct sandbox_exit exit;
	int status;
	struct err err;
};

static inline int open_init(void)
{
	const char *path = getenv("CLOCHE_INIT");

	return open(path ? path : "build/cloche-init", O_RDONLY | O_CLOEXEC);
}

static inline int box_create(struct box *box)
{
	scoped_fd int init_fd = open_init();
	struct sandbox_config config = {.id = box->id, .spec = &box->spec, .state_dir = state};

	config.init_fd = init_fd;
	config.trust_fd = -1;
	assert_true(init_fd >= 0);
	id_new("sb", box->id);
	box->dir = mem_printf("%s/sandboxes/%s", state, box->id);
	box->changes = mem_printf("%s/changes/%s", state, box->id);
	assert_int_equal(path_make_all(box->dir, 0700), 0);
	assert_int_equal(path_make_all(box->changes, 0700), 0);
	config.dir = box->dir;
	config.changes_dir = box->changes;
	return sandbox_create(&config, &box->sandbox, &box->err);
}

static inline void box_open(struct box *box)
{
	if (box_create(box) < 0)
		fail_msg("%s", box->err.msg);
}

static inline bool has_cgroup(const struct box *box)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/unified/cloche/%s", box->id);
	if (access(path, F_OK) == 0)
		return true;
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/cloche/%s", box->id);
	return access(path, F_OK) == 0;
}

/* Nothing may be left: neither of a box that lived nor of one that failed half-way. */
static inline void box_close(struct box *box)
{
	if (box->sandbox)
		sandbox_destroy(box->sandbox, false);
	sandbox_free(box->sandbox);
	assert_false(has_cgroup(box));
	assert_int_equal(rmdir(box->dir), 0);
	(void)path_remove_all(AT_FDCWD, box->changes);
	free(box->dir);
	free(box->changes);
}

static inline bool wait_for(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

static inline struct sandbox_exec *start(struct box *box, const struct spec_exec *spec, int out_fd)
{
	struct sandbox_exec_config config = {.spec = spec,
		.program_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = out_fd,
		.stderr_fd = out_fd};
	struct sandbox_exec *exec = NULL;
	char id[ID_SIZE];

	id_new("ex", id);
	config.id = id;
	if (sandbox_exec_prepare(box->sandbox, &config, &exec, &box->err) < 0)
		fail_msg("%s", box->err.msg);
	if (sandbox_exec_start(exec, &box->err) < 0)
		fail_msg("%s", box->err.msg);
	return exec;
}

static inline void run(struct box *box, const struct spec_exec *spec, struct result *ret)
{
	struct sandbox_exec *exec;
	int pair[2];

	*ret = (struct result){0};
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	exec = start(box, spec, pair[1]);
	(void)close(pair[1]);
	assert_true(wait_for(sandbox_exec_status_fd(exec), WAIT_MS));
	ret->status = sandbox_exec_status(exec, &ret->err);
	assert_true(wait_for(sandbox_exec_pidfd(exec), WAIT_MS));
	assert_int_equal(sandbox_exec_reap(exec, &ret->exit), 0);
	if (sandbox_exec_n_left(exec) == 0)
		assert_true(fdio_read_all(pair[0], TEXT_MAX, &ret->out) >= 0);
	str_putc(&ret->out, '\0');
	(void)close(pair[0]);
	sandbox_exec_free(exec);
}

static inline void run_shell(struct box *box, const char *command, struct result *ret)
{
	struct spec_exec spec = {.command = (char *)(uintptr_t)command};

	run(box, &spec, ret);
}

/* Runs a command that must succeed and print exactly that. */
static inline void expect(struct box *box, const char *command, const char *want)
{
	struct result got;

	run_shell(box, command, &got);
	if (strcmp(got.out.p, want) != 0 || got.exit.code || got.exit.signal)
		fail_msg("%s\n exit %d signal %d\n got: %s\nwant: %s", command, got.exit.code,
			got.exit.signal, got.out.p, want);
	str_done(&got.out);
}

static inline char *make_project(void)
{
	char *path = mem_printf("%s/project.XXXXXX", state);
	int fd;

	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(mkdirat(fd, ".ssh", 0755), 0);
	assert_int_equal(mkdirat(fd, "sub", 0755), 0);
	(void)close(openat(fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	(void)close(openat(fd, "rootfile", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	(void)close(openat(fd, "sub/.env.local", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	(void)close(openat(fd, ".ssh/id", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	assert_int_equal(fchown(fd, 1234, 1235), 0);
	assert_int_equal(fchownat(fd, "file", 1234, 1235, 0), 0);
	assert_int_equal(fchownat(fd, "sub", 1234, 1235, 0), 0);
	assert_int_equal(fchownat(fd, "sub/.env.local", 1234, 1235, 0), 0);
	(void)close(fd);
	return path;
}

static inline void mount_project(struct box *box, char *path, enum spec_mount_mode mode)
{
	box->mount = (struct spec_mount){
		.host = path, .guest = (char[]){"/home/me/project"}, .mode = mode};
	box->mount.guest = mem_dup("/home/me/project");
	box->hide[0] = (char *)(uintptr_t) ".env*";
	box->hide[1] = (char *)(uintptr_t) ".ssh";
	box->spec.mounts = &box->mount;
	box->spec.n_mounts = 1;
	box->spec.hide.items = box->hide;
	box->spec.hide.n = 2;
}

static inline void unmount_project(struct box *box, char *path)
{
	free(box->mount.guest);
	(void)path_remove_all(AT_FDCWD, path);
	free(path);
}

static inline int set_up(void **unused)
{
	const char *base = getenv("CLOCHE_STATE");

	state = mem_printf("%s/box.XXXXXX", base ? base : "/tmp");
	return mkdtemp(state) && chmod(state, 0755) == 0 ? 0 : -1;
}

static inline int tear_down(void **unused)
{
	(void)path_remove_all(AT_FDCWD, state);
	free(state);
	return 0;
}

#endif
