# SPDX-License-Identifier: Apache-2.0
"""Takes a building block away from one process tree only: a filter that answers a call with an errno."""
import ctypes
import struct

CALLS = {'bpf': 321, 'clone3': 435, 'fsopen': 430, 'mount_setattr': 442, 'setns': 308, 'pivot_root': 155,
	'move_mount': 429, 'mknodat': 259, 'fanotify_init': 300}
BPF_LINK_CREATE = 28
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
RET_ALLOW, RET_ERRNO = 0x7fff0000, 0x00050000


def filter_for(calls):
	"""calls: name -> errno. A classic BPF program over the call's number."""
	def step(code, yes, no, k):
		return struct.pack('<HBBI', code, yes, no, k)

	program = step(0x20, 0, 0, 0)
	for name, number in calls.items():
		program += step(0x15, 0, 1, CALLS[name]) + step(0x06, 0, 0, RET_ERRNO | number)
	return program + step(0x06, 0, 0, RET_ALLOW)


def filter_for_command(call, command, number):
	"""Of one call only what its first argument says, such as a command of bpf(2)."""
	def step(code, yes, no, k):
		return struct.pack('<HBBI', code, yes, no, k)

	return (step(0x20, 0, 0, 0) + step(0x15, 0, 3, CALLS[call]) + step(0x20, 0, 0, 16) + step(0x15, 0, 1, command)
		+ step(0x06, 0, 0, RET_ERRNO | number) + step(0x06, 0, 0, RET_ALLOW))


def without(**calls):
	"""For subprocess's preexec_fn: without(bpf=errno.EPERM). Needs root, as no_new_privs is not set."""
	return installer(filter_for(calls))


def without_command(call, command, number):
	"""Likewise: without_command('bpf', BPF_LINK_CREATE, errno.EPERM)."""
	return installer(filter_for_command(call, command, number))


def installer(program):
	def install():
		text = ctypes.create_string_buffer(program)
		header = ctypes.create_string_buffer(
			struct.pack('<HxxxxxxQ', len(program) // 8, ctypes.addressof(text)))
		libc = ctypes.CDLL(None, use_errno=True)
		if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0) != 0:
			raise OSError(ctypes.get_errno(), 'seccomp filter')

	return install


