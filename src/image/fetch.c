/* SPDX-License-Identifier: Apache-2.0 */
#include "image/fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/progress.h"
#include "sandbox/caps.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define PLACE        "/var/tmp"
#define NOT_FOUND    127 /* as a shell says it */
#define FAILED       126
#define STEP_MS      200
#define GRACE_NS     (2000 * CLOCK_NS_PER_MS) /* between asking it to end and ending it */
#define LAST_READS   64                       /* of what it wrote before its end */
#define WORDS_MAX    (64u << 10)
#define SENTENCE_MAX 300

/* All that is mounted here is seen by this child alone. */
static int enter_place(const struct fetch *f)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount(f->folder, PLACE, NULL, MS_BIND, NULL) < 0 || chdir(PLACE) < 0)
		return -errno;
	return 0;
}

static int become(const struct fetch *f)
{
	const struct passwd *pw = getpwuid(f->uid);
	scoped_mem char *run = mem_printf("/run/user/%u", (unsigned)f->uid);

	if (f->uid != geteuid() &&
		((pw ? initgroups(pw->pw_name, f->gid) : setgroups(1, &f->gid)) < 0 ||
			setgid(f->gid) < 0 || setuid(f->uid) < 0))
		return -errno;
	if (pw && f->uid != 0)
		(void)setenv("HOME", pw->pw_dir, 1);
	if (access(run, X_OK) == 0)
		(void)setenv("XDG_RUNTIME_DIR", run, f->uid != 0); /* root's own is not theirs */
	(void)setenv("TMPDIR", PLACE, 1);
	return 0;
}

static _Noreturn void run(const struct fetch *f, int words_fd)
{
	char *const argv[] = {(char[]){"skopeo"}, (char[]){"copy"}, (char[]){"--quiet"},
		(char *)f->place, (char[]){"dir:" PLACE "/" FETCH_FOLDER}, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r = enter_place(f);

	if (r == 0 && setpgid(0, 0) < 0)
		r = -errno;
	/* Its group is in the background of our terminal: what asks there is to fail, not to be stopped for good. */
	(void)signal(SIGTTIN, SIG_IGN);
	(void)signal(SIGTTOU, SIG_IGN);
	if (r == 0)
		r = caps_drop_bounding();
	if (r == 0)
		r = become(f);
	if (r == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			      prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(null, 0) < 0 ||
			      dup2(null, 1) < 0 || dup2(words_fd, 2) < 0))
		r = -errno;
	if (r == 0) {
		execvp(argv[0], argv);
		r = -errno;
	}
	(void)dprintf(words_fd, "it cannot be started over " PLACE ": %s\n", strerror(-r));
	_exit(r == -ENOENT && access(PLACE, F_OK) == 0 ? NOT_FOUND : FAILED);
}

/* Bytes in one folder. */
static uint64_t measure(int folder_fd)
{
	scoped_fd int fd =
		openat(folder_fd, FETCH_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t sum = 0;

	if (!dir)
		return 0;
	(void)take_fd(&fd); /* dir has it */
	while ((entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	}
	(void)closedir(dir);
	return sum;
}

/* Left as it is, to be waited for. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

/* With all it started (helpers that know passwords). */
static void ask_to_end(pid_t pid, int64_t *asked_ns)
{
	int64_t now = clock_mono_ns();

	if (!*asked_ns)
		*asked_ns = now;
	(void)kill(-pid, now - *asked_ns < GRACE_NS ? SIGTERM : SIGKILL);
}

/* What is there within ms. false: nothing, and nothing more comes. */
static bool read_words(int words_fd, int ms, struct str *words)
{
	struct pollfd p = {.fd = words_fd, .events = POLLIN};
	int ready = poll(&p, 1, ms);
	char piece[1024];
	ssize_t n;

	if (ready <= 0)
		return ms > 0;
	n = read(words_fd, piece, sizeof(piece));
	if (n > 0 && words->len < WORDS_MAX)
		str_add(words, piece, (size_t)n);
	return n > 0;
}

/* What it says until it ends: what it started may hold its stderr for longer. It is ended when we are, and where too much
 * comes, which is the answer. */
static bool watch(const struct fetch *f, pid_t pid, int words_fd, struct str *words)
{
	bool is_too_big = false, is_open = true;
	int64_t asked_ns = 0;

	while (!has_ended(pid)) {
		uint64_t len = measure(f->folder_fd);

		is_too_big = is_too_big || len > f->bytes_max;
		if (is_too_big || progress_is_stopped())
			ask_to_end(pid, &asked_ns);
		progress_show("fetching", len, 0);
		if (is_open)
			is_open = read_words(words_fd, STEP_MS, words);
		else
			(void)poll(NULL, 0, STEP_MS);
	}
	for (int i = 0; i < LAST_READS && is_open; i++)
		is_open = read_words(words_fd, 0, words);
	(void)kill(-pid, SIGKILL); /* it is its group's as long as it is not waited for */
	return is_too_big;
}

/* Its last line, which is where it says what went wrong. */
static struct slice last_line(const struct str *words)
{
	size_t end = words->len, from;

	while (end > 0 && words->p[end - 1] == '\n')
		end--;
	for (from = end; from > 0 && words->p[from - 1] != '\n'; from--)
		;
	return (struct slice){.p = words->p + from, .len = end - from};
}

static bool is_file_here(const char *place)
{
	const char *name = place + strlen("docker://");

	return strncmp(place, "docker://", strlen("docker://")) == 0 && access(name, F_OK) == 0;
}

static int too_big(const struct fetch *f, struct err *err)
{
	return err_set(err, -EFBIG,
		"it is longer than %llu bytes: where that is meant, raise CLOCHE_IMAGE_MAX",
		(unsigned long long)f->bytes_max);
}

static int conclude(const struct fetch *f, int status, const struct str *words, struct err *err)
{
	struct slice line = last_line(words);
	const char *msg;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
		return err_set(err, -ENOENT,
			"skopeo, which fetches images from registries, is not installed: install "
			"it "
			"(apt-get install skopeo), or name an image's file or folder as ./NAME");
	if (!line.p || line.len == 0)
		return err_set(err, -EIO, "fetch '%s': skopeo failed and says nothing", f->place);
	/* logrus: time="..." level=fatal msg="..." */
	msg = memmem(line.p, line.len, "msg=", 4);
	if (msg) {
		line.len -= (size_t)(msg + 4 - line.p);
		line.p = msg + 4;
	}
	return err_set(err, -EIO, "skopeo: %.*s%s",
		(int)(line.len < SENTENCE_MAX ? line.len : SENTENCE_MAX), line.p,
		is_file_here(f->place) ? "; the file of that name here is written as ./NAME" : "");
}

int fetch_run(const struct fetch *f, struct err *err)
{
	scoped_str struct str words = {0};
	bool is_too_big = false;
	int pair[2], status = 0;
	pid_t pid;

	if (fchown(f->folder_fd, f->uid, f->gid) < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return err_set(err, -errno, "make room to fetch into: %m");
	pid = fork();
	if (pid == 0)
		run(f, pair[1]);
	(void)close(pair[1]);
	if (pid > 0)
		(void)setpgid(pid, pid); /* whoever comes first: it may have done it */
	if (pid > 0)
		is_too_big = watch(f, pid, pair[0], &words);
	(void)close(pair[0]);
	if (pid < 0)
		return err_set(err, -errno, "start skopeo: %m");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (progress_is_stopped())
		return err_set(err, -EINTR, "stopped by a signal");
	return is_too_big ? too_big(f, err) : conclude(f, status, &words, err);
}
