/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's control groups: cloche/<id>/{init,ex_...} in the cgroup2 hierarchy for killing, freezing and
 * telling execs apart, with the limits on cloche/<id>; where the host's controllers are version 1, a group
 * per limited controller beside it, which each exec's first process joins. */
#ifndef SANDBOX_CGROUP_H
#define SANDBOX_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "util/err.h"

#define CGROUP_PATH_LEN 512

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_CPU,
	CGROUP_PIDS,
	CGROUP_N_CONTROLLERS,
};

struct cgroup_limits {
	int64_t memory_bytes, cpu_milli, pids_max; /* 0: none */
};

struct cgroup {
	char path[CGROUP_PATH_LEN]; /* of cloche/<id> in the cgroup2 hierarchy; empty: none */
	int fd;
	int v1_join_fds
		[CGROUP_N_CONTROLLERS]; /* cgroup.procs of the groups beside it, -1 where none is */
	char v1_paths[CGROUP_N_CONTROLLERS][CGROUP_PATH_LEN];
	bool limits_memory, limits_cpu, limits_pids;
	uint64_t n_oom_kills_seen;
};

/* Where the cgroup2 hierarchy is mounted; NULL where the host has none. */
const char *cgroup_v2_root(void);

const char *cgroup_controller_name(enum cgroup_controller which);
bool cgroup_has_controller(enum cgroup_controller which); /* of either version */
bool cgroup_counts_always(enum cgroup_controller which);  /* without a limit, too: version 2 */

/* Without limits, too, the memory and pids controllers of a cgroup2 hierarchy are handed down to the sandbox and its
 * execs, where they can be: they count there. */
int cgroup_open(
	struct cgroup *cgroup, const char *id, const struct cgroup_limits *limits, struct err *err);
/* Kills everything, waits up to wait_ms for it to be gone, and removes the groups. */
void cgroup_remove(struct cgroup *cgroup, int wait_ms);
void cgroup_clean(const char *id, int wait_ms); /* the same, by name */

/* One group below: a descriptor of the folder, and its id as the kernel half sees it. */
int cgroup_make_child(const struct cgroup *cgroup, const char *name, int *ret_fd, uint64_t *ret_id,
	struct err *err);
int cgroup_kill(int child_fd);
int cgroup_count(int child_fd); /* processes in it */

int cgroup_freeze(const struct cgroup *cgroup, bool frozen);
/* Whether the memory limit has killed something since last asked. */
bool cgroup_take_oom_kill(struct cgroup *cgroup);
/* What its limits did to it since it was made. */
struct cgroup_limited {
	int64_t oom_kills;        /* processes killed */
	int64_t pids_refused;     /* times that a process or thread could not be made */
	int64_t cpu_throttled_us; /* time that it was not let run for */
};
void cgroup_read_limited(const struct cgroup *cgroup, struct cgroup_limited *ret);

#endif
