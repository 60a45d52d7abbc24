/* SPDX-License-Identifier: Apache-2.0 */
/* What the half that faces the network cannot do any more, tried by a child that has given it up; and what it still can. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/walls.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define TEMPLATE "/tmp/cloche-walls-XXXXXX"

static char dir[] = TEMPLATE;

static char *in_dir(const char *name)
{
	return mem_printf("%s/%s", dir, name);
}

static int write_file(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600), r;

	if (fd < 0)
		return -errno;
	r = write(fd, "x", 1) == 1 ? 0 : -errno;
	close(fd);
	return r;
}

static int write_in(const char *name, int flags)
{
	scoped_mem char *path = in_dir(name);

	return write_file(path, flags);
}

/* ---- tries: 0, or a negative errno ---- */

static int try_execve(void)
{
	char *const argv[] = {(char *)"true", NULL};

	execv("/bin/true", argv);
	return -errno;
}

static int try_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -errno : 0;
}

static int try_vfork(void)
{
	return syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static int try_namespace(void)
{
	return unshare(CLONE_NEWUSER) < 0 ? -errno : 0;
}

static int try_mount(void)
{
	return mount("none", dir, "tmpfs", 0, NULL) < 0 ? -errno : 0;
}

static int try_ptrace(void)
{
	return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) < 0 ? -errno : 0;
}

static int try_reading_another(void)
{
	char c;
	struct iovec ours = {&c, 1}, theirs = {(void *)dir, 1};

	return syscall(SYS_process_vm_readv, getppid(), &ours, 1, &theirs, 1, 0) < 0 ? -errno : 0;
}

static int try_kill(void)
{
	return kill(getppid(), 0) < 0 ? -errno : 0;
}

static int try_code(void)
{
	void *p = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -errno : 0;
}

static int try_code_later(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	return mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 ? -errno : 0;
}

static int try_socket(int family, int type)
{
	return socket(family, type | SOCK_CLOEXEC, 0) < 0 ? -errno : 0;
}

static int try_netlink(void)
{
	return try_socket(AF_NETLINK, SOCK_RAW);
}

static int try_packet(void)
{
	return try_socket(AF_PACKET, SOCK_RAW);
}

static int try_vsock(void)
{
	return try_socket(AF_VSOCK, SOCK_STREAM);
}

static int try_unix(void)
{
	return try_socket(AF_UNIX, SOCK_STREAM);
}

static int try_tcp(void)
{
	return try_socket(AF_INET, SOCK_STREAM);
}

static int try_listening(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0 ? -errno : 0;
}

static int try_making_a_file(void)
{
	return write_in("elsewhere", O_CREAT);
}

static int try_changing_a_file(void)
{
	return write_in("there", 0);
}

static int try_cutting_a_file(void)
{
	return write_in("there", O_TRUNC);
}

static int try_removing_a_file(void)
{
	scoped_mem char *path = in_dir("there");

	return unlink(path) < 0 ? -errno : 0;
}

static int try_making_a_folder(void)
{
	scoped_mem char *path = in_dir("state/server/folder");

	return mkdir(path, 0700) < 0 ? -errno : 0;
}

static int try_own_folder(void)
{
	scoped_mem char *path = in_dir("state/server/own");
	int r = write_in("state/server/own", O_CREAT | O_EXCL);

	return r < 0 ? r : unlink(path) < 0 ? -errno : 0;
}

static int try_database(void)
{
	int r = write_in("database/db", O_CREAT);

	return r < 0 ? r : write_in("database/db-wal", O_CREAT | O_TRUNC);
}

static int try_reading(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? -errno : 0;
}

static int try_null(void)
{
	return write_file("/dev/null", 0);
}

static void *on_thread(void *arg)
{
	*(int *)arg = try_execve();
	return NULL;
}

/* One that begins behind the walls is within them. */
static int try_thread(void)
{
	pthread_t thread;
	int in_thread = 0, r = pthread_create(&thread, NULL, on_thread, &in_thread);

	if (r)
		return -r;
	pthread_join(thread, NULL);
	return in_thread < 0 ? 0 : -EBADE;
}

static int try_core(void)
{
	return syscall(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 1) < 0 ? -errno : 0;
}

enum by {
	BY_FILES = 1, /* Landlock */
	BY_CALLS = 2, /* the filter */
};

