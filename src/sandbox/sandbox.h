/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and tears down one box: the whole isolation, nothing of observing or recording.
 *
 * Used by the supervisor's one thread. The calls here block for milliseconds at most and never wait for
 * anything the agent controls: an exec in a frozen box, or root inside stopping our child, is answered by
 * a deadline (architecture, 2.6). Linux namespaces(7), cgroups(7), overlayfs. */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox/cgroup.h"
#include "sandbox/gauge.h"
#include "spec/spec.h"
#include "util/err.h"
#include "util/scoped.h"

struct sandbox;

struct sandbox_before {
	uint32_t id_base; /* of its range, which it gets again */
	int64_t guest_ns; /* for how long it has run: sandbox_start_ns() is as if it went on */
};

struct sandbox_config {
	const char *id;
	const struct spec *spec;
	const char *state_dir; /* $CLOCHE_STATE: id ranges, skeletons */
	const char
		*dir; /* <state>/sandboxes/<id>, exists: upper and work folders are made in here */
	const char *
		changes_dir; /* <state>/changes/<id>, exists: N/{upper,work} for the Nth mount that is cow */
	int init_fd; /* the static pid 1 program, opened */
	int trust_fd; /* what launcher/authority.h gives comes from here, read to its end; taken over; -1: none */
	/* One that goes on over the uppers in dir and changes_dir; NULL: a new one. */
	const struct sandbox_before *before;
	/* May be NULL. Called when the network namespace and the group of all of it are there, while the rest is made;
	 * the descriptors are the sandbox's. */
	void (*on_place)(void *ctx, int netns_fd, int cgroup_fd);
	/* May be NULL. Called for each mount that the user asked for, while nothing runs and before it is attached; the
	 * descriptor is the sandbox's. */
	void (*on_mount)(void *ctx, int mount_fd, const struct spec_mount *mount);
	void *ctx;
};

/* Everything up to a running pid 1, or nothing left behind and a sentence. The caller owns *ret_sandbox. */
int sandbox_create(
	const struct sandbox_config *config, struct sandbox **ret_sandbox, struct err *err);
/* Kills all of it, process 1 included, and waits (5 s at most) until nothing runs: what it did is done then. */
void sandbox_kill(struct sandbox *sandbox);
/* Before it is freed: its id range stays its own. -errno where that cannot be written. */
int sandbox_keep_range(struct sandbox *sandbox);
/* Puts into the spec it was made from what one that goes on from it has to know: since when a change in a host folder
 * is the host's, and which folders those were. */
void sandbox_keep_begin(const struct sandbox *sandbox, struct spec *spec);
/* Kills what runs, unmounts, removes cgroups. Nothing of it lives after that. Safe twice. */
void sandbox_destroy(struct sandbox *sandbox, bool keep_layer);
/* Destroys first where that was not done. Removes the root's layer unless keep_layer was given, and lets go of
 * the change sets' layers, which the kernel then writes out: takes as long as the disk is busy, so it comes
 * last, when nobody waits any more. Change sets stay. */
void sandbox_free(struct sandbox *sandbox);
SCOPED_TYPE(sandbox)

/* What a supervisor that was killed while it resumed its sandbox left beside the files: its cgroups. */
void sandbox_clean_running(const char *id);
/* Removes what a sandbox whose supervisor died left: cgroups by name, folders below its dir, its id range.
 * Needs no struct sandbox; everything missing is fine. Change sets stay. */
int sandbox_clean(const char *id, const char *state_dir, const char *dir, struct err *err);

pid_t sandbox_init_pid(const struct sandbox *sandbox); /* pid 1 as the host numbers it */
int sandbox_init_pidfd(const struct sandbox *sandbox); /* readable when pid 1 has ended; borrowed */
int sandbox_root_fd(
	const struct sandbox *sandbox); /* O_PATH of the root as seen inside; borrowed */
int sandbox_netns_fd(const struct sandbox *sandbox); /* borrowed; -1 without on_place */
uint32_t sandbox_gateway_id(
	const struct sandbox *sandbox); /* an uid and gid of its own for the gateway */
uint64_t sandbox_init_cgroup_id(const struct sandbox *sandbox);
int64_t sandbox_start_ns(
	const struct sandbox *sandbox); /* CLOCK_MONOTONIC when pid 1 was cloned: guest_ns 0 */
uint32_t sandbox_id_base(const struct sandbox *sandbox); /* first of the 65,536 host ids */
/* Where an exec without a cwd of its own starts: the guest path of the first folder mounted that is not
 * internal, else /workspace (always there). Borrowed. */
const char *sandbox_default_cwd(const struct sandbox *sandbox);
/* A sentence that belongs in the record (where --hide gave up looking), or NULL. Borrowed. */
const char *sandbox_notice(const struct sandbox *sandbox);

