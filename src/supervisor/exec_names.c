/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/exec_names.h"

#include "util/map.h"
#include "util/mem.h"

struct exec_names {
	struct map *ids;                  /* by group */
	uint64_t ended[EXEC_NAMES_ENDED]; /* 0: none yet */
	size_t next;
};

static struct slice key_of(const unsigned long long *cgroup)
{
	return map_int_key(cgroup);
}

struct exec_names *exec_names_new(void)
{
	struct exec_names *names = new0(struct exec_names);

	names->ids = map_new();
	return names;
}

void exec_names_free(struct exec_names *names)
{
	void *id;

	if (!names)
		return;
	for (size_t i = 0; map_next(names->ids, &i, &(struct slice){0}, &id);)
		free(id);
	map_free(names->ids);
	free(names);
}

void exec_names_add(struct exec_names *names, uint64_t cgroup, const char *exec_id)
{
	unsigned long long key = cgroup;
	void **slot = map_slot(names->ids, key_of(&key));

	free(*slot);
	*slot = mem_dup(exec_id);
}

void exec_names_end(struct exec_names *names, uint64_t cgroup)
{
	unsigned long long oldest = names->ended[names->next];

	/* Ids of groups are not given out again while the host runs. */
	if (oldest)
		free(map_remove(names->ids, key_of(&oldest)));
	names->ended[names->next] = cgroup;
	names->next = (names->next + 1) % EXEC_NAMES_ENDED;
}

const char *exec_names_find(const struct exec_names *names, uint64_t cgroup)
{
	unsigned long long key = cgroup;

	return map_find(names->ids, key_of(&key));
}
