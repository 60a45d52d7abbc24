/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through a folder and what is below, in the order of names: no links are followed, no folder of the kernel's is
 * entered, and there is an end to it. */
#ifndef FILES_WALK_H
#define FILES_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/slice.h"

enum walk_end {
	WALK_DONE,
	WALK_STOPPED, /* by the visitor */
	WALK_ENTRIES, /* WALK_ENTRIES_MAX were looked at */
	WALK_TIME,
	WALK_DEPTH, /* some folders lie deeper than WALK_DEPTH_MAX and were left out */
};
#define WALK_ENTRIES_MAX 500000
#define WALK_DEPTH_MAX   200
const char *walk_end_name(enum walk_end end); /* "entries"; NULL: done */

struct walk_entry {
	int dirfd;
	const char *name;
	struct slice path;  /* from the folder where it began, with a NUL behind */
	unsigned char type; /* DT_REG, ...; never DT_UNKNOWN */
};

struct walk {
	int64_t deadline_ns; /* of CLOCK_MONOTONIC */
	/* false: enough. */
	bool (*on_entry)(void *ctx, const struct walk_entry *entry);
	/* Whether to go into that folder; NULL: all. */
	bool (*is_wanted)(void *ctx, struct slice folder);
	void *ctx;
};

/* Takes fd over. */
enum walk_end walk_folder(const struct walk *walk, int fd);

/* The names in a folder, sorted, without . and ..; at most max of them. The caller frees them and the list. Takes fd over. */
char **walk_names(int fd, size_t max, size_t *ret_n, bool *ret_has_more);

#endif
