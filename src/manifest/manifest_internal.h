/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a scan share. scan.h says how they work together. */
#ifndef MANIFEST_MANIFEST_INTERNAL_H
#define MANIFEST_MANIFEST_INTERNAL_H

#include "manifest/changes.h"
#include "manifest/upper.h"
#include "util/map.h"

/* A path below that no longer shows at its place. */
struct scan_hidden {
	char *path, *base; /* as the sandbox sees it; as it lies below */
	unsigned flags;    /* CHANGE_REPLACED, CHANGE_QUIET */
};

/* The file below that an added one was copied up from. */
struct scan_origin {
	size_t item;
	size_t len;
	unsigned char handle[UPPER_ORIGIN_MAX];
};

struct scan {
	const struct change_set *set;
	const struct change_layer *layer;
	struct changes *out;
	bool count_only;
	int upper_fd, lower_fd;
	int64_t budget; /* bytes that may still be hashed */
	struct scan_hidden *hidden;
	size_t n_hidden;
	struct map *moved; /* base paths of folders that were renamed: where they are now */
	bool only_moves;   /* the first round, which fills that and nothing else */
	struct scan_origin *origins;
	size_t n_origins;
};

/* scan.c */
char *scan_join(const char *folder, const char *name); /* "" and "." are no folder */
size_t scan_skipped_len(
	const char *path); /* how much of path is a skipped folder, 0 where none is */
struct change *scan_add(struct scan *scan, enum change_kind kind, char *path);
void scan_note_unread(struct scan *scan, const char *path, int r);
/* Reads all names of a folder but "." and "..", then calls on_name for each until one fails. */
int scan_each_name(int dirfd, int (*on_name)(void *data, const char *name), void *data);

/* scan_side.c: fills one side. hash: read the file. What cannot be read is noted, not fatal. */
void scan_side_read(struct scan *scan, int dirfd, const char *name, const struct stat *st,
	bool hash, const char *path, struct change_side *side);
/* The upper's side of a file without data: everything but the data is the upper's. */
void scan_side_read_data(
	struct scan *scan, const char *data, const char *path, bool hash, struct change_side *side);
/* CHANGE_OWNER where the upper's owner is not what the one below is seen as. */
unsigned scan_side_compare_owner(
	const struct scan *scan, const struct change_side *before, const struct change_side *after);
void scan_side_state(const struct change *change, char ret[DIGEST_HEX_SIZE]);

/* scan_hidden.c: lists what is hidden, and finds renames among it. */
void scan_hidden_list(struct scan *scan);

#endif