static const struct {
	const char *name;
	int (*run)(void);
	/* Refused by one of these, where it is there, with a database in a file, and with one behind a socket. 0: it can be
	 * done. */
	int by_file, by_socket;
} tries[] = {
	{"start a program", try_execve, BY_FILES | BY_CALLS, BY_FILES | BY_CALLS},
	{"start a process", try_fork, BY_CALLS, BY_CALLS},
	{"start one in the same memory", try_vfork, BY_CALLS, BY_CALLS},
	{"make a namespace", try_namespace, BY_CALLS, BY_CALLS},
	{"mount", try_mount, BY_CALLS, BY_CALLS},
	{"trace", try_ptrace, BY_CALLS, BY_CALLS},
	{"read another's memory", try_reading_another, BY_CALLS, BY_CALLS},
	{"signal another", try_kill, BY_CALLS, BY_CALLS},
	{"map code", try_code, BY_CALLS, BY_CALLS},
	{"make memory code", try_code_later, BY_CALLS, BY_CALLS},
	{"netlink", try_netlink, BY_CALLS, BY_CALLS},
	{"packets", try_packet, BY_CALLS, BY_CALLS},
	{"vsock", try_vsock, BY_CALLS, BY_CALLS},
	{"a Unix socket", try_unix, BY_CALLS, 0},
	{"listen", try_listening, BY_CALLS, BY_CALLS},
	{"let others look into it", try_core, BY_CALLS, BY_CALLS},
	{"make a file", try_making_a_file, BY_FILES, BY_FILES},
	{"change a file", try_changing_a_file, BY_FILES, BY_FILES},
	{"cut a file", try_cutting_a_file, BY_FILES, BY_FILES},
	{"remove a file", try_removing_a_file, BY_FILES, BY_FILES},
	{"make a folder", try_making_a_folder, BY_FILES | BY_CALLS, BY_FILES | BY_CALLS},
	{"a TCP socket", try_tcp, 0, 0},
	{"a file in its folder", try_own_folder, 0, 0},
	{"its database", try_database, 0, BY_FILES},
	{"read a file", try_reading, 0, 0},
	{"/dev/null", try_null, 0, 0},
	{"a thread", try_thread, 0, 0},
};
#define N_TRIES (sizeof(tries) / sizeof(tries[0]))

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

static int walls_there(void)
{
	int there = has_landlock() ? BY_FILES : 0;

#if !defined(__SANITIZE_ADDRESS__)
	there |= BY_CALLS;
#endif
	return there;
}

/* As another user where we are root: rights would be in the way of what is tried. */
static _Noreturn void be_the_server(const char *place, int to)
{
	scoped_mem char *state = in_dir("state");
	struct err err = {0};
	int told[N_TRIES];

	if (geteuid() == 0 &&
		(setresgid(64736, 64736, 64736) < 0 || setresuid(64736, 64736, 64736) < 0))
		_exit(2);
	if (walls_begin(state, place, &err) < 0 || walls_close(place, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		_exit(3);
	}
	for (size_t i = 0; i < N_TRIES; i++)
		told[i] = tries[i].run();
	_exit(write(to, told, sizeof(told)) == (ssize_t)sizeof(told) ? 0 : 4);
}

static void try_all(const char *place, bool is_file)
{
	int told[N_TRIES], status, pair[2], there = walls_there();
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0)
		be_the_server(place, pair[1]);
	close(pair[1]);
	assert_int_equal(read(pair[0], told, sizeof(told)), sizeof(told));
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < N_TRIES; i++) {
		bool must_fail = (is_file ? tries[i].by_file : tries[i].by_socket) & there;

		if (must_fail != (told[i] < 0))
			fail_msg("%s, %s: %s", place, tries[i].name,
				told[i] ? strerror(-told[i]) : "it can");
	}
}

static void test_a_database_in_a_file(void **state)
{
	scoped_mem char *place = mem_printf("sqlite:%s/database/db", dir);

	try_all(place, true);
}

static void test_a_database_behind_a_socket(void **state)
{
	try_all("postgres://nobody@/none?host=/nowhere", false);
}

static int make(void **state)
{
	static const char *const folders[] = {"state", "state/server", "database"};
	scoped_mem char *there = NULL;
	int fd;

	memcpy(dir, TEMPLATE, sizeof(TEMPLATE));
	if (!mkdtemp(dir) || chmod(dir, 0777) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		scoped_mem char *path = in_dir(folders[i]);

		if (mkdir(path, 0777) < 0 || chmod(path, 0777) < 0)
			return -1;
	}
	there = in_dir("there");
	fd = open(there, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || fchmod(fd, 0666) < 0)
		return -1;
	close(fd);
	return 0;
}

static int clean(void **state)
{
	return path_remove_all(AT_FDCWD, dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_database_in_a_file, make, clean),
		cmocka_unit_test_setup_teardown(test_a_database_behind_a_socket, make, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
