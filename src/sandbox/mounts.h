/* SPDX-License-Identifier: Apache-2.0 */
/* The folders and files of the host that the user put into the sandbox: ro, rw, cow. */
#ifndef SANDBOX_MOUNTS_H
#define SANDBOX_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/boot.h"
#include "sandbox/hide.h"
#include "sandbox/idmap.h"
#include "sandbox/lowers.h"
#include "sandbox/quota.h"
#include "spec/spec.h"
#include "util/err.h"
#include "util/folder_id.h"
#include "util/jsonw.h"

/* Name of the snapshot of what an rw mount was, in the change set; by its number in the spec. */
#define MOUNTS_BEFORE_NAME "before.%zu"

struct mounts_entry {
	const struct spec_mount *spec;
	size_t number; /* in the spec */
	enum spec_mount_mode how;
	uint32_t uid, gid; /* owner of the source: root inside */
	mode_t mode;
	bool is_folder;
	int cow; /* counts the cow mounts in the order they were asked for; -1 for others */
	struct idmap uids, gids;
	struct hide_list hide;
	char folder_id[FOLDER_ID_SIZE]; /* of a cow source: what its changes are about */
	char *copy; /* what is mounted in the source's place; NULL: the source */
	int fd;
};

struct mounts {
	struct mounts_entry entries[BOOT_MAX_MOUNTS]; /* folders before what lies in them */
	size_t n;
	bool has_rw;
	char *copies; /* the folder of copies; NULL: none was made */
	char *notice; /* a sentence that belongs in the record, or NULL */
};

/* Looks at the sources: owners, kinds, what is to be hidden. Nothing is made. */
int mounts_plan(struct mounts *mounts, const struct spec *spec, uint32_t base, struct err *err);
void mounts_done(struct mounts *mounts);
/* Where and for whom they are made. */
struct mounts_place {
	const char *changes_dir;
	const char *copies_dir; /* where copies go, not there yet */
	uint32_t base;
	int plain_userns_fd; /* the sandbox's own, for maps like its own */
	const struct lowers *lowers;
	const struct quota *quota; /* NULL: no limit */
};
/* Makes them, attached nowhere. */
int mounts_open(struct mounts *mounts, const struct mounts_place *place, struct err *err);
/* Once attached inside: lets go of all but the cow layers, whose last hold writes them out to disk. */
void mounts_close_plain(struct mounts *mounts);
/* One object of changes.json for each cow mount, as docs/change-sets.md has it. */
void mounts_write_changes(
	const struct mounts *mounts, const struct lowers *lowers, struct jsonw *j);
/* And for each rw mount. */
void mounts_write_rw(const struct mounts *mounts, struct jsonw *j);
/* Puts into spec which folders the cow mounts are about, for a sandbox that goes on from this one. */
void mounts_keep_ids(const struct mounts *mounts, struct spec *spec);

#endif
