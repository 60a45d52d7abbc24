/* SPDX-License-Identifier: Apache-2.0 */
/* The root filesystem: the host view (a skeleton for `/`, the host's own /usr and the like over it) or a
 * folder, each under a writable layer of the sandbox's own. */
#ifndef SANDBOX_ROOTFS_H
#define SANDBOX_ROOTFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/lowers.h"
#include "sandbox/quota.h"
#include "spec/spec.h"
#include "util/err.h"

#define ROOTFS_MAX_LAYERS 8

struct rootfs_layer {
	const char *prefix; /* of its folders: "root.", "usr." */
	const char *guest;  /* where it lies inside: "/", "/usr" */
	char *lower;        /* on the host; NULL: shared layers and nothing below them */
};

struct rootfs {
	struct rootfs_layer layers[ROOTFS_MAX_LAYERS];
	size_t n_layers;
	int lock_fd; /* keeps the skeleton, -1 without */
};

/* What the root consists of: the host view, the folder or the image that spec names, below its shared layers. */
int rootfs_plan(
	struct rootfs *rootfs, const struct spec *spec, const char *state_dir, struct err *err);
/* Whether it has a layer of its own at guest. */
bool rootfs_has(const struct rootfs *rootfs, const char *guest);
void rootfs_done(struct rootfs *rootfs);
/* Where and for whom its layers are made. */
struct rootfs_place {
	int dir_fd;    /* in which their folders lie */
	int userns_fd; /* of the sandbox */
	const struct lowers *lowers;
	int over_fd;    /* laid over the root's lower folder; -1: nothing */
	uint32_t owner; /* host id of root inside */
	bool throw_away;
	const struct quota *quota; /* NULL: no limit */
};
/* Mounts layer number i. */
int rootfs_open(
	const struct rootfs *rootfs, size_t i, const struct rootfs_place *place, struct err *err);
/* What the root shows below all that is the sandbox's own, read-only. */
int rootfs_open_below(
	const struct rootfs *rootfs, const struct rootfs_place *place, struct err *err);
/* Layers that were never synced are refused by the kernel the next time: they have been synced since. */
void rootfs_settle(int dir_fd);
/* Removes what the layers of any sandbox left in dir_fd. */
int rootfs_remove(int dir_fd);

/* Detached tmpfs mounts: /dev with its nodes, /dev/shm, and the two things that hidden places show. */
int rootfs_open_dev(uint32_t owner, struct err *err);
int rootfs_open_shm(uint32_t owner, struct err *err);
int rootfs_open_hide_source(struct err *err);

#endif
