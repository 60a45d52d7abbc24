/* SPDX-License-Identifier: Apache-2.0 */
/* Makes real sandboxes by src/sandbox alone, as root, and tries to break them from inside. Skips (77) where it
 * is not root. Works below a folder of its own in CLOCHE_STATE or /tmp. */
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "box.h"
#include "sandbox/sandbox.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

static void test_exit(void **unused)
{
	static const struct {
		const char *command;
		int code, signal;
	} cases[] = {{"exit 0", 0, 0}, {"exit 3", 3, 0}, {"exit 137", 137, 0}, {"kill -9 $$", 0, 9},
		{"kill -15 $$", 0, 15}};
	struct box box = {0};
	struct result got;

	box_open(&box);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_shell(&box, cases[i].command, &got);
		assert_int_equal(got.status, 0);
		assert_int_equal(got.exit.code, cases[i].code);
		assert_int_equal(got.exit.signal, cases[i].signal);
		assert_false(got.exit.oom_killed);
		str_done(&got.out);
	}
	box_close(&box);
}

static void test_not_found(void **unused)
{
	static const struct {
		const char *program, *cwd;
		int status;
	} cases[] = {{"no-such-program", NULL, -ENOENT}, {"/no/such", NULL, -ENOENT},
		{"/etc/passwd", NULL, -EACCES}, {"/etc", NULL, -EACCES}, {"true", "/nope", -ENOENT},
		{"", NULL, -ENOENT}};
	struct box box = {0};
	struct result got;

	box_open(&box);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = {(char *)(uintptr_t)cases[i].program, NULL};
		struct spec_exec spec = {
			.argv = {.items = argv, .n = 1}, .cwd = (char *)(uintptr_t)cases[i].cwd};

		run(&box, &spec, &got);
		assert_int_equal(got.status, cases[i].status);
		assert_int_equal(got.exit.code, 127);
		assert_true(strlen(got.err.msg) > 0);
		str_done(&got.out);
	}
	box_close(&box);
}

static void test_inside(void **unused)
{
	struct box box = {0};

	box_open(&box);
	expect(&box, "id -u; pwd; hostname; echo $HOME $USER $IS_SANDBOX $LANG",
		"0\n/workspace\nsandbox\n/root root 1 C.UTF-8\n");
	expect(&box, "stat -c '%u %g' /proc/1 /etc/passwd /usr/bin/env /tmp | sort -u", "0 0\n");
	expect(&box,
		"grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'; grep NoNewPrivs "
		"/proc/self/status | tr -d '\\t'",
		"SigBlk:0000000000000000\nSigIgn:0000000000000000\nNoNewPrivs:1\n");
	expect(&box, "grep -h CapBnd /proc/1/status | tr -d '\\t'", "CapBnd:0000000000000000\n");
	expect(&box, "bash -c 'seq 1 1000000 | head -n1; echo ${PIPESTATUS[*]}'", "1\n141 0\n");
	expect(&box, "ls /proc/self/fd | wc -l", "4\n"); /* three, and ls its folder */
	expect(&box,
		"grep -v ':\\*:' /etc/shadow; ls /etc/shadow- 2>/dev/null; ls -A /root /home "
		"/workspace | tr -d '\\n'",
		"/home:/root:/workspace:");
	box_close(&box);
}

static void test_refused(void **unused)
{
	static const char *const commands[] = {"echo 1 > /proc/sys/kernel/panic",
		"echo b > /proc/sysrq-trigger", "unshare -U true", "unshare -m true",
		"mount -t tmpfs t /mnt", "umount /proc/sys", "mknod /tmp/sda b 8 0",
		"mknod /tmp/w c 0 0", "nsenter -t 1 -m true", "chroot / mount -t proc p /mnt",
		"dmesg", "hostname other", "cat /dev/.hide/file", "head -c1 /dev/vda",
		"cat /proc/1/environ > /dev/null && cat /proc/kcore | head -c1 | grep -q .",
		"setcap cap_net_raw+ep /tmp/x"};
	struct box box = {0};
	struct result got;

	box_open(&box);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		run_shell(&box, commands[i], &got);
		if (got.exit.code == 0 && !got.exit.signal)
			fail_msg("was allowed: %s", commands[i]);
		str_done(&got.out);
	}
	expect(&box, "cat /proc/keys | wc -c", "0\n");
	box_close(&box);
}

