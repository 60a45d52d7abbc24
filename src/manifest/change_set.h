/* SPDX-License-Identifier: Apache-2.0 */
/* One sandbox's change set on disk: <state>/changes/<id>/, as docs/change-sets.md says.
 *
 * changes.json, written when the sandbox is made, says which host folders lie below which uppers;
 * journal.jsonl, written here, what has been applied or discarded since. */
#ifndef MANIFEST_CHANGE_SET_H
#define MANIFEST_CHANGE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/digest.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"

#define CHANGE_SET_LAST       "changes.json" /* without it, the rest is nobody's */
#define CHANGE_SET_LAYERS_MAX 256
#define CHANGE_SET_ID_RANGE   65536u /* host ids of one sandbox */
#define CHANGE_SET_STACK_MAX  128    /* shared layers below one upper */
#define CHANGE_SET_MAP_MAX    8      /* lines of an id map */

/* n ids from disk on are seen through the mount as those from host on. */
struct change_set_map {
	struct {
		uint32_t disk, host, n;
	} lines[CHANGE_SET_MAP_MAX];
	size_t n; /* 0: as in a sandbox's own map, 0 is its first host id and so on */
};

/* A shared layer between an upper and what is below. */
struct change_shared {
	char *dir;
	uint32_t base; /* first host id in it; 0: as in the host folder */
};

/* One overlay. */
struct change_layer {
	int n;           /* number of the mount; -1 for the root's own layers */
	bool counted;    /* an agent's own folder: its changes are counted, and not applied */
	char *guest;     /* where it is mounted inside */
	char *lower;     /* the host folder below; NULL: an image's root, which has none */
	char *folder_id; /* util/folder_id.h: of the folder that was mounted; NULL: not known */
	bool is_copied;  /* a copy of it was mounted */
	char *upper;     /* absolute */
	char *kept;      /* manifest/kept.h: that folder, there or not */
	struct change_shared *stack; /* topmost first */
	size_t n_stack;
	size_t n_below;      /* behind those in stack: what lies below where lower is NULL */
	uint32_t below_base; /* first host id in them */
	uid_t owner_uid;     /* of the host folder: 0 inside */
	gid_t owner_gid;
	uint32_t id_base; /* first host id of the sandbox */
	struct change_set_map uid_map, gid_map;
};

/* A folder or file that was mounted rw: what it was is in a snapshot. */
struct change_rw {
	struct change_layer place; /* without an upper */
	char *before;              /* name of the snapshot, in the set's folder */
};

struct change_set {
	char *dir;
	struct change_layer *layers; /* mounts first, in their order */
	size_t n_layers;
	struct change_rw *rws;
	size_t n_rws;
	int64_t created_ns; /* wall clock when the sandbox was made: what changed below later, the host changed */
	int64_t id_base;
	struct journal *journal;
};

/* -ENOENT where there is none. Refuses a changes.json that others than root or the caller may write. */
int change_set_open(const char *dir, struct change_set **ret_set, struct err *err);
void change_set_free(struct change_set *set);
SCOPED_TYPE(change_set)

/* Its folders are known by their times only. */
bool change_layer_lacks_handles(const struct change_layer *layer);
/* The layer that holds an absolute path inside, the deepest one; NULL where none does. *ret_rest is the path
 * in the layer, "" for its top. */
const struct change_layer *change_set_find(
	const struct change_set *set, struct slice guest_path, struct slice *ret_rest);

/* An id of the host folder as the sandbox sees it; CHANGE_SET_ID_RANGE and up: it has no place inside. map is one
 * of the layer's. */
uint32_t change_set_inner_id(
	const struct change_layer *layer, const struct change_set_map *map, uint32_t id);

#endif
