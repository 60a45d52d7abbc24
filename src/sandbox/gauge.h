/* SPDX-License-Identifier: Apache-2.0 */
/* What a control group and the processes in it have used, read from the kernel in a few small files.
 *
 * A figure that the host does not count is GAUGE_UNKNOWN, never 0: the memory and pids controllers are looked for
 * in the group itself (cgroup v2) and in the one beside it, where there is one (v1). */
#ifndef SANDBOX_GAUGE_H
#define SANDBOX_GAUGE_H

#include <stdbool.h>
#include <stdint.h>

#define GAUGE_UNKNOWN (-1)

struct gauge_group {
	int64_t cpu_us; /* since the group was made, by all that ever ran in it */
	int64_t memory_bytes,
		memory_peak_bytes; /* as the memory controller counts: with its files' cache */
	int64_t threads_peak;      /* most at once; a process has one at least */
};

/* group_fd: a folder of the cgroup2 hierarchy. memory_v1, pids_v1: folders of v1 groups that stand beside it; NULL: none. */
void gauge_read_group(
	int group_fd, const char *memory_v1, const char *pids_v1, struct gauge_group *ret);

/* Times that a process of the group itself was refused one by a limit above it, as kernels before 6.11 count it (later
 * ones count where the limit is). 0 where nobody counts. */
int64_t gauge_read_pids_refused(int group_fd);

/* Of processes that live. Written and read: what they, and children they waited for, caused at the disk. */
struct gauge_processes {
	int64_t n;
	int64_t rss_bytes;
	int64_t disk_read_bytes, disk_write_bytes;
};

/* Whether the kernel counts what processes read from and write to disks. */
bool gauge_counts_disk(void);

/* Adds the processes of a group to *sum, of which *left may still be looked into. Where it runs out, or a figure cannot
 * be had, that is GAUGE_UNKNOWN for all of the sum; n is always right. */
void gauge_add_processes(int group_fd, unsigned *left, struct gauge_processes *sum);

#endif
