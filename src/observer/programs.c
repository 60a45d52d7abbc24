/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/programs_internal.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

#define HASH_CHARS 16 /* of the object's digest, as the name of its folder */
#define BTF_PATH   "/sys/kernel/btf/vmlinux"

const char *const programs_names[PROGRAMS_N] = {
	"observer_sys_exit",
	"observer_exec",
	"observer_fork",
	"observer_exit",
};
#define LOOK_NAME "observer_look" /* attached to nothing: user space runs it */

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

static bool has_member(const struct btf *btf, const char *name, const char *member)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);

	for (int i = 0; type && i < btf_vlen(type); i++)
		if (strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), member) == 0)
			return true;
	return false;
}

/* What this kernel can do for our programs. */
static void find_helps(struct observer_kernel *skel)
{
	struct btf *btf = btf__load_vmlinux_btf();

	skel->rodata->observer_has_cast =
		btf && btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	skel->rodata->observer_has_cookie = btf && has_member(btf, "bpf_raw_tp_link", "cookie");
	btf__free(btf);
}

static void configure(struct observer_kernel *skel)
{
	static const struct call calls[WIRE_CALLS_MAX] = {CALLS(CALL_ROW)};

	find_helps(skel);
	for (unsigned i = 0; i < WIRE_CALLS_MAX; i++)
		if (calls[i].shape != CALL_NONE)
			skel->rodata->observer_wanted[i / 64] |= 1ULL << (i % 64);
	(void)bpf_map__set_max_entries(skel->maps.scratches, (__u32)libbpf_num_possible_cpus());
}

static int pin_all(const struct programs *p, const struct observer_kernel *skel, struct err *err)
{
	int r = programs_pin_put(p, "groups", bpf_map__fd(skel->maps.groups), err);

	if (r == 0)
		r = programs_pin_put(p, "slots", bpf_map__fd(skel->maps.slots), err);
	if (r == 0)
		r = programs_pin_put(p, "rings", bpf_map__fd(skel->maps.rings), err);
	if (r == 0)
		r = programs_pin_put(p, "namespaces", bpf_map__fd(skel->maps.namespaces), err);
	if (r == 0)
		r = programs_pin_put(p, "opens", bpf_map__fd(skel->maps.opens), err);
	if (r == 0)
		r = programs_pin_put(p, "attachment", bpf_map__fd(skel->maps.attachment), err);
	if (r == 0)
		r = programs_pin_put(p, LOOK_NAME, bpf_program__fd(skel->progs.observer_look), err);
	for (int i = 0; r == 0 && i < PROGRAMS_N; i++) {
		const struct bpf_program *prog =
			bpf_object__find_program_by_name(skel->obj, programs_names[i]);

		r = programs_pin_put(p, programs_names[i], bpf_program__fd(prog), err);
	}
	return r;
}

/* From one on; none where links have no cookies. */
static int number_attachments(const struct observer_kernel *skel, struct err *err)
{
	uint32_t key = 0;
	uint64_t last = skel->rodata->observer_has_cookie ? 1 : 0;
	int r = bpf_map_update_elem(bpf_map__fd(skel->maps.attachment), &key, &last, BPF_ANY);

	return r < 0 ? err_set(err, r, "number attachments: %m") : 0;
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
		r = number_attachments(skel, err);
	if (r == 0)
		r = pin_all(p, skel, err);
	observer_kernel__destroy(skel);
	return r;
}

static int get_maps(struct programs *p)
{
	p->groups_fd = programs_pin_get(p, "groups");
	p->slots_fd = programs_pin_get(p, "slots");
	p->rings_fd = programs_pin_get(p, "rings");
	p->namespaces_fd = programs_pin_get(p, "namespaces");
	p->opens_fd = programs_pin_get(p, "opens");
	p->attachment_fd = programs_pin_get(p, "attachment");
	p->look_fd = programs_pin_get(p, LOOK_NAME);
	if (p->groups_fd < 0 || p->slots_fd < 0 || p->rings_fd < 0 || p->namespaces_fd < 0 ||
		p->opens_fd < 0 || p->attachment_fd < 0 || p->look_fd < 0)
		return -ENOENT;
	return 0;
}

static void put_maps(struct programs *p)
{
	scoped_close(&p->groups_fd);
	scoped_close(&p->slots_fd);
	scoped_close(&p->rings_fd);
	scoped_close(&p->namespaces_fd);
	scoped_close(&p->opens_fd);
	scoped_close(&p->attachment_fd);
	scoped_close(&p->look_fd);
}

static bool has_programs(const struct programs *p)
{
	for (int i = 0; i < PROGRAMS_N; i++) {
		scoped_fd int fd = programs_pin_get(p, programs_names[i]);

		if (fd < 0)
			return false;
	}
	return true;
}

static int find_or_load(struct programs *p, struct err *err)
{
	int r;

	if (get_maps(p) == 0 && has_programs(p))
		return 0;
	put_maps(p);
	programs_pin_remove_dir(p->dir);
	if (mkdir(p->dir, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make folder %s: %m", p->dir);
	r = load(p, err);
	if (r < 0)
		return r;
	r = get_maps(p);
	return r < 0 ? err_set(err, r, "find the pinned maps in %s: %m", p->dir) : 0;
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
		.opens_fd = -1,
		.attachment_fd = -1,
		.look_fd = -1,
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
		r = programs_slot_take(p, err);
	if (r == 0)
		r = programs_attach(p, err);
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

void programs_close(struct programs *p)
{
	if (p->lock_fd >= 0 && p->dir) {
		(void)flock(p->lock_fd, LOCK_EX); /* waits for whoever is at it */
		if (p->state)
			*p->state = (struct wire_slot){0};
		if (p->slot >= 0)
			(void)programs_slot_lock(p->lock_fd, p->slot, F_UNLCK);
		if (!programs_slot_has_users(p->lock_fd))
			programs_detach(p);
	}
	programs_slot_unmap(p);
	put_maps(p);
	scoped_close(&p->lock_fd);
	free(p->dir);
	free(p->root);
	p->dir = p->root = NULL;
}
