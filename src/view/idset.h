/* SPDX-License-Identifier: Apache-2.0 */
/* A small sorted set of numbers: who touched a path. Full at IDSET_MAX; what does not fit is said, not kept. */
#ifndef VIEW_IDSET_H
#define VIEW_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/jsonw.h"

#define IDSET_MAX 4096

struct idset {
	int64_t *ids; /* ascending */
	uint32_t n, cap;
	bool is_cut; /* some did not fit */
};

void idset_done(struct idset *set);
void idset_add(struct idset *set, int64_t id);
void idset_add_all(struct idset *set, const struct idset *from);

/* "processes" and "execs", the latter by their names, and "processes_cut" where there were more. */
void idset_write_who(struct jsonw *j, const struct idset *processes, const struct idset *execs,
	const struct slice *exec_names);

#endif
