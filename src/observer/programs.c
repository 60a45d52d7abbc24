/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "observer.skel.h"
#include "observer/calls.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"
#include "util/slice.h"

#define HASH_CHARS    16   /* of the object's digest, as the name of its folder */
#define SPIN_MAX      5000 /* looks for a ring to appear in its slot */
#define BTF_PATH      "/sys/kernel/btf/vmlinux"
#define PROGRAM_COUNT 4

static const char *const program_names[PROGRAM_COUNT] = {
	"observer_sys_exit",
	"observer_exec",
	"observer_fork",
	"observer_exit",
};

static int on_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[512];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	log_debug("libbpf: %s", line);
	return 0;
}

int programs_probe(struct err *err)
{
	if (geteuid() != 0)
		return err_set(err, -EPERM, "tracing needs root on the host");
	if (access(BTF_PATH, R_OK) < 0)
		return err_set(err, -ENOSYS, "tracing needs a kernel with BTF (no " BTF_PATH ")");
	return 0;
}

/* ---- pins ---- */

static int pin_path(const struct programs *p, const char *name, char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/%s", p->dir, name);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int get_pin(const struct programs *p, const char *name)
{
	char path[PATH_MAX];
	int r = pin_path(p, name, path);

	return r < 0 ? r : bpf_obj_get(path);
}

static int put_pin(const struct programs *p, const char *name, int fd, struct err *err)
{
	char path[PATH_MAX];
	int r = pin_path(p, name, path);

	if (r == 0)
		r = bpf_obj_pin(fd, path);
	return r < 0 ? err_set(err, r, "pin '%s' in %s: %m", name, p->dir) : 0;
}

static void remove_pin(const struct programs *p, const char *name)
{
	char path[PATH_MAX];

	if (pin_path(p, name, path) == 0)
		(void)unlink(path); /* it may never have been there */
}

static int mount_bpffs(const char *dir, struct err *err)
{
	struct statfs fs;
	int r = path_make_all(dir, 0700);

	if (r < 0)
		return err_set(err, r, "make folder %s: %m", dir);
	if (statfs(dir, &fs) == 0 && fs.f_type == BPF_FS_MAGIC)
		return 0;
	if (mount("bpf", dir, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0)
		return err_set(err, -errno, "mount a bpffs at %s: %m", dir);
	return 0;
}

/* Names the folder by what is loaded: another build is another folder. */
static void name_dir(struct programs *p, const char *root)
{
	char hex[DIGEST_HEX_SIZE];
	size_t len;
	const void *bytes = observer_kernel__elf_bytes(&len);

	digest_of(bytes, len, hex);
	p->root = mem_dup(root);
	p->dir = mem_printf("%s/%.*s", root, HASH_CHARS, hex);
}

/* ---- loading ---- */

static bool has_cast(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = btf && btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return has;
}

static void configure(struct observer_kernel *skel)
{
	static const struct call calls[WIRE_CALLS_MAX] = {CALLS(CALL_ROW)};

	skel->rodata->observer_has_cast = has_cast();
	for (unsigned i = 0; i < WIRE_CALLS_MAX; i++)
		if (calls[i].shape != CALL_NONE)
			skel->rodata->observer_wanted[i / 64] |= 1ULL << (i % 64);
	(void)bpf_map__set_max_entries(skel->maps.scratches, (__u32)libbpf_num_possible_cpus());
}

static int pin_all(const struct programs *p, const struct observer_kernel *skel, struct err *err)
{
	int r = put_pin(p, "groups", bpf_map__fd(skel->maps.groups), err);

	if (r == 0)
		r = put_pin(p, "slots", bpf_map__fd(skel->maps.slots), err);
	if (r == 0)
		r = put_pin(p, "rings", bpf_map__fd(skel->maps.rings), err);
	if (r == 0)
		r = put_pin(p, "namespaces", bpf_map__fd(skel->maps.namespaces), err);
	for (int i = 0; r == 0 && i < PROGRAM_COUNT; i++) {
		const struct bpf_program *prog =
			bpf_object__find_program_by_name(skel->obj, program_names[i]);

		r = put_pin(p, program_names[i], bpf_program__fd(prog), err);
	}
	return r;
}

static int load(const struct programs *p, struct err *err)
{
	struct observer_kernel *skel = observer_kernel__open();
	int r;

	if (!skel)
		return err_set(err, -errno, "open the kernel half: %m");
	configure(skel);
	r = observer_kernel__load(skel);
	if (r < 0)
		r = err_set(err, r, "load the kernel half (CLOCHE_DEBUG=1 tells more): %m");
	else
		r = pin_all(p, skel, err);
	observer_kernel__destroy(skel);
	return r;
}

static int get_maps(struct programs *p)
{
	p->groups_fd = get_pin(p, "groups");
	p->slots_fd = get_pin(p, "slots");
	p->rings_fd = get_pin(p, "rings");
	p->namespaces_fd = get_pin(p, "namespaces");
	if (p->groups_fd < 0 || p->slots_fd < 0 || p->rings_fd < 0 || p->namespaces_fd < 0)
		return -ENOENT;
	return 0;
}

static void put_maps(struct programs *p)
{
	scoped_close(&p->groups_fd);
	scoped_close(&p->slots_fd);
	scoped_close(&p->rings_fd);
	scoped_close(&p->namespaces_fd);
}

static bool has_programs(const struct programs *p)
{
	for (int i = 0; i < PROGRAM_COUNT; i++) {
		scoped_fd int fd = get_pin(p, program_names[i]);

		if (fd < 0)
			return false;
	}
	return true;
}

static void remove_dir_pins(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0); /* "." and ".." stay */
	if (d)
		closedir(d);
	(void)rmdir(dir); /* fails where a pin could not go; the next one in tries again */
}

static int find_or_load(struct programs *p, struct err *err)
{
	int r;

	if (get_maps(p) == 0 && has_programs(p))
		return 0;
	put_maps(p);
	remove_dir_pins(p->dir);
	if (mkdir(p->dir, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make folder %s: %m", p->dir);
	r = load(p, err);
	if (r < 0)
		return r;
	r = get_maps(p);
	return r < 0 ? err_set(err, r, "find the pinned maps in %s: %m", p->dir) : 0;
}

static void link_name(int i, char name[64])
{
	snprintf(name, 64, "link_%s", program_names[i]);
}

static int attach(const struct programs *p, struct err *err)
{
	char name[64];

	for (int i = 0; i < PROGRAM_COUNT; i++) {
		scoped_fd int link = -1, prog = -1;
		int r;

		link_name(i, name);
		link = get_pin(p, name);
		if (link >= 0)
			continue;
		prog = get_pin(p, program_names[i]);
		if (prog < 0)
			return err_set(err, prog, "find program %s: %m", program_names[i]);
		link = bpf_raw_tracepoint_open(NULL, prog);
		if (link < 0)
			return err_set(err, link, "attach %s: %m", program_names[i]);
		r = put_pin(p, name, link, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Nobody is left: detach, and throw out what other builds left behind. */
static void detach(const struct programs *p)
{
	DIR *d = opendir(p->root);
	struct dirent *e;
	char name[64];

	for (int i = 0; i < PROGRAM_COUNT; i++) {
		link_name(i, name);
		remove_pin(p, name);
	}
	while (d && (e = readdir(d))) {
		scoped_mem char *path = mem_printf("%s/%s", p->root, e->d_name);

		if (e->d_name[0] != '.' && !slice_is(slice_of(path), p->dir))
			remove_dir_pins(path);
	}
	if (d)
		closedir(d);
}

/* ---- slots ---- */

static int lock_byte(int fd, off_t at, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static bool has_users(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static int map_slot(struct programs *p, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       at = (size_t)p->slot * sizeof(struct wire_slot);
	char *m = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, p->slots_fd,
		(off_t)(at & ~(page - 1)));

	if (m == MAP_FAILED)
		return err_set(err, -errno, "map the slots: %m");
	p->state = (struct wire_slot *)(m + (at & (page - 1)));
	return 0;
}

/* Removing while walking is fine: where the key is gone the walk begins again. */
static void clear_groups(const struct programs *p, uint32_t slot)
{
	uint64_t key, next;
	bool more = bpf_map_get_next_key(p->groups_fd, NULL, &next) == 0;

	while (more) {
		struct wire_group group;

		key = next;
		more = bpf_map_get_next_key(p->groups_fd, &key, &next) == 0;
		if (bpf_map_lookup_elem(p->groups_fd, &key, &group) == 0 && group.slot == slot)
			(void)bpf_map_delete_elem(p->groups_fd, &key);
	}
}

static void clear_namespaces(const struct programs *p, uint32_t slot)
{
	uint32_t key, next, value;
	bool more = bpf_map_get_next_key(p->namespaces_fd, NULL, &next) == 0;

	while (more) {
		key = next;
		more = bpf_map_get_next_key(p->namespaces_fd, &key, &next) == 0;
		if (bpf_map_lookup_elem(p->namespaces_fd, &key, &value) == 0 && value == slot)
			(void)bpf_map_delete_elem(p->namespaces_fd, &key);
	}
}

void programs_free_slot(const struct programs *p, uint32_t slot)
{
	struct wire_slot empty = {0};

	clear_groups(p, slot);
	clear_namespaces(p, slot);
	(void)bpf_map_delete_elem(p->rings_fd, &slot); /* none there is fine */
	(void)bpf_map_update_elem(p->slots_fd, &slot, &empty, BPF_ANY);
}

/* A slot that still has a name is left to whoever salvages what its dead user saw, while there are others. */
static void try_slot(struct programs *p, int i, bool named)
{
	struct wire_slot state;

	if (lock_byte(p->lock_fd, i, F_WRLCK) < 0)
		return;
	if (bpf_map_lookup_elem(p->slots_fd, &i, &state) < 0 || (state.id[0] && !named)) {
		(void)lock_byte(p->lock_fd, i, F_UNLCK);
		return;
	}
	if (state.id[0])
		programs_free_slot(p, (uint32_t)i);
	p->slot = i;
}

static int take_slot(struct programs *p, struct err *err)
{
	for (int named = 0; named < 2 && p->slot < 0; named++)
		for (int i = 0; i < WIRE_SLOTS_MAX && p->slot < 0; i++)
			try_slot(p, i, named);
	if (p->slot < 0)
		return err_set(
			err, -EBUSY, "%d sandboxes are being traced already", WIRE_SLOTS_MAX);
	return map_slot(p, err);
}

static int open_lock(struct programs *p, const char *pin_dir, struct err *err)
{
	scoped_mem char *path = mem_printf("%s.lock", pin_dir);

	p->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (p->lock_fd < 0)
		return err_set(err, -errno, "open %s: %m", path);
	if (flock(p->lock_fd, LOCK_EX) < 0)
		return err_set(err, -errno, "lock %s: %m", path);
	return 0;
}

static void programs_init(struct programs *p)
{
	*p = (struct programs){.lock_fd = -1,
		.groups_fd = -1,
		.slots_fd = -1,
		.rings_fd = -1,
		.namespaces_fd = -1,
		.slot = -1};
	libbpf_set_print(on_print);
}

int programs_open(const char *pin_dir, struct programs *p, struct err *err)
{
	int r;

	programs_init(p);
	r = programs_probe(err);
	if (r == 0)
		r = mount_bpffs(pin_dir, err);
	if (r == 0)
		r = open_lock(p, pin_dir, err);
	if (r < 0)
		return r;
	name_dir(p, pin_dir);
	r = find_or_load(p, err);
	if (r == 0)
		r = take_slot(p, err);
	if (r == 0)
		r = attach(p, err);
	(void)flock(p->lock_fd, LOCK_UN); /* cannot fail on a lock that is held */
	return r;
}

int programs_look(const char *pin_dir, struct programs *p, struct err *err)
{
	int r;

	programs_init(p);
	if (access(pin_dir, F_OK) < 0)
		return -ENOENT;
	r = open_lock(p, pin_dir, err);
	if (r < 0)
		return r;
	name_dir(p, pin_dir);
	return get_maps(p);
}

static void unmap_slot(struct programs *p)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (p->state)
		munmap((void *)((uintptr_t)p->state & ~(page - 1)), page);
	p->state = NULL;
}

void programs_close(struct programs *p)
{
	if (p->lock_fd >= 0 && p->dir) {
		(void)flock(p->lock_fd, LOCK_EX); /* waits for whoever is at it */
		if (p->state)
			*p->state = (struct wire_slot){0};
		if (p->slot >= 0)
			(void)lock_byte(p->lock_fd, p->slot, F_UNLCK);
		if (!has_users(p->lock_fd))
			detach(p);
	}
	unmap_slot(p);
	put_maps(p);
	scoped_close(&p->lock_fd);
	free(p->dir);
	free(p->root);
	p->dir = p->root = NULL;
}

/* ---- rings ---- */

/* An update of a map of maps waits until no program can hold the value before: some ms. So it has a thread
 * of its own, which owns its descriptors. */
struct ring_job {
	int rings_fd, ring_fd;
	uint32_t slot;
	size_t bytes; /* of the ring to make first */
	char *pin;
	struct programs_swap *swap;
};

static void free_job(struct ring_job *job)
{
	scoped_close(&job->rings_fd);
	scoped_close(&job->ring_fd);
	free(job->pin);
	free(job);
}

static void make_ring(struct ring_job *job)
{
	job->ring_fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, (__u32)job->bytes, NULL);
	if (job->ring_fd >= 0)
		(void)bpf_obj_pin(
			job->ring_fd, job->pin); /* without, a crash loses what is in it */
}

static void *run_ring_job(void *arg)
{
	struct ring_job *job = arg;

	if (job->swap)
		make_ring(job);
	if (job->ring_fd >= 0)
		(void)bpf_map_update_elem(job->rings_fd, &job->slot, &job->ring_fd, BPF_ANY);
	else if (!job->swap)
		(void)bpf_map_delete_elem(job->rings_fd, &job->slot);
	if (job->swap) {
		job->swap->fd = take_fd(&job->ring_fd);
		__atomic_store_n(&job->swap->is_done, true, __ATOMIC_RELEASE);
	}
	free_job(job);
	return NULL;
}

static uint32_t ring_in_slot(const struct programs *p)
{
	uint32_t slot = (uint32_t)p->slot, id = 0;

	return bpf_map_lookup_elem(p->rings_fd, &slot, &id) == 0 ? id : 0;
}

static struct ring_job *new_job(const struct programs *p)
{
	struct ring_job *job = new0(struct ring_job);

	job->rings_fd = fcntl(p->rings_fd, F_DUPFD_CLOEXEC, 0);
	job->ring_fd = -1;
	job->slot = (uint32_t)p->slot;
	return job;
}

static void start_job(struct ring_job *job)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, run_ring_job, job);
	pthread_attr_destroy(&attr);
	if (r != 0)
		run_ring_job(job);
}

int programs_set_ring(struct programs *p, int ring_fd, struct err *err)
{
	struct ring_job *job = new_job(p);
	uint32_t before = ring_in_slot(p);

	if (ring_fd >= 0)
		job->ring_fd = fcntl(ring_fd, F_DUPFD_CLOEXEC, 0);
	start_job(job);
	for (int i = 0; ring_fd >= 0 && ring_in_slot(p) == before; i++) {
		if (i == SPIN_MAX)
			return err_set(err, -ETIMEDOUT, "the ring did not come into its slot");
		usleep(10);
	}
	return 0;
}

bool programs_is_swapped(const struct programs_swap *swap)
{
	return __atomic_load_n(&swap->is_done, __ATOMIC_ACQUIRE);
}

static void ring_name(const char *id, int n, char name[64])
{
	snprintf(name, 64, "ring_%s_%d", id, n);
}

void programs_start_swap(
	struct programs *p, const char *id, int n, size_t bytes, struct programs_swap *swap)
{
	struct ring_job *job = new_job(p);
	char name[64], path[PATH_MAX];

	ring_name(id, n, name);
	job->bytes = bytes;
	job->swap = swap;
	if (pin_path(p, name, path) == 0)
		job->pin = mem_dup(path);
	start_job(job);
}

int programs_pin_ring(const struct programs *p, const char *id, int n, int ring_fd, struct err *err)
{
	char name[64];

	ring_name(id, n, name);
	return put_pin(p, name, ring_fd, err);
}

int programs_get_ring(const struct programs *p, const char *id, int n)
{
	char name[64];

	ring_name(id, n, name);
	return get_pin(p, name);
}

void programs_unpin_rings(const struct programs *p, const char *id)
{
	char name[64];

	for (int n = 0; n < PROGRAMS_RINGS_MAX; n++) {
		ring_name(id, n, name);
		remove_pin(p, name);
	}
}