static void test_user(void **unused)
{
	static const struct {
		const char *user, *want;
	} cases[] = {{"nobody", "65534 65534 nobody\n"}, {"4321", "4321 4321 4321\n"},
		{"4321:50", "4321 50 4321\n"}, {"0", "0 0 root\n"}};
	struct box box = {0};
	struct result got;

	box_open(&box);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spec_exec spec = {.command = (char[]){"echo $(id -u) $(id -g) $USER"},
			.user = (char *)(uintptr_t)cases[i].user,
			.cwd = (char[]){"/"}};

		run(&box, &spec, &got);
		assert_string_equal(got.out.p, cases[i].want);
		str_done(&got.out);
	}
	expect(&box, "su -s /bin/sh -c 'id -u' nobody", "65534\n");
	expect(&box, "ln -sf /proc/kmsg /etc/passwd; echo ok", "ok\n");
	{
		struct spec_exec spec = {.command = (char[]){"true"}, .user = (char[]){"nobody"}};
		struct sandbox_exec_config config = {.id = "ex_0",
			.spec = &spec,
			.program_fd = -1,
			.stdin_fd = -1,
			.stdout_fd = -1,
			.stderr_fd = -1};
		struct sandbox_exec *exec = NULL;

		assert_true(sandbox_exec_prepare(box.sandbox, &config, &exec, &box.err) < 0);
		assert_null(exec);
	}
	box_close(&box);
}

static void test_kill(void **unused)
{
	struct spec_exec spec = {
		.command = (char[]){
			"trap '' TERM HUP; setsid sh -c 'kill -STOP $$' & sleep 1000 & wait"}};
	struct box box = {0};
	struct sandbox_exec *exec;
	struct sandbox_exit end;

	box_open(&box);
	exec = start(&box, &spec, -1);
	assert_true(wait_for(sandbox_exec_status_fd(exec), WAIT_MS));
	assert_int_equal(sandbox_exec_status(exec, &box.err), 0);
	assert_int_equal(sandbox_exec_kill(exec), 0);
	assert_true(wait_for(sandbox_exec_pidfd(exec), WAIT_MS));
	assert_int_equal(sandbox_exec_reap(exec, &end), 0);
	assert_int_equal(end.signal, SIGKILL);
	for (int i = 0; i < 100 && sandbox_exec_n_left(exec); i++)
		(void)usleep(10000);
	assert_int_equal(sandbox_exec_n_left(exec), 0);
	sandbox_exec_free(exec);
	expect(&box, "echo next", "next\n");
	box_close(&box);
}

/* An exec into a frozen sandbox answers at once, and runs when it thaws. */
static void test_frozen(void **unused)
{
	struct spec_exec spec = {.command = (char[]){"exit 7"}};
	struct box box = {0};
	struct sandbox_exec *exec;
	struct sandbox_exit end;
	int64_t before;

	box_open(&box);
	assert_int_equal(sandbox_freeze(box.sandbox, SANDBOX_FREEZE_USER, &box.err), 0);
	assert_int_equal(sandbox_freeze(box.sandbox, SANDBOX_FREEZE_LOSS, &box.err), 0);
	before = clock_mono_ns();
	exec = start(&box, &spec, -1);
	assert_true(clock_mono_ns() - before < 500 * CLOCK_NS_PER_MS);
	assert_false(wait_for(sandbox_exec_status_fd(exec), 100));
	assert_int_equal(sandbox_exec_status(exec, &box.err), -EAGAIN);
	assert_int_equal(sandbox_thaw(box.sandbox, SANDBOX_FREEZE_USER, &box.err), 0);
	assert_true(sandbox_is_frozen(box.sandbox));
	assert_int_equal(sandbox_thaw(box.sandbox, SANDBOX_FREEZE_LOSS, &box.err), 0);
	assert_true(wait_for(sandbox_exec_pidfd(exec), WAIT_MS));
	assert_int_equal(sandbox_exec_status(exec, &box.err), 0);
	assert_int_equal(sandbox_exec_reap(exec, &end), 0);
	assert_int_equal(end.code, 7);
	sandbox_exec_free(exec);
	/* And one that never thaws is killed. */
	assert_int_equal(sandbox_freeze(box.sandbox, SANDBOX_FREEZE_USER, &box.err), 0);
	exec = start(&box, &spec, -1);
	assert_int_equal(sandbox_exec_kill(exec), 0);
	assert_true(wait_for(sandbox_exec_pidfd(exec), WAIT_MS));
	assert_int_equal(sandbox_exec_reap(exec, &end), 0);
	assert_int_equal(end.signal, SIGKILL);
	sandbox_exec_free(exec);
	box_close(&box);
}

