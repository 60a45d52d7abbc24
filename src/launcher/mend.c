/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/mend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/rest.h"
#include "launcher/hostkey.h"
#include "launcher/launch.h"
#include "launcher/seal.h"
#include "util/id.h"
#include "util/mem.h"
#include "util/scoped.h"

#define END_BYTES (64 << 10)

static bool is_unlocked(int sandboxes, const char *id)
{
	scoped_mem char *path = mem_printf("%s/lock", id);
	scoped_fd int fd = openat(sandboxes, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT; /* killed before it had one */
	return flock(fd, LOCK_EX | LOCK_NB) ==
	       0; /* let go of at once: the mender takes it for itself */
}

/* While all are held, none is just being made: see launch.c. */
static bool is_orphan(int sandboxes, const char *id)
{
	bool unlocked;

	if (flock(sandboxes, LOCK_EX) < 0)
		return false;
	unlocked = is_unlocked(sandboxes, id);
	(void)flock(sandboxes, LOCK_UN); /* cannot fail once held */
	return unlocked;
}

static int serve_and_wait(
	pid_t pid, int sock, struct hostkey *key, const char *state_dir, const char *id)
{
	struct err ignored;
	int status;

	while (seal_serve_one(sock, key, state_dir, id, &ignored) == 0)
		;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

/* Of a few blocks, which is what an end takes. */
static bool is_full(const char *dir)
{
	scoped_fd int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	int r = fd < 0 ? errno : posix_fallocate(fd, 0, END_BYTES);

	return r == ENOSPC || r == EDQUOT;
}

static int say_failed(const char *state_dir, const char *id, struct err *err)
{
	if (is_full(state_dir))
		return err_set(err, -ENOSPC,
			"the end of sandbox %s cannot be written: the disk of '%s' is full: make "
			"room on it, or throw away what the sandbox changed with `cloche discard "
			"%s`",
			id, state_dir, id);
	return err_set(err, -EIO, "sandbox %s could not be mended: CLOCHE_DEBUG=1 says why", id);
}

static int mend_one(const char *state_dir, const char *run_dir, const char *id, struct hostkey *key,
	struct err *err)
{
	char *args[] = {(char *)"mend", (char *)id, (char *)state_dir, (char *)run_dir, NULL};
	scoped_fd int near = -1;
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "make a socket: %m");
	near = pair[0];
	r = launch_helper(args, pair[1], -1, &pid, err);
	close(pair[1]);
	if (r < 0)
		return r;
	r = serve_and_wait(pid, near, key, state_dir, id);
	if (r == 0)
		return 1;
	return r == 1 ? 0 : say_failed(state_dir, id, err);
}

int mend_sandbox(const char *state_dir, const char *run_dir, const char *id, struct err *err)
{
	scoped(hostkey) struct hostkey *key = NULL;
	int r = hostkey_open(state_dir, &key, err);

	return r < 0 ? r : mend_one(state_dir, run_dir, id, key, err);
}

/* One that rests is in order but for a kill in a bad moment, for which only gc looks. */
static bool rests(int sandboxes, const char *id)
{
	scoped_mem char *path = mem_printf("%s/" REST_NAME, id);

	return faccessat(sandboxes, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int mend_all(const char *state_dir, const char *run_dir, size_t max_looked, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/sandboxes", state_dir);
	scoped(hostkey) struct hostkey *key = NULL;
	DIR *dir = opendir(path);
	int n_mended = 0, failure = 0;
	struct dirent *e;

	if (!dir)
		return errno == ENOENT ? 0 : err_set(err, -errno, "open '%s': %m", path);
	for (size_t looked = 0; (e = readdir(dir)) && (max_looked == 0 || looked < max_looked);) {
		int r;

		if (!id_is_valid("sb", e->d_name) ||
			(max_looked > 0 && rests(dirfd(dir), e->d_name)))
			continue;
		looked++;
		if (!is_orphan(dirfd(dir), e->d_name))
			continue;
		r = key ? 0 : hostkey_open(state_dir, &key, err);
		if (r == 0)
			r = mend_one(state_dir, run_dir, e->d_name, key, err);
		if (r < 0)
			failure = r;
		else
			n_mended += r;
	}
	closedir(dir);
	return failure ? failure : n_mended;
}

#define LOOK_MAX 32 /* folders: a host with thousands of sandboxes starts the next one as fast */

void mend_look(const char *state_dir, const char *run_dir)
{
	struct err ignored;

	(void)mend_all(state_dir, run_dir, LOOK_MAX,
		&ignored); /* `cloche gc` tells what stands in the way */
}
