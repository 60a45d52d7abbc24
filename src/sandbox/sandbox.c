/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/change_file.h"
#include "sandbox/late.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/sealed.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define KILL_WAIT_MS 5000
#define NUMBER_MAX   64
#define INIT_GROUP   "init"

static struct sandbox *new_sandbox(const struct sandbox_config *config)
{
	struct sandbox *s = new0(struct sandbox);

	s->state_dir = mem_dup(config->state_dir);
	s->id = mem_dup(config->id);
	s->is_again = config->before != NULL;
	pthread_mutex_init(&s->freeze_lock, NULL);
	s->quota.dir_fd = s->dir_fd = s->netns_fd = s->init_cgroup_fd = s->root_fd = s->devpts_fd =
		-1;
	s->trust = TRUST_NONE;
	s->range.lock_fd = s->cgroup.fd = s->rootfs.lock_fd = -1;
	for (int i = 0; i < CGROUP_N_CONTROLLERS; i++)
		s->cgroup.v1_join_fds[i] = -1;
	s->ns = (struct ns){.pidfd = -1, .userns_fd = -1, .go = {-1, -1}, .report = {-1, -1}};
	return s;
}

/* What the user should know: where the search for hidden places ended early. */
static void note_limits(struct sandbox *s)
{
	for (size_t i = 0; i < s->mounts.n; i++) {
		const struct mounts_entry *entry = &s->mounts.entries[i];

		if (!entry->hide.is_cut || s->notice)
			continue;
		s->notice = mem_printf(
			"not all of '%s' was searched for what --hide names (an unreadable folder, "
			"or a limit: %u entries, %u deep, %u found): what lies behind may be read",
			entry->spec->guest, HIDE_MAX_ENTRIES, HIDE_MAX_DEPTH, HIDE_MAX_FOUND);
	}
}

static void note_copies(struct sandbox *s)
{
	char *before = s->notice;

	if (!s->mounts.notice)
		return;
	s->notice =
		before ? mem_printf("%s; %s", before, s->mounts.notice) : mem_dup(s->mounts.notice);
	free(before);
}

/* Where a command starts that names no place: the first folder the user mounted, else the image's, else /workspace. */
static void choose_cwd(struct sandbox *s, const struct spec *spec)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		for (size_t k = 0; k < s->mounts.n; k++)
			if (s->mounts.entries[k].spec == &spec->mounts[i] &&
				s->mounts.entries[k].is_folder && !spec->mounts[i].internal) {
				s->default_cwd = mem_dup(spec->mounts[i].guest);
				return;
			}
	s->default_cwd = mem_dup(spec->workdir ? spec->workdir : "/workspace");
}

/* Each shared layer has to lie over, or be, something of the sandbox's own. */
static int plan_lowers(struct sandbox *s, const struct spec *spec, struct err *err)
{
	for (size_t i = 0; i < spec->n_lowers; i++) {
		const char *guest = spec->lowers[i].guest;
		bool is_known = rootfs_has(&s->rootfs, guest);

		for (size_t k = 0; !is_known && k < s->mounts.n; k++)
			is_known = s->mounts.entries[k].cow >= 0 &&
			           strcmp(s->mounts.entries[k].spec->guest, guest) == 0;
		if (!is_known)
			return err_set(err, -EINVAL,
				"a shared layer is for '%s', where neither the root nor a cow "
				"mount has one",
				guest);
	}
	return lowers_plan(&s->lowers, spec, s->range.base, err);
}

/* Where layers lie over each other, what the root has is seen through all of them. */
static int begin_trust(struct sandbox *s, const struct sandbox_config *config, struct err *err)
{
	const struct rootfs_place place = {
		.dir_fd = s->dir_fd, .userns_fd = -1, .over_fd = -1, .lowers = &s->lowers};
	int root_fd = -1;

	if (config->trust_fd >= 0 && lowers_has(&s->lowers, "/")) {
		root_fd = rootfs_open_below(&s->rootfs, &place, err);
		if (root_fd < 0)
			return root_fd;
	}
	trust_begin(&s->trust,
		&(struct trust_root){
			.path = s->rootfs.layers[0].lower, .fd = root_fd, .owner = s->range.base},
		config->trust_fd);
	return 0;
}

