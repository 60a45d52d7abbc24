/* SPDX-License-Identifier: Apache-2.0 */
#include "util/callfilter.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CODE_MAX 512
#define JUMP_MAX 255

#if defined(__x86_64__)
#define GATE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define GATE AUDIT_ARCH_AARCH64
#else
#error "the system call filter knows x86-64 and arm64"
#endif

struct code {
	struct sock_filter steps[CODE_MAX];
	unsigned short n;
};

static void add(struct code *c, struct sock_filter step)
{
	assert(c->n < CODE_MAX);
	c->steps[c->n++] = step;
}

static void load(struct code *c, size_t offset)
{
	add(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(struct code *c, uint32_t verdict)
{
	add(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

/* The next step answers where the accumulator is value; else it is jumped over. */
static void if_is(struct code *c, uint32_t value, uint32_t verdict)
{
	add(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
	answer(c, verdict);
}

static void add_narrowed(struct code *c, const struct callfilter_narrow *narrow)
{
	unsigned short at = c->n;

	add(c, (struct sock_filter)BPF_JUMP(
		       BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)narrow->call, 0, 0));
	load(c, offsetof(struct seccomp_data, args) + narrow->argument * sizeof(uint64_t));
	add(c, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, narrow->mask));
	for (size_t i = 0; i < narrow->n; i++)
		if_is(c, narrow->values[i], SECCOMP_RET_ALLOW);
	answer(c, SECCOMP_RET_ERRNO | EPERM);
	assert(c->n - at - 1 <= JUMP_MAX);
	c->steps[at].jf = (uint8_t)(c->n - at - 1);
}

static void build(struct code *c, const struct callfilter *filter)
{
	load(c, offsetof(struct seccomp_data, arch));
	add(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GATE, 1, 0));
	answer(c, SECCOMP_RET_KILL_PROCESS);
	load(c, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < filter->n_allowed; i++)
		if_is(c, (uint32_t)filter->allowed[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < filter->n_narrowed; i++)
		add_narrowed(c, &filter->narrowed[i]);
	answer(c, SECCOMP_RET_ERRNO | ENOSYS);
}

int callfilter_set(const struct callfilter *filter)
{
	struct code c = {0};
	struct sock_fprog program = {.filter = c.steps};
	long r;

	build(&c, filter);
	program.len = c.n;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	return r < 0 ? -errno : r > 0 ? -ESRCH : 0;
}
