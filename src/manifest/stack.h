/* SPDX-License-Identifier: Apache-2.0 */
/* An upper and the shared layers below it, looked at as the one upper that the kernel would have made of them, over the
 * host folder below all: names are looked up from the top, as overlayfs does (fs/overlayfs/namei.c of 6.1 to 6.18): a
 * whiteout or a file ends it, an opaque folder lets nothing below through, a redirect is where the layers below it are
 * looked into. A layer that is not there (a freeze is half-way) is one in which nothing is. */
#ifndef MANIFEST_STACK_H
#define MANIFEST_STACK_H

#include "manifest/change_set.h"
#include "manifest/upper.h"

struct stack {
	const struct change_layer *layer; /* borrowed */
	int *fds; /* [0]: the own upper, then the shared ones; negative: not there. [n]: what is kept, which is no layer */
	size_t n;
};
/* Negative errno where one that is there cannot be read. */
int stack_open(const struct change_layer *layer, struct stack *ret);
void stack_done(struct stack *stack);

/* A folder in one of the layers. */
struct stack_part {
	int fd;
	size_t layer;
	bool xwhiteouts;
	char *path; /* in the layer, "" for its top */
};
/* All that show through each other at one place, topmost first. */
struct stack_folder {
	struct stack_part *parts;
	size_t n;
	bool opaque; /* nothing of the host folder shows through */
};
void stack_folder_done(struct stack_folder *folder);
int stack_top(const struct stack *stack, struct stack_folder *ret);
/* Calls on_name for each name in any part, once. */
int stack_each_name(const struct stack_folder *folder, int (*on_name)(void *data, const char *name),
	void *data);
bool stack_has(const struct stack_folder *folder, const char *name);

/* A name in one. */
struct stack_entry {
	struct upper_entry
		up; /* as of one upper over the host folder: opaque, redirect and metacopy are about that */
	size_t layer; /* in which it is found */
	int dirfd;    /* borrowed from the folder that it was looked up in */
	char *path;   /* in the layer */
	char *stored; /* of a file without data: where in stored_layer that is; NULL: in the host folder */
	size_t stored_layer;
	struct stack_folder folder; /* of a folder: what is in it */
};
/* -ENOENT where it is in none. Release with stack_entry_done() whatever it returned. */
int stack_read(const struct stack *stack, const struct stack_folder *folder, const char *name,
	struct stack_entry *ret);
void stack_entry_done(struct stack_entry *entry);

/* The path of a layer's folder, number 0 being the own upper; behind the last one that of what is kept. */
const char *stack_dir(const struct change_layer *layer, size_t number);
/* An id in a layer as the own upper would have it. */
uint32_t stack_id(const struct change_layer *layer, size_t number, const struct change_set_map *map,
	uint32_t id);

#endif