static int open_range(struct sandbox *s, const struct sandbox_config *config, struct err *err)
{
	const struct sandbox_before *before = config->before;

	if (!before)
		return idrange_open(&s->range, config->state_dir, config->id, err);
	rootfs_settle(s->dir_fd);
	return idrange_open_again(&s->range, config->state_dir, config->id, before->id_base, err);
}

/* What can be known and taken before anything runs. */
static int plan(struct sandbox *s, const struct sandbox_config *config, struct err *err)
{
	const struct spec *spec = config->spec;
	const struct cgroup_limits limits = {.memory_bytes = spec->memory_bytes,
		.cpu_milli = spec->cpu_milli,
		.pids_max = spec->pids_max};
	int r;

	s->dir_fd = open(config->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return err_set(err, -errno, "open '%s': %m", config->dir);
	r = open_range(s, config, err);
	if (r == 0 && spec->disk_bytes)
		r = quota_open(
			&s->quota, s->dir_fd, config->state_dir, config->id, spec->disk_bytes, err);
	if (r == 0)
		r = mounts_plan(&s->mounts, spec, s->range.base, err);
	if (r == 0)
		r = rootfs_plan(&s->rootfs, spec, config->state_dir, err);
	if (r == 0)
		r = plan_lowers(s, spec, err);
	if (r == 0)
		r = begin_trust(s, config, err);
	if (r == 0)
		r = cgroup_open(&s->cgroup, config->id, &limits, err);
	if (r == 0)
		r = cgroup_make_child(
			&s->cgroup, INIT_GROUP, &s->init_cgroup_fd, &s->init_cgroup_id, err);
	if (r < 0)
		return r;
	choose_cwd(s, spec);
	s->workdir = mem_dup(spec->workdir);
	for (size_t i = 0; i < spec->image_env.n; i++)
		spec_words_add(&s->image_env, spec->image_env.items[i]);
	note_limits(s);
	seccomp_build(&s->filter, s->mounts.has_rw);
	return 0;
}

/* The lists boot needs, borrowed from the plans. */
struct boot_lists {
	struct boot_mount layers[ROOTFS_MAX_LAYERS];
	struct boot_mount mounts[BOOT_MAX_MOUNTS];
	struct boot_hide *hides;
};

static void fill_boot(struct boot *boot, struct boot_lists *lists, const struct sandbox *s)
{
	size_t n_hides = 0;

	for (size_t i = 0; i < s->rootfs.n_layers; i++)
		lists->layers[i] =
			(struct boot_mount){.guest = s->rootfs.layers[i].guest, .is_folder = true};
	for (size_t i = 0; i < s->mounts.n; i++)
		n_hides += s->mounts.entries[i].hide.n;
	lists->hides = new0_n(struct boot_hide, n_hides + 1);
	n_hides = 0;
	for (size_t i = 0; i < s->mounts.n; i++) {
		const struct mounts_entry *entry = &s->mounts.entries[i];

		lists->mounts[i] = (struct boot_mount){
			.guest = entry->spec->guest, .is_folder = entry->is_folder};
		for (size_t k = 0; k < entry->hide.n; k++)
			lists->hides[n_hides++] = (struct boot_hide){.mount = i,
				.path = entry->hide.items[k].path,
				.is_folder = entry->hide.items[k].is_folder};
	}
	boot->layers = lists->layers;
	boot->n_layers = s->rootfs.n_layers;
	boot->mounts = lists->mounts;
	boot->n_mounts = s->mounts.n;
	boot->hides = lists->hides;
	boot->n_hides = n_hides;
	boot->workdir = s->workdir;
	boot->filter = &s->filter.prog;
}

static int open_layer(
	struct sandbox *s, const struct sandbox_config *config, size_t i, struct err *err)
{
	const struct rootfs_place place = {.dir_fd = s->dir_fd,
		.userns_fd = s->ns.userns_fd,
		.lowers = &s->lowers,
		.over_fd = s->trust.fd,
		.owner = s->range.base,
		.throw_away = !config->spec->keep,
		.quota = &s->quota};

	return rootfs_open(&s->rootfs, i, &place, err);
}

/* What process 1 needs to enter the root. */
static int make_first(struct sandbox *s, const struct sandbox_config *config, bool with_hides,
	int *fds, struct err *err)
{
	int r = trust_finish(&s->trust, err);

	if (r < 0)
		return r;
	fds[BOOT_ROOT] = open_layer(s, config, 0, err);
	if (s->trust.fd >= 0)
		late_close(take_fd(&s->trust.fd)); /* the root's layer has a copy of its own */
	if (fds[BOOT_ROOT] < 0)
		return fds[BOOT_ROOT];
	fds[BOOT_DEV] = rootfs_open_dev(s->range.base, err);
	if (fds[BOOT_DEV] < 0)
		return fds[BOOT_DEV];
	fds[BOOT_SHM] = rootfs_open_shm(s->range.base, err);
	if (fds[BOOT_SHM] < 0 || !with_hides)
		return fds[BOOT_SHM];
	fds[BOOT_HIDE] = rootfs_open_hide_source(err);
	return fds[BOOT_HIDE];
}

/* And what it attaches there afterwards. */
static int make_rest(
	struct sandbox *s, const struct sandbox_config *config, int *fds, struct err *err)
{
	scoped_mem char *copies = mem_printf("%s/copies", config->dir);
	const struct mounts_place place = {.changes_dir = config->changes_dir,
		.copies_dir = copies,
		.base = s->range.base,
		.plain_userns_fd = s->ns.userns_fd,
		.lowers = &s->lowers,
		.quota = &s->quota};
	size_t n_layers = s->rootfs.n_layers - 1;
	int r;

	for (size_t i = 0; i < n_layers; i++) {
		fds[i] = open_layer(s, config, i + 1, err);
		if (fds[i] < 0)
			return fds[i];
	}
	r = mounts_open(&s->mounts, &place, err);
	note_copies(s);
	for (size_t i = 0; i < s->mounts.n; i++) {
		const struct mounts_entry *entry = &s->mounts.entries[i];

		fds[n_layers + i] = entry->fd;
		if (r == 0 && config->on_mount && !entry->spec->internal)
			config->on_mount(config->ctx, entry->fd, entry->spec);
	}
	return r;
}

static int tell_place(struct sandbox *s, const struct sandbox_config *config, struct err *err)
{
	scoped_mem char *path = mem_printf("/proc/%d/ns/net", (int)s->ns.pid);

	if (!config->on_place)
		return 0;
	s->netns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->netns_fd < 0)
		return err_set(err, -errno, "open the network namespace: %m");
	config->on_place(config->ctx, s->netns_fd, s->cgroup.fd);
	return 0;
}

