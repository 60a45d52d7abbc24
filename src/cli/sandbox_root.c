/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox_root.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/records.h"
#include "cli/session.h"
#include "util/mem.h"
#include "util/scoped.h"

static int open_root(struct sandbox_root *root, const json_t *status, struct err *err)
{
	json_int_t pid = json_integer_value(json_object_get(status, "init_pid"));
	scoped_mem char *path = mem_printf("/proc/%lld/root", (long long)pid);

	root->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	root->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root->pidfd < 0 || root->fd < 0)
		return err_set(err, -errno, "open the sandbox's root: %m");
	return 0;
}

/* Asked before and after the root is opened: a number that was given to another process meanwhile would show. */
static int open_between(struct session *session, struct sandbox_root *root, struct err *err)
{
	json_t *before = NULL, *after = NULL;
	int r = session_ask(session, "status", slice_of(""), &before, err);

	if (r == 0)
		r = open_root(root, before, err);
	if (r == 0)
		r = session_ask(session, "status", slice_of(""), &after, err);
	if (r == 0) {
		const char *cwd = json_string_value(json_object_get(after, "cwd"));

		str_puts(&root->cwd, cwd ? cwd : "/");
		root->id_base = (uint32_t)json_integer_value(json_object_get(after, "id_base"));
	}
	json_decref(before);
	json_decref(after);
	return r;
}

int sandbox_root_open(
	const struct cli *cli, const char *name, struct sandbox_root *ret_root, struct err *err)
{
	struct sandbox_root root = {.fd = -1, .pidfd = -1};
	struct session session;
	int r = cli_need_root(err);

	if (r == 0)
		r = records_resolve(cli, name, root.id, err);
	if (r < 0)
		return r;
	r = session_connect(&session, cli, root.id, err);
	if (r < 0)
		return r;
	r = open_between(&session, &root, err);
	session_done(&session);
	if (r < 0)
		sandbox_root_done(&root);
	else
		*ret_root = root;
	return r;
}

void sandbox_root_done(struct sandbox_root *root)
{
	scoped_close(&root->fd);
	scoped_close(&root->pidfd);
	root->fd = root->pidfd = -1;
	str_done(&root->cwd);
}

bool sandbox_root_is_kernels(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
		       fs.f_type == CGROUP2_SUPER_MAGIC);
}

static int open_inside(const struct sandbox_root *root, const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
}

int sandbox_root_folder(const struct sandbox_root *root, const char *path, struct err *err)
{
	scoped_fd int fd = open_inside(root, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return err_set(err, -errno, "open '%s' of sandbox %s: %m", path, root->id);
	if (sandbox_root_is_kernels(fd))
		return err_set(err, -EXDEV,
			"'%s' is made by the kernel: there are no files to list", path);
	return take_fd(&fd);
}

int sandbox_root_check_file(const struct sandbox_root *root, const char *path, struct err *err)
{
	scoped_fd int fd = open_inside(root, path, O_PATH | O_NOFOLLOW);

	return fd < 0 ? err_set(err, -errno, "open '%s' of sandbox %s: %m", path, root->id) : 0;
}

bool sandbox_root_has_ended(const struct sandbox_root *root)
{
	struct pollfd p = {.fd = root->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}
