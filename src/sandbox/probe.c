/* SPDX-License-Identifier: Apache-2.0 */
/* Tries each thing a sandbox stands on, as it would be used, and says in words what to do where it fails. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sandbox/cgroup.h"
#include "sandbox/idmap.h"
#include "sandbox/idrange.h"
#include "sandbox/kmount.h"
#include "sandbox/layer.h"
#include "sandbox/mount_copy.h"
#include "sandbox/quota.h"
#include "sandbox/sandbox.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

/* What the probes share. */
struct host {
	const char *state_dir, *cwd;
	int userns_fd; /* of a map as sandboxes have it, -1 where none can be made */
	struct err userns_err;
};

static void say(struct sandbox_probe *probe, bool ok, const char *detail)
{
	probe->ok = ok;
	(void)snprintf(probe->detail, sizeof(probe->detail), "%.255s", detail);
}

static void probe_root(struct sandbox_probe *probe, const struct host *host)
{
	bool ok = geteuid() == 0;

	say(probe, ok, ok ? "running as root" : "not root: run it with sudo");
}

static void probe_kernel(struct sandbox_probe *probe, const struct host *host)
{
	struct utsname name;
	int major_nr = 0, minor_nr = 0;
	bool ok;

	if (uname(&name) < 0 || sscanf(name.release, "%d.%d", &major_nr, &minor_nr) != 2)
		(void)snprintf(name.release, sizeof(name.release), "unknown");
	ok = major_nr > KERNEL_MAJOR || (major_nr == KERNEL_MAJOR && minor_nr >= KERNEL_MINOR);
	(void)snprintf(probe->detail, sizeof(probe->detail), "Linux %.64s%s", name.release,
		ok ? "" : ": 6.1 is the oldest that was tried, install a newer kernel");
	probe->ok = ok;
}

static void probe_userns(struct sandbox_probe *probe, const struct host *host)
{
	if (host->userns_fd >= 0)
		say(probe, true, "can be made, with ids of their own");
	else if (geteuid() != 0)
		say(probe, false, "only root can tell: run it with sudo");
	else
		(void)snprintf(probe->detail, sizeof(probe->detail),
			"%.140s: raise user.max_user_namespaces, and see "
			"kernel.unprivileged_userns_clone",
			host->userns_err.msg);
}

static void probe_cgroup(struct sandbox_probe *probe, const struct host *host)
{
	const char *root = cgroup_v2_root();

	if (root)
		(void)snprintf(probe->detail, sizeof(probe->detail), "cgroup2 at %s", root);
	else
		say(probe, false,
			"no cgroup2 hierarchy: mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 "
			"none "
			"/sys/fs/cgroup/unified");
	probe->ok = root != NULL;
}

static void probe_limits(struct sandbox_probe *probe, const struct host *host)
{
	char missing[64] = "";

	for (int i = 0; i < CGROUP_N_CONTROLLERS; i++) {
		const char *name = cgroup_controller_name((enum cgroup_controller)i);

		if (!cgroup_has_controller((enum cgroup_controller)i))
			(void)snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				" %s", name);
	}
	probe->ok = !missing[0];
	(void)snprintf(probe->detail, sizeof(probe->detail), "%s%s%s",
		missing[0] ? "missing:" : "memory, cpu, pids", missing,
		missing[0] ? " (limits on these are refused; boot with the controllers enabled)"
			   : "");
}

static void probe_seccomp(struct sandbox_probe *probe, const struct host *host)
{
	bool ok = access("/proc/sys/kernel/seccomp/actions_avail", R_OK) == 0;

	say(probe, ok,
		ok ? "filters can be loaded"
		   : "the kernel was built without CONFIG_SECCOMP_FILTER");
}

static void probe_idmap(struct sandbox_probe *probe, const struct host *host, const char *path)
{
	struct err err;
	scoped_fd int fd = -1;

	if (host->userns_fd < 0) {
		say(probe, false, "not tried: no user namespace");
		return;
	}
	fd = kmount_clone(path, MOUNT_ATTR_RDONLY, host->userns_fd, &err);
	if (fd >= 0)
		(void)snprintf(probe->detail, sizeof(probe->detail),
			"ids of '%.200s' can be mapped", path);
	else
		say(probe, false, err.msg);
	probe->ok = fd >= 0;
}

static void probe_root_idmap(struct sandbox_probe *probe, const struct host *host)
{
	probe_idmap(probe, host, "/usr");
}

static void probe_cwd_idmap(struct sandbox_probe *probe, const struct host *host)
{
	probe_idmap(probe, host, host->cwd);
	if (!probe->ok && host->userns_fd >= 0 && mount_copy_is_needed(host->cwd, host->userns_fd))
		(void)snprintf(probe->detail, sizeof(probe->detail),
			"ids of '%.140s' cannot be mapped: mounted ro or cow it is a copy, rw is "
			"refused",
			host->cwd);
}