/* Root inside stops every process it sees, ours on its way in among them. */
static void test_stop_loop(void **unused)
{
	struct spec_exec spec = {.command = (char[]){"exec python3 -c 'import os\nwhile 1:\n try: "
						     "os.kill(-1, 19)\n except OSError: pass'"}};
	struct spec_exec victim = {.command = (char[]){"exit 0"}};
	struct box box = {0};
	struct sandbox_exec *looper, *exec;
	struct sandbox_exit end;

	box_open(&box);
	looper = start(&box, &spec, -1);
	assert_true(wait_for(sandbox_exec_status_fd(looper), WAIT_MS));
	(void)usleep(100000);
	for (int i = 0; i < 20; i++) {
		int64_t before = clock_mono_ns();

		exec = start(&box, &victim, -1);
		assert_true(clock_mono_ns() - before < 1000 * CLOCK_NS_PER_MS);
		(void)wait_for(sandbox_exec_status_fd(exec), 20);
		assert_int_equal(sandbox_exec_kill(exec), 0);
		assert_true(wait_for(sandbox_exec_pidfd(exec), WAIT_MS));
		assert_int_equal(sandbox_exec_reap(exec, &end), 0);
		sandbox_exec_free(exec);
	}
	sandbox_exec_free(looper);
	box_close(&box);
}

/* A watcher inside tries to read each of our children before it has become the command. */
static void test_child_unreadable(void **unused)
{
	static char watch[] =
		"exec python3 -c '\n"
		"import os,time\n"
		"me=os.getpid(); end=time.time()+1.5; bad=set()\n"
		"while time.time()<end:\n"
		" for p in os.listdir(\"/proc\"):\n"
		"  if not p.isdigit() or int(p) in (1,me): continue\n"
		"  try:\n"
		"   exe=os.readlink(\"/proc/%s/exe\"%p)\n"
		"   if \"true\" not in exe: bad.add(exe)\n"
		"   m=open(\"/proc/%s/maps\"%p).read()\n"
		"   if \"box\" in m or \"heap\" in m and \"true\" not in m: bad.add(m[:100])\n"
		"  except OSError: pass\n"
		"print(sorted(bad))'";
	char *argv[] = {(char[]){"true"}, NULL};
	struct spec_exec watcher = {.command = watch}, victim = {.argv = {.items = argv, .n = 1}};
	struct box box = {0};
	struct sandbox_exec *exec;
	struct result got;
	scoped_str struct str out = {0};
	int pair[2];

	box_open(&box);
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	exec = start(&box, &watcher, pair[1]);
	(void)close(pair[1]);
	assert_true(wait_for(sandbox_exec_status_fd(exec), WAIT_MS));
	assert_int_equal(sandbox_exec_status(exec, &box.err), 0);
	for (int i = 0; i < 300 && !wait_for(sandbox_exec_pidfd(exec), 0); i++) {
		run(&box, &victim, &got);
		str_done(&got.out);
	}
	assert_true(fdio_read_all(pair[0], TEXT_MAX, &out) >= 0);
	(void)close(pair[0]);
	str_putc(&out, '\0');
	assert_string_equal(out.p, "[]\n");
	sandbox_exec_free(exec);
	box_close(&box);
}

