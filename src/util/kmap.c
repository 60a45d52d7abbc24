/* SPDX-License-Identifier: Apache-2.0 */
#include "util/kmap.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int call(int command, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

/* The kernel refuses a union with anything behind what the command uses. */
static union bpf_attr element(int fd, const void *key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (__u32)fd;
	attr.key = (uintptr_t)key;
	attr.value = (uintptr_t)value;
	return attr;
}

int kmap_find(int fd, const void *key, void *ret_value)
{
	union bpf_attr attr = element(fd, key, ret_value);

	return call(BPF_MAP_LOOKUP_ELEM, &attr);
}

int kmap_set(int fd, const void *key, const void *value)
{
	union bpf_attr attr = element(fd, key, value);

	return call(BPF_MAP_UPDATE_ELEM, &attr);
}

int kmap_remove(int fd, const void *key)
{
	union bpf_attr attr = element(fd, key, NULL);

	return call(BPF_MAP_DELETE_ELEM, &attr);
}

int kmap_first(int fd, void *ret_key)
{
	union bpf_attr attr = element(fd, NULL, NULL);

	attr.next_key = (uintptr_t)ret_key;
	return call(BPF_MAP_GET_NEXT_KEY, &attr);
}

int kmap_ring_new(size_t bytes)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_RINGBUF;
	attr.max_entries = (__u32)bytes;
	return call(BPF_MAP_CREATE, &attr);
}

int kmap_ring_size(int fd, size_t *ret_max_bytes)
{
	struct bpf_map_info info = {0};
	union bpf_attr attr;
	int r;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (__u32)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	r = call(BPF_OBJ_GET_INFO_BY_FD, &attr);
	if (r < 0)
		return r;
	if (info.type != BPF_MAP_TYPE_RINGBUF)
		return -EINVAL;
	*ret_max_bytes = info.max_entries;
	return 0;
}