static int start(
	struct sandbox *s, struct boot *boot, const struct sandbox_config *config, struct err *err)
{
	size_t n_layers = s->rootfs.n_layers - 1;
	int fds[BOOT_MAX_FDS], *rest = fds + BOOT_REST, r;

	for (size_t i = 0; i < BOOT_MAX_FDS; i++)
		fds[i] = -1;
	s->start_ns = clock_mono_ns() - (config->before ? config->before->guest_ns : 0);
	r = ns_open(&s->ns, boot, s->init_cgroup_fd, s->range.base, err);
	if (r == 0)
		r = tell_place(s, config, err);
	if (r == 0)
		r = make_first(s, config, boot->n_hides > 0, fds, err);
	if (r >= 0)
		r = ns_send(&s->ns, fds, BOOT_REST, err);
	if (r == 0)
		r = make_rest(s, config, rest, err);
	if (r == 0)
		r = ns_send(&s->ns, rest, n_layers + s->mounts.n, err);
	if (r == 0)
		r = ns_wait(&s->ns, &s->devpts_fd, err);
	if (r == 0)
		s->root_fd = take_fd(&fds[BOOT_ROOT]);
	for (size_t i = 0; i < BOOT_REST + n_layers; i++)
		scoped_close(&fds[i]);
	mounts_close_plain(&s->mounts);
	return r;
}

static int64_t now_ns(void)
{
	struct timespec t;

	/* Not the coarse one: file times may be finer, and a file written a moment before would seem later. */
	(void)clock_gettime(CLOCK_REALTIME, &t);
	return clock_ns(t);
}

