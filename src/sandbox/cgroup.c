/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define FILE_MAX       (64u * 1024)
#define PARENT         "cloche"
#define CPU_PERIOD_US  100000
#define RETRY_NS       200000
#define NUMBER_LEN     48
#define CONTROLLER_MAX 16

static const char *const controller_names[CGROUP_N_CONTROLLERS] = {"memory", "cpu", "pids"};

static bool is_v2(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

const char *cgroup_v2_root(void)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (is_v2(places[i]))
			return places[i];
	return NULL;
}

static int make_dir(const char *path, struct err *err)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make control group '%s': %m", path);
	return 0;
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n)
		if ((p == text || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\n' || p[n] == '\0'))
			return true;
	return false;
}

/* Hands a controller down to the folders below dir; already there is the usual case and costs one read. */
static int delegate(const char *dir, const char *controller, struct err *err)
{
	char path[CGROUP_PATH_LEN + 32], word[CONTROLLER_MAX];
	scoped_str struct str have = {0};
	int r;

	(void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
	r = fdio_read_file(AT_FDCWD, path, FILE_MAX, &have);
	if (r < 0)
		return err_set(err, r, "read '%s': %m", path);
	if (have.p && has_word(have.p, controller))
		return 0;
	(void)snprintf(word, sizeof(word), "+%s", controller);
	r = fdio_put(AT_FDCWD, path, word);
	return r < 0 ? err_set(err, r, "hand down the %s controller in '%s': %m", controller, path)
	             : 0;
}

/* The hierarchy's controllers; nothing where that cannot be read. */
static void read_offered(const char *root, struct str *ret)
{
	char path[CGROUP_PATH_LEN];

	(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", root);
	if (fdio_read_file(AT_FDCWD, path, FILE_MAX, ret) < 0)
		str_reset(ret);
}

static bool offers(const char *root, const char *controller)
{
	scoped_str struct str have = {0};

	read_offered(root, &have);
	return have.p && has_word(have.p, controller);
}

/* So that it counts; a host that does not let us goes without these figures. */
static void count_v2(
	const struct cgroup *cgroup, const char *root, const char *parent, const char *controller)
{
	if (delegate(root, controller, NULL) == 0 && delegate(parent, controller, NULL) == 0)
		(void)delegate(cgroup->path, controller, NULL);
}

static int put_number(const char *dir, const char *file, int64_t value, struct err *err)
{
	char path[CGROUP_PATH_LEN + 64], text[NUMBER_LEN];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	r = fdio_put(AT_FDCWD, path, text);
	return r < 0 ? err_set(err, r, "set limit '%s' to %s: %m", path, text) : 0;
}

static int64_t limit_of(const struct cgroup_limits *limits, enum cgroup_controller which)
{
	switch (which) {
	case CGROUP_MEMORY:
		return limits->memory_bytes;
	case CGROUP_CPU:
		return limits->cpu_milli;
	case CGROUP_PIDS:
		return limits->pids_max;
	case CGROUP_N_CONTROLLERS:
		break;
	}
	return 0;
}

static int64_t cpu_quota_us(int64_t milli)
{
	int64_t quota = milli * CPU_PERIOD_US / 1000;

	return quota < 1000 ? 1000 : quota; /* the kernel's least */
}

static int set_limit_v2(
	const struct cgroup *cgroup, enum cgroup_controller which, int64_t v, struct err *err)
{
	char path[CGROUP_PATH_LEN + 64], text[NUMBER_LEN];
	int r;

	switch (which) {
	case CGROUP_MEMORY:
		r = put_number(cgroup->path, "memory.max", v, err);
		if (r == 0)
			(void)put_number(cgroup->path, "memory.swap.max", 0,
				NULL); /* no swap: nothing to limit */
		return r;
	case CGROUP_CPU:
		(void)snprintf(path, sizeof(path), "%s/cpu.max", cgroup->path);
		(void)snprintf(
			text, sizeof(text), "%lld %d", (long long)cpu_quota_us(v), CPU_PERIOD_US);
		r = fdio_put(AT_FDCWD, path, text);
		return r < 0 ? err_set(err, r, "set limit '%s' to %s: %m", path, text) : 0;
	case CGROUP_PIDS:
		return put_number(cgroup->path, "pids.max", v, err);
	case CGROUP_N_CONTROLLERS:
		break;
	}
	return 0;
}

static int set_limit_v1(const char *dir, enum cgroup_controller which, int64_t v, struct err *err)
{
	int r;

	switch (which) {
	case CGROUP_MEMORY:
		r = put_number(dir, "memory.limit_in_bytes", v, err);
		if (r == 0)
			(void)put_number(dir, "memory.memsw.limit_in_bytes", v,
				NULL); /* only where swap is counted */
		return r;
	case CGROUP_CPU:
		r = put_number(dir, "cpu.cfs_period_us", CPU_PERIOD_US, err);
		return r < 0 ? r : put_number(dir, "cpu.cfs_quota_us", cpu_quota_us(v), err);
	case CGROUP_PIDS:
		return put_number(dir, "pids.max", v, err);
	case CGROUP_N_CONTROLLERS:
		break;
	}
	return 0;
}

static void v1_parent(enum cgroup_controller which, char path[CGROUP_PATH_LEN])
{
	(void)snprintf(
		path, CGROUP_PATH_LEN, "/sys/fs/cgroup/%s/%s", controller_names[which], PARENT);
}

const char *cgroup_controller_name(enum cgroup_controller which)
{
	return controller_names[which];
}

bool cgroup_has_controller(enum cgroup_controller which)
{
	const char *root = cgroup_v2_root();
	char path[CGROUP_PATH_LEN];

	if (root && offers(root, controller_names[which]))
		return true;
	(void)snprintf(
		path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", controller_names[which]);
	return access(path, W_OK) == 0;
}

bool cgroup_counts_always(enum cgroup_controller which)
{
	const char *root = cgroup_v2_root();

	return root && offers(root, controller_names[which]);
}

static int open_v1(struct cgroup *cgroup, const char *id, enum cgroup_controller which, int64_t v,
	struct err *err)
{
	char parent[CGROUP_PATH_LEN], procs[CGROUP_PATH_LEN + 32];
	char *path = cgroup->v1_paths[which];
	int r;

	v1_parent(which, parent);
	r = make_dir(parent, NULL);
	if (r < 0)
		return err_set(err, r,
			"this host has no %s controller to limit with (looked in '%s'): %m",
			controller_names[which], parent);
	(void)snprintf(path, CGROUP_PATH_LEN, "%.300s/%.64s", parent, id);
	r = make_dir(path, err);
	if (r == 0)
		r = set_limit_v1(path, which, v, err);
	if (r < 0)
		return r;
	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	cgroup->v1_join_fds[which] = open(procs, O_WRONLY | O_CLOEXEC);
	return cgroup->v1_join_fds[which] < 0 ? err_set(err, -errno, "open '%s': %m", procs) : 0;
}

static int set_limits(struct cgroup *cgroup, const char *root, const char *id,
	const struct cgroup_limits *limits, struct err *err)
{
	char parent[CGROUP_PATH_LEN];
	scoped_str struct str text = {0};
	const char *offered;
	int r = 0;

	read_offered(root, &text);
	offered = text.p ? text.p : "";
	(void)snprintf(parent, sizeof(parent), "%s/%s", root, PARENT);
	for (int i = 0; r == 0 && i < CGROUP_N_CONTROLLERS; i++) {
		enum cgroup_controller which = (enum cgroup_controller)i;
		int64_t v = limit_of(limits, which);
		bool is_v2 = has_word(offered, controller_names[i]);

		if (v <= 0) {
			if (is_v2 && which != CGROUP_CPU)
				count_v2(cgroup, root, parent, controller_names[i]);
			continue;
		}
		if (!is_v2) {
			r = open_v1(cgroup, id, which, v, err);
			continue;
		}
		r = delegate(root, controller_names[i], err);
		if (r == 0)
			r = delegate(parent, controller_names[i], err);
		if (r == 0)
			r = set_limit_v2(cgroup, which, v, err);
		if (r == 0 && which != CGROUP_CPU)
			(void)delegate(cgroup->path, controller_names[i], NULL); /* to count */
	}
	cgroup->limits_memory = limits->memory_bytes > 0;
	cgroup->limits_cpu = limits->cpu_milli > 0;
	cgroup->limits_pids = limits->pids_max > 0;
	return r;
}

int cgroup_open(
	struct cgroup *cgroup, const char *id, const struct cgroup_limits *limits, struct err *err)
{
	const char *root = cgroup_v2_root();
	int r;

	*cgroup = (struct cgroup){.fd = -1, .v1_join_fds = {-1, -1, -1}};
	if (!root)
		return err_set(err, -ENOENT,
			"no cgroup2 hierarchy at /sys/fs/cgroup or /sys/fs/cgroup/unified: mount "
			"one with "
			"'mount -t cgroup2 none /sys/fs/cgroup/unified'");
	(void)snprintf(cgroup->path, sizeof(cgroup->path), "%s/%s", root, PARENT);
	r = make_dir(cgroup->path, err);
	if (r < 0) {
		cgroup->path[0] = '\0';
		return r;
	}
	(void)snprintf(cgroup->path, sizeof(cgroup->path), "%s/%s/%.64s", root, PARENT, id);
	r = make_dir(cgroup->path, err);
	if (r == 0) {
		cgroup->fd = open(cgroup->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = cgroup->fd < 0 ? err_set(err, -errno, "open '%s': %m", cgroup->path) : 0;
	}
	if (r == 0)
		r = set_limits(cgroup, root, id, limits, err);
	if (r < 0)
		cgroup_remove(cgroup, 0);
	return r;
}

int cgroup_make_child(const struct cgroup *cgroup, const char *name, int *ret_fd, uint64_t *ret_id,
	struct err *err)
{
	scoped_fd int fd = -1;
	struct stat st;

	if (mkdirat(cgroup->fd, name, 0755) < 0)
		return err_set(err, -errno, "make control group '%s/%s': %m", cgroup->path, name);
	fd = openat(cgroup->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -errno, "open control group '%s/%s': %m", cgroup->path, name);
	*ret_id = st.st_ino; /* kernfs: the inode number is the id, on 64 bits */
	*ret_fd = take_fd(&fd);
	return 0;
}

int cgroup_kill(int child_fd)
{
	return fdio_put(child_fd, "cgroup.kill", "1");
}

int cgroup_count(int child_fd)
{
	scoped_str struct str procs = {0};
	int n = 0, r = fdio_read_file(child_fd, "cgroup.procs", FILE_MAX * 16, &procs);

	/* Of too many, those that were read count: none would be taken for the end of it. */
	if ((r < 0 && r != -EFBIG) || !procs.p)
		return 0;
	for (const char *p = procs.p; *p; p++)
		n += *p == '\n';
	return n;
}

int cgroup_freeze(const struct cgroup *cgroup, bool frozen)
{
	return fdio_put(cgroup->fd, "cgroup.freeze", frozen ? "1" : "0");
}

/* Removes the folders below, then the folder; -EBUSY while something lives in them. */
static int remove_tree(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			(void)unlinkat(dirfd(dir), entry->d_name,
				AT_REMOVEDIR); /* the parent tells if it stayed */
	(void)closedir(dir);
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

static void remove_until(const char *path, int64_t deadline_ns)
{
	while (path[0] && remove_tree(path) == -EBUSY && clock_mono_ns() < deadline_ns)
		(void)nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
}

void cgroup_remove(struct cgroup *cgroup, int wait_ms)
{
	int64_t deadline_ns = clock_mono_ns() + wait_ms * CLOCK_NS_PER_MS;

	if (cgroup->fd >= 0)
		(void)cgroup_kill(cgroup->fd); /* nothing in it: nothing to do */
	remove_until(cgroup->path, deadline_ns);
	cgroup->path[0] = '\0';
	scoped_close(&cgroup->fd);
	cgroup->fd = -1;
	for (int i = 0; i < CGROUP_N_CONTROLLERS; i++) {
		remove_until(cgroup->v1_paths[i], deadline_ns);
		cgroup->v1_paths[i][0] = '\0';
		scoped_close(&cgroup->v1_join_fds[i]);
		cgroup->v1_join_fds[i] = -1;
	}
}

void cgroup_clean(const char *id, int wait_ms)
{
	struct cgroup cgroup = {.fd = -1, .v1_join_fds = {-1, -1, -1}};
	const char *root = cgroup_v2_root();

	if (root) {
		(void)snprintf(cgroup.path, sizeof(cgroup.path), "%s/%s/%.64s", root, PARENT, id);
		cgroup.fd = open(cgroup.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	for (int i = 0; i < CGROUP_N_CONTROLLERS; i++) {
		char parent[CGROUP_PATH_LEN];

		v1_parent((enum cgroup_controller)i, parent);
		(void)snprintf(cgroup.v1_paths[i], CGROUP_PATH_LEN, "%.300s/%.64s", parent, id);
	}
	cgroup_remove(&cgroup, wait_ms);
}
