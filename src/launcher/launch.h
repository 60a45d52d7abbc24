/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a supervisor for one sandbox: its id, its folders, its lock, its process. */
#ifndef LAUNCHER_LAUNCH_H
#define LAUNCHER_LAUNCH_H

#include <sys/types.h>

#include "spec/spec.h"
#include "util/err.h"
#include "util/id.h"

struct launch {
	char id[ID_SIZE];
	int control_fd; /* to the supervisor, who answers first when the sandbox is ready, or why it is not */
	int seal_fd; /* heads to be signed come here (seal.h) */
	pid_t pid;   /* our child */
};

/* In a sandbox's folder: names of the shared layers that it lies over, a line each, from before it is made. */
#define LAUNCH_LAYERS "layers"

/* In a state that launch_make_state() has made. Does not wait for the sandbox. The caller owns both descriptors
 * and waits for pid when its side of control_fd has ended. */
int launch_start(const char *state_dir, const char *run_dir, const struct spec *spec,
	struct launch *ret_launch, struct err *err);

/* Goes on with one that rests (control/rest.h), whose folder lock (launch_lock()) the caller holds; its supervisor
 * holds it from then on. Where it fails, it rests as before. */
int launch_again(const char *state_dir, const char *run_dir, const char *id, int lock_fd,
	const struct spec *spec, struct launch *ret_launch, struct err *err);

/* The lock of a sandbox's folder, which its supervisor holds as long as it lives: waits a moment for others who have
 * it. Returns a descriptor; -EBUSY, -ENOENT where it has no folder. */
int launch_lock(const char *state_dir, const char *id, struct err *err);

/* The state's folders, with the rights they need: records and change sets belong to users, below a folder
 * that only lets them through. -EACCES, with what to do, where we are not root. */
int launch_make_state(const char *state_dir, struct err *err);

/* Starts `cloche-supervisor` in one of its other ways, with seal_fd (-1: none) where it expects that.
 * stdout_fd -1: /dev/null. Returns its pid. */
int launch_helper(char *const args[], int seal_fd, int stdout_fd, pid_t *ret_pid, struct err *err);

#endif