static int create(struct sandbox *s, const struct sandbox_config *config, struct err *err)
{
	scoped_fd int init_fd = -1, self_fd = -1;
	struct boot_lists lists = {0};
	struct boot boot = {0};
	struct change_file changes = {.id = config->id,
		.dir = config->dir,
		.mounts = &s->mounts,
		.rootfs = &s->rootfs,
		.lowers = &s->lowers};
	int r;

	r = plan(s, config, err);
	if (r < 0)
		return r;
	/* Later than the view of the host, which plan() may have made anew: that is no change of the host's. */
	s->created_ns = config->spec->since_ns ? config->spec->since_ns : now_ns();
	/* Readable: whoever looks at /proc/1 inside sees a process like others. */
	init_fd = sealed_load(config->init_fd, "init", 0555, err);
	if (init_fd < 0)
		return init_fd;
	self_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self_fd < 0)
		return err_set(err, -errno, "open a descriptor of myself: %m");
	changes.created_ns = s->created_ns;
	changes.base = s->range.base;
	boot.parent_pidfd = self_fd;
	boot.init_fd = init_fd;
	fill_boot(&boot, &lists, s);
	r = start(s, &boot, config, err);
	free(lists.hides);
	if (r == 0 && config->changes_dir)
		r = change_file_write(&changes, config->changes_dir, err);
	lowers_done(&s->lowers);
	return r;
}

/* A child that changes its ids makes our common memory as readable as this says. */
static int check_dumpable(struct err *err)
{
	scoped_str struct str text = {0};

	if (fdio_read_file(AT_FDCWD, "/proc/sys/fs/suid_dumpable", NUMBER_MAX, &text) < 0 ||
		!text.p || text.p[0] != '1')
		return 0;
	return err_set(err, -EPERM,
		"fs.suid_dumpable is 1, with which root inside could read the supervisor: set it "
		"to 0 or 2 "
		"(sysctl fs.suid_dumpable=0)");
}

int sandbox_create(
	const struct sandbox_config *config, struct sandbox **ret_sandbox, struct err *err)
{
	struct sandbox *s;
	int r;

	/* Children share our memory or come from it: nobody inside may look into it. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return err_set(err, -errno, "make the supervisor unreadable: %m");
	r = check_dumpable(err);
	if (r < 0)
		return r;
	s = new_sandbox(config);
	r = create(s, config, err);
	late_run();
	if (r < 0) {
		if (s->is_again)
			(void)sandbox_keep_range(s); /* where even that fails, a fork is left */
		sandbox_free(s);
		return r;
	}
	*ret_sandbox = s;
	return 0;
}

int sandbox_keep_range(struct sandbox *s)
{
	return idrange_keep(&s->range, s->id);
}

void sandbox_keep_begin(const struct sandbox *s, struct spec *spec)
{
	spec->since_ns = s->created_ns;
	mounts_keep_ids(&s->mounts, spec);
}

void sandbox_clean_running(const char *id)
{
	cgroup_clean(id, KILL_WAIT_MS);
}

void sandbox_kill(struct sandbox *s)
{
	struct pollfd first = {.fd = s->ns.pidfd, .events = POLLIN};

	(void)cgroup_kill(s->cgroup.fd);     /* fails only where nothing is left */
	(void)poll(&first, 1, KILL_WAIT_MS); /* the kernel lets process 1 be the last to end */
}

void sandbox_destroy(struct sandbox *s, bool keep_layer)
{
	if (s->is_destroyed)
		return;
	if (s->cgroup.fd >= 0)
		(void)cgroup_kill(s->cgroup.fd);
	ns_close(&s->ns, KILL_WAIT_MS);
	scoped_close(&s->netns_fd);
	scoped_close(&s->init_cgroup_fd);
	scoped_close(&s->devpts_fd);
	scoped_close(&s->root_fd);
	s->netns_fd = s->init_cgroup_fd = s->devpts_fd = s->root_fd = -1;
	cgroup_remove(&s->cgroup, KILL_WAIT_MS);
	rootfs_done(&s->rootfs);
	s->is_destroyed = true;
	s->keeps_layer = keep_layer || s->is_again;
}

