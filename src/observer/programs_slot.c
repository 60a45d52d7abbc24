/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: who has which, and what a dead one left. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "observer/programs_internal.h"
#include "util/scoped.h"

int programs_slot_lock(int fd, off_t at, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

bool programs_slot_has_users(int fd)
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

size_t programs_clear_opens(const struct programs *p, uint32_t slot)
{
	uint64_t key, next;
	bool more = bpf_map_get_next_key(p->opens_fd, NULL, &next) == 0;
	size_t n = 0;

	while (more) {
		struct wire_open one;

		key = next;
		more = bpf_map_get_next_key(p->opens_fd, &key, &next) == 0;
		if (bpf_map_lookup_elem(p->opens_fd, &key, &one) < 0 || one.slot != slot)
			continue;
		n += one.opened_ns != 0;
		(void)bpf_map_delete_elem(p->opens_fd, &key);
	}
	return n;
}

void programs_free_slot(const struct programs *p, uint32_t slot)
{
	struct wire_slot empty = {0};

	clear_groups(p, slot);
	clear_namespaces(p, slot);
	(void)programs_clear_opens(p, slot);
	(void)bpf_map_delete_elem(p->rings_fd, &slot); /* none there is fine */
	(void)bpf_map_update_elem(p->slots_fd, &slot, &empty, BPF_ANY);
}

/* A slot that still has a name is left to whoever salvages what its dead user saw, while there are others. */
static void try_slot(struct programs *p, int i, bool named)
{
	struct wire_slot state;

	if (programs_slot_lock(p->lock_fd, i, F_WRLCK) < 0)
		return;
	if (bpf_map_lookup_elem(p->slots_fd, &i, &state) < 0 || (state.id[0] && !named)) {
		(void)programs_slot_lock(p->lock_fd, i, F_UNLCK);
		return;
	}
	if (state.id[0])
		programs_free_slot(p, (uint32_t)i);
	p->slot = i;
}

int programs_slot_take(struct programs *p, struct err *err)
{
	for (int named = 0; named < 2 && p->slot < 0; named++)
		for (int i = 0; i < WIRE_SLOTS_MAX && p->slot < 0; i++)
			try_slot(p, i, named);
	if (p->slot < 0)
		return err_set(
			err, -EBUSY, "%d sandboxes are being traced already", WIRE_SLOTS_MAX);
	return map_slot(p, err);
}

void programs_slot_unmap(struct programs *p)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (p->state)
		munmap((void *)((uintptr_t)p->state & ~(page - 1)), page);
	p->state = NULL;
}
