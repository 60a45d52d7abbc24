/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox's limits did to it, as the controllers count it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/cgroup.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define COUNTERS_MAX (64u * 1024)

/* Of a file of the group where the controller is; 0 where it is not there. word ends with a space. */
static uint64_t read_counter(const struct cgroup *cgroup, enum cgroup_controller which,
	const char *file, const char *word)
{
	const char *v1 = cgroup->v1_paths[which];
	char path[CGROUP_PATH_LEN + 32];
	scoped_str struct str text = {0};
	const char *at;

	(void)snprintf(path, sizeof(path), "%s/%s", v1[0] ? v1 : cgroup->path, file);
	if (fdio_read_file(AT_FDCWD, path, COUNTERS_MAX, &text) < 0 || !text.p)
		return 0;
	at = strstr(text.p, word);
	return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static uint64_t count_oom_kills(const struct cgroup *cgroup)
{
	bool is_v1 = cgroup->v1_paths[CGROUP_MEMORY][0];

	return read_counter(
		cgroup, CGROUP_MEMORY, is_v1 ? "memory.oom_control" : "memory.events", "oom_kill ");
}

bool cgroup_take_oom_kill(struct cgroup *cgroup)
{
	uint64_t n;

	if (!cgroup->limits_memory)
		return false;
	n = count_oom_kills(cgroup);
	if (n <= cgroup->n_oom_kills_seen)
		return false;
	cgroup->n_oom_kills_seen = n;
	return true;
}

void cgroup_read_limited(const struct cgroup *cgroup, struct cgroup_limited *ret)
{
	*ret = (struct cgroup_limited){0};
	if (cgroup->limits_memory)
		ret->oom_kills = (int64_t)count_oom_kills(cgroup);
	if (cgroup->limits_pids)
		ret->pids_refused =
			(int64_t)read_counter(cgroup, CGROUP_PIDS, "pids.events", "max ");
	if (!cgroup->limits_cpu)
		return;
	ret->cpu_throttled_us =
		(int64_t)(cgroup->v1_paths[CGROUP_CPU][0] ? read_counter(cgroup, CGROUP_CPU,
								    "cpu.stat", "throttled_time ") /
								    1000
							  : read_counter(cgroup, CGROUP_CPU,
								    "cpu.stat", "throttled_usec "));
}
