/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/layers: unpacked layers, each under a name, complete and never changed. One is made in a folder ".tmp-NAME"
 * that is locked meanwhile and renamed when all of it is on disk, so two that make the same wait for each other, and
 * what a killed one left is known by its free lock. So is one that was being removed (cli/layers.c). */
#ifndef IMAGE_LAYER_STORE_H
#define IMAGE_LAYER_STORE_H

#include <stdint.h>

#include "util/err.h"

struct layer_store {
	int fd;        /* the folder */
	uint32_t base; /* first of the 65,536 host ids that own what is in image layers */
	char *path;
};

int layer_store_open(struct layer_store *store, const char *state_dir, struct err *err);
void layer_store_done(struct layer_store *store);
int layer_store_has(const struct layer_store *store, const char *name); /* 1 or 0 */
/* Removes what killed ones left. */
void layer_store_clean(const struct layer_store *store);

struct layer_temp {
	const struct layer_store *store;
	char *name;     /* without ".tmp-" */
	int dir_fd;     /* locked */
	int fs_fd;      /* its folder "fs", readable, of base */
	char *path;     /* of fs */
	uint64_t bytes; /* of its tar; for whoever looks what takes room */
};
#define LAYER_TEMP_NONE ((struct layer_temp){.dir_fd = -1, .fs_fd = -1})

/* 1: ret_temp is a folder to fill. 0: the layer is there meanwhile. Waits for one who is making it. */
int layer_store_begin(const struct layer_store *store, const char *name,
	struct layer_temp *ret_temp, struct err *err);
/* Writes layer.json and, where that is not done yet, all of it to disk; then it is a layer under name. One that is there
 * already is as good. */
int layer_store_finish(struct layer_temp *temp, const char *name, struct err *err);
/* Removes one that was not finished. Safe twice. */
void layer_store_drop(struct layer_temp *temp);

#endif
