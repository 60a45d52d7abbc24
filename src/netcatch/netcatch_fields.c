/* SPDX-License-Identifier: Apache-2.0 */
#include "netcatch/netcatch_fields.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "util/fdio.h"
#include "util/scoped.h"
#include "util/str.h"

#define NOTES_PATH "/sys/kernel/notes" /* holds the build id */
#define NOTES_MAX  4096
#define CACHE_MODE 0600

struct wanted {
	enum netcatch_number number;
	const char *structure, *field;
};

static const struct wanted wanted[] = {
	{NETCATCH_NUMBER_field_task_pid, "task_struct", "thread_pid"},
	{NETCATCH_NUMBER_field_task_tgid, "task_struct", "tgid"},
	{NETCATCH_NUMBER_field_task_comm, "task_struct", "comm"},
	{NETCATCH_NUMBER_field_task_leader, "task_struct", "group_leader"},
	{NETCATCH_NUMBER_field_task_cgroups, "task_struct", "cgroups"},
	{NETCATCH_NUMBER_field_cgroups_own, "css_set", "dfl_cgrp"},
	{NETCATCH_NUMBER_field_cgroup_kn, "cgroup", "kn"},
	{NETCATCH_NUMBER_field_kn_id, "kernfs_node", "id"},
	{NETCATCH_NUMBER_field_pid_level, "pid", "level"},
	{NETCATCH_NUMBER_field_pid_numbers, "pid", "numbers"},
};

/* The offset in bits; below structures without a name too. */
static bool find_field(
	const struct btf *btf, const struct btf_type *type, const char *field, uint32_t *ret_bits)
{
	const struct btf_member *m = btf_members(type);

	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(btf, m[i].name_off);
		const struct btf_type *inner = btf__type_by_id(btf, m[i].type);

		*ret_bits = btf_member_bit_offset(type, i);
		if (name && strcmp(name, field) == 0)
			return true;
		/* One level: the kernel's randomized part is one such. */
		for (uint32_t k = 0;
			(!name || !*name) && btf_is_composite(inner) && k < btf_vlen(inner); k++) {
			name = btf__name_by_offset(btf, btf_members(inner)[k].name_off);
			*ret_bits =
				btf_member_bit_offset(type, i) + btf_member_bit_offset(inner, k);
			if (name && strcmp(name, field) == 0)
				return true;
		}
	}
	return false;
}

static const struct btf_type *find_struct(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
}

static bool ask_kernel(const struct btf *btf, struct netcatch_fields *fields)
{
	const struct btf_type *type = find_struct(btf, "upid");
	uint32_t bits, nr_bits;

	if (!type || !find_field(btf, type, "nr", &nr_bits))
		return false;
	fields->numbers[NETCATCH_NUMBER_field_upid_size] = type->size;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		type = find_struct(btf, wanted[i].structure);
		if (!type || !find_field(btf, type, wanted[i].field, &bits))
			return false;
		fields->numbers[wanted[i].number] = bits / 8;
	}
	fields->numbers[NETCATCH_NUMBER_field_pid_numbers] += nr_bits / 8;
	fields->numbers[NETCATCH_NUMBER_field_known] = 1;
	return true;
}

/* The file is the kernel's notes, then the numbers. */
static bool take_cached(
	const char *cache, const struct str *notes, struct netcatch_fields *ret_fields)
{
	scoped_str struct str text = {0};

	if (fdio_read_file(AT_FDCWD, cache, NOTES_MAX + sizeof(*ret_fields), &text) < 0 ||
		text.len != notes->len + sizeof(*ret_fields) ||
		memcmp(text.p, notes->p, notes->len) != 0)
		return false;
	memcpy(ret_fields, text.p + notes->len, sizeof(*ret_fields));
	return true;
}

void netcatch_fields_get(const char *cache, struct netcatch_fields *ret_fields)
{
	scoped_str struct str notes = {0};
	bool can_cache =
		fdio_read_file(AT_FDCWD, NOTES_PATH, NOTES_MAX, &notes) == 0 && notes.len > 0;
	struct btf *btf;

	if (can_cache && take_cached(cache, &notes, ret_fields))
		return;
	memset(ret_fields, 0, sizeof(*ret_fields));
	btf = btf__load_vmlinux_btf();
	if (!btf || !ask_kernel(btf, ret_fields))
		memset(ret_fields, 0, sizeof(*ret_fields));
	btf__free(btf);
	if (!can_cache)
		return;
	str_add(&notes, ret_fields, sizeof(*ret_fields));
	(void)fdio_replace(
		AT_FDCWD, cache, notes.p, notes.len, CACHE_MODE); /* the next one asks again */
}
