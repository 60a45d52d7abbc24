/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst, filesystems/proc.rst. */
#include "sandbox/gauge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/scoped.h"

#define SMALL_MAX 1024 /* of the files here */
#define PROCS_MAX (1u << 20)
#define PATH_LEN  600

/* No allocation: some of these are read at each exec's end. */
static int read_small(int dir_fd, const char *name, char text[SMALL_MAX])
{
	scoped_fd int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, SMALL_MAX - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

/* A number, or the one behind a word at the start of a line. */
static int64_t number_in(const char *text, const char *word)
{
	const char *at = text;
	char *end;
	long long v;

	while (*word && at && strncmp(at, word, strlen(word)) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return GAUGE_UNKNOWN;
	at += strlen(word);
	errno = 0;
	v = strtoll(at, &end, 10);
	return end == at || errno || v < 0 ? GAUGE_UNKNOWN : (int64_t)v;
}

static int64_t read_number(int dir_fd, const char *name, const char *word)
{
	char text[SMALL_MAX];

	return read_small(dir_fd, name, text) < 0 ? GAUGE_UNKNOWN : number_in(text, word);
}

/* A file of the v1 group where there is one, else of the group itself. */
static int64_t read_either(
	int group_fd, const char *v2_name, const char *v1, const char *v1_name, const char *word)
{
	char path[PATH_LEN];

	if (!v1)
		return read_number(group_fd, v2_name, word);
	(void)snprintf(path, sizeof(path), "%s/%s", v1, v1_name);
	return read_number(AT_FDCWD, path, word);
}

void gauge_read_group(
	int group_fd, const char *memory_v1, const char *pids_v1, struct gauge_group *ret)
{
	ret->cpu_us = read_number(group_fd, "cpu.stat", "usage_usec ");
	ret->memory_bytes =
		read_either(group_fd, "memory.current", memory_v1, "memory.usage_in_bytes", "");
	/* Where the first is missing, so is the controller. */
	ret->memory_peak_bytes = ret->memory_bytes == GAUGE_UNKNOWN
	                                 ? GAUGE_UNKNOWN
	                                 : read_either(group_fd, "memory.peak", memory_v1,
						   "memory.max_usage_in_bytes", "");
	ret->threads_peak = read_either(group_fd, "pids.peak", pids_v1, "pids.peak", "");
}

int64_t gauge_read_pids_refused(int group_fd)
{
	int64_t n = read_number(group_fd, "pids.events", "max ");

	return n == GAUGE_UNKNOWN ? 0 : n;
}

/* A process that is gone meanwhile has nothing to add; a file that the kernel does not have leaves the sum unknown. */
static void add_number(int64_t *sum, int64_t v)
{
	if (v != GAUGE_UNKNOWN && *sum != GAUGE_UNKNOWN)
		*sum += v;
}

static int64_t resident(const char *statm)
{
	const char *second = strchr(statm, ' ');
	int64_t pages = second ? number_in(second + 1, "") : GAUGE_UNKNOWN;

	return pages == GAUGE_UNKNOWN ? pages : pages * sysconf(_SC_PAGESIZE);
}

static void add_process(const char *pid, int pid_len, struct gauge_processes *sum)
{
	char path[64], text[SMALL_MAX];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%.*s/statm", pid_len, pid);
	if (read_small(AT_FDCWD, path, text) == 0)
		add_number(&sum->rss_bytes, resident(text));
	(void)snprintf(path, sizeof(path), "/proc/%.*s/io", pid_len, pid);
	r = read_small(AT_FDCWD, path, text);
	if (r == 0) {
		add_number(&sum->disk_read_bytes, number_in(text, "read_bytes: "));
		add_number(&sum->disk_write_bytes, number_in(text, "write_bytes: "));
	} else if (!gauge_counts_disk() || (r != -ENOENT && r != -ESRCH)) {
		sum->disk_read_bytes = sum->disk_write_bytes = GAUGE_UNKNOWN;
	}
}

bool gauge_counts_disk(void)
{
	static int counts = -1;

	if (counts < 0)
		counts = access("/proc/self/io", F_OK) == 0;
	return counts;
}

static void forget(struct gauge_processes *sum)
{
	sum->rss_bytes = sum->disk_read_bytes = sum->disk_write_bytes = GAUGE_UNKNOWN;
}

void gauge_add_processes(int group_fd, unsigned *left, struct gauge_processes *sum)
{
	scoped_str struct str procs = {0};
	int r = fdio_read_file(group_fd, "cgroup.procs", PROCS_MAX, &procs);

	if (r < 0)
		forget(sum);
	for (const char *p = procs.p; p && *p; p += *p == '\n') {
		size_t len = strcspn(p, "\n");

		sum->n++;
		if (*left == 0) {
			forget(sum);
		} else {
			add_process(p, (int)len, sum);
			(*left)--;
		}
		p += len;
	}
}