/* What takes the disk's time. Of what fails here gc finds the rest. */
static void remove_folders(struct sandbox *s)
{
	if (!s->keeps_layer)
		(void)rootfs_remove(s->dir_fd);
	idrange_close(&s->range, s->state_dir);
	quota_close(&s->quota);
	scoped_close(&s->dir_fd);
}

void sandbox_free(struct sandbox *s)
{
	if (!s)
		return;
	sandbox_destroy(s, false);
	if (s->dir_fd >= 0)
		remove_folders(s);
	/* The last hold on cow layers: closing it writes them out to disk, which may take a while. */
	mounts_done(&s->mounts);
	lowers_done(&s->lowers);
	trust_done(&s->trust);
	free(s->default_cwd);
	free(s->workdir);
	spec_words_done(&s->image_env);
	free(s->notice);
	free(s->state_dir);
	free(s->id);
	free(s);
}

int sandbox_clean(const char *id, const char *state_dir, const char *dir, struct err *err)
{
	scoped_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	cgroup_clean(id, KILL_WAIT_MS);
	if (fd >= 0) {
		quota_clean(fd);
		r = rootfs_remove(fd);
	}
	idrange_clean(state_dir, id);
	return r < 0 ? err_set(err, r, "remove the layers in '%s': %m", dir) : 0;
}

int64_t sandbox_disk_held(const struct sandbox *s, bool *ret_is_full)
{
	return quota_held(&s->quota, ret_is_full);
}

static const char *v1_group(const struct sandbox *s, enum cgroup_controller which)
{
	return s->cgroup.v1_paths[which][0] ? s->cgroup.v1_paths[which] : NULL;
}

void sandbox_read_usage(const struct sandbox *s, struct gauge_group *ret)
{
	gauge_read_group(s->cgroup.fd, v1_group(s, CGROUP_MEMORY), v1_group(s, CGROUP_PIDS), ret);
}

void sandbox_read_limited(const struct sandbox *s, struct cgroup_limited *ret)
{
	cgroup_read_limited(&s->cgroup, ret);
}

const char *sandbox_notice(const struct sandbox *s)
{
	return s->notice;
}

const char *sandbox_default_cwd(const struct sandbox *s)
{
	return s->default_cwd;
}

pid_t sandbox_init_pid(const struct sandbox *s)
{
	return s->ns.pid;
}

int sandbox_init_pidfd(const struct sandbox *s)
{
	return s->ns.pidfd;
}

int sandbox_root_fd(const struct sandbox *s)
{
	return s->root_fd;
}

int sandbox_netns_fd(const struct sandbox *s)
{
	return s->netns_fd;
}

uint32_t sandbox_gateway_id(const struct sandbox *s)
{
	return s->range.gateway;
}

uint64_t sandbox_init_cgroup_id(const struct sandbox *s)
{
	return s->init_cgroup_id;
}

int64_t sandbox_start_ns(const struct sandbox *s)
{
	return s->start_ns;
}

uint32_t sandbox_id_base(const struct sandbox *s)
{
	return s->range.base;
}

/* The reasons for which it is frozen from now on: those before without `off` and with `on`. */
static int set_frozen(struct sandbox *s, unsigned off, unsigned on, struct err *err)
{
	unsigned reasons;
	int r = 0;

	pthread_mutex_lock(&s->freeze_lock);
	reasons = (s->frozen & ~off) | on;
	if (!s->frozen != !reasons)
		r = cgroup_freeze(&s->cgroup, reasons != 0);
	if (r == 0)
		s->frozen = reasons;
	pthread_mutex_unlock(&s->freeze_lock);
	return r < 0 ? err_set(err, r, "%s the sandbox: %m", reasons ? "freeze" : "thaw") : 0;
}

int sandbox_freeze(struct sandbox *s, unsigned reason, struct err *err)
{
	return set_frozen(s, 0, reason, err);
}

int sandbox_thaw(struct sandbox *s, unsigned reason, struct err *err)
{
	return set_frozen(s, reason, 0, err);
}

bool sandbox_is_frozen(struct sandbox *s)
{
	bool is_frozen;

	pthread_mutex_lock(&s->freeze_lock);
	is_frozen = s->frozen != 0;
	pthread_mutex_unlock(&s->freeze_lock);
	return is_frozen;
}