/* A real layer, made and removed. */
static int try_layer(const struct host *host, int dir_fd, struct err *err)
{
	const struct layer layer = {.dir_fd = dir_fd,
		.over_fd = -1,
		.prefix = "probe/",
		.lower = "/usr",
		.userns_fd = host->userns_fd,
		.owner = IDRANGE_BASE,
		.mode = 0755,
		.throw_away = true};
	int fd = layer_open(&layer, err);

	if (fd >= 0)
		(void)close(fd);
	(void)path_remove_all(dir_fd, "probe");
	return fd < 0 ? fd : 0;
}

static void probe_overlay(struct sandbox_probe *probe, const struct host *host)
{
	scoped_mem char *dir = mem_printf("%s/probe.XXXXXX", host->state_dir);
	scoped_fd int dir_fd = -1;
	struct err err = {0};

	if (host->userns_fd < 0) {
		say(probe, false, "not tried: no user namespace");
		return;
	}
	if (path_make_all(host->state_dir, 0755) < 0 || !mkdtemp(dir)) {
		(void)snprintf(probe->detail, sizeof(probe->detail),
			"cannot write to the state folder '%.150s': name another with --state",
			host->state_dir);
		return;
	}
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	probe->ok = dir_fd >= 0 && try_layer(host, dir_fd, &err) == 0;
	(void)rmdir(dir);
	say(probe, probe->ok,
		probe->ok ? "writable layers can be made in the state folder" : err.msg);
}

static void probe_disk(struct sandbox_probe *probe, const struct host *host)
{
	struct statfs fs;
	unsigned long long free_mb;

	if (statfs(host->state_dir, &fs) < 0) {
		say(probe, false, "cannot look at the state folder");
		return;
	}
	free_mb = (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize >> 20;
	probe->ok = free_mb >= 1024;
	(void)snprintf(probe->detail, sizeof(probe->detail), "%llu MB free at '%.150s'%s", free_mb,
		host->state_dir,
		probe->ok ? "" : ": make room (cloche gc), or name another folder with --state");
}

static void probe_quota(struct sandbox_probe *probe, const struct host *host)
{
	struct err err;

	probe->ok = quota_probe(host->state_dir, &err) == 0;
	say(probe, probe->ok,
		probe->ok ? "--disk can limit what sandboxes keep in the state folder" : err.msg);
}

/* Without limits, too: what `cloche stats` can tell of a sandbox. */
static void probe_counting(struct sandbox_probe *probe, const struct host *host)
{
	bool memory = cgroup_counts_always(CGROUP_MEMORY), pids = cgroup_counts_always(CGROUP_PIDS);

	probe->ok = true; /* in part, at least */
	(void)snprintf(probe->detail, sizeof(probe->detail),
		"CPU time, resident memory, processes, disk, network%s%s",
		memory ? "; memory and its peak" : "; memory as a whole only with --memory",
		pids ? "; most threads at once" : "; most threads at once only with --pids");
}

static const struct {
	const char *what;
	bool required;
	void (*run)(struct sandbox_probe *probe, const struct host *host);
} probes[] = {
	{"root", true, probe_root},
	{"kernel", true, probe_kernel},
	{"user namespaces", true, probe_userns},
	{"control groups", true, probe_cgroup},
	{"limits", false, probe_limits},
	{"seccomp", true, probe_seccomp},
	{"overlay layers", true, probe_overlay},
	{"id mapping of /usr", true, probe_root_idmap},
	{"id mapping of this folder", false, probe_cwd_idmap},
	{"disk", false, probe_disk},
	{"disk limit (quotas)", false, probe_quota},
	{"measuring (stats)", false, probe_counting},
};

size_t sandbox_probe_host(
	const char *state_dir, const char *cwd, struct sandbox_probe *ret_probes, size_t max)
{
	const struct idmap map = {
		.lines = {{.disk = 0, .host = IDRANGE_BASE, .n = IDRANGE_LEN}}, .n = 1};
	struct host host = {.state_dir = state_dir, .cwd = cwd};
	size_t n = sizeof(probes) / sizeof(probes[0]);

	host.userns_fd = idmap_open_userns(&map, &map, &host.userns_err);
	n = n < max ? n : max;
	for (size_t i = 0; i < n; i++) {
		ret_probes[i] = (struct sandbox_probe){
			.what = probes[i].what, .required = probes[i].required};
		probes[i].run(&ret_probes[i], &host);
	}
	scoped_close(&host.userns_fd);
	return n;
}