/* Freezing is a set of reasons; the box runs when none is left. */
#define SANDBOX_FREEZE_USER 1u /* cloche pause */
#define SANDBOX_FREEZE_LOSS 2u /* the observer's high water */
int sandbox_freeze(struct sandbox *sandbox, unsigned reason, struct err *err);
int sandbox_thaw(struct sandbox *sandbox, unsigned reason, struct err *err);
bool sandbox_is_frozen(struct sandbox *sandbox);

/* What all of it has used. */
void sandbox_read_usage(const struct sandbox *sandbox, struct gauge_group *ret);
/* What its layers and change sets hold, and whether that is all that --disk lets them; GAUGE_UNKNOWN and false without
 * that limit. */
int64_t sandbox_disk_held(const struct sandbox *sandbox, bool *ret_is_full);
/* What its limits did to it; 0 without them. */
void sandbox_read_limited(const struct sandbox *sandbox, struct cgroup_limited *ret);

/* One exec. Prepared first (its cgroup exists, nothing runs), so that whoever watches can look at it before
 * the first instruction; then started; then ended. */
struct sandbox_exec;

struct sandbox_exec_config {
	const char *id; /* ex_..., names the cgroup */
	const struct spec_exec *spec;
	int stdin_fd, stdout_fd,
		stderr_fd; /* borrowed; -1: /dev/null. Not looked at with a terminal */
	int program_fd;    /* taken over: what runs, with the spec's argv; -1: what that names */
};

int sandbox_exec_prepare(struct sandbox *sandbox, const struct sandbox_exec_config *config,
	struct sandbox_exec **ret_exec, struct err *err);
uint64_t sandbox_exec_cgroup_id(const struct sandbox_exec *exec);
/* Clones the child into the cgroup and the box. Does not wait for execve: sandbox_exec_status_fd() turns
 * readable when it has happened (end of file) or failed (an int, the errno, and an int, the step). */
int sandbox_exec_start(struct sandbox_exec *exec, struct err *err);
int sandbox_exec_status_fd(const struct sandbox_exec *exec); /* borrowed */
/* Reads it: 0 started, -EAGAIN not known yet, else the negative errno of execve (-ENOENT, -EACCES) or of the
 * step before it, with a sentence. */
int sandbox_exec_status(struct sandbox_exec *exec, struct err *err);
/* Of one that failed: whether it was the command itself that execve refused, not a step before it. */
bool sandbox_exec_is_command_refused(const struct sandbox_exec *exec);
pid_t sandbox_exec_pid(const struct sandbox_exec *exec); /* host's number */
int sandbox_exec_pidfd(const struct sandbox_exec *exec); /* readable when it has ended; borrowed */
int sandbox_exec_pty(
	const struct sandbox_exec *exec); /* master of its terminal, -1 without; borrowed */
int sandbox_exec_resize(struct sandbox_exec *exec, unsigned short rows, unsigned short columns);
int sandbox_exec_signal(
	struct sandbox_exec *exec, int signal); /* to the exec's process group leader */
/* Kills every process of the exec, daemons included (cgroup.kill). Does not wait. */
int sandbox_exec_kill(struct sandbox_exec *exec);
/* After pidfd is readable: code or signal. */
struct sandbox_exit {
	int code; /* valid where signal is 0 */
	int signal;
	bool oom_killed; /* the box's memory limit did it: the counter moved and the signal was KILL */
	/* Of the command and what it and its children waited for; GAUGE_UNKNOWN: not counted here. */
	int64_t rss_max_bytes; /* the largest single process, where it was larger than this one */
	int64_t disk_read_bytes, disk_write_bytes;
};
int sandbox_exec_reap(struct sandbox_exec *exec, struct sandbox_exit *ret_exit);
/* What its group has used up to now; its processes are added to *sum, see gauge.h. */
void sandbox_exec_read_usage(const struct sandbox_exec *exec, struct gauge_group *ret);
int64_t sandbox_exec_pids_refused(const struct sandbox_exec *exec); /* see gauge.h */
void sandbox_exec_add_processes(
	const struct sandbox_exec *exec, unsigned *left, struct gauge_processes *sum);
int sandbox_exec_n_left(const struct sandbox_exec *exec); /* processes still in its cgroup */
/* Drops the handle; removes the cgroup when it is empty, else leaves it to sandbox_destroy(). */
void sandbox_exec_free(struct sandbox_exec *exec);
SCOPED_TYPE(sandbox_exec)

/* Where each cow mount's change set and the root's own layers lie, for `cloche changes`: written by
 * sandbox_create() as <changes_dir>/changes.json, docs/change-sets.md says how. */

/* What this host can do, for doctor and for the sentence when create fails. */
struct sandbox_probe {
	const char *what; /* "user namespaces" */
	bool ok, required;
	char detail[256]; /* what is there, or what to do */
};
/* Fills up to max, returns how many. */
size_t sandbox_probe_host(
	const char *state_dir, const char *cwd, struct sandbox_probe *ret_probes, size_t max);

#endif