static void test_pty(void **unused)
{
	struct spec_exec spec = {.command = (char[]){"tty; stty size; echo hi > /dev/tty"},
		.terminal = true,
		.rows = 40,
		.columns = 120};
	struct box box = {0};
	struct sandbox_exec *exec;
	struct sandbox_exit end;
	char text[512];
	size_t len = 0;
	ssize_t n;

	box_open(&box);
	exec = start(&box, &spec, -1);
	assert_true(wait_for(sandbox_exec_pidfd(exec), WAIT_MS));
	assert_int_equal(sandbox_exec_status(exec, &box.err), 0);
	while ((n = read(sandbox_exec_pty(exec), text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	assert_string_equal(text, "/dev/pts/0\r\n40 120\r\nhi\r\n");
	assert_int_equal(sandbox_exec_reap(exec, &end), 0);
	assert_int_equal(end.code, 0);
	assert_int_equal(sandbox_exec_resize(exec, 0, 80), -EINVAL);
	sandbox_exec_free(exec);
	box_close(&box);
}

/* A project of another user, with secrets in it. */
static void assert_owner(const char *dir, const char *name, uid_t uid, gid_t gid)
{
	scoped_mem char *path = mem_printf("%s/%s", dir, name);
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
}

static void test_cow(void **unused)
{
	char *project = make_project();
	struct box box = {0};
	scoped_str struct str json = {0};
	scoped_mem char *upper = NULL;

	mount_project(&box, project, SPEC_MOUNT_COW);
	box_open(&box);
	expect(&box, "pwd; stat -c '%u %g' . file rootfile",
		"/home/me/project\n0 0\n0 0\n1234 1235\n");
	expect(&box, "echo new > file; echo x > added; rm -r sub 2>/dev/null; ls",
		"added\nfile\nrootfile\nsub\n");
	expect(&box, "chown 0:0 rootfile && echo more >> rootfile && chmod 4755 added; echo $?",
		"0\n");
	expect(&box,
		"cat sub/.env.local 2>&1; cat .ssh/id 2>&1; ls .ssh 2>&1; chmod 644 sub/.env.local "
		"2>&1; echo",
		"cat: sub/.env.local: Permission denied\ncat: .ssh/id: Permission denied\n"
		"ls: cannot open directory '.ssh': Permission denied\n"
		"chmod: changing permissions of 'sub/.env.local': Read-only file system\n\n");
	assert_owner(project, "file", 1234, 1235);
	assert_int_equal(fdio_read_file(AT_FDCWD, project, 1, &json) < 0, 1);
	{
		scoped_mem char *file = mem_printf("%s/file", project);
		struct stat st;

		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_size, 0);
	}
	assert_true(fdio_read_file(openat(AT_FDCWD, box.changes, O_RDONLY), "changes.json",
			    TEXT_MAX, &json) >= 0);
	assert_non_null(strstr(json.p, "\"upper\":\"0/upper\""));
	assert_non_null(strstr(json.p, "\"owner_uid\":1234"));
	upper = mem_printf("%s/0/upper", box.changes);
	assert_owner(upper, "added", sandbox_id_base(box.sandbox), sandbox_id_base(box.sandbox));
	sandbox_destroy(box.sandbox, false);
	assert_owner(upper, "file", sandbox_id_base(box.sandbox), sandbox_id_base(box.sandbox));
	box_close(&box);
	unmount_project(&box, project);
}

static void test_rw(void **unused)
{
	char *project = make_project();
	struct box box = {0};
	uint32_t base;

	mount_project(&box, project, SPEC_MOUNT_RW);
	box_open(&box);
	base = sandbox_id_base(box.sandbox);
	expect(&box,
		"echo x > added; mkdir d; install -o "
		"7 -g 8 -m 600 added other; ls",
		"added\nd\nfile\nother\nrootfile\nsub\n");
	assert_owner(project, "added", 1234, 1235);
	assert_owner(project, "d", 1234, 1235);
	assert_owner(project, "other", base + 7, base + 8);
	/* Set-id bits, devices, capabilities, other people's files. */
	expect(&box,
		"for c in 'chmod 4755 added' 'chmod 2755 d' 'chmod u+s added' 'mknod w c 0 0' "
		"'mknod -m 4644 f p' "
		"'install -m 4755 added s' 'setcap cap_net_raw+ep added' 'sh -c \"echo x >> "
		"rootfile\"' 'chown 1 rootfile'; "
		"do sh -c \"$c\" 2>/dev/null && echo \"allowed: $c\"; done; true",
		"");
	expect(&box,
		"python3 -c 'import os,ctypes\n"
		"L=ctypes.CDLL(None,use_errno=True)\n"
		"for f in (lambda: os.open(\"a1\",os.O_CREAT|os.O_WRONLY,0o4755), lambda: "
		"os.open(\".\",os.O_TMPFILE|os.O_WRONLY,0o4755), "
		"lambda: os.mknod(\"a2\",0o104755), lambda: os.chmod(\"added\",0o6755)):\n"
		" try: f(); print(\"allowed\")\n"
		" except PermissionError: pass\n"
		"h=(ctypes.c_ulonglong*3)(os.O_CREAT|os.O_WRONLY,0o4755,0)\n"
		"print(L.syscall(437,-100,b\"a3\",h,24), L.syscall(452,-100,b\"added\",0o4755,0))'",
		"-1 -1\n");
	box_close(&box);
	unmount_project(&box, project);
}

static void test_ro(void **unused)
{
	char *project = make_project();
	struct box box = {0};

	mount_project(&box, project, SPEC_MOUNT_RO);
	box_open(&box);
	expect(&box,
		"(echo x > added; mount -o remount,rw .; echo x > file; chmod 777 file) "
		"2>/dev/null; ls -A | tr '\\n' ' '",
		".ssh file rootfile sub ");
	box_close(&box);
	unmount_project(&box, project);
}

/* With a limit on memory, what grows past it dies and is said to; the supervisor does not. */
static void test_memory(void **unused)
{
	struct spec_exec fill = {.command = (char[]){"exec python3 -c 'x=bytearray(200<<20)'"}};
	struct box box = {.spec = {.memory_bytes = 64 << 20}};
	struct result got;

	box_open(&box);
	run(&box, &fill, &got);
	assert_int_equal(got.exit.signal, SIGKILL);
	assert_true(got.exit.oom_killed);
	str_done(&got.out);
	run_shell(&box, "kill -9 $$", &got);
	assert_false(got.exit.oom_killed);
	str_done(&got.out);
	/* Memory that belongs to no process: the next exec's child must not be taken for the culprit. */
	run_shell(&box, "head -c 100M /dev/zero > /dev/shm/fill", &got);
	str_done(&got.out);
	for (int i = 0; i < 5; i++) {
		run_shell(&box, "true", &got);
		str_done(&got.out);
	}
	run_shell(&box, "rm /dev/shm/fill", &got);
	str_done(&got.out);
	box_close(&box);
}

static void test_pids(void **unused)
{
	struct box box = {.spec = {.pids_max = 20}};
	struct result got;

	box_open(&box);
	run_shell(&box, "for i in $(seq 40); do sleep 5 & done; exit 5", &got);
	assert_true(got.exit.code != 5); /* the shell could not fork and gave up */
	str_done(&got.out);
	box_close(&box);
}

/* The supervisor's death is the sandbox's. */
static void test_supervisor_death(void **unused)
{
	struct spec_exec spec = {.command = (char[]){"sleep 1000"}};
	struct box box = {0};
	int pids[2] = {0}, pair[2];
	pid_t child;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	id_new("sb", box.id);
	child = fork();
	if (child == 0) {
		box_open(&box);
		pids[0] = sandbox_init_pid(box.sandbox);
		pids[1] = sandbox_exec_pid(start(&box, &spec, -1));
		(void)!write(pair[1], pids, sizeof(pids));
		(void)!write(pair[1], box.id, sizeof(box.id));
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(pair[0], pids, sizeof(pids)), sizeof(pids));
	assert_int_equal(read(pair[0], box.id, sizeof(box.id)), sizeof(box.id));
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	for (int i = 0; i < 500 && (kill(pids[0], 0) == 0 || kill(pids[1], 0) == 0); i++)
		(void)usleep(10000);
	assert_int_equal(kill(pids[0], 0), -1);
	assert_int_equal(kill(pids[1], 0), -1);
	box.dir = mem_printf("%s/sandboxes/%s", state, box.id);
	box.changes = mem_printf("%s/changes/%s", state, box.id);
	assert_true(has_cgroup(&box));
	assert_int_equal(sandbox_clean(box.id, state, box.dir, &box.err), 0);
	assert_int_equal(sandbox_clean(box.id, state, box.dir, &box.err), 0);
	box_close(&box);
}

static void test_create_fails(void **unused)
{
	struct box box = {.spec = {.rootfs = (char[]){"/no/such/root"}}};
	char *project = make_project();
	struct box second = {0};

	assert_true(box_create(&box) < 0);
	assert_non_null(strstr(box.err.msg, "/no/such/root"));
	box_close(&box);
	mount_project(&second, project, SPEC_MOUNT_COW);
	free(second.mount.guest);
	second.mount.guest = mem_dup("/proc/self/x"); /* cannot be made */
	assert_true(box_create(&second) < 0);
	assert_non_null(strstr(second.err.msg, "/proc/self/x"));
	box_close(&second);
	unmount_project(&second, project);
}

/* A root in which our mount points are links to the host. */
static void test_linked_root(void **unused)
{
	static const char *const names[] = {"proc", "dev"};
	scoped_mem char *root = mem_printf("%s/root", state),
			*target = mem_printf("%s/target", state);

	assert_int_equal(mkdir(root, 0755), 0);
	assert_int_equal(mkdir(target, 0777), 0);
	for (size_t i = 0; i < 2; i++) {
		struct box box = {.spec = {.rootfs = root}};
		scoped_mem char *link = mem_printf("%s/%s", root, names[i]);

		assert_int_equal(symlink(target, link), 0);
		assert_true(box_create(&box) < 0);
		assert_non_null(strstr(box.err.msg, names[i]));
		box_close(&box);
		assert_int_equal(unlink(link), 0);
	}
	assert_int_equal(rmdir(target), 0); /* nothing was put into it */
}

/* A tenth of one CPU. */
static void test_cpu(void **unused)
{
	struct box box = {.spec = {.cpu_milli = 100}};
	struct result got;

	box_open(&box);
	run_shell(&box,
		"exec python3 -c 'import time\nend=time.time()+1.5\nwhile time.time()<end: pass\n"
		"assert time.process_time()<0.6, time.process_time()'",
		&got);
	if (got.exit.code)
		fail_msg("%s", got.out.p);
	str_done(&got.out);
	box_close(&box);
}

static void test_old_overlay(void **unused)
{
	char *project = make_project();
	struct box box = {0};

	assert_int_equal(setenv("CLOCHE_OLD_OVERLAY", "1", 1), 0);
	mount_project(&box, project, SPEC_MOUNT_COW);
	box_open(&box);
	expect(&box, "touch added /usr/local/x /etc/y && ls && ls -d /usr/local/x",
		"added\nfile\nrootfile\nsub\n/usr/local/x\n");
	box_close(&box);
	assert_int_equal(unsetenv("CLOCHE_OLD_OVERLAY"), 0);
	unmount_project(&box, project);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit),
		cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_stop_loop),
		cmocka_unit_test(test_child_unreadable),
		cmocka_unit_test(test_pty),
		cmocka_unit_test(test_cow),
		cmocka_unit_test(test_rw),
		cmocka_unit_test(test_ro),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_supervisor_death),
		cmocka_unit_test(test_create_fails),
		cmocka_unit_test(test_linked_root),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_old_overlay),
	};

	if (geteuid() != 0) {
		puts("skipped: needs root");
		return 77;
	}
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
