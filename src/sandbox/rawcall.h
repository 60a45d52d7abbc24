/* SPDX-License-Identifier: Apache-2.0 */
/* System calls without libc: for code that runs beside the supervisor in its own memory (enter.c, exec.c),
 * where libc's errno and thread state belong to somebody else. Results are the kernel's: negative errnos. */
#ifndef SANDBOX_RAWCALL_H
#define SANDBOX_RAWCALL_H

#ifndef __x86_64__
#error "cloche runs on x86-64 only so far: system call gate, seccomp table and pid 1 are written for it"
#endif

static inline __attribute__((always_inline)) long rawcall6(
	long nr, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

#define RAWCALL_PAD(nr, a, b, c, d, e, f, ...) \
	rawcall6((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define rawcall(...) RAWCALL_PAD(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

#endif
