/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the filter as the kernel would, over calls chosen to get past it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "sandbox/seccomp.h"

#define ALLOW   SECCOMP_RET_ALLOW
#define KILL    SECCOMP_RET_KILL_PROCESS
#define E(name) (SECCOMP_RET_ERRNO | (name))

struct call {
	uint32_t nr, arch;
	uint64_t args[6];
	uint32_t want, want_no_set_id; /* 0: the same */
};

static uint32_t run_filter(const struct sock_fprog *prog, const struct seccomp_data *data)
{
	uint32_t a = 0, steps = 0;

	for (size_t pc = 0; pc < prog->len; pc++) {
		const struct sock_filter *f = &prog->filter[pc];

		assert_true(++steps < 1000);
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(f->k + 4 <= sizeof(*data));
			memcpy(&a, (const char *)data + f->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += f->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & f->k ? f->jt : f->jf;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			fail_msg("instruction %x", f->code);
		}
	}
	fail_msg("ran off the end");
	return 0;
}

#define X64  AUDIT_ARCH_X86_64
#define HIGH 0xffffffff00000000ULL /* bits the kernel does not look at */

static const struct call calls[] = {
	{__NR_read, X64, {0}, ALLOW},
	{__NR_execve, X64, {0}, ALLOW},
	{__NR_ptrace, X64, {0}, ALLOW},
	{__NR_futex_waitv, X64, {0}, ALLOW},
	{__NR_seccomp, X64, {0}, ALLOW},
	{__NR_read, AUDIT_ARCH_I386, {0}, KILL},
	{8, AUDIT_ARCH_I386, {0}, KILL},
	{__NR_read | 0x40000000, X64, {0}, KILL},
	{520 | 0x40000000, X64, {0}, KILL},
	{0xffffffff, X64, {0}, E(ENOSYS)},
	{0x3fffffff, X64, {0}, E(ENOSYS)},
	{1000, X64, {0}, E(ENOSYS)},
	{452, X64, {0}, E(ENOSYS)}, /* fchmodat2 */
	{463, X64, {0}, E(ENOSYS)}, /* setxattrat */
	{__NR_clone3, X64, {0}, E(ENOSYS)},
	{__NR_io_uring_setup, X64, {0}, E(ENOSYS)},
	{__NR_io_uring_enter, X64, {0}, E(ENOSYS)},
	{__NR_io_uring_register, X64, {0}, E(ENOSYS)},
	{__NR_mount, X64, {0}, E(EPERM)},
	{__NR_umount2, X64, {0}, E(EPERM)},
	{__NR_fsopen, X64, {0}, E(EPERM)},
	{__NR_open_tree, X64, {0}, E(EPERM)},
	{__NR_move_mount, X64, {0}, E(EPERM)},
	{__NR_mount_setattr, X64, {0}, E(EPERM)},
	{__NR_pivot_root, X64, {0}, E(EPERM)},
	{__NR_setns, X64, {0}, E(EPERM)},
	{__NR_bpf, X64, {0}, E(EPERM)},
	{__NR_perf_event_open, X64, {0}, E(EPERM)},
	{__NR_keyctl, X64, {0}, E(EPERM)},
	{__NR_add_key, X64, {0}, E(EPERM)},
	{__NR_request_key, X64, {0}, E(EPERM)},
	{__NR_userfaultfd, X64, {0}, E(EPERM)},
	{__NR_open_by_handle_at, X64, {0}, E(EPERM)},
	{__NR_kexec_load, X64, {0}, E(EPERM)},
	{__NR_init_module, X64, {0}, E(EPERM)},
	{__NR_finit_module, X64, {0}, E(EPERM)},
	{__NR_syslog, X64, {0}, E(EPERM)},
	{__NR_clone, X64, {17 /* SIGCHLD */}, ALLOW},
	{__NR_clone, X64, {CLONE_VM | CLONE_THREAD | CLONE_SIGHAND}, ALLOW},
	{__NR_clone, X64, {CLONE_NEWUSER}, E(EPERM)},
	{__NR_clone, X64, {HIGH | CLONE_NEWNS | 17}, E(EPERM)},
	{__NR_clone, X64, {CLONE_NEWCGROUP}, E(EPERM)},
	{__NR_unshare, X64, {CLONE_FS | CLONE_FILES}, ALLOW},
	{__NR_unshare, X64, {CLONE_NEWUSER | CLONE_FS}, E(EPERM)},
	{__NR_unshare, X64, {0x80 /* CLONE_NEWTIME */}, E(EPERM)},
	{__NR_socket, X64, {AF_UNIX, SOCK_STREAM, 0}, ALLOW},
	{__NR_socket, X64, {AF_INET, SOCK_STREAM, 0}, ALLOW},
	{__NR_socket, X64, {AF_INET, SOCK_STREAM, 6}, ALLOW},
	{__NR_socket, X64, {AF_INET6, SOCK_DGRAM, 58}, ALLOW},
	{__NR_socket, X64, {AF_INET, SOCK_STREAM, 262 /* MPTCP */}, E(EPROTONOSUPPORT)},
	{__NR_socket, X64, {AF_INET, SOCK_STREAM, 132 /* SCTP */}, E(EPROTONOSUPPORT)},
	{__NR_socket, X64, {AF_NETLINK, SOCK_RAW, 0}, ALLOW},
	{__NR_socket, X64, {AF_NETLINK, SOCK_RAW, 12}, E(EPROTONOSUPPORT)},
	{__NR_socket, X64, {AF_NETLINK, SOCK_RAW, 16}, E(EPROTONOSUPPORT)},
	{__NR_socket, X64, {AF_PACKET, SOCK_RAW, 0}, E(EAFNOSUPPORT)},
	{__NR_socket, X64, {40 /* VSOCK */, SOCK_STREAM, 0}, E(EAFNOSUPPORT)},
	{__NR_socket, X64, {HIGH | 40, SOCK_STREAM, 0}, E(EAFNOSUPPORT)},
	{__NR_socket, X64, {38 /* ALG */, 5, 0}, E(EAFNOSUPPORT)},
	{__NR_socket, X64, {44 /* XDP */, 3, 0}, E(EAFNOSUPPORT)},
	{__NR_socket, X64, {0}, E(EAFNOSUPPORT)},
	{__NR_socketpair, X64, {AF_UNIX, SOCK_STREAM, 0}, ALLOW},
	{__NR_socketpair, X64, {30 /* TIPC */, SOCK_STREAM, 0}, E(EAFNOSUPPORT)},
	{__NR_ioctl, X64, {0, 0x5413}, ALLOW},
	{__NR_ioctl, X64, {0, 0x5412 /* TIOCSTI */}, E(EPERM)},
	{__NR_ioctl, X64, {0, HIGH | 0x5412}, E(EPERM)},
	{__NR_ioctl, X64, {0, 0x541c /* TIOCLINUX */}, E(EPERM)},
	{__NR_personality, X64, {0xffffffff}, ALLOW},
	{__NR_personality, X64, {0x40000}, ALLOW},
	{__NR_personality, X64, {0x400000 /* READ_IMPLIES_EXEC */}, E(EPERM)},
	{__NR_mknod, X64, {0, S_IFIFO | 0644}, ALLOW},
	{__NR_mknod, X64, {0, S_IFCHR | 0644}, E(EPERM)},
	{__NR_mknodat, X64, {0, 0, S_IFBLK | 0644}, E(EPERM)},
	{__NR_mknodat, X64, {0, 0, S_IFREG | 04755}, ALLOW, E(EPERM)},
	{__NR_chmod, X64, {0, 0755}, ALLOW, ALLOW},
	{__NR_chmod, X64, {0, 04755}, ALLOW, E(EPERM)},
	{__NR_fchmod, X64, {0, 02755}, ALLOW, E(EPERM)},
	{__NR_fchmod, X64, {0, HIGH | 0x10000 | 06755}, ALLOW, E(EPERM)},
	{__NR_fchmodat, X64, {0, 0, 04755}, ALLOW, E(EPERM)},
	{__NR_fchmodat, X64, {0, 04755, 0755}, ALLOW, ALLOW},
	{__NR_openat, X64, {0, 0, O_RDONLY, 04755}, ALLOW, ALLOW},
	{__NR_openat, X64, {0, 0, O_CREAT | O_WRONLY, 04755}, ALLOW, E(EPERM)},
	{__NR_openat, X64, {0, 0, O_CREAT | O_WRONLY, 0755}, ALLOW, ALLOW},
	{__NR_open, X64, {0, O_TMPFILE | O_RDWR, 02755}, ALLOW, E(EPERM)},
	{__NR_creat, X64, {0, 04700}, ALLOW, E(EPERM)},
	{__NR_openat2, X64, {0}, ALLOW, E(ENOSYS)},
};

static void test_table(void **state)
{
	struct seccomp_program usual, strict;

	seccomp_build(&usual, false);
	seccomp_build(&strict, true);
	assert_true(usual.prog.len < 600);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct call *c = &calls[i];
		struct seccomp_data data = {.nr = (int)c->nr, .arch = c->arch};
		uint32_t got, got_strict;

		memcpy(data.args, c->args, sizeof(data.args));
		got = run_filter(&usual.prog, &data);
		got_strict = run_filter(&strict.prog, &data);
		if (got != c->want ||
			got_strict != (c->want_no_set_id ? c->want_no_set_id : c->want))
			fail_msg("row %zu: call %u gave %x and %x", i, c->nr, got, got_strict);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
