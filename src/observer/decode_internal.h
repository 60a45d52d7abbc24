/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of decode share. */
#ifndef OBSERVER_DECODE_INTERNAL_H
#define OBSERVER_DECODE_INTERNAL_H

#include "observer/decode.h"
#include "util/map.h"
#include "util/str.h"

#define DECODE_ARGS_MAX 6 /* of a system call */

struct decode {
	int64_t start_ns;
	uint32_t id_base;
	struct decoded events[DECODE_EVENTS_MAX];
	size_t n;
	struct str paths[DECODE_NAMES_MAX], cwd; /* what slices in events point into */
	struct str argv;
	struct slice *items; /* of argv */
	size_t n_items;
	char args[DECODE_ARGS_MAX][24];
	struct slice arg_items[DECODE_ARGS_MAX];
	char call[32];
	struct map *chunks; /* host pid to struct str: arguments whose exec is still to come */
};

/* One more event of this record, with its header filled. */
struct decoded *decode_add(struct decode *d, const struct wire_head *head, enum event_kind kind);

/* Turns "leaf\0dir\0" into "/dir/leaf", or, where it does not begin at the root, "dir/leaf". */
void decode_path(const char *p, size_t len, bool rooted, struct str *out);

/* What follows a record's struct, cut off piece by piece. */
struct decode_rest {
	const char *p;
	size_t len;
};
/* -EBADMSG where there is less. */
int decode_cut(struct decode_rest *rest, size_t len, struct slice *ret);

int decode_exec(struct decode *d, const struct wire_exec *e, struct decode_rest rest);
int decode_chunk(struct decode *d, const struct wire_chunk *c, struct decode_rest rest);
int decode_call(struct decode *d, const struct wire_call *c, struct decode_rest rest);

#endif
