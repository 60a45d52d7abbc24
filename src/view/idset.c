/* SPDX-License-Identifier: Apache-2.0 */
#include "view/idset.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

void idset_done(struct idset *set)
{
	free(set->ids);
	*set = (struct idset){0};
}

/* Where id is or belongs. */
static uint32_t place(const struct idset *set, int64_t id)
{
	uint32_t low = 0, high = set->n;

	if (set->n && id > set->ids[set->n - 1])
		return set->n;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (set->ids[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void idset_add(struct idset *set, int64_t id)
{
	uint32_t at = place(set, id);

	if (at < set->n && set->ids[at] == id)
		return;
	if (set->n == IDSET_MAX) {
		set->is_cut = true;
		return;
	}
	if (set->n == set->cap) {
		set->cap = set->cap ? set->cap * 2 : 2;
		set->ids = mem_grow(set->ids, set->cap, sizeof(*set->ids));
	}
	memmove(set->ids + at + 1, set->ids + at, (set->n - at) * sizeof(*set->ids));
	set->ids[at] = id;
	set->n++;
}

void idset_add_all(struct idset *set, const struct idset *from)
{
	for (uint32_t i = 0; i < from->n; i++)
		idset_add(set, from->ids[i]);
	set->is_cut |= from->is_cut;
}

void idset_write_who(struct jsonw *j, const struct idset *processes, const struct idset *execs,
	const struct slice *exec_names)
{
	jsonw_key(j, "processes");
	jsonw_array(j);
	for (uint32_t i = 0; i < processes->n; i++)
		jsonw_int(j, processes->ids[i]);
	jsonw_array_end(j);
	jsonw_key(j, "execs");
	jsonw_array(j);
	for (uint32_t i = 0; i < execs->n; i++)
		jsonw_slice(j, exec_names[execs->ids[i]]);
	jsonw_array_end(j);
	if (processes->is_cut || execs->is_cut)
		jsonw_kbool(j, "processes_cut", true);
}
