/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/hint.h"

#include <errno.h>

static const struct {
	const char *reason, *advice;
} hints[HINT_N_KINDS] = {
	[HINT_INNER_SANDBOX] = {"namespaces are not given inside a sandbox",
		"a sandbox inside was refused: start the program with its own sandbox off (Codex: "
		"--dangerously-bypass-approvals-and-sandbox; Chromium: --no-sandbox), or without "
		"bwrap, unshare or docker around it: Cloche is the sandbox"},
	[HINT_MOUNT] = {"nothing can be mounted inside a sandbox",
		"a mount was refused: show the folder from outside with --mount HOST:GUEST:MODE"},
	[HINT_PROFILE] = {"the kernel's own tracing is not given inside a sandbox",
		"perf and BPF were refused: use them outside, on the sandbox's processes"},
	[HINT_OLD_ABI] = {"only 64-bit system calls are taken",
		"a 32-bit or x32 program was refused: use a 64-bit build of it"},
	[HINT_MOUNTED_FILE] = {"what is mounted cannot be renamed or replaced",
		"a program saves by writing a new file and renaming it, which a single mounted "
		"file "
		"does not take: mount the folder that the file lies in"},
};

static const struct {
	const char *call;
	enum hint_kind kind;
} calls[] = {
	{"bpf", HINT_PROFILE},
	{"clone", HINT_INNER_SANDBOX},
	{"fsmount", HINT_MOUNT},
	{"fsopen", HINT_MOUNT},
	{"mount", HINT_MOUNT},
	{"mount_setattr", HINT_MOUNT},
	{"move_mount", HINT_MOUNT},
	{"open_tree", HINT_MOUNT},
	{"perf_event_open", HINT_PROFILE},
	{"pivot_root", HINT_INNER_SANDBOX},
	{"setns", HINT_INNER_SANDBOX},
	{"unshare", HINT_INNER_SANDBOX},
};

static bool is_rename(const struct event *ev)
{
	return ev->kind == EVENT_FILE_RENAME || ev->kind == EVENT_MOUNT_RENAME;
}

int hint_find(const struct event *refused)
{
	if (is_rename(refused))
		return event_has(refused, result) && refused->result == EBUSY ? HINT_MOUNTED_FILE
		                                                              : -ENOENT;
	if (slice_starts(refused->call, "i386:") || slice_starts(refused->call, "x32:"))
		return HINT_OLD_ABI;
	if (event_has(refused, result) && refused->result == ENOSYS)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (slice_is(refused->call, calls[i].call))
			return (int)calls[i].kind;
	return -ENOENT;
}

void hint_make(enum hint_kind kind, const struct event *refused, struct event *ret_hint)
{
	*ret_hint = (struct event){.kind = EVENT_HINT,
		.guest_ns = refused->guest_ns,
		.wall_ms = refused->wall_ms,
		.pid = refused->pid,
		.task = refused->task,
		.exec = refused->exec};
	event_set_text(ret_hint, reason, hints[kind].reason);
	event_set_text(ret_hint, advice, hints[kind].advice);
}
