/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching and detaching, so that nothing is told twice. The kernel takes a link down only some milliseconds after its pin
 * is gone, and meanwhile others attach. From Linux 6.10 on each link has a cookie, the number of the attachment, and
 * programs under an older one keep silent. Before that, a link that still stands is taken up again, and one that is on its
 * way out is waited for. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observer/programs_internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/slice.h"

#define NAME_LEN 64
#define WAIT_MS  1000 /* for links that are being taken down: a few milliseconds in practice */

/* Of each program: the link that stands although nothing names it, or -1. */
struct stale {
	uint32_t prog_ids[PROGRAMS_N];
	int fds[PROGRAMS_N];
	bool is_settled; /* no link was on its way out */
};

static void link_name(int i, char name[NAME_LEN])
{
	(void)snprintf(name, NAME_LEN, "link_%s", programs_names[i]);
}

static uint32_t program_id(const struct programs *p, int i)
{
	scoped_fd int fd = programs_pin_get(p, programs_names[i]);
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);

	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0 ? 0 : info.id;
}

/* Keeps the link where it is one of ours. */
static void look_at_link(struct stale *stale, __u32 id)
{
	scoped_fd int fd = bpf_link_get_fd_by_id(id);
	struct bpf_link_info info = {0};
	__u32 len = sizeof(info);

	if (fd < 0) {
		stale->is_settled = stale->is_settled && errno != ENOENT;
		return;
	}
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 ||
		info.type != BPF_LINK_TYPE_RAW_TRACEPOINT)
		return;
	for (int i = 0; i < PROGRAMS_N; i++) {
		if (stale->prog_ids[i] != info.prog_id)
			continue;
		if (stale->fds[i] < 0)
			stale->fds[i] = take_fd(&fd);
		else
			stale->is_settled = false;
		return;
	}
}

static void let_go(struct stale *stale)
{
	for (int i = 0; i < PROGRAMS_N; i++) {
		scoped_close(&stale->fds[i]);
		stale->fds[i] = -1;
	}
}

static void look_at_all(struct stale *stale)
{
	__u32 id = 0;

	stale->is_settled = true;
	while (bpf_link_get_next_id(id, &id) == 0)
		look_at_link(stale, id);
}

static void find_stale(const struct programs *p, struct stale *stale)
{
	int64_t end = clock_mono_ns() + WAIT_MS * CLOCK_NS_PER_MS;

	for (int i = 0; i < PROGRAMS_N; i++) {
		stale->prog_ids[i] = program_id(p, i);
		stale->fds[i] = -1;
	}
	for (look_at_all(stale); !stale->is_settled && clock_mono_ns() < end; look_at_all(stale)) {
		let_go(stale);
		(void)usleep(500);
	}
	if (!stale->is_settled)
		log_warn(
			"the kernel is slow to take down what watched before: some of what happens "
			"now may be told twice");
}

static int open_link(const struct programs *p, int i, uint64_t cookie, struct err *err)
{
	scoped_fd int prog = programs_pin_get(p, programs_names[i]);
	union bpf_attr attr = {0};
	int link;

	if (prog < 0)
		return err_set(err, prog, "find program %s: %m", programs_names[i]);
	/* libbpf passes this cookie on since 1.5 only. */
	attr.link_create.prog_fd = (__u32)prog;
	attr.link_create.attach_type = BPF_TRACE_RAW_TP;
	attr.link_create.tracing.cookie = cookie;
	link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return link < 0 ? err_set(err, -errno, "attach %s: %m", programs_names[i]) : link;
}

/* Takes link over. */
static int pin_link(const struct programs *p, int i, int link, struct err *err)
{
	scoped_fd int fd = link;
	char name[NAME_LEN];

	link_name(i, name);
	return fd < 0 ? fd : programs_pin_put(p, name, fd, err);
}

static bool is_attached(const struct programs *p, int i)
{
	scoped_fd int link = -1;
	char name[NAME_LEN];

	link_name(i, name);
	link = programs_pin_get(p, name);
	return link >= 0;
}

static void unpin_links(const struct programs *p)
{
	char name[NAME_LEN];

	for (int i = 0; i < PROGRAMS_N; i++) {
		link_name(i, name);
		programs_pin_remove(p, name);
	}
}

/* All of them, so that they are of one number. */
static int attach_next(const struct programs *p, uint64_t number, struct err *err)
{
	uint32_t key = 0;
	int r;

	unpin_links(p);
	r = bpf_map_update_elem(p->attachment_fd, &key, &number, BPF_ANY);
	if (r < 0)
		return err_set(err, r, "number the attachment: %m");
	for (int i = 0; r == 0 && i < PROGRAMS_N; i++)
		r = pin_link(p, i, open_link(p, i, number, err), err);
	return r;
}

static int attach_missing(const struct programs *p, struct err *err)
{
	struct stale stale;
	int r = 0;

	find_stale(p, &stale);
	for (int i = 0; r == 0 && i < PROGRAMS_N; i++) {
		int link = take_fd(&stale.fds[i]);

		if (is_attached(p, i))
			scoped_close(&link);
		else
			r = pin_link(p, i, link < 0 ? open_link(p, i, 0, err) : link, err);
	}
	let_go(&stale);
	return r;
}

int programs_attach(const struct programs *p, struct err *err)
{
	bool are_all = true;
	uint64_t number = 0;
	uint32_t key = 0;

	for (int i = 0; i < PROGRAMS_N; i++)
		are_all = are_all && is_attached(p, i);
	if (are_all)
		return 0;
	(void)bpf_map_lookup_elem(p->attachment_fd, &key, &number); /* an array has it */
	return number > 0 ? attach_next(p, number + 1, err) : attach_missing(p, err);
}

/* Throws out what other builds left behind, too. */
void programs_detach(const struct programs *p)
{
	DIR *d = opendir(p->root);
	struct dirent *e;

	unpin_links(p);
	while (d && (e = readdir(d))) {
		scoped_mem char *path = mem_printf("%s/%s", p->root, e->d_name);

		if (e->d_name[0] != '.' && !slice_is(slice_of(path), p->dir))
			programs_pin_remove_dir(path);
	}
	if (d)
		closedir(d);
}
