/* SPDX-License-Identifier: Apache-2.0 */
/* An apply at work: what its parts share. apply_item.c does one change, apply_rename.c all renames, apply_steps.c
 * everything in its order. */
#ifndef MANIFEST_APPLY_WORK_H
#define MANIFEST_APPLY_WORK_H

#include "manifest/apply.h"
#include "manifest/apply_plan.h"
#include "manifest/host_folder.h"
#include "manifest/moves.h"
#include "util/map.h"

struct apply {
	struct change_set *set;
	const struct changes *changes;
	const struct change_layer *layer;
	const struct apply_options *options;
	struct apply_item *items;
	struct host_folder *host;
	int lower_fd;
	int upper_failure; /* of what was to be written into the sandbox's own layer, or kept; 0: none */
	struct map *new_folders; /* path to its place in the list, counted from 1 */
	struct map *removals;    /* likewise, of what was taken away */
	struct moves *moves;     /* renames that were done: later paths are found by them */
	struct map *stuck_to;    /* renames that are not done: where they should go, and */
	struct map *stuck_from;  /* where they still are, in the words of before */
};

void apply_work_set_result(
	struct apply_item *item, enum apply_result result, char *text); /* takes text */
void apply_work_set_done(
	struct apply *a, size_t i, struct str *lost); /* lost: what did not come along, or NULL */
void apply_work_add_loss(struct str *lost, const char *what);
/* One failure: said of the item where it is its own (0), else the end of the work (r). */
int apply_work_settle(struct apply *a, size_t i, int r);
/* Where a path of the folder as it was is on the host now. The caller frees it. */
char *apply_work_now_at(const struct apply *a, const char *path);
const char *apply_work_base(const struct change *c); /* its path below */
/* A rename that is not done: what belongs into its folder, or into a new one in its old place, must wait too. */
void apply_work_add_stuck(struct apply *a, const struct change *c);
/* The rename that item i waits for so; NULL: none. */
const char *apply_work_find_stuck(const struct apply *a, size_t i);
bool apply_work_is_done(const struct apply *a, size_t i);
bool apply_work_is_stopped(const struct apply *a); /* the user wants no more */
bool apply_work_is_folder(const struct change *c);
bool apply_work_has_new_content(const struct change *c);
bool apply_work_is_new_folder(const struct change *c);

/* Refuses an item that waits for a rename which is not done. */
bool apply_item_is_stuck(struct apply *a, size_t i);
/* Each does item i: 0, with its result set, or why not. */
int apply_item_make_folder(struct apply *a, size_t i);
int apply_item_put(struct apply *a, size_t i);
int apply_item_remove(struct apply *a, size_t i);
int apply_item_remove_early(struct apply *a, size_t i);
/* Parts of an item. */
int apply_item_make_parents(struct apply *a, const char *path);
int apply_item_write_file(struct apply *a, size_t i, bool replace, struct str *lost);
int apply_item_write_rights(struct apply *a, size_t i, struct str *lost);

int apply_rename_all(struct apply *a);
/* Tells the journal which folders have their times from this apply: after its last act. */
int apply_keep_touched(struct apply *a);
int apply_steps_run(struct apply *a);

#endif
